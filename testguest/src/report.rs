//! What happened, as JSON: what was asked for, what this program counted itself, and what a recorder must have seen.

use serde_json::{Map, Value, json};

use crate::layout::IrqVector;
use crate::plan::{Operation, Plan};
use crate::run::Outcome;
use crate::vcpu::VcpuOutcome;

/// Where exits of an operation go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Each returns to user space.
    UserSpace,
    /// None does.
    Kernel,
}

/// Returns where an operation's exits go.
fn way(operation: Operation, has_irqchip: bool) -> Way {
    match operation {
        Operation::PioOut | Operation::PioIn | Operation::MmioRead | Operation::MmioWrite => {
            Way::UserSpace
        }
        Operation::Halt if !has_irqchip && cfg!(target_arch = "x86_64") => Way::UserSpace,
        Operation::Halt
        | Operation::Cpuid
        | Operation::Hypercall
        | Operation::Ioeventfd
        | Operation::IoeventfdMmio
        | Operation::Irqfd
        | Operation::IrqfdPin => Way::Kernel,
    }
}

/// Returns which interrupts an operation makes a vCPU take.
fn interrupt(operation: Operation, has_irqchip: bool) -> Option<IrqVector> {
    match operation {
        Operation::Irqfd => Some(IrqVector::Message),
        Operation::IrqfdPin => Some(IrqVector::Pin),
        Operation::Halt if has_irqchip => Some(IrqVector::Timer),
        _ => None,
    }
}

/// Returns how often each tracepoint fires if each KVM does as the kernel's sources say. What depends on the processor,
/// such as `kvm_exit`, is not among them.
pub(crate) fn tracepoints(plan: &Plan, vcpus: &[VcpuOutcome]) -> Vec<(&'static str, u64)> {
    let n = |operation| plan.in_all(operation);
    let returns: u64 = vcpus.iter().map(VcpuOutcome::returns).sum();
    let exits = exits(plan, vcpus);
    let exits = |kind: &str| {
        let found = exits.iter().find(|(other, _)| *other == kind);
        found.map_or(0, |(_, count)| *count)
    };
    // A read is seen when it is asked and when user space answered (`vcpu_mmio_read` and `read_prepare` in the kernel's
    // arch/x86/kvm/x86.c, `io_mem_abort` and `kvm_handle_mmio_return` in arch/arm64/kvm/mmio.c).
    let mmio = exits("mmio") + n(Operation::MmioRead);
    if cfg!(target_arch = "aarch64") {
        return vec![
            ("kvm:kvm_userspace_exit", returns),
            ("kvm:kvm_mmio", mmio),
            ("kvm:kvm_hvc_arm64", n(Operation::Hypercall)),
            ("kvm:kvm_irq_line", 2 * n(Operation::Halt)),
        ];
    }
    vec![
        ("kvm:kvm_userspace_exit", returns),
        ("kvm:kvm_pio", exits("pio")),
        ("kvm:kvm_mmio", mmio),
        ("kvm:kvm_cpuid", n(Operation::Cpuid)),
        ("kvm:kvm_hypercall", n(Operation::Hypercall)),
        ("kvm:kvm_msi_set_irq", n(Operation::Irqfd)),
        // A pin goes up and down.
        ("kvm:kvm_set_irq", 2 * n(Operation::IrqfdPin)),
    ]
}

/// Returns how many exits of each kind the guest's instructions make, where each of them exits: on processors, and not
/// where KVM emulates real mode. Exits that the guest does not make are not among them: interrupts of the host, and
/// memory that is touched for the first time.
pub(crate) fn exits(plan: &Plan, vcpus: &[VcpuOutcome]) -> Vec<(&'static str, u64)> {
    let n = |operation| plan.in_all(operation);
    let rounds = u64::from(plan.rounds) * u64::from(plan.vcpus);
    let mmio = n(Operation::MmioRead) + n(Operation::MmioWrite) + n(Operation::IoeventfdMmio);
    if cfg!(target_arch = "aarch64") {
        return vec![
            // Asking to be woken, and asking for the line to be lowered.
            ("mmio", mmio + rounds + 2 * n(Operation::Halt)),
            // A WFI with an interrupt pending does not exit.
            ("hlt_at_most", n(Operation::Halt)),
            ("hypercall", n(Operation::Hypercall)),
        ];
    }
    let holds: u64 = vcpus.iter().map(|vcpu| vcpu.holds).sum();
    let asked = n(Operation::Irqfd) + n(Operation::IrqfdPin);
    let pio = n(Operation::PioOut) + n(Operation::PioIn) + n(Operation::Ioeventfd);
    vec![
        ("pio", pio + asked + rounds + holds),
        ("mmio", mmio),
        ("cpuid", n(Operation::Cpuid)),
        ("hlt", n(Operation::Halt) + asked),
        ("hypercall", n(Operation::Hypercall)),
    ]
}

