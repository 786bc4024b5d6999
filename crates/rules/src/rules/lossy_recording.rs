//! Events are missing in the recording.

use crate::caps;
use crate::evidence::{Ns, Of, Share, says};
use crate::{Case, Finding, Remedy, RestsOn, Rule, RuleLook, Severity, Verdict};
pub(crate) static RULE: Rule = Rule {
    id: "lossy-recording",
    title: "The recording lost events, so its numbers are lower bounds or estimates",
    described_as: &[
        "perf lost events",
        "CPU buffer overrun",
        "trace-cmd lost events, dropped events",
        "numbers of a recording do not add up",
    ],
    looks_at: "what the recorder says of lost events, and whether the file ends before its end",
    needs: "nothing beside the recording",
    record: &[],
    measures: &[],
    cause: "Events came faster than the recorder wrote them, or its buffer was overwritten. An exit whose entry was \
        lost is not timed, or looks too long.",
    found: &[
        "What the recorder says. Confidence 0.99, no cost. `low`; from 0.5 % of events lost `medium`, from 5 % `high`; \
         cut off at least `medium`.",
    ],
    limits: &[],
    seen_from: "any event that the recorder says it lost",
    unknown: "Nothing beside the recording. For a printed table perf prints how many events were lost, but not of how \
        many: `medium`.",
    advice: "",
    looks_alike: "",
    remedies: &[
        Remedy {
            what: "Give it more room: trapline record --ring 16384 (KiB for each CPU), trace-cmd record -b 65536, perf \
                record -m 64M.",
            price: "Memory of the host, for each CPU.",
            unless: "Check that the host has the memory to spare.",
            check: "trapline info: lost events.",
        },
        Remedy {
            what: "Record less: only the events and CPUs that the question needs (-e kvm:kvm_exit -e kvm:kvm_entry, \
                -C, -p), no stacks, filters in the kernel (--filter), a shorter time; write to a RAM disk.",
            price: "What is not recorded cannot be analysed later.",
            unless: "Keep sched:sched_switch if the question is about waits for a CPU.",
            check: "trapline info: lost events.",
        },
        Remedy {
            what: "Let the recorder end by itself (Ctrl-C once, or record a command such as sleep 10) with enough disk \
                space, and copy the whole file: compare the sizes.",
            price: "None.",
            unless: "After a crash of the host the file is all there is. If its event formats are missing, --formats \
                OTHER takes them from another recording of the same kernel.",
            check: "trapline info: complete.",
        },
    ],
    sources: &[
        "Linux, include/uapi/linux/perf_event.h (PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES); \
         Documentation/trace/ring-buffer-design.rst",
    ],
    explains: &[],
    look: RuleLook::Case(look),
};

/// The remedy for files that were cut off.
const CUT_OFF: usize = 2;

/// Says what a cut does, in a file that holds its events CPU by CPU (`unevenly`), or in the order of their times.
fn cut_off(unevenly: bool) -> String {
    let left = match unevenly {
        true => {
            "The file stores events by CPU (trace.dat) or by round of reading (perf.data), so the events that are left \
             end at a different time for each CPU. What a vCPU did after its CPU's last event is unknown"
        }
        false => "The part before the cut is complete",
    };
    format!(
        "The recorder was killed, its disk was full, or the file was copied in part. {left}. The end of the file is \
         missing, and with it the event formats of a perf.data."
    )
}

fn look(case: &Case<'_>) -> Verdict {
    let quality = &case.picture.quality;
    if quality.lost_events == 0 && !quality.truncated {
        return Verdict::Clear;
    }
    let kept: u64 = case
        .picture
        .info
        .events
        .iter()
        .map(|event| event.count)
        .fold(0, u64::saturating_add);
    let all = kept.saturating_add(quality.lost_events);
    let mut finding = Finding::new(&RULE, 0.99).rests_on(RestsOn::Counts);
    if !quality.truncated {
        finding = finding.only(&[0, 1]);
    }
    if quality.lost_events > 0 && case.printed() {
        finding = finding
            .title(format!("{} events were lost", quality.lost_events))
            .evidence(says!(
                "perf reported {lost} lost events for the table, but not of how many.",
                lost = quality.lost_events,
            ));
        finding.at_least = Severity::Medium;
    } else if quality.lost_events > 0 {
        let lost = quality.lost_events as f64 / all.max(1) as f64;
        finding = finding
            .title(format!("{} events were lost", quality.lost_events))
            .evidence(says!(
                "{lost} of {all} events were lost ({share}).",
                lost = quality.lost_events,
                all = all,
                share = Of(quality.lost_events, all),
            ));
        finding.at_least = if lost >= 0.05 {
            Severity::High
        } else if lost >= 0.005 {
            Severity::Medium
        } else {
            Severity::Low
        };
    }
    if quality.truncated {
        if quality.lost_events == 0 {
            let title = match kept {
                0 => "The recording is cut off before its first event: nothing can be read",
                _ => "The recording is cut off",
            };
            finding = finding.title(title).only(&[CUT_OFF]);
            finding.cause = cut_off(quality.uneven_from.is_some());
        }
        finding = finding.evidence("The file is cut off: what happened later is unknown.");
        if let Some((ns, share)) = caps::uneven(case) {
            finding = finding.evidence(says!(
                "In the last {time} ({share} of the recorded time) events of some CPUs are missing.",
                time = Ns(ns),
                share = Share(share),
            ));
        }
        finding.at_least = finding.at_least.max(Severity::Medium);
    }
    finding.found()
}
