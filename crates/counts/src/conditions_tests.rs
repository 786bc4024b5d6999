//! Tests of conditions, over readings of a counter.

use facts::Facts;
use model::{Polls, Times};

use super::*;
use crate::named::{Choice, named};
use crate::roles::ThreadRole;
use crate::snapshot::{DurationBuckets, Snapshot};

const SECOND_NS: u64 = 1_000_000_000;

/// A vCPU that did this since the beginning.
fn vcpu(tid: i32, states: &[(State, u64)]) -> LiveVcpu {
    let mut times = Times::default();
    for (state, ns) in states {
        times.add(*state, *ns);
    }
    LiveVcpu {
        tid,
        pid: 10,
        number: Some(0),
        ended: false,
        times,
        exits: 0,
        before_first_entry: 0,
        without_entry: 0,
        polls: Polls::default(),
        woken: DurationBuckets::default(),
        preempted: DurationBuckets::default(),
    }
}

fn at(seconds: u64, vcpus: Vec<LiveVcpu>) -> Snapshot {
    Snapshot {
        to_ns: seconds * SECOND_NS,
        vcpus,
        ..Snapshot::default()
    }
}

/// Returns the symptoms of each interval between two readings.
fn judged(readings: &[Snapshot]) -> Vec<Vec<Symptom>> {
    let mut judge = SymptomJudge::new(ConditionLimit::defaults());
    let intervals = readings.windows(2).map(|two| two[1].since(&two[0]));
    let named = intervals.map(|one| named(&one, &Facts::default(), None, &Choice::default()));
    named.map(|one| judge.interval(&one)).collect()
}

/// Returns the conditions that lasted in each interval.
fn lasting(readings: &[Snapshot]) -> Vec<Vec<&'static str>> {
    let judged = judged(readings);
    let of_interval = |all: &Vec<Symptom>| {
        let lasting = all.iter().filter(|one| one.is_lasting);
        lasting.map(|one| one.condition).collect()
    };
    judged.iter().map(of_interval).collect()
}

/// A vCPU that waits for so many tenths of a second of each second, one number for each of them.
fn stolen(tenths: &[u64]) -> Vec<Snapshot> {
    let mut sums = [0, 0];
    let mut readings = vec![at(0, vec![vcpu(11, &[])])];
    for (tenth, second) in tenths.iter().zip(1..) {
        sums[0] += tenth * SECOND_NS / 10;
        sums[1] += (10 - tenth) * SECOND_NS / 10;
        let states = [(State::Runnable, sums[0]), (State::Guest, sums[1])];
        readings.push(at(second, vec![vcpu(11, &states)]));
    }
    readings
}

#[test]
fn steal_has_to_last_two_intervals() {
    let found = lasting(&stolen(&[0, 5, 0, 5, 5, 5, 1]));
    let [none, steal] = [vec![], vec!["steal"]];
    let expected = [&none, &none, &none, &none, &steal, &steal, &none];
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    let last = judged(&stolen(&[5, 5])).pop().expect("two intervals");
    assert_eq!(
        last[0].text,
        "vCPU 0 of 10 waited for a CPU for 50 % of the time"
    );
    assert_eq!(last[0].subject, IncidentSubject::Vm(10));
}

#[test]
fn a_quiet_host_has_no_symptoms() {
    assert!(judged(&stolen(&[1; 300])).iter().all(Vec::is_empty));
    let halted = |second: u64| {
        at(
            second,
            vec![vcpu(11, &[(State::Halted, second * SECOND_NS)])],
        )
    };
    let readings: Vec<Snapshot> = (0..300).map(halted).collect();
    assert!(judged(&readings).iter().all(Vec::is_empty));
}

#[test]
fn a_counter_that_begins_anew_is_no_symptom() {
    let mut readings = stolen(&[1, 1]);
    // As if it had wrapped: less than before, then on from there; and a jump by more than the time that passed.
    for (second, ns) in [(3, 5), (4, SECOND_NS / 10), (5, u64::MAX / 2), (6, 7)] {
        let states = [(State::Runnable, ns), (State::Guest, SECOND_NS * second)];
        readings.push(at(second, vec![vcpu(11, &states)]));
    }
    assert!(judged(&readings).iter().all(Vec::is_empty));
}

#[test]
fn who_begins_or_ends_within_an_interval_is_no_symptom() {
    let waits = |tenths: u64| vcpu(11, &[(State::Runnable, tenths * SECOND_NS / 10)]);
    let ended = LiveVcpu {
        ended: true,
        ..waits(18)
    };
    // It begins within the first second and ends within the third.
    let readings = [
        at(0, vec![]),
        at(1, vec![waits(3)]),
        at(2, vec![waits(13)]),
        at(3, vec![ended]),
        at(4, vec![]),
    ];
    assert!(lasting(&readings).iter().all(Vec::is_empty));
    // An interval of no length has nothing to judge.
    let same = [at(1, vec![waits(3)]), at(1, vec![waits(13)])];
    assert!(judged(&same).iter().all(Vec::is_empty));
}

#[test]
fn halts_that_do_not_halt_are_found_by_polling_and_by_number() {
    let polls = |second: u64| {
        let states = [
            (State::Poll, second * SECOND_NS * 6 / 10),
            (State::Halted, second * SECOND_NS * 4 / 10),
        ];
        let polls = Polls {
            succeeded: second * 15_000,
            failed: second * 4_000,
            unpolled: second * 2_000,
            ..Polls::default()
        };
        LiveVcpu {
            polls,
            ..vcpu(11, &states)
        }
    };
    let readings: Vec<Snapshot> = (0..4)
        .map(|second| at(second, vec![polls(second)]))
        .collect();
    let both = vec!["halt-polling", "short-halts"];
    assert_eq!(lasting(&readings), [vec![], both.clone(), both]);
    let text = &judged(&readings)[1][1].text;
    assert_eq!(text, "vCPU 0 of 10 halted 21000 times a second");
}

#[test]
fn a_back_end_that_waits_is_found_by_its_name() {
    let thread = |second: u64| LiveThread {
        tid: 30,
        vm_pid: 10,
        runnable_ns: second * SECOND_NS / 4,
        slept_ns: second * SECOND_NS * 3 / 4,
        ..LiveThread::default()
    };
    let reading = |second: u64| Snapshot {
        threads: vec![thread(second)],
        ..at(second, vec![])
    };
    let readings: Vec<Snapshot> = (0..3).map(reading).collect();
    assert_eq!(lasting(&readings), [vec![], vec!["back-end-waits"]]);
    // Without facts nobody knows its name, but what it is.
    let who = &judged(&readings)[1][0].who;
    assert_eq!(
        who,
        &format!("{} (thread 30) of 10", ThreadRole::Vmm.name())
    );
}

#[test]
fn each_condition_has_one_id_and_its_limit_can_be_said() {
    for (at, one) in CONDITIONS.iter().enumerate() {
        let first = CONDITIONS.iter().position(|other| other.id == one.id);
        assert_eq!(first, Some(at), "{}", one.id);
        assert!(one.sentence.contains("{who}") && one.sentence.contains("{measured}"));
        assert!(one.id != PATH_CONDITION && condition(one.id).is_some());
        assert!(one.limit > 0.0 && one.intervals > 0, "{}", one.id);
    }
}
