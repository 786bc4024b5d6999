//! `trapline explain`.

use std::path::PathBuf;

use clap::Args;

use crate::options::{Common, GuestOptions};

/// `trapline explain`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[command(mut_arg("named", |guest| guest.requires("task").help(GUEST)))]
pub(crate) struct ExplainArgs {
    /// Recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// The command that prints the number: exits, vcpus, sched, paths, irqs, virtqueues or counters. Or the id of a
    /// finding, as 'trapline diagnose' prints it.
    #[arg(value_name = "COMMAND|FINDING")]
    pub what: String,

    /// The row: of exits its reason, port, address or register; of vcpus the number of the vCPU; of sched the thread
    /// id; of paths the path; of irqs the vector or the INTID; of virtqueues the device, with /QUEUE where it has
    /// several; of counters the thread id.
    #[arg(value_name = "ROW")]
    pub row: Option<String>,

    /// The column: of exits count (the default), time, mean, min, max or a percentile; of vcpus the state; of sched
    /// switches (the default), mean, max, woken, preempted or runtime; of paths count (the default), total or max; of
    /// irqs accepted, posted, injected, repeated, raised or lowered; of virtqueues added, used, notified, irqs, sent,
    /// received, sent_bytes or received_bytes; of counters guest_cycles and the like; of these three the default is the
    /// first that is recorded.
    #[arg(value_name = "COLUMN")]
    pub column: Option<String>,

    /// Of exits, those that a task, interrupt or softirq of the guest made, as 'trapline exits --by task' calls it:
    /// ping:433.
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,

    #[command(flatten)]
    pub guests: GuestOptions,

    /// Print the events of the first N things only.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    #[command(flatten)]
    pub common: Common,
}

const GUEST: &str = "With --task: a recording that was made in a guest of REC at the same time, with the name, UUID or \
                     process of the VM whose guest it is. May be repeated. A folder that 'trapline record' made has \
                     its guests with it";

const HELP: &str = "Each thing that the number counts is printed with the event that begins it and the \
event that ends it, in the order in which they ended. Lines that begin with # are no events. Times are those of \
the two events: later minus earlier is the time that is counted.

Without events is what was under way when the recording began or ended, and what \
another command's convention counts ('trapline exits --as perf').

Examples:
  trapline explain perf.data.guest exits HLT
  trapline explain perf.data.guest exits 0x608:PIN max
  trapline explain trace.dat vcpus 1 runnable --vm web
  trapline explain trace.dat sched 4711 preempted
  trapline explain trace.dat paths irqfd max
  trapline explain trace.dat irqs 0xec injected --vcpu 1
  trapline explain host.dat exits HLT --guest guest.dat --task ping:433
  trapline explain perf.data counters 1510 guest_cycles
  trapline explain trace.dat timer-port-exits
  trapline explain perf.data.guest exits HLT | grep -c kvm_exit:";
