//! What one instance can have and another not.

use cpuset::NodeDistance;
use event::ExitReason;
use model::GuestAccess;
use rustc_hash::FxHashMap;

use crate::notes::{VcpuActivity, WakeSource};
use crate::tasks::{TaskKind, TaskRun};

/// Something that is true of an instance. Slots are those of [`model::Threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstanceTrait {
    /// A group of its own for what is beyond the groups that are counted.
    Others,
    /// It went this chain.
    Chain(u8),
    /// It reached this step of the chain.
    Reached(u8, u8),
    /// Its longest stage went from one step to the other.
    Longest(u8, u8, u8),
    /// Other interrupts were one with its own.
    Coalesced,
    /// Its interrupt's vector.
    Vector(u32),
    /// What the guest touched: a port or a guest physical address.
    Address(u64),
    /// The vCPU's thread (slot).
    Vcpu(u32),
    /// What the exit was for.
    For(Option<ExitReason>, Option<GuestAccess>),
    /// What the vCPU was doing.
    Was(VcpuActivity),
    /// The vCPU had a CPU and something to do on it.
    Busy,
    /// What it was busy with.
    BusyWith(GuestAccess),
    /// The vCPU's CPU.
    Cpu(i32),
    /// It had at least so many exits of this reason meanwhile.
    Exits(ExitReason, u32),
    /// It had at least so many exits by this access meanwhile, handled by the VMM or not.
    Accesses(GuestAccess, bool, u32),
    /// This task (slot) ran on its CPU meanwhile.
    Beside(u32),
    /// The host took at least so many of this interrupt on its CPU meanwhile.
    HostIrq(u32, u32),
    /// It went to another CPU.
    Migrated,
    /// Halt polling hit, or did not.
    Polled(bool),
    /// This task (slot) left the CPU when it got it.
    Behind(u32),
    /// Who woke it.
    Waker(WakeSource),
    /// What kind of thread the back end is.
    BackEnd(TaskKind),
    /// What it did when it was woken.
    BackEndWas(TaskRun),
    /// The back end's thread (slot).
    BackEndThread(u32),
    /// How far its first event's NUMA node is from its last one's.
    NodeDistance(NodeDistance),
    /// The thread (slot) that raised its interrupt, and as which.
    Raiser(u32, InterruptLine),
}

/// As which interrupt a device's thread is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InterruptLine {
    /// x86: the vector, which is one of its vCPU's.
    Vector(u32),
    /// The line or message of KVM's routing table (`KVM_SET_GSI_ROUTING`).
    Gsi(u32),
    /// Not recorded.
    Unknown,
}

/// The levels that a count is known by: 1, 2, 4 and so on up to it.
pub(crate) fn levels(count: u32) -> impl Iterator<Item = u32> {
    (0..32u32)
        .map(|bit| 1u32 << bit)
        .take_while(move |level| *level <= count)
}

/// Traits of one kind that have a place in a list, at most.
const MAX_LISTED: usize = 1 << 12;

/// Kinds of traits that have a list each.
const LISTS: usize = 7;

/// The numbers of traits. Every instance has several, so those that are a low number, as slots of threads are, or one
/// of few, are found in lists; the others in a table.
#[derive(Debug, Default)]
pub(crate) struct TraitNumbers {
    /// One more than the number; 0 where there is none.
    lists: [Vec<u32>; LISTS],
    others: FxHashMap<InstanceTrait, u32>,
    /// What was looked up last in the table, by what it is about: it is mostly the same.
    last: [Option<(InstanceTrait, u32)>; LASTS],
}

/// Traits that are looked up in the table, of which the last one is kept.
const LASTS: usize = 4;

impl TraitNumbers {
    /// Returns the number of a trait, if it has one.
    #[inline]
    pub(crate) fn get(&mut self, one: &InstanceTrait) -> Option<u32> {
        if let Some((list, at)) = place(one) {
            return self.lists[list].get(at)?.checked_sub(1);
        }
        let last = &mut self.last[about(one)];
        match last {
            Some((known, number)) if known == one => Some(*number),
            _ => {
                let number = *self.others.get(one)?;
                *last = Some((*one, number));
                Some(number)
            }
        }
    }

    /// Gives a trait a number.
    pub(crate) fn put(&mut self, one: &InstanceTrait, number: u32) {
        if let Some((list, at)) = place(one) {
            let list = &mut self.lists[list];
            if list.len() <= at {
                list.resize(at + 1, 0);
            }
            list[at] = number.saturating_add(1);
        } else {
            self.others.insert(*one, number);
        }
    }
}

/// Which of the last ones looked up a trait may be.
#[inline]
fn about(one: &InstanceTrait) -> usize {
    match one {
        InstanceTrait::For(..) => 0,
        InstanceTrait::Exits(..) => 1,
        InstanceTrait::BusyWith(_) => 2,
        _ => 3,
    }
}

