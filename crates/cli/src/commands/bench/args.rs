//! `trapline bench`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use cpuset::CpuSet;

use crate::options::values::{size, with_unit};
use crate::options::{Common, Format, GuestArgs, cpus};

/// `trapline bench`.
#[derive(Debug, Args)]
#[command(after_help = HELP, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub what: BenchWhat,
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchWhat {
    /// Measure IPIs: from one CPU to another on its core, on its node, on another node, and to all; to busy and to idle
    /// CPUs.
    Ipi(IpiArgs),
    /// Measure wake-ups of a thread on another CPU, which is idle, long idle or busy: futex, pipe, eventfd.
    Wake(WakeArgs),
    /// Measure what reading each clock costs.
    Clock(ClockArgs),
    /// Measure how late timers fire, on an idle CPU and on a busy one.
    Timer(TimerArgs),
    /// Measure CPUID, reads of I/O ports and of registers in memory: in a guest, each is an exit.
    Exits(ExitsArgs),
    /// Measure round trips of small messages over TCP and UDP, to a peer that the same command starts.
    Net(NetArgs),
    /// Measure requests of 4 KiB to a disk, one at a time.
    Disk(DiskArgs),
    /// Find out what the slowest iterations of a result were, by a recording that was made meanwhile.
    Explain(ExplainArgs),
}

/// What every benchmark understands.
#[derive(Debug, Args)]
pub(crate) struct BenchCommon {
    /// Measure so many iterations of each row.
    #[arg(
        short = 'n', long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1..=100_000_000)
    )]
    pub iterations: u64,

    /// Leave out so many iterations before them; the very first is shown beside (first).
    #[arg(
        long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(0..=100_000_000)
    )]
    pub warmup: u64,

    /// End a row after TIME (500ms, 2s), however many iterations it has.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = with_unit)]
    pub row_time: u64,

    /// Use these CPUs alone, for example 0-3,8. The lowest measures.
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpu: Option<CpuSet>,

    /// Call this run NAME, for the columns of 'trapline compare'.
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,

    /// Write the result to FILE too, as JSON, for 'trapline compare'.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub format: Format,
}

/// `trapline bench ipi`.
#[derive(Debug, Args)]
#[command(after_help = IPI_HELP)]
pub(crate) struct IpiArgs {
    /// Measure every pair of CPUs too, in both directions; at most 64 CPUs.
    #[arg(long)]
    pub pairs: bool,

    /// Let an idle target sleep for TIME before each IPI, in the row that is called so.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = with_unit)]
    pub idle: u64,

    #[command(flatten)]
    pub common: BenchCommon,
}

/// `trapline bench wake`.
#[derive(Debug, Args)]
#[command(after_help = WAKE_HELP)]
pub(crate) struct WakeArgs {
    /// Let the target sleep for TIME before it is woken, so short that whoever polls still does.
    #[arg(long, value_name = "TIME", default_value = "20us", value_parser = with_unit)]
    pub short: u64,

    /// Let it sleep for TIME, so long that nobody polls any more.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = with_unit)]
    pub idle: u64,

    #[command(flatten)]
    pub common: BenchCommon,
}

/// `trapline bench clock`.
#[derive(Debug, Args)]
#[command(after_help = CLOCK_HELP)]
pub(crate) struct ClockArgs {
    /// Measure with every clock source that the kernel has, one after another. That changes the clock of the whole
    /// machine meanwhile; it is set back at the end, after Ctrl-C too, but not after kill -9. It takes root.
    #[arg(long)]
    pub each_source: bool,

    #[command(flatten)]
    pub common: BenchCommon,
}

/// `trapline bench timer`.
#[derive(Debug, Args)]
#[command(after_help = TIMER_HELP)]
pub(crate) struct TimerArgs {
    #[command(flatten)]
    pub common: BenchCommon,
}

