//! What is left out of a profile, or not certain.

use analysis::{ProfileOf, ProfileReport};

/// Returns what is left out or not certain, in sentences.
pub(super) fn warnings(report: &ProfileReport) -> Vec<String> {
    let mut warnings = Vec::new();
    let shown = report.shown().samples;
    let waits = matches!(report.of, ProfileOf::OffCpu | ProfileOf::Both);
    let what = if waits { "stacks" } else { "samples" };
    if report.unresolved.samples > 0 {
        warnings.push(format!(
            "{} of {shown} {what} shown have functions without a name; --kallsyms names those of the kernel.",
            report.unresolved.samples
        ));
    }
    if report.unresolved_guest.samples > 0 {
        warnings.push(format!(
            "{} of them are in a guest: the recording has no symbols of it, --guest-kallsyms names those of its kernel.",
            report.unresolved_guest.samples
        ));
    }
    if waits && report.without_stack.samples > 0 {
        warnings.push(format!(
            "{} of {shown} waits shown have no stack: record switches with 'perf record -g' to see what was waited for.",
            report.without_stack.samples
        ));
        if !report.with_idle {
            warnings.push(
                "Without a stack the wait of a guest that had halted looks like any other: those are not left out."
                    .to_owned(),
            );
        }
    }
    if report.still_off.samples > 0 {
        warnings.push(format!(
            "{} still without a CPU when the recording ended, which counts up to there.",
            words::counted(report.still_off.samples, "thread was", "threads were")
        ));
    }
    if report.idle_interrupts > 0 && !report.with_idle {
        warnings.push(format!(
            "{} of idle CPUs are in interrupts, which is work that no thread did; --idle shows it.",
            words::plural(report.idle_interrupts, "sample")
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
