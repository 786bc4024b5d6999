//! What vCPUs did when an interrupt was accepted of which it is not known yet for whose it is.
//!
//! Whose it is shows later: the vCPU gets its CPU, enters its guest, or has the interrupt injected. What it does then is
//! not what the interrupt met.

use event::ExitReason;
use model::{GuestAccess, Machine};
use rustc_hash::FxHashMap;

use super::Paths;
use crate::interrupts::UNRESOLVED;
use crate::notes::{self, VcpuActivity};
use crate::tasks::TaskRun;

/// vCPUs of a number that are looked at, at most: where there are more VMs, nothing is known of any.
const FEW: usize = 8;

/// What a vCPU did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeenVcpu {
    pub was: VcpuActivity,
    /// What the exit it was in was for.
    pub access: Option<GuestAccess>,
    pub reason: Option<ExitReason>,
}

/// What was seen, by ticket: the slots of vCPUs that the interrupt may be for.
#[derive(Debug, Default)]
pub(super) struct SeenVcpus {
    by_ticket: FxHashMap<u64, Vec<(u32, SeenVcpu)>>,
    /// What the vCPU did of which instances learn now that they are about it: unknown where there were too many.
    resolving: Option<(u32, SeenVcpu)>,
}

impl SeenVcpus {
    /// An interrupt turns out to be a vCPU's, or nobody's.
    pub(super) fn resolve(&mut self, ticket: u64, slot: Option<u32>) {
        let seen = self.by_ticket.remove(&ticket).unwrap_or_default();
        self.resolving = slot.map(|slot| {
            let unknown = SeenVcpu {
                was: VcpuActivity::Unknown,
                access: None,
                reason: None,
            };
            let own = seen.iter().find(|(one, _)| *one == slot);
            (slot, own.map_or(unknown, |(_, seen)| *seen))
        });
    }

    /// Instances have learned it.
    pub(super) fn resolved(&mut self) {
        self.resolving = None;
    }

    /// Returns what a vCPU did, where instances learn of it now.
    pub(super) fn of(&self, slot: u32) -> Option<SeenVcpu> {
        let resolving = self.resolving.filter(|(of, _)| *of == slot);
        resolving.map(|(_, seen)| seen)
    }
}

impl Paths {
    /// Keeps what the vCPUs do that an interrupt may be for.
    pub(super) fn see_vcpus(&mut self, target: u64, machine: &mut Machine) {
        if target & UNRESOLVED == 0 {
            return;
        }
        let few = self.interrupts.few_of(target, &self.tasks, FEW);
        let seen = few.into_iter().map(|slot| {
            let run = self.tasks.entry(slot, machine.threads()).run;
            (slot, seen(slot, run, machine))
        });
        let seen: Vec<(u32, SeenVcpu)> = seen.collect();
        self.seen_vcpus.by_ticket.insert(target, seen);
    }
}

/// Returns what a vCPU's thread is doing.
pub(super) fn seen(slot: u32, run: TaskRun, machine: &mut Machine) -> SeenVcpu {
    let tid = machine.threads().at(slot).map(|(tid, _)| tid);
    let Some(vcpu) = tid.and_then(|tid| machine.vcpu_of(tid)) else {
        return SeenVcpu {
            was: match run {
                TaskRun::Running => VcpuActivity::Running,
                TaskRun::Runnable => VcpuActivity::Runnable,
                TaskRun::Asleep => VcpuActivity::Asleep,
                TaskRun::Unknown => VcpuActivity::Unknown,
            },
            access: None,
            reason: None,
        };
    };
    let cause = machine.cause(vcpu);
    let (access, reason) = (cause.access, cause.reason);
    SeenVcpu {
        was: notes::was(machine.state(vcpu), machine.halt(vcpu), run),
        access,
        reason,
    }
}
