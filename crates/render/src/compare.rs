//! What changed.

use compare::{ChangeUnit, Comparison, Difference, PerWork, SideAmount, SideChange, SideName};
use serde::Serialize;
use serde_json::Value;
use words::duration;

use crate::compare_sides::SideLabels;
use crate::compare_words::{with_unit, worded};
use crate::html::Frame;
use crate::quality::wrap;
use crate::schema::{HasShape, Shape};
use crate::shape;
use crate::table::{self, Table};
use crate::{ClockUnit, Layout, compare_table, json};

/// Changes that have a sentence: those with the largest effect.
const SENTENCES: usize = 3;
/// Likely changes, and those that happened once, that are listed without being asked for.
const LIKELY: usize = 8;

/// Returns changes as text, largest effect on time first: sentences of the largest, and a table of all. With `all` each
/// has its sentence, and what may be noise is there as well.
pub fn text(
    comparison: &Comparison,
    a: &[String],
    b: &[String],
    all: bool,
    layout: Layout,
) -> String {
    let labels = SideLabels::of(a, b);
    let mut out = String::new();
    wrap(&mut out, "A: ", &a.join(", "), layout.width);
    wrap(&mut out, "B: ", &b.join(", "), layout.width);
    for difference in &comparison.differs {
        wrap(&mut out, "! ", &difference.text, layout.width);
    }
    for note in &comparison.notes {
        wrap(&mut out, "", note, layout.width);
    }
    out.push('\n');
    if let Some(words) = no_changes(comparison) {
        wrap(&mut out, "", &words, layout.width);
    }
    let sentences = if all { usize::MAX } else { SENTENCES }.min(layout.limit);
    for change in comparison.changes.iter().take(sentences) {
        one(&mut out, change, &labels, layout.width);
    }
    let likely = comparison.likely.len();
    let shown = if all { likely } else { LIKELY }.min(layout.limit);
    if all && shown > 0 {
        out.push_str("\nlikely, and not certain:\n");
        for change in comparison.likely.iter().take(shown) {
            one(&mut out, change, &labels, layout.width);
        }
    }
    let certain = comparison.changes.iter().take(layout.limit);
    let in_table = certain.chain(comparison.likely.iter().take(shown));
    if in_table.clone().next().is_some() {
        if !comparison.changes.is_empty() || all {
            out.push('\n');
        }
        out.push_str(&compare_table::table(in_table, &labels, layout.width));
        out.push('\n');
    }
    let more = comparison.changes.len().saturating_sub(layout.limit);
    if more > 0 {
        out.push_str(&format!("{more} more changes are not shown (--limit)\n"));
    }
    let more = likely.saturating_sub(shown);
    if more > 0 && layout.limit > 0 {
        out.push_str(&format!("{more} more are likely, and not shown (--all)\n"));
    }
    if !comparison.once.is_empty() && layout.limit > 0 {
        out.push_str("once, in one short stretch of one side; that may be chance:\n");
        let shown = if all { usize::MAX } else { LIKELY }.min(layout.limit);
        for change in comparison.once.iter().take(shown) {
            wrap(&mut out, "- ", &labels.sentence(change), layout.width);
        }
        let more = comparison.once.len().saturating_sub(shown);
        if more > 0 {
            out.push_str(&format!(
                "{more} more happened once, and are not shown (--all)\n"
            ));
        }
        out.push('\n');
    }
    let (equal, differ): (Vec<&SideChange>, Vec<&SideChange>) = comparison
        .unreported
        .iter()
        .partition(|change| change.is_none());
    let within_noise = differ.len();
    if all && within_noise > 0 {
        out.push_str("\nwhat may be noise, or is small:\n");
        for change in differ {
            one(&mut out, change, &labels, layout.width);
        }
    } else if within_noise > 0 {
        wrap(
            &mut out,
            "",
            &format!(
                "{} within the noise, or small, and not listed (--all)",
                words::counted(within_noise, "difference is", "differences are")
            ),
            layout.width,
        );
    }
    if !equal.is_empty() {
        let figures = words::counted(equal.len(), "figure is", "figures are");
        let text = format!("{figures} the same on both sides, and not listed");
        wrap(&mut out, "", &text, layout.width);
    }
    out
}

