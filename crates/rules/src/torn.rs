//! What is left of a finding where the recording has holes.

use crate::evidence::says;
use crate::{Case, Finding, Severity};

/// Findings that rest on times between events are no surer than this where events are missing all through the
/// recording.
const MOST: f64 = 0.5;

/// Rules whose findings rest on nothing but that events are there, or on what the recorder says: holes make them no
/// less true.
const OF_COUNTS: [&str; 3] = ["lossy-recording", "nested-exits", "hyperv-synic-autoeoi"];

/// Lowers confidence and severity of a finding, and says why, where its recording has holes
/// ([`analysis::ContinuityReport`]): a time between two events may then be one between events that do not belong
/// together, and nobody knows what the cause costs.
pub(crate) fn lower(case: &Case<'_>, finding: &mut Finding) {
    let continuity = &case.picture.continuity;
    if !continuity.torn() || OF_COUNTS.contains(&finding.rule.id) {
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
