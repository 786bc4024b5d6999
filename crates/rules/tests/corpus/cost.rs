//! `tracing-disturbs`, where the recorder measured what an event costs.

use analysis::{CpuSigns, EventCount, Picture};
use event::RecordingCost;
use rules::{Case, Finding, diagnose};

const SECOND: u64 = 1_000_000_000;

/// A second in which CPU 1 recorded 100,000 events, at least `apart_ns` apart.
fn picture(apart_ns: u64, event_ns: Option<u64>) -> Picture {
    let mut picture = Picture {
        span_ns: Some(SECOND),
        ..Picture::default()
    };
    picture.signs.cpus = [1_000, 100_000]
        .map(|events| CpuSigns {
            events,
            ..CpuSigns::default()
        })
        .to_vec();
    picture.info.events = vec![EventCount {
        name: "kvm:kvm_exit".to_owned(),
        count: 101_000,
    }];
    for _ in 0..1_000 {
        picture.recorder.gaps.add(apart_ns);
    }
    picture.about.cost = event_ns.map(|event_ns| RecordingCost {
        event_ns,
        mean_ns: None,
        busiest_cpu: None,
        cpu: 0,
        recorder_ns: None,
    });
    picture
}

fn found(picture: &Picture) -> Option<Finding> {
    let cases = [Case {
        picture,
        facts: None,
        domain: None,
    }];
    let mut findings = diagnose(&cases).findings.into_iter();
    findings.find(|one| one.rule.id == "tracing-disturbs")
}

#[test]
fn what_was_measured_is_no_bound() {
    // Without it there is only a bound: 100,000 events and 2 us between a thread's.
    let bound = found(&picture(2_000, None)).expect("up to a fifth of the CPU");
    assert!(bound.title.contains("up to"), "{}", bound.title);
    // 700 ns times 100,000 are 70 ms of a second.
    let recorded = found(&picture(2_000, Some(700))).expect("7 % of the CPU");
    assert_eq!(recorded.title, "Recording took 7.0 % of CPU 1's time");
    assert!(recorded.confidence > bound.confidence);
    assert_eq!(recorded.cost.map(|cost| cost.ns), Some(70_000_000));
    // 100 ns are 1 %: what the bound fears is refuted.
    assert!(found(&picture(2_000, Some(100))).is_none());
    // A number from a file may be anything.
    let recorded = found(&picture(2_000, Some(u64::MAX))).expect("all of the CPU");
    assert_eq!(recorded.cost.map(|cost| cost.ns), Some(SECOND));
}
