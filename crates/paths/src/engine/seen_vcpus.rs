//! What vCPUs did when an interrupt was accepted of which it is not known yet for whose it is, and which exits they had
//! until that was known.
//!
//! Whose it is shows later: the vCPU gets its CPU, enters its guest, or has the interrupt injected. What it does then
//! is not what the interrupt met.

use std::collections::VecDeque;

use event::ExitReason;
use model::{GuestAccess, Machine, State};
use rustc_hash::FxHashMap;

use crate::notes::{self, InstanceNotes, VcpuActivity};
use crate::tasks::TaskRun;

/// vCPUs of a number that are looked at, at most: where there are more VMs, nothing is known of any.
pub(super) const FEW: usize = 8;
/// Exits of a vCPU that are kept: the last ones.
const RECENT: usize = 64;

/// What a vCPU did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeenVcpu {
    pub was: VcpuActivity,
    /// What the exit it was in was for.
    pub access: Option<GuestAccess>,
    pub reason: Option<ExitReason>,
}

/// An exit that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedExit {
    pub began: u64,
    pub ended: u64,
    pub reason: Option<ExitReason>,
    pub access: Option<GuestAccess>,
    /// Whether the VMM handled it.
    pub vmm: bool,
}

impl EndedExit {
    /// Adds it to what is noted of a vCPU.
    pub(super) fn note(&self, notes: &mut InstanceNotes) {
        notes.last = Some((self.reason, self.access));
        // The exit that the vCPU was in already is what it was doing.
        if self.began >= notes.since
            && let Some(reason) = self.reason
        {
            notes::count(&mut notes.exits, reason);
        }
        if let Some(access) = self.access {
            notes::count(&mut notes.accesses, (access, self.vmm));
        }
    }
}

/// An interrupt, and the vCPUs that it may be for, by their threads' slots.
#[derive(Debug, Default)]
struct SeenInterrupt {
    accepted: u64,
    vcpus: Vec<(u32, SeenVcpu)>,
}

/// Exits of a vCPU, as long as there are interrupts that may be for it.
#[derive(Debug, Default)]
struct RecentExits {
    interrupts: usize,
    exits: VecDeque<EndedExit>,
}

/// What is known of the vCPU that an interrupt turns out to be for, from when that was accepted on.
#[derive(Debug)]
pub(super) struct ResolvedVcpu {
    slot: u32,
    pub accepted: u64,
    /// What it did then; `None` where too many vCPUs have its number.
    pub seen: Option<SeenVcpu>,
    pub exits: Vec<EndedExit>,
}

/// What was seen, by ticket.
#[derive(Debug, Default)]
pub(super) struct SeenVcpus {
    by_ticket: FxHashMap<u64, SeenInterrupt>,
    recent: FxHashMap<u32, RecentExits>,
    /// Whose interrupt it is of which instances learn now.
    resolving: Option<ResolvedVcpu>,
}

impl SeenVcpus {
    /// An interrupt is accepted that may be for these vCPUs.
    pub(super) fn accept(&mut self, ticket: u64, accepted: u64, vcpus: Vec<(u32, SeenVcpu)>) {
        for (slot, _) in &vcpus {
            self.recent.entry(*slot).or_default().interrupts += 1;
        }
        let interrupt = SeenInterrupt { accepted, vcpus };
        self.by_ticket.insert(ticket, interrupt);
    }

    /// Returns whether exits of any vCPU are kept.
    #[inline]
    pub(super) fn is_watching(&self) -> bool {
        !self.recent.is_empty()
    }

    /// A vCPU's exit ends.
    pub(super) fn exit_ends(&mut self, slot: u32, exit: EndedExit) {
        if let Some(recent) = self.recent.get_mut(&slot) {
            if recent.exits.len() == RECENT {
                recent.exits.pop_front();
            }
            recent.exits.push_back(exit);
        }
    }

    /// An interrupt turns out to be a vCPU's, or nobody's.
    pub(super) fn resolve(&mut self, ticket: u64, slot: Option<u32>) {
        let Some(interrupt) = self.by_ticket.remove(&ticket) else {
            return;
        };
        let own = slot.and_then(|slot| interrupt.vcpus.iter().find(|(one, _)| *one == slot));
        self.resolving = slot.map(|slot| ResolvedVcpu {
            slot,
            accepted: interrupt.accepted,
            seen: own.map(|(_, seen)| *seen),
            exits: self.exits_since(slot, interrupt.accepted),
        });
        for (slot, _) in interrupt.vcpus {
            if let Some(recent) = self.recent.get_mut(&slot) {
                recent.interrupts -= 1;
                if recent.interrupts == 0 {
                    self.recent.remove(&slot);
                }
            }
        }
    }

    fn exits_since(&self, slot: u32, time: u64) -> Vec<EndedExit> {
        let recent = self.recent.get(&slot).into_iter();
        let exits = recent.flat_map(|recent| &recent.exits);
        exits.filter(|exit| exit.ended >= time).copied().collect()
    }

    /// Instances have learned it.
    pub(super) fn resolved(&mut self) {
        self.resolving = None;
    }

    /// Returns what is known of a vCPU, where instances learn now that they are about it.
    pub(super) fn of(&self, slot: u32) -> Option<&ResolvedVcpu> {
        self.resolving.as_ref().filter(|one| one.slot == slot)
    }
}

impl SeenVcpu {
    pub(super) const UNKNOWN: SeenVcpu = SeenVcpu {
        was: VcpuActivity::Unknown,
        access: None,
        reason: None,
    };
}

/// Returns what a vCPU's thread is doing.
pub(super) fn seen(slot: u32, run: TaskRun, machine: &mut Machine) -> SeenVcpu {
    let tid = machine.threads().at(slot).map(|(tid, _)| tid);
    let Some(vcpu) = tid.and_then(|tid| machine.vcpu_of(tid)) else {
        return SeenVcpu {
            was: notes::was(State::Unknown, None, run),
            ..SeenVcpu::UNKNOWN
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
