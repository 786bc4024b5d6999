//! What an instance that is complete had, so that slow ones can be compared with others.

use event::{NONE, index_of};

use super::Paths;
use super::instance::LiveInstance;
use super::plan::StepPlan;
use crate::lang::{PathGrouping, StepOption};
use crate::notes::{InstanceNotes, VcpuActivity, WakeSource};
use crate::traits::{InstanceTrait, InterruptLine, levels};

impl Paths {
    /// What is known of an instance that is complete.
    pub(super) fn traits(&self, at: u32, traits: &mut Vec<InstanceTrait>) {
        let live = &self.live[index_of(at)];
        let (path, chain) = self.index.chains[index_of(live.chain)];
        let path = &self.paths[index_of(path)];
        if path.chains.len() > 1 {
            traits.push(InstanceTrait::Chain(chain));
        }
        let first = self.index.number(live.chain, 0);
        traits_of_steps(live, chain, &self.index.steps[first..], traits);
        if live.coalesced > 0 {
            traits.push(InstanceTrait::Coalesced);
        }
        let roles = &self.index.roles[index_of(live.chain)];
        let held = |role: Option<usize>| role.and_then(|role| live.role(role));
        if path.by == Some(PathGrouping::NodeDistance) && self.nodes.has_several() {
            let on_host = || live.reached().iter().filter(|one| one.machine == 0);
            let cpus = on_host().next().zip(on_host().next_back());
            let distance = cpus.and_then(|(a, b)| self.nodes.distance(a.cpu, b.cpu));
            traits.extend(distance.map(InstanceTrait::NodeDistance));
        }
        let vector = held(roles.vector).and_then(|vector| u32::try_from(vector).ok());
        traits.extend(vector.map(InstanceTrait::Vector));
        if path.by == Some(PathGrouping::Raiser)
            && let Some(slot) = held(roles.source).and_then(|slot| u32::try_from(slot).ok())
        {
            let gsi = held(roles.gsi).and_then(|gsi| u32::try_from(gsi).ok());
            let line = match (vector, gsi) {
                (Some(vector), _) => InterruptLine::Vector(vector),
                (None, Some(gsi)) => InterruptLine::Gsi(gsi),
                (None, None) => InterruptLine::Unknown,
            };
            traits.push(InstanceTrait::Raiser(slot, line));
        }
        traits.extend(held(roles.address).map(InstanceTrait::Address));
        if let Some(notes) = &live.notes {
            traits_of_vcpu(notes, path.by, traits);
            traits_of_meanwhile(notes, path.by, traits);
            traits_of_waking(notes, path.by, traits);
            traits_of_back_end(notes, traits);
        }
    }
}

/// Which steps an instance reached that others do not, and its longest stage.
#[inline]
fn traits_of_steps(
    live: &LiveInstance,
    chain: u8,
    steps: &[StepPlan],
    traits: &mut Vec<InstanceTrait>,
) {
    for reached in &live.reached()[1..] {
        // What all have explains nothing.
        if steps[usize::from(reached.step)].optional == StepOption::Never {
            continue;
        }
        traits.push(InstanceTrait::Reached(chain, reached.step));
    }
    let longest = live
        .reached()
        .windows(2)
        .map(|pair| (pair[1].time.saturating_sub(pair[0].time), pair))
        .max_by_key(|(ns, _)| *ns);
    if let Some((_, pair)) = longest
        && live.reached().len() > 2
    {
        traits.push(InstanceTrait::Longest(chain, pair[0].step, pair[1].step));
    }
}

/// Which vCPU it was, and what it was doing when the instance came to it.
#[inline]
fn traits_of_vcpu(
    notes: &InstanceNotes,
    by: Option<PathGrouping>,
    traits: &mut Vec<InstanceTrait>,
) {
    traits.push(InstanceTrait::Vcpu(notes.subject));
    if by == Some(PathGrouping::Access)
        && let Some((reason, access)) = notes.last
    {
        traits.push(InstanceTrait::For(reason, access));
    }
    if notes.was != VcpuActivity::Unknown {
        // `kvm_vcpu_wakeup` says whether it kept its CPU up to the end of the halt.
        let was = match notes.was {
            VcpuActivity::Halting if notes.polled == Some(true) => VcpuActivity::Polling,
            was => was,
        };
        traits.push(InstanceTrait::Was(was));
        if notes.was.busy() {
            traits.push(InstanceTrait::Busy);
        }
    }
    if let Some(access) = notes.was_access.filter(|_| notes.was.busy()) {
        traits.push(InstanceTrait::BusyWith(access));
    }
    if notes.cpu != NONE {
        traits.push(InstanceTrait::Cpu(notes.cpu));
    }
}

/// What happened to the vCPU, and on its CPU, meanwhile.
#[inline]
fn traits_of_meanwhile(
    notes: &InstanceNotes,
    by: Option<PathGrouping>,
    traits: &mut Vec<InstanceTrait>,
) {
    for (reason, count) in &notes.exits {
        for level in levels(*count) {
            traits.push(InstanceTrait::Exits(*reason, level));
        }
    }
    // Where instances are exits, it is what they are grouped by.
    let own = by == Some(PathGrouping::Access);
    for ((access, vmm), count) in notes.accesses.iter().filter(|_| !own) {
        for level in levels(*count) {
            traits.push(InstanceTrait::Accesses(*access, *vmm, level));
        }
    }
    for slot in &notes.beside {
        traits.push(InstanceTrait::Beside(*slot));
    }
    for (irq, count) in &notes.host_irqs {
        for level in levels(*count) {
            traits.push(InstanceTrait::HostIrq(*irq, level));
        }
    }
    if notes.migrated {
        traits.push(InstanceTrait::Migrated);
    }
}

/// Who woke the vCPU, whether it polled, and whom it got its CPU from.
#[inline]
fn traits_of_waking(
    notes: &InstanceNotes,
    by: Option<PathGrouping>,
    traits: &mut Vec<InstanceTrait>,
) {
    if by == Some(PathGrouping::Waker) && notes.polled == Some(true) {
        traits.push(InstanceTrait::Waker(WakeSource::Poll));
    } else if notes.waker != WakeSource::Unknown || by == Some(PathGrouping::Waker) {
        traits.push(InstanceTrait::Waker(notes.waker));
    }
    if let Some(hit) = notes.polled {
        traits.push(InstanceTrait::Polled(hit));
    }
    if let Some(slot) = notes.behind {
        traits.push(InstanceTrait::Behind(slot));
    }
}

/// Who works for the vCPU, and what it did when it was woken.
#[inline]
fn traits_of_back_end(notes: &InstanceNotes, traits: &mut Vec<InstanceTrait>) {
    if let Some((slot, what, run)) = notes.back_end {
        traits.push(InstanceTrait::BackEnd(what));
        traits.push(InstanceTrait::BackEndWas(run));
        traits.push(InstanceTrait::BackEndThread(slot));
    }
}
