//! What one cell of a table has counted so far. Whoever asks after each event sees which events the cell is made of.

use crate::Stats;

/// What one cell of a table has counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellSum {
    /// How many things.
    pub count: u64,
    /// Their time together, in the recording's unit; 0 where the cell counts no times.
    pub total_ns: u64,
}

impl CellSum {
    /// Returns the sums of a distribution.
    pub(crate) fn of(stats: &Stats) -> CellSum {
        CellSum {
            count: stats.count(),
            total_ns: stats.total(),
        }
    }

    /// Adds those of another one.
    #[must_use]
    pub fn and(self, other: CellSum) -> CellSum {
        CellSum {
            count: self.count.saturating_add(other.count),
            total_ns: self.total_ns.saturating_add(other.total_ns),
        }
    }

    /// Returns what came since it was less.
    #[must_use]
    pub fn since(self, before: CellSum) -> CellSum {
        CellSum {
            count: self.count.saturating_sub(before.count),
            total_ns: self.total_ns.saturating_sub(before.total_ns),
        }
    }
}
