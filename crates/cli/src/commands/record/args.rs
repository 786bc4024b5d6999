//! `trapline record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cpuset::CpuSet;

use crate::commands::agent::args::ForGuest;
use crate::commands::record::pairs::AskedPair;
use crate::options::values::{seconds, some_size};
use crate::options::{Format, StoringOptions, values};

/// `trapline record`.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("format", |arg| arg.requires("check").help(
        "With --check: print a table for people, JSON, or comma-separated values"
    )),
    mut_arg("json", |arg| arg.requires("check")),
    mut_arg("csv", |arg| arg.requires("check")),
    mut_arg("store", |arg| arg.conflicts_with_all(["keep", "check"]).help(STORE))
)]
pub(crate) struct RecordArgs {
    /// Record while this command runs; without one, until Ctrl-C.
    #[arg(value_name = "CMD", last = true)]
    pub command: Vec<OsString>,

    /// Write to this folder, which must not be there yet: perf.data, and the host's settings as facts.json. The default
    /// is the first of trapline-1, trapline-2... that is free.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// What the recording is to answer. May be repeated; the default is exits, sched and paths.
    #[arg(
        long = "for",
        value_enum,
        value_name = "QUESTION",
        value_delimiter = ','
    )]
    pub questions: Vec<RecordPurpose>,

    /// Stop after so many seconds. A command that still runs then goes on.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// Record this tracepoint too, as SYSTEM:NAME, or of its records those that an expression over its fields takes,
    /// as the kernel filters them: 'kvm:kvm_pio/port == 0x608/'. May be repeated. An expression also holds for an
    /// event that --for asks for.
    #[arg(short, long, value_name = "EVENT")]
    pub event: Vec<String>,

    /// Record on these CPUs alone: 0-3,8.
    #[arg(short = 'C', long, value_name = "LIST", value_parser = values::cpus)]
    pub cpu: Option<CpuSet>,

    /// Record of tracepoints what these threads do, and of the scheduler's what is done to them: switches of other
    /// threads are left out, so behind whom they waited is known by the switch alone that took their CPU. Samples are
    /// of all threads. May be repeated.
    #[arg(long, value_name = "TID", value_delimiter = ',', conflicts_with_all = ["vm", "pid"])]
    pub tid: Vec<i32>,

    /// Keep the last SECONDS in memory, and write them only when something has happened: the command ended with another
    /// status than 0, somebody sent SIGUSR1, or what --until says.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub keep: Option<Duration>,

    /// With --keep: write when an instance of a path took longer, as 'irqfd > 20ms'. PATH is one of 'trapline paths
    /// --help', or a file. May be repeated.
    #[arg(long, value_name = "PATH > TIME", requires = "keep", value_parser = path_bound)]
    pub until: Vec<PathBound>,

    /// With --keep: write so many recordings, then end.
    #[arg(
        long, value_name = "N", default_value_t = 1, requires = "keep",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub times: u32,

    /// With --keep: take this much memory at most. Where the last seconds have more, less of them is kept, and it is
    /// said.
    #[arg(long, value_name = "SIZE", default_value = "256M", requires = "keep", value_parser = some_size)]
    pub memory: u64,

    /// With --keep: write no more than this in all; the recording that would go beyond it is not written.
    #[arg(long, value_name = "SIZE", default_value = "1G", requires = "keep", value_parser = some_size)]
    pub disk: u64,

    /// Record this VM only, by its name: events that its vCPUs make, and the scheduler's on CPUs where its threads may
    /// run.
    #[arg(long, value_name = "NAME")]
    pub vm: Option<String>,

    /// The same, by the process of its VMM.
    #[arg(long, value_name = "PID", conflicts_with = "vm")]
    pub pid: Option<i32>,

    /// Have the agent in a guest record too ('trapline agent --listen' there), and put its recording beside this one as
    /// guest-NAME.perf.data: vsock:CID:PORT, or tcp:HOST:PORT. May be repeated.
    #[arg(long, value_name = "ADDRESS", requires = "agent_token", conflicts_with_all = ["keep", "check"])]
    pub agent: Vec<agent::AgentAddress>,

    /// With --agent: the file with the token that the agents have too. Nobody but its owner may read it.
    #[arg(long, value_name = "FILE", requires = "agent")]
    pub agent_token: Option<PathBuf>,

    /// With --agent: what the guests' recordings are to answer, whatever --for says; an agent may allow less. May be
    /// repeated. The default is cpus, and io where --for has paths.
    #[arg(
        long,
        value_enum,
        value_name = "QUESTION",
        value_delimiter = ',',
        requires = "agent"
    )]
    pub agent_for: Vec<ForGuest>,

    /// With --agent: let each guest's recording have this much at most; an agent may allow less.
    #[arg(long, value_name = "SIZE", default_value = "256M", requires = "agent", value_parser = some_size)]
    pub agent_size: u64,

    /// Probe a function too: 'FUNCTION' of the kernel, '/FILE:FUNCTION' of a program or a library, with '%return'
    /// behind it where it returns; or a probe as tracefs takes it: 'p:NAME MODULE:FUNCTION ARGUMENTS',
    /// '/FILE:0xOFFSET'. May be repeated. Probes are removed at the end; those of a recorder that was killed, at the
    /// next start.
    #[arg(long, value_name = "PROBE")]
    pub probe: Vec<String>,

    /// Record calls of this function of the kernel by its function tracer, with call chains, where there are no kprobes
    /// or a function has none. Needs root. May be repeated.
    #[arg(long, value_name = "FUNCTION")]
    pub function: Vec<String>,

    /// Of event A record each thread's last before event B alone: 'A -> B', or with 'A -> B > 1ms' the pairs alone
    /// that took longer. Each is a tracepoint (kvm:kvm_exit) or what --probe takes. Of a function of a program that is
    /// called so often that probing it would slow the program down, calls are looked at in short windows, and the
    /// share of the time that was seen is said. Needs BPF. May be repeated.
    #[arg(long, value_name = "A -> B", conflicts_with_all = ["keep", "vm", "pid", "tid"])]
    pub pair: Vec<AskedPair>,

    /// Let programs in the kernel (BPF) write the scheduler's and KVM's events as records of 24 bytes, which become
    /// perf's when they are read: who makes the events pays a sixth to a third, and the recorder more. Times are those
    /// of CLOCK_MONOTONIC. --keep does it by itself where the kernel takes the programs and no VM, threads or CPUs are
    /// chosen.
    #[arg(long, conflicts_with_all = ["vm", "pid", "tid", "cpu", "pair", "agent", "counters"])]
    pub compact: bool,

    /// With --keep: keep perf's own records, with perf's own clock, which other recordings of that time have too.
    #[arg(long, requires = "keep", conflicts_with = "compact")]
    pub no_compact: bool,

    /// Record nothing: list what --probe and --function take, by a pattern: 'kvm_*' of the kernel, '/FILE:*rxq*' of a
    /// program or a library.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["command", "seconds", "keep", "check"])]
    pub list_probes: Option<String>,

    /// Count cycles, instructions and cache misses of each vCPU, in its guest apart from in the host ('trapline
    /// counters' shows them), or of the threads that --tid names. They are counted and not sampled, and read once a
    /// second.
    #[arg(long, conflicts_with = "keep")]
    pub counters: bool,

    /// Let recording take so much of a CPU's time at most, as 2%: what it takes is measured for a tenth of a second
    /// before. Of several questions some are left out where it would take more, and where what is left would still take
    /// more, nothing is recorded.
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    pub budget: Option<f64>,

    /// Give each CPU a ring buffer of so many KiB, or of a size with its unit (4M). The default is 4096, or what 1/32
    /// of the memory has room for; with --keep and without --until, what --memory has room for.
    #[arg(long, value_name = "KIB", value_parser = kib)]
    pub ring: Option<usize>,

    /// Record nothing: say which of the permissions, kernel options and settings that recording takes are there, how to
    /// get those that are missing, and what works without them. The exit status is 1 where nothing can be recorded.
    #[arg(long, conflicts_with_all = ["command", "seconds"])]
    pub check: bool,

    #[command(flatten)]
    pub storing: StoringOptions,

    #[command(flatten)]
    pub format: Format,
}

