//! Which vCPUs are looked at, where filters choose some.

use std::collections::HashSet;

use event::{Event, NONE};

/// What filters leave out: the vCPUs that were not chosen, and the processes of the VMs of which none was.
///
/// Everything else is looked at: a chosen vCPU's back ends, and who woke or preempted it, may be any thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Threads of vCPUs.
    pub threads: HashSet<i32>,
    /// Processes of VMs.
    pub processes: HashSet<i32>,
}

impl LeftOut {
    /// Returns whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.processes.is_empty()
    }

    /// Returns whether a thread is left out.
    pub fn has(&self, tid: i32) -> bool {
        self.threads.contains(&tid)
    }

    /// Returns whether an event is by what is left out.
    #[inline]
    pub fn made(&self, event: &Event<'_>) -> bool {
        if self.is_empty() {
            return false;
        }
        let process = event.pid != NONE && self.processes.contains(&event.pid);
        process || self.threads.contains(&event.tid)
    }

    /// Returns whether an event is by a VM of which no vCPU was chosen; by a vCPU that was not, where nothing tells its
    /// process.
    #[inline]
    pub fn other_vm(&self, event: &Event<'_>) -> bool {
        match event.pid {
            NONE => self.threads.contains(&event.tid),
            pid => self.processes.contains(&pid),
        }
    }
}
