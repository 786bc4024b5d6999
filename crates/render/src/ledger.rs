//! Ledgers of paths: who had the time.

use paths::{LedgerHolder, LedgerTerm, PathLedger, PathReport};
use words::parts;

use crate::Layout;
use crate::html::Frame;
use crate::table::Table;
use crate::table::Unit::{Name, Nanoseconds};

/// Columns of a ledger.
pub(crate) fn terms() -> Table<'static, LedgerTerm> {
    Table::new()
        .column("holder", Name, |term: &LedgerTerm| term.holder.name())
        .page("who")
        .column("mean_ns", Nanoseconds, |term| term.mean_ns)
        .page("mean")
        .column("work_ns", Nanoseconds, |term| term.work_ns)
        .page("at work")
        .column("runnable_ns", Nanoseconds, |term| term.runnable_ns)
        .page("waiting for a CPU")
        .column("polling_ns", Nanoseconds, |term| term.polling_ns)
        .page("polling in a halt")
        .column("asleep_ns", Nanoseconds, |term| term.asleep_ns)
        .page("asleep")
        .column("total_ns", Nanoseconds, |term| term.total_ns)
        .page("time")
}

/// Returns the ledger of a path for a page.
pub fn html(report: &PathReport, frame: &Frame<'_>) -> String {
    terms().html(&report.ledger.terms, frame)
}

/// Returns what recording had of a path's mean total, as a line; nothing where that was not measured, or is nothing.
pub fn recording(report: &PathReport, layout: Layout) -> Option<String> {
    let ns = report.recording_ns.filter(|ns| *ns > 0)?;
    let part = ns as f64 / report.total.mean().max(1) as f64;
    Some(format!(
        "recording the events of these steps took {} of it or more ({}), which is in the line above",
        layout.time(ns),
        words::share::tenths(part)
    ))
}

/// Says what a path shows not to be at fault for; nothing where it does not.
pub fn cleared(report: &PathReport, layout: Layout) -> Option<String> {
    let clears = report.clears.as_ref()?;
    Some(format!(
        "This is not where the slow instances of {} lose their time: none of these took more than {}, and those take \
         {} more than the others.",
        crate::clean(&clears.path),
        layout.time(clears.longest_ns),
        layout.time(clears.slow_by_ns)
    ))
}

/// Returns the ledger of a path as a line that adds up to the mean total; nothing if it took no time.
pub fn line(ledger: &PathLedger, layout: Layout) -> Option<String> {
    if ledger.terms.is_empty() {
        return None;
    }
    let means: Vec<u64> = ledger.terms.iter().map(|term| term.mean_ns).collect();
    let (texts, whole) = parts::durations(&means, layout.nanoseconds);
    // What rounds to nothing is left out: the others add up without it.
    let is_something = |text: &str| text.bytes().any(|c| (b'1'..=b'9').contains(&c));
    let terms = ledger.terms.iter().zip(&texts);
    let terms = terms.filter(|(_, text)| is_something(text));
    let terms: Vec<String> = terms
        .map(|(term, text)| format!("{text} {}{}", term.holder.name(), waiting(term, layout)))
        .collect();
    match terms.is_empty() {
        true => None,
        false => Some(format!("ledger: {} = {whole}", terms.join(" + "))),
    }
}

/// Says what of a term was waiting.
fn waiting(term: &LedgerTerm, layout: Layout) -> String {
    if term.holder == LedgerHolder::Asleep {
        return String::new();
    }
    let parts = [
        (term.runnable_ns, "waiting for a CPU"),
        (term.polling_ns, "polling in a halt"),
        (term.asleep_ns, "asleep"),
    ];
    // Less than a hundredth of it is not worth a word.
    let parts = parts.iter().filter(|(ns, _)| *ns > term.mean_ns / 100);
    let parts: Vec<String> = parts
        .map(|(ns, what)| format!("{} {what}", layout.time(*ns)))
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join(", ")),
    }
}
