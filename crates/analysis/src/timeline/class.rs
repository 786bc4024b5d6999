//! What a task that has a CPU is to the VMs.

use model::{Machine, NamedRole, Threads};
use rustc_hash::FxHashSet;

/// States of CPUs.
pub(crate) const IDLE: u8 = 0;
pub(crate) const VCPU: u8 = 1;
pub(crate) const BACK_END: u8 = 2;
pub(crate) const OTHER: u8 = 3;
pub(crate) const CPU_UNKNOWN: u8 = 4;
/// Who is of which process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Processes {
    /// Those of vCPUs.
    pub of_vms: FxHashSet<i32>,
    /// vCPUs that were looked at.
    looked: u32,
}

/// Returns what a task that runs is to a CPU.
pub(crate) fn class(slot: u32, threads: &Threads, of_vms: &FxHashSet<i32>) -> u8 {
    let Some((tid, thread)) = threads.at(slot) else {
        return OTHER;
    };
    if tid == 0 {
        return IDLE;
    }
    if thread.is_vcpu {
        return VCPU;
    }
    let of_vm = thread.pid.is_some_and(|pid| of_vms.contains(&pid));
    // Where no process says whose a thread is, names say which threads work for VMs.
    let named = matches!(
        thread.named_role(),
        NamedRole::Vhost(_)
            | NamedRole::Kworker(_)
            | NamedRole::Kvm(_)
            | NamedRole::Qemu
            | NamedRole::Iothread
    );
    match of_vm || named {
        true => BACK_END,
        false => OTHER,
    }
}

impl Processes {
    /// Takes note of the processes of vCPUs that were met since.
    #[inline]
    pub(crate) fn learn(&mut self, machine: &Machine) {
        let known = machine.vcpu_numbers();
        if known > self.looked {
            let new = (self.looked..known).filter_map(|number| machine.vcpu(number));
            let threads = machine.threads();
            let pids = new.filter_map(|vcpu| threads.at(vcpu.thread)?.1.pid);
            self.of_vms.extend(pids.filter(|pid| *pid > 0));
            self.looked = known;
        }
    }
}
