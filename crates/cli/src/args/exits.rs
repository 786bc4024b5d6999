//! `trapline exits`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Common, GuestArgs};

/// `trapline exits`.
#[derive(Debug, Args)]
#[command(after_help = EXITS_HELP)]
pub(crate) struct ExitsArgs {
    /// Recording, or the printed output of perf kvm stat report; - is standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    #[command(flatten)]
    pub guests: GuestArgs,

    /// Show these tables: exits by reason, I/O ports, memory-mapped I/O, model-specific registers.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "TABLES",
        default_value = "vmexit"
    )]
    pub event: Vec<Table>,

    /// Give each VM, each vCPU, each task of a guest, or each function of a guest's kernel, rows of its own. With guests' recordings that
    /// is 'task' unless something else is asked for.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub by: Vec<GroupBy>,

    /// Time exits as this tool does, and print its table. On arm64, perf measures from entry to exit: the guest's time.
    #[arg(long = "as", value_enum, value_name = "TOOL")]
    pub convention: Option<TimesAs>,

    /// Show all columns, for terminals wider than 80 columns.
    #[arg(long)]
    pub wide: bool,

    /// Sort rows by count, by total time, by mean time or by the longest time.
    #[arg(long, value_enum, default_value_t = Sort::Count)]
    pub sort: Sort,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    /// Name functions of guests' kernels with FILE, a copy of a guest's /proc/kallsyms made by root, where the guest's own recording has no
    /// symbols or is not given.
    #[arg(long, value_name = "FILE")]
    pub guest_kallsyms: Option<PathBuf>,

    /// Read where modules of guests' kernels are from FILE, a copy of a guest's /proc/modules made by root.
    #[arg(long, value_name = "FILE")]
    pub guest_modules: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const EXITS_HELP: &str = "An exit is timed from kvm_exit to the next kvm_entry of the same thread. Accesses to \
ports and registers are timed from their own event to that entry, MMIO reads from the exit to the event with the value. \
Exits in which the guest asked to wait (HLT, WFx) are marked, and are not part of the handling time.

Examples:
  trapline exits perf.data.guest
  trapline exits --event vmexit,ioport,mmio,msr --format json trace.dat
  trapline exits --by vcpu --sort time --wide perf.data
  trapline exits --event mmio --wide --mtree mtree.txt perf.data
  trapline exits --as perf perf.data.guest  the table of perf kvm stat report
  trapline exits host.dat guest.dat         which of the guest's tasks made them
  trapline exits --by function --guest-kallsyms kallsyms --event mmio host.dat
                                            which of the guest's functions made them
  trapline exits --sort time vmexit.txt     a table that perf printed";

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

/// What separates rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    /// VMs.
    Vm,
    /// vCPUs.
    Vcpu,
    /// Tasks, interrupts and softirqs of guests whose recordings are given.
    Task,
    /// Functions of the guest's kernel in which it was when it left.
    Function,
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
