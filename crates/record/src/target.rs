//! One VM of several: which records are about it.

use cpuset::CpuSet;

use crate::filters::{joined, threads_filter};
use crate::plan::RecordPlan;

/// The VM that is to be recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetVm {
    /// Threads of its vCPUs.
    pub vcpus: Vec<i32>,
    /// CPUs where its threads may run.
    pub cpus: CpuSet,
    /// Whether some of them may run anywhere.
    pub anywhere: bool,
}

/// Events that a vCPU's own thread makes, so that those of other VMs can be left out by their thread. Interrupts for it
/// are set by whoever sends them: those are recorded of all.
const BY_VCPU: &[&str] = &[
    "kvm_entry",
    "kvm_exit",
    "kvm_userspace_exit",
    "kvm_pio",
    "kvm_mmio",
    "kvm_fast_mmio",
    "kvm_msr",
    "kvm_vcpu_wakeup",
    "kvm_halt_poll_ns",
    "kvm_inj_virq",
    "kvm_hv_timer_state",
    "kvm_page_fault",
    "kvm_guest_fault",
    "kvm_wfx_arm64",
    "kvm_hvc_arm64",
    "kvm_vmgexit_enter",
    "kvm_vmgexit_msr_protocol_enter",
    "kvm_rmp_fault",
];

/// Leaves out of a plan what is not about a VM.
///
/// Switches and wake-ups are recorded of all threads on CPUs where the VM may run: a switch that is left out would be
/// time that another thread seems to have had.
pub fn narrow(plan: &mut RecordPlan, target: &TargetVm) {
    let filter = threads_filter("common_pid", &target.vcpus);
    for event in &mut plan.events {
        if event.system == "kvm" && BY_VCPU.contains(&event.name.as_str()) {
            event.filter = joined(event.filter.as_deref(), filter.clone());
        } else if event.system == "sched" && !target.anywhere && !target.cpus.is_empty() {
            event.cpus = Some(target.cpus.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::{Question, events};

    #[test]
    fn switches_of_all_threads_are_kept_where_the_vm_runs() {
        let mut plan = RecordPlan {
            events: events(&Question::ALL),
            ..RecordPlan::default()
        };
        let target = TargetVm {
            vcpus: vec![7],
            cpus: [2, 3].into_iter().collect(),
            anywhere: false,
        };
        narrow(&mut plan, &target);
        let of = |name: &str| plan.events.iter().find(|one| one.name == name).expect(name);
        assert_eq!(of("kvm_exit").filter.as_deref(), Some("common_pid==7"));
        assert_eq!(of("kvm_msi_set_irq").filter, None);
        let switches = of("sched_switch");
        assert_eq!(switches.filter, None);
        assert_eq!(switches.cpus, Some([2, 3].into_iter().collect()));
    }
}
