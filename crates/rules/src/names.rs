//! What VMs and vCPUs are called in findings: as in tables ([`model::vm_names`]).

use model::{Vm, vcpu_name, vm_names};

use crate::Case;
use crate::evidence::ThreadMention;

impl Case<'_> {
    /// Returns the VM that a vCPU's thread belongs to: its position among all.
    pub(crate) fn vm_of(&self, tid: i32) -> Option<usize> {
        let has = |vm: &Vm| vm.vcpus.iter().any(|vcpu| vcpu.tid == tid);
        self.vms().iter().position(has)
    }

    /// Returns what to call the VM of a vCPU's thread; nothing where there is only one and it has no name.
    pub(crate) fn vm_name(&self, tid: i32) -> Option<String> {
        let at = self.vm_of(tid)?;
        let alone = self.vms().len() == 1 && self.vms()[at].name.is_none();
        vm_names(self.vms()).into_iter().nth(at).filter(|_| !alone)
    }

    /// Returns what a vCPU is called: its number, behind its VM where there are several, and its thread: `b, vCPU 1
    /// (thread 1705)`.
    pub(crate) fn vcpu_called(&self, tid: i32) -> ThreadMention {
        match vcpu_name(self.vms(), tid) {
            Some(name) => ThreadMention::named(&name, tid),
            None => ThreadMention {
                called: format!("the vCPU of thread {tid}"),
                tid,
            },
        }
    }
}
