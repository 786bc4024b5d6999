//! Counts of `perf stat`, with their ratios.

use std::fmt::Write;

use analysis::RatioRow;
use serde_json::{Value, json};
use words::duration;

use crate::clean;

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
pub fn table(rows: &[RatioRow], counted_ns: Option<u64>) -> String {
    let mut out = format!("perf stat: {}", words::plural(rows.len(), "event"));
    match counted_ns {
        Some(ns) => {
            let _ = writeln!(out, ", counted for {}", duration::human(ns));
        }
        None => out.push_str("; the text does not say for how long\n"),
    }
    type Ratio = fn(&RatioRow) -> Option<f64>;
    let ratios: [(&str, Ratio); 3] = [
        ("per second", |row| row.per_second),
        ("per exit", |row| row.per_exit),
        ("per switch", |row| row.per_switch),
    ];
    let shown: Vec<_> = ratios
        .into_iter()
        .filter(|(_, of)| rows.iter().any(|row| of(row).is_some()))
        .collect();
    let _ = write!(out, "{:<28}{:>16}", "", "count");
    for (name, _) in &shown {
        let _ = write!(out, "{name:>12}");
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{:<28}{:>16}", clean(&row.event), row.count);
        for (_, of) in &shown {
            let text = of(row).map_or_else(|| "-".to_owned(), number);
            let _ = write!(out, "{text:>12}");
        }
        out.push('\n');
    }
    out
}

/// Returns the counts as objects of a document.
pub fn json(rows: &[RatioRow]) -> Value {
    let object = |row: &RatioRow| {
        json!({
            "event": row.event,
            "count": row.count,
            "per_second": row.per_second,
            "per_exit": row.per_exit,
            "per_switch": row.per_switch,
        })
    };
    rows.iter().map(object).collect()
}
