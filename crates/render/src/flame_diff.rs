//! Profiles of two recordings: functions by how much their share changed.

use analysis::ProfileReport;
use serde::Serialize;
use serde_json::Value;
use stacks::{Diff, FunctionChange, Weight};
use words::{plural, share};

use crate::flame::part;
use crate::shape;
use crate::table::{Table, Unit, Views};
use crate::{Layout, clean};

/// A function on both sides.
pub(crate) struct Row<'d> {
    change: FunctionChange,
    diff: &'d Diff,
}

impl Row<'_> {
    fn own(&self) -> [f64; 2] {
        self.diff.shares(self.change.own)
    }

    fn total(&self) -> [f64; 2] {
        self.diff.shares(self.change.total)
    }

    /// A change in points of per cent, in parentheses where it may be noise.
    fn shown(&self, pair: [Weight; 2]) -> String {
        let points = format!("{:+.1}", self.diff.change(pair) * 100.0);
        match self.diff.is_noise(pair) {
            true => format!("({points})"),
            false => points,
        }
    }
}

/// Columns of the table of functions.
pub(crate) fn columns<'d>() -> Table<'d, Row<'d>> {
    use Unit::{Count, Flag, Share, Text};
    Table::new()
        .column("function", Text, |r: &Row<'_>| {
            r.change.name.text.to_string()
        })
        .left("FUNCTION", 30)
        .column("part", Text, |r| part(r.change.name.part))
        .column("self_samples_a", Count, |r| r.change.own[0].samples)
        .column("self_samples_b", Count, |r| r.change.own[1].samples)
        .column("self_a", Share, |r| r.own()[0])
        .heading("self A%", 8)
        .column("self_b", Share, |r| r.own()[1])
        .heading("self B%", 8)
        .column("self_change", Share, |r| r.diff.change(r.change.own))
        .heading("change", 9)
        .show(|r, _| r.shown(r.change.own))
        .column("self_noise", Flag, |r| r.diff.is_noise(r.change.own))
        .column("total_samples_a", Count, |r| r.change.total[0].samples)
        .column("total_samples_b", Count, |r| r.change.total[1].samples)
        .column("total_a", Share, |r| r.total()[0])
        .heading("total A%", 10)
        .column("total_b", Share, |r| r.total()[1])
        .heading("total B%", 9)
        .column("total_change", Share, |r| r.diff.change(r.change.total))
        .heading("change", 9)
        .show(|r, _| r.shown(r.change.total))
        .column("total_noise", Flag, |r| r.diff.is_noise(r.change.total))
}

fn rows(diff: &Diff) -> impl Iterator<Item = Row<'_>> {
    let functions = diff.functions().into_iter();
    functions.map(move |change| Row { change, diff })
}

/// A side of a document.
#[derive(Debug, Serialize)]
struct SideFields<'r> {
    /// The event that was sampled.
    event: Option<&'r str>,
    /// Its samples that are shown.
    samples: u64,
    /// Those of idle CPUs.
    idle_samples: u64,
    /// The share of stacks that the other side does not have.
    alone: f64,
}

shape!(SideFields<'static> { event, samples, idle_samples, alone });

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct FlameDiffDocument<'r> {
    a: SideFields<'r>,
    b: SideFields<'r>,
    functions: Value,
}

shape!(FlameDiffDocument<'static> { a, b, functions: columns().shape().list() });

/// Returns the share of each side's stacks that the other one does not have.
fn alone(diff: &Diff) -> [f64; 2] {
    diff.shares(diff.alone())
}

/// Returns the fields of a document. `reports` are of A and B.
pub fn document<'r>(diff: &Diff, reports: [&'r ProfileReport; 2]) -> FlameDiffDocument<'r> {
    let [alone_a, alone_b] = alone(diff);
    let side = |report: &'r ProfileReport, alone| SideFields {
        event: report.event.as_deref(),
        samples: report.shown().samples,
        idle_samples: report.idle.samples,
        alone,
    };
    FlameDiffDocument {
        a: side(reports[0], alone_a),
        b: side(reports[1], alone_b),
        functions: columns().json(rows(diff)),
    }
}

/// Returns the rows of functions as CSV.
pub fn csv(diff: &Diff) -> String {
    columns().csv(rows(diff))
}

/// Says what is compared, a sentence for each side and one for both.
pub fn notes(diff: &Diff, reports: [&ProfileReport; 2], names: [&str; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    for ((side, report), name) in ["A", "B"].iter().zip(reports).zip(names) {
        let mut note = format!(
            "{side}: {}: {} of {}",
            clean(name),
            plural(report.shown().samples, "sample"),
            clean(report.event.as_deref().unwrap_or("no event")),
        );
        if report.shown().samples < report.samples.samples {
            let idle = plural(report.idle.samples, "sample");
            note.push_str(&format!(", and {idle} of idle CPUs, which are left out"));
        }
        notes.push(note);
    }
    let [a, b] = alone(diff);
    notes.push(format!(
        "Stacks that only A has: {} of A. Stacks that only B has: {} of B.",
        share::rough(a),
        share::rough(b)
    ));
    notes
}

/// Returns the table for a terminal: functions by how much their own share changed.
pub fn table(diff: &Diff, notes: &[String], layout: Layout) -> String {
    let mut text = String::new();
    for note in notes {
        text.push_str(note);
        text.push('\n');
    }
    text.push_str("Changes are in points of per cent; those in parentheses may be noise.\n\n");
    text.push_str(&columns().view(Views::TERMINAL).text(rows(diff), layout));
    text
}
