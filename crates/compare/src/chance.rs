//! How likely it is that a difference is more than what varies within recordings anyway.
//!
//! Sums are as sure as their blocks of slices of time are alike; blocks, because what happens in one slice goes on in
//! the next (circular block bootstrap: Politis and Romano, 1992; there is a formula for what drawing without end comes
//! to). What is found on both sides is pooled, because the question is how often two recordings of the same differ as
//! much: a row that one side does not have shows nothing of its bursts. Where a side has several recordings, what
//! differs from run to run counts as well. Quantiles are compared by the ranks that they have on the other side. Sums
//! that somebody printed have nothing but themselves: they are taken to come in bursts of ten. The more is compared,
//! the more differs by chance: [`adjust`] takes that back.

use stats::Stats;

use crate::student::two_sided;

/// Slices that are enough to resample.
pub(crate) const ENOUGH: usize = 12;
/// Sums of which slices of time hold less have no slices: those that are kept are not of all that happened.
pub(crate) const COVERED: f64 = 0.9;
/// How many of a printed count come together, at a guess that errs on the side of noise.
pub(crate) const BURST: f64 = 10.0;
/// Degrees of freedom where nothing is estimated from slices.
const MANY: f64 = 200.0;

/// What happened in one slice of time.
pub(crate) type SliceCounts = Vec<f64>;

/// A sum of one recording or printed table.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledSum {
    /// The sum.
    pub sum: f64,
    /// The sum of the squares of what it is a sum of; for a count the count.
    pub squares: f64,
    /// What it is divided by.
    pub exposure: f64,
    /// How much happened in each slice of time, if there are slices.
    pub slices: SliceCounts,
}

/// Returns the variance of a sum over slices of time, and from how many blocks it is known; `None` if they are too few.
fn variance(slices: &[f64]) -> Option<(f64, f64)> {
    if slices.len() < ENOUGH {
        return None;
    }
    let block = (slices.len() as f64).cbrt().ceil() as usize;
    let blocks = slices.len() as f64 / block as f64;
    // What drawing blocks again without end comes to: they are independent, so their variances add up.
    let (whole, rest) = (slices.len() / block, slices.len() % block);
    let spread = whole as f64 * of_blocks(slices, block) + of_blocks(slices, rest);
    // Blocks of a sample vary less than those of what it is a sample of.
    Some((spread * blocks / (blocks - 1.0), blocks))
}

/// Returns the variance of the sum of so many slices in a row, wherever they begin; behind the last comes the first.
fn of_blocks(slices: &[f64], block: usize) -> f64 {
    let count = slices.len();
    let mean = slices.iter().sum::<f64>() / count.max(1) as f64 * block as f64;
    let mut sum: f64 = slices.iter().take(block).sum();
    let mut squares = 0.0;
    for begin in 0..count {
        squares += (sum - mean) * (sum - mean);
        sum += slices[(begin + block) % count] - slices[begin];
    }
    squares / count.max(1) as f64
}

/// Returns the probability that the rates (sums for each unit of exposure) of two sides differ as much by chance.
pub(crate) fn rates(a: &[SampledSum], b: &[SampledSum]) -> f64 {
    let sum = |runs: &[SampledSum], of: fn(&SampledSum) -> f64| runs.iter().map(of).sum::<f64>();
    let (exposure_a, exposure_b) = (sum(a, |run| run.exposure), sum(b, |run| run.exposure));
    if exposure_a <= 0.0 || exposure_b <= 0.0 {
        return 1.0;
    }
    let rate = |runs: &[SampledSum], exposure: f64| sum(runs, |run| run.sum) / exposure;
    let difference = rate(b, exposure_b) - rate(a, exposure_a);
    if difference == 0.0 {
        return 1.0;
    }
    let both = [a, b];
    let (mut spread, mut least, mut freedom) = (0.0, 0.0, 0.0);
    for run in both.iter().flat_map(|runs| runs.iter()) {
        least += run.squares;
        match variance(&run.slices) {
            Some((variance, blocks)) => {
                spread += variance;
                freedom += blocks - 1.0;
            }
            None => spread += run.squares * BURST,
        }
    }
    // A sum is never known better than what it is made of allows.
    let within = f64::max(spread, least) / (exposure_a + exposure_b);
    let within = within * (1.0 / exposure_a + 1.0 / exposure_b);
    let freedom = if freedom > 0.0 { freedom } else { MANY };
    let (between, runs) = between(both.map(|runs| {
        let each = runs.iter().filter(|run| run.exposure > 0.0);
        each.map(|run| (run.sum / run.exposure, run.exposure))
            .collect()
    }));
    of(difference, within, freedom, between, runs)
}

