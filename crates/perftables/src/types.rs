//! What is read.

use std::fmt;

/// A table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PerfTable {
    /// `perf kvm stat report` or `perf kvm stat live`.
    KvmStat(KvmStat),
    /// `perf sched latency`, or `perf sched timehist` added up by task.
    SchedLatency(SchedLatency),
    /// `perf stat`.
    PerfStat(PerfStat),
    /// `kvm_stat`, or bcc's `kvmexit`.
    KvmTotals(KvmTotals),
    /// System calls of `strace` or `perf trace`.
    SyscallTotals(SyscallTotals),
    /// A distribution of bcc's `runqlat` or `funclatency`, or of `bpftrace`.
    Distribution(PrintedDistribution),
    /// `perf report`, `perf top`, `perf kvm report`.
    SampledShares(SampledShares),
    /// `/proc/interrupts`.
    InterruptCounts(InterruptCounts),
    /// `virtiostat` of bcc.
    VirtioTraffic(VirtioTraffic),
}

impl PerfTable {
    /// Returns the line where the table begins, counted from 1.
    pub fn line(&self) -> u64 {
        match self {
            PerfTable::KvmStat(table) => table.line,
            PerfTable::SchedLatency(table) => table.line,
            PerfTable::PerfStat(table) => table.line,
            PerfTable::KvmTotals(table) => table.line,
            PerfTable::SyscallTotals(table) => table.line,
            PerfTable::Distribution(table) => table.line,
            PerfTable::SampledShares(table) => table.line,
            PerfTable::InterruptCounts(table) => table.line,
            PerfTable::VirtioTraffic(table) => table.line,
        }
    }

    /// Returns the tool that prints such a table.
    pub fn printer(&self) -> &'static str {
        match self {
            PerfTable::KvmStat(table) => table.printer.name(),
            PerfTable::SchedLatency(table) => table.printer.name(),
            PerfTable::PerfStat(_) => CountPrinter::PerfStat.name(),
            PerfTable::KvmTotals(totals) => totals.printer.name(),
            PerfTable::SyscallTotals(totals) => totals.printer.name(),
            PerfTable::Distribution(table) => table.printer().name(),
            PerfTable::SampledShares(_) => "perf report",
            PerfTable::InterruptCounts(_) => "/proc/interrupts",
            PerfTable::VirtioTraffic(_) => "virtiostat",
        }
    }

    /// Returns the line of text that stands before the table, without marks of a heading. `perf kvm stat live`
    /// prints the time of day there.
    pub fn label(&self) -> Option<&str> {
        match self {
            PerfTable::KvmStat(table) => table.label.as_deref(),
            PerfTable::SchedLatency(table) => table.label.as_deref(),
            PerfTable::PerfStat(table) => table.label.as_deref(),
            PerfTable::KvmTotals(table) => table.label.as_deref(),
            PerfTable::SyscallTotals(table) => table.label.as_deref(),
            PerfTable::Distribution(table) => table.label.as_deref(),
            PerfTable::SampledShares(table) => table.label.as_deref(),
            PerfTable::InterruptCounts(table) => table.label.as_deref(),
            PerfTable::VirtioTraffic(table) => table.label.as_deref(),
        }
    }
}

/// A table and where it stands in its text.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedTable {
    /// The table, which knows its first line.
    pub table: PerfTable,
    /// Its last line, counted from 1.
    pub last_line: u64,
}

/// Something odd in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNote {
    /// The line, counted from 1.
    pub line: u64,
    /// What is odd, as a sentence without the line.
    pub text: String,
}

impl fmt::Display for TableNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

/// What the rows of `perf kvm stat` are (its option `--event`, the title of its first column).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KvmStatEvent {
    /// `VM-EXIT`: exits by reason.
    Vmexit,
    /// `IO Port Access`: keys `0x608:PIN`, `0x70:POUT`.
    Ioport,
    /// `MMIO Access`: keys `0xfed000f0:R`, `0xfee00300:W`.
    Mmio,
    /// `MSR Access`: keys `0x6e0:W`, `0x1b:R`.
    Msr,
    /// `HCALL-EVENT`, on PowerPC: hypercalls by name.
    Hcall,
    /// The text does not say: the heading is missing, or it is the full-screen view's, and the keys do not say it
    /// either.
    Unrecognized,
}

