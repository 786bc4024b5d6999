//! `trapline events`.

use clap::{Args, ValueEnum};

use crate::options::{Common, GuestArgs};

/// `trapline events`.
#[derive(Debug, Args)]
#[command(after_help = EVENTS_HELP)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub guests: GuestArgs,

    /// Only events whose name or SYSTEM:NAME matches; * stands for any characters, ? for one. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub event: Vec<String>,

    /// Instead of events, print what guests wrote to their serial consoles, line by line. The bytes come from kvm_pio
    /// (x86) and kvm_mmio (arm64) events.
    #[arg(long, conflicts_with_all = ["event", "convention"])]
    pub console: bool,

    /// Print lines in the form of this tool, whichever made the recording.
    #[arg(long = "as", value_enum, value_name = "TOOL")]
    pub convention: Option<TextConvention>,

    /// Print times to the nanosecond.
    #[arg(long)]
    pub ns: bool,

    #[command(flatten)]
    pub common: Common,
}

const EVENTS_HELP: &str = "\
Examples:
  trapline events trace.dat
  trapline events --event 'kvm_*' --vcpu 0 --time 12.5,12.6 trace.dat
  trapline events --event 'sched:sched_switch' --cpu 2 --ns perf.data
  trapline events --as perf trace.dat          a trace.dat as perf prints it
  trapline events host.dat guest.dat           both on the host's clock
  trapline events --console perf.data.guest    what guests printed
  trapline events --format csv perf.data > events.csv";

/// Whose conventions to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextConvention {
    /// As perf does.
    Perf,
    /// As trace-cmd does.
    #[value(name = "trace-cmd")]
    TraceCmd,
}
