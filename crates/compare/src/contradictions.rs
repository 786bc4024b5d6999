//! Rows of printed tables whose numbers contradict each other: they are not compared.

use std::collections::BTreeSet;

use analysis::{ExitTable, Picture};

/// Returns the keys of a table's rows that contradict others on a side.
pub(crate) fn keys<'p>(sides: &[Vec<&'p Picture>; 2], table: ExitTable) -> BTreeSet<&'p str> {
    let pictures = sides.iter().flatten();
    let rows = pictures.flat_map(|picture| picture.rows(table));
    rows.filter(|row| row.contradicts)
        .map(|row| row.key.as_str())
        .collect()
}

/// Whether a side's sums are those of such rows.
pub(crate) fn reach_sums(sides: &[Vec<&Picture>; 2], table: ExitTable) -> bool {
    let pictures = sides.iter().flatten();
    let mut reports = pictures.filter_map(|picture| picture.table(table));
    reports.any(|report| report.sums_of_rows && report.rows.iter().any(|row| row.contradicts))
}

/// Says what is not compared.
pub(crate) fn note(keys: &BTreeSet<&str>, sums: bool) -> String {
    let named: Vec<&str> = keys.iter().copied().collect();
    let named = named.join(", ");
    match sums {
        true => format!(
            "Exits are not compared: numbers of rows contradict each other ({named}), and the table's last line is \
             not there."
        ),
        false => format!("Rows whose numbers contradict each other are not compared: {named}."),
    }
}