impl KvmStatEvent {
    /// Those that have an option of perf's.
    pub(crate) const ALL: [KvmStatEvent; 5] = [
        KvmStatEvent::Vmexit,
        KvmStatEvent::Ioport,
        KvmStatEvent::Mmio,
        KvmStatEvent::Msr,
        KvmStatEvent::Hcall,
    ];

    /// Returns the value of `--event` that asks for it.
    pub fn option(self) -> Option<&'static str> {
        Some(match self {
            KvmStatEvent::Vmexit => "vmexit",
            KvmStatEvent::Ioport => "ioport",
            KvmStatEvent::Mmio => "mmio",
            KvmStatEvent::Msr => "msr",
            KvmStatEvent::Hcall => "hcall",
            KvmStatEvent::Unrecognized => return None,
        })
    }
}

/// What prints times of exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvmStatPrinter {
    /// `perf kvm stat report` or `live`.
    #[default]
    PerfKvmStat,
    /// SystemTap's `kvm_service_time.stp`.
    ServiceTime,
}

impl KvmStatPrinter {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            KvmStatPrinter::PerfKvmStat => "perf kvm stat report",
            KvmStatPrinter::ServiceTime => "kvm_service_time.stp",
        }
    }
}

/// A table of `perf kvm stat`, or of `kvm_service_time.stp`.
#[derive(Debug, Clone, PartialEq)]
pub struct KvmStat {
    /// The tool.
    pub printer: KvmStatPrinter,
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// What its rows are.
    pub event: KvmStatEvent,
    /// The processes it was restricted to (`Analyze events for pid(s) 123,124`); `None` when it was not, or the
    /// text does not say.
    pub pids: Option<Vec<i32>>,
    /// The vCPU it was restricted to (`VCPU 1:`); `None` for all, or when the text does not say.
    pub vcpu: Option<u32>,
    /// Its rows, in its order.
    pub rows: Vec<KvmRow>,
    /// The printed number of samples of all rows (`Total Samples:`); `None` where that line is missing.
    pub total_count: Option<u64>,
    /// The printed time of all rows (`Total events handled time:`), to 10 ns.
    pub total_ns: Option<u64>,
    /// Events that perf says it lost (`Lost events:`).
    pub lost_events: Option<u64>,
    /// What perf calls the machine where it says that it has no name for an exit's code: `VMX`, `SVM`, `arm64`
    /// (`exit_reasons_isa`, `tools/perf/arch/*/util/kvm-stat.c`).
    pub machine: Option<String>,
}

/// A row of `perf kvm stat`.
#[derive(Debug, Clone, PartialEq)]
pub struct KvmRow {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// Reason, port, address or register, as printed. perf 6.3 and older cut it off at 19 characters; an unknown
    /// reason is `UNKNOWN`.
    pub key: String,
    /// The code of a reason that perf has no name of, from its message before the row (`unknown kvm exit code:78 on
    /// VMX`), which goes to the standard error of perf 6.3 and older.
    pub unknown_code: Option<u64>,
    /// How many.
    pub count: u64,
    /// Share of all samples, 1 for 100%, printed to 0.0001.
    pub count_share: f64,
    /// Share of all time, 1 for 100%, printed to 0.0001.
    pub time_share: f64,
    /// Shortest, printed to 10 ns, by old perfs to a whole microsecond (cut off). The oldest do not print it.
    pub min_ns: Option<u64>,
    /// Longest, as [`KvmRow::min_ns`].
    pub max_ns: Option<u64>,
    /// Mean, printed to 10 ns. Where the row was cut off before it, [`KvmRow::total_ns`] / [`KvmRow::count`].
    pub mean_ns: u64,
    /// Standard error of the mean relative to it, 0.0028 for `+- 0.28%`; `None` where that is cut off.
    pub error: Option<f64>,
    /// Time of all samples together, which is not printed (but by the full-screen view, which prints it exactly).
    ///
    /// Two products give it: count × mean, off by up to count × 5 ns, and the share of time × the table's time,
    /// off by up to 0.00005 of the table's time. The one with the smaller bound is taken. The only row of a table
    /// has the table's time.
    pub total_ns: u64,
    /// The bound of the error of [`KvmRow::total_ns`] by rounding in print.
    pub total_error_ns: u64,
}

