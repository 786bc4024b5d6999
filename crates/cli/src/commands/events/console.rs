//! `trapline events --console`: what guests printed on their serial lines.

use std::ops::ControlFlow;

use analysis::{Console, ConsoleLine, ConsoleSums};
use anyhow::{Result, bail};
use event::Quality;
use model::Vm;
use render::ClockUnit;
use render::console::{self, ConsoleRow, Lines, Writer};
use session::{FilterScope, HostFacts, OpenRecording};

use crate::answer::Answer;
use crate::commands::events::args::EventsArgs;
use crate::commands::no_events;
use crate::options::Format;
use crate::output;
use crate::stream::Stream;

/// Runs the command.
pub(super) fn run(
    args: &EventsArgs,
    recording: &OpenRecording<'_>,
    facts: &HostFacts,
) -> Result<()> {
    let name = recording.name();
    let header = recording.header();
    // Whose thread is whose is known at the end of a recording, and asked for at its lines.
    let vms = recording.vms();
    let threads = vms
        .iter()
        .enumerate()
        .flat_map(|(at, vm)| vm.vcpus.iter().map(move |vcpu| (vcpu.tid, at)));
    let clock = ClockUnit::of(recording.nanoseconds());
    let mut printer = Printer {
        format: args.common.format,
        rows: Lines::new(clock),
        clock,
        vms,
        seconds: header.seconds,
        digits: if args.ns || header.nine_digits { 9 } else { 6 },
        stream: Stream::new(&begin(args.common.format, recording, facts)),
    };
    let mut take = |line: ConsoleLine| printer.take(line);
    let may_be_arm = header.arch.as_deref() != Some("x86_64");
    let mut sink = Console::new(threads, may_be_arm, &mut take);
    let mut outcome = recording.walk_filtered(&mut sink, FilterScope::Events);
    let sums = sink.finish();
    printer.stream.check()?;
    if sums.lines == 0 {
        bail!(
            "{name}: no guest wrote to a serial line that is known (I/O ports 0x3f8, 0x2f8, 0x3e8, 0x2e8, 0xe9, 0x402; \
             on arm64 the PL011 at 0x9000000); what it writes is in kvm_pio events, on arm64 in kvm_mmio events: \
             record them with 'trapline record --for exits'"
        );
    }
    outcome.quality.doubts.extend(facts.doubts());
    printer.end(name, &sums, &outcome.quality)
}

/// Returns how the table or the document begins.
fn begin(format: Format, recording: &OpenRecording<'_>, facts: &HostFacts) -> String {
    match format {
        Format::Table => String::new(),
        Format::Csv => Lines::new(ClockUnit::of(recording.nanoseconds())).csv_head(),
        Format::Json => {
            let answer = Answer {
                format,
                command: "events",
                inputs: &[recording.name().to_owned()],
                quality: &no_events::quality(recording, facts),
                clock: ClockUnit::of(recording.nanoseconds()),
            };
            answer.up_to("console")
        }
    }
}

/// Prints lines as they come.
struct Printer<'r> {
    format: Format,
    rows: Lines,
    clock: ClockUnit,
    vms: &'r [Vm],
    /// Whether times are seconds; else they are ticks.
    seconds: bool,
    /// Digits of a second.
    digits: u32,
    stream: Stream<'static>,
}

impl Printer<'_> {
    fn time(&self, ns: u64) -> String {
        if !self.seconds {
            return format!("{ns:>15}");
        }
        let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let width = self.digits as usize;
        format!("{seconds:>6}.{:0width$}", rest / 10u64.pow(9 - self.digits))
    }

    /// Prints a line; breaks off when nobody reads what is printed.
    fn take(&mut self, line: ConsoleLine) -> ControlFlow<()> {
        let writer = writer(&line, self.vms);
        let written = ConsoleRow { line, writer };
        match self.format {
            Format::Table => {
                let time = self.time(written.line.start);
                self.stream
                    .text(&console::line(&written.line, &time, &written.writer));
            }
            Format::Csv => self.stream.text(&self.rows.csv(&written)),
            Format::Json => self.stream.item(self.rows.json(&written), self.clock),
        }
        self.stream.flow()
    }

    /// Prints what stands below the lines.
    fn end(mut self, name: &str, sums: &ConsoleSums, quality: &Quality) -> Result<()> {
        match self.format {
            Format::Json => self.stream.text(&format!(
                "\n  ],\n  \"lines\": {},\n  \"bytes\": {},\n  \"unknown_bytes\": {}\n}}\n",
                sums.lines, sums.bytes, sums.unknown
            )),
            Format::Table => self.stream.text(&format!(
                "\n{}{}",
                console::sums(sums),
                output::quality(name, quality)
            )),
            Format::Csv => {}
        }
        self.stream.end()
    }
}

/// Returns who wrote a line.
fn writer(line: &ConsoleLine, vms: &[Vm]) -> Writer {
    let Some(vm) = line.vm.and_then(|at| vms.get(at)) else {
        return Writer::default();
    };
    let vcpu = vm.vcpus.iter().find(|vcpu| vcpu.tid == line.tid);
    let called = match (&vm.name, vm.pid) {
        (Some(name), Some(pid)) => format!("{name} ({pid})"),
        (Some(name), None) => name.clone(),
        (None, Some(pid)) => format!("VM {pid}"),
        (None, None) => {
            let first = vm.vcpus.first().map_or(line.tid, |vcpu| vcpu.tid);
            format!("VM of thread {first}")
        }
    };
    Writer {
        vm: (vms.len() > 1).then_some(called),
        vm_pid: vm.pid,
        vcpu: vcpu.map(|vcpu| vcpu.id),
    }
}
