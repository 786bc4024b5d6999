//! `trapline events --console`: what guests printed on their serial lines.

use std::io::{self, Write};
use std::ops::ControlFlow;

use analysis::{Console, ConsoleLine};
use anyhow::{Result, bail};
use model::Vm;
use render::console::{self, Lines, Writer, Written};
use render::{json, quality};
use session::{HostFacts, Opened, Scope};

use crate::args::{EventsArgs, Format};
use crate::commands::VERSION;
use crate::commands::no_events::NoEvents;
use crate::output;

/// Lines are written out when this many bytes have gathered.
const BUFFER: usize = 64 << 10;

/// Runs the command.
pub(super) fn run(args: &EventsArgs, recording: &Opened<'_>, facts: &HostFacts) -> Result<()> {
    let name = recording.name();
    let format = args.common.format;
    // Whose thread is whose is known at the end of a recording, and asked for at its lines.
    let vms = recording.vms();
    let threads = vms
        .iter()
        .enumerate()
        .flat_map(|(at, vm)| vm.vcpus.iter().map(move |vcpu| (vcpu.tid, at)));
    let header = recording.header();
    let digits = if args.ns || header.nine_digits { 9 } else { 6 };
    let time = |ns: u64| match header.seconds {
        true => {
            let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
            format!(
                "{seconds:>6}.{:0digits$}",
                rest / 10u64.pow(9 - digits as u32)
            )
        }
        false => format!("{ns:>15}"),
    };
    let mut out = io::stdout().lock();
    let mut pending: Vec<u8> = Vec::with_capacity(BUFFER + (8 << 10));
    if format == Format::Json {
        // Quality stands first in every document and is known last: the recording is walked once more.
        let mut quality = recording
            .walk_filtered(&mut NoEvents, Scope::Events)
            .quality;
        facts.warn(&mut quality);
        let inputs = [name.to_owned()];
        let document = json::text(json::envelope(VERSION, "events", &inputs, &quality));
        let open = document.trim_end().trim_end_matches('}').trim_end();
        pending.extend_from_slice(open.as_bytes());
        pending.extend_from_slice(b",\n  \"console\": [");
    }
    let rows = Lines::default();
    if format == Format::Csv {
        pending.extend_from_slice(rows.csv_head().as_bytes());
    }
    let mut failed = None;
    let mut count = 0u64;
    let mut take = |line: ConsoleLine| {
        let writer = writer(&line, vms);
        let written = Written { line, writer };
        match format {
            Format::Table => {
                let text = console::line(&written.line, &time(written.line.start), &written.writer);
                pending.extend_from_slice(text.as_bytes());
            }
            Format::Csv => {
                pending.extend_from_slice(rows.csv(&written).as_bytes());
            }
            Format::Json => {
                let separator: &[u8] = if count == 0 { b"\n    " } else { b",\n    " };
                pending.extend_from_slice(separator);
                let object = rows.json(&written).to_string();
                pending.extend_from_slice(object.as_bytes());
            }
        }
        count += 1;
        if pending.len() >= BUFFER {
            if let Err(error) = out.write_all(&pending) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            pending.clear();
        }
        ControlFlow::Continue(())
    };
    let may_be_arm = header.arch.as_deref() != Some("x86_64");
    let mut sink = Console::new(threads, may_be_arm, &mut take);
    let mut outcome = recording.walk_filtered(&mut sink, Scope::Events);
    let sums = sink.finish();
    if let Some(error) = failed {
        return Err(error.into());
    }
    if sums.lines == 0 {
        bail!(
            "{name}: no guest wrote to a serial line that is known (I/O ports 0x3f8, 0x2f8, 0x3e8, 0x2e8, 0xe9, 0x402; on arm64 \
             the PL011 at 0x9000000); what it writes is in kvm_pio events, on arm64 in kvm_mmio events: record them with \
             'trace-cmd record -e kvm' or 'perf record -a -e \"kvm:*\"'"
        );
    }
    match format {
        Format::Json => {
            pending.extend_from_slice(b"\n  ],\n");
            let sums = format!(
                "  \"lines\": {},\n  \"bytes\": {},\n  \"unknown_bytes\": {}\n}}\n",
                sums.lines, sums.bytes, sums.unknown
            );
            pending.extend_from_slice(sums.as_bytes());
        }
        Format::Table => {
            facts.warn(&mut outcome.quality);
            let text = format!(
                "\n{}{}",
                console::sums(&sums),
                quality::lines(name, &outcome.quality, output::width())
            );
            pending.extend_from_slice(text.as_bytes());
        }
        Format::Csv => {}
    }
    out.write_all(&pending)?;
    Ok(out.flush()?)
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
