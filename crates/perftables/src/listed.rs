//! What is read of lists: shares of samples, interrupts, queues of virtio devices, what CPUs did.

use std::collections::BTreeMap;

/// Shares of one event's samples, as `perf report`, `perf top` and `perf kvm report` print them.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledShares {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`crate::PerfTable::label`].
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
#[derive(Debug, Clone, Default, PartialEq)]
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

impl ModeShares {
    /// Returns the sum of all.
    pub fn all(&self) -> f64 {
        self.sys + self.usr + self.guest_sys + self.guest_usr
    }

    /// Returns them with as many digits as perf prints, and none above all: sums of rounded numbers have no more.
    #[must_use]
    pub fn rounded(self) -> ModeShares {
        let round = |share: f64| ((share * 1e4).round() / 1e4).min(1.0);
        ModeShares {
            sys: round(self.sys),
            usr: round(self.usr),
            guest_sys: round(self.guest_sys),
            guest_usr: round(self.guest_usr),
        }
    }
}

/// One reading of `/proc/interrupts`: sums since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptCounts {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`crate::PerfTable::label`].
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
    /// The line of text before it, see [`crate::PerfTable::label`].
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

/// What CPUs did, as `mpstat` counted it: the averages that it printed, else the mean of its intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuUsage {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it, see [`crate::PerfTable::label`].
    pub label: Option<String>,
    /// All CPUs together first, where that is printed, then each.
    pub rows: Vec<CpuUsageRow>,
}

/// What one CPU did.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuUsageRow {
    /// The line of its first row, counted from 1.
    pub line: u64,
    /// The CPU; `None` for all together.
    pub cpu: Option<u32>,
    /// Shares of time by mpstat's name of what it was spent on (`usr`, `sys`, `soft`, `steal`, `guest`, `idle`), 1
    /// for 100%.
    pub shares: BTreeMap<&'static str, f64>,
    /// Interrupts by second, where they were counted.
    pub interrupts_per_s: Option<f64>,
    /// Those of each interrupt (`36`, `LOC`) and kind of softirq (`NET_RX`) by second, where there were any.
    pub rates_per_s: BTreeMap<String, f64>,
}
