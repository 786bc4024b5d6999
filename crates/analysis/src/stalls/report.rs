//! The report about stalls.

use event::ExitReason;
use model::GuestAccess;

/// What held a vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StallCause {
    /// A signal stopped it, or a debugger.
    Stopped,
    /// It slept in the VMM.
    Vmm,
    /// It slept in KVM, uninterruptibly: for memory, or a lock.
    Kernel,
    /// It could run, and other tasks had its CPU.
    Behind,
    /// The host stood still: nothing happened on its CPU.
    Host,
    /// It ran, in KVM or in the VMM.
    Busy,
    /// The recording does not say.
    Unknown,
}

impl StallCause {
    /// How many there are.
    pub const COUNT: usize = 7;
}

/// A task that ran while a vCPU slept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its thread id.
    pub tid: i32,
    /// Its name, if known.
    pub comm: Option<String>,
    /// For how long.
    pub ns: u64,
}

/// One stall.
#[derive(Debug, Clone, PartialEq)]
pub struct Stall {
    /// The vCPU's thread.
    pub tid: i32,
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// What held it for most of the time.
    pub held: StallCause,
    /// How long of it that did.
    pub held_ns: u64,
    /// How long of it the VMM had the vCPU, asleep or not.
    pub vmm_ns: u64,
    /// The exit that it was in.
    pub reason: Option<ExitReason>,
    /// Its access, where it was recorded.
    pub access: Option<GuestAccess>,
    /// While it slept: who woke it, and for how long that one had run meanwhile; 0 stands for an interrupt on an
    /// idle CPU.
    pub waker: Option<Ran>,
    /// While it waited for a CPU: who had it longest at once.
    pub behind: Option<Ran>,
    /// Whether it was not over when the recording ended: then it was longer than is known.
    pub is_open: bool,
}

impl Stall {
    /// Returns how long it was.
    pub fn ns(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// All stalls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StallsReport {
    /// By [`StallCause`], how many there were and their time.
    pub sums: [(u64, u64); StallCause::COUNT],
    /// The longest with their circumstances, longest first.
    pub longest: Vec<Stall>,
    /// By vCPU's thread, how long it slept in KVM uninterruptibly, in all, though the guest had not asked to wait;
    /// those that did not are left out.
    pub asleep: Vec<(i32, u64)>,
    /// Whether a task has events while it runs (`sched_stat_runtime`), so that silence means something.
    pub ticks: bool,
}

impl StallsReport {
    /// Returns how many stalls there were of a kind, and their time.
    pub fn sum(&self, held: StallCause) -> (u64, u64) {
        self.sums[held as usize]
    }
}
