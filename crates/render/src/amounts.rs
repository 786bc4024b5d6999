//! Amounts that may not have been computed: of nothing there is no percentile, no mean and no share.

use analysis::Stats;

use crate::paths::ALL;
use crate::table::Table;
use crate::table::Unit::Nanoseconds;

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

/// Adds columns of durations: percentiles, extremes, mean and sum.
pub(crate) fn durations<'t, R: 't>(mut table: Table<'t, R>, of: fn(&R) -> &Stats) -> Table<'t, R> {
    for (name, heading, share) in [
        ("p50_ns", "p50", 0.5),
        ("p90_ns", "p90", 0.9),
        ("p99_ns", "p99", 0.99),
    ] {
        table = table
            .column(name, Nanoseconds, move |row| percentile(of(row), share))
            .heading(heading, 9)
            .views(ALL)
            .page(heading);
    }
    table
        .column("max_ns", Nanoseconds, move |row| {
            of_any(of(row), Stats::max)
        })
        .heading("max", 9)
        .views(ALL)
        .page("max")
        .column("min_ns", Nanoseconds, move |row| {
            of_any(of(row), Stats::min)
        })
        .json_only()
        .page("min")
        .column("mean_ns", Nanoseconds, move |row| {
            of_any(of(row), Stats::mean)
        })
        .page("mean")
        .column("total_ns", Nanoseconds, move |row| of(row).total())
        .page("time")
}
