//! How many rows a terminal's tables have, and in which order.

use anyhow::Result;
use clap::Args;
use render::UnknownColumn;

use crate::usage::Usage;

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

/// By which column rows are sorted.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RowSort {
    /// Sort rows by a column, largest first: by what stands above it, or by its name in CSV.
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
}

impl RowSort {
    /// Sorts by the column that was asked for, if one was.
    pub(crate) fn apply(&self, sort: impl FnOnce(&str) -> Result<(), UnknownColumn>) -> Result<()> {
        let Some(column) = &self.sort else {
            return Ok(());
        };
        sort_by(column, sort)
    }
}

/// Sorts by a column. One that is not there is wrong usage.
pub(crate) fn sort_by(
    column: &str,
    sort: impl FnOnce(&str) -> Result<(), UnknownColumn>,
) -> Result<()> {
    sort(column).map_err(|error| Usage::error(format!("--sort: {error}")))
}
