//! vCPUs are distinguished by their numbers, however many there are and however large the numbers.

use crate::common::{Text, builtin, path};
use crate::joins::{VCPU0, VCPU1};
use paths::Paths;

/// A large number is no vCPU's, whatever its low bits are.
#[test]
fn numbers_of_vcpus_are_not_cut() {
    let mut text = Text::default();
    text.enters(VCPU0, 1, 0);
    text.enters(VCPU1, 2, 1);
    text.exits(VCPU1, 2, 5, "MSR_WRITE");
    text.event(
        VCPU1,
        2,
        6,
        "kvm_apic_ipi dst 0 vec 251 (Fixed|physical|de-assert|edge|dst)",
    );
    text.event(
        VCPU1,
        2,
        7,
        "kvm_apic_accept_irq apicid 100000000 vec 251 (Fixed|edge)",
    );
    text.event(VCPU0, 1, 8, "kvm_inj_virq IRQ 0xfb");
    text.enters(VCPU0, 1, 9);
    let walked = text.walk(vec![builtin("ipi")]);
    assert!(walked.instances.is_empty(), "{:?}", walked.steps());
}

/// A VM has as many vCPUs as it likes: whose an interrupt is stays known.
#[test]
fn interrupts_of_large_vms_are_distinguished() {
    const VCPUS: i32 = 200;
    let comm = |n: i32| format!("CPU {n}/KVM");
    let mut text = Text::default();
    let mut us = 0;
    let mut next = || {
        us += 1;
        us
    };
    // Two VMs with the same numbers. In each, one vCPU after another wakes vCPU 0.
    for vm in [1000, 5000] {
        for n in 0..VCPUS {
            let name = comm(n);
            text.enters((&name, vm + n), n % 8, next());
        }
    }
    // Interrupts to vCPU 0 of each VM, at the same time: those of the second VM are injected first.
    let ipis = |text: &mut Text, us: u64, from: i32, to: i32, wakes: bool| {
        let (sender, target) = (comm(from), comm(to));
        for (vm, cpu) in [(1000, 1), (5000, 2)] {
            let (sender, target) = ((sender.as_str(), vm + from), (target.as_str(), vm + to));
            if wakes {
                text.exits(target, cpu + 10, us, "HLT");
                text.sleeps(target, cpu + 10, us + 1);
            }
            text.exits(sender, cpu, us + 2, "MSR_WRITE");
            let ipi =
                format!("kvm_apic_ipi dst {to:x} vec 251 (Fixed|physical|de-assert|edge|dst)");
            text.event(sender, cpu, us + 3, &ipi);
            let accept = format!("kvm_apic_accept_irq apicid {to:x} vec 251 (Fixed|edge)");
            text.event(sender, cpu, us + 4, &accept);
            if wakes {
                text.wakes(sender, cpu, target, cpu + 10, us + 5);
            }
            text.enters(sender, cpu, us + 6);
        }
        for (vm, cpu) in [(5000, 12), (1000, 11)] {
            let target = (target.as_str(), vm + to);
            if wakes {
                text.runs(target, cpu, us + 7);
            }
            text.event(target, cpu, us + 8, "kvm_inj_virq IRQ 0xfb");
            text.enters(target, cpu, us + 9);
        }
    };
    // Once all have woken vCPU 0 it is known which are of one VM: none has to wake another one any more.
    let mut sent = 0;
    for n in 1..VCPUS {
        ipis(&mut text, 1000 + 10 * n as u64, n, 0, true);
    }
    for n in 1..VCPUS {
        let to = n * 37 % VCPUS;
        if to != n {
            ipis(&mut text, 100_000 + 10 * n as u64, n, to, false);
            sent += 2;
        }
    }
    let walked = text.walk(vec![builtin("ipi")]);
    assert_eq!(walked.instances.len(), 2 * (VCPUS as usize - 1) + sent);
}

