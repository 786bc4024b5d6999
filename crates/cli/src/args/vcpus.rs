//! `trapline vcpus`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

/// `trapline vcpus`.
#[derive(Debug, Args)]
#[command(after_help = VCPUS_HELP)]
pub(crate) struct VcpusArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// Durations instead of shares, and all of the lists, for terminals wider than 80.
    #[arg(long)]
    pub wide: bool,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const VCPUS_HELP: &str =
    "Each instant of a vCPU is in one state, so that a row adds up to the time it was \
observed: from its first exit or entry to the end of the recording.

  guest     it runs the guest
  kernel    KVM handles an exit
  user      the VMM handles an exit
  poll      its guest halted, and KVM polls before it gives the CPU away (halt_poll_ns)
  halted    its guest halted
  runnable  it could go on and another task has the CPU
  unknown   events that would tell were lost or not recorded

That takes the events of kvm and sched: 'trace-cmd record -e kvm -e sched' or
'perf record -a -e \"kvm:*\" -e \"sched:*\"'. What lacks is told below the table.

Examples:
  trapline vcpus trace.dat
  trapline vcpus --wide --vcpu 1 perf.data
  trapline vcpus --time 12.5,13 --format json trace.dat";
