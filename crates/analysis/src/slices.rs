//! How much of everything happened when: counts in slices of time, by which two recordings can be compared and
//! noise separated from changes.

use rustc_hash::FxHashMap;

/// Slices that are kept, at most. When there are more, pairs of them become one.
pub const MAX_SLICES: usize = 64;
/// How long slices are at first.
const FIRST_NS: u64 = 1 << 20;

/// One sum that an analysis keeps ([`crate::Analysis::counters`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceCounter {
    /// The analysis, by its number in the study.
    pub of: u8,
    /// The part of it.
    pub part: u8,
    /// The sum's number there.
    pub number: u32,
}

/// How many, and how long all of them took, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Their time.
    pub ns: u64,
}

impl Amount {
    /// Adds one.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.merge(Amount { count: 1, ns });
    }

    /// Adds others.
    #[inline]
    pub(crate) fn merge(&mut self, other: Amount) {
        self.count = self.count.saturating_add(other.count);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// What happened in one slice of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slice {
    /// How long it is.
    pub ns: u64,
    /// What happened; what did not is left out.
    pub amounts: FxHashMap<SliceCounter, Amount>,
}

impl Slice {
    fn merge(&mut self, later: Slice) {
        self.ns = self.ns.saturating_add(later.ns);
        for (counter, amount) in later.amounts {
            self.amounts.entry(counter).or_default().merge(amount);
        }
    }
}

/// Cuts what is counted into slices. All have the same length but the last, which is what was left.
#[derive(Debug, Clone, Default)]
pub struct Slices {
    slice_ns: u64,
    /// Where the slice under way begins and ends.
    begin: u64,
    end: Option<u64>,
    before: FxHashMap<SliceCounter, Amount>,
    done: Vec<Slice>,
}

impl Slices {
    /// Returns slices of nothing.
    pub fn new() -> Slices {
        Slices {
            slice_ns: FIRST_NS,
            ..Slices::default()
        }
    }

    /// Returns whether an event at this time is beyond the slice under way, so that [`Slices::cut`] is due.
    #[inline]
    pub fn is_due(&mut self, time: u64) -> bool {
        match self.end {
            Some(end) => time >= end,
            None => {
                self.begin = time;
                self.end = Some(time.saturating_add(self.slice_ns));
                false
            }
        }
    }

    /// Ends slices up to a time. `counters` reports all sums so far.
    pub fn cut(&mut self, time: u64, counters: impl FnOnce(&mut dyn FnMut(SliceCounter, Amount))) {
        let Some(mut end) = self.end else { return };
        let mut amounts = self.since(counters);
        while time >= end {
            let amounts = std::mem::take(&mut amounts);
            self.push(Slice {
                ns: self.slice_ns,
                amounts,
            });
            // A long silence makes slices longer, so this ends soon.
            self.begin = end;
            end = end.saturating_add(self.slice_ns);
            if end == self.begin {
                break;
            }
        }
        self.end = Some(end);
    }

    fn since(
        &mut self,
        counters: impl FnOnce(&mut dyn FnMut(SliceCounter, Amount)),
    ) -> FxHashMap<SliceCounter, Amount> {
        let mut amounts = FxHashMap::default();
        let before = &mut self.before;
        counters(&mut |counter, now| {
            let before = before.entry(counter).or_default();
            let amount = Amount {
                count: now.count.saturating_sub(before.count),
                ns: now.ns.saturating_sub(before.ns),
            };
            if amount != Amount::default() {
                amounts.insert(counter, amount);
                *before = now;
            }
        });
        amounts
    }

    fn push(&mut self, slice: Slice) {
        self.done.push(slice);
        if self.done.len() < MAX_SLICES {
            return;
        }
        let mut pairs = std::mem::take(&mut self.done).into_iter();
        while let Some(mut first) = pairs.next() {
            if let Some(second) = pairs.next() {
                first.merge(second);
            }
            self.done.push(first);
        }
        self.slice_ns = self.slice_ns.saturating_mul(2);
    }

    /// Ends the last slice at the time of the last event, and returns all. What is left of less than half a slice is
    /// added to the one before.
    pub fn finish(
        mut self,
        time: u64,
        counters: impl FnOnce(&mut dyn FnMut(SliceCounter, Amount)),
    ) -> Vec<Slice> {
        let amounts = self.since(counters);
        let ns = time.saturating_sub(self.begin);
        let last = Slice { ns, amounts };
        match self.done.last_mut() {
            Some(before) if ns < self.slice_ns / 2 => before.merge(last),
            _ if ns > 0 => self.done.push(last),
            _ => {}
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl Iterator<Item = u64>) -> Vec<Slice> {
        let mut slices = Slices::new();
        let counter = SliceCounter {
            of: 0,
            part: 0,
            number: 0,
        };
        let (mut count, mut last) = (0, 0);
        let report = |count: u64| {
            move |report: &mut dyn FnMut(SliceCounter, Amount)| {
                report(counter, Amount { count, ns: 0 })
            }
        };
        for time in times {
            if slices.is_due(time) {
                slices.cut(time, report(count));
            }
            count += 1;
            last = time;
        }
        slices.finish(last, report(count))
    }

    fn counts(slices: &[Slice]) -> Vec<u64> {
        let one = |slice: &Slice| slice.amounts.values().map(|a| a.count).sum();
        slices.iter().map(one).collect()
    }

    #[test]
    fn slices_hold_all_that_happened_in_their_time() {
        let slices = of((0..100_000).map(|n| n * 10_000));
        assert!((MAX_SLICES / 2..=MAX_SLICES).contains(&slices.len()));
        assert_eq!(counts(&slices).iter().sum::<u64>(), 100_000);
        let rate = |s: &Slice| s.amounts.values().next().unwrap().count as f64 / s.ns as f64;
        assert!(
            slices
                .iter()
                .all(|s| (rate(s) * 10_000.0 - 1.0).abs() < 0.02)
        );
        let ns: u64 = slices.iter().map(|slice| slice.ns).sum();
        assert_eq!(ns, 99_999 * 10_000);
    }

    #[test]
    fn silence_and_absurd_times_end() {
        let slices = of([0, 5, 3_600_000_000_000].into_iter());
        assert_eq!(counts(&slices).iter().sum::<u64>(), 3);
        assert!(slices.len() <= MAX_SLICES);
        let slices = of([7, 3, u64::MAX - 1, u64::MAX, 0].into_iter());
        assert_eq!(counts(&slices).iter().sum::<u64>(), 5);
        assert!(of(std::iter::empty()).is_empty());
    }
}