/// Returns in sentences where what was counted is not what was asked for.
pub(crate) fn differences(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: String, counted: u64, asked: u64| {
        if counted != asked {
            found.push(format!("{what}: {counted} counted, {asked} asked for"));
        }
    };
    let has_irqchip = plan.has_irqchip();
    for vcpu in &outcome.vcpus {
        for (operation, counted) in Operation::ALL.into_iter().zip(vcpu.operations) {
            let asked = match way(operation, has_irqchip) {
                Way::UserSpace => plan.each_vcpu(operation),
                Way::Kernel => 0,
            };
            let what = format!("vCPU {}, {}, returns", vcpu.vcpu, operation.name());
            check(what, counted, asked);
        }
        for (vector, counted) in IrqVector::ALL.into_iter().zip(vcpu.taken) {
            let asked = Operation::ALL
                .into_iter()
                .filter(|operation| interrupt(*operation, has_irqchip) == Some(vector))
                .map(|operation| plan.each_vcpu(operation))
                .sum();
            let what = format!("vCPU {}, interrupts by {}", vcpu.vcpu, vector.name());
            check(what, u64::from(counted), asked);
        }
        let holds = u64::from(plan.holds(vcpu.vcpu));
        check(format!("vCPU {}, times held", vcpu.vcpu), vcpu.holds, holds);
    }
    for device in &outcome.devices {
        let what = format!("vCPU {}, answers of {}", device.vcpu, device.name);
        check(what, device.answers, plan.each_vcpu(device.operation));
    }
    let writes = plan.in_all(Operation::Ioeventfd) + plan.in_all(Operation::IoeventfdMmio);
    check(
        "writes to the ioeventfd".to_owned(),
        outcome.ioeventfd,
        writes,
    );
    found
}

/// Returns what happened.
pub(crate) fn document(plan: &Plan, outcome: &Outcome) -> Value {
    let per_vcpu: Map<String, Value> = Operation::ALL
        .into_iter()
        .map(|operation| {
            (
                operation.name().to_owned(),
                plan.each_vcpu(operation).into(),
            )
        })
        .collect();
    let devices = outcome.devices.iter().map(|device| {
        json!({
            "name": device.name, "tid": device.tid, "vcpu": device.vcpu,
            "operation": device.operation.name(), "answers": device.answers,
        })
    });
    let counts = |counts: Vec<(&str, u64)>| -> Map<String, Value> {
        let counts = counts.into_iter();
        counts
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect()
    };
    let held = outcome.held.map(|held| {
        json!({
            "vcpu": held.vcpu, "signalled_ns": held.signalled_ns, "entered_ns": held.entered_ns,
            "pending_ns": held.entered_ns.saturating_sub(held.signalled_ns),
        })
    });
    json!({
        "arch": std::env::consts::ARCH,
        "pid": std::process::id(),
        "clock": "CLOCK_MONOTONIC",
        "started_ns": outcome.started_ns,
        "ended_ns": outcome.ended_ns,
        "irqchip": plan.has_irqchip(),
        "rounds": plan.rounds,
        "operations_per_vcpu": per_vcpu,
        "vcpus": outcome.vcpus.iter().map(vcpu).collect::<Vec<Value>>(),
        "devices": devices.collect::<Vec<Value>>(),
        "ioeventfd_writes": outcome.ioeventfd,
        "slow_irqfd": held,
        "tracepoints": counts(tracepoints(plan, &outcome.vcpus)),
        "exits": counts(exits(plan, &outcome.vcpus)),
        "differences": differences(plan, outcome),
    })
}

/// Returns what a vCPU counted.
fn vcpu(outcome: &VcpuOutcome) -> Value {
    let operations = Operation::ALL.into_iter().zip(outcome.operations);
    let others = [
        ("round", outcome.rounds),
        ("hold", outcome.holds),
        ("lower-line", outcome.lowers),
        ("signal", outcome.interrupted),
    ];
    let returns: Map<String, Value> = operations
        .map(|(operation, count)| (operation.name(), count))
        .chain(others)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    let interrupts: Map<String, Value> = IrqVector::ALL
        .into_iter()
        .zip(outcome.taken)
        .map(|(vector, count)| (vector.name().to_owned(), count.into()))
        .collect();
    json!({
        "vcpu": outcome.vcpu,
        "tid": outcome.tid,
        "name": outcome.name,
        "started_ns": outcome.started_ns,
        "ended_ns": outcome.ended_ns,
        "kvm_run_returns": outcome.returns(),
        "returns": returns,
        "interrupts": interrupts,
    })
}

#[cfg(test)]
mod tests;