/// What prints times of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchedPrinter {
    /// `perf sched latency`.
    #[default]
    Latency,
    /// `perf sched timehist`: delays are those of wake-ups, without those of preemptions.
    Timehist,
    /// `perf sched timehist --summary`: run times alone.
    TimehistSummary,
}

impl SchedPrinter {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            SchedPrinter::Latency => "perf sched latency",
            SchedPrinter::Timehist => "perf sched timehist",
            SchedPrinter::TimehistSummary => "perf sched timehist --summary",
        }
    }

    /// Returns whether it prints how long tasks waited for a CPU.
    pub fn has_delays(self) -> bool {
        self != SchedPrinter::TimehistSummary
    }
}

/// A table of `perf sched latency`, or what rows of `perf sched timehist` add up to.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedLatency {
    /// The tool.
    pub printer: SchedPrinter,
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// Its rows, in its order.
    pub rows: Vec<SchedRow>,
    /// Time that all threads ran (row `TOTAL:`), to a microsecond; `None` where that row is missing.
    pub total_runtime_ns: Option<u64>,
    /// Delays of all threads (row `TOTAL:`).
    pub total_switches: Option<u64>,
    /// Events that perf says were lost (`INFO: ... lost events`).
    pub lost_events: Option<u64>,
    /// What perf says of the recording below the table (`INFO: ...`), in its words.
    pub notes: Vec<String>,
}

/// A row of `perf sched latency`. Times are printed to a microsecond.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedRow {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// Name of the thread or, merged, of all threads of the name. perf names a thread that it has no name of by
    /// `:` and its number.
    pub comm: String,
    /// The thread; `None` where threads are merged.
    pub tid: Option<i32>,
    /// How many threads are merged (`iperf:(6)`); `None` where it is one.
    pub threads: Option<u64>,
    /// How long it ran.
    pub runtime_ns: u64,
    /// How many delays there were, which perf calls switches, and count since 6.10.
    pub switches: u64,
    /// Mean time from being woken or preempted to running.
    pub delay_mean_ns: u64,
    /// The longest.
    pub delay_max_ns: u64,
    /// When the longest began, by the recording's clock. Printed since 5.11; `None` where there was no delay.
    pub delay_max_start_ns: Option<u64>,
    /// When the longest ended and the thread ran (`max at`, `max end`); `None` where there was no delay.
    pub delay_max_at_ns: Option<u64>,
}

/// Counts of one run of `perf stat`, or of several put together with `-r`.
#[derive(Debug, Clone, PartialEq)]
pub struct PerfStat {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// What was measured (`Performance counter stats for 'system wide'`), without quotes; `None` where that line
    /// is missing.
    pub target: Option<String>,
    /// How many runs were put together (`(5 runs)`).
    pub runs: Option<u64>,
    /// Counts, in the order of the text. With `-I`, `-A` and `--per-*` an event is there many times.
    pub counts: Vec<Count>,
    /// `seconds time elapsed`.
    pub elapsed_ns: Option<u64>,
    /// Standard error of the time elapsed relative to it, with `-r`.
    pub elapsed_error: Option<f64>,
    /// `seconds user`.
    pub user_ns: Option<u64>,
    /// `seconds sys`.
    pub sys_ns: Option<u64>,
}

/// A tool that prints counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountPrinter {
    /// `perf stat`.
    #[default]
    PerfStat,
    /// The kernel's `kvm_stat`.
    KvmStat,
    /// bcc's `kvmexit`: exits by reason alone.
    Kvmexit,
    /// `strace`: system calls, a line each.
    Strace,
    /// `strace -c`: system calls, counted.
    StraceCounts,
    /// `perf trace`.
    PerfTrace,
    /// Maps of `bpftrace`.
    Bpftrace,
    /// Distributions of bcc's tools.
    Bcc,
}

impl CountPrinter {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            CountPrinter::PerfStat => "perf stat",
            CountPrinter::KvmStat => "kvm_stat",
            CountPrinter::Kvmexit => "kvmexit",
            CountPrinter::Strace => "strace",
            CountPrinter::StraceCounts => "strace -c",
            CountPrinter::PerfTrace => "perf trace",
            CountPrinter::Bpftrace => "bpftrace",
            CountPrinter::Bcc => "bcc",
        }
    }
}

/// Counts of `kvm_stat`, or of `kvmexit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvmTotals {
    /// The tool.
    pub printer: CountPrinter,
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// Its counters, in its order.
    pub rows: Vec<KvmTotal>,
}

