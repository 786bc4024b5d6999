//! How text is laid out.

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

    /// Returns a duration as it is printed; `-` where there is none.
    pub(crate) fn known_time(self, ns: Option<u64>) -> String {
        ns.map_or_else(|| "-".to_owned(), |ns| self.time(ns))
    }
}