/// Returns the probability that the means of runs differ as much by what differs from run to run; 0 where no side has
/// several.
pub(crate) fn runs(sides: [Vec<f64>; 2]) -> f64 {
    let mean = |runs: &Vec<f64>| runs.iter().sum::<f64>() / runs.len().max(1) as f64;
    let difference = mean(&sides[1]) - mean(&sides[0]);
    let (variance, freedom) =
        between(sides.map(|runs| runs.iter().map(|run| (*run, 1.0)).collect()));
    if freedom > 0.0 && variance > 0.0 {
        two_sided(difference / variance.sqrt(), freedom)
    } else {
        0.0
    }
}

/// Returns the variance of a difference of means by what differs from run to run, and its degrees of freedom.
fn between(sides: [Vec<(f64, f64)>; 2]) -> (f64, f64) {
    let (mut squares, mut freedom, mut share) = (0.0, 0.0, 0.0);
    for runs in &sides {
        let count = runs.len() as f64;
        let mean = runs.iter().map(|run| run.0).sum::<f64>() / count.max(1.0);
        squares += runs.iter().map(|run| (run.0 - mean).powi(2)).sum::<f64>();
        freedom += (count - 1.0).max(0.0);
        // A long run among short ones is most of the mean.
        let weight: f64 = runs.iter().map(|run| run.1).sum();
        let heavy: f64 = runs.iter().map(|run| run.1 * run.1).sum();
        share += if weight > 0.0 {
            heavy / (weight * weight)
        } else {
            0.0
        };
    }
    if freedom > 0.0 {
        (squares / freedom * share, freedom)
    } else {
        (0.0, 0.0)
    }
}

/// Returns the probability of a difference of nothing, by its variance from within runs and from between them.
fn of(difference: f64, within: f64, freedom: f64, between: f64, runs: f64) -> f64 {
    let added = (between - within).max(0.0);
    let variance = within + added;
    if variance <= 0.0 {
        return 0.0;
    }
    // Degrees of freedom of a sum of variances (Satterthwaite, 1946).
    let parts = within * within / freedom.max(1.0)
        + if runs > 0.0 {
            added * added / runs
        } else {
            0.0
        };
    two_sided(difference / variance.sqrt(), variance * variance / parts)
}

/// Returns the probability that two shares (parts of how many) differ as much by chance, where each comes in bursts.
pub(crate) fn shares(a: (f64, f64), b: (f64, f64), burst: f64) -> f64 {
    if a.1 <= 0.0 || b.1 <= 0.0 {
        return 1.0;
    }
    let difference = b.0 / b.1 - a.0 / a.1;
    let pooled = ((a.0 + b.0) / (a.1 + b.1)).clamp(0.0, 1.0);
    let variance = pooled * (1.0 - pooled) * (1.0 / a.1 + 1.0 / b.1) * burst;
    if difference == 0.0 || variance <= 0.0 {
        return 1.0;
    }
    two_sided(difference / variance.sqrt(), MANY)
}

/// Returns the probability that two means differ as much by chance, of sums that were printed or whose slices cannot
/// be compared.
pub(crate) fn means(a: &Stats, b: &Stats) -> f64 {
    let error = |stats: &Stats| stats.relative_error() * stats.mean_f64();
    let variance = (error(a).powi(2) + error(b).powi(2)) * BURST;
    let difference = b.mean_f64() - a.mean_f64();
    if difference == 0.0 || variance <= 0.0 {
        return 1.0;
    }
    let least = a.count().min(b.count()).saturating_sub(1) as f64;
    two_sided(difference / variance.sqrt(), least)
}

