//! The order of paths and of their groups, by any column.

use paths::PathReport;

use crate::paths::{Line, groups, stages};
use crate::table::{UnknownColumn, reorder};

/// Sorts paths by a column of their totals, and each path's groups by the same one: largest first, names in
/// alphabetical order, what is not known last.
///
/// # Errors
///
/// There is no such column.
pub fn sort(reports: &mut Vec<PathReport>, column: &str) -> Result<(), UnknownColumn> {
    let totals = reports.iter();
    let totals: Vec<Line<'_>> = totals
        .map(|report| Line::new(report, "total", &report.total))
        .collect();
    let places = stages().order(&totals, column)?;
    drop(totals);
    reorder(reports, &places);
    for report in reports {
        // A column that groups do not have leaves them as they are.
        if let Ok(places) = groups().order(&report.groups, column) {
            reorder(&mut report.groups, &places);
        }
    }
    Ok(())
}
