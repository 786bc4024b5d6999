//! What is read of counts: which tool printed them, system calls, distributions.

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

/// System calls, added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyscallTotals {
    /// The tool.
    pub printer: CountPrinter,
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`crate::PerfTable::label`].
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
    /// The line of text before it, see [`crate::PerfTable::label`].
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

    /// Returns how many nanoseconds a value of 1 is, by the unit that bcc prints above and that maps of bpftrace's own
    /// tools are called by (`@usecs` of `runqlat.bt`, `@ns`); `None` where that says nothing.
    pub fn unit_ns(&self) -> Option<u64> {
        let name = self.name.split('[').next().unwrap_or_default();
        match name.trim_start_matches('@') {
            "nsecs" | "ns" => Some(1),
            "usecs" | "us" => Some(1_000),
            "msecs" | "ms" => Some(1_000_000),
            _ => None,
        }
    }

    /// Returns how many values there are.
    pub fn count(&self) -> u64 {
        let counts = self.buckets.iter().map(|bucket| bucket.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Returns the share (0 to 1) of values in ranges that end before a value, or with it.
    pub fn share_below(&self, value: u64) -> f64 {
        let ranges = self.buckets.iter();
        let ranges = ranges.filter(|range| range.below.is_some_and(|below| below <= value));
        let sum = ranges.map(|range| range.count).fold(0, u64::saturating_add);
        sum as f64 / self.count().max(1) as f64
    }

    /// Adds the values of another of the same name.
    pub fn add(&mut self, other: &PrintedDistribution) {
        self.buckets.extend_from_slice(&other.buckets);
        self.buckets.sort_by_key(|range| (range.from, range.below));
        self.buckets.dedup_by(|later, kept| {
            let same = (later.from, later.below) == (kept.from, kept.below);
            if same {
                kept.count = kept.count.saturating_add(later.count);
            }
            same
        });
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