/// Returns what stands where no change is certain; `None` where there are some.
pub fn no_changes(comparison: &Comparison) -> Option<String> {
    if !comparison.changes.is_empty() {
        return None;
    }
    let Comparison {
        likely,
        once,
        unreported,
        ..
    } = comparison;
    if likely.is_empty() && once.is_empty() && unreported.is_empty() {
        return Some("The two have nothing in common that could be compared.".to_owned());
    }
    let mut words = "No change is larger than noise.".to_owned();
    if !once.is_empty() {
        words.push_str(" What happened once on one side stands below: record again to know whether it comes back.");
    }
    // That a finding came or went is never passed over.
    let findings = unreported.iter().filter(|one| one.is_finding());
    let findings: Vec<&str> = findings.map(|one| one.what.as_str()).collect();
    if let Some(first) = findings.first() {
        let are = match findings.len() {
            1 => format!("One finding is on one side only ({first})"),
            more => format!("{more} findings are on one side only ({first} and others)"),
        };
        words.push_str(&format!(
            " {are}: what it is of differs no more than by chance, so it is at its threshold (--all)."
        ));
    }
    Some(words)
}

fn one(out: &mut String, change: &SideChange, labels: &SideLabels, width: usize) {
    let sure = match change.confidence {
        Some(confidence) => format!(" [{:.3}]", (confidence * 1000.0).floor() / 1000.0),
        None => String::new(),
    };
    wrap(
        out,
        "- ",
        &format!("{}{sure}", labels.sentence(change)),
        width,
    );
    // The first is what both sides did; the others are in the documents.
    for work in change
        .per_work
        .iter()
        .take(1)
        .filter(|work| adds_to(change, work))
    {
        let (a, b) = match change.is_counter() {
            true => (words::large(work.a), words::large(work.b)),
            false => (number(work.a, change.unit), number(work.b, change.unit)),
        };
        wrap(
            out,
            "    ",
            &format!("for each {}: {a} to {b}", work.of),
            width,
        );
    }
}

/// Whether what is for each unit of work says more than the change does: it does not where both sides did as much.
fn adds_to(change: &SideChange, work: &PerWork) -> bool {
    if work.a == 0.0 && work.b == 0.0 {
        return false;
    }
    match change.ratio() {
        Some(ratio) if work.a > 0.0 && ratio > 0.0 => {
            let apart = work.b / work.a / ratio;
            !(0.9..=1.1).contains(&apart)
        }
        _ => true,
    }
}

/// Returns a number of a unit in words; what is for each unit of work is a sum of nanoseconds or of events.
fn number(value: f64, unit: ChangeUnit) -> String {
    match unit {
        ChangeUnit::Nanoseconds | ChangeUnit::Share => {
            duration::human(value.max(0.0).round() as u64)
        }
        _ if value >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// Columns of changes in documents.
pub(crate) fn columns() -> Table<'static, SideChange> {
    columns_for(None)
}

/// Columns of changes; with labels, sides are called by these.
fn columns_for(labels: Option<&SideLabels>) -> Table<'_, SideChange> {
    use table::Unit::{Name, Nanoseconds, Nested, Text, Value};
    Table::new()
        .column("what", Name, |change: &SideChange| change.what.clone())
        .column("a", Value, |change| side(&change.a, change.unit))
        .within(amount())
        .show(|change, _| worded(&change.a, change.unit))
        .page("A")
        .csv_form(|change| plain(&change.a))
        .column("b", Value, |change| side(&change.b, change.unit))
        .within(amount())
        .show(|change, _| worded(&change.b, change.unit))
        .page("B")
        .csv_form(|change| plain(&change.b))
        .column("delta", Value, |change| {
            change.delta().map(|delta| number_of(delta, change.unit))
        })
        .within(Shape::Number.or_null())
        .show(|change, _| match change.delta() {
            Some(delta) if delta < 0.0 => format!("-{}", with_unit(-delta, change.unit)),
            Some(delta) => with_unit(delta, change.unit),
            None => "-".to_owned(),
        })
        .page("B - A")
        .csv_form(|change| {
            change
                .delta()
                .map(|delta| delta.to_string())
                .unwrap_or_default()
        })
        .column("ratio", Value, SideChange::ratio)
        .page("B / A")
        .column("confidence", Value, |change| change.confidence)
        .page("confidence")
        .column("text", Name, move |change| match labels {
            Some(labels) => labels.sentence(change),
            None => change.text.clone(),
        })
        .csv_after("effect_ns")
        .page("what changed")
        .after("")
        .column("unit", Text, |change| change.unit.name())
        .csv_after("what")
        // What ranks changes is on no page: as a time it would be taken for one (docs/compare.md).
        .column("effect_ns", Nanoseconds, |change| {
            change.effect_ns.round() as i64
        })
        .column("per_work", Nested, |change| json::list(&change.per_work))
        .within(Vec::<PerWork>::shape())
        .json_only()
        .column("worse", Text, move |change: &SideChange| {
            change.worse.map(|side| match (labels, side) {
                (Some(labels), side) => labels.of_side(side).to_owned(),
                (None, SideName::A) => "a".to_owned(),
                (None, SideName::B) => "b".to_owned(),
            })
        })
        .json_only()
        .page("worse")
        .column("bound_ns", Nanoseconds, |change| change.bound_ns)
        .json_only()
}