const STORE: &str = "Write the sums of the recording into the store DIR, as 'trapline export --as parquet' does, for \
                     'trapline fleet' and 'trapline sql'. Without -o the recording is removed then";

/// A path, and what its instances may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathBound {
    /// Its name, or a file.
    pub path: String,
    /// The bound.
    pub bound_ns: u64,
}

/// Parses a number of KiB, or a size with its unit. Returns KiB.
fn kib(text: &str) -> Result<usize, String> {
    let plain = text.trim().parse::<usize>();
    let kib = plain.or_else(|_| {
        let bytes = values::size(text)
            .map_err(|_| format!("'{text}' is no size; expected KiB, such as 4096, or 4M"))?;
        usize::try_from(bytes / 1024).map_err(|_| format!("'{text}' is too much"))
    })?;
    match kib {
        0 => Err("expected 1 KiB or more".to_owned()),
        kib => Ok(kib),
    }
}

/// Parses `PATH > TIME`.
pub(in crate::commands) fn path_bound(text: &str) -> Result<PathBound, String> {
    let Some((path, bound)) = text.split_once('>') else {
        return Err("expected a path and a time, such as 'irqfd > 20ms'".to_owned());
    };
    let path = path.trim().to_owned();
    if path.is_empty() {
        return Err("expected a path before '>', such as 'irqfd > 20ms'".to_owned());
    }
    let bound_ns = values::with_unit(bound)?;
    Ok(PathBound { path, bound_ns })
}

