//! Where guests were when they left: the functions of their kernels, by the address that `kvm_exit` has.

use std::rc::Rc;

use model::{ByNumber, RetiredThreads};
use rustc_hash::FxHashMap;

/// No function of a kernel is that long: `___bpf_prog_run`, the longest, has some 30 KiB. What lies that far behind a
/// symbol is covered by none, because the list of symbols has gaps.
const LONGEST_FUNCTION: u64 = 128 << 10;

/// The upper half of the addresses, where 64-bit kernels are on all architectures.
const UPPER_HALF: u64 = 1 << 63;

/// Where a guest was when it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum GuestCode {
    /// In a function of its kernel.
    Kernel {
        /// Which kernel: 0 is that of all guests without a list of their own, the others are in the order of
        /// [`GuestStarts::of_guest`].
        kernel: u16,
        /// Where the function begins.
        start: u64,
    },
    /// In user space: below all symbols of its kernel.
    User,
    /// The event does not say where, or no symbol covers it.
    #[default]
    Unknown,
}

/// Where the functions of guests' kernels begin.
#[derive(Debug, Clone, Default)]
pub struct GuestStarts {
    /// Of guests that have no others: addresses in order, each once.
    any: Rc<[u64]>,
    of: FxHashMap<i32, (u16, Rc<[u64]>)>,
    kernels: u16,
}

impl GuestStarts {
    /// `starts` are where functions begin in guests of which nothing else is said, in order.
    pub fn new(starts: Vec<u64>) -> GuestStarts {
        GuestStarts {
            any: starts.into(),
            of: FxHashMap::default(),
            kernels: 0,
        }
    }

    /// Adds where they begin in one more guest, by the host's threads that are its vCPUs.
    #[must_use]
    pub fn of_guest(mut self, tids: impl Iterator<Item = i32>, starts: Vec<u64>) -> GuestStarts {
        let starts: Rc<[u64]> = starts.into();
        self.kernels = self.kernels.saturating_add(1);
        let kernel = self.kernels;
        self.of
            .extend(tids.map(|tid| (tid, (kernel, Rc::clone(&starts)))));
        self
    }

    fn find(&self, tid: i32, pc: u64) -> GuestCode {
        let own = self.of.get(&tid);
        let (kernel, starts) = own.map_or((0, &self.any), |(kernel, starts)| (*kernel, starts));
        let before = starts.partition_point(|start| *start <= pc);
        match before.checked_sub(1).and_then(|at| starts.get(at)) {
            Some(start) if pc - start < LONGEST_FUNCTION => GuestCode::Kernel {
                kernel,
                start: *start,
            },
            None if pc < UPPER_HALF && !starts.is_empty() => GuestCode::User,
            _ => GuestCode::Unknown,
        }
    }
}

/// Where the guest of each vCPU was when it left last.
#[derive(Debug, Default)]
pub(super) struct LeftAt {
    starts: GuestStarts,
    by_tid: ByNumber<GuestCode>,
}

impl LeftAt {
    pub(super) fn new(starts: GuestStarts) -> LeftAt {
        LeftAt {
            starts,
            by_tid: ByNumber::default(),
        }
    }

    /// Forgets threads that are not kept apart any more.
    pub(super) fn retire(&mut self, retired: &RetiredThreads) {
        for tid in retired.tids() {
            self.by_tid.remove(tid);
        }
    }

    /// Takes an exit.
    pub(super) fn left(&mut self, tid: i32, pc: Option<u64>) {
        let code = pc.map_or(GuestCode::Unknown, |pc| self.starts.find(tid, pc));
        *self.by_tid.entry(tid, GuestCode::default) = code;
    }

    /// Returns where the guest was.
    pub(super) fn code(&self, tid: i32) -> GuestCode {
        self.by_tid.get(tid).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_guest_has_its_own_functions() {
        let starts = GuestStarts::new(vec![0x1000, 0x2000]);
        let starts = starts.of_guest([7, 8].into_iter(), vec![0x1800]);
        let at = |kernel, start| GuestCode::Kernel { kernel, start };
        let mut left = LeftAt::new(starts);
        assert_eq!(left.code(1), GuestCode::Unknown);
        for (tid, pc, code) in [
            (1, 0x1000, at(0, 0x1000)),
            (1, 0x1fff, at(0, 0x1000)),
            (1, 0x2000, at(0, 0x2000)),
            (1, 0x2_1fff, at(0, 0x2000)),
            (1, 0x2_2000, GuestCode::Unknown),
            (1, u64::MAX, GuestCode::Unknown),
            (1, 0xfff, GuestCode::User),
            (7, 0x1000, GuestCode::User),
            (8, 0x2000, at(1, 0x1800)),
        ] {
            left.left(tid, Some(pc));
            assert_eq!(left.code(tid), code, "{tid} at {pc:#x}");
        }
        left.left(1, None);
        assert_eq!(left.code(1), GuestCode::Unknown);
        let mut none = LeftAt::new(GuestStarts::default());
        none.left(1, Some(0x1000));
        assert_eq!(none.code(1), GuestCode::Unknown);
    }
}
