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

/// What was counted of one thing: of a hundred thousand tasks most did something in a slice or two, so slices without
/// are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SliceAmounts {
    /// In the order of slices.
    amounts: Vec<(u32, Amount)>,
}

impl SliceAmounts {
    /// Adds what happened in a slice, by its place among all.
    pub fn add(&mut self, slice: usize, amount: Amount) {
        let slice = u32::try_from(slice).unwrap_or(u32::MAX);
        let at = match self.amounts.last() {
            Some(last) if last.0 >= slice => self.amounts.binary_search_by_key(&slice, |one| one.0),
            _ => Err(self.amounts.len()),
        };
        match at {
            Ok(at) => {
                if let Some((_, sum)) = self.amounts.get_mut(at) {
                    sum.merge(amount);
                }
            }
            Err(at) => {
                if self.amounts.len() == self.amounts.capacity() {
                    self.amounts.reserve_exact(self.amounts.len().max(1));
                }
                self.amounts.insert(at, (slice, amount));
            }
        }
    }

    /// Adds what was counted of another thing.
    pub fn merge(&mut self, other: &SliceAmounts) {
        for (slice, amount) in other.iter() {
            self.add(slice, *amount);
        }
    }

    /// Returns the slices in which something happened, by their places, with what did.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Amount)> {
        let all = self.amounts.iter();
        all.map(|(slice, amount)| (*slice as usize, amount))
    }

    /// Adds what `amount` takes of each slice to that slice's sum.
    pub fn add_to(&self, sums: &mut [f64], amount: impl Fn(&Amount) -> u64) {
        for (at, one) in self.iter() {
            if let Some(sum) = sums.get_mut(at) {
                *sum += amount(one) as f64;
            }
        }
    }

    /// Gives slices other places, in the same order; those that have one place become one.
    fn renumber(&mut self, place: impl Fn(u32) -> u32) {
        for (slice, _) in &mut self.amounts {
            *slice = place(*slice);
        }
        self.amounts.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1.merge(later.1);
            }
            same
        });
    }
}

/// What was counted by slices of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SlicedCounts {
    /// How long each slice is.
    pub slice_ns: Vec<u64>,
    /// What happened in them.
    pub counters: FxHashMap<SliceCounter, SliceAmounts>,
}

/// A sum that is counted by slices.
#[derive(Debug, Clone, Default)]
struct SlicedSum {
    /// The sum when the last slice ended.
    before: Amount,
    amounts: SliceAmounts,
}

