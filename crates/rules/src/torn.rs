//! What is left of a finding where the recording has holes.

use crate::evidence::{Share, says};
use crate::{Case, Finding, Severity};

/// Findings that rest on times between events are no surer than this where events are missing all through the
/// recording.
const MOST: f64 = 0.5;

/// Rules whose findings rest on nothing but that events are there, or on what the recorder says: holes make them no
/// less true.
const OF_COUNTS: [&str; 3] = ["lossy-recording", "nested-exits", "hyperv-synic-autoeoi"];

/// A cut that takes no more than this of the time from some CPUs changes little.
const UNEVEN: f64 = 0.05;

/// Returns for how long events of some CPUs are missing at the end of the recording while those of others are there, and what
/// share of the recorded time that is; `None` where it was not cut so.
pub(crate) fn uneven(case: &Case<'_>) -> Option<(u64, f64)> {
    let from = case.picture.quality.uneven_from?;
    let (start, end) = (case.picture.info.start?, case.picture.info.end?);
    let whole = end.saturating_sub(start);
    let ns = end.saturating_sub(from.max(start));
    (whole > 0).then(|| (ns, ns as f64 / whole as f64))
}

/// Lowers confidence and severity of a finding, and says why, where its recording has holes
/// ([`analysis::ContinuityReport`]): a time between two events may then be one between events that do not belong
/// together, and nobody knows what the cause costs.
pub(crate) fn lower(case: &Case<'_>, finding: &mut Finding) {
    let continuity = &case.picture.continuity;
    if OF_COUNTS.contains(&finding.rule.id) {
        return;
    }
    if let Some((_, share)) = uneven(case).filter(|(_, share)| *share > UNEVEN) {
        finding.confidence = finding.confidence.min(MOST);
        finding.evidence.push(says!(
            "Confidence is at most {most}, because the recording is cut off: events of some CPUs are missing in {share} of its time.",
            most = format!("{MOST:.2}"),
            share = Share(share),
        ));
    }
    if !continuity.torn() {
        return;
    }
    finding.confidence = finding.confidence.min(MOST);
    finding.at_most = Severity::Low;
    finding.evidence.push(says!(
        "Confidence is at most {most}, and the cost is unknown, because events are missing in the recording: {holes}.",
        most = format!("{MOST:.2}"),
        holes = continuity.holes().join("; ")
    ));
}
