/*!
Count, sum, extremes and percentiles of durations, in bounded memory. This crate depends on nothing.

```
let mut stats = stats::Stats::default();
for ns in 1..=100 {
    stats.add(ns * 1_000);
}
assert_eq!((stats.count(), stats.total(), stats.max()), (100, 5_050_000, 100_000));
assert_eq!(stats.percentile(0.5), 50_000);
```
*/
#![forbid(unsafe_code)]

mod buckets;
mod longest;

use std::collections::BTreeMap;

use buckets::DurationBuckets;
pub use longest::{KEPT, Longest};

/// Durations kept as they are before they are only counted in buckets.
const EXACT: usize = 128;
/// The longest of which such a list takes four bytes.
const SHORT_NS: u64 = u32::MAX as u64;

/// Durations in nanoseconds.
///
/// Count, total, minimum and maximum are exact always. Percentiles are exact up to 128 durations; beyond,
/// they come from buckets no wider than 1/64 of their value, so they are off by at most 1.6 %.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    count: u64,
    total: u128,
    min: u64,
    max: u64,
    /// The sum of squares, modulo 2^128: exact, so that sums are the same in whatever order durations come, and large
    /// ones that differ little do not cancel out.
    squares: u128,
    durations: DurationSamples,
}

/// What percentiles are made of. Tables have a million rows of which most count one duration or two, so that costs
/// nothing.
#[derive(Debug, Clone, Default, PartialEq)]
enum DurationSamples {
    /// None, as where only sums were printed.
    #[default]
    None,
    /// One: the sum is it.
    One(u64),
    /// As they are, none of them above four seconds: of a hundred thousand threads each has some.
    Exact(Vec<u32>),
    /// As they are.
    #[allow(
        clippy::box_collection,
        reason = "it makes all that have others smaller by sixteen bytes"
    )]
    ExactLong(Box<Vec<u64>>),
    /// Counted in buckets.
    Buckets(Box<DurationBuckets>),
}

impl DurationSamples {
    /// Returns those that are kept as they are.
    fn exact(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let (short, long): (&[u32], &[u64]) = match self {
            DurationSamples::One(ns) => (&[], std::slice::from_ref(ns)),
            DurationSamples::Exact(list) => (list, &[]),
            DurationSamples::ExactLong(list) => (&[], list),
            DurationSamples::None | DurationSamples::Buckets(_) => (&[], &[]),
        };
        let at = move |at: usize| short.get(at).map_or_else(|| long[at], |&ns| u64::from(ns));
        (0..short.len() + long.len()).map(at)
    }

    /// Returns the buckets, where durations are counted.
    fn buckets(&self) -> Option<&DurationBuckets> {
        match self {
            DurationSamples::Buckets(buckets) => Some(buckets),
            _ => None,
        }
    }

    /// Returns durations and how many there are of each: as they are, or the middles of buckets, the lowest first.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let exact = self.exact().map(|ns| (ns, 1));
        exact.chain(self.buckets().into_iter().flat_map(DurationBuckets::counts))
    }

    #[inline]
    fn add(&mut self, ns: u64) {
        match self {
            DurationSamples::None => *self = DurationSamples::One(ns),
            DurationSamples::Exact(list) if list.len() < EXACT && ns <= SHORT_NS => {
                list.push(ns as u32);
            }
            DurationSamples::Buckets(buckets) => buckets.add(ns),
            DurationSamples::ExactLong(list) if list.len() < EXACT => list.push(ns),
            _ if self.exact().len() >= EXACT => self.count(|buckets| buckets.add(ns)),
            _ => self.another(ns),
        }
    }

    /// Adds one where it does not fit in what there is.
    #[cold]
    fn another(&mut self, ns: u64) {
        let mut list: Vec<u64> = self.exact().collect();
        list.push(ns);
        let short = list.iter().map(|&ns| u32::try_from(ns).ok());
        *self = match short.collect() {
            Some(short) => DurationSamples::Exact(short),
            None => DurationSamples::ExactLong(Box::new(list)),
        };
    }

    /// Puts all into buckets, and more.
    fn count(&mut self, more: impl FnOnce(&mut DurationBuckets)) {
        let mut buckets = match std::mem::take(self) {
            DurationSamples::Buckets(buckets) => buckets,
            few => {
                let mut buckets = Box::<DurationBuckets>::default();
                for ns in few.exact() {
                    buckets.add(ns);
                }
                buckets
            }
        };
        more(&mut buckets);
        *self = DurationSamples::Buckets(buckets);
    }
}

