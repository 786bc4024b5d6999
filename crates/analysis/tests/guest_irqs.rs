//! What guests did with injected interrupts: recordings made by hand, of which the answers are known.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use analysis::{GuestIrqs, IrqGuest, Study, Window};
use event::{Body, Data, Decoder, Event, EventType, Kind, LostKind, Side, Sink};
use proptest::prelude::*;

/// Kinds of events: the machine, the name, what it is, and whether it is certain that it was recorded.
const KINDS: [(u16, &str, Kind, bool); 12] = [
    (0, "kvm_entry", Kind::KvmEntry, true),
    (0, "kvm_exit", Kind::KvmExit, true),
    (0, "kvm_inj_virq", Kind::Other, true),
    (1, "irq_handler_entry", Kind::Other, true),
    (1, "irq_handler_exit", Kind::Other, true),
    (1, "softirq_entry", Kind::Other, true),
    (1, "sched_switch", Kind::SchedSwitch, true),
    (1, "sched_wakeup", Kind::SchedWakeup, true),
    (1, "local_timer_entry", Kind::Other, false),
    (1, "local_timer_exit", Kind::Other, false),
    (1, "reschedule_entry", Kind::Other, true),
    (1, "vector_alloc", Kind::Other, true),
];

/// The host's thread of the guest's CPU 0; that of CPU 1 is the next.
const TID: i32 = 10;

fn kinds() -> Vec<EventType<'static>> {
    let kinds = KINDS.iter().zip(0..);
    let kinds = kinds.map(|((machine, name, kind, recorded), index)| EventType {
        index,
        machine: *machine,
        system: match name.split('_').next() {
            Some("kvm") => "kvm",
            Some("irq" | "softirq") => "irq",
            Some("sched") => "sched",
            _ => "irq_vectors",
        },
        name,
        label: name,
        kind: *kind,
        format: None,
        decoder: Decoder::default(),
        recorded: *recorded,
    });
    kinds.collect()
}

/// A line: when, on which vCPU, the event, and what it says. `LOST` and `END` are the guest's side records, `HOST LOST`
/// the host's.
type Line<'l> = (u64, i32, &'l str, &'l str);

fn side(study: &mut Study, time: u64, cpu: i32, name: &str) -> bool {
    let lost = |cpu| Side::Lost {
        time,
        cpu,
        buffer: 0,
        count: None,
        kind: LostKind::Ring,
    };
    match name {
        "LOST" => study.side_of(1, &lost(cpu)),
        "END" => study.side_of(1, &Side::End { time, cpu: None }),
        "END OF CPU" => {
            let cpu = Some(cpu);
            study.side_of(1, &Side::End { time, cpu });
        }
        "HOST LOST" => study.side(&lost(7)),
        _ => return false,
    }
    true
}

