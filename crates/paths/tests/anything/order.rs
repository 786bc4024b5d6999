//! What needs no time order ([`event::EventOrder`]) is found the same whatever order is left.

use std::collections::BTreeSet;

use event::reasons::Isa;
use event::{EventOrder, EventType, Kind, LostKind, Side, Sink};
use proptest::prelude::*;

use super::stream::{KINDS, One, THREADS, one, text, types};
use crate::common::found::{AskedStudy, found, studies};

/// What the recorder and the kernel record: processes, and vCPUs' numbers with exits and entries.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    pids: bool,
    exits: bool,
    entries: bool,
}

/// Walks a stream in time order, or with `mixed` in as little of it as the study needs: between two events that need
/// time order, each thread and each CPU has its own in order, and no more is certain.
fn walk(
    mut study: AskedStudy,
    stream: &[One],
    isa: Isa,
    recorded: Recorded,
    mixed: Option<u32>,
) -> AskedStudy {
    let types = types();
    let wanted: Vec<bool> = types.iter().map(|ty| study.wants(ty)).collect();
    let orders: Vec<EventOrder> = types.iter().map(|ty| study.order(ty)).collect();
    let give = |study: &mut AskedStudy, time: u64, one: &One| {
        let mut one = one.clone();
        // A kernel records the vCPU's number with all events of a kind or with none.
        match KINDS[one.kind].1 {
            Kind::KvmExit => one.flag = recorded.exits,
            Kind::KvmEntry => one.flag = recorded.entries,
            _ => {}
        }
        let text = text(&one);
        let event = one.event(time, &types[one.kind], isa, recorded.pids, &text);
        assert!(study.event(&event).is_continue());
    };
    let mut waiting: Vec<(u64, &One)> = Vec::new();
    let mut met = BTreeSet::new();
    let mut time = 1_000_000u64;
    for one in stream {
        time = one.time_after(time);
        if !one.lost && !wanted[one.kind] {
            continue;
        }
        let order = match (one.lost, mixed) {
            (true, _) | (_, None) => EventOrder::Time,
            (false, Some(_)) => orders[one.kind],
        };
        let waits = match order {
            EventOrder::Time => false,
            EventOrder::Thread => !met.insert(one.thread),
            EventOrder::Any => true,
        };
        if waits {
            waiting.push((time, one));
            continue;
        }
        for (time, one) in mixed_order(&mut waiting, mixed.unwrap_or(0)) {
            give(&mut study, time, one);
        }
        if one.lost {
            study.side(&Side::Lost {
                time,
                cpu: one.cpu,
                buffer: 0,
                count: None,
                kind: LostKind::Ring,
            });
        } else {
            give(&mut study, time, one);
        }
    }
    for (time, one) in mixed_order(&mut waiting, mixed.unwrap_or(0)) {
        give(&mut study, time, one);
    }
    study.finish();
    study
}

/// Takes what waits out in another order, in which those of each thread, and of each CPU, are as they were.
fn mixed_order<'s>(waiting: &mut Vec<(u64, &'s One)>, mixed: u32) -> Vec<(u64, &'s One)> {
    let mut out = Vec::new();
    while !waiting.is_empty() {
        let free = (0..waiting.len()).filter(|at| {
            let one = waiting[*at].1;
            let mut before = waiting[..*at].iter();
            !before.any(|(_, other)| other.thread == one.thread || other.cpu == one.cpu)
        });
        let key = |at: &usize| {
            (waiting[*at].1.cpu as u32)
                .wrapping_add(1)
                .wrapping_mul(mixed)
                >> 3
        };
        let next = free.min_by_key(key).unwrap_or(0);
        out.push(waiting.remove(next));
    }
    out
}

/// What each study finds in time order, and with `mixed` in as little of it as it needs.
fn both(
    stream: &[One],
    isa: Isa,
    recorded: Recorded,
    mixed: u32,
) -> impl Iterator<Item = (String, String)> {
    let pairs = studies().into_iter().zip(studies());
    pairs.map(move |(ordered, other)| {
        let ordered = walk(ordered, stream, isa, recorded, None);
        let other = walk(other, stream, isa, recorded, Some(mixed | 1));
        (found(&ordered), found(&other))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_more_order_is_needed_than_is_asked_for(
        stream in prop::collection::vec(one(), 0..400),
        svm in any::<bool>(),
        recorded in any::<[bool; 3]>(),
        mixed in any::<u32>(),
    ) {
        let [pids, exits, entries] = recorded;
        let recorded = Recorded { pids, exits, entries };
        let isa = if svm { Isa::Svm } else { Isa::Vmx };
        for (ordered, other) in both(&stream, isa, recorded, mixed) {
            prop_assert_eq!(ordered, other);
        }
    }
}

/// Two threads of a process run as the same vCPU from the same moment on: one says so, the other one's name does.
#[test]
fn vcpus_that_only_their_threads_tell_apart() {
    let of = |tid: i32, name: &str, step: i64| One {
        kind: KINDS.iter().position(|kind| kind.0 == name).unwrap(),
        thread: THREADS.iter().position(|thread| thread.1 == tid).unwrap(),
        other: 0,
        cpu: 0,
        step,
        number: 1,
        flag: true,
        bare: false,
        lost: false,
        guest: false,
    };
    let stream = [
        of(201, "kvm_fpu", 0),
        of(202, "kvm_fpu", 0),
        of(202, "kvm_exit", 0),
        of(201, "kvm_entry", 0),
        // One more thread, for time to pass.
        of(101, "sched_switch", 1),
    ];
    let recorded = Recorded {
        pids: true,
        exits: false,
        entries: true,
    };
    for mixed in 0..64 {
        for (ordered, other) in both(&stream, Isa::Vmx, recorded, mixed) {
            assert_eq!(ordered, other);
        }
    }
}

#[test]
fn exits_need_the_order_of_threads_alone() {
    let types = |study: &mut AskedStudy, name: &str| {
        let ty = EventType {
            kind: Kind::of("", name),
            ..EventType::bare(0, "", true)
        };
        let wanted = study.wants(&ty);
        (wanted, study.order(&ty))
    };
    let [mut perf, mut exits, mut vcpus, _, mut info] = studies();
    for study in [&mut perf, &mut exits, &mut vcpus] {
        assert_eq!(types(study, "kvm_exit"), (true, EventOrder::Thread));
    }
    assert_eq!(types(&mut exits, "sched_switch"), (true, EventOrder::Time));
    assert_eq!(types(&mut info, "kvm_mmio"), (true, EventOrder::Any));
}