/// `trapline bench exits`.
#[derive(Debug, Args)]
#[command(after_help = EXITS_HELP)]
pub(crate) struct ExitsArgs {
    #[command(flatten)]
    pub common: BenchCommon,
}

/// `trapline bench net`.
#[derive(Debug, Args)]
#[command(after_help = NET_HELP)]
pub(crate) struct NetArgs {
    /// Be the peer: answer at ADDR (10.0.0.2:7700) over TCP and UDP until Ctrl-C, and measure nothing. A port of 0 is
    /// any that is free. Whoever reaches the address is answered.
    #[arg(
        long, value_name = "ADDR",
        conflicts_with_all = [
            "connect", "size", "iterations", "warmup", "row_time", "cpu", "label", "output", "format",
        ]
    )]
    pub serve: Option<SocketAddr>,

    /// Measure against the peer at ADDR. Without it, against one of this machine's own, over loopback.
    #[arg(long, value_name = "ADDR")]
    pub connect: Option<SocketAddr>,

    /// Send messages of so many bytes, 32 to 65000.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = message)]
    pub size: usize,

    #[command(flatten)]
    pub common: BenchCommon,
}

/// `trapline bench disk`.
#[derive(Debug, Args)]
#[command(after_help = DISK_HELP)]
pub(crate) struct DiskArgs {
    /// Read this file or block device; or make a file in this folder, read that, and remove it.
    #[arg(value_name = "FILE|DEVICE|DIR")]
    pub path: PathBuf,

    /// Write too, to a file that is made in the folder.
    #[arg(long)]
    pub write: bool,

    /// Make a file of this size (64M, 1G) in a folder.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = file_size)]
    pub size: u64,

    #[command(flatten)]
    pub common: BenchCommon,
}

/// What the recordings of `bench explain` are.
const MEANWHILE: &str = "A recording that was made meanwhile, of the machine that measured or of its host, and behind \
                         it recordings (GUEST) that were made in its guests at the same time";

/// `trapline bench explain`.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_HELP)]
#[command(mut_arg("recordings", |words| words.help(MEANWHILE)))]
pub(crate) struct ExplainArgs {
    /// What 'trapline bench' wrote (-o, or --format json).
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,

    #[command(flatten)]
    pub guests: GuestArgs,

    #[command(flatten)]
    pub common: Common,
}

/// Reads the size of a message.
fn message(text: &str) -> Result<usize, String> {
    let size = text.parse::<usize>().ok();
    size.filter(|size| bench::SIZES.contains(size))
        .ok_or_else(|| {
            format!(
                "expected {} to {} bytes",
                bench::SIZES.start(),
                bench::SIZES.end()
            )
        })
}

/// Reads the size of a file.
fn file_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0..4096 => Err("expected 4096 bytes or more".to_owned()),
        bytes => Ok(bytes),
    }
}

const HELP: &str = "Each runs in user space, in a guest or on a host, and needs no kernel module. Threads are pinned \
to CPUs; the first iteration is shown beside and those that warm up are left out; before it begins, a thread watches \
for 50 ms how much of its CPU others take, which is said if it is much. What cannot be measured on a machine is said \
in its place. Ctrl-C ends a run with what it has. docs/bench.md says what each number means.

A result is a JSON document (-o, or --format json). 'trapline compare' puts any number of them side by side, with the \
labels as columns. The slowest iterations are in it with their times: 'trapline bench explain' looks them up in a \
recording that was made meanwhile.

Examples:
  trapline bench ipi
  trapline bench ipi --label default -o default.json
  trapline bench wake --label haltpoll -o haltpoll.json
  trapline compare default.json haltpoll.json idle-poll.json
  trapline bench clock --format csv
  trapline bench net --serve 10.0.0.2:7700";

const EXPLAIN_HELP: &str = "Of each of the ten slowest iterations of each row: the instances of latency paths that \
began and ended in it, with their longest stage, and what the vCPUs of the row did. Where a guest measured, give the \
host's recording and the guest's own: 'trapline record --agent', or 'trapline agent' in the guest, made at the same \
time. The guest's is what puts its times on the host's clock.

