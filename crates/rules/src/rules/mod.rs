//! The rules, one file each, which has its rule's id for its name.

mod apic_exits_without_apicv;
mod console_on_irq_vcpu;
mod cpufreq_governor_kworker;
mod dirty_logging;
mod dominant_exit;
mod emulated_device;
mod ept_violation_storm;
mod guest_died;
mod guest_spins;
mod halt_does_not_halt;
mod halt_poll_waste;
mod halted_target_ipi;
mod helper_waits_for_cpu;
mod host_idle_latency;
mod host_tick_on_isolated_cpu;
mod hpet_mmio_exits;
mod hyperv_synic_autoeoi;
mod lock_holder_preempted;
mod lossy_recording;
mod memory_taken_away;
mod nested_exits;
mod nx_hugepage_recovery;
mod pause_loop_exits;
mod pml_full_exits;
mod remote_memory;
mod sender_waits_for_memory;
mod slow_path;
mod slow_storage;
mod split_lock;
mod stalled_vcpu;
mod timer_interrupt_storm;
mod timer_port_exits;
mod tracing_disturbs;
mod unexplained_time;
mod userspace_virtio_backend;
mod vcpu_migrates;
mod vcpu_preempted;
mod vcpu_stuck;
mod vcpu_throttled;
mod vmm_polls;

pub(crate) use guest_spins::hangs;
pub(crate) use halt_does_not_halt::is_spinning as is_spinning_in_halts;
pub(crate) use vcpu_stuck::is_stuck;

use crate::Rule;

/// All of them, in the order in which they are asked and listed.
pub(crate) const ALL: &[&Rule] = &[
    &guest_died::RULE,
    &vcpu_stuck::RULE,
    &halt_does_not_halt::RULE,
    &guest_spins::RULE,
    &timer_port_exits::RULE,
    &hpet_mmio_exits::RULE,
    &timer_interrupt_storm::RULE,
    &halted_target_ipi::RULE,
    &console_on_irq_vcpu::RULE,
    &slow_storage::RULE,
    &userspace_virtio_backend::RULE,
    &vmm_polls::RULE,
    &cpufreq_governor_kworker::RULE,
    &emulated_device::RULE,
    &sender_waits_for_memory::RULE,
    &vcpu_preempted::RULE,
    &vcpu_throttled::RULE,
    &host_idle_latency::RULE,
    &helper_waits_for_cpu::RULE,
    &vcpu_migrates::RULE,
    &remote_memory::RULE,
    &halt_poll_waste::RULE,
    &pause_loop_exits::RULE,
    &lock_holder_preempted::RULE,
    &memory_taken_away::RULE,
    &dirty_logging::RULE,
    &nx_hugepage_recovery::RULE,
    &ept_violation_storm::RULE,
    &pml_full_exits::RULE,
    &host_tick_on_isolated_cpu::RULE,
    &apic_exits_without_apicv::RULE,
    &hyperv_synic_autoeoi::RULE,
    &nested_exits::RULE,
    &split_lock::RULE,
    &stalled_vcpu::RULE,
    &lossy_recording::RULE,
    &tracing_disturbs::RULE,
    &dominant_exit::RULE,
    &unexplained_time::RULE,
    &slow_path::RULE,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_is_a_rule_and_has_its_id_for_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.filter(|name| name != "mod.rs").collect();
        let ids = ALL
            .iter()
            .map(|rule| format!("{}.rs", rule.id.replace('-', "_")));
        assert_eq!(files, ids.collect());
    }
}
