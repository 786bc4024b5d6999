//! What needs no time order ([`event::Order`]) is found the same whatever order is left.

use std::collections::BTreeSet;

use analysis::{
    By, Continuity, Convention, ExitRow, Exits, Info, Irqs, Options, Study, Vcpus, Window,
};
use event::reasons::Isa;
use event::{EventType, Kind, LostKind, Order, Side, Sink};
use proptest::prelude::*;

use super::stream::{KINDS, One, one, text, types};

/// A walk of each command that reads exits, vCPUs or interrupts.
fn studies() -> [Study; 5] {
    let exits = |options: Options| Study::default().with(Exits::new(options));
    let by = By {
        vm: false,
        vcpu: true,
    };
    [
        exits(Options {
            convention: Convention::Perf,
            ..Options::default()
        }),
        exits(Options {
            by,
            split: true,
            ..Options::default()
        })
        .with(Continuity::new()),
        Study::default()
            .with(Vcpus::new(Window::default()))
            .with(Continuity::new()),
        Study::default().with(Irqs::new()),
        Study::default().with(Info::new()),
    ]
}

/// What a row says; its durations are kept in the order in which they came, which says nothing.
fn row_text(row: &ExitRow) -> String {
    let stats = &row.stats;
    format!(
        "{} {:?} {} {} {:?} {:?} {:?} {:?} {:?} {:?}",
        row.key,
        row.vcpu,
        stats.count(),
        stats.total(),
        (stats.min(), stats.max(), stats.relative_error()),
        [0.5, 0.9, 0.99].map(|percent| stats.percentile(percent)),
        row.times,
        row.user_count,
        row.whole,
        row.vm_pid,
    )
}

/// All that a study found, in words.
fn found(study: &Study) -> String {
    let walked = study.walked();
    let exits = study.get::<Exits>();
    // The slot of a thread is nobody's business but the model's.
    let vms = walked.machine.vms();
    let vms = vms.iter().map(|vm| {
        let vcpus: Vec<_> = vm.vcpus.iter().map(|vcpu| (vcpu.id, vcpu.tid)).collect();
        format!("{:?} {:?} {vcpus:?} {:?}", vm.pid, vm.name, vm.guessed)
    });
    format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        exits.map(|exits| {
            let tables = exits.reports(walked.machine);
            let rows = tables.into_iter().flat_map(|table| table.rows);
            rows.map(|row| row_text(&row)).collect::<Vec<_>>()
        }),
        exits.map(Exits::unpaired),
        study.get::<Continuity>().map(Continuity::report),
        study.get::<Vcpus>().map(|vcpus| vcpus.report(&walked).rows),
        study.get::<Irqs>().map(|irqs| irqs.report(&walked)),
        study.get::<Info>().map(|info| info.report(&walked).events),
        vms.collect::<Vec<_>>(),
    )
}

/// What the recorder and the kernel record: processes, and vCPUs' numbers with exits and entries.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    pids: bool,
    exits: bool,
    entries: bool,
}

/// Walks a stream in time order, or with `mixed` in as little of it as the study needs: between two events that need time
/// order, those of one thread come after those of another.
fn walk(
    mut study: Study,
    stream: &[One],
    isa: Isa,
    recorded: Recorded,
    mixed: Option<u32>,
) -> Study {
    let types = types();
    let wanted: Vec<bool> = types.iter().map(|ty| study.wants(ty)).collect();
    let orders: Vec<Order> = types.iter().map(|ty| study.order(ty)).collect();
    let give = |study: &mut Study, time: u64, one: &One| {
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
            (true, _) | (_, None) => Order::Time,
            (false, Some(_)) => orders[one.kind],
        };
        let waits = match order {
            Order::Time => false,
            Order::Thread => !met.insert(one.thread),
            Order::Any => true,
        };
        if waits {
            waiting.push((time, one));
            continue;
        }
        let key = |thread: usize| (thread as u32).wrapping_mul(mixed.unwrap_or(0)) >> 3;
        waiting.sort_by_key(|(_, one)| key(one.thread));
        for (time, one) in waiting.drain(..) {
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
    for (time, one) in waiting {
        give(&mut study, time, one);
    }
    study.finish();
    study
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
        for (ordered, other) in studies().into_iter().zip(studies()) {
            let ordered = walk(ordered, &stream, isa, recorded, None);
            let other = walk(other, &stream, isa, recorded, Some(mixed | 1));
            prop_assert_eq!(found(&ordered), found(&other));
        }
    }
}

#[test]
fn exits_need_the_order_of_threads_alone() {
    let types = |study: &mut Study, name: &str| {
        let ty = EventType {
            kind: Kind::of("", name),
            ..EventType::bare(0, "", true)
        };
        let wanted = study.wants(&ty);
        (wanted, study.order(&ty))
    };
    let [mut perf, mut exits, mut vcpus, _, mut info] = studies();
    for study in [&mut perf, &mut exits, &mut vcpus] {
        assert_eq!(types(study, "kvm_exit"), (true, Order::Thread));
    }
    assert_eq!(types(&mut exits, "sched_switch"), (true, Order::Time));
    assert_eq!(types(&mut info, "kvm_mmio"), (true, Order::Any));
}
