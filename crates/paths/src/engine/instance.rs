//! One instance under way.

use super::plan::{StepSet, one};
use crate::lang::MAX_ROLES;
use crate::ledger::LedgerPart;
use crate::notes::InstanceNotes;
use model::Times;

/// A step that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReachedStep {
    /// Which, in the chain.
    pub step: u8,
    /// On which machine its event was: 0 is the host.
    pub machine: u16,
    /// When.
    pub time: u64,
    /// On which CPU of that machine its event was.
    pub cpu: i32,
    /// Slot of the host's thread that made its event: of a guest's, the vCPU's.
    pub thread: u32,
    /// Slot of the task that was woken, or got the CPU, by it.
    pub task: Option<u32>,
    /// Whether it was a switch: then it is the task that does something.
    pub switch: bool,
}

impl ReachedStep {
    /// Returns the slot of who does it: the thread, or of a switch the task that gets the CPU.
    pub fn does(&self) -> u32 {
        match self.task {
            Some(task) if self.switch => task,
            _ => self.thread,
        }
    }

    /// Returns the slot of who is woken by it.
    pub fn wakes(&self) -> Option<u32> {
        self.task.filter(|_| !self.switch)
    }
}

/// An instance.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveInstance {
    pub chain: u32,
    /// Whether it counts.
    pub counted: bool,
    /// What it waits for: alternatives, with their keys.
    pub waits: Vec<(u32, u64)>,
    /// What it ends by: the number of each, and the thread whose event it has to be.
    pub ends: Vec<(u32, u64)>,
    /// At most [`MAX_STEPS`](crate::lang::MAX_STEPS); most instances reach few.
    reached: Vec<ReachedStep>,
    /// Roles that were held before each of them.
    held: Vec<u16>,
    /// The same as a set.
    pub steps: StepSet,
    pub roles: [u64; MAX_ROLES],
    pub bound: u16,
    /// Roles that hold a ticket: which vCPU it is has yet to turn out.
    pub pending: u16,
    /// Whether what had to come soon has not.
    pub late: bool,
    /// The event that reached the last step: which one it was of the recording.
    pub seq: u64,
    /// What it is unique by: a step's number among all, and the hash of its roles.
    pub unique: Option<(u32, u64)>,
    /// Interrupts that were one with this one's.
    pub coalesced: u32,
    /// Who had the time up to the last step.
    pub ledger: Vec<LedgerPart>,
    /// What the threads that it knows have done up to the last step that it came to.
    pub marks: Vec<(u32, Times)>,
    pub marked_at: u64,
    /// Whether the event of that was made in an interrupt.
    pub marked_in_irq: bool,
    pub notes: Option<Box<InstanceNotes>>,
    /// Notes of an instance that was here before: their memory is used again.
    pub spare: Option<Box<InstanceNotes>>,
    /// Whether the slot holds an instance.
    pub live: bool,
    /// Its age: what came earlier has a lower one.
    pub born: u64,
}

/// Returns by what the engine remembers what the last instances of a chain had in a role, which is one of at most
/// [`MAX_ROLES`].
#[inline]
pub(crate) fn memory_key(chain: u32, role: usize, by: u64) -> (u32, u8, u64) {
    (chain, u8::try_from(role).unwrap_or(u8::MAX), by)
}

impl LiveInstance {
    pub(crate) fn reached(&self) -> &[ReachedStep] {
        &self.reached
    }

    pub(crate) fn last(&self) -> ReachedStep {
        self.reached().last().copied().unwrap_or_default()
    }

    /// Adds a step, with the roles that were held before it. Time does not run backwards, though the times of a damaged
    /// recording may.
    pub(crate) fn reach(&mut self, mut reached: ReachedStep, held: u16) {
        reached.time = reached.time.max(self.last().time);
        self.reached.push(reached);
        self.held.push(held);
        self.steps |= one(usize::from(reached.step));
    }

    /// Forgets the last step, and the roles that were not held before it, but for some.
    pub(crate) fn take_back(&mut self, but: u16) {
        self.steps &= !one(self.last_step());
        self.reached.pop();
        let held = self.held.pop().unwrap_or_default() | but;
        self.bound &= held;
        self.pending &= held;
    }

    /// Returns the last step.
    #[inline]
    pub(crate) fn last_step(&self) -> usize {
        // The highest: steps stay in their order.
        (StepSet::BITS - 1).saturating_sub(self.steps.leading_zeros()) as usize
    }

    #[inline]
    pub(crate) fn role(&self, role: usize) -> Option<u64> {
        (self.bound & 1 << role != 0).then(|| self.roles[role])
    }

    /// Returns what a role holds, unless that is a ticket.
    #[inline]
    pub(crate) fn known(&self, role: usize) -> Option<u64> {
        self.role(role).filter(|_| !self.is_pending(role))
    }

    /// Returns what several roles hold as one value, if all of them hold something that is known.
    pub(crate) fn key(&self, roles: &[usize]) -> Option<u64> {
        roles.iter().try_fold(0u64, |key, role| {
            let value = self.known(*role)?;
            Some(key.rotate_left(17) ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        })
    }

    pub(crate) fn set(&mut self, role: usize, value: u64) {
        if let Some(place) = self.roles.get_mut(role) {
            *place = value;
            self.bound |= 1 << role;
            self.pending &= !(1 << role);
        }
    }

    /// Returns whether a role holds a ticket.
    pub(crate) fn is_pending(&self, role: usize) -> bool {
        self.pending & 1 << role != 0
    }

    /// Returns whether a role holds this ticket.
    pub(crate) fn roles_hold(&self, value: u64) -> bool {
        (0..MAX_ROLES).any(|role| self.is_pending(role) && self.role(role) == Some(value))
    }

    /// Puts what turned out into the roles that hold a ticket.
    pub(crate) fn replace(&mut self, ticket: u64, by: u64) {
        for role in 0..MAX_ROLES {
            if self.is_pending(role) && self.role(role) == Some(ticket) {
                self.set(role, by);
                self.pending &= !(1 << role);
            }
        }
    }

    /// Makes the slot ready for another instance; what it allocated is used again.
    pub(crate) fn clear(&mut self) {
        self.counted = false;
        self.waits.clear();
        self.ends.clear();
        self.reached.clear();
        self.held.clear();
        self.steps = 0;
        self.bound = 0;
        self.pending = 0;
        self.late = false;
        self.unique = None;
        self.coalesced = 0;
        self.ledger.clear();
        self.marks.clear();
        if let Some(notes) = self.notes.take() {
            self.spare = Some(notes);
        }
        self.live = true;
    }
}
