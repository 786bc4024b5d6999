//! Instances are joined rightly, or not at all, however events follow each other.

use crate::common::{Text, builtin, path};
use paths::{DropReason, Paths, lang};

pub(crate) const VCPU0: (&str, i32) = ("CPU 0/KVM", 1010);
pub(crate) const VCPU1: (&str, i32) = ("CPU 1/KVM", 1011);
const QEMU: (&str, i32) = ("qemu", 1000);

fn names(steps: &[(String, u64)]) -> Vec<&str> {
    steps.iter().map(|(name, _)| name.as_str()).collect()
}

/// A step takes back a later one only where that leaves the steps in their order.
#[test]
fn no_step_is_reached_twice() {
    let path = path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = "t = thread"
        counts = true
        [[step]]
        name = "b"
        optional = true
        event = "ev_b"
        join = "thread = t"
        [[step.on]]
        event = "ev_b"
        instead-of = "d"
        join = "thread = t"
        [[step]]
        name = "c"
        optional = true
        event = "ev_c"
        join = "thread = t"
        [[step]]
        name = "d"
        optional = true
        event = "ev_d"
        join = "thread = t"
        [[step]]
        name = "e"
        event = "ev_e"
        join = "thread = t"
        "#,
    );
    let mut text = Text::default();
    for (at, event) in [
        "ev_a", "ev_b", "ev_c", "ev_d", "ev_b", "ev_c", "ev_d", "ev_e",
    ]
    .iter()
    .enumerate()
    {
        text.event(QEMU, 1, at as u64, event);
    }
    // Without a step between, it does take it back.
    for (at, event) in ["ev_a", "ev_d", "ev_b", "ev_e"].iter().enumerate() {
        text.event(QEMU, 1, 100 + at as u64, event);
    }
    let walked = text.walk(vec![path]);
    let steps = walked.steps();
    assert_eq!(steps.len(), 2);
    assert_eq!(names(&steps[0]), ["a", "b", "c", "d", "e"]);
    assert_eq!(names(&steps[1]), ["a", "b", "e"]);
}

/// One event takes an instance one step on, even if it is the event of an earlier step that could take that back.
/// All steps that were reached in error are taken back at once, with the roles that they bound and the event does not
/// join by.
#[test]
fn steps_are_taken_back_with_what_they_bound() {
    let path = path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = "t = thread"
        counts = true
        [[step]]
        name = "b"
        event = "ev_b"
        join = "thread = t"
        bind = "n = n"
        [[step.on]]
        event = "ev_b"
        instead-of = ["c", "d"]
        join = "thread = t"
        [[step]]
        name = "c"
        optional = true
        event = "ev_c"
        join = ["thread = t", "n = n"]
        bind = "m = m"
        [[step]]
        name = "d"
        optional = true
        event = "ev_d"
        join = ["thread = t", "m = m"]
        [[step]]
        name = "e"
        event = "ev_e"
        join = "thread = t"
        [[step.on]]
        event = "ev_f"
        instead-of = ["c", "d"]
        join = "thread = t"
        [[step]]
        name = "g"
        optional = true
        event = "ev_g"
        join = ["thread = t", "m = m"]
        [[step]]
        name = "h"
        event = "ev_h"
        join = "thread = t"
        "#,
    );
    let steps = |events: &[&str]| {
        let mut text = Text::default();
        for (at, event) in events.iter().enumerate() {
            text.event(QEMU, 1, at as u64, event);
        }
        let walked = text.walk(vec![path.clone()]);
        walked.steps()
    };
    let all = [
        "ev_a",
        "ev_b n=1",
        "ev_c n=1 m=2",
        "ev_d m=2",
        "ev_f",
        "ev_g m=2",
        "ev_h",
    ];
    let found = steps(&all);
    // Step c was not, and what it said of m neither.
    assert_eq!(names(&found[0]), ["a", "b", "e", "h"]);
    let kept = [
        "ev_a",
        "ev_b n=1",
        "ev_c n=1 m=2",
        "ev_d m=2",
        "ev_e",
        "ev_g m=2",
        "ev_h",
    ];
    assert_eq!(names(&steps(&kept)[0]), ["a", "b", "c", "d", "e", "g", "h"]);
    // What comes before them cannot be reached anew.
    let again = [
        "ev_a",
        "ev_b n=1",
        "ev_c n=1 m=2",
        "ev_b n=3",
        "ev_e",
        "ev_h",
    ];
    assert_eq!(names(&steps(&again)[0]), ["a", "b", "c", "e", "h"]);
}

/// A step may have to follow one of several.
#[test]
fn one_of_several_steps_is_enough() {
    let path = path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = "t = thread"
        [[step]]
        name = "b"
        optional = true
        event = "ev_b"
        join = "thread = t"
        [[step]]
        name = "c"
        optional = true
        event = "ev_c"
        join = "thread = t"
        [[step]]
        name = "d"
        only-after = ["b", "c"]
        event = "ev_d"
        join = "thread = t"
        "#,
    );
    let mut text = Text::default();
    let events = ["ev_a", "ev_d", "ev_c", "ev_d", "ev_a", "ev_b", "ev_d"];
    for (at, event) in events.iter().enumerate() {
        text.event(QEMU, 1, at as u64, event);
    }
    let found = text.walk(vec![path]).steps();
    assert_eq!(found.len(), 2);
    assert_eq!(names(&found[0]), ["a", "c", "d"]);
    assert_eq!(names(&found[1]), ["a", "b", "d"]);
}

