//! What a table of exits does not show, in sentences.

use event::ExitReason;

use super::{ExitsReport, Unpaired};

impl ExitsReport {
    /// Returns a sentence about the keys that have no row of their own, if there are any.
    pub fn warning(&self) -> Option<String> {
        let others = self.rows.iter().find(|row| row.is_others())?;
        Some(format!(
            "The table {} has {} rows, as many as are kept apart: {} more were counted in its row \"{}\".",
            self.table.name(),
            self.rows.len().saturating_sub(1),
            others.stats.count(),
            others.key
        ))
    }
}

impl Unpaired {
    /// Returns a sentence for each way in which exits could not be timed.
    pub fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        if !self.before_first_entry.is_empty() {
            out.push(format!(
                "Not timed, because their vCPU had not been seen entering its guest before: {}.",
                list(&self.before_first_entry)
            ));
        }
        if !self.without_entry.is_empty() {
            out.push(format!(
                "Not timed, because no entry followed: {}.",
                list(&self.without_entry)
            ));
        }
        out
    }
}

fn list(reasons: &[(ExitReason, u64)]) -> String {
    let parts: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.key()))
        .collect();
    parts.join(", ")
}