Examples:
  trapline record -o during -- trapline bench wake -o wake.json
  trapline bench explain wake.json during
  trapline bench explain ipi.json during during/guest-web1.perf.data
                                            measured in a guest, recorded by its host";

const IPI_HELP: &str = "An IPI that a caller waits for, as the kernel's smp_call_function does: it ends when its \
function has run on the target.

Targets:
  busy    a thread spins there in user space; the call is membarrier(2)
  idle    nothing runs there; the call reads a counter that is open there, which takes
          root, CAP_PERFMON or kernel.perf_event_paranoid=0. IPIs come one behind
          another, so a CPU or host that polls before it halts still does

'idle 5 ms' is the same after the target slept for so long (--idle). The rows 'no IPI' are what both calls take by \
themselves.

'interrupts' in JSON and CSV is what the kernel counted on the targets meanwhile. A CPU that polls in its idle loop \
(idle=poll) gets none, and that is why it
is fast.

Examples:
  trapline bench ipi
  trapline bench ipi -n 100000 --label default -o default.json
  trapline bench ipi --cpu 0-7 --pairs --format csv";

const WAKE_HELP: &str = "Rows with a state are from the call that wakes until the woken thread reads the clock; the \
waking thread is awake all the time. 'round trip' is a ping-pong of two threads that both sleep: two wake-ups.

'idle 20 us' is a target that slept so short (--short) that a CPU or host that polls before it halts is still at it \
(haltpoll, halt_poll_ns); 'idle 5 ms' is one that slept so long (--idle) that nobody polls any more; on a 'busy' one \
another thread spins, and the scheduler has to take the CPU away from it.

Examples:
  trapline bench wake
  trapline bench wake --idle 20ms --label idle=poll -o idle-poll.json
  trapline bench wake --cpu 0,8";

const CLOCK_HELP: &str = "64 reads are timed together, and an iteration is their mean. 'system call of it' is \
CLOCK_MONOTONIC without the vDSO: where the row CLOCK_MONOTONIC costs as much, user space cannot read the clock \
source. Notes say where a read exits.

Examples:
  trapline bench clock
  trapline bench clock --each-source -n 1000
  trapline bench clock --label tsc -o tsc.json";

const TIMER_HELP: &str =
    "How late a thread runs that waits for an absolute time on CLOCK_MONOTONIC, by clock_nanosleep(2) and timerfd, 100 \
us, 1 ms and 10 ms ahead. Its timer slack is 1 ns.

Examples:
  trapline bench timer
  trapline bench timer --row-time 10s -o timer.json";

const EXITS_HELP: &str = "One instruction at a time, between two reads of the clock, whose own cost is the first row. \
All of them read, and change nothing. Ports and registers in memory take root, and a kernel that lets root have them. \
On bare metal the rows are what the hardware takes; on arm64 user space has no instruction that always exits.

Examples:
  trapline bench exits
  trapline bench exits --label mitigations=off -o exits.json";

const NET_HELP: &str = "Without an address both ends are on this machine and the rows are what the kernel's loopback \
takes. The peer is bound to the address that is given and to no other; it answers its own protocol, each datagram by \
one of the same length. It knows no password: bind it where only those reach it who may.

Examples:
  trapline bench net
  trapline bench net --serve 10.0.0.2:7700           on one side
  trapline bench net --connect 10.0.0.2:7700         on the other
  trapline bench net --connect 10.0.0.2:7700 --size 1400 -o vhost.json";

const DISK_HELP: &str =
    "Requests go past the page cache (O_DIRECT) to random places, one after another. Where a file system takes no \
O_DIRECT, memory is measured, which is said. A file or device that is there is read and never written.

Examples:
  trapline bench disk /var/tmp
  trapline bench disk /var/tmp --write --size 1G
  trapline bench disk /dev/vda --label virtio-blk -o blk.json";
