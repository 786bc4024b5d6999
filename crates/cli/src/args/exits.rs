//! `trapline exits`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Common;

/// `trapline exits`.
#[derive(Debug, Args)]
#[command(after_help = EXITS_HELP)]
pub(crate) struct ExitsArgs {
    /// Recording, or what perf kvm stat report printed; - is standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// Tables to show: exits by reason, I/O ports, memory-mapped I/O, model specific registers.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "TABLES",
        default_value = "vmexit"
    )]
    pub event: Vec<Table>,

    /// Rows apart for each VM, or each vCPU.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub by: Vec<GroupBy>,

    /// Time exits as this tool does, and print its table: perf times arm64 exits from entry to exit.
    #[arg(long = "as", value_enum, value_name = "TOOL")]
    pub convention: Option<TimesAs>,

    /// All columns, for terminals wider than 80.
    #[arg(long)]
    pub wide: bool,

    /// Sort rows by count, by time, by mean, or by the longest.
    #[arg(long, value_enum, default_value_t = Sort::Count)]
    pub sort: Sort,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after the text of it in --facts, or after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const EXITS_HELP: &str = "An exit is timed from kvm_exit to the next kvm_entry of its thread; accesses to \
ports and registers from their event to the entry, MMIO reads from the exit to the value. Exits in which the \
guest asked to wait (HLT, WFx) are marked, and kept out of the handling time.

Examples:
  trapline exits perf.data.guest
  trapline exits --event vmexit,ioport,mmio,msr --format json trace.dat
  trapline exits --by vcpu --sort time --wide perf.data
  trapline exits --event mmio --wide --mtree mtree.txt perf.data
  trapline exits --as perf perf.data.guest  the table perf kvm stat report prints
  trapline exits --sort time vmexit.txt     a table that perf kvm stat report printed";

/// Whose way of timing exits to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimesAs {
    /// As perf kvm stat does.
    Perf,
}

/// Tables of exit statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// Exits by reason.
    Vmexit,
    /// I/O ports.
    Ioport,
    /// Memory-mapped I/O.
    Mmio,
    /// Model specific registers.
    Msr,
}

/// What rows are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    /// VMs.
    Vm,
    /// vCPUs.
    Vcpu,
}

/// Orders of rows, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Count.
    Count,
    /// Total time.
    Time,
    /// Mean time.
    Mean,
    /// Longest time.
    Max,
}
