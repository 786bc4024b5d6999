//! What is left out of a profile, or not certain.

use analysis::{ProfileOf, ProfileReport};

/// Returns what of stacks is left out or not certain, in sentences.
pub fn flame_warnings(report: &ProfileReport) -> Vec<String> {
    let mut warnings = Vec::new();
    let shown = report.shown().samples;
    let waits = matches!(report.of, ProfileOf::OffCpu | ProfileOf::Both);
    let what = if waits { "stacks" } else { "samples" };
    if report.unresolved.samples > 0 {
        let [kernel, user, guest_kernel, guest_user] = report.unresolved_by.map(|sum| sum.samples);
        let parts = [
            (kernel, "in the kernel, where --kallsyms names them"),
            (user, "in user space"),
            (
                guest_kernel,
                "in a guest's kernel, where --guest-kallsyms names them",
            ),
            (
                guest_user,
                "in user space of a guest, of which --guest takes a recording made inside",
            ),
        ];
        let parts = parts.iter().filter(|(samples, _)| *samples > 0);
        let parts: Vec<String> = parts
            .map(|(samples, whose)| format!("{samples} {whose}"))
            .collect();
        warnings.push(format!(
            "{} of {shown} {what} shown have functions without a name: {}.",
            report.unresolved.samples,
            parts.join("; ")
        ));
    }
    if !report.kvm_known && report.of != ProfileOf::OffCpu {
        warnings.push(
            "No function of the host's kernel has a name, so KVM cannot be told from the rest of it.".to_owned(),
        );
    }
    if waits && report.without_stack.samples > 0 {
        // Beside waits, stacks are shown of what was sampled on CPUs.
        let of = match report.of {
            ProfileOf::Both => {
                words::counted(report.without_stack.samples, "wait has", "waits have")
            }
            _ => format!(
                "{} of {shown} waits shown have",
                report.without_stack.samples
            ),
        };
        warnings.push(format!(
            "{of} no stack: record switches with 'perf record -g' to see what was waited for.",
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
