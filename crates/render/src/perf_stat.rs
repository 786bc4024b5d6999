//! Counts of `perf stat`, with their ratios.

use std::fmt::Write;

use analysis::{CountPrinter, RatioRow};
use serde::Serialize;
use serde_json::Value;
use words::duration;

use crate::Layout;
use crate::html::Frame;
use crate::shape;
use crate::table::{Table, Unit, Views};

/// Returns a number with four digits that count, as people read them.
fn number(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.3}G", v / 1e9),
        v if v >= 1e6 => format!("{:.3}M", v / 1e6),
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 10.0 => format!("{v:.2}"),
        v if v >= 0.001 || v == 0.0 => format!("{v:.3}"),
        v => format!("{v:.2e}"),
    }
}

/// Returns the counts as a table. A column of ratios is there where their base was counted.
pub fn table(
    rows: &[RatioRow],
    by: CountPrinter,
    counted_ns: Option<u64>,
    layout: Layout,
) -> String {
    let mut out = format!("{}: {}", by.name(), words::plural(rows.len(), "event"));
    match counted_ns {
        None if by == CountPrinter::Bpftrace => out.push_str(" of its maps\n"),
        None if by == CountPrinter::Kvmexit => out.push_str(", exits by reason\n"),
        None if by == CountPrinter::KvmStat => {
            out.push_str(match rows.iter().any(|row| row.per_second.is_some()) {
                true => " since it began; per second when it was printed\n",
                false => ", the sums of its lines\n",
            });
        }
        Some(ns) => {
            let _ = writeln!(out, ", counted for {}", duration::human(ns));
        }
        None => out.push_str("; the text does not say for how long\n"),
    }
    let columns = columns();
    let view = columns.view(Views::TERMINAL);
    out + &view.known_of(rows).text(rows, layout)
}

/// Columns of the counts.
pub(crate) fn columns() -> Table<'static, RatioRow> {
    use Unit::{Count, Text};
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    Table::new()
        .column("event", Text, |row: &RatioRow| row.event.clone())
        .left("", 28)
        .page("event")
        .column("count", Count, |row| row.count)
        .heading("count", 16)
        .page("count")
        .column("per_second", Unit::Value, |row| row.per_second)
        .heading("per second", 12)
        .where_known()
        .page("per second")
        .show(move |row, _| ratio(row.per_second))
        .column("per_exit", Unit::Value, |row| row.per_exit)
        .heading("per exit", 12)
        .where_known()
        .page("per exit")
        .show(move |row, _| ratio(row.per_exit))
        .column("per_switch", Unit::Value, |row| row.per_switch)
        .heading("per switch", 12)
        .where_known()
        .page("per switch")
        .show(move |row, _| ratio(row.per_switch))
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct PerfStatDocument {
    counts: Value,
    /// For how long was counted; null where the text does not say.
    counted_ns: Option<u64>,
}

shape!(PerfStatDocument {
    counts: columns().shape().list(),
    counted_ns
});

/// Returns the fields of a document.
pub fn document(rows: &[RatioRow], counted_ns: Option<u64>) -> PerfStatDocument {
    PerfStatDocument {
        counts: columns().json(rows),
        counted_ns,
    }
}

/// Returns the counts for a page.
pub fn html(rows: &[RatioRow], frame: &Frame<'_>) -> String {
    columns().html(rows, frame)
}
