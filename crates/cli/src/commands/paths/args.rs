//! `trapline paths`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::options::values::NameParser;
use crate::options::{Common, GuestArgs, RowLimit, RowSort};

/// `trapline paths`.
#[derive(Debug, Args)]
#[command(after_help = paths_help())]
pub(crate) struct PathsArgs {
    #[command(flatten)]
    pub guests: GuestArgs,

    /// Show this built-in path, or the path that FILE describes. Without it, show all built-in paths but those
    /// that are for --path only; with guests' recordings, also those that go through guests. May be repeated.
    #[arg(long, value_name = "NAME|FILE", hide_possible_values = true, value_parser = NameParser::path())]
    pub path: Vec<String>,

    /// Measure from this event: NAME, SYSTEM:NAME or fn:FUNCTION, with conditions in brackets, such as
    /// kvm_pio[port==0x3f8,write==1].
    #[arg(long, value_name = "EVENT[COND]", requires = "to")]
    pub from: Option<String>,

    /// Measure to this event. Its start is the nearest earlier event that matches --from.
    #[arg(long, value_name = "EVENT[COND]", requires = "from")]
    pub to: Option<String>,

    /// Both events must have the same thread, cpu, vcpu or field (give its name); any demands nothing.
    #[arg(long, value_name = "WHAT", default_value = "thread", requires = "from")]
    pub join: String,

    /// Call instances slow that take this long or longer (250us, 5ms), instead of looking for a threshold.
    #[arg(long, value_name = "TIME", value_parser = crate::options::values::duration)]
    pub slow: Option<u64>,

    /// Print every instance: when it reached each step, and what else is known about it.
    #[arg(long, conflicts_with = "instance")]
    pub each: bool,

    /// Print one instance of a path: its steps, what went on meanwhile, its events, and a sequence diagram.
    #[arg(long, value_name = "N")]
    pub instance: Option<u64>,

    /// Draw the sequence diagram of --instance as text, or for Mermaid.
    #[arg(long, value_enum, value_name = "AS", default_value_t = Diagram::Text)]
    pub diagram: Diagram,

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

/// Lists the built-in paths as they say of themselves what they follow, so that a new one is its file alone.
fn paths_help() -> String {
    let list = |names: &[(&str, &str)]| -> String {
        let paths = names.iter().filter_map(|(name, _)| paths::builtin(name));
        paths
            .map(|path| format!("  {:10} {}\n", path.name, path.about))
            .collect()
    };
    let always = list(paths::BUILTIN);
    let with_probes = list(paths::WITH_PROBES);
    let with_guests = list(paths::WITH_GUESTS);
    let on_request = list(paths::ON_REQUEST);
    format!(
        "Built-in paths:\n{always}and, where probes were recorded:\n{with_probes}and, with recordings of guests or \
         --path:\n{with_guests}and, with --path only:\n{on_request}\n{PATHS_HELP}"
    )
}

const PATHS_HELP: &str = "\
They are written in the language of --path (docs/path-language.md). They need the events of kvm and sched, and irqfd \
also needs probes on eventfd_signal and irqfd_wakeup, which show where interrupts come from. --vm, --vcpu and --pid \
choose instances by their vCPU; --time chooses those that begin in that time.

Examples:
  trapline paths trace.dat
  trapline paths --path irqfd --slow 5ms trace.dat
  trapline paths --path irqfd --instance 33 trace.dat
  trapline paths host.dat guest-a.dat guest-b.dat
  trapline paths --path packet --each host.dat
  trapline paths --path irqfd --each --format csv trace.dat
  trapline paths --from 'kvm_exit[reason==HLT]' --to kvm_entry perf.data
                                   (on AMD reason==hlt)
  trapline paths --from netdev_rxq_recv --to netdev_send__return ovs.perf.data";

/// Notations of sequence diagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Diagram {
    /// Columns of text.
    Text,
    /// Mermaid's sequenceDiagram.
    Mermaid,
}
