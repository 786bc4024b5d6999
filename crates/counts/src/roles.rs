//! Threads that work for VMs and are no vCPUs, and what they work as.

use facts::{Facts, ReportedThread};
use model::NamedRole;

/// What a thread that is no vCPU works for its VM as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadRole {
    /// A worker of vhost: it moves packets or blocks of the VM's devices.
    Vhost,
    /// A thread of KVM's own, such as the one of its timer (`kvm-pit`).
    Kvm,
    /// A thread of the VMM: an I/O thread, a worker, the main thread.
    Vmm,
}

impl ThreadRole {
    /// Returns the name that documents have.
    pub fn name(self) -> &'static str {
        match self {
            ThreadRole::Vhost => "vhost",
            ThreadRole::Kvm => "kvm",
            ThreadRole::Vmm => "vmm",
        }
    }
}

/// Returns the other threads that work for VMs, as a host's facts name them: thread, the VM's process, and as what it
/// works.
///
/// The thread of KVM's timer carries the number of the VMM's process (`kvm_create_pit` of `arch/x86/kvm/i8254.c`). A
/// VMM of which no thread is known to be a vCPU has none here: nobody knows which of its threads enter a guest.
pub fn threads_of_vms(facts: &Facts) -> Vec<(i32, i32, ThreadRole)> {
    let mut found = Vec::new();
    for vm in facts.vms.iter().filter(|vm| !vm.vcpus.is_empty()) {
        let Some(pid) = vm.pid else { continue };
        for (tid, thread) in &facts.threads {
            let role = if vm.vhost.contains(tid) {
                ThreadRole::Vhost
            } else if named(thread) == NamedRole::Kvm(Some(pid)) {
                ThreadRole::Kvm
            } else if thread.pid == Some(pid) && !vm.vcpus.iter().any(|vcpu| vcpu.tid == *tid) {
                ThreadRole::Vmm
            } else {
                continue;
            };
            found.push((*tid, pid, role));
        }
    }
    // Back ends first, if there is not room for all.
    found.sort_by_key(|(tid, pid, role)| (*role, *pid, *tid));
    found
}

fn named(thread: &ReportedThread) -> NamedRole {
    let comm = thread.comm.as_deref();
    comm.map_or(NamedRole::Other, NamedRole::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_vm_are_its_back_ends_kvms_and_the_rest_of_its_process() {
        let mut facts = Facts::default();
        let thread = |pid, comm: &str| ReportedThread {
            pid: Some(pid),
            comm: Some(comm.to_owned()),
            ..ReportedThread::default()
        };
        for (tid, pid, comm) in [
            (10, 10, "qemu-system-x86"),
            (11, 10, "CPU 0/KVM"),
            (12, 10, "IO iothread0"),
            (30, 30, "vhost-10"),
            (31, 31, "kvm-pit/10"),
            (32, 32, "kvm-pit/11"),
            (40, 40, "dpdk"),
        ] {
            facts.threads.insert(tid, thread(pid, comm));
        }
        facts.vms.push(facts::ReportedVm {
            pid: Some(10),
            vhost: vec![30],
            vcpus: vec![facts::ReportedVcpu::new(0, 11)],
            ..facts::ReportedVm::default()
        });
        let expected = [
            (30, 10, ThreadRole::Vhost),
            (31, 10, ThreadRole::Kvm),
            (10, 10, ThreadRole::Vmm),
            (12, 10, ThreadRole::Vmm),
        ];
        assert_eq!(threads_of_vms(&facts), expected);
        facts.vms[0].vcpus.clear();
        assert_eq!(threads_of_vms(&facts), []);
    }
}