/// A thread of one process does not interrupt a vCPU of another, even if that is the only one of its number so far.
#[test]
fn the_only_vcpu_of_a_number_may_be_another_vms() {
    let line = |comm: &str, pid: i32, tid: i32, cpu: i32, us: u64, event: &str| {
        format!(
            "{comm:>16} {pid:>6}/{tid:<6} [{cpu:03}] {:>5}.{us:06}: {event}\n",
            10
        )
    };
    let mut text = String::new();
    let (mine, other) = ((100, 101), (200, 201));
    text += &line(
        "CPU 1/KVM",
        mine.0,
        mine.1,
        1,
        1,
        "kvm:kvm_entry: vcpu 1, rip 0xffffffff81a17a0b",
    );
    text += &line(
        "CPU 0/KVM",
        other.0,
        other.1,
        2,
        2,
        "kvm:kvm_entry: vcpu 0, rip 0xffffffff81a17a0b",
    );
    text += &line(
        "CPU 1/KVM",
        mine.0,
        mine.1,
        1,
        3,
        "kvm:kvm_exit: vcpu 1 reason MSR_WRITE rip 0x1 info1 0 info2 0",
    );
    let ipi = "kvm:kvm_apic_ipi: dst 0 vec 251 (Fixed|physical|de-assert|edge|dst)";
    text += &line("CPU 1/KVM", mine.0, mine.1, 1, 4, ipi);
    let accept = "kvm:kvm_apic_accept_irq: apicid 0 vec 251 (Fixed|edge)";
    text += &line("CPU 1/KVM", mine.0, mine.1, 1, 5, accept);
    text += &line(
        "CPU 1/KVM",
        mine.0,
        mine.1,
        1,
        6,
        "kvm:kvm_entry: vcpu 1, rip 0xffffffff81a17a0b",
    );
    // It injects the same vector, which something else sent it.
    text += &line(
        "CPU 0/KVM",
        other.0,
        other.1,
        2,
        7,
        "kvm:kvm_exit: vcpu 0 reason EXTERNAL_INTERRUPT rip 0x1 info1 0 info2 0",
    );
    text += &line(
        "CPU 0/KVM",
        other.0,
        other.1,
        2,
        8,
        "kvm:kvm_inj_virq: IRQ 0xfb",
    );
    text += &line(
        "CPU 0/KVM",
        other.0,
        other.1,
        2,
        9,
        "kvm:kvm_entry: vcpu 0, rip 0xffffffff81a17a0b",
    );
    let walked = crate::common::walk(text.into(), Paths::new(vec![builtin("ipi")]));
    assert_eq!(walked.reports()[0].count, 0, "{:?}", walked.described());
}

/// A vector and an interrupt's number of more than 32 bits are none; what is left of them would be those of others.
#[test]
fn numbers_that_are_too_large_are_not_cut() {
    let path = path(
        r#"
        name = "x"
        [[step]]
        name = "a"
        event = "ev_a"
        bind = ["vcpu = thread", "vector = number"]
        counts = true
        [[step]]
        name = "b"
        event = "ev_b"
        join = "thread = vcpu"
        "#,
    );
    let features = |above: u64| {
        let mut text = Text::default();
        text.runs(VCPU0, 1, 0);
        text.event(VCPU0, 1, 10, &format!("ev_a number={}", above + 7));
        let irq = format!("irq_handler_entry irq={} name=eth0", above + 5);
        text.event(VCPU0, 1, 20, &irq);
        text.event(VCPU0, 1, 30, "ev_b");
        let described = text.walk(vec![path.clone()]).described();
        assert_eq!(described.len(), 1);
        let all = described.into_iter().flat_map(|one| one.features.to_vec());
        all.filter(|one| one.starts_with("vector") || one.starts_with("host interrupts"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        features(0),
        ["vector 7", "host interrupts 5 on its CPU: at least 1"]
    );
    assert!(features(1 << 32).is_empty());
}
