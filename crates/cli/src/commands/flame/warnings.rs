//! What is left out of a profile, or not certain.

use analysis::ProfileReport;

/// Returns what is left out or not certain, in sentences.
pub(super) fn warnings(report: &ProfileReport) -> Vec<String> {
    let mut warnings = Vec::new();
    let shown = report.shown().samples;
    if report.unresolved.samples > 0 {
        warnings.push(format!(
            "{} of {shown} samples shown have functions without a name in their stacks; --kallsyms names those of the kernel.",
            report.unresolved.samples
        ));
    }
    if report.damaged > 0 {
        warnings.push(format!(
            "Stacks of {} are damaged: their innermost address alone is shown.",
            words::plural(report.damaged, "sample")
        ));
    }
    if report.shortened > 0 {
        warnings.push(format!(
            "Stacks of {} are shown in part: they are too deep, or too many.",
            words::plural(report.shortened, "sample")
        ));
    }
    if report.other_events > 0 {
        warnings.push(format!(
            "{} of other events are not shown; --event chooses the event.",
            words::plural(report.other_events, "sample")
        ));
    }
    warnings
}
