//! `trapline counters`: cycles, instructions and cache misses of each vCPU.

use anyhow::Result;
use clap::Args;
use render::ClockUnit;
use render::counters;
use session::RecordingCounters;

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GuestArgs, RowLimit, RowSort};
use crate::output;

/// `trapline counters`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CountersArgs {
    #[command(flatten)]
    guests: GuestArgs,

    #[command(flatten)]
    limit: RowLimit,

    #[command(flatten)]
    sort: RowSort,

    #[command(flatten)]
    common: Common,
}

const HELP: &str = "Columns:
  CPU time   how long the vCPU's thread had a CPU
  guest Mc   million cycles in which the processor executed the guest
  host Mc    the same of the host on the thread's behalf: KVM's handling of
             exits, the VMM's, page faults
  IPC        instructions per cycle; of guest and host each its own
  miss/1k    cache misses, mostly of the last level, of 1,000 instructions
  counted    the share of the time in which events were counted, of the event
             with the least; below 100 % they took turns, since the processor
             has fewer counters, and values are scaled up by it
  -          not counted: the machine has no PMU, or nobody asked

JSON and CSV also have instructions, cache misses and page faults. Counters
are read once a second, so with --time each reading within it counts, of the
second before.

A recording by 'perf record --stat' has counters of threads that ended, as
they were counted: whether they took turns cannot be known of them.

Examples:
  trapline record --counters -o slow -- sleep 10
  trapline counters slow
  trapline counters --vcpu 1 --format csv slow";

/// Runs the command.
pub(crate) fn run(args: &CountersArgs) -> Result<()> {
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &AccompanyingFiles::default(), &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording()?;
    let RecordingCounters {
        mut report,
        vms,
        quality,
    } = recording.counters()?;
    args.sort
        .apply(|column| counters::sort(&mut report, &vms, column))?;
    let names = host.names();
    let answer = Answer {
        format: args.common.format,
        command: "counters",
        inputs: &names,
        quality: &quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    answer.print(
        || {
            let layout = answer.layout(args.limit.rows());
            let mut text = counters::table(&report, &vms, layout);
            text.push('\n');
            text.push_str(&output::quality(&names.join(", "), &quality));
            text
        },
        || counters::document(&report, &vms, &quality.all_doubts()),
        |clock| counters::csv(&report, &vms, clock),
    )
}
