//! `trapline paths`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Common;

/// `trapline paths`.
#[derive(Debug, Args)]
#[command(after_help = PATHS_HELP)]
pub(crate) struct PathsArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// A built-in path, or a file of one; all built-in paths without it. May be repeated.
    #[arg(long, value_name = "NAME|FILE")]
    pub path: Vec<String>,

    /// From this event, as NAME, SYSTEM:NAME or fn:FUNCTION, with conditions behind it: kvm_pio[port==0x3f8,write==1].
    #[arg(long, value_name = "EVENT[COND]", requires = "to")]
    pub from: Option<String>,

    /// To this event; it is joined to the nearest one before it that --from means.
    #[arg(long, value_name = "EVENT[COND]", requires = "from")]
    pub to: Option<String>,

    /// What both events have the same of: thread, cpu, vcpu, the name of a field, or any.
    #[arg(long, value_name = "WHAT", default_value = "thread", requires = "from")]
    pub join: String,

    /// Take instances for slow from this total on (as 250us, 5ms), instead of finding a threshold.
    #[arg(long, value_name = "TIME", value_parser = crate::filter::parse_duration)]
    pub slow: Option<u64>,

    /// Print every instance: when it reached which step, and what else is known of it.
    #[arg(long, conflicts_with = "instance")]
    pub each: bool,

    /// Print one instance of a path: its steps, what was going on, its events, and a sequence diagram.
    #[arg(long, value_name = "N")]
    pub instance: Option<u64>,

    /// Draw the instance's sequence diagram as text, or for Mermaid.
    #[arg(long, value_enum, value_name = "AS", default_value_t = Diagram::Text)]
    pub diagram: Diagram,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const PATHS_HELP: &str = "Built-in paths:
  halt-wake  a halted vCPU is woken, gets a CPU, and enters its guest
  irqfd      an interrupt that a back end raises through an eventfd, up to the guest
  ipi        one vCPU interrupts another
  timer      a vCPU's own timer interrupts its guest
  kick       the guest notifies a device; its back end works, and answers
  user-exit  an exit that the VMM handles
and, where it is asked for by name,
  device-irq a device's interrupt, from whoever raises it, up to the guest

They are files in the language of --path (docs/paths.md); what they find depends on what was recorded: events of \
kvm and sched, and probes on eventfd_signal and irqfd_wakeup for where interrupts come from. --vm, --vcpu and --pid choose \
which vCPUs instances are about; --time chooses when they begin.

Examples:
  trapline paths trace.dat
  trapline paths --path irqfd --slow 5ms trace.dat
  trapline paths --path irqfd --instance 33 trace.dat
  trapline paths --path irqfd --each --format csv trace.dat
  trapline paths --from 'kvm_exit[reason==HLT]' --to kvm_entry --join vcpu perf.data  on AMD reason==hlt
  trapline paths --from netdev_rxq_recv --to netdev_send__return ovs.perf.data";

/// Notations of sequence diagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Diagram {
    /// Columns of text.
    Text,
    /// Mermaid's sequenceDiagram.
    Mermaid,
}