/// Returns by how much the variance of a mean is larger than if all durations were independent, from how many there
/// were in each slice and how long they took.
pub(crate) fn design(runs: &[(SliceCounts, SliceCounts)], stats: &Stats) -> f64 {
    let count: f64 = runs.iter().flat_map(|run| &run.0).sum();
    let ns: f64 = runs.iter().flat_map(|run| &run.1).sum();
    let deviation = stats.relative_error() * stats.mean_f64();
    if count < 2.0 || deviation <= 0.0 {
        return 1.0;
    }
    let mean = ns / count;
    let mut spread = 0.0;
    for (counts, times) in runs {
        let rest: SliceCounts = counts
            .iter()
            .zip(times)
            .map(|(count, ns)| ns - mean * count)
            .collect();
        match variance(&rest) {
            Some((variance, _)) => spread += variance,
            None => return BURST,
        }
    }
    (spread / (count * count) / (deviation * deviation)).max(1.0)
}

/// Returns the probability that a quantile (0 to 1) differs as much by chance: by what share of the other side's
/// durations lie below it. `design` is how many times less is known than from independent durations.
pub(crate) fn quantiles(a: &Stats, b: &Stats, share: f64, design: f64) -> f64 {
    if !a.has_percentiles() || !b.has_percentiles() {
        return 1.0;
    }
    let away = f64::min(
        off(b, a.percentile(share), share),
        off(a, b.percentile(share), share),
    );
    ranks(away, share, [a.count() as f64, b.count() as f64], design)
}

/// Returns the probability that a quantile (0 to 1) is so far away by chance, by the share of values that lie between,
/// of so many values on both sides.
pub(crate) fn ranks(away: f64, share: f64, counts: [f64; 2], design: f64) -> f64 {
    let variance = share * (1.0 - share) * (1.0 / counts[0] + 1.0 / counts[1]) * design;
    if away <= 0.0 || variance <= 0.0 {
        return 1.0;
    }
    two_sided(away / variance.sqrt(), MANY)
}