/// Returns a number as documents have it: a duration is an integer.
fn number_of(number: f64, unit: ChangeUnit) -> Value {
    match unit {
        ChangeUnit::Nanoseconds => (number.round() as i64).into(),
        _ => number.into(),
    }
}

/// Returns what a side's value may be in documents: a number, a word, or null where it is not there.
pub(crate) fn amount() -> Shape {
    Shape::OneOf(vec![Shape::Number, Shape::Text]).or_null()
}

/// Returns a side's value as documents have it.
pub(crate) fn side(value: &SideAmount, unit: ChangeUnit) -> Value {
    match value {
        SideAmount::Number(number) => number_of(*number, unit),
        SideAmount::Word(word) => word.as_str().into(),
        SideAmount::Absent => Value::Null,
    }
}

/// Returns a side's value as CSV has it: no digit is left out.
pub(crate) fn plain(value: &SideAmount) -> String {
    match value {
        SideAmount::Number(number) => number.to_string(),
        SideAmount::Word(word) => word.clone(),
        SideAmount::Absent => String::new(),
    }
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct CompareDocument<'a> {
    a: &'a [String],
    b: &'a [String],
    differs: &'a [Difference],
    notes: &'a [String],
    changes: Value,
    likely: Value,
    once: Value,
    noise: Value,
}

shape!(CompareDocument<'static> {
    a, b, differs, notes, changes: columns().shape().list(), likely: columns().shape().list(),
    once: columns().shape().list(), noise: columns().shape().list(),
});

/// Returns the fields of a document.
pub fn document<'a>(
    comparison: &'a Comparison,
    a: &'a [String],
    b: &'a [String],
) -> CompareDocument<'a> {
    let columns = columns();
    CompareDocument {
        a,
        b,
        differs: &comparison.differs,
        notes: &comparison.notes,
        changes: columns.json(&comparison.changes),
        likely: columns.json(&comparison.likely),
        once: columns.json(&comparison.once),
        noise: columns.json(&comparison.unreported),
    }
}

/// Returns changes as comma separated values; with `all` those that are likely and those that may be noise as well.
pub fn csv(comparison: &Comparison, all: bool, clock: ClockUnit) -> String {
    let likely = comparison.likely.iter().chain(&comparison.once);
    let less = likely.chain(&comparison.unreported);
    let within_noise = less.filter(|_| all);
    columns()
        .counted_in(clock)
        .csv(comparison.changes.iter().chain(within_noise))
}

/// Returns changes for a page, with the sides called by labels.
pub fn html(changes: &[SideChange], labels: &SideLabels, frame: &Frame<'_>) -> String {
    columns_for(Some(labels)).html(changes, frame)
}