/// A counter of `kvm_stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvmTotal {
    /// The line, counted from 1.
    pub line: u64,
    /// What is counted: a tracepoint of KVM, or a file of its debugfs, with a reason behind it where one is printed.
    pub event: String,
    /// How many since `kvm_stat` began; of a log the sum of its lines.
    pub total: u64,
    /// How many a second when it was printed; `None` of a log, which does not say how far its lines are apart.
    pub per_second: Option<u64>,
}

/// System calls, added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyscallTotals {
    /// The tool.
    pub printer: CountPrinter,
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// Calls of each thread, in the order of their first lines.
    pub rows: Vec<SyscallRow>,
    /// Writes of each thread to each file descriptor.
    pub writes: Vec<FileWrites>,
    /// From the first to the last line with a time.
    pub span_ns: Option<u64>,
}

/// A thread that makes system calls, as far as a text says which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyscallThread {
    /// Its id; `None` where a single thread is traced.
    pub tid: Option<i32>,
    /// Its name.
    pub comm: Option<String>,
}

/// How often a thread made a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyscallRow {
    /// The thread.
    pub thread: SyscallThread,
    /// The call, of `ioctl` with its request: `ioctl(KVM_RUN)`.
    pub call: String,
    /// How often it returned.
    pub count: u64,
    /// How often with an error.
    pub errors: u64,
}

/// What a thread wrote to a file descriptor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileWrites {
    /// The thread.
    pub thread: SyscallThread,
    /// The file descriptor.
    pub fd: u64,
    /// What it is, where `strace -y` or `perf trace` say it: `/dev/pts/3`.
    pub path: Option<String>,
    /// Calls that wrote.
    pub count: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// Calls that wrote one byte.
    pub of_one_byte: u64,
    /// How often the thread came back from `KVM_RUN` between the first and the last of these.
    pub runs: u64,
    /// How often it set an interrupt line meanwhile (`KVM_IRQ_LINE`).
    pub irq_lines: u64,
    /// From the first to the last of these, where lines have times.
    pub span_ns: Option<u64>,
}

/// Values by size, as a tool printed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedDistribution {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// What the values are: bcc's unit (`usecs`), or the map of `bpftrace` (`@usecs[HLT]`).
    pub name: String,
    /// How many values are in each range, smallest first.
    pub buckets: Vec<DistributionBucket>,
}

/// A range of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistributionBucket {
    /// The smallest value.
    pub from: u64,
    /// The smallest beyond it; `None` where there is no end.
    pub below: Option<u64>,
    /// How many values.
    pub count: u64,
}

impl PrintedDistribution {
    /// Returns the tool.
    pub fn printer(&self) -> CountPrinter {
        match self.name.starts_with('@') {
            true => CountPrinter::Bpftrace,
            false => CountPrinter::Bcc,
        }
    }

    /// Returns how many values there are.
    pub fn count(&self) -> u64 {
        let counts = self.buckets.iter().map(|bucket| bucket.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Returns the range in which a share (0 to 1) of all values ends; none without values.
    pub fn bucket_of(&self, share: f64) -> Option<DistributionBucket> {
        let wanted = self.count() as f64 * share;
        let mut sum = 0u64;
        let mut full = self.buckets.iter().filter(|bucket| bucket.count > 0);
        full.find(|bucket| {
            sum = sum.saturating_add(bucket.count);
            sum as f64 >= wanted
        })
        .copied()
    }
}

/// A line of `perf stat`.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The line, counted from 1.
    pub line: u64,
    /// When it was printed, from the beginning, with `-I`.
    pub at_ns: Option<u64>,
    /// What was counted apart: `CPU0` with `-A`, `S0-D0-C1` and the like with `--per-core`, a thread's name and
    /// number with `--per-thread`, a control group with `-G`.
    pub of: Option<String>,
    /// The event, with its modifiers.
    pub event: String,
    /// How many.
    pub value: StatCount,
    /// Unit of [`Count::value`], where it is none of its own (`msec`, `Joules`).
    pub unit: Option<String>,
    /// What perf makes of it (behind `#`).
    pub metrics: Vec<Metric>,
    /// Standard error of the mean relative to it, with `-r`; 0.005 for `+- 0.50%`.
    pub error: Option<f64>,
    /// Share of the time that the event was counted, where counters were too few and [`Count::value`] is
    /// extrapolated; 0.8333 for `(83.33%)`.
    pub running: Option<f64>,
}

/// A number of `perf stat`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StatCount {
    /// A whole number.
    Count(u64),
    /// A number with a fraction, of an event with a scale.
    Amount(f64),
    /// `<not counted>`: the counter never ran.
    NotCounted,
    /// `<not supported>`: the machine has no such counter.
    NotSupported,
}

