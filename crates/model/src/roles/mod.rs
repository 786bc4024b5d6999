//! What a thread is: the one owner of what names, processes and events say of it.
//!
//! Best known is what events and ids say: a thread that enters a guest is a vCPU. Names come second: the kernel, QEMU
//! and DPDK give their threads names that say what they are ([`NamedRole`]), and any process may take them too. Who
//! made the recording no name says ([`RecorderThreads`]).

mod named;
mod presumed;
mod recorded_by;
mod recorder;
mod vm_workers;

pub use named::{NamedRole, public_form, vcpu_from_comm};
pub use recorded_by::RecorderThreads;
pub(crate) use recorder::RecorderTraces;
pub use recorder::{PERF_WORKLOAD, RecorderClue};
pub use vm_workers::VmWorkers;

use crate::{Thread, Threads};

impl Thread {
    /// Returns what its name says that it is.
    #[inline]
    pub fn named_role(&self) -> NamedRole {
        self.comm
            .as_deref()
            .map_or(NamedRole::Other, NamedRole::from)
    }

    /// Returns the process that it works for, as far as it is recorded: a vhost worker's is in its name.
    pub fn works_for(&self) -> Option<i32> {
        match self.named_role() {
            NamedRole::Vhost(pid) => pid.or(self.pid),
            _ => self.pid,
        }
    }
}

impl Threads {
    /// Returns the process ids of VMMs that kernel threads carry in their names, sorted.
    pub(crate) fn served_processes(&self) -> Vec<i32> {
        let roles = self.iter().map(|(_, thread)| thread.named_role());
        let mut pids: Vec<i32> = roles.filter_map(NamedRole::served).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }
}

#[cfg(test)]
mod tests;
