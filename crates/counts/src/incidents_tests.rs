//! Tests of incidents.

use super::*;

const SECOND_NS: u64 = 1_000_000_000;
/// As long as an interval.
const INTERVAL_NS: u64 = 2 * SECOND_NS;

const RULES: IncidentRules = IncidentRules {
    quiet_intervals: 5,
    cool_down_ns: 60 * SECOND_NS,
    recording_ns: 2 * SECOND_NS,
    most_an_hour: 10,
};

fn symptom(condition: &'static str, vm: i32, who: &str) -> Symptom {
    Symptom {
        condition,
        subject: IncidentSubject::Vm(vm),
        label: vm.to_string(),
        who: who.to_owned(),
        measured: 0.5,
        text: format!("{who} is not well"),
        is_lasting: true,
    }
}

/// What was said of each interval, of which one says what its symptoms are. An incident's first letter and number.
fn said(rules: IncidentRules, intervals: u64, symptoms: impl Fn(u64) -> Vec<Symptom>) -> String {
    let mut tracker = IncidentTracker::new(rules);
    let mut steps = Vec::new();
    for at in 0..intervals {
        let now_ns = at * INTERVAL_NS;
        for one in symptoms(at) {
            steps.extend(tracker.symptom(now_ns, one));
        }
        steps.extend(tracker.interval(now_ns));
    }
    let letters = steps.iter().map(|step| match step {
        IncidentStep::Begins { number, .. } => format!("B{number}"),
        IncidentStep::Refused { number, .. } => format!("X{number}"),
        IncidentStep::Joins { number, .. } => format!("J{number}"),
        IncidentStep::Resumes { number } => format!("R{number}"),
        IncidentStep::Ends { number, .. } => format!("E{number}"),
    });
    letters.collect::<Vec<_>>().join(" ")
}

#[test]
fn three_one_after_the_other_are_three() {
    let symptoms = |at: u64| match at {
        10..15 => vec![symptom("steal", 1, "vCPU 0")],
        40..44 => vec![symptom("back-end-waits", 2, "vhost-2")],
        70..80 => vec![symptom("steal", 3, "vCPU 1")],
        _ => Vec::new(),
    };
    assert_eq!(said(RULES, 300, symptoms), "B1 E1 B2 E2 B3 E3");
}

#[test]
fn one_that_comes_and_goes_is_one() {
    // Each third interval, so it is never quiet for long.
    let often = |at: u64| match at % 3 {
        0 => vec![symptom("steal", 1, "vCPU 0")],
        _ => Vec::new(),
    };
    assert_eq!(said(RULES, 300, often), "B1");
    // Each tenth: it is over each time, and comes back.
    let seldom = |at: u64| match at % 10 {
        0 => vec![symptom("steal", 1, "vCPU 0")],
        _ => Vec::new(),
    };
    let said = said(RULES, 100, seldom);
    assert_eq!(said.matches('B').count(), 1, "{said}");
    assert_eq!(said.matches('R').count(), 9, "{said}");
}

#[test]
fn nothing_is_nothing_and_what_does_not_last_is_nothing() {
    assert_eq!(said(RULES, 300, |_| Vec::new()), "");
    let short = |_| {
        let one = symptom("steal", 1, "vCPU 0");
        vec![Symptom {
            is_lasting: false,
            ..one
        }]
    };
    assert_eq!(said(RULES, 300, short), "");
}

#[test]
fn what_is_short_keeps_an_incident_from_ending_and_brings_none_back() {
    let symptoms = |at: u64| {
        let one = symptom("steal", 1, "vCPU 0");
        let is_lasting = at == 0;
        match at {
            0 | 4 | 8 | 20 => vec![Symptom { is_lasting, ..one }],
            _ => Vec::new(),
        }
    };
    assert_eq!(said(RULES, 30, symptoms), "B1 E1");
}

#[test]
fn more_of_one_vm_joins_and_so_does_what_is_in_the_same_recording() {
    let symptoms = |at: u64| match at {
        0 => vec![symptom("steal", 1, "vCPU 0")],
        1 => vec![symptom("steal", 2, "vCPU 0")],
        2 => vec![
            symptom("steal", 1, "vCPU 0"),
            symptom("steal", 1, "vCPU 1"),
            symptom("steal", 2, "vCPU 0"),
        ],
        3 => vec![symptom("back-end-waits", 3, "vhost-3")],
        _ => Vec::new(),
    };
    // VM 2 is in the recording of VM 1, and VM 3 is not.
    assert_eq!(said(RULES, 5, symptoms), "B1 J1 J1 B2");
}

#[test]
fn what_all_have_is_one_incident_unless_it_is_much_later() {
    let symptoms = |at: u64| {
        let mut all = vec![symptom("steal", 1, "vCPU 0")];
        match at {
            // Long after the recording, and within the cool-down.
            20..25 => all.push(symptom("steal", 2, "vCPU 0")),
            // Two minutes later: nobody would hear of it as long as VM 1 has it.
            60..65 => all.push(symptom("steal", 3, "vCPU 0")),
            _ => {}
        }
        all
    };
    assert_eq!(said(RULES, 80, symptoms), "B1 J1 B2 E2");
    // One that is over has no part in what others have.
    let symptoms = |at: u64| match at {
        0 => vec![symptom("steal", 1, "vCPU 0")],
        10 => vec![symptom("steal", 2, "vCPU 0")],
        _ => Vec::new(),
    };
    assert_eq!(said(RULES, 20, symptoms), "B1 E1 B2 E2");
}

#[test]
fn there_are_no_more_recordings_in_an_hour_than_may_be() {
    let rules = IncidentRules {
        most_an_hour: 2,
        cool_down_ns: 0,
        ..RULES
    };
    let symptoms = |at: u64| match at % 600 {
        0 => vec![symptom("steal", 1, "vCPU 0")],
        _ => Vec::new(),
    };
    // One in twenty minutes: the third is in the same hour as the first, the fourth is an hour after it.
    let said = said(rules, 4 * 600, symptoms);
    assert_eq!(said, "B1 E1 B2 E2 X3 E3 B4 E4");
}

#[test]
fn memory_is_bounded_however_many_there_are() {
    let mut tracker = IncidentTracker::new(RULES);
    for vm in 0..100_000 {
        let one = symptom("steal", vm, &format!("vCPU {vm}"));
        tracker.symptom(SECOND_NS * 3 * u64::from(vm.unsigned_abs()), one);
    }
    assert_eq!(tracker.incidents.len(), MOST_INCIDENTS);
    let longest = tracker.incidents.iter().map(|one| one.symptoms.len()).max();
    assert_eq!(longest, Some(MOST_SYMPTOMS));
}
