//! Threads that are known before anything is counted.

use std::fs;

use facts::Facts;

/// A thread that is known to be a vCPU before it does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// The thread.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// The vCPU's number.
    pub number: u32,
}

/// A thread that works for a VM and is no vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSeed {
    /// The thread.
    pub tid: i32,
    /// The VM's process.
    pub vm_pid: i32,
    /// Whether it sleeps now.
    pub asleep: bool,
    /// The CPU that it was on last; -1 where that is not known.
    pub cpu: i32,
}

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

/// Returns the vCPUs that a host's facts tell.
pub fn seeds(facts: &Facts) -> Vec<Seed> {
    let vms = facts.vms.iter().filter_map(|vm| Some((vm.pid?, vm)));
    let vcpus = vms.flat_map(|(pid, vm)| {
        vm.vcpus.iter().map(move |vcpu| Seed {
            tid: vcpu.tid,
            pid,
            number: vcpu.id,
        })
    });
    vcpus.collect()
}

/// Returns the other threads that work for VMs, as a host's facts tell them: thread, the VM's process, and as what it
/// works.
///
/// The thread of KVM's timer carries the number of the VMM's process (`kvm_create_pit` of `arch/x86/kvm/i8254.c`). A
/// VMM of which no thread is known to be a vCPU has none here: nobody can tell which of its threads enter a guest.
pub fn threads_of_vms(facts: &Facts) -> Vec<(i32, i32, ThreadRole)> {
    let mut found = Vec::new();
    for vm in facts.vms.iter().filter(|vm| !vm.vcpus.is_empty()) {
        let Some(pid) = vm.pid else { continue };
        let pit = format!("kvm-pit/{pid}");
        for (tid, thread) in &facts.threads {
            let role = if vm.vhost.contains(tid) {
                ThreadRole::Vhost
            } else if thread.comm.as_deref() == Some(&pit) {
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

/// Returns these threads with what they do now, by `/proc/TID/stat` (`proc(5)`). Those that are gone are left out.
pub fn thread_seeds(facts: &Facts) -> Vec<ThreadSeed> {
    let seed = |(tid, vm_pid, _)| {
        let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
        let (asleep, cpu) = state_and_cpu(&stat)?;
        Some(ThreadSeed {
            tid,
            vm_pid,
            asleep,
            cpu,
        })
    };
    threads_of_vms(facts).into_iter().filter_map(seed).collect()
}

/// Returns whether a thread sleeps, and on which CPU it was last: fields 3 and 39.
fn state_and_cpu(stat: &str) -> Option<(bool, i32)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let asleep = fields.next()? != "R";
    let cpu = fields.nth(35)?.parse().ok()?;
    Some((asleep, cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_its_file_says() {
        let stat = fs::read_to_string("/proc/thread-self/stat").expect("Linux has it");
        let (asleep, cpu) = state_and_cpu(&stat).expect("it has these fields");
        assert!(!asleep && cpu >= 0, "{stat}");
        let sleeps = stat.replacen(") R", ") S", 1);
        assert_eq!(state_and_cpu(&sleeps), Some((true, cpu)));
        assert_eq!(state_and_cpu("1 (a) b) R 1 2"), None);
    }

    #[test]
    fn threads_of_a_vm_are_its_back_ends_kvms_and_the_rest_of_its_process() {
        let mut facts = Facts::default();
        let thread = |pid, comm: &str| facts::ReportedThread {
            pid: Some(pid),
            comm: Some(comm.to_owned()),
            ..facts::ReportedThread::default()
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
