//! What each analysis costs a recording.

use analysis::{WalkCost, WalkCosts};
use serde::Serialize;
use serde_json::Value;
use words::counted;

use crate::table::{Table, Unit, Views};
use crate::{Layout, shape};

/// A row, with what it is a row of.
type CostRow<'c> = (&'c WalkCosts, &'c WalkCost);

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, CostRow<'r>> {
    use Unit::{Nanoseconds, Share, Text};
    Table::new()
        .column("name", Text, |(_, row): &CostRow<'_>| row.name.clone())
        .left("analysis", 24)
        .column("per_event", Unit::Value, |(all, row)| {
            all.event_ns(row.cost_ns)
        })
        .heading("ns an event", 13)
        .show(|(all, row), _| per_event(all, row.cost_ns))
        .column("cost_ns", Nanoseconds, |(_, row)| row.cost_ns)
        .column("low_ns", Nanoseconds, |(_, row)| row.low_ns)
        .heading("middle half", 20)
        .show(|(all, row), _| {
            format!(
                "{} to {}",
                per_event(all, row.low_ns),
                per_event(all, row.high_ns)
            )
        })
        .column("high_ns", Nanoseconds, |(_, row)| row.high_ns)
        .column("share", Share, |(all, row)| all.share(row.cost_ns))
        .heading("%", 8)
}

/// Returns nanoseconds an event, or `-` where there is no event.
fn per_event(costs: &WalkCosts, cost_ns: i64) -> String {
    let ns = costs.event_ns(cost_ns);
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.2}"))
}

fn rows(costs: &WalkCosts) -> Vec<CostRow<'_>> {
    costs.rows.iter().map(|row| (costs, row)).collect()
}

/// Returns the table of a recording for a terminal.
pub fn table(name: &str, costs: &WalkCosts, layout: Layout) -> String {
    let table = columns().view(Views::TERMINAL).text(rows(costs), layout);
    format!(
        "{}: {}, medians of {}\n\n{table}",
        crate::clean(name),
        counted(costs.events, "event", "events"),
        counted(costs.pairs as u64, "pair of walks", "pairs of walks")
    )
}

/// A recording in a document.
#[derive(Debug, Serialize)]
pub struct DocumentedCosts<'c> {
    input: &'c str,
    events: u64,
    pairs: usize,
    rows: Value,
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct WalkCostsDocument<'c> {
    costs: Vec<DocumentedCosts<'c>>,
}

shape!(DocumentedCosts<'static> { input, events, pairs, rows: columns().shape().list() });
shape!(WalkCostsDocument<'static> { costs });

/// Returns the fields of a document, of recordings with their names.
pub fn document(all: &[(String, WalkCosts)]) -> WalkCostsDocument<'_> {
    let costs = all.iter().map(|(input, costs)| DocumentedCosts {
        input,
        events: costs.events,
        pairs: costs.pairs,
        rows: columns().json(rows(costs)),
    });
    WalkCostsDocument {
        costs: costs.collect(),
    }
}

/// Returns the rows as CSV.
pub fn csv(costs: &WalkCosts) -> String {
    columns().csv(rows(costs))
}
