//! What is left out of a profile, or not certain.

use analysis::{ProfileOf, ProfileReport};
use doubts::{DoubtKind, Doubts};

/// Returns what of stacks is left out or not certain.
pub fn flame_doubts(report: &ProfileReport) -> Doubts {
    let mut doubts = Doubts::default();
    let shown = report.shown().samples;
    let waits = matches!(report.of, ProfileOf::OffCpu | ProfileOf::Both);
    if report.unresolved.samples > 0 {
        doubts.raise(DoubtKind::FramesUnnamed {
            samples: report.unresolved.samples,
            of: shown,
            what: if waits { "stacks" } else { "samples" },
            parts: unnamed_parts(report),
        });
    }
    if !report.kvm_known && report.of != ProfileOf::OffCpu {
        doubts.raise(DoubtKind::KvmUnnamed);
    }
    if waits && report.without_stack.samples > 0 {
        let samples = report.without_stack.samples;
        // Beside waits, stacks are shown of what was sampled on CPUs.
        let waits = match report.of {
            ProfileOf::Both => words::counted(samples, "wait has", "waits have"),
            _ => format!("{samples} of {shown} waits shown have"),
        };
        doubts.raise(DoubtKind::WaitsWithoutStack { waits });
        if !report.with_idle {
            doubts.raise(DoubtKind::HaltsNotSeparated);
        }
    }
    let numbers = [
        (
            report.still_off.samples,
            DoubtKind::WaitsOpen {
                threads: report.still_off.samples,
            },
        ),
        (
            report.idle_interrupts * u64::from(!report.with_idle),
            DoubtKind::IdleInterrupts {
                samples: report.idle_interrupts,
            },
        ),
        (
            report.damaged,
            DoubtKind::StacksDamaged {
                samples: report.damaged,
            },
        ),
        (
            report.deferred,
            DoubtKind::StacksDeferred {
                stacks: report.deferred,
            },
        ),
        (
            report.shortened,
            DoubtKind::StacksShortened {
                samples: report.shortened,
            },
        ),
        (
            report.left_out.samples,
            DoubtKind::SamplesLeftOut {
                samples: report.left_out.samples,
                all: report.samples.samples,
            },
        ),
        (
            report.other_events,
            DoubtKind::OtherSamples {
                samples: report.other_events,
            },
        ),
    ];
    for (number, doubt) in numbers {
        if number > 0 {
            doubts.raise(doubt);
        }
    }
    doubts
}

/// Says whose functions have no names, and what names them.
fn unnamed_parts(report: &ProfileReport) -> Vec<String> {
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
    parts
        .map(|(samples, whose)| format!("{samples} {whose}"))
        .collect()
}
