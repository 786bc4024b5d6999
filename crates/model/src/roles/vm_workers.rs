//! Which threads are of VMs: their vCPUs, and what works for them.

use std::collections::HashSet;

use super::NamedRole;
use crate::Threads;

/// Which threads are of VMs, as far as events, processes and names say.
///
/// A walk over the scheduler's events alone knows no VM ([`crate::Vm`]); vCPUs have names there, and so their processes
/// are known.
#[derive(Debug, Clone, Default)]
pub struct VmWorkers {
    /// Processes that have a vCPU.
    processes: HashSet<i32>,
    /// vCPUs by what they did, and threads that carry such a process in their names.
    tids: HashSet<i32>,
}

impl VmWorkers {
    /// Returns them of all threads that were seen.
    pub fn of(threads: &Threads) -> VmWorkers {
        let is_vcpu = |thread: &crate::Thread| thread.is_vcpu || thread.named_role().is_vcpu();
        let vcpus = threads.iter().filter(|(_, thread)| is_vcpu(thread));
        let mut workers = VmWorkers::default();
        for (tid, thread) in vcpus {
            workers.tids.insert(tid);
            workers.processes.extend(thread.pid);
        }
        for (tid, thread) in threads.iter() {
            let served = thread.works_for().or(thread.named_role().served());
            if served.is_some_and(|pid| workers.processes.contains(&pid)) {
                workers.tids.insert(tid);
            }
        }
        workers
    }

    /// Returns whether a thread of this name is a vCPU or works for a VM. Of a thread that was not seen its name alone
    /// says so.
    pub fn has(&self, tid: i32, comm: &str) -> bool {
        let role = NamedRole::from(comm);
        self.tids.contains(&tid) || role.is_vcpu() || role.is_helper_of_vms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alone_say_what_they_can() {
        let none = VmWorkers::default();
        for comm in [
            "CPU 3/KVM",
            "vhost-12",
            "kvm-pit/12",
            "IO mon_iothread",
            "qemu-system-x86",
        ] {
            assert!(none.has(7, comm), "{comm}");
        }
        for comm in [
            "sh",
            "kworker/3:1",
            "swapper/0",
            "rcu_preempt",
            "firecracker",
        ] {
            assert!(!none.has(7, comm), "{comm}");
        }
    }
}
