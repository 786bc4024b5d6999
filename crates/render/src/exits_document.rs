//! The JSON document of exits.

use analysis::{ExitsReport, Unknowable};
use doubts::Doubts;
use event::Isa;
use serde::Serialize;

use crate::exits::{columns_in_documents, rows, unknowable};
use crate::shape;
use crate::table::DocumentRows;

/// The fields of a document: those of the first table, and the list of all where there are several.
#[derive(Debug, Serialize)]
pub struct ExitsDocument<'a> {
    #[serde(flatten)]
    first: Option<OneTable<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<Vec<OneTable<'a>>>,
}

shape!(ExitsDocument<'static> { ..first, tables? });

/// A table in a document.
#[derive(Debug, Serialize)]
pub struct OneTable<'a> {
    event: &'static str,
    isa: Option<&'static str>,
    rows: DocumentRows<'a>,
    total_count: u64,
    total_ns: Option<u64>,
    handling_ns: Option<u64>,
    /// Left out where rows do not say where their time went.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknowable: Option<Vec<Unknowable>>,
    /// The event that would have recorded the accesses, where the exits alone say them; left out elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_recorded: Option<&'static str>,
}

shape!(OneTable<'static> {
    event, isa, rows: columns_in_documents(&Doubts::default()).shape().list(), total_count, total_ns, handling_ns,
    unknowable?, not_recorded?
});

/// Returns the fields of a document. Rows have the ids of those of the doubts that are about them.
pub fn document<'a>(
    isa: Option<Isa>,
    reports: &'a [ExitsReport],
    doubts: &Doubts,
) -> ExitsDocument<'a> {
    let first = reports.first();
    ExitsDocument {
        first: first.map(|report| one_table(isa, report, doubts)),
        tables: (reports.len() > 1).then(|| tables(isa, reports, doubts)),
    }
}

/// Returns the tables of a document.
pub fn tables<'a>(
    isa: Option<Isa>,
    reports: &'a [ExitsReport],
    doubts: &Doubts,
) -> Vec<OneTable<'a>> {
    let reports = reports.iter();
    reports
        .map(|report| one_table(isa, report, doubts))
        .collect()
}

fn one_table<'a>(isa: Option<Isa>, report: &'a ExitsReport, doubts: &Doubts) -> OneTable<'a> {
    let unknowable = unknowable(report);
    let rows = columns_in_documents(doubts).document_rows(rows(isa, report, &unknowable));
    OneTable {
        event: report.table.name(),
        isa: isa.map(Isa::name),
        rows,
        total_count: report.total_count,
        total_ns: report.is_timed().then_some(report.total_ns),
        handling_ns: report.is_timed().then_some(report.handling_ns),
        unknowable: report.seen.is_some().then_some(unknowable),
        not_recorded: report.missing_event(),
    }
}
