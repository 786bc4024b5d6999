//! The JSON document.

use render::clock_unit::ClockedDocument;
use render::tickets::TicketDocument;
use render::{cost, diagnose, exits_document, info, parts, paths, perf_stat, sched, vcpus};
use serde::Serialize;
use serde_json::{Map, Value};

use super::part::Part;

/// The fields of a document.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    /// Inputs in which several things stand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tickets: Vec<TicketDocument<'a>>,
    pub(super) recordings: Vec<ClockedDocument<Recording<'a>>>,
}

/// A recording in a document.
#[derive(Debug, Serialize)]
pub(super) struct Recording<'a> {
    input: &'a str,
    #[serde(flatten)]
    info: info::InfoDocument<'a>,
    exits: Vec<exits_document::OneTable<'a>>,
    /// The same by what guests did, where their recordings were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    guest_exits: Vec<exits_document::OneTable<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sched: Option<sched::SchedDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vcpus: Option<vcpus::VcpusDocument<'a>>,
    /// What else was recorded, each under the name of its command.
    #[serde(flatten)]
    parts: Map<String, Value>,
    /// Those that rules look at, and behind them those through guests whose recordings were given.
    #[serde(flatten)]
    paths: Option<paths::PathsDocument<'a>>,
    /// Of what perf stat printed.
    #[serde(flatten)]
    counts: Option<perf_stat::PerfStatDocument>,
    /// Where the recorder measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_cost: Option<cost::CostDocument>,
    findings: Value,
}

#[cfg(test)]
render::shape!(Document<'static> { tickets?, recordings });
#[cfg(test)]
render::shape!(Recording<'static> {
    input, ..info, exits, guest_exits?, sched?, vcpus?, ..parts: parts::shape(), ..paths, ..counts, recording_cost?,
    findings: diagnose::findings_shape()
});

/// Returns a recording's part of the document.
pub(super) fn recording(part: &Part) -> ClockedDocument<Recording<'_>> {
    ClockedDocument {
        clock: part.clock(),
        part: unclocked(part),
    }
}

fn unclocked(part: &Part) -> Recording<'_> {
    let picture = &part.picture;
    let any_paths = picture.all_paths().next().is_some();
    let doubts = picture.quality.all_doubts();
    let counted = !picture.counts.is_empty();
    Recording {
        input: &part.name,
        info: info::document(&part.head, &picture.info, &part.guests),
        exits: exits_document::tables(picture.isa, &picture.exits, &doubts),
        guest_exits: exits_document::tables(picture.isa, &picture.guest_exits, &doubts),
        sched: picture
            .sched
            .as_ref()
            .map(|one| sched::document(one, &doubts)),
        vcpus: picture
            .vcpus
            .as_ref()
            .map(|one| vcpus::document(one, &doubts)),
        parts: parts::members(picture),
        paths: any_paths.then(|| paths::document(picture.all_paths(), &doubts)),
        counts: counted
            .then(|| perf_stat::document(&analysis::ratios(picture), picture.counted_ns)),
        recording_cost: analysis::recording_cost(picture)
            .as_ref()
            .map(cost::document),
        findings: diagnose::findings(&part.diagnosis.findings),
    }
}
