//! Rows of printed tables whose numbers contradict each other: what is not computed from them.

use super::ExitsReport;
use super::rows::ExitRow;

/// From which share of a table such a row's number or time changes what the table says.
const MATERIAL: f64 = 0.01;

impl ExitsReport {
    /// Whether shares can be computed of rows whose own numbers agree: the sums are not those of rows that contradict
    /// others. It looks at all rows.
    pub fn has_shares(&self) -> bool {
        !(self.sums_of_rows && self.contradicting().next().is_some())
    }

    /// Returns the keys of the rows that contradict others and weigh enough to change what the table says; none of them
    /// if all agree.
    pub fn contradictions(&self) -> Vec<&str> {
        let weighs = |part: u64, all: u64| part as f64 >= MATERIAL * all.max(1) as f64;
        self.contradicting()
            .filter(|row| {
                weighs(row.count(), self.total_count) || weighs(row.stats.total(), self.total_ns)
            })
            .map(|row| row.key.as_str())
            .collect()
    }

    fn contradicting(&self) -> impl Iterator<Item = &ExitRow> {
        self.rows.iter().filter(|row| row.contradicts)
    }
}
