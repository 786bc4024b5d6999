//! What one instance can have and another not.

use event::ExitReason;
use model::Access;

use crate::notes::{Waker, Was};
use crate::tasks::{Run, What};

/// Something that is true of an instance. Slots are those of [`model::Threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trait {
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
    For(Option<ExitReason>, Option<Access>),
    /// What the vCPU was doing.
    Was(Was),
    /// The vCPU had a CPU and something to do on it.
    Busy,
    /// What it was busy with.
    BusyWith(Access),
    /// The vCPU's CPU.
    Cpu(i32),
    /// It had at least so many exits of this reason meanwhile.
    Exits(ExitReason, u32),
    /// It had at least so many exits by this access meanwhile, handled by the VMM or not.
    Accesses(Access, bool, u32),
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
    Waker(Waker),
    /// What kind of thread the back end is.
    BackEnd(What),
    /// What it did when it was woken.
    BackEndWas(Run),
    /// The back end's thread (slot).
    BackEndThread(u32),
}

/// The levels that a count is known by: 1, 2, 4 and so on up to it.
pub(crate) fn levels(count: u32) -> impl Iterator<Item = u32> {
    (0..32u32)
        .map(|bit| 1u32 << bit)
        .take_while(move |level| *level <= count)
}