/// What the host's recording begins and ends with: it shows both vCPUs all the time.
const AROUND: [Line<'static>; 2] = [(1, 0, "kvm_exit", ""), (1, 1, "kvm_exit", "")];

fn walk_in(window: Window, lines: &[Line<'_>]) -> GuestIrqs {
    let end = lines.iter().map(|line| line.0).max().unwrap_or(0) + 1;
    let behind = AROUND.map(|(_, vcpu, name, text)| (end, vcpu, name, text));
    let lines: Vec<Line<'_>> = AROUND.iter().chain(lines).chain(&behind).copied().collect();
    walk_alone(window, &lines)
}

/// Walks lines and no others.
fn walk_alone(window: Window, lines: &[Line<'_>]) -> GuestIrqs {
    let vcpus = [(0, TID), (1, TID + 1)];
    let of = vcpus.map(|(number, tid)| (1, number, tid));
    let mut study = Study::default();
    let irqs = study.add(GuestIrqs::new(window.clone(), of));
    let mut study = study.choose(window, analysis::LeftOut::default());
    study.guest_vcpus(1, vcpus);
    let kinds = kinds();
    for ty in &kinds {
        study.wants(ty);
    }
    for (time, vcpu, name, text) in lines {
        if side(&mut study, *time, *vcpu, name) {
            continue;
        }
        let ty = kinds.iter().find(|ty| ty.name == *name);
        let ty = ty.unwrap_or_else(|| panic!("no event is called {name}"));
        let event = Event {
            time: *time,
            cpu: *vcpu,
            tid: match ty.machine {
                0 => TID + vcpu,
                _ => 1,
            },
            pid: -1,
            ty,
            body: Body::Text {
                text,
                data: Data::Other,
            },
            sample: None,
            buffer: 0,
            comm: None,
        };
        assert_eq!(study.event(&event), ControlFlow::Continue(()));
    }
    study.finish().take(irqs)
}

fn found(irqs: &GuestIrqs, vcpu: i32) -> BTreeMap<Option<u8>, IrqGuest> {
    irqs.of_vcpu(TID + vcpu)
}

/// What is found of vCPU 0.
fn walk(lines: &[Line<'_>]) -> BTreeMap<Option<u8>, IrqGuest> {
    found(&walk_in(Window::default(), lines), 0)
}

type Counts = (Option<u64>, Option<u64>, Option<u64>);

fn counts(one: &IrqGuest) -> Counts {
    (one.handled, one.unseen, one.uncovered)
}

fn handlers(one: &IrqGuest) -> Vec<(Option<u32>, &str, u64)> {
    let all = one.handlers.iter();
    all.map(|one| (one.irq, one.name.as_str(), one.runs))
        .collect()
}

const COVERS: Line<'static> = (50, 0, "sched_wakeup", "comm=a pid=1 prio=1 target_cpu=000");
const BEHIND: Line<'static> = (900, 0, "sched_wakeup", "comm=a pid=1 prio=1 target_cpu=000");
const NET: &str = "irq=25 name=virtio0-input.0";
const NET_ENDS: &str = "irq=25 ret=handled";

#[test]
fn exits_are_between_an_injection_and_its_handler() {
    // The EOI of an edge interrupt leaves the guest; so does the handler itself.
    let all = walk(&[
        COVERS,
        (100, 0, "kvm_inj_virq", "IRQ 0x24"),
        (110, 0, "kvm_entry", ""),
        (120, 0, "kvm_exit", ""),
        (150, 0, "kvm_entry", ""),
        (160, 0, "irq_handler_entry", NET),
        (170, 0, "kvm_exit", ""),
        (190, 0, "kvm_entry", ""),
        (200, 0, "irq_handler_exit", NET_ENDS),
    ]);
    let one = &all[&Some(0x24)];
    assert_eq!(counts(one), (Some(1), Some(0), Some(0)));
    assert_eq!((one.delay.count(), one.delay.max()), (1, 60));
    assert_eq!(handlers(one), [(Some(25), "virtio0-input.0", 1)]);
    let handler = &one.handlers[0];
    assert_eq!((handler.times.total(), handler.out_ns), (40, 20));
    assert_eq!(all.len(), 1);
}

#[test]
fn a_repeated_injection_is_the_same_interrupt() {
    let again = "IRQ 0x24 [reinjected]";
    let all = walk(&[
        COVERS,
        (100, 0, "kvm_inj_virq", "IRQ 0x24"),
        (110, 0, "kvm_entry", ""),
        (112, 0, "kvm_exit", ""),
        (115, 0, "kvm_inj_virq", again),
        (120, 0, "kvm_entry", ""),
        (130, 0, "irq_handler_entry", NET),
        (140, 0, "irq_handler_exit", NET_ENDS),
        // The first injection of this one is before the recording.
        (200, 0, "kvm_inj_virq", "IRQ 0x25 [reinjected]"),
        (210, 0, "kvm_entry", ""),
        (230, 0, "irq_handler_entry", "irq=26 name=nvme0q1"),
        (240, 0, "irq_handler_exit", "irq=26 ret=handled"),
    ]);
    let one = &all[&Some(0x24)];
    assert_eq!(counts(one), (Some(1), Some(0), Some(0)));
    assert_eq!(one.delay.max(), 30);
    let other = &all[&Some(0x25)];
    assert_eq!(handlers(other), [(Some(26), "nvme0q1", 1)]);
    assert_eq!(
        (other.delay.count(), counts(other)),
        (0, (None, None, None))
    );
}

#[test]
fn kernels_that_do_not_say_what_is_repeated_leave_it_open() {
    // Before Linux 5.19.
    let all = walk(&[
        COVERS,
        (100, 0, "kvm_inj_virq", "irq 36"),
        (110, 0, "kvm_entry", ""),
        (112, 0, "kvm_exit", ""),
        (115, 0, "kvm_inj_virq", "irq 36"),
        (120, 0, "kvm_entry", ""),
        (130, 0, "irq_handler_entry", NET),
        (140, 0, "irq_handler_exit", NET_ENDS),
        // This one is no repetition: its handler has run.
        (200, 0, "kvm_inj_virq", "irq 36"),
        (210, 0, "kvm_entry", ""),
        (230, 0, "irq_handler_entry", NET),
    ]);
    let one = &all[&Some(36)];
    assert_eq!(counts(one), (Some(2), Some(0), Some(1)));
    assert_eq!((one.delay.min(), one.delay.max()), (15, 30));
}

#[test]
fn a_handler_that_never_began_is_not_the_next_one() {
    for behind in ["sched_switch", "softirq_entry"] {
        let all = walk(&[
            COVERS,
            (100, 0, "kvm_inj_virq", "IRQ 0x24"),
            (110, 0, "kvm_entry", ""),
            (120, 0, behind, ""),
            // Without an injection, as where the guest itself tries a handler again.
            (130, 0, "irq_handler_entry", NET),
            (140, 0, "irq_handler_exit", NET_ENDS),
        ]);
        assert_eq!(counts(&all[&Some(0x24)]), (Some(0), Some(1), Some(0)));
        assert!(all[&Some(0x24)].handlers.is_empty());
        assert_eq!(handlers(&all[&None]), [(Some(25), "virtio0-input.0", 1)]);
    }
    // What the guest did before the entry does not end an interrupt that is yet to come.
    let all = walk(&[
        COVERS,
        (100, 0, "kvm_inj_virq", "IRQ 0x24"),
        (100, 0, "sched_switch", ""),
        (110, 0, "kvm_entry", ""),
        (120, 0, "irq_handler_entry", NET),
    ]);
    assert_eq!(counts(&all[&Some(0x24)]), (Some(1), Some(0), Some(0)));
}

#[test]
fn vectors_of_linux_get_no_devices_name() {
    for vector in ["0xec", "0xfb", "0xfc", "0xfd", "0xf6"] {
        let text = format!("IRQ {vector}");
        let number = u8::from_str_radix(&vector[2..], 16).expect("a number");
        let all = walk(&[
            COVERS,
            (100, 0, "kvm_inj_virq", &text),
            (110, 0, "kvm_entry", ""),
            (160, 0, "irq_handler_entry", NET),
            (170, 0, "irq_handler_exit", NET_ENDS),
            (180, 0, "sched_switch", ""),
        ]);
        let one = &all[&Some(number)];
        assert!(one.handlers.is_empty(), "{vector}: {one:?}");
        // It is certain that 'reschedule' was recorded, though there are none.
        let expected = match number {
            0xfd => (Some(0), Some(1), Some(0)),
            _ => (None, None, Some(1)),
        };
        assert_eq!(counts(one), expected, "{vector}");
        assert_eq!(handlers(&all[&None]), [(Some(25), "virtio0-input.0", 1)]);
    }
}

#[test]
fn events_of_vectors_say_which_it_is() {
    let timer = "vector=236";
    let all = walk(&[
        COVERS,
        (100, 0, "kvm_inj_virq", "IRQ 0xec"),
        (110, 0, "kvm_entry", ""),
        (130, 0, "local_timer_entry", timer),
        (150, 0, "local_timer_exit", timer),
        (200, 0, "kvm_inj_virq", "IRQ 0xec"),
        (210, 0, "kvm_entry", ""),
        (230, 0, "softirq_entry", ""),
        (300, 0, "kvm_inj_virq", "IRQ 0x24"),
        (310, 0, "kvm_entry", ""),
        (330, 0, "irq_handler_entry", NET),
        // Another one within it, whose injection was not seen.
        (340, 0, "local_timer_entry", timer),
        (345, 0, "local_timer_exit", timer),
        (360, 0, "irq_handler_exit", NET_ENDS),
    ]);
    let one = &all[&Some(0xec)];
    assert_eq!(counts(one), (Some(1), Some(1), Some(0)));
    assert_eq!(one.delay.max(), 30);
    assert_eq!(handlers(one), [(None, "local_timer", 2)]);
    assert_eq!(one.handlers[0].times.total(), 25);
    let net = &all[&Some(0x24)];
    assert_eq!(counts(net), (Some(1), Some(0), Some(0)));
    assert_eq!(net.handlers[0].times.total(), 30);
    assert_eq!(all.len(), 2);
}

#[test]
fn handlers_that_share_a_line_are_all_of_one_injection() {
    let all = walk(&[
        COVERS,
        (100, 0, "kvm_inj_virq", "IRQ 0x24"),
        (110, 0, "kvm_entry", ""),
        (120, 0, "irq_handler_entry", "irq=11 name=uhci_hcd:usb1"),
        (130, 0, "irq_handler_exit", "irq=11 ret=unhandled"),
        (131, 0, "irq_handler_entry", "irq=11 name=virtio3"),
        (151, 0, "irq_handler_exit", "irq=11 ret=handled"),
        // Another interrupt is no other handler of the line.
        (160, 0, "irq_handler_entry", "irq=12 name=i8042"),
        (170, 0, "irq_handler_exit", "irq=12 ret=handled"),
    ]);
    let one = &all[&Some(0x24)];
    assert_eq!(counts(one), (Some(1), Some(0), Some(0)));
    assert_eq!(one.delay.max(), 20);
    let shared = [(Some(11), "uhci_hcd:usb1", 1), (Some(11), "virtio3", 1)];
    assert_eq!(handlers(one), shared);
    assert_eq!(handlers(&all[&None]), [(Some(12), "i8042", 1)]);
}

#[test]
fn a_handler_that_is_interrupted_by_another_one_keeps_its_time() {
    let all = walk(&[
        COVERS,
        (100, 0, "kvm_inj_virq", "IRQ 0x24"),
        (110, 0, "kvm_entry", ""),
        (120, 0, "irq_handler_entry", NET),
        (130, 0, "kvm_exit", ""),
        (135, 0, "kvm_inj_virq", "IRQ 0x31"),
        (140, 0, "kvm_entry", ""),
        (150, 0, "irq_handler_entry", "irq=1 name=i8042"),
        (160, 0, "irq_handler_exit", "irq=1 ret=handled"),
        (200, 0, "irq_handler_exit", NET_ENDS),
    ]);
    let [net, keys] = [0x24, 0x31].map(|vector| &all[&Some(vector)]);
    assert_eq!((net.delay.max(), keys.delay.max()), (20, 15));
    let time = |one: &IrqGuest| (one.handlers[0].times.total(), one.handlers[0].out_ns);
    assert_eq!((time(net), time(keys)), ((80, 10), (10, 0)));
}

#[test]
fn a_vector_is_a_vcpus_own_and_may_go_to_another_handler() {
    let turn = |at: u64, vcpu: i32, handler: &'static str| {
        [
            (at, vcpu, "kvm_inj_virq", "IRQ 0x24"),
            (at + 10, vcpu, "kvm_entry", ""),
            (at + 20, vcpu, "irq_handler_entry", handler),
        ]
    };
    let mut lines = vec![COVERS, (51, 1, "sched_wakeup", "")];
    lines.extend(turn(100, 0, NET));
    lines.extend(turn(200, 1, "irq=30 name=nvme0q1"));
    lines.extend(turn(300, 0, NET));
    lines.extend(turn(400, 0, "irq=31 name=ahci"));
    let irqs = walk_in(Window::default(), &lines);
    let [first, second] = [0, 1].map(|vcpu| found(&irqs, vcpu));
    let one = &first[&Some(0x24)];
    assert_eq!(counts(one), (Some(3), Some(0), Some(0)));
    let both = [(Some(25), "virtio0-input.0", 2), (Some(31), "ahci", 1)];
    assert_eq!(handlers(one), both);
    let other = &second[&Some(0x24)];
    assert_eq!(handlers(other), [(Some(30), "nvme0q1", 1)]);
    // Runs whose end was not recorded have no time.
    assert_eq!(other.handlers[0].times.count(), 0);
}

#[test]
fn what_the_recordings_do_not_cover_is_counted_apart() {
    let inject: Line<'_> = (100, 0, "kvm_inj_virq", "IRQ 0x24");
    let next: Line<'_> = (200, 0, "kvm_inj_virq", "IRQ 0x25");
    let entry: Line<'_> = (110, 0, "kvm_entry", "");
    let handler: Line<'_> = (150, 0, "irq_handler_entry", NET);
    let of = |lines: &[Line<'_>]| counts(&walk(lines)[&Some(0x24)]);
    let unseen = (Some(0), Some(1), Some(0));
    let uncovered = (Some(0), Some(0), Some(1));
    // The guest's recording goes on, without a handler.
    assert_eq!(of(&[COVERS, inject, entry, next, BEHIND]), unseen);
    assert_eq!(
        of(&[COVERS, inject, entry, next, (800, 0, "END", "")]),
        unseen
    );
    // It begins later, even with the handler itself: what ran before that one is not known.
    assert_eq!(of(&[inject, entry, next, BEHIND]), uncovered);
    assert_eq!(of(&[inject, entry, handler]), uncovered);
    // It ends before, or this CPU's part of it does.
    assert_eq!(
        of(&[COVERS, (90, 0, "END", ""), inject, entry, next]),
        uncovered
    );
    let cut: Line<'_> = (90, 0, "END OF CPU", "");
    assert_eq!(of(&[COVERS, cut, inject, entry, next]), uncovered);
    assert_eq!(of(&[COVERS, inject, entry, next]), uncovered);
    assert_eq!(of(&[COVERS, inject, entry, (800, 0, "END", "")]), uncovered);
    // Events were lost before, or behind.
    for lost in [(90, 0), (190, 0), (210, 0), (90, -1), (210, -1)] {
        let (time, cpu) = lost;
        let mut lines = vec![COVERS, inject, entry, next, BEHIND, (time, cpu, "LOST", "")];
        lines.sort_by_key(|line| line.0);
        assert_eq!(of(&lines), uncovered, "{lost:?}");
    }
    // Of another CPU's it does not matter.
    let other: Line<'_> = (120, 1, "LOST", "");
    assert_eq!(of(&[COVERS, inject, entry, other, next, BEHIND]), unseen);
    // A handler behind a loss may be anybody's.
    let lost: Line<'_> = (140, 0, "LOST", "");
    let all = walk(&[COVERS, inject, entry, lost, handler]);
    assert_eq!(counts(&all[&Some(0x24)]), uncovered);
    assert_eq!(handlers(&all[&None]), [(Some(25), "virtio0-input.0", 1)]);
    // So may one behind a loss of the host's.
    let lost: Line<'_> = (140, 0, "HOST LOST", "");
    let all = walk(&[COVERS, inject, entry, lost, handler]);
    assert_eq!(counts(&all[&Some(0x24)]), uncovered);
    assert_eq!(handlers(&all[&None]), [(Some(25), "virtio0-input.0", 1)]);
}

#[test]
fn handlers_before_and_behind_the_hosts_recording_are_in_no_row() {
    let run = |at: u64| {
        [
            (at, 0, "irq_handler_entry", NET),
            (at + 5, 0, "irq_handler_exit", NET_ENDS),
        ]
    };
    let mut lines = vec![COVERS];
    lines.extend(run(60));
    lines.push((100, 0, "kvm_entry", ""));
    lines.extend(run(110));
    // This one leaves the guest, and ends when nothing of the host follows.
    lines.push((120, 0, "irq_handler_entry", NET));
    lines.push((130, 0, "kvm_exit", ""));
    lines.push((140, 0, "kvm_entry", ""));
    lines.push((150, 0, "irq_handler_exit", NET_ENDS));
    lines.extend(run(160));
    lines.extend(run(170));
    let irqs = walk_alone(Window::default(), &lines);
    let one = &found(&irqs, 0)[&None];
    assert_eq!(handlers(one)[0].2, 2);
    let times = &one.handlers[0].times;
    assert_eq!((times.count(), times.total()), (1, 5));
    assert_eq!([TID, TID + 1].map(|tid| irqs.outside(tid)), [3, 0]);
}

#[test]
fn injections_count_in_their_window_and_handlers_in_theirs() {
    let window = Window {
        time: Some((100, 250)),
        cpus: None,
    };
    let mut lines = vec![COVERS];
    for at in [60, 110, 160, 240, 280] {
        lines.push((at, 0, "kvm_inj_virq", "IRQ 0x24"));
        lines.push((at + 5, 0, "kvm_entry", ""));
        lines.push((at + 20, 0, "irq_handler_entry", NET));
        lines.push((at + 30, 0, "irq_handler_exit", NET_ENDS));
    }
    let irqs = walk_in(window, &lines);
    let all = found(&irqs, 0);
    let one = &all[&Some(0x24)];
    assert_eq!(counts(one), (Some(3), Some(0), Some(0)));
    assert_eq!(handlers(one)[0].2, 2);
    assert_eq!(irqs.unplaced(), 0);
}

proptest! {
    /// Whatever stands in a recording, each injection and each handler is counted once.
    #[test]
    fn counts_add_up(
        what in prop::collection::vec((0..16usize, 0..3i32, 0..6usize, 0..4u32), 0..300)
    ) {
        let vectors = ["0x24", "0x25", "0xec", "0xfd", "0xf3", "0x20"];
        let texts: Vec<(usize, i32, String)> = what
            .iter()
            .map(|(kind, vcpu, vector, irq)| {
                let name = KINDS.get(*kind).map_or("", |kind| kind.1);
                let text = match name {
                    "kvm_inj_virq" if *irq == 3 => format!("IRQ {} [reinjected]", vectors[*vector]),
                    "kvm_inj_virq" => format!("IRQ {}", vectors[*vector]),
                    name if name.starts_with("irq_") => format!("irq={irq} name=n{vector} ret=handled"),
                    _ => format!("vector={}", 0xec + irq),
                };
                (*kind, *vcpu, text)
            })
            .collect();
        let sides = ["LOST", "END OF CPU", "HOST LOST", "LOST"];
        let lines: Vec<Line<'_>> = (texts.iter().zip(1..))
            .map(|((kind, vcpu, text), at)| match KINDS.get(*kind) {
                Some(kind) => (at * 10, *vcpu, kind.1, text.as_str()),
                None => (at * 10, *vcpu, sides[*kind - KINDS.len()], ""),
            })
            .collect();
        let irqs = walk_in(Window::default(), &lines);
        let all: Vec<_> = [0, 1].iter().flat_map(|vcpu| found(&irqs, *vcpu)).collect();
        let injected = lines.iter().filter(|line| {
            line.1 < 2 && line.2 == "kvm_inj_virq" && !line.3.contains("reinjected")
        });
        let counted: u64 = all.iter().map(|(_, one)| {
            let parts = [one.handled, one.unseen, one.uncovered];
            assert_eq!(one.delay.count(), one.handled.unwrap_or(0));
            parts.into_iter().flatten().sum::<u64>()
        }).sum();
        prop_assert_eq!(counted, injected.count() as u64);
        let begun = lines.iter().filter(|line| {
            ["irq_handler_entry", "local_timer_entry", "reschedule_entry"].contains(&line.2)
        });
        let runs = all.iter().flat_map(|(_, one)| &one.handlers).map(|one| {
            assert!(one.times.count() <= one.runs && one.out_ns <= one.times.total());
            one.runs
        });
            prop_assert_eq!(irqs.outside(TID) + irqs.outside(TID + 1), 0);
        prop_assert_eq!(runs.sum::<u64>() + irqs.unplaced(), begun.count() as u64);
    }
}
