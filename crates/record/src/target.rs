//! One VM of several: which records are about it.

use cpuset::CpuSet;

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

/// Bytes of a filter that the kernel takes at most: a page, with its end (`perf_event_set_filter`).
const MOST: usize = 4095;

/// Leaves out of a plan what is not about a VM.
///
/// Switches and wake-ups are recorded of all threads on CPUs where the VM may run: a switch that is left out would be
/// time that another thread seems to have had.
pub fn narrow(plan: &mut RecordPlan, target: &TargetVm) {
    let filter = by_thread(&target.vcpus);
    for event in &mut plan.events {
        if event.system == "kvm" && BY_VCPU.contains(&event.name.as_str()) {
            event.filter.clone_from(&filter);
        } else if event.system == "sched" && !target.anywhere && !target.cpus.is_empty() {
            event.cpus = Some(target.cpus.clone());
        }
    }
}

/// Returns a filter that takes records of these threads; `None` where the kernel would not take so long a one, and all
/// are recorded.
fn by_thread(threads: &[i32]) -> Option<String> {
    let mut sorted = threads.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for tid in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(tid) => *last = tid,
            _ => ranges.push((tid, tid)),
        }
    }
    let parts = ranges.iter().map(|(first, last)| match last - first {
        0 => format!("common_pid=={first}"),
        _ => format!("(common_pid>={first}&&common_pid<={last})"),
    });
    let filter = parts.collect::<Vec<_>>().join("||");
    (!filter.is_empty() && filter.len() <= MOST).then_some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::{Question, events};

    #[test]
    fn threads_in_a_row_are_one_range() {
        let filter = by_thread(&[12, 10, 11, 20, 10]).expect("a filter");
        assert_eq!(filter, "(common_pid>=10&&common_pid<=12)||common_pid==20");
        assert_eq!(by_thread(&[]), None);
        let many: Vec<i32> = (0..1000).map(|n| n * 2).collect();
        assert_eq!(by_thread(&many), None);
    }

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