/// A number that perf computes of counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The number.
    pub value: f64,
    /// Its unit and what it is, in perf's words: `insn per cycle`, `% of all cache refs`.
    pub unit: String,
}

/// Shares of one event's samples, as `perf report`, `perf top` and `perf kvm report` print them.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledShares {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// The event, with its modifiers, where it is printed.
    pub event: Option<String>,
    /// How many samples of it there are, at least: perf prints `123K` for 123000 to 123999.
    pub samples: Option<u64>,
    /// What these stand for (`Event count (approx.)`): nanoseconds of a clock, cycles.
    pub event_count: Option<u64>,
    /// Samples that perf says were lost.
    pub lost_samples: Option<u64>,
    /// Its rows, in its order.
    pub rows: Vec<SampledShare>,
    /// Rows that were begun and could not be read.
    pub unread: u64,
}

/// A row of `perf report`: what the rows have in common depends on how they were sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledShare {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// Share of the row's own samples (`Self`, or `Overhead`), 1 for 100%, printed to 0.0001.
    pub own: f64,
    /// The same with those of what its function called (`Children`).
    pub with_callees: Option<f64>,
    /// Where the CPUs were, where that is printed.
    pub modes: Option<ModeShares>,
    /// Samples of it, with `-n`.
    pub samples: Option<u64>,
    /// The task's name; `:123` where perf has none of thread 123.
    pub comm: Option<String>,
    /// Its process or thread (`Pid:Command`, `Tid:Command`).
    pub id: Option<i32>,
    /// The file: a program, a library, `[kernel.kallsyms]`, `[guest.kernel.kallsyms.123]`, a module as `[kvm]`.
    pub object: Option<String>,
    /// The function, or an address.
    pub symbol: Option<String>,
    /// What is printed in brackets before the function: `k` for the kernel, `.` for user space, `g` and `u` for those
    /// of a guest, `H` for a hypervisor.
    pub level: Option<char>,
}

/// Shares of a row by where the CPUs were (`--showcpuutilization`); together they are the row's own share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModeShares {
    /// The host's kernel.
    pub sys: f64,
    /// The host's user space.
    pub usr: f64,
    /// Guests' kernels.
    pub guest_sys: f64,
    /// Guests' user space.
    pub guest_usr: f64,
}

/// One reading of `/proc/interrupts`: sums since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptCounts {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// The CPUs that it has columns of.
    pub cpus: Vec<u32>,
    /// Its rows, in its order, without those that count errors.
    pub rows: Vec<InterruptRow>,
}

/// An interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptRow {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// Its number, or the architecture's name of it: `LOC`, `RES`, `PIN`, `IPI0`.
    pub irq: String,
    /// Who handles it (`virtio0-input.0`), or what it is (`Rescheduling interrupts`); empty where nobody does.
    pub name: String,
    /// How many each CPU got, in the order of [`InterruptCounts::cpus`].
    pub counts: Vec<u64>,
}

/// What `virtiostat` counted in one of its intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtioTraffic {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`PerfTable::label`].
    pub label: Option<String>,
    /// Its rows, in its order.
    pub rows: Vec<VirtioQueue>,
}

/// A queue of a virtio device, as its driver in the guest uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtioQueue {
    /// The line, counted from 1.
    pub line: u64,
    /// The driver: `virtio_net`.
    pub driver: String,
    /// The device: `virtio0`.
    pub device: String,
    /// The queue: `input.0`.
    pub queue: String,
    /// Buffers for the device to write (`In SGs`).
    pub in_buffers: u64,
    /// Buffers for the device to read (`Out SGs`).
    pub out_buffers: u64,
    /// Bytes of the former (`In BW`): room that the driver offered, not what came.
    pub in_bytes: u64,
    /// Bytes of the latter (`Out BW`).
    pub out_bytes: u64,
}