/// What a recording is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordPurpose {
    /// Exits by reason, port, address and register.
    Exits,
    /// Who waited for a CPU, and behind whom.
    Sched,
    /// Interrupts, wake-ups and I/O, stage by stage.
    Paths,
    /// Call chains: 99 samples a second on each CPU, and where threads wait.
    Stacks,
    /// All of these.
    All,
    /// What went through virtqueues, seen from outside: notifications, vhost's buffers, tap devices' frames; in a guest
    /// buffers, notifications, interrupts, frames and requests of its virtio devices. It costs a probe or more for each
    /// packet.
    Virtqueues,
    /// None of these: no more than what --event, --probe, --function and --pair name.
    Named,
}

const EXAMPLES: &str =
    "The folder is what other commands take. Its perf.data is perf's own kind of file, so perf script and perf kvm \
stat report read it too, and it is readable at any moment, whatever ends the recorder.

Examples:
  trapline record                          everything but stacks, until Ctrl-C
  trapline record -- sleep 10              for ten seconds
  trapline record --for exits -o slow -- ping -c 100 10.0.0.2
  trapline record --keep 5 --until 'irqfd > 20ms'
                                           the 5 seconds around one slow interrupt
  trapline record --keep 10 -- ./test      the last 10 seconds if the test fails
  trapline record --agent vsock:3:9999 --agent-token token -- sleep 10
                                           with the guest's side, by the agent in it
  trapline record --for named --pair 'kvm:kvm_exit -> kvm:kvm_entry > 1ms'
                                           of millions of exits those that took long
  trapline record --seconds 10 --store /mnt/fleet --label role=web
                                           for a store of many hosts: its sums alone
  trapline record --check                  what this machine and user lack
  trapline report trapline-1               what it says";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_paths_are_read() {
        let read = path_bound("irqfd > 20ms").unwrap();
        assert_eq!((read.path.as_str(), read.bound_ns), ("irqfd", 20_000_000));
        assert_eq!(path_bound("my.toml>1.5us").unwrap().bound_ns, 1500);
        for bad in ["irqfd", "> 1ms", "irqfd > soon", "irqfd > 20"] {
            assert!(path_bound(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_rules_say_is_to_be_recorded_can_be_asked_for() {
        for rule in rules::all() {
            for one in rule.record {
                assert!(
                    RecordPurpose::from_str(one.name(), false).is_ok(),
                    "{}",
                    rule.id
                );
            }
        }
    }

    #[test]
    fn rings_are_kib_or_have_a_unit() {
        assert_eq!(kib("4096"), Ok(4096));
        assert_eq!(kib("4M"), Ok(4096));
        assert_eq!(kib("64K"), Ok(64));
        for bad in ["0", "0M", "4X", "", "-1", "1.5M"] {
            assert!(kib(bad).is_err(), "{bad}");
        }
        assert!(some_size("0").is_err() && some_size("0M").is_err());
        assert_eq!(some_size("1M"), Ok(1 << 20));
    }

    #[test]
    fn seconds_may_have_a_unit() {
        assert_eq!(seconds("10"), Ok(Duration::from_secs(10)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("250ms"), Ok(Duration::from_millis(250)));
        assert!(seconds("0").is_err() && seconds("-1").is_err() && seconds("x").is_err());
    }
}
