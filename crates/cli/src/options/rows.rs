//! How many rows a terminal's tables have.

use clap::Args;

/// How many rows a terminal's tables have.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct RowLimit {
    /// Show only the first N rows of each table. JSON and CSV have all.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl RowLimit {
    /// Returns how many rows are shown; all where nothing else was asked for.
    pub(crate) fn rows(self) -> usize {
        self.rows_or(usize::MAX)
    }

    /// Returns how many rows are shown, and so many where nothing else was asked for.
    pub(crate) fn rows_or(self, ordinary: usize) -> usize {
        self.limit.unwrap_or(ordinary)
    }
}
