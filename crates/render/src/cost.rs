//! What recording cost, in words.

use crate::shape;
use analysis::CostReport;
use serde::Serialize;
use words::{duration::human, share};

/// Returns what it cost, in full sentences.
pub fn sentences(report: &CostReport) -> Vec<String> {
    let mut out = vec![format!(
        "Recording an event cost {} when this was recorded (measured, with warm caches: it is this much or more): {} \
         of CPU {}, which has most of them.",
        human(report.event_ns),
        share::tenths(report.share),
        report.cpu
    )];
    if let Some(ns) = report.recorder_ns {
        out.push(format!(
            "The recorder itself took {} of CPU time from its start to its end.",
            human(ns)
        ));
    }
    out
}

/// Returns the same in a few words.
pub fn short(report: &CostReport) -> String {
    format!(
        "recording took {} of CPU {} ({} an event)",
        share::tenths(report.share),
        report.cpu,
        human(report.event_ns)
    )
}

/// What a document says of it.
#[derive(Debug, Serialize)]
pub struct CostDocument {
    event_ns: u64,
    cpu: u32,
    events: u64,
    share: f64,
    span_ns: u64,
    recorder_ns: Option<u64>,
}

shape!(CostDocument {
    event_ns,
    cpu,
    events,
    share,
    span_ns,
    recorder_ns
});

/// Returns what a document says of it.
pub fn document(report: &CostReport) -> CostDocument {
    CostDocument {
        event_ns: report.event_ns,
        cpu: report.cpu,
        events: report.events,
        share: report.share,
        span_ns: report.span_ns,
        recorder_ns: report.recorder_ns,
    }
}
