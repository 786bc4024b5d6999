//! What went on around an instance, from the moment its vCPU is known.

use event::ExitReason;
use model::{Access, State};

use crate::tasks::{Raised, Run, What};

/// Lists of one instance hold at most so many different things; the rest is not told apart.
pub(crate) const MAX_LISTED: usize = 16;

/// What a vCPU was doing when an instance came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Was {
    /// Nothing tells.
    #[default]
    Unknown,
    /// In its guest.
    Guest,
    /// On a CPU, KVM handling an exit.
    Kernel,
    /// On a CPU, the VMM handling an exit.
    User,
    /// Polling in a halt, which ended by that.
    Polling,
    /// On a CPU; the recording does not say more.
    Running,
    /// Woken or preempted, without a CPU.
    Runnable,
    /// Asleep in a halt.
    Halted,
    /// Asleep in something else.
    Asleep,
    /// In a halt, and not seen to sleep: on its way there or back, or polling where nothing says that it did.
    Halting,
}

impl Was {
    /// Returns whether it had a CPU and something to do on it.
    pub fn busy(self) -> bool {
        matches!(self, Was::Guest | Was::Kernel | Was::User | Was::Running)
    }
}

/// Who woke a vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Waker {
    /// Nothing tells.
    #[default]
    Unknown,
    /// Its own timer.
    Timer,
    /// A device's interrupt.
    Device,
    /// Another vCPU.
    Vcpu,
    /// Nobody had to: it polled.
    Poll,
}

impl From<Raised> for Waker {
    fn from(raised: Raised) -> Waker {
        match raised {
            Raised::Local => Waker::Timer,
            Raised::Ipi => Waker::Vcpu,
            Raised::Msi | Raised::Pin => Waker::Device,
        }
    }
}

/// What went on with one vCPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    /// Slot of its thread.
    pub subject: u32,
    /// From when.
    pub since: u64,
    pub was: Was,
    /// What the exit it was in was for.
    pub was_access: Option<Access>,
    pub was_reason: Option<ExitReason>,
    /// Its CPU, if known.
    pub cpu: i32,
    /// Exits it had from then on.
    pub exits: Vec<(ExitReason, u32)>,
    /// Accesses that made them, and whether the VMM handled them.
    pub accesses: Vec<((Access, bool), u32)>,
    /// The last exit that ended: why, and for which access.
    pub last: Option<(Option<ExitReason>, Option<Access>)>,
    /// Slots of other tasks that ran on its CPU.
    pub beside: Vec<u32>,
    /// Interrupts that the host took there.
    pub host_irqs: Vec<(u32, u32)>,
    pub migrated: bool,
    /// Whether halt polling hit.
    pub polled: Option<bool>,
    /// Who left the CPU when it got it.
    pub behind: Option<u32>,
    pub waker: Waker,
    /// The back end that works: its slot, what it is, and what it did when it was notified.
    pub back_end: Option<(u32, What, Run)>,
}

impl Notes {
    /// Forgets all, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.subject = 0;
        self.since = 0;
        self.was = Was::Unknown;
        self.was_access = None;
        self.was_reason = None;
        self.cpu = 0;
        self.exits.clear();
        self.accesses.clear();
        self.last = None;
        self.beside.clear();
        self.host_irqs.clear();
        self.migrated = false;
        self.polled = None;
        self.behind = None;
        self.waker = Waker::Unknown;
        self.back_end = None;
    }
}

/// Counts one more of a kind.
pub(crate) fn count<T: PartialEq>(list: &mut Vec<(T, u32)>, what: T) {
    if let Some((_, n)) = list.iter_mut().find(|(known, _)| *known == what) {
        *n = n.saturating_add(1);
    } else if list.len() < MAX_LISTED {
        list.push((what, 1));
    }
}

/// What a vCPU is in, as its state says. Whether it polls in a halt only the halt's end tells.
pub(crate) fn was(state: State, halt: Option<model::Halt>, run: Run) -> Was {
    use model::Halt;
    match (state, halt) {
        (_, Some(Halt::Asleep)) => Was::Halted,
        (_, Some(Halt::Runnable)) => Was::Runnable,
        (_, Some(Halt::Running)) => Was::Halting,
        (State::Guest, _) => Was::Guest,
        (State::Kernel | State::Poll, _) => Was::Kernel,
        (State::User, _) => Was::User,
        (State::Halted, _) => Was::Halted,
        (State::Runnable, _) => Was::Runnable,
        (State::KernelBlocked | State::UserBlocked, _) => Was::Asleep,
        (State::Unknown, _) => match run {
            Run::Running => Was::Running,
            Run::Runnable => Was::Runnable,
            Run::Asleep => Was::Asleep,
            Run::Unknown => Was::Unknown,
        },
    }
}
