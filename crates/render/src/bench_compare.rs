//! Results of benchmarks side by side.

use compare::{Fact, ResultRow, Results};
use results::{BenchMachine, BenchResults};
use serde::Serialize;
use serde_json::Value;
use words::duration::human;

use crate::bench::named;
use crate::compare_each::{blocks, letter};
use crate::quality::wrap;
use crate::schema::HasShape;
use crate::shape;
use crate::table::Table;
use crate::{bench, json};

/// Returns a row's name as a terminal shows it.
fn title(row: &ResultRow) -> String {
    let (from, to) = row.cpus.clone().unwrap_or_default();
    named(&row.what, row.target.as_deref(), from, to.as_deref())
}

/// Returns how many times the first side's value another is, as text: `0.53x`.
fn times(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 99.95 => format!("{ratio:.0}x"),
        _ if ratio >= 9.995 => format!("{ratio:.1}x"),
        _ => format!("{ratio:.2}x"),
    }
}

/// Columns of the table: those of each side are called as it is, A, B and so on.
pub(crate) fn columns<'r>(sides: usize) -> Table<'r, ResultRow> {
    use crate::table::Unit::{Nanoseconds, Nested, Number, Text, Value as Plain};
    let mut table = Table::new()
        .column("what", Text, |r: &ResultRow| r.what.clone())
        .column("target", Text, |r| r.target.clone())
        .column("from", Number, |r| r.cpus.as_ref().and_then(|cpus| cpus.0))
        .column("to", Text, |r| {
            r.cpus.as_ref().and_then(|cpus| cpus.1.clone())
        })
        .column("stat", Text, |r| r.stat.name())
        .column("sides", Nested, move |r| {
            json::list((0..sides).map(|side| OnSide {
                value_ns: r.values.get(side).copied().flatten(),
                ratio: r.ratio(side),
            }))
        })
        .within(Vec::<OnSide>::shape());
    for side in 0..sides {
        table = table
            .column(format!("{}_ns", letter(side)), Nanoseconds, move |r| {
                r.values.get(side).copied().flatten()
            })
            .csv_only();
        if side > 0 {
            table = table
                .column(format!("{} ratio", letter(side)), Plain, move |r| {
                    r.ratio(side)
                })
                .csv_only();
        }
    }
    table
}

/// A row's value on one side.
#[derive(Debug, Serialize)]
struct OnSide {
    /// Null where it was not measured.
    value_ns: Option<u64>,
    /// How many times the first side's value it is.
    ratio: Option<f64>,
}

shape!(OnSide { value_ns, ratio });

/// Returns the table. `files` has the input of each side.
pub fn text(found: &Results, sides: &[BenchResults], files: &[String], width: usize) -> String {
    let bench = found.bench;
    let mut out = format!("{bench}: {}\n", bench.about());
    for (at, file) in files.iter().enumerate() {
        let name = found.names.get(at).filter(|name| **name != letter(at));
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        let label = format!("{}: ", letter(at));
        wrap(&mut out, &label, &format!("{file}{name}"), width);
    }
    for fact in &found.differs {
        wrap(&mut out, "! ", &differs(fact), width);
    }
    for (at, side) in sides.iter().enumerate() {
        for warning in bench::warnings(side) {
            wrap(&mut out, "! ", &format!("{}: {warning}", letter(at)), width);
        }
    }
    out.push('\n');
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let mut last = String::new();
    for row in &found.rows {
        let title = crate::clean(&title(row));
        // What is measured stands once, above its values.
        let name = match title == last {
            true => String::new(),
            false => title.clone(),
        };
        let cells = (0..found.names.len()).map(|side| cell(row, side));
        rows.push((
            format!("{name:<NAMES$} {}", row.stat.name()),
            cells.collect(),
        ));
        last = title;
    }
    let heads = found.names.iter().map(|name| crate::clean(name));
    let heads: Vec<String> = heads
        .map(|name| name.chars().take(HEAD).collect())
        .collect();
    if rows.is_empty() {
        out.push_str("No side measured anything.\n");
        return out;
    }
    blocks(&mut out, &heads, &rows, NAMES + 7, width);
    wrap(
        &mut out,
        "",
        "x: times the first side's value. Each side is one run: what differs from run to run shows when a setting is \
         measured several times.",
        width,
    );
    out
}

