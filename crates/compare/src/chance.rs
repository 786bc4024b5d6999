//! How likely it is that a difference is more than what varies within recordings anyway.
//!
//! Rates are resampled by slices of time, in blocks, because what happens in one slice goes on in the next (circular
//! block bootstrap: Politis and Romano, 1992). Where there are several recordings on a side, whole recordings are
//! resampled first, so that what differs from run to run counts as noise too. Quantiles get the binomial interval of
//! their ranks. Counts that somebody printed have nothing but themselves: they are taken to be bursts of ten.

use stats::Stats;

/// Resamples; the standard error then is within some per cent.
const RESAMPLES: usize = 400;
/// Slices that are enough to resample.
const ENOUGH: usize = 6;
/// How many of a printed count come together, at a guess that errs on the side of noise.
const BURST: f64 = 10.0;

/// What happened in one slice of time: how much, and in how many nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Slice {
    pub amount: f64,
    pub ns: f64,
}

/// A generator of pseudo-random numbers, always the same ones: the same input gives the same answer.
/// (xorshift64*, Vigna 2016.)
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        (number as usize) % bound.max(1)
    }
}

/// Returns the standard error of a rate (amount for each nanosecond) over the slices of several recordings; `None` if
/// they are too few to tell.
pub(crate) fn rate_error(recordings: &[Vec<Slice>]) -> Option<f64> {
    let kept: Vec<&Vec<Slice>> = recordings
        .iter()
        .filter(|slices| slices.len() >= ENOUGH)
        .collect();
    if kept.is_empty() {
        return None;
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..RESAMPLES {
        let (mut amount, mut ns) = (0.0, 0.0);
        for _ in 0..kept.len() {
            let slices = kept[random.below(kept.len())];
            let block = ((slices.len() as f64).cbrt().ceil() as usize).max(1);
            let mut left = slices.len();
            while left > 0 {
                let begin = random.below(slices.len());
                for step in 0..block.min(left) {
                    let slice = slices[(begin + step) % slices.len()];
                    amount += slice.amount;
                    ns += slice.ns;
                }
                left -= block.min(left);
            }
        }
        let rate = if ns > 0.0 { amount / ns } else { 0.0 };
        sum += rate;
        squares += rate * rate;
    }
    let count = RESAMPLES as f64;
    let mean = sum / count;
    Some((squares / count - mean * mean).max(0.0).sqrt())
}

/// Returns the standard error of a count that has nothing but itself.
pub(crate) fn count_error(count: f64) -> f64 {
    (count.max(1.0) * BURST).sqrt()
}

/// Returns the standard error of a quantile (0 to 1).
pub(crate) fn quantile_error(stats: &Stats, share: f64) -> Option<f64> {
    let count = stats.count() as f64;
    if stats.count() < 8 || !stats.has_percentiles() {
        return None;
    }
    let half = 1.96 * (share * (1.0 - share) / count).sqrt();
    let low = stats.percentile((share - half).max(0.0)) as f64;
    let high = stats.percentile((share + half).min(1.0)) as f64;
    // A quantile whose neighbours are all the same is still not known better than its bucket.
    let width = (high - low).max(stats.percentile(share) as f64 / 64.0);
    Some(width / 3.92)
}

/// Returns the confidence (0 to 1) that two numbers with these standard errors differ: one minus the two-sided
/// probability of so large a difference if they did not.
pub(crate) fn confidence(difference: f64, error_a: f64, error_b: f64) -> f64 {
    let error = error_a.hypot(error_b);
    if difference == 0.0 {
        return 0.0;
    }
    if error == 0.0 {
        return 1.0;
    }
    erf((difference / error).abs() / std::f64::consts::SQRT_2)
}

/// The error function of a number that is not negative, to seven digits (Abramowitz and Stegun, 7.1.26).
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let sum = series
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    (1.0 - sum * (-x * x).exp()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(amounts: impl Iterator<Item = f64>) -> Vec<Slice> {
        amounts.map(|amount| Slice { amount, ns: 1e6 }).collect()
    }

    #[test]
    fn the_error_of_a_rate_is_that_of_its_mean() {
        // Amounts of 90 and 110 by turns of four: mean 100, and a deviation of 10 that blocks keep together.
        let of = slices((0..64).map(|n| if n / 4 % 2 == 0 { 90.0 } else { 110.0 }));
        let error = rate_error(&[of]).unwrap() * 1e6;
        assert!((0.8..3.5).contains(&error), "{error}");
        // What does not vary has no error, and too little to tell has none to tell.
        assert_eq!(
            rate_error(&[slices((0..64).map(|_| 5.0))]).map(|e| e < 1e-12),
            Some(true)
        );
        assert_eq!(rate_error(&[slices((0..5).map(|_| 5.0))]), None);
    }

    #[test]
    fn runs_that_differ_are_noise() {
        let steady = |amount: f64| slices((0..32).map(move |_| amount));
        let within = rate_error(&[steady(100.0), steady(100.0)]).unwrap();
        let between = rate_error(&[steady(80.0), steady(120.0)]).unwrap();
        assert!(within < 1e-9 && between * 1e6 > 5.0, "{within} {between}");
    }

    #[test]
    fn confidence_follows_the_normal_distribution() {
        assert!((confidence(1.96, 1.0, 0.0) - 0.95).abs() < 1e-3);
        assert!((confidence(-2.576, 1.0, 0.0) - 0.99).abs() < 1e-3);
        assert_eq!(
            (confidence(0.0, 1.0, 1.0), confidence(1.0, 0.0, 0.0)),
            (0.0, 1.0)
        );
    }

    #[test]
    fn quantiles_of_few_are_uncertain() {
        let mut few = Stats::default();
        let mut many = Stats::default();
        for n in 0..1000u64 {
            if n % 50 == 0 {
                few.add(n * 1000);
            }
            many.add(n * 1000);
        }
        assert!(quantile_error(&few, 0.5).unwrap() > 4.0 * quantile_error(&many, 0.5).unwrap());
        assert_eq!(
            quantile_error(&Stats::of_sums(100, 100, 1, 1, 0.0), 0.5),
            None
        );
    }
}
