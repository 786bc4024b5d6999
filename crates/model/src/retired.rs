//! Threads of which no more is kept: what bounds the state of a walk.
//!
//! A host runs some thousand threads at once, and over hours millions. When there are more than a walk keeps apart
//! ([`StateLimits`]), half of them become part of sums: those that had the least time so far. So what is kept is the
//! largest by time, whatever the order; a thread that comes back later is another one, and its times begin anew. It is
//! the way of Misra and Gries (1982) and of lossy counting (Manku and Motwani, 2002) for the most frequent of a stream.

use rustc_hash::FxHashSet;

use crate::by_thread::ThreadHandle;

/// How many threads and vCPUs a walk keeps apart at most: the one owner of these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLimits {
    /// Threads. No kernel runs more at once on the machines that VMs run on.
    pub threads: usize,
    /// vCPUs. KVM allows a VM 4096 (`KVM_MAX_VCPUS`), and a host with as many threads of all its VMs as this has more
    /// of them than its CPUs can run.
    pub vcpus: usize,
}

/// The limits where nothing else is asked for.
pub const STATE_LIMITS: StateLimits = StateLimits {
    threads: 1 << 16,
    vcpus: 1 << 14,
};

impl StateLimits {
    /// Recordings that are held at once have at least this each.
    const LEAST: StateLimits = StateLimits {
        threads: 1 << 13,
        vcpus: 1 << 11,
    };

    /// Returns the limits of each of so many recordings that are held at once. All of them together have half of what
    /// one has: what was found of those that were read is held beside what others are read with.
    pub fn shared_by(self, recordings: usize) -> StateLimits {
        let parts = if recordings > 1 { 2 * recordings } else { 1 };
        let share = |most: usize, least: usize| (most / parts).max(least).min(most);
        StateLimits {
            threads: share(self.threads, StateLimits::LEAST.threads),
            vcpus: share(self.vcpus, StateLimits::LEAST.vcpus),
        }
    }
}

impl Default for StateLimits {
    fn default() -> StateLimits {
        STATE_LIMITS
    }
}

/// How many threads have become part of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetiredCount {
    /// Threads.
    pub threads: u64,
    /// Of these vCPUs.
    pub vcpus: u64,
    /// For how long all of them together were busy, or waited for a CPU, in nanoseconds.
    pub busy_ns: u64,
}

/// Threads that become part of sums now.
#[derive(Debug, Clone, Default)]
pub struct RetiredThreads {
    pub(crate) slots: FxHashSet<u32>,
    pub(crate) vcpus: FxHashSet<u32>,
    pub(crate) tids: FxHashSet<i32>,
    pub(crate) handles: Vec<ThreadHandle>,
    pub(crate) busy_ns: u64,
}

impl RetiredThreads {
    /// Returns whether a slot is of one of them.
    #[inline]
    pub fn has_slot(&self, slot: u32) -> bool {
        self.slots.contains(&slot)
    }

    /// Returns whether a vCPU is one of them.
    #[inline]
    pub fn has_vcpu(&self, vcpu: u32) -> bool {
        self.vcpus.contains(&vcpu)
    }

    /// Returns whether a thread id was that of one of them, and is nobody's now.
    #[inline]
    pub fn has_tid(&self, tid: i32) -> bool {
        self.tids.contains(&tid)
    }

    /// Returns their slots.
    pub fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().copied()
    }

    /// Returns those of them that are vCPUs, by number.
    pub fn vcpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.vcpus.iter().copied()
    }

    /// Returns the ids that are nobody's now.
    pub fn tids(&self) -> impl Iterator<Item = i32> + '_ {
        self.tids.iter().copied()
    }

    /// Returns the numbers of those threads that made events.
    pub fn handles(&self) -> impl Iterator<Item = ThreadHandle> + '_ {
        self.handles.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_that_are_held_at_once_share_what_one_has() {
        let of = |recordings| {
            let limits = STATE_LIMITS.shared_by(recordings);
            (limits.threads, limits.vcpus)
        };
        assert_eq!([of(0), of(1)], [(1 << 16, 1 << 14); 2]);
        assert_eq!(of(2), (1 << 14, 1 << 12));
        assert_eq!([of(4), of(1000)], [(1 << 13, 1 << 11); 2]);
        let few = StateLimits {
            threads: 300,
            vcpus: 256,
        };
        assert_eq!(few.shared_by(9), few);
    }
}
