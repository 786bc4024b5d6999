//! `trapline overhead`: what recording an event costs on this machine.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::Args;
use cpuset::CpuSet;
use doubts::DoubtKind;
use event::Quality;
use record::cost::{self, RecordingForm};
use record::{ProbeKind, Tracefs};
use render::ClockUnit;
use render::overhead::{self, OverheadRow};
use render::quality;

use crate::answer::Answer;
use crate::options::{Format, cpus};
use crate::output;

/// `trapline overhead`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct OverheadArgs {
    /// Measure on these CPUs alone, for example 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpu: Option<CpuSet>,

    #[command(flatten)]
    format: Format,
}

const HELP: &str =
    "Sends signals to itself that it ignores, with an event of them on and off, and takes the median of the \
differences in CPU time: some 50 ms on each CPU, one after another. Nothing else is recorded or changed but for two \
probes, which are removed at the end.

Caches are warm here as they are not behind a VM-exit: an event costs this much or
more. A recorder also takes time of its own, and what it writes takes room and I/O.
'trapline record' measures the same when it begins and writes it into the recording:
'trapline report' says what that recording cost.

Columns:
  event       a tracepoint whose record goes to the ring
  call chain  one with the kernel's call chain
  filtered    one that a filter in the kernel leaves out
  kept        one of which a program in the kernel (BPF) keeps each thread's last,
              as --pair of 'trapline record' does
  kprobe      a probe of a kernel function; - where the kernel has none
  uprobe      a probe of a program's function: a trap
  events/s for 1 %
              events a second that take a hundredth of a CPU

It needs what 'trapline record' needs: root or CAP_PERFMON, and tracefs.

Examples:
  trapline overhead
  trapline overhead --cpu 2-3 --format json";

/// Runs the command.
pub(crate) fn run(args: &OverheadArgs) -> Result<()> {
    let tracefs = Tracefs::find()?;
    let mut quality = Quality::default();
    let mut notes = BTreeSet::new();
    let cpus = args.cpu.clone();
    let cpus = cpus.unwrap_or_else(record::machine::online);
    let mut rows = Vec::new();
    for cpu in cpus.iter() {
        match row(&tracefs, &mut notes, cpu) {
            Ok(row) => rows.push(row),
            // Another CPU may do, unless this is the only one.
            Err(error) if args.cpu.is_none() && cpu > 0 => {
                let note = format!("CPU {cpu}: {error}.");
                quality.raise(DoubtKind::MeasurementNote { note });
            }
            Err(error) => return Err(anyhow::Error::new(error).context(format!("CPU {cpu}"))),
        }
    }
    for note in notes {
        quality.raise(DoubtKind::MeasurementNote { note });
    }
    for row in rows.iter().filter(|row| row.is_in_noise()) {
        let note = format!(
            "CPU {}: 0 ns is a cost that was lost in what else went on, so the others of this CPU are uncertain too: \
             measure again while less runs.",
            row.cpu
        );
        quality.raise(DoubtKind::MeasurementNote { note });
    }
    let answer = Answer {
        format: args.format,
        command: "overhead",
        inputs: &[],
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let mut text = overhead::table(&rows, output::layout(usize::MAX, true));
            text.push_str(&quality::doubts(&quality, output::width()));
            text
        },
        || overhead::document(&rows),
        |_| overhead::csv(&rows),
    )
}

/// Measures on a CPU.
fn row(
    tracefs: &Tracefs,
    notes: &mut BTreeSet<String>,
    cpu: u32,
) -> Result<OverheadRow, record::RecordError> {
    cost::stay_on(cpu)?;
    let mut probe = |what: &str, kind| match cost::measure_probe(tracefs, kind) {
        Ok(ns) => Some(ns),
        Err(error) => {
            notes.insert(format!("{what}: {error}."));
            None
        }
    };
    let probe_ns = probe("kprobe", ProbeKind::Kernel);
    let uprobe_ns = probe("uprobe", ProbeKind::User);
    Ok(OverheadRow {
        cpu,
        event_ns: cost::measure(tracefs, RecordingForm::Whole)?,
        chain_ns: cost::measure(tracefs, RecordingForm::Chain).ok(),
        filtered_ns: cost::measure(tracefs, RecordingForm::FilteredOut).ok(),
        kept_ns: cost::measure_kept(tracefs).ok(),
        probe_ns,
        uprobe_ns,
    })
}
