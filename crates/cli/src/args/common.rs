//! What every command understands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Output as a table for people, as JSON or as comma separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Take event formats from another recording of the same kernel, or from (a copy of) its
    /// /sys/kernel/tracing/events, for a perf.data that lost its own.
    #[arg(long, value_name = "REC|DIR")]
    pub formats: Option<PathBuf>,

    /// Take from FILE what the recording does not tell of its host: threads and VMs from the text of
    /// 'ps -eLo pid,tid,comm,args', vCPUs from 'info cpus' of QEMU's monitor or QMP's query-cpus-fast, devices
    /// from 'info mtree', or all of it and the host's settings from the JSON of 'trapline facts'. Names that the recording has stay. - is
    /// standard input. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub facts: Vec<PathBuf>,

    /// Keep no more than SIZE of a recording that is packed or comes through a pipe, as 500M or 2T: what cannot be
    /// mapped is unpacked into memory, and from 16 MiB on into the folder that TMPDIR names. By default 64G, and of what is packed
    /// no more than recordings unpack to.
    #[arg(long, value_name = "SIZE", value_parser = crate::filter::parse_size)]
    pub spool_limit: Option<u64>,

    #[command(flatten)]
    pub filter: FilterArgs,
}

/// Filters shared by all commands. They choose vCPUs, and what is told of them is the same as without a filter; of events
/// and info they choose events.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only vCPUs (of sched: tasks; of events and info: events) of this process or thread.
    #[arg(long, value_name = "PID")]
    pub pid: Option<i32>,

    /// Only the VM with this name, UUID or process id, or whose process has this name; of events and info: the events
    /// of its vCPUs' threads.
    #[arg(long, value_name = "NAME")]
    pub vm: Option<String>,

    /// Only the vCPU with this number, of each VM without --vm.
    #[arg(long, value_name = "N")]
    pub vcpu: Option<u32>,

    /// Only events on these CPUs, as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = crate::filter::parse_cpus)]
    pub cpu: Option<cpuset::CpuSet>,

    /// Only what happens from FROM to TO, as info and events print times: in seconds, or where the recording's clock
    /// has no decimals as whole numbers. Either may be left out.
    #[arg(long, value_name = "FROM,TO", value_parser = crate::filter::parse_time)]
    pub time: Option<crate::filter::TimeRange>,
}

impl FilterArgs {
    /// Returns whether any filter was given.
    pub(crate) fn any(&self) -> bool {
        let threads = self.pid.is_some() || self.vm.is_some() || self.vcpu.is_some();
        threads || self.cpu.is_some() || self.time.is_some()
    }
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
}
