//! What VMs and vCPUs are called in findings.

use model::Vm;

use crate::Case;

impl Case<'_> {
    /// Returns the VM that a vCPU's thread belongs to: its position among all.
    pub(crate) fn vm_of(&self, tid: i32) -> Option<usize> {
        let has = |vm: &Vm| vm.vcpus.iter().any(|vcpu| vcpu.tid == tid);
        self.vms().iter().position(has)
    }

    /// Returns what to call the VM of a vCPU's thread; nothing where there is only one and it has no name.
    pub(crate) fn vm_name(&self, tid: i32) -> Option<String> {
        let at = self.vm_of(tid)?;
        let vm = self.vms().get(at)?;
        let of_name = self.vms().iter().filter(|other| other.name == vm.name);
        match (&vm.name, of_name.count()) {
            (None, _) if self.vms().len() == 1 => None,
            (Some(name), 1) => Some(name.clone()),
            (name, _) => {
                let name = name.as_deref().unwrap_or("VM");
                Some(match vm.pid {
                    Some(pid) => format!("{name} (process {pid})"),
                    None => format!("{name} ({})", threads(vm)),
                })
            }
        }
    }

    /// Returns what to call the vCPU of a thread: `b, vCPU 1`.
    pub(crate) fn vcpu_name(&self, tid: i32, number: u32) -> String {
        match self.vm_name(tid) {
            Some(vm) => format!("{vm}, vCPU {number}"),
            None => format!("vCPU {number}"),
        }
    }

    /// Returns whether so much was lost, or cut off, that what did not happen may have.
    pub(crate) fn doubtful(&self) -> bool {
        let quality = &self.picture.quality;
        let counts = self.picture.info.events.iter();
        let events: u64 = counts.map(|kind| kind.count).sum();
        // One in a hundred: then about every other chain of a dozen events and more has a gap in ten.
        quality.lost_events.saturating_mul(100) > events
    }
}

/// The threads of a VM's vCPUs, in words.
fn threads(vm: &Vm) -> String {
    let ids: Vec<String> = vm.vcpus.iter().map(|vcpu| vcpu.tid.to_string()).collect();
    match ids.as_slice() {
        [one] => format!("vCPU thread {one}"),
        [first, .., last] => format!("vCPU threads {first} to {last}"),
        [] => "no vCPU".to_owned(),
    }
}
