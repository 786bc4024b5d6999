//! What went on around an instance, from the moment its vCPU is known.

use event::ExitReason;
use model::{GuestAccess, State};

use crate::tasks::{InterruptSource, TaskKind, TaskRun};

/// Lists of one instance hold at most so many different things; the rest is not distinguished.
pub(crate) const MAX_LISTED: usize = 16;

/// What a vCPU was doing when an instance came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VcpuActivity {
    /// Not known.
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

impl VcpuActivity {
    /// Returns whether it had a CPU and something to do on it.
    pub fn busy(self) -> bool {
        matches!(
            self,
            VcpuActivity::Guest | VcpuActivity::Kernel | VcpuActivity::User | VcpuActivity::Running
        )
    }
}

/// Who woke a vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WakeSource {
    /// Not known.
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

impl From<InterruptSource> for WakeSource {
    fn from(raised: InterruptSource) -> WakeSource {
        match raised {
            InterruptSource::Local => WakeSource::Timer,
            InterruptSource::Ipi => WakeSource::Vcpu,
            InterruptSource::Msi | InterruptSource::Pin => WakeSource::Device,
        }
    }
}

/// What went on with one vCPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct InstanceNotes {
    /// Slot of its thread.
    pub subject: u32,
    /// From when.
    pub since: u64,
    pub was: VcpuActivity,
    /// What the exit it was in was for.
    pub was_access: Option<GuestAccess>,
    pub was_reason: Option<ExitReason>,
    /// Its CPU, if known.
    pub cpu: i32,
    /// Exits it had from then on.
    pub exits: Vec<(ExitReason, u32)>,
    /// Accesses that made them, and whether the VMM handled them.
    pub accesses: Vec<((GuestAccess, bool), u32)>,
    /// The last exit that ended: why, and for which access.
    pub last: Option<(Option<ExitReason>, Option<GuestAccess>)>,
    /// Slots of other tasks that ran on its CPU.
    pub beside: Vec<u32>,
    /// Interrupts that the host took there.
    pub host_irqs: Vec<(u32, u32)>,
    pub migrated: bool,
    /// Whether halt polling hit.
    pub polled: Option<bool>,
    /// Who left the CPU when it got it.
    pub behind: Option<u32>,
    pub waker: WakeSource,
    /// The back end that works: its slot, what it is, and what it did when it was notified.
    pub back_end: Option<(u32, TaskKind, TaskRun)>,
}

impl InstanceNotes {
    /// Forgets all, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.subject = 0;
        self.since = 0;
        self.was = VcpuActivity::Unknown;
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
        self.waker = WakeSource::Unknown;
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

/// What a vCPU is in, as its state says. Whether it polls in a halt only the halt's end shows.
pub(crate) fn was(state: State, halt: Option<model::Halt>, run: TaskRun) -> VcpuActivity {
    use model::Halt;
    match (state, halt) {
        (_, Some(Halt::Asleep)) => VcpuActivity::Halted,
        (_, Some(Halt::Runnable)) => VcpuActivity::Runnable,
        (_, Some(Halt::Running)) => VcpuActivity::Halting,
        (State::Guest, _) => VcpuActivity::Guest,
        (State::Kernel | State::Poll, _) => VcpuActivity::Kernel,
        (State::User, _) => VcpuActivity::User,
        (State::Halted, _) => VcpuActivity::Halted,
        (State::Runnable, _) => VcpuActivity::Runnable,
        (State::KernelBlocked | State::UserBlocked, _) => VcpuActivity::Asleep,
        (State::Unknown, _) => match run {
            TaskRun::Running => VcpuActivity::Running,
            TaskRun::Runnable => VcpuActivity::Runnable,
            TaskRun::Asleep => VcpuActivity::Asleep,
            TaskRun::Unknown => VcpuActivity::Unknown,
        },
    }
}