/// Of a label, so much stands above its column; all of it stands beside its file.
const HEAD: usize = 20;
/// Names of rows are so wide, before the names of values.
const NAMES: usize = 24;

fn cell(row: &ResultRow, side: usize) -> String {
    let Some(value) = row.values.get(side).copied().flatten() else {
        return "-".to_owned();
    };
    match row.ratio(side).filter(|_| side > 0) {
        Some(ratio) => format!("{} {:>6}", human(value), times(ratio)),
        None => human(value),
    }
}

/// Says what is not the same on all sides.
fn differs(fact: &Fact) -> String {
    let values = fact.values.iter().enumerate().map(|(at, value)| {
        let value = value.as_deref().unwrap_or("not known");
        format!("{} {value}", letter(at))
    });
    let values: Vec<String> = values.collect();
    format!("{}: {}", fact.name, values.join("; "))
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct BenchCompareDocument<'a> {
    bench: results::Bench,
    sides: Vec<Side<'a>>,
    differs: Vec<FactDifference<'a>>,
    rows: Value,
    changes: Vec<Change>,
}

shape!(BenchCompareDocument<'static> { bench, sides, differs, rows: columns(0).shape().list(), changes });

#[derive(Debug, Serialize)]
struct Side<'a> {
    side: String,
    inputs: [&'a str; 1],
    label: Option<&'a str>,
    machine: &'a BenchMachine,
    warnings: Vec<String>,
}

shape!(Side<'static> { side, inputs, label, machine, warnings });

#[derive(Debug, Serialize)]
struct FactDifference<'a> {
    what: &'a str,
    values: &'a [Option<String>],
}

shape!(FactDifference<'static> { what, values });

/// A change as documents of `compare` have it.
#[derive(Debug, Serialize)]
struct Change {
    what: String,
    unit: &'static str,
    a: u64,
    b: u64,
    delta: i128,
    ratio: Option<f64>,
    /// One run has no confidence.
    confidence: Option<f64>,
    text: String,
    side: String,
}

shape!(Change {
    what,
    unit,
    a,
    b,
    delta,
    ratio,
    confidence,
    text,
    side
});

/// Returns the fields of a document.
pub fn document<'a>(
    found: &'a Results,
    sides: &'a [BenchResults],
    files: &'a [String],
) -> BenchCompareDocument<'a> {
    let described = sides.iter().zip(files).enumerate();
    let described = described.map(|(at, (outcome, file))| Side {
        side: letter(at),
        inputs: [file.as_str()],
        label: outcome.head.label.as_deref(),
        machine: &outcome.head.machine,
        warnings: bench::warnings(outcome),
    });
    let differs = found.differs.iter().map(|fact| FactDifference {
        what: &fact.name,
        values: &fact.values,
    });
    let changes = (1..sides.len()).flat_map(|side| {
        let rows = found.rows.iter();
        rows.filter_map(move |row| change(row, side))
    });
    BenchCompareDocument {
        bench: found.bench,
        sides: described.collect(),
        differs: differs.collect(),
        rows: columns(sides.len()).json(&found.rows),
        changes: changes.collect(),
    }
}

fn change(row: &ResultRow, side: usize) -> Option<Change> {
    let a = (*row.values.first()?)?;
    let b = (*row.values.get(side)?)?;
    let what = format!("{}: {}", title(row), row.stat.name());
    let ratio = row.ratio(side);
    let by = ratio.map_or_else(String::new, |ratio| format!(" ({})", times(ratio)));
    Some(Change {
        text: format!("{what}: {} -> {}{by}", human(a), human(b)),
        what,
        unit: "ns",
        a,
        b,
        delta: i128::from(b) - i128::from(a),
        ratio,
        confidence: None,
        side: letter(side),
    })
}

/// Returns the table as comma separated values.
pub fn csv(found: &Results) -> String {
    columns(found.names.len()).csv(&found.rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_three_digits() {
        assert_eq!(times(0.534), "0.53x");
        assert_eq!(times(12.34), "12.3x");
        assert_eq!(times(1234.0), "1234x");
    }
}
