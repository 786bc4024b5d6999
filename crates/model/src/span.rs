//! What a vCPU does at every instant, as spans of time.

use event::{ExitDetail, ExitReason};

/// What a vCPU does.
///
/// Guest, kernel and user are where its thread is; whether that thread then has its CPU, sleeps, or waits
/// for a CPU is what splits them further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// It runs the guest: from `kvm_entry` to `kvm_exit`.
    Guest,
    /// KVM handles an exit, or does something else inside `KVM_RUN`.
    Kernel,
    /// It sleeps in KVM though its guest did not ask to wait: for a lock, for memory, for I/O.
    KernelBlocked,
    /// The VMM handles an exit: `KVM_RUN` has returned, and has not been called again.
    User,
    /// It sleeps in the VMM.
    UserBlocked,
    /// Its guest halted, and KVM polls for something to wake it up before it gives the CPU away
    /// (`halt_poll_ns`).
    Poll,
    /// Its guest halted, and nothing has woken it.
    Halted,
    /// It is on a run queue and another task has the CPU.
    Runnable,
    /// The events that would say so were lost, or never recorded.
    Unknown,
}

impl State {
    /// How many there are.
    pub const COUNT: usize = 9;

    /// All of them.
    pub const ALL: [State; State::COUNT] = [
        State::Guest,
        State::Kernel,
        State::KernelBlocked,
        State::User,
        State::UserBlocked,
        State::Poll,
        State::Halted,
        State::Runnable,
        State::Unknown,
    ];
}

/// Time by state, in nanoseconds of the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times([u64; State::COUNT]);

impl Times {
    /// None at all.
    pub const ZERO: Times = Times([0; State::COUNT]);

    /// Returns the time spent in a state.
    #[inline]
    pub fn get(&self, state: State) -> u64 {
        self.0[state as usize]
    }

    /// Adds time to a state.
    #[inline]
    pub fn add(&mut self, state: State, ns: u64) {
        let sum = &mut self.0[state as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Moves time, at most what is there, from one state to another.
    #[inline]
    pub fn shift(&mut self, from: State, to: State, ns: u64) {
        let ns = ns.min(self.get(from));
        self.0[from as usize] -= ns;
        self.add(to, ns);
    }

    /// Takes time away from a state, at most what is there.
    #[inline]
    pub fn take(&mut self, state: State, ns: u64) {
        let sum = &mut self.0[state as usize];
        *sum = sum.saturating_sub(ns);
    }

    /// Adds other times.
    #[inline]
    pub fn merge(&mut self, other: &Times) {
        for (sum, ns) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(ns);
        }
    }

    /// Adds what another has more than an earlier reading of it. Most of it is unchanged.
    #[inline]
    pub fn add_since(&mut self, now: &Times, earlier: &Times) {
        for ((sum, ns), before) in self.0.iter_mut().zip(now.0).zip(earlier.0) {
            if ns > before {
                *sum = sum.saturating_add(ns - before);
            }
        }
    }

    /// Returns what has been added since an earlier reading.
    #[inline]
    pub fn since(&self, earlier: &Times) -> Times {
        let mut times = *self;
        for (ns, before) in times.0.iter_mut().zip(earlier.0) {
            *ns = ns.saturating_sub(before);
        }
        times
    }

    /// Returns the time in all states.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }
}

/// What the guest touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GuestAccess {
    /// An I/O port.
    Port {
        /// Its number.
        port: u16,
        /// Whether the guest wrote.
        write: bool,
    },
    /// Memory that KVM or the VMM emulates.
    Mmio {
        /// Guest physical address.
        gpa: u64,
        /// Whether the guest wrote.
        write: bool,
    },
    /// A model specific register; on arm64 a system register.
    Msr {
        /// Its number; on arm64 that of [`event::SystemRegister`].
        msr: u32,
        /// Whether the guest wrote.
        write: bool,
    },
}

impl GuestAccess {
    /// Returns what the processor says an exit was for, where that is a port, or an address that KVM knew as one to
    /// emulate; where the event of the access is recorded too, it says the same.
    pub fn of_exit(detail: ExitDetail) -> Option<GuestAccess> {
        match detail {
            ExitDetail::Port { port, write, .. } => Some(GuestAccess::Port { port, write }),
            ExitDetail::NestedFault {
                gpa,
                write,
                emulated: true,
            } => Some(GuestAccess::Mmio { gpa, write }),
            _ => None,
        }
    }
}

/// Why a vCPU is out of its guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cause {
    /// The exit; `None` in the guest, and before the first exit that was seen.
    pub reason: Option<ExitReason>,
    /// The access that made the exit, where it was recorded or the exit itself says it ([`GuestAccess::of_exit`]).
    pub access: Option<GuestAccess>,
}

/// A stretch of time that a vCPU spent in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The vCPU: its number in [`crate::Machine`], not in its VM.
    pub vcpu: u32,
    /// What it did.
    pub state: State,
    /// From when.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// The CPU it ran on, or waited for; [`event::NONE`] when not known.
    pub cpu: i32,
    /// Why it was out of its guest.
    pub cause: Cause,
    /// While it was runnable: the slot (in [`crate::Threads`]) of the task that had the CPU, if known.
    pub behind: Option<u32>,
}

impl Span {
    /// Returns its length.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Receives spans. Those of one vCPU come in order and without gaps; a vCPU's spans come when the exit they
/// belong to is over, because an event after a halt says what the halted vCPU did.
pub trait SpanSink {
    /// Takes one span.
    fn span(&mut self, span: &Span);
}

/// Keeps them.
impl SpanSink for Vec<Span> {
    #[inline]
    fn span(&mut self, span: &Span) {
        self.push(*span);
    }
}

/// Wants no spans.
impl SpanSink for () {
    #[inline]
    fn span(&mut self, _: &Span) {}
}
