//! `trapline sched`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Common, GuestArgs};

/// `trapline sched`.
#[derive(Debug, Args)]
#[command(after_help = SCHED_HELP)]
pub(crate) struct SchedArgs {
    /// Recording, or the printed output of perf sched latency; - is standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    #[command(flatten)]
    pub guests: GuestArgs,

    /// Show a row for each thread, each thread name, or each CPU.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = SchedBy::Task)]
    pub by: SchedBy,

    /// Sort rows by mean or longest delay, number of switches, run time, or time waited after preemption.
    #[arg(long, value_enum, default_value_t = SchedSort::Mean)]
    pub sort: SchedSort,

    /// Show at most N rows.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Show a histogram of the delays, in powers of two.
    #[arg(long)]
    pub histogram: bool,

    #[command(flatten)]
    pub common: Common,
}

const SCHED_HELP: &str = "Delays, switches and run times equal those of perf sched latency: --by task is its \
table with -p, --by comm its table without. The last two columns are the total time that tasks waited for a CPU after \
they were woken and after they were preempted; perf leaves the latter out. Recordings of guests (GUEST, --guest) add below \
it which of their tasks waited while their vCPU had no CPU: steal, told to who suffered. --vm, --vcpu and --pid choose rows; --time and \
--cpu choose events.

Examples:
  trapline sched perf.data
  trapline sched --by cpu trace.dat
  trapline sched --vcpu 0 --histogram trace.dat
  trapline sched --sort preempted --limit 10 perf.data
  trapline sched host.dat guest-a.dat           and what waited in the guest";

/// What rows of scheduling latencies are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchedBy {
    /// Threads.
    Task,
    /// All threads of one name.
    Comm,
    /// CPUs.
    Cpu,
}

/// Orders of rows of scheduling latencies, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchedSort {
    /// Mean delay.
    Mean,
    /// Longest delay.
    Max,
    /// Switches.
    Switches,
    /// Run time.
    Runtime,
    /// Time waited after preemption.
    Preempted,
}
