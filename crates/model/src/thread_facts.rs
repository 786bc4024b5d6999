//! Facts about threads and VMs, given beside the recording.
//!
//! It is weaker than the recording: it was true at some other time, and fills gaps only. A map of a guest's vCPUs that
//! the recording itself holds (trace-cmd's option `GUEST`) is handed over in the same way, before anything else, so
//! that it counts more.

use std::sync::Arc;

use crate::RecorderClue;

/// Facts given beside a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Threads.
    pub threads: Vec<ThreadFact>,
    /// VMs.
    pub vms: Vec<VmFact>,
    /// What the recording's header says of who made it.
    pub recorder: RecorderClue,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFact {
    /// Its id.
    pub tid: i32,
    /// Its process.
    pub pid: Option<i32>,
    /// Its name.
    pub comm: Option<Arc<str>>,
}

/// One VM.
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

/// One vCPU of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VcpuFact {
    /// Its number.
    pub id: u32,
    /// Its thread.
    pub tid: i32,
}

/// Which vCPU a thread is, by facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Index of its VM.
    pub vm: u32,
    /// Its number.
    pub id: u32,
}