/// Cuts what is counted into slices. All have the same length but the last, which is what was left.
#[derive(Debug, Clone, Default)]
pub struct Slices {
    slice_ns: u64,
    /// Where the slice under way begins and ends.
    begin: u64,
    end: Option<u64>,
    /// How long those are that are over.
    done_ns: Vec<u64>,
    sums: FxHashMap<SliceCounter, SlicedSum>,
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
        self.count(counters);
        while time >= end {
            self.push(self.slice_ns);
            // A long silence makes slices longer, so this ends soon.
            self.begin = end;
            end = end.saturating_add(self.slice_ns);
            if end == self.begin {
                break;
            }
        }
        self.end = Some(end);
    }

    /// Takes what was counted since the last slice ended for that of the slice under way.
    fn count(&mut self, counters: impl FnOnce(&mut dyn FnMut(SliceCounter, Amount))) {
        let (sums, slice) = (&mut self.sums, self.done_ns.len());
        counters(&mut |counter, now| {
            let sum = sums.entry(counter).or_default();
            let amount = Amount {
                count: now.count.saturating_sub(sum.before.count),
                ns: now.ns.saturating_sub(sum.before.ns),
            };
            if amount != Amount::default() {
                sum.amounts.add(slice, amount);
                sum.before = now;
            }
        });
    }

    fn push(&mut self, ns: u64) {
        self.done_ns.push(ns);
        if self.done_ns.len() < MAX_SLICES {
            return;
        }
        let pairs = self.done_ns.chunks(2);
        self.done_ns = pairs
            .map(|pair| pair.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns)))
            .collect();
        for sum in self.sums.values_mut() {
            sum.amounts.renumber(|slice| slice / 2);
        }
        self.slice_ns = self.slice_ns.saturating_mul(2);
    }

    /// Adds sums to others that go on for them, as `goes_on` says: what they counted since the last slice is counted
    /// there.
    pub(crate) fn retire(&mut self, goes_on: impl Fn(SliceCounter) -> SliceCounter) {
        let is_over = |counter: &SliceCounter, _: &mut SlicedSum| goes_on(*counter) != *counter;
        let over: Vec<_> = self.sums.extract_if(is_over).collect();
        for (counter, sum) in over {
            let others = self.sums.entry(goes_on(counter)).or_default();
            others.before.merge(sum.before);
            others.amounts.merge(&sum.amounts);
        }
    }

    /// Ends the last slice at the time of the last event, and returns all. What is left of less than half a slice is
    /// added to the one before.
    pub(crate) fn finish(
        mut self,
        time: u64,
        counters: impl FnOnce(&mut dyn FnMut(SliceCounter, Amount)),
    ) -> SlicedCounts {
        self.count(counters);
        let ns = time.saturating_sub(self.begin);
        let last = u32::try_from(self.done_ns.len()).unwrap_or(u32::MAX);
        match self.done_ns.last_mut() {
            Some(before) if ns < self.slice_ns / 2 => {
                *before = before.saturating_add(ns);
                for sum in self.sums.values_mut() {
                    sum.amounts.renumber(|slice| slice.min(last - 1));
                }
            }
            _ if ns > 0 => self.done_ns.push(ns),
            // A moment is no slice.
            _ => self.sums.clear(),
        }
        let sums = self.sums.into_iter();
        SlicedCounts {
            slice_ns: self.done_ns,
            counters: sums.map(|(counter, sum)| (counter, sum.amounts)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl Iterator<Item = u64>) -> SlicedCounts {
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

    fn counts(slices: &SlicedCounts) -> Vec<f64> {
        let mut sums = vec![0.0; slices.slice_ns.len()];
        for amounts in slices.counters.values() {
            amounts.add_to(&mut sums, |amount| amount.count);
        }
        sums
    }

    #[test]
    fn slices_hold_all_that_happened_in_their_time() {
        let slices = of((0..100_000).map(|n| n * 10_000));
        let counts = counts(&slices);
        assert!((MAX_SLICES / 2..=MAX_SLICES).contains(&counts.len()));
        assert_eq!(counts.iter().sum::<f64>(), 100_000.0);
        let each = counts.iter().zip(&slices.slice_ns);
        let mut rates = each.map(|(count, ns)| count / *ns as f64);
        assert!(rates.all(|rate| (rate * 10_000.0 - 1.0).abs() < 0.02));
        assert_eq!(slices.slice_ns.iter().sum::<u64>(), 99_999 * 10_000);
    }

    #[test]
    fn silence_and_absurd_times_end() {
        let slices = of([0, 5, 3_600_000_000_000].into_iter());
        assert_eq!(counts(&slices).iter().sum::<f64>(), 3.0);
        assert!(slices.slice_ns.len() <= MAX_SLICES);
        let slices = of([7, 3, u64::MAX - 1, u64::MAX, 0].into_iter());
        assert_eq!(counts(&slices).iter().sum::<f64>(), 5.0);
        assert_eq!(of(std::iter::empty()), SlicedCounts::default());
    }

    #[test]
    fn what_retires_is_counted_once_where_it_goes_on() {
        let counter = |number| SliceCounter {
            of: 0,
            part: 0,
            number,
        };
        let amount = |count| Amount { count, ns: 0 };
        let mut slices = Slices::new();
        assert!(!slices.is_due(0));
        slices.cut(FIRST_NS, |report| {
            report(counter(1), amount(5));
            report(counter(2), amount(7));
        });
        // Two more happen before the first becomes part of the third, which has them all from now on.
        slices.retire(|one| if one.number == 1 { counter(3) } else { one });
        let end = |report: &mut dyn FnMut(SliceCounter, Amount)| {
            report(counter(2), amount(8));
            report(counter(3), amount(5 + 2));
        };
        let slices = slices.finish(2 * FIRST_NS, end);
        let of = |number| -> Vec<(usize, u64)> {
            let amounts = slices.counters.get(&counter(number));
            let each = amounts.into_iter().flat_map(SliceAmounts::iter);
            each.map(|(slice, amount)| (slice, amount.count)).collect()
        };
        assert_eq!(of(1), []);
        assert_eq!(of(2), [(0, 7), (1, 1)]);
        assert_eq!(of(3), [(0, 5), (1, 2)]);
    }
}
