//! `trapline vcpus`: where each vCPU's time went.

use std::path::PathBuf;

use analysis::{GuestTasks, Vcpus};
use anyhow::Result;
use clap::Args;
use render::{ClockUnit, vcpus};

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GuestArgs, RowLimit, RowSort};
use crate::output;

/// `trapline vcpus`.
#[derive(Debug, Args)]
#[command(after_help = VCPUS_HELP)]
pub(crate) struct VcpusArgs {
    #[command(flatten)]
    pub guests: GuestArgs,

    /// Show durations instead of percentages, and lists in full, for terminals wider than 80 columns.
    #[arg(long)]
    pub wide: bool,

    #[command(flatten)]
    pub limit: RowLimit,

    #[command(flatten)]
    pub sort: RowSort,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const VCPUS_HELP: &str =
    "A vCPU is in one state at every instant, so the states in a row add up to the time it was \
observed: from its first exit or entry to the end of the recording.

  guest     the guest runs
  kernel    KVM handles an exit
  user      the VMM handles an exit
  poll      the guest halted; KVM polls before it gives up the CPU (halt_poll_ns)
  halted    the guest halted
  runnable  the vCPU is ready to run, but another task has the CPU
  unknown   the events that show the state were lost or not recorded

This needs the events of kvm and sched: 'trapline record --for exits,sched' (or
'trace-cmd record -e kvm -e sched'). Missing data is listed below the table.

With recordings of guests beside it, each vCPU's time is split once more: by the
guest's task, interrupt or softirq. It is the time from when that began to run
until another one did: in the guest, in its exits, and waiting for a CPU.

Examples:
  trapline vcpus trace.dat
  trapline vcpus host.dat guest.dat
  trapline vcpus --wide --vcpu 1 perf.data
  trapline vcpus --time 12.5,13 --format json trace.dat";

/// Items of each list below the table.
const LISTED: usize = 5;

/// Runs the command.
pub(crate) fn run(args: &VcpusArgs) -> Result<()> {
    let beside = AccompanyingFiles {
        with_guests: true,
        mtree: args.mtree.as_deref(),
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording()?;
    let paired = host.paired(&recording)?;
    let mut question = recording.question(&paired);
    let vcpus = question.add(Vcpus::new(recording.window()));
    let tasks = question.share_guest_tasks(GuestTasks::new(recording.window()));
    let answers = question.walk();
    let walked = answers.walked();
    let mut report = answers.take(vcpus).report(&walked);
    if let Some(tasks) = tasks {
        report.with_guests(&tasks.get(), &walked);
    }
    recording.require_exits(!report.rows.is_empty())?;
    session.devices().name_causes(&mut report);
    args.sort.apply(|column| vcpus::sort(&mut report, column))?;
    let (names, quality) = (host.names(), &answers.quality);
    let answer = Answer {
        format: args.common.format,
        command: "vcpus",
        inputs: &names,
        quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    answer.print(
        || {
            let layout = answer.layout(if args.wide { usize::MAX } else { LISTED });
            let mut text = vcpus::table(&report, args.wide, args.limit.rows(), layout);
            text.push('\n');
            text.push_str(&output::quality(&names.join(", "), quality));
            text
        },
        || vcpus::document(&report, &quality.all_doubts()),
        |clock| vcpus::csv(&report, clock),
    )
}