#[test]
fn an_event_does_not_take_back_what_it_reached() {
    let path = path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = "t = thread"
        counts = true
        [[step]]
        name = "b"
        optional = true
        [[step.on]]
        event = "ev_c"
        instead-of = "c"
        join = "thread = t"
        [[step]]
        name = "c"
        event = "ev_c"
        join = "thread = t"
        [[step]]
        name = "d"
        event = "ev_d"
        join = "thread = t"
        "#,
    );
    let mut text = Text::default();
    for (at, event) in ["ev_a", "ev_c", "ev_d"].iter().enumerate() {
        text.event(QEMU, 1, at as u64, event);
    }
    let steps = text.walk(vec![path]).steps();
    assert_eq!(names(&steps[0]), ["a", "c", "d"]);
}

/// Exits that turn out to be for an access that is recorded otherwise do not stay under way for ever.
#[test]
fn exits_without_their_access_do_not_pile_up() {
    let mut text = Text::default();
    for n in 0..2000u64 {
        text.exits(VCPU0, 1, 10 * n, "EPT_MISCONFIG");
        text.event(
            VCPU0,
            1,
            10 * n + 1,
            "kvm_fast_mmio fast mmio at gpa 0xfe003000",
        );
        text.enters(VCPU0, 1, 10 * n + 2);
    }
    let walked = text.walk(paths::all_builtin());
    assert!(walked.most < 10, "{} instances at once", walked.most);
}

/// Without anything in common, each event is joined to the nearest one before it.
#[test]
fn a_pair_may_have_nothing_in_common() {
    let pair = lang::pair("ev_a", "ev_b", &lang::PairJoin::Nearest).expect("a pair");
    let mut text = Text::default();
    text.event(QEMU, 1, 1, "ev_a");
    text.event(VCPU0, 2, 3, "ev_a");
    text.event(VCPU1, 3, 10, "ev_b");
    text.event(VCPU1, 3, 12, "ev_b");
    text.event(QEMU, 1, 20, "ev_a");
    text.event(QEMU, 1, 24, "ev_b");
    let steps = text.walk(vec![pair]).steps();
    let times: Vec<Vec<u64>> = steps
        .iter()
        .map(|steps| steps.iter().map(|(_, at)| *at).collect())
        .collect();
    assert_eq!(times, [[3, 10], [20, 24]]);
}

/// An instance that can only go on soon, and has all it needs, is complete when it is too late for more.
#[test]
fn what_came_too_late_for_more_is_complete() {
    let path = path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = "t = thread"
        [[step]]
        name = "b"
        event = "ev_b"
        join = "thread = t"
        counts = true
        until = "ev_end"
        [[step]]
        name = "c"
        optional = true
        soon = true
        event = "ev_c"
        join = "thread = t"
        "#,
    );
    let mut text = Text::default();
    for (at, event) in ["ev_a", "ev_b", "ev_end", "ev_c"].iter().enumerate() {
        text.event(QEMU, 1, at as u64, event);
    }
    let walked = text.walk(vec![path]);
    assert_eq!(walked.dropped(DropReason::Superseded), 0);
    assert_eq!(names(&walked.steps()[0]), ["a", "b"]);
}

/// However the clock runs, steps ascend and stages add up to totals.
#[test]
fn stages_add_up_though_time_runs_backwards() {
    let mut text = Text::default();
    text.exits(VCPU0, 1, 100, "IO_INSTRUCTION");
    text.event(VCPU0, 1, 50, "kvm_userspace_exit reason KVM_EXIT_IO (2)");
    text.event(VCPU0, 1, 160, "kvm_fpu load");
    text.enters(VCPU0, 1, 130);
    let walked = text.walk(vec![builtin("user-exit")]);
    let report = &walked.reports()[0];
    assert_eq!(report.count, 1);
    let stages: u64 = report.stages.iter().map(|stage| stage.stats.total()).sum();
    assert_eq!(stages, report.total.total());
    let steps = &walked.steps()[0];
    assert!(steps.is_sorted_by_key(|(_, at)| *at), "{steps:?}");
}

/// A path that begins many instances, each of which is followed by many.
fn forking() -> lang::PathDefinition {
    path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = "t = thread"
        [[step]]
        name = "b"
        event = "ev_b"
        each = true
        counts = true
        join = "thread = t"
        bind = "c = cpu"
        [[step]]
        name = "c"
        event = "ev_c"
        join = "cpu = c"
        "#,
    )
}

