//! Profiles: threads and functions by what they weigh.

use std::fmt::Write;

use analysis::{ProfileReport, ProfileRow};
use serde::Serialize;
use serde_json::Value;
use stacks::{Function, Part, Weight};
use words::{plural, share};

use crate::table::{Table, Unit};
use crate::{Layout, clean, speedscope};

/// A row, and what all that is shown weighs.
pub(crate) struct Row<'r> {
    row: &'r ProfileRow,
    whole: Weight,
}

/// Columns of the table of threads on a terminal.
pub(crate) const SHOWN: [&str; 8] = [
    "comm", "tid", "vm_pid", "samples", "share", "guest", "kernel", "user",
];

pub(crate) fn of(part: Weight, whole: Weight) -> f64 {
    part.amount as f64 / whole.amount.max(1) as f64
}

/// Columns of the table of threads.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Number, Share, Text};
    Table::new()
        .column("vm_pid", Number, |r: &Row<'_>| r.row.vm_pid)
        .heading("VM", 8)
        .column("comm", Text, |r| r.row.comm.as_str())
        .left("THREAD", 18)
        .column("tid", Number, |r| r.row.tid)
        .heading("TID", 8)
        .column("samples", Count, |r| r.row.all.samples)
        .heading("samples", 9)
        .column("share", Share, |r| of(r.row.all, r.whole))
        .heading("share%", 8)
        .column("guest", Share, |r| of(r.row.guest, r.whole))
        .heading("guest%", 8)
        .column("kernel", Share, |r| of(r.row.kernel, r.whole))
        .heading("kernel%", 8)
        .column("user", Share, |r| of(r.row.user, r.whole))
        .heading("user%", 8)
}

fn rows(report: &ProfileReport) -> impl Iterator<Item = Row<'_>> {
    let whole = report.shown();
    report.rows.iter().map(move |row| Row { row, whole })
}

/// A function, and what all that is shown weighs.
pub(crate) struct Heavy<'r> {
    function: &'r Function,
    whole: Weight,
}

/// Columns of the table of functions.
pub(crate) fn functions<'r>() -> Table<'r, Heavy<'r>> {
    use Unit::{Count, Share, Text};
    Table::new()
        .column("function", Text, |r: &Heavy<'_>| {
            r.function.name.text.as_str()
        })
        .left("FUNCTION", 50)
        .column("part", Text, |r| part(r.function.name.part))
        .heading("of", 8)
        .column("self_samples", Count, |r| r.function.own.samples)
        .column("self", Share, |r| of(r.function.own, r.whole))
        .heading("self%", 9)
        .column("total_samples", Count, |r| r.function.total.samples)
        .column("total", Share, |r| of(r.function.total, r.whole))
        .heading("total%", 9)
}

/// Columns of the table of functions on a terminal.
pub(crate) const SHOWN_FUNCTIONS: [&str; 4] = ["function", "part", "self", "total"];

pub(crate) fn part(part: Part) -> &'static str {
    match part {
        Part::Group => "",
        Part::Kernel => "kernel",
        Part::User => "user",
        Part::Guest => "guest",
        Part::Unknown => "unknown",
    }
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct Document<'r> {
    /// The event that was sampled.
    event: Option<&'r str>,
    /// All samples that the recording has of it.
    samples: u64,
    idle_samples: u64,
    unresolved_samples: u64,
    rows: Value,
    functions: Value,
}

/// Returns the fields of a document.
pub fn document(report: &ProfileReport) -> Document<'_> {
    let whole = report.shown();
    let heavy = report.functions();
    let heavy = heavy.iter().map(|function| Heavy { function, whole });
    Document {
        event: report.event.as_deref(),
        samples: report.samples.samples,
        idle_samples: report.idle.samples,
        unresolved_samples: report.unresolved.samples,
        rows: columns().json(rows(report)),
        functions: functions().json(heavy),
    }
}

/// Returns the rows of threads as CSV.
pub fn csv(report: &ProfileReport) -> String {
    columns().csv(rows(report))
}

/// Returns the tables for a terminal: threads, and functions by what they and those they called weigh.
pub fn table(report: &ProfileReport, layout: Layout) -> String {
    let whole = report.shown();
    let mut text = format!(
        "flame: {} of {}",
        plural(report.samples.samples, "sample"),
        clean(report.event.as_deref().unwrap_or("no event")),
    );
    let idle = plural(report.idle.samples, "sample");
    if whole.samples < report.samples.samples {
        let share = share::tenths(of(report.idle, report.samples));
        let _ = write!(text, "\nleft out: {idle} of idle CPUs, {share} of the time");
    } else if report.idle.samples > 0 {
        let _ = write!(text, "\nwith {idle} of idle CPUs");
    }
    text.push('\n');
    text.push_str(&columns().view(SHOWN).text(rows(report), layout));
    let heavy = report.functions();
    if !heavy.is_empty() {
        let heavy = heavy.iter().map(|function| Heavy { function, whole });
        text.push('\n');
        text.push_str(&functions().view(SHOWN_FUNCTIONS).text(heavy, layout));
    }
    text
}

/// Returns the stacks as a file of speedscope's. `name` is the recording's.
///
/// # Errors
///
/// As serde_json.
pub fn speedscope(report: &ProfileReport, name: &str) -> serde_json::Result<String> {
    let event = report.event.as_deref().unwrap_or_default();
    // The period of these clocks is their time; that of other events is how often they happened.
    let is_clock = event.starts_with("cpu-clock") || event.starts_with("task-clock");
    let whole = report.shown();
    speedscope::sampled(&report.stacks, whole, event, is_clock, name)
}
