//! How text is laid out.

use analysis::Stats;
use words::duration;

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns of the terminal, that sentences are broken at.
    pub width: usize,
    /// Rows of a table, or items of a list, at most; what is beyond is counted.
    pub limit: usize,
    /// Whether times are nanoseconds; ticks of unknown rate are printed as numbers.
    pub nanoseconds: bool,
}

impl Layout {
    /// Returns a duration as it is printed.
    pub(crate) fn time(self, ns: u64) -> String {
        duration::of(ns, self.nanoseconds)
    }

    /// Returns a mean as it is printed, `-` of nothing. Times the number it is the printed total, within what the last
    /// digits of both leave open.
    pub(crate) fn mean(self, times: &Stats) -> String {
        match (times.count(), self.nanoseconds) {
            (0, _) => "-".to_owned(),
            (_, true) => duration::mean(times.mean_f64()),
            (_, false) => times.mean().to_string(),
        }
    }

    /// Returns a duration as it is printed; `-` where there is none.
    pub(crate) fn known_time(self, ns: Option<u64>) -> String {
        ns.map_or_else(|| "-".to_owned(), |ns| self.time(ns))
    }
}
