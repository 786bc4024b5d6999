//! What a timeline has under way at one moment: data that a walk keeps, and that another walk's timeline goes on from.

use model::Cause;

use crate::timeline::cell::Stretch;
use crate::timeline::class::Processes;

/// What a timeline has under way: of each vCPU, CPU and thread the last stretch of its lane.
#[derive(Debug, Clone)]
pub struct OpenLanes {
    /// Of each vCPU its last stretch and that one's cause.
    pub(crate) vcpus: Vec<Option<(Stretch, Option<Cause>)>>,
    pub(crate) cpus: Vec<OpenCpu>,
    pub(crate) threads: Vec<OpenThread>,
    pub(crate) processes: Processes,
    pub(crate) end: u64,
}

/// A CPU.
#[derive(Debug, Clone)]
pub(crate) struct OpenCpu {
    pub(crate) last: Option<Stretch>,
}

/// A thread.
#[derive(Debug, Clone)]
pub(crate) struct OpenThread {
    pub(crate) slot: u32,
    pub(crate) last: Option<Stretch>,
}

impl OpenLanes {
    /// Returns about how many things it has.
    pub(crate) fn len(&self) -> usize {
        self.vcpus.len() + self.threads.len() + self.cpus.len()
    }
}
