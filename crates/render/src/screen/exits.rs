//! The heaviest exits.

use std::cmp::Reverse;

use analysis::{ExitRow, ExitTable, ExitsReport};
use event::Isa;
use words::share;

use super::input::ScreenInput;
use super::line::{Line, Tone, cut, fit};
use crate::exits::{self, counted};

/// Exits that are listed.
const ROWS: usize = 3;
/// Columns of what an exit is called.
const NAME: usize = 30;

/// Returns the tables that have anything, that of exits first.
fn tables<'a>(input: &ScreenInput<'a>) -> impl Iterator<Item = &'a ExitsReport> + use<'a> {
    let tables = input.picture.exits.iter();
    tables.filter(|report| report.total_count > 0)
}

/// Returns the rows that took most time: of those in which the guest asked to wait, or of the others.
fn heaviest(report: &ExitsReport, waiting: bool) -> Vec<&ExitRow> {
    let rows = report.rows.iter().filter(|row| row.waiting == waiting);
    let mut rows: Vec<&ExitRow> = rows.filter(|row| row.count() > 0).collect();
    rows.sort_by_key(|row| Reverse((row.stats.total(), row.count())));
    rows
}

/// Returns what a row is called.
fn called(row: &ExitRow) -> String {
    match &row.name {
        Some(name) => format!("{} {name}", row.key),
        None if row.waiting => format!("{} (waiting)", row.key),
        None => row.key.clone(),
    }
}

/// Returns how many exits there are and what they took, waiting apart.
pub(crate) fn sums(input: &ScreenInput<'_>, report: &ExitsReport) -> String {
    let count = counted(input.picture.isa, report);
    let waiting = report.total_ns.saturating_sub(report.handling_ns);
    let exits = report.table == ExitTable::Vmexit;
    if input.printed() && input.picture.isa == Some(Isa::Arm64) && exits {
        format!("{count}; times are perf's: the guest's before each exit")
    } else if waiting > 0 {
        let (handling, waiting) = (input.time(report.handling_ns), input.time(waiting));
        format!("{count}, handling {handling}, waiting {waiting}")
    } else if report.is_timed() {
        format!("{count}, {}", input.time(report.total_ns))
    } else {
        format!("{count}, {}", exits::untimed(input.picture.isa))
    }
}

/// Returns what the guest accessed most, where a recording has accesses and no exits.
pub(crate) fn untimed(input: &ScreenInput<'_>) -> Option<String> {
    let report = tables(input).max_by_key(|report| report.total_count)?;
    let row = (report.rows.first()).filter(|row| row.untimed > 0 && !report.is_timed())?;
    Some(format!(
        "{} of {} are of {}; their times are unknown, as no {} were recorded.",
        row.untimed,
        counted(input.picture.isa, report),
        called(row),
        if input.picture.isa.is_none() {
            "exits"
        } else {
            "entries"
        }
    ))
}

/// Returns the heaviest exits, and the heaviest access to a port, to memory and to a register.
pub(crate) fn lines(input: &ScreenInput<'_>) -> Vec<Line> {
    let mut out = Vec::new();
    for report in tables(input) {
        if out.is_empty() {
            out.push(head(input, report));
        }
        let (own, waiting) = (heaviest(report, false), heaviest(report, true));
        // A table of accesses alone, as perf prints one, is what there is.
        let most = match report.table {
            ExitTable::Vmexit => ROWS,
            _ if input.printed() => ROWS,
            _ => 1,
        };
        let rows = own.iter().take(most).chain(waiting.iter().take(1));
        out.extend(rows.map(|row| line(input, report, row)));
    }
    out
}

/// Returns the line above: the sums, and what the columns are.
fn head(input: &ScreenInput<'_>, report: &ExitsReport) -> Line {
    let isa = input.picture.isa.map(|isa| format!(" ({})", isa.name()));
    let sums = sums(input, report);
    Line::new(
        Tone::Strong,
        &format!("{}{}", report.table.name(), isa.unwrap_or_default()),
    )
    .then(Tone::Plain, &format!(": {sums}"))
}

/// Returns what the columns are.
pub(crate) fn columns() -> Line {
    let text = format!(
        "  {:<NAME$} {:>9} {:>6} {:>9} {:>9} {:>9}",
        "heaviest", "count", "count%", "time", "mean", "p99"
    );
    Line::new(Tone::Plain, &text)
}

fn line(input: &ScreenInput<'_>, report: &ExitsReport, row: &ExitRow) -> Line {
    let stats = &row.stats;
    let p99 = match stats.has_percentiles() {
        true => input.time(stats.percentile(0.99)),
        false => "-".to_owned(),
    };
    let none = || "-".to_owned();
    let name = cut(&called(row), NAME);
    // Padding counts characters, and some are two columns wide.
    let text = format!(
        "  {name}{} {:>9} {:>6} {:>9} {:>9} {:>9}",
        " ".repeat(NAME.saturating_sub(textwrap::core::display_width(&name))),
        row.count(),
        match report.has_shares() && !row.contradicts {
            true => share::cell(row.count() as f64 / report.total_count.max(1) as f64),
            false => none(),
        },
        row.total_ns().map_or_else(none, |ns| input.time(ns)),
        row.total_ns().map_or_else(none, |_| input.mean(stats)),
        p99
    );
    Line::new(Tone::Plain, &text)
}

/// Returns the same in one line of so many columns: as many exits as have room.
pub(crate) fn short(input: &ScreenInput<'_>, width: usize) -> Option<String> {
    let report = tables(input).next()?;
    let mut out = sums(input, report);
    let rows = heaviest(report, false).into_iter().take(ROWS);
    let parts = rows.map(|row| {
        let stats = &row.stats;
        match row.total_ns() {
            Some(_) => format!("{} {}, mean {}", row.key, stats.count(), input.mean(stats)),
            None => format!("{} {}", row.key, row.count()),
        }
    });
    fit(&mut out, "; ", &parts.collect::<Vec<_>>(), width);
    Some(out)
}
