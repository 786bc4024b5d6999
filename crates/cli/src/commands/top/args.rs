//! `trapline top`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::exporter::ExporterAddress;
use crate::options::Format;
use crate::options::values::with_unit;

/// `trapline top`.
#[derive(Debug, Args)]
#[command(
    after_help = TOP_HELP,
    mut_arg("format", |arg| arg.help(
        "With --once: print tables for people, JSON, or comma-separated values: of exits and accesses, with --counters \
         of these."
    ))
)]
pub(crate) struct TopArgs {
    /// Count for one interval, print it, and end.
    #[arg(long)]
    pub once: bool,

    /// Count for so long: 500ms, 1s, 10s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: u64,

    /// Show the VM of this name alone.
    #[arg(long, value_name = "NAME")]
    pub vm: Option<String>,

    /// Show the VM of this process alone.
    #[arg(long, value_name = "P")]
    pub pid: Option<i32>,

    /// Show exits of each vCPU, or of all vCPUs of a VM together.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = TopBy::Vcpu)]
    pub by: TopBy,

    /// Count in this program, out of events that the kernel writes to rings, even where BPF programs can count in the
    /// kernel. The numbers are the same, at a higher cost. Where BPF is not allowed, that is done without being asked
    /// for.
    #[arg(long)]
    pub events: bool,

    /// Count cycles, instructions and cache misses of each vCPU as well, of its guest apart from the host, and its page
    /// faults, as 'trapline record --counters' does. Reading them interrupts each vCPU that runs, up to three times an
    /// interval, and they take six of the processor's counters.
    #[arg(long)]
    pub counters: bool,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub format: Format,

    /// With --once: show at most N rows of each table.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    /// Show nothing, and serve what is counted since the beginning at http://ADDR/metrics, as Prometheus reads it. ADDR
    /// is a port of this machine alone (9435), an address and a port (0.0.0.0:9435), a socket in the file system
    /// (unix:/run/trapline.sock, which is made, with mode 0660), or systemd: the sockets of a .socket unit that starts
    /// this (LISTEN_FDS). Its own health is among the metrics.
    #[arg(
        long, value_name = "ADDR",        conflicts_with_all = ["once", "interval", "format", "limit", "by"]
    )]
    pub prometheus: Option<ExporterAddress>,

    /// Serve what the process counts at the other end of standard input. The exporter starts itself so.
    #[arg(long, requires = "prometheus", hide = true)]
    pub serves: bool,
}

/// What rows of exits are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopBy {
    /// One vCPU.
    Vcpu,
    /// All vCPUs of a VM.
    Vm,
}

/// Reads an interval: short ones cost more than they tell.
fn interval(text: &str) -> Result<u64, String> {
    const SHORTEST: u64 = 10_000_000;
    match with_unit(text)? {
        ns if ns >= SHORTEST => Ok(ns),
        _ => Err("expected 10ms or longer".to_owned()),
    }
}

const TOP_HELP: &str = "The kernel counts: programs of BPF follow every vCPU at its events and keep sums, which are \
read once an interval. Nothing is recorded. They count as the other commands do: exits as 'trapline exits', states as \
'trapline vcpus'. An exit counts when it is over. Percentiles are bounds, at most twice the exact value. Back ends of \
a VM (vhost, I/O threads and the rest of its VMM) have the time that they ran and waited for a CPU.

This needs Linux 5.8 or later, KVM's events (the module is loaded), tracefs, and root or CAP_BPF and CAP_PERFMON. \
Without CAP_BPF, or where the kernel allows no BPF, the same is counted out of events that the kernel writes to rings, \
which costs more; what it says first is how it counts, and why. On a terminal, ? shows the keys.

With --counters each vCPU has million cycles in its guest and on the host (Mc), instructions per cycle (IPC) and cache \
misses of 1,000 instructions, as 'trapline counters' has them. They are differences of two readings. Where events took \
turns on the processor's counters, they are scaled up by the share of the time in which they were counted ('counted'). \
A machine without a PMU, as most virtual machines, counts page faults alone.

Examples:
  trapline top
  trapline top --vm web
  trapline top --once --interval 10s --by vm
  trapline top --events --mtree mtree.txt
  trapline top --counters --vm web
  trapline top --once --format json | jq '.vcpus[] | {vm_name, vcpu, runnable_ns}'
  trapline top --prometheus 9435";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_not_too_short() {
        assert_eq!(interval("1.5s"), Ok(1_500_000_000));
        assert!(interval("1ms").is_err());
    }
}