/// Returns the square of a number.
#[inline]
fn square(ns: u64) -> u128 {
    u128::from(ns) * u128::from(ns)
}

impl Stats {
    /// Returns sums without durations, as a table that somebody printed has them: without percentiles, of which
    /// [`Stats::percentile`] then returns the maximum. `relative_error` is as in [`Stats::relative_error`].
    pub fn of_sums(count: u64, total: u64, min: u64, max: u64, relative_error: f64) -> Stats {
        let mean = total.checked_div(count).unwrap_or(0);
        let error = relative_error * mean as f64;
        let count_f = count as f64;
        let distances = error * error * count_f * (count_f - 1.0).max(0.0);
        Stats {
            count,
            total: u128::from(total),
            min,
            max,
            squares: square(mean)
                .wrapping_mul(u128::from(count))
                .wrapping_add(distances as u128),
            ..Stats::default()
        }
    }

    /// Returns whether durations were added, so that there are percentiles.
    pub fn has_percentiles(&self) -> bool {
        self.durations != DurationSamples::None
    }

    /// Adds one duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        if self.count == 0 {
            self.min = ns;
            self.max = ns;
        } else {
            self.min = self.min.min(ns);
            self.max = self.max.max(ns);
        }
        self.count += 1;
        self.total += u128::from(ns);
        self.squares = self.squares.wrapping_add(square(ns));
        self.durations.add(ns);
    }

    /// Adds all durations of another.
    pub fn merge(&mut self, other: &Stats) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        self.squares = self.squares.wrapping_add(other.squares);
        // Rows of a printed table may say any number.
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let theirs = other.durations.exact();
        if other.durations.buckets().is_none()
            && self.durations.buckets().is_none()
            && self.durations.exact().len() + theirs.len() <= EXACT
        {
            for ns in theirs {
                self.durations.add(ns);
            }
            return;
        }
        self.durations.count(|counted| {
            for ns in theirs {
                counted.add(ns);
            }
            if let Some(theirs) = other.durations.buckets() {
                counted.merge(theirs);
            }
        });
    }

    /// Gives back memory that was taken for durations to come, once none will.
    pub fn settle(&mut self) {
        match &mut self.durations {
            DurationSamples::Exact(list) => list.shrink_to_fit(),
            DurationSamples::ExactLong(list) => list.shrink_to_fit(),
            DurationSamples::None | DurationSamples::One(_) | DurationSamples::Buckets(_) => {}
        }
    }

    /// Returns how many durations there are from each power of two to the next: its lower end, its upper, which
    /// is not included, and the count. Those without any at either end are left out.
    pub fn octaves(&self) -> Vec<(u64, u64, u64)> {
        let mut counts = [0u64; 65];
        let octave = |ns: u64| (64 - ns.leading_zeros()) as usize;
        for (ns, count) in self.durations.counts() {
            counts[octave(ns)] += count;
        }
        let first = counts.iter().position(|&n| n > 0);
        let last = counts.iter().rposition(|&n| n > 0);
        let (Some(first), Some(last)) = (first, last) else {
            return Vec::new();
        };
        let range = |at: usize| match at {
            0 => (0, 1),
            64 => (1 << 63, u64::MAX),
            _ => (1 << (at - 1), 1 << at),
        };
        (first..=last)
            .map(|at| (range(at).0, range(at).1, counts[at]))
            .collect()
    }

    /// Returns how many durations there are in each of sixteen buckets to a power of two: the bucket's lower end, its
    /// upper, which is not included, and the count. Buckets of several recordings have the same ends, so that counts
    /// add up; those without any are left out.
    pub fn sixteenths(&self) -> Vec<(u64, u64, u64)> {
        let mut counts: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (ns, count) in self.durations.counts() {
            let width = 1 << (63 - (ns | 1).leading_zeros()).saturating_sub(4);
            let low = ns / width * width;
            let into = counts.entry(low).or_insert((low.saturating_add(width), 0));
            into.1 += count;
        }
        let counts = counts.into_iter();
        counts
            .map(|(low, (high, count))| (low, high, count))
            .collect()
    }

    /// Returns how many durations there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns their sum, `u64::MAX` at most.
    pub fn total(&self) -> u64 {
        u64::try_from(self.total).unwrap_or(u64::MAX)
    }

    /// Returns the shortest; 0 when there are none.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// Returns the longest; 0 when there are none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean, rounded to nanoseconds; 0 when there are none.
    pub fn mean(&self) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let count = u128::from(self.count);
        u64::try_from((self.total + count / 2) / count).unwrap_or(u64::MAX)
    }

    /// Returns the mean as a number.
    pub fn mean_f64(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.total as f64 / self.count as f64
        }
    }

    /// Returns the standard error of the mean as a share of it, what `perf kvm stat` prints behind `+-`.
    pub fn relative_error(&self) -> f64 {
        let mean = self.mean_f64();
        if self.count < 2 || mean == 0.0 {
            return 0.0;
        }
        // Squares of distances from the whole part of the mean: a number that fits, whatever the steps to it do not.
        let (count, whole) = (u128::from(self.count), self.total / u128::from(self.count));
        let middle = whole.wrapping_mul(whole).wrapping_mul(count);
        let twice = whole.wrapping_mul(2).wrapping_mul(self.total);
        let distances = self.squares.wrapping_add(middle).wrapping_sub(twice);
        let shift = mean - whole as f64;
        let count = count as f64;
        let variance = ((distances as f64 - count * shift * shift) / (count - 1.0)).max(0.0);
        (variance / count).sqrt() / mean
    }

    /// Returns the duration that this share (0 to 1) of all do not exceed: the one of rank
    /// `ceil(share * count)`. 0 when there are none.
    pub fn percentile(&self, share: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
        if !self.has_percentiles() {
            return self.max;
        }
        let Some(buckets) = self.durations.buckets() else {
            let mut sorted: Vec<u64> = self.durations.exact().collect();
            sorted.sort_unstable();
            // Fewer than the count where sums without durations were merged in.
            return sorted.get((rank - 1) as usize).copied().unwrap_or(self.max);
        };
        let mut seen = 0u64;
        for (middle, count) in buckets.counts() {
            seen += count;
            if seen >= rank {
                return middle.clamp(self.min, self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that somebody printed may say that there were as many as a number holds.
    #[test]
    fn sums_of_printed_rows_end_at_the_highest_number() {
        let mut stats = Stats::of_sums(u64::MAX - 1, 5, 1, 2, 0.0);
        stats.merge(&Stats::of_sums(3, 6, 1, 2, 0.0));
        assert_eq!((stats.count(), stats.total()), (u64::MAX, 11));
    }

    /// Buckets are the same whether durations are kept as they are or counted, and none is wider than a sixteenth.
    #[test]
    fn buckets_of_sixteenths_add_up() {
        let (mut few, mut many) = (Stats::default(), Stats::default());
        let durations = [
            0,
            1,
            15,
            16,
            17,
            31,
            32,
            1_000,
            1_023,
            1_024,
            999_999_999,
            u64::MAX,
        ];
        for ns in durations {
            few.add(ns);
            for _ in 0..EXACT {
                many.add(ns);
            }
        }
        let times = |list: Vec<(u64, u64, u64)>, by: u64| -> Vec<(u64, u64, u64)> {
            list.into_iter()
                .map(|(low, high, n)| (low, high, n * by))
                .collect()
        };
        assert_eq!(times(few.sixteenths(), EXACT as u64), many.sixteenths());
        for (low, high, _) in few.sixteenths() {
            assert!(durations.iter().any(|ns| (low..=high).contains(ns)));
            assert!(high - low <= (low / 16).max(1), "{low} to {high}");
        }
    }

    #[test]
    fn few_durations_have_exact_percentiles() {
        let mut stats = Stats::default();
        for ns in [50, 10, 40, 20, 30] {
            stats.add(ns);
        }
        assert_eq!(
            (stats.count(), stats.total(), stats.min(), stats.max()),
            (5, 150, 10, 50)
        );
        assert_eq!(
            (
                stats.percentile(0.5),
                stats.percentile(0.9),
                stats.percentile(0.99)
            ),
            (30, 50, 50)
        );
        assert_eq!(stats.mean(), 30);
        // Standard deviation 15.811, error of the mean 7.071, a share of 0.2357.
        assert!((stats.relative_error() - 0.2357).abs() < 1e-4);
    }

    #[test]
    fn many_durations_have_percentiles_within_a_bucket() {
        let mut stats = Stats::default();
        for ns in 1..=100_000u64 {
            stats.add(ns * 7);
        }
        for (share, exact) in [(0.5, 350_000.0), (0.9, 630_000.0), (0.99, 693_000.0)] {
            let got = stats.percentile(share) as f64;
            assert!(
                (got - exact).abs() / exact < 1.0 / 64.0,
                "{share}: {got} against {exact}"
            );
        }
        assert_eq!(stats.percentile(1.0), 700_000);
    }

    #[test]
    fn rows_of_few_durations_are_small() {
        // Tables have many of them.
        assert!(size_of::<Stats>() <= 80, "{}", size_of::<Stats>());
        let mut one = Stats::default();
        one.add(7);
        assert_eq!(one.percentile(0.5), 7);
        assert!(one.durations.exact().eq([7]));
        assert!(
            matches!(one.durations, DurationSamples::One(7)),
            "nothing is allocated for one"
        );
        let mut sums = Stats::of_sums(3, 30, 5, 15, 0.0);
        assert!(!sums.has_percentiles());
        sums.merge(&one);
        assert_eq!(
            (sums.count(), sums.percentile(0.25), sums.percentile(1.0)),
            (4, 7, 15)
        );
    }

    /// Whatever the order in which long and short ones come.
    #[test]
    fn long_durations_are_kept_as_they_are_too() {
        for long_at in [0, 1, 2, 50, 127] {
            let mut stats = Stats::default();
            for n in 0..128 {
                stats.add(if n == long_at { 1 << 40 } else { n });
            }
            assert!(stats.durations.buckets().is_none());
            assert_eq!((stats.percentile(1.0), stats.count()), (1 << 40, 128));
            let few: u64 = stats.durations.exact().sum();
            assert_eq!(few, (0..128).sum::<u64>() - long_at + (1 << 40));
            stats.add(3);
            let counted = stats.durations.counts().map(|(_, count)| count);
            assert!(stats.durations.buckets().is_some());
            assert_eq!(counted.sum::<u64>(), 129);
        }
    }

    #[test]
    fn octaves_count_every_duration_once() {
        let mut stats = Stats::default();
        for ns in [0, 1, 2, 3, 4, 7, 8] {
            stats.add(ns);
        }
        let expected = [(0, 1, 1), (1, 2, 1), (2, 4, 2), (4, 8, 2), (8, 16, 1)];
        assert_eq!(stats.octaves(), expected);
        for ns in 0..1000 {
            stats.add(ns * 1000);
        }
        let counted: u64 = stats.octaves().iter().map(|o| o.2).sum();
        assert_eq!(counted, stats.count());
        let of_512 = stats.octaves().into_iter().find(|o| o.0 == 1 << 19);
        assert_eq!(of_512, Some((1 << 19, 1 << 20, 1000 - 525)));
    }

    #[test]
    fn merging_gives_what_one_would_have_counted() {
        let (mut one, mut left, mut right) = (Stats::default(), Stats::default(), Stats::default());
        for ns in (0..300u64).map(|n| n * n % 7919) {
            one.add(ns);
            if ns % 3 == 0 {
                left.add(ns)
            } else {
                right.add(ns)
            }
        }
        left.merge(&right);
        assert_eq!(
            (
                left.count(),
                left.total(),
                left.min(),
                left.max(),
                left.percentile(0.9)
            ),
            (
                one.count(),
                one.total(),
                one.min(),
                one.max(),
                one.percentile(0.9)
            )
        );
        assert!((left.relative_error() - one.relative_error()).abs() < 1e-9);
    }
}
