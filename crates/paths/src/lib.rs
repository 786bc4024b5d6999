/*!
Paths: chains of events that one thing makes happen after another.

A [`lang::PathDefinition`] says which events follow which, and how they belong together: by thread, CPU, vCPU, by the
task that was woken, the interrupt that was raised. [`Paths`] follows every instance of every path through a recording
and keeps, in memory that grows with the instances under way only, how long each stage took and what slow instances have
in common. The built-in paths are files of the same language that users write.

| latency | path file in `builtin/` |
| --- | --- |
| wake-up latency of a halted vCPU, halt polling (`kvm_vcpu_wakeup`) | `1-halt-wake.toml` |
| irqfd: from `eventfd_signal` and `irqfd_wakeup` to `kvm_inj_virq` and `kvm_entry` | `2-irqfd.toml` |
| IPI latency: `kvm_apic_ipi`, KVM_HC_SEND_IPI, `ICC_SGI1R_EL1` | `3-ipi.toml`, `with-guests/3-guest-ipi.toml` |
| timer latency: `hrtimer_expire_entry`, the local APIC's and arm64's timer | `4-timer.toml` |
| ioeventfd and vhost: a virtio notification and its answer | `5-kick.toml`, `with-guests/1-packet.toml` |
| MMIO and PIO exits to the VMM (`kvm_userspace_exit`) | `6-user-exit.toml` |
| EPT violation, stage-2 fault (`kvm_page_fault`, `kvm_guest_fault`) | `on-request/page-fault.toml` |
| a poll-mode switch: from receive to sent (probes) | `with-probes/forwarding.toml` |
| runqueue latency of a vCPU: the step "vCPU on CPU" | `parts/interrupt.toml` |
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod engine;
mod interrupts;
pub mod lang;
mod ledger;
mod notes;
mod report;
mod shared_interrupts;
mod slow;
mod tally;
mod tasks;
mod traits;
mod uses;

pub use engine::{CompletedInstance, InstanceFilter, Paths, ReachedStep};
pub use ledger::{LedgerHolder, LedgerTerm, PathLedger};
pub use notes::{VcpuActivity, WakeSource};
pub use report::{
    AccessNamer, ClearedPath, GroupReport, InstanceReport, InstanceWords, PathReport, RecentWords,
    SlowCause, SlowReport, SlowestInstance, StageReport, StepReport, TraitSum, complete_reports,
};
pub use slow::ThresholdOrigin;
pub use tally::{DropReason, InstanceAccount};
pub use tasks::{TaskKind, TaskRun};
pub use traits::{InstanceTrait, InterruptLine};
pub use uses::{AccessReport, DeviceReport};

mod builtin {
    include!(concat!(env!("OUT_DIR"), "/builtin.rs"));
}

/// The built-in paths: name and text of each, in the order in which they are printed. They are the files of `builtin/`.
pub const BUILTIN: &[(&str, &str)] = builtin::BUILTIN;

/// Paths whose steps are in guests too: they are followed where guests' recordings are walked with the host's, and when
/// they are asked for. They are the files of `builtin/with-guests/`.
pub const WITH_GUESTS: &[(&str, &str)] = builtin::WITH_GUESTS;

/// Paths that are followed only when they are asked for, by a person or a rule: the files of `builtin/on-request/`.
pub const ON_REQUEST: &[(&str, &str)] = builtin::ON_REQUEST;

/// Paths of which nothing but probes shows a step. They are followed as those of [`BUILTIN`] are, and nothing is said
/// of them where they are not found. They are the files of `builtin/with-probes/`.
pub const WITH_PROBES: &[(&str, &str)] = builtin::WITH_PROBES;

/// Returns all that are built in: name and text of each.
pub fn builtin_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = BUILTIN.iter().chain(WITH_PROBES);
    all.chain(WITH_GUESTS).chain(ON_REQUEST).copied()
}

/// Returns a built-in path.
pub fn builtin(name: &str) -> Option<lang::PathDefinition> {
    let (_, text) = builtin_texts().find(|(known, _)| *known == name)?;
    lang::parse(text).ok()
}

/// Returns the built-in paths that are always followed.
pub fn all_builtin() -> Vec<lang::PathDefinition> {
    let always = BUILTIN.iter().filter_map(|(name, _)| builtin(name));
    let with_probes = WITH_PROBES.iter().filter_map(|(name, _)| builtin(name));
    let with_probes = with_probes.map(|path| lang::PathDefinition {
        only_if_found: true,
        ..path
    });
    always.chain(with_probes).collect()
}

/// Returns the built-in paths that go through guests.
pub fn with_guests() -> Vec<lang::PathDefinition> {
    let names = WITH_GUESTS.iter();
    names.filter_map(|(name, _)| builtin(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_paths_are_understood() {
        for (name, text) in builtin_texts() {
            match lang::parse(text) {
                Ok(path) => assert_eq!(path.name, name),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}
