//! What was replaced in a recording that is fit for a public ticket, and what was left out.

use ::redact::RedactionCounts;
use serde::Serialize;
use serde_json::Value;

use crate::quality::wrap;
use crate::table::{Table, Unit, Views};
use crate::{Layout, shape};

/// One thing that is private, and how often it was there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedactedRow {
    what: &'static str,
    done: &'static str,
    count: u64,
}

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, RedactedRow> {
    use Unit::{Count, Text};
    Table::new()
        .column("what", Text, |r: &RedactedRow| r.what)
        .left("what", 52)
        .column("done", Text, |r| r.done)
        .left("done", 10)
        .column("count", Count, |r| r.count)
        .heading("count", 10)
}

fn rows(counts: &RedactionCounts) -> Vec<RedactedRow> {
    let RedactionCounts { replaced, omitted } = counts;
    let row = |what, done, count| RedactedRow { what, done, count };
    let names = |count: usize| count as u64;
    vec![
        row("names of threads", "replaced", names(replaced.comms)),
        row("paths of files", "replaced", names(replaced.paths)),
        row(
            "names of BPF programs and the like",
            "replaced",
            names(replaced.symbols),
        ),
        row("other texts in events", "replaced", names(replaced.texts)),
        row(
            "samples with copied stacks, registers or branches",
            "left out",
            omitted.sample_parts,
        ),
        row("records of other kinds", "left out", omitted.records),
        row(
            "feature sections, options (host, build ids, symbols)",
            "left out",
            omitted.features,
        ),
        row("bytes of AUX data", "left out", omitted.aux_bytes),
    ]
}

/// Returns the answer for a terminal: `output` is the file that was written.
pub fn text(counts: &RedactionCounts, output: &str, layout: Layout) -> String {
    let mut out = columns().view(Views::TERMINAL).text(rows(counts), layout);
    wrap(
        &mut out,
        "kept: ",
        "times, CPUs, process and thread ids, the kernel's release, the processor's name, names of events and probes.",
        layout.width,
    );
    wrap(&mut out, "written: ", output, layout.width);
    out
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct RedactDocument<'d> {
    output: &'d str,
    rows: Value,
}

shape!(RedactDocument<'_> { output, rows: columns().shape().list() });

/// Returns the fields of a document.
pub fn document<'d>(counts: &RedactionCounts, output: &'d str) -> RedactDocument<'d> {
    RedactDocument {
        output,
        rows: columns().json(rows(counts)),
    }
}

/// Returns the rows as CSV.
pub fn csv(counts: &RedactionCounts) -> String {
    columns().csv(rows(counts))
}
