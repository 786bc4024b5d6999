//! What was replaced in a recording that is fit for a public ticket, and what was left out.

use ::redact::{RedactionCheck, RedactionCounts};
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
pub fn text(
    counts: &RedactionCounts,
    check: &RedactionCheck,
    output: &str,
    layout: Layout,
) -> String {
    let mut out = columns().view(Views::TERMINAL).text(rows(counts), layout);
    wrap(
        &mut out,
        "kept: ",
        "times, CPUs, process and thread ids, the kernel's release, the processor's name, names of events and probes.",
        layout.width,
    );
    let events = match check.is_same {
        true => format!("{} events, as in the original", check.events),
        false => format!("{} events, not those of the original", check.events),
    };
    let names = match (check.names, check.remaining.len()) {
        (0, _) => "no name is long enough to be looked for".to_owned(),
        (names, 0) => format!("{names} names looked for, none left"),
        (names, left) => format!("{names} names looked for, {left} left"),
    };
    wrap(
        &mut out,
        "checked: ",
        &format!("{events}; {names}"),
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
    check: CheckDocument,
}

/// What a look at the new file has shown.
#[derive(Debug, Serialize)]
struct CheckDocument {
    events: u64,
    events_before: u64,
    same_events: bool,
    names: usize,
    remaining: Vec<RemainingDocument>,
}

#[derive(Debug, Serialize)]
struct RemainingDocument {
    name: String,
    times: u64,
}

shape!(RemainingDocument { name, times });
shape!(CheckDocument {
    events,
    events_before,
    same_events,
    names,
    remaining
});
shape!(RedactDocument<'_> { output, rows: columns().shape().list(), check });

/// Returns the fields of a document.
pub fn document<'d>(
    counts: &RedactionCounts,
    check: &RedactionCheck,
    output: &'d str,
) -> RedactDocument<'d> {
    let remaining = check.remaining.iter().map(|one| RemainingDocument {
        name: one.name.clone(),
        times: one.times,
    });
    RedactDocument {
        output,
        rows: columns().json(rows(counts)),
        check: CheckDocument {
            events: check.events,
            events_before: check.events_before,
            same_events: check.is_same,
            names: check.names,
            remaining: remaining.collect(),
        },
    }
}

/// Returns the rows as CSV.
pub fn csv(counts: &RedactionCounts) -> String {
    columns().csv(rows(counts))
}
