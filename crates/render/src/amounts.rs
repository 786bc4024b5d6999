//! Amounts that may not have been computed: of nothing there is no percentile, no mean and no share.

use analysis::Stats;

/// Returns something of durations; `None` where there are none.
pub(crate) fn of_any(times: &Stats, of: impl Fn(&Stats) -> u64) -> Option<u64> {
    (times.count() > 0).then(|| of(times))
}

/// Returns the duration that a share of all do not exceed; `None` of none, and of sums that a tool printed.
pub(crate) fn percentile(times: &Stats, share: f64) -> Option<u64> {
    times.has_percentiles().then(|| times.percentile(share))
}

/// Returns a part of a whole; `None` where the whole is nothing.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