/// Returns how far the share of durations below a value is from one that is expected. Durations that equal the value
/// may lie on either side.
fn off(stats: &Stats, value: u64, share: f64) -> f64 {
    // How many ranks have a duration for which this holds, which it does up to some rank.
    let ranks = |holds: &dyn Fn(u64) -> bool| {
        let count = stats.count();
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            // Half a rank below, so that rounding up ends at the rank.
            let at = stats.percentile((middle as f64 + 0.5) / count as f64);
            if holds(at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low as f64 / count.max(1) as f64
    };
    let below = ranks(&|at| at < value);
    let up_to = ranks(&|at| at <= value);
    (below - share).max(share - up_to).max(0.0)
}

/// Returns, for each probability, the share of noise among what is reported if everything up to it is reported
/// (Benjamini and Hochberg, 1995).
pub(crate) fn adjust(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|x, y| probabilities[*y].total_cmp(&probabilities[*x]));
    let mut out = vec![1.0; probabilities.len()];
    let mut least: f64 = 1.0;
    for (worse, at) in order.iter().enumerate() {
        let rank = (probabilities.len() - worse) as f64;
        least = least.min(probabilities[*at] * probabilities.len() as f64 / rank);
        out[*at] = least;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(amounts: impl Iterator<Item = f64>) -> SampledSum {
        let slices: SliceCounts = amounts.collect();
        let sum = slices.iter().sum();
        SampledSum {
            sum,
            squares: sum,
            exposure: 1.0,
            slices,
        }
    }

    #[test]
    fn the_variance_of_a_sum_is_that_of_its_blocks() {
        // Amounts of 90 and 110 by turns of four: blocks of four are 360 or 440, so sixteen of them vary by 160.
        let slices: SliceCounts = (0..64)
            .map(|n| if n / 4 % 2 == 0 { 90.0 } else { 110.0 })
            .collect();
        let (variance, blocks) = variance(&slices).unwrap();
        assert!((80.0..240.0).contains(&variance.sqrt()), "{variance}");
        assert_eq!(blocks, 16.0);
        assert_eq!(super::variance(&slices[..ENOUGH - 1]), None);
    }

    #[test]
    fn bursts_are_noise_and_steady_rates_are_not() {
        let steady = |amount: f64| run((0..64).map(move |_| amount));
        assert!(rates(&[steady(100.0)], &[steady(110.0)]) < 1e-4);
        let bursts =
            |at: usize| run((0..64).map(move |n| if n / 8 % 4 == at { 400.0 } else { 0.0 }));
        assert_eq!(rates(&[bursts(0)], &[bursts(2)]), 1.0);
        let one = run((0..64).map(|n| if (8..12).contains(&n) { 100.0 } else { 0.0 }));
        let none = run((0..64).map(|_| 0.0));
        assert!(rates(&[one], &[none]) > 0.05);
    }

    #[test]
    fn few_in_a_long_time_say_little_of_a_short_one() {
        let of = |count: f64, exposure: f64| SampledSum {
            sum: count,
            squares: count,
            exposure,
            slices: vec![count / 64.0; 64],
        };
        assert!(rates(&[of(12.0, 10.0)], &[of(0.0, 1.0)]) > 0.1);
        assert!(rates(&[of(120.0, 10.0)], &[of(0.0, 10.0)]) < 1e-4);
    }

    #[test]
    fn runs_that_differ_are_noise() {
        let steady = |amount: f64| run((0..64).map(move |_| amount));
        let apart = [steady(80.0), steady(120.0), steady(100.0)];
        let close = [steady(99.0), steady(101.0), steady(100.0)];
        let more = [steady(124.0), steady(125.0), steady(126.0)];
        assert!(rates(&apart, &[steady(124.0), steady(90.0), steady(150.0)]) > 0.05);
        assert!(rates(&close, &more) < 1e-4);
    }

    #[test]
    fn quantiles_are_distinguished_by_ranks() {
        let of = |count: u64, from: u64| {
            let mut stats = Stats::default();
            for n in 0..count {
                stats.add(from + n * 1000);
            }
            stats
        };
        assert!(quantiles(&of(100, 0), &of(100, 30_000), 0.5, 1.0) < 1e-3);
        assert!(quantiles(&of(100, 0), &of(100, 30_000), 0.5, 10.0) > 0.05);
        assert!(quantiles(&of(6, 0), &of(6, 90_000), 0.99, 1.0) > 0.5);
        // Many equal durations are of no rank.
        let mut one = Stats::default();
        let mut other = Stats::default();
        for n in 0..100 {
            one.add(if n < 52 { 10 } else { 20 });
            other.add(if n < 48 { 10 } else { 20 });
        }
        assert!(quantiles(&one, &other, 0.5, 1.0) > 0.5);
    }

    #[test]
    fn what_hangs_together_counts_less() {
        let mut stats = Stats::default();
        let (mut counts, mut times) = (Vec::new(), Vec::new());
        for slice in 0..64u64 {
            let ns = if slice / 8 % 2 == 0 { 1000 } else { 3000 };
            for _ in 0..10 {
                stats.add(ns);
            }
            counts.push(10.0);
            times.push(10.0 * ns as f64);
        }
        assert!(design(&[(counts.clone(), times)], &stats) > 10.0);
        let even = vec![20_000.0; 64];
        assert_eq!(design(&[(counts, even)], &stats), 1.0);
    }

    #[test]
    fn many_comparisons_are_taken_back() {
        let adjusted = adjust(&[0.01, 0.5, 0.02, 1.0]);
        for (ours, expected) in adjusted.iter().zip([0.04, 0.666_666, 0.04, 1.0]) {
            assert!((ours - expected).abs() < 1e-5, "{adjusted:?}");
        }
        assert!(adjust(&[]).is_empty());
    }
}