/// An instance that is given up for the one that follows it leaves nothing behind.
#[test]
fn the_oldest_may_be_the_one_that_goes_on() {
    for limit in 1..5 {
        let mut text = Text::default();
        for n in 0..10u64 {
            text.event(QEMU, 1, 10 * n, "ev_a");
            for cpu in 1..4 {
                text.event(QEMU, cpu, 10 * n + cpu as u64, "ev_b");
            }
        }
        for cpu in 1..4 {
            text.event(QEMU, cpu, 200 + cpu as u64, "ev_c");
        }
        let mut paths = Paths::new(vec![forking()]);
        paths.at_most(limit);
        let walked = text.walk_with(paths);
        assert!(walked.most <= limit);
        for steps in walked.steps() {
            assert_eq!(names(&steps), ["a", "b", "c"]);
        }
    }
}

/// The recorder's sum of lost events, recorded at the end, says nothing of when.
#[test]
fn a_sum_of_lost_events_loses_no_instance() {
    let text = "\
       CPU 0/KVM  1010 [001]    10.000000:       kvm:kvm_exit: reason IO_INSTRUCTION rip 0xffffffff81a17a0a info 0 0
       CPU 0/KVM  1010 [001]    10.000001:      kvm:kvm_userspace_exit: reason KVM_EXIT_IO (2)
       CPU 0/KVM  1010 [001]    10.000002: PERF_RECORD_LOST_SAMPLES lost 5
       CPU 0/KVM  1010 [001]    10.000003:               kvm:kvm_entry: vcpu 0, rip 0xffffffff81a17a0b
";
    let walked = crate::common::walk(text.into(), Paths::new(vec![builtin("user-exit")]));
    assert_eq!(walked.instances.len(), 1);
}

/// What a thread raised before events were lost is not what it has accepted after them.
#[test]
fn what_was_raised_before_a_loss_is_forgotten() {
    let mut text = Text::default();
    text.enters(VCPU0, 1, 0);
    text.exits(VCPU0, 1, 5, "MSR_WRITE");
    text.event(
        VCPU0,
        1,
        6,
        "kvm_apic_ipi dst 1 vec 251 (Fixed|physical|de-assert|edge|dst)",
    );
    text.lost(1);
    text.event(
        VCPU0,
        1,
        50,
        "kvm_apic_accept_irq apicid 0 vec 236 (Fixed|edge)",
    );
    text.event(VCPU0, 1, 51, "kvm_inj_virq IRQ 0xec");
    text.enters(VCPU0, 1, 52);
    let steps = text.walk(vec![builtin("timer")]).steps();
    assert_eq!(steps.len(), 1, "{steps:?}");
}

/// Whose an interrupt is may be known only when it is injected. That its vCPU has entered its guest with another one
/// before says nothing against it: where injections are recorded, an entry alone is no step.
#[test]
fn an_entry_with_another_interrupt_does_not_end_what_waits_to_be_injected() {
    let other = ("CPU 0/KVM", 5010);
    let worker = ("worker", 77);
    let mut text = Text::default();
    for (vcpu, cpu) in [(VCPU0, 1), (other, 2)] {
        text.enters(vcpu, cpu, 0);
        text.exits(vcpu, cpu, 5, "EXTERNAL_INTERRUPT");
        text.event(vcpu, cpu, 6, "kvm_inj_virq IRQ 0xec");
        text.enters(vcpu, cpu, 7);
        text.exits(vcpu, cpu, 10, "MSR_WRITE");
    }
    let message = "kvm_msi_set_irq dst 0 vec 36 (Fixed|physical|edge)";
    text.event(worker, 3, 20, message);
    let accepted = "kvm_apic_accept_irq apicid 0 vec 36 (Fixed|edge)";
    text.event(worker, 3, 21, accepted);
    text.sleeps(worker, 3, 22);
    text.event(VCPU0, 1, 30, "kvm_inj_virq IRQ 0xec");
    text.enters(VCPU0, 1, 31);
    text.exits(VCPU0, 1, 40, "MSR_WRITE");
    text.event(VCPU0, 1, 41, "kvm_inj_virq IRQ 0x24");
    text.enters(VCPU0, 1, 42);
    let path = path(
        r#"
        name = "x"
        [[step]]
        name = "accepted"
        counts = true
        event = "kvm_apic_accept_irq"
        where = "raised == msi"
        bind = ["target = target", "vector = vector"]
        [[step]]
        name = "injected"
        optional = true
        event = "kvm_inj_virq"
        where = "reinjected == 0"
        join = ["thread = target", "vector = vector"]
        [[step]]
        name = "in guest"
        [[step.on]]
        event = "kvm_entry"
        only-after = "injected"
        join = "thread = target"
        [[step.on]]
        event = "kvm_entry"
        unless = "kvm_inj_virq"
        join = "thread = target"
        "#,
    );
    let walked = text.walk(vec![path]);
    let steps = walked.steps();
    assert_eq!(steps.len(), 1, "{:?}", walked.reports()[0].dropped);
    let expected = [("accepted", 21), ("injected", 41), ("in guest", 42)];
    let found: Vec<(&str, u64)> = steps[0].iter().map(|(name, us)| (&**name, *us)).collect();
    assert_eq!(found, expected);
}
