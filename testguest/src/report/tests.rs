//! A count that is off by one is found.

use std::time::Duration;

use super::*;
use crate::device::DeviceOutcome;

fn plan() -> Plan {
    let mut per_round = [0; Operation::ALL.len()];
    per_round[Operation::MmioRead as usize] = 5;
    per_round[Operation::IoeventfdMmio as usize] = 7;
    per_round[Operation::Irqfd as usize] = 3;
    Plan {
        vcpus: 1,
        rounds: 2,
        per_round,
        period: None,
        device_delay: Duration::ZERO,
        hold: Some(Duration::ZERO),
    }
}

/// Returns what the plan leads to.
fn outcome() -> Outcome {
    let mut operations = [0; Operation::ALL.len()];
    operations[Operation::MmioRead as usize] = 10;
    let vcpu = VcpuOutcome {
        vcpu: 0,
        tid: 11,
        name: "vcpu-0".to_owned(),
        started_ns: 1,
        ended_ns: 2,
        operations,
        rounds: 2,
        holds: 1,
        lowers: 0,
        interrupted: 4,
        taken: [6, 0, 0],
        held: None,
    };
    Outcome {
        started_ns: 0,
        ended_ns: 3,
        vcpus: vec![vcpu],
        devices: vec![DeviceOutcome {
            vcpu: 0,
            operation: Operation::Irqfd,
            tid: 12,
            name: "device-0".to_owned(),
            answers: 6,
        }],
        ioeventfd: 14,
        held: None,
    }
}

#[test]
fn what_was_asked_has_no_differences() {
    assert_eq!(differences(&plan(), &outcome()), [""; 0]);
}

#[test]
fn each_count_is_compared() {
    type Change = fn(&mut Outcome);
    let changes: [(&str, Change); 6] = [
        ("mmio-read", |it| {
            it.vcpus[0].operations[Operation::MmioRead as usize] += 1
        }),
        ("pio-out", |it| {
            it.vcpus[0].operations[Operation::PioOut as usize] += 1
        }),
        ("by msi", |it| it.vcpus[0].taken[0] -= 1),
        ("times held", |it| it.vcpus[0].holds = 0),
        ("device-0", |it| it.devices[0].answers -= 1),
        ("ioeventfd", |it| it.ioeventfd += 1),
    ];
    for (what, change) in changes {
        let mut changed = outcome();
        change(&mut changed);
        let found = differences(&plan(), &changed);
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert!(found[0].contains(what), "{what}: {found:?}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn tracepoints_and_exits_follow_from_the_plan() {
    let (plan, outcome) = (plan(), outcome());
    let expected = [
        // Reads, rounds, one hold, and four signals.
        ("kvm:kvm_userspace_exit", 10 + 2 + 1 + 4),
        // Asking the device, rounds, and one hold.
        ("kvm:kvm_pio", 6 + 2 + 1),
        ("kvm:kvm_mmio", 2 * 10 + 14),
        ("kvm:kvm_cpuid", 0),
        ("kvm:kvm_hypercall", 0),
        ("kvm:kvm_msi_set_irq", 6),
        ("kvm:kvm_set_irq", 0),
    ];
    assert_eq!(tracepoints(&plan, &outcome.vcpus), expected);
    let expected = [
        ("pio", 9),
        ("mmio", 24),
        ("cpuid", 0),
        ("hlt", 6),
        ("hypercall", 0),
    ];
    assert_eq!(exits(&plan, &outcome.vcpus), expected);
}
