//! `trapline overhead`: what recording an event costs on this machine.

use anyhow::Result;
use clap::Args;
use cpuset::CpuSet;
use doubts::DoubtKind;
use event::Quality;
use record::cost::{self, RecordingForm};
use record::{Probes, Tracefs, Tracepoint};
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

    /// Print a table for people, JSON, or comma-separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

const HELP: &str =
    "Sends signals to itself that it ignores, with an event of them on and off, and takes the median of the \
differences in CPU time: some 50 ms on each CPU, one after another. Nothing else is recorded or changed but for a \
probe, which is removed at the end.

Caches are warm here as they are not behind a VM-exit: an event costs this much or
more. A recorder also takes time of its own, and what it writes takes room and I/O.
'trapline record' measures the same when it begins and writes it into the recording:
'trapline report' says what that recording cost.

Columns:
  event       a tracepoint whose record goes to the ring
  call chain  one with the kernel's call chain
  filtered    one that a filter in the kernel leaves out
  kprobe      a probe of a kernel function; - where the kernel has none
  events/s for 1 %
              events a second that take a hundredth of a CPU

It needs what 'trapline record' needs: root or CAP_PERFMON, and tracefs.

Examples:
  trapline overhead
  trapline overhead --cpu 2-3 --format json";

/// The function that a signal goes through: the system call, under the name that the architecture gives it
/// (`arch/*/include/asm/syscall_wrapper.h`).
const PROBED: &str = if cfg!(target_arch = "aarch64") {
    "__arm64_sys_kill"
} else {
    "__x64_sys_kill"
};

/// Runs the command.
pub(crate) fn run(args: &OverheadArgs) -> Result<()> {
    let tracefs = Tracefs::find()?;
    let (_probes, wanted, missing) = Probes::make(&tracefs, &[format!("p {PROBED}")]);
    let probe = match wanted.first() {
        Some(wanted) => tracefs.event(&wanted.system, &wanted.name)?,
        None => None,
    };
    let mut quality = Quality::default();
    for one in &missing {
        let note = format!("The probe was not measured: {}.", one.why);
        quality.raise(DoubtKind::MeasurementNote { note });
    }
    let cpus = args.cpu.clone();
    let cpus = cpus.unwrap_or_else(record::machine::online);
    let mut rows = Vec::new();
    for cpu in cpus.iter() {
        match row(&tracefs, probe.as_ref(), cpu) {
            Ok(row) => rows.push(row),
            // Another CPU may do, unless this is the only one.
            Err(error) if args.cpu.is_none() && cpu > 0 => {
                let note = format!("CPU {cpu}: {error}.");
                quality.raise(DoubtKind::MeasurementNote { note });
            }
            Err(error) => return Err(anyhow::Error::new(error).context(format!("CPU {cpu}"))),
        }
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
    probe: Option<&Tracepoint>,
    cpu: u32,
) -> Result<OverheadRow, record::RecordError> {
    cost::stay_on(cpu)?;
    let probed = probe.map(|probe| cost::measure_event(probe, RecordingForm::Whole));
    Ok(OverheadRow {
        cpu,
        event_ns: cost::measure(tracefs, RecordingForm::Whole)?,
        chain_ns: cost::measure(tracefs, RecordingForm::Chain).ok(),
        filtered_ns: cost::measure(tracefs, RecordingForm::FilteredOut).ok(),
        probe_ns: probed.transpose()?,
    })
}
