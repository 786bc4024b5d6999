//! What every command understands.

use std::path::PathBuf;

use clap::Args;
use session::TimeRange;

use super::format::Format;

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub format: Format,

    /// For a perf.data without event formats (cut off while it was recorded): take them from another recording of the
    /// same kernel, or from a copy of its /sys/kernel/tracing/events.
    #[arg(long, value_name = "REC|DIR")]
    pub formats: Option<PathBuf>,

    /// Read from FILE what the recording does not say about its host: the JSON of 'trapline facts' (everything but
    /// devices), the text of 'ps -eLo pid,tid,comm,args' (threads and VMs), of 'info cpus' in QEMU's monitor or
    /// query-cpus-fast in QMP (vCPUs), or of 'info mtree' (devices). Where the recording has a name itself, that name
    /// is used. - is standard input. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub facts: Vec<PathBuf>,

    /// Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an
    /// error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G,
    /// and less for a compressed file that expands more than recordings do.
    #[arg(long, value_name = "SIZE", value_parser = super::values::size)]
    pub spool_limit: Option<u64>,

    /// Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads
    /// than fit, those that had the least time become sums called "others". The default is half of what is available,
    /// of a container of what its limit leaves.
    #[arg(long, value_name = "SIZE", value_parser = crate::heap::size)]
    pub max_memory: Option<u64>,

    /// Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: Option<u8>,

    #[command(flatten)]
    pub filter: FilterArgs,
}

/// Filters shared by all commands. They choose vCPUs, whose numbers are the same as without a filter. In the commands
/// events and info they choose events.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only vCPUs of this process or thread (sched: tasks; events and info: events).
    #[arg(long, value_name = "PID")]
    pub pid: Option<i32>,

    /// Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs'
    /// threads).
    #[arg(long, value_name = "NAME")]
    pub vm: Option<String>,

    /// Only the vCPU with this number; without --vm, of each VM.
    #[arg(long, value_name = "N")]
    pub vcpu: Option<u32>,

    /// Only events on these CPUs, for example 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = super::values::cpus)]
    pub cpu: Option<cpuset::CpuSet>,

    /// Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where
    /// the recording's clock counts ticks. Either may be left out.
    #[arg(long, value_name = "FROM,TO", value_parser = super::values::time)]
    pub time: Option<TimeRange>,
}

impl FilterArgs {
    /// Returns whether any filter was given.
    pub(crate) fn any(&self) -> bool {
        let threads = self.pid.is_some() || self.vm.is_some() || self.vcpu.is_some();
        threads || self.cpu.is_some() || self.time.is_some()
    }
}
