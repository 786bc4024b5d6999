//! Recordings made to cost more than they should. Those that once took time by the square of their length do not end in
//! a lifetime when they do so again.

use std::fmt::Write;

use crate::common::{Text, builtin};
use paths::Paths;

const QEMU: (&str, i32) = ("qemu", 9);

fn comm(n: i32) -> String {
    format!("CPU {n}/KVM")
}

/// Interrupts whose VM is not known, in a recording of many threads: every event asks whose they are.
#[test]
fn interrupts_that_stay_unresolved() {
    const THREADS: i32 = 30_000;
    let mut text = Text::default();
    // Each number twice: two VMs.
    for vm in [100, 200_000] {
        for n in 0..THREADS {
            text.enters((&comm(n), vm + n), n % 8, n as u64);
        }
    }
    for n in 0..100 {
        let at = 100_000 + n as u64;
        let accept = format!("kvm_apic_accept_irq apicid {n:x} vec 37 (Fixed|edge)");
        text.event(("vhost-77", 77), 1, at, &accept);
    }
    for n in 0..100_000u64 {
        text.event(
            ("vhost-78", 78),
            2,
            200_000 + n,
            "kvm_msi_set_irq dst 0 vec 36 (Fixed|physical|edge)",
        );
    }
    let walked = text.walk(paths::all_builtin());
    assert!(walked.most > 0);
}

/// As many instances as there may be, for each of many events more.
#[test]
fn more_instances_than_there_may_be() {
    let mut text = Text::default();
    for n in 0..200_000u64 {
        // Exits that never end, each of another address.
        let kick = format!("kvm_hypercall nr {n:#x} a0 0x0 a1 0x0 a2 0x0 a3 0x0");
        text.event(("CPU 0/KVM", 10), 1, n, &kick);
    }
    let mut paths = Paths::new(vec![builtin("kick")]);
    paths.at_most(60_000);
    let walked = text.walk_with(paths);
    assert_eq!(walked.most, 60_000);
}

/// Many vCPUs are woken and wait for their CPUs, while tasks on another one have it in turn.
#[test]
fn a_crowd_that_waits_elsewhere() {
    const VCPUS: i32 = 50_000;
    let mut text = Text::default();
    let mut us = 0;
    for n in 0..VCPUS {
        let name = comm(n);
        let vcpu = (name.as_str(), 100 + n);
        let cpu = 2 + n % 50;
        text.exits(vcpu, cpu, us, "HLT");
        text.sleeps(vcpu, cpu, us + 1);
        text.wakes(QEMU, 1, vcpu, cpu, us + 2);
        us += 3;
    }
    for _ in 0..100_000 {
        text.runs(QEMU, 1, us);
        us += 1;
    }
    let walked = text.walk(vec![builtin("halt-wake")]);
    assert_eq!(walked.most, VCPUS as usize);
}

/// Many instances wait for the same event, and leave one by one.
#[test]
fn a_crowd_that_leaves_one_by_one() {
    const COUNT: u64 = 60_000;
    let path = crate::common::path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = ["c = cpu", "n = n", "t = thread"]
        [[step]]
        name = "b"
        event = "ev_b"
        counts = true
        join = ["cpu = c", "n = n", "thread != t"]
        "#,
    );
    let mut text = Text::default();
    for n in 0..COUNT {
        text.event(QEMU, 1, n, &format!("ev_a n={n}"));
    }
    for n in 0..COUNT {
        text.event(("other", 8), 1, COUNT + n, &format!("ev_b n={n}"));
    }
    let walked = text.walk(vec![path]);
    assert_eq!(walked.instances.len(), COUNT as usize);
}

/// Many threads that end and are named anew.
#[test]
fn threads_that_are_renamed() {
    let mut text = String::new();
    for n in 0..60_000u64 {
        let (seconds, us) = (10 + n / 1_000_000, n % 1_000_000);
        let _ = writeln!(
            text,
            "            task-{tid:<7} [001] {seconds:>5}.{us:06}: task_rename: pid={tid} oldcomm=task \
             newcomm=vhost-{n} oom_score_adj=0",
            tid = 100 + n
        );
        let _ = writeln!(
            text,
            "            task-{tid:<7} [001] {seconds:>5}.{us:06}: kvm_msi_set_irq: \
             dst 0 vec 36 (Fixed|physical|edge)",
            tid = 100 + n
        );
    }
    let walked = crate::common::walk(text.into(), Paths::new(paths::all_builtin()));
    assert!(walked.most > 0);
}
