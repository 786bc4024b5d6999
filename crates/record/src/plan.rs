//! What is to be recorded.

use cpuset::CpuSet;

/// A kind of probe: each costs something else (`Documentation/trace/kprobes.rst`, `uprobetracer.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProbeKind {
    /// A function of the kernel is called: a jump or a breakpoint in its code.
    Kernel,
    /// It returns.
    KernelReturn,
    /// A function of a program is called: a breakpoint, so a trap.
    User,
    /// It returns: two traps for each call.
    UserReturn,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [ProbeKind; 4] = [
        ProbeKind::Kernel,
        ProbeKind::KernelReturn,
        ProbeKind::User,
        ProbeKind::UserReturn,
    ];

    /// Returns whether it is of programs.
    pub fn is_of_user(self) -> bool {
        matches!(self, ProbeKind::User | ProbeKind::UserReturn)
    }
}

/// An event that is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Its subsystem, as `kvm`.
    pub system: String,
    /// Its name, as `kvm_exit`.
    pub name: String,
    /// Which of its records are wanted: an expression over its fields, as tracefs takes it.
    pub filter: Option<String>,
    /// On which CPUs; `None`: on all that are on line.
    pub cpus: Option<CpuSet>,
    /// Whether its records hold the call chain.
    pub stack: bool,
    /// As what it was made for this recording; `None` of a tracepoint, which the kernel has anyway.
    pub probe: Option<ProbeKind>,
}

impl PlannedEvent {
    /// Returns an event all of whose records are wanted.
    pub fn all(system: &str, name: &str) -> PlannedEvent {
        PlannedEvent {
            system: system.to_owned(),
            name: name.to_owned(),
            filter: None,
            cpus: None,
            stack: false,
            probe: None,
        }
    }
}

/// A pair that is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPair {
    /// Of this event each thread's last record is kept.
    pub first: PlannedEvent,
    /// When this one comes, in the same thread, it is written.
    pub second: PlannedEvent,
    /// Pairs that are shorter are not written, neither of both events, ns.
    pub least_ns: u64,
}

/// Whether programs in the kernel write events as short records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactUse {
    /// All records are perf's.
    #[default]
    Never,
    /// Where the kernel takes the programs.
    WherePossible,
    /// Where it does not, nothing is recorded.
    Always,
}

/// What is to be recorded.
#[derive(Debug, Clone, Default)]
pub struct RecordPlan {
    /// Events. Those that this kernel does not have are left out and listed.
    pub events: Vec<PlannedEvent>,
    /// Pairs of events of which no more than each thread's last is recorded. Events that are recorded anyway stand in
    /// [`RecordPlan::events`].
    pub pairs: Vec<PlannedPair>,
    /// Whether programs in the kernel write the events that they know, as short records.
    pub compact: CompactUse,
    /// On which CPUs alone; `None`: on all that are on line.
    pub cpus: Option<CpuSet>,
    /// What these threads do, and what is done to them, alone; empty: whoever it is.
    pub threads: Vec<i32>,
    /// Samples of call chains a second on each CPU, where they are wanted.
    pub samples_hz: Option<u64>,
    /// Bytes of each CPU's ring; 0: what suits the machine.
    pub ring_bytes: usize,
    /// Whether smaller rings are no choice where this user may not lock as much memory: where the size was asked for.
    pub ring_exact: bool,
    /// Whether the rings go on over what is old, and are written only when somebody asks.
    pub flight: bool,
    /// Threads whose cycles, instructions and cache misses are counted.
    pub counted: Vec<i32>,
    /// Whether addresses of the kernel's code stay numbers: its symbols, which name them, are megabytes of each file.
    pub no_symbols: bool,
}

/// Bytes of a ring where nothing is said, and what all rings together may take of the machine's memory: a part of so
/// many.
const RING: usize = 4 << 20;
const PART_OF_MEMORY: u64 = 32;
/// A ring is not made smaller than this.
const SMALLEST: usize = 256 << 10;

impl RecordPlan {
    /// Returns how many bytes the ring of each of so many CPUs has: a power of two.
    pub(crate) fn ring(&self, cpus: usize, memory_kib: u64) -> usize {
        if self.ring_bytes > 0 {
            return self.ring_bytes.next_power_of_two();
        }
        let all = memory_kib.saturating_mul(1024) / PART_OF_MEMORY;
        let each = usize::try_from(all).unwrap_or(usize::MAX) / cpus.max(1);
        let below = each.checked_ilog2().map_or(1, |bits| 1 << bits);
        below.clamp(SMALLEST, RING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_take_a_part_of_the_memory() {
        let plan = RecordPlan::default();
        let gib = 1 << 20;
        assert_eq!(plan.ring(2, 24 * gib), 4 << 20);
        assert_eq!(plan.ring(64, gib), 512 << 10);
        assert_eq!(plan.ring(256, gib), 256 << 10);
        let asked = RecordPlan {
            ring_bytes: 3 << 20,
            ..RecordPlan::default()
        };
        assert_eq!(asked.ring(64, gib), 4 << 20);
    }
}