/// Returns the list that a trait is in and its place there, if it is in one.
#[inline]
fn place(one: &InstanceTrait) -> Option<(usize, usize)> {
    let low = |list: usize, at: u32| {
        let at = usize::try_from(at).ok()?;
        (at < MAX_LISTED).then_some((list, at))
    };
    // One list for those that are few.
    let few = |at: usize| Some((0, at));
    match *one {
        InstanceTrait::Others => few(0),
        InstanceTrait::Coalesced => few(1),
        InstanceTrait::Busy => few(2),
        InstanceTrait::Migrated => few(3),
        InstanceTrait::Polled(hit) => few(4 + usize::from(hit)),
        InstanceTrait::Was(was) => few(8 + was as usize),
        InstanceTrait::Waker(waker) => few(24 + waker as usize),
        InstanceTrait::BackEnd(what) => few(32 + what as usize),
        InstanceTrait::BackEndWas(run) => few(40 + run as usize),
        InstanceTrait::Chain(chain) => few(64 + usize::from(chain)),
        InstanceTrait::Reached(chain, step) if fits(&[chain, step]) => {
            few(512 + usize::from(chain) * 16 + usize::from(step))
        }
        InstanceTrait::Longest(chain, from, to) if fits(&[chain, from, to]) => {
            few(1024 + (usize::from(chain) * 16 + usize::from(from)) * 16 + usize::from(to))
        }
        InstanceTrait::Vcpu(slot) => low(1, slot),
        InstanceTrait::Cpu(cpu) => low(2, u32::try_from(cpu).ok()?),
        InstanceTrait::Beside(slot) => low(3, slot),
        InstanceTrait::Behind(slot) => low(4, slot),
        InstanceTrait::BackEndThread(slot) => low(5, slot),
        InstanceTrait::Vector(vector) => low(6, vector),
        InstanceTrait::Reached(..)
        | InstanceTrait::Longest(..)
        | InstanceTrait::Address(_)
        | InstanceTrait::For(..)
        | InstanceTrait::BusyWith(_)
        | InstanceTrait::Exits(..)
        | InstanceTrait::Accesses(..)
        | InstanceTrait::NodeDistance(_)
        | InstanceTrait::Raiser(..)
        | InstanceTrait::HostIrq(..) => None,
    }
}

/// Returns whether chains and steps are as many as path files may have.
#[inline]
fn fits(numbers: &[u8]) -> bool {
    numbers.iter().all(|number| *number < 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two traits have one number, whatever list they are in.
    #[test]
    fn traits_have_numbers_of_their_own() {
        let mut all = vec![
            InstanceTrait::Others,
            InstanceTrait::Coalesced,
            InstanceTrait::Busy,
            InstanceTrait::Migrated,
        ];
        all.extend([false, true].map(InstanceTrait::Polled));
        all.extend(
            [
                VcpuActivity::Unknown,
                VcpuActivity::Guest,
                VcpuActivity::Asleep,
            ]
            .map(InstanceTrait::Was),
        );
        all.extend([WakeSource::Unknown, WakeSource::Poll].map(InstanceTrait::Waker));
        all.extend([TaskKind::Vcpu, TaskKind::Other].map(InstanceTrait::BackEnd));
        all.extend([TaskRun::Unknown, TaskRun::Asleep].map(InstanceTrait::BackEndWas));
        for low in 0..=u8::MAX {
            let number = u32::from(low) * 999;
            all.extend([
                InstanceTrait::Chain(low),
                InstanceTrait::Reached(low, 0),
                InstanceTrait::Reached(3, low),
            ]);
            all.extend([
                InstanceTrait::Longest(low, 1, 2),
                InstanceTrait::Longest(1, 3, low.max(4)),
            ]);
            all.extend([
                InstanceTrait::Vcpu(number),
                InstanceTrait::Beside(number),
                InstanceTrait::Behind(number),
            ]);
            all.extend([
                InstanceTrait::BackEndThread(number),
                InstanceTrait::Vector(number),
            ]);
            all.extend([
                InstanceTrait::Cpu(i32::from(low) - 3),
                InstanceTrait::Address(u64::from(low)),
            ]);
            all.extend([
                InstanceTrait::HostIrq(number, 1),
                InstanceTrait::HostIrq(number, 2),
            ]);
        }
        let different: std::collections::HashSet<InstanceTrait> = all.iter().copied().collect();
        let mut numbers = TraitNumbers::default();
        for (one, number) in different.iter().zip(0..) {
            assert_eq!(numbers.get(one), None, "{one:?}");
            numbers.put(one, number);
        }
        for (one, number) in different.iter().zip(0..) {
            assert_eq!(numbers.get(one), Some(number), "{one:?}");
        }
    }
}
