//! What is read.

use std::fmt;

pub use crate::counted::{
    CountPrinter, DistributionBucket, FileWrites, PrintedDistribution, SyscallRow, SyscallThread,
    SyscallTotals,
};
pub use crate::listed::{
    CpuUsage, CpuUsageRow, InterruptCounts, InterruptRow, ModeShares, SampledShare, SampledShares,
    VirtioQueue, VirtioTraffic,
};

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
    /// `mpstat` of sysstat.
    CpuUsage(CpuUsage),
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
            PerfTable::CpuUsage(table) => table.line,
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
            PerfTable::CpuUsage(_) => "mpstat",
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
            PerfTable::CpuUsage(table) => table.label.as_deref(),
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
    /// Whether its numbers contradict each other, or what the table's other rows and its last line say: one of them is
    /// wrong, and no share follows from them.
    pub contradicts: bool,
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
