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
