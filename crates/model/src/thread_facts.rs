//! What is told of threads and VMs beside the recording.
//!
//! It is weaker than the recording: it was true at some other time, and fills gaps only. A map of a guest's vCPUs that
//! the recording itself holds (trace-cmd's option `GUEST`) is handed over in the same way, before anything else, so
//! that it counts more.

use std::sync::Arc;

use crate::Threads;

/// What is told beside a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Threads.
    pub threads: Vec<ThreadFact>,
    /// VMs.
    pub vms: Vec<VmFact>,
}

/// One thread, as told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFact {
    /// Its id.
    pub tid: i32,
    /// Its process.
    pub pid: Option<i32>,
    /// Its name.
    pub comm: Option<Arc<str>>,
}

/// One VM, as told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VmFact {
    /// Process of its VMM.
    pub pid: Option<i32>,
    /// The guest's name.
    pub name: Option<String>,
    /// The guest's UUID.
    pub uuid: Option<String>,
    /// Its vCPUs.
    pub vcpus: Vec<VcpuFact>,
}

/// One vCPU of a VM, as told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VcpuFact {
    /// Its number.
    pub id: u32,
    /// Its thread.
    pub tid: i32,
}

/// Which vCPU a thread is told to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Index of its VM.
    pub vm: u32,
    /// Its number.
    pub id: u32,
}

impl Threads {
    /// Takes what is told beside the recording, before its events. A thread that is told to be a vCPU and
    /// never enters a guest in the recording is not made one.
    pub fn told(&mut self, told: &ThreadFacts) {
        for thread in &told.threads {
            let known = self.entry(thread.tid);
            known.pid = known.pid.or(thread.pid);
            known.comm = known.comm.take().or_else(|| thread.comm.clone());
        }
        let offset = self.told_vms.len();
        for (at, vm) in told.vms.iter().enumerate() {
            for vcpu in &vm.vcpus {
                let known = self.entry(vcpu.tid);
                known.pid = known.pid.or(vm.pid);
                known.told = known.told.or(Some(Claim {
                    vm: (offset + at) as u32,
                    id: vcpu.id,
                }));
            }
        }
        self.told_vms.extend(told.vms.iter().cloned());
    }

    /// Returns the VM that has a process, as told.
    pub(crate) fn told_of_process(&self, pid: i32) -> Option<&VmFact> {
        self.told_vms.iter().find(|vm| vm.pid == Some(pid))
    }
}
