//! When samples were taken, in slices of time and bounded memory.

use stacks::Weight;

use crate::slices::MAX_SLICES;

/// Entries that are kept, 24 bytes each.
const MAX_ENTRIES: usize = 1 << 20;
/// How long slices are at first.
const FIRST_NS: u64 = 1 << 20;
/// Fewer slices than this are none.
const LEAST_SLICES: u64 = MAX_SLICES as u64 / 4;

/// One stack in one slice.
type StackSample = (u32, u32, Weight);

/// What was sampled when.
#[derive(Debug, Default)]
pub(super) struct Log {
    begin: Option<u64>,
    slice_ns: u64,
    last: u64,
    entries: Vec<StackSample>,
    /// Whether there were too many to follow.
    full: bool,
}

impl Log {
    /// Takes a sample.
    pub(super) fn add(&mut self, node: u32, time: u64, weight: Weight) {
        if self.full {
            return;
        }
        let begin = *self.begin.get_or_insert(time);
        self.slice_ns = self.slice_ns.max(FIRST_NS);
        let since = time.saturating_sub(begin);
        self.last = self.last.max(since);
        while self.last / self.slice_ns >= MAX_SLICES as u64 {
            self.widen();
        }
        let slice = since / self.slice_ns;
        self.entries.push((node, slice as u32, weight));
        if self.entries.len() >= MAX_ENTRIES {
            self.shrink();
        }
    }

    fn widen(&mut self) {
        self.slice_ns = self.slice_ns.saturating_mul(2);
        for (_, slice, _) in &mut self.entries {
            *slice /= 2;
        }
    }

    /// Makes one entry of several of one stack in one slice; where that is not enough, slices become longer.
    fn shrink(&mut self) {
        self.merge();
        while self.entries.len() > MAX_ENTRIES / 2 {
            if self.last / self.slice_ns < LEAST_SLICES {
                self.full = true;
                self.entries = Vec::new();
                return;
            }
            self.widen();
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.entries
            .sort_unstable_by_key(|(node, slice, _)| (*node, *slice));
        self.entries.dedup_by(|later, kept| {
            let same = (later.0, later.1) == (kept.0, kept.1);
            if same {
                kept.2.add(later.2);
            }
            same
        });
    }

    /// Returns how long slices are, and what was sampled in each; `None` where there was too much.
    pub(super) fn entries(&self) -> Option<(u64, &[StackSample])> {
        (!self.full).then_some((self.slice_ns.max(FIRST_NS), &self.entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Weight = Weight {
        samples: 1,
        amount: 7,
    };

    fn sum(log: &Log) -> u64 {
        let (_, entries) = log.entries().unwrap();
        entries.iter().map(|entry| entry.2.samples).sum()
    }

    #[test]
    fn an_hour_has_as_many_slices_as_a_second() {
        for step in [10_000_000, 3_600_000_000] {
            let mut log = Log::default();
            for n in 0..1000 {
                log.add(n % 3, 5 + u64::from(n) * step, ONE);
            }
            let (_, entries) = log.entries().unwrap();
            let most = entries.iter().map(|entry| entry.1).max().unwrap();
            assert!((MAX_SLICES as u32 / 2..MAX_SLICES as u32).contains(&most));
            assert_eq!(sum(&log), 1000);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut log = Log::default();
        for n in 0..5_000_000u32 {
            log.add(n % 1000, u64::from(n) * 1000, ONE);
        }
        assert!(log.entries.len() <= MAX_ENTRIES);
        assert_eq!(sum(&log), 5_000_000);
        // A stack of its own for each sample is too much.
        for n in 0..3_000_000u32 {
            log.add(n, 5_000_000_000 + u64::from(n) * 1000, ONE);
        }
        assert!(log.entries().is_none());
    }

    #[test]
    fn absurd_times_end() {
        let mut log = Log::default();
        for time in [7, 3, u64::MAX, 0] {
            log.add(1, time, ONE);
        }
        assert_eq!(sum(&log), 4);
    }
}
