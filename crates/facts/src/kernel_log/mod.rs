//! What a kernel wrote to its log about things that make VMs slow.
//!
//! [`KernelLogReader`] takes the lines of a log in any of the forms that `dmesg` and `journalctl` print, counts those
//! that say something of a VM's time by [`LogKind`], and keeps the first and the last ones of each kind.

mod message;
mod prefix;
mod reader;

use std::collections::BTreeMap;

use forms::InputForm;

use cpuset::CpuSet;
use serde::Serialize;

pub(crate) use prefix::is_stamped;
pub use prefix::printk_ns;
pub use reader::{KernelLogReader, LogOwner};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "dmesg, journalctl -k, /dev/kmsg, syslog's files, QEMU's log",
    recognised_by: "times of any of their forms before lines of the kernel; without times messages that say \
        something of a VM's time",
    yields: "lockups, RCU stalls, hung tasks, split locks, killed processes, throttling, what KVM complained of",
    fixtures: &[
        "tests/texts/dmesg.txt",
        "tests/texts/dmesg-T.txt",
        "tests/texts/journal-iso.txt",
        "tests/texts/syslog.txt",
        "tests/texts/qemu-log.txt",
    ],
};

/// Most lines of a kind that are kept from its beginning, and from its end.
const MOST_FIRST: usize = 32;
const MOST_LAST: usize = 96;
/// Most lines of one kernel log in a document: all that a log can have.
pub(crate) const MAX_LINES: usize = LogKind::ALL.len() * (MOST_FIRST + MOST_LAST);
/// Longest text of a line that is kept, in bytes.
const MAX_TEXT: usize = 256;

/// What a line of a kernel log is about. The messages and their sources stand in `message.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// A thread made a locked access that crosses a cache line, and was held back for it or killed.
    SplitLock,
    /// A thread made a locked access that held the bus of all CPUs.
    BusLock,
    /// A CPU ran in the kernel for long without letting another task run.
    SoftLockup,
    /// A CPU took no interrupt for long.
    HardLockup,
    /// A CPU or task did not get through a grace period of RCU for long.
    RcuStall,
    /// A task slept uninterruptibly for long.
    HungTask,
    /// A clock source was found to go wrong, mostly the TSC.
    UnstableClock,
    /// The kernel killed a process to get memory.
    OutOfMemory,
    /// Real-time tasks used up the time that all of them have.
    RtThrottling,
    /// A CPU was too hot, and its clock was slowed down.
    CpuTooHot,
    /// The machine reported an error of its CPU, memory or bus.
    HardwareError,
    /// Sampling took too long, and its rate was lowered.
    SamplingLowered,
    /// A guest did something that KVM does not support: mostly a model specific register that it does not know.
    KvmUnsupported,
    /// KVM said that a guest with several vCPUs has a TSC that cannot be relied on.
    KvmClock,
    /// KVM or its VMM could not go on with a guest: it was not entered, or did what cannot be emulated.
    VmFailed,
}

impl LogKind {
    /// All kinds.
    pub const ALL: [LogKind; 15] = [
        LogKind::SplitLock,
        LogKind::BusLock,
        LogKind::SoftLockup,
        LogKind::HardLockup,
        LogKind::RcuStall,
        LogKind::HungTask,
        LogKind::UnstableClock,
        LogKind::OutOfMemory,
        LogKind::RtThrottling,
        LogKind::CpuTooHot,
        LogKind::HardwareError,
        LogKind::SamplingLowered,
        LogKind::KvmUnsupported,
        LogKind::KvmClock,
        LogKind::VmFailed,
    ];

    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            LogKind::SplitLock => "split-lock",
            LogKind::BusLock => "bus-lock",
            LogKind::SoftLockup => "soft-lockup",
            LogKind::HardLockup => "hard-lockup",
            LogKind::RcuStall => "rcu-stall",
            LogKind::HungTask => "hung-task",
            LogKind::UnstableClock => "unstable-clock",
            LogKind::OutOfMemory => "out-of-memory",
            LogKind::RtThrottling => "rt-throttling",
            LogKind::CpuTooHot => "cpu-too-hot",
            LogKind::HardwareError => "hardware-error",
            LogKind::SamplingLowered => "sampling-lowered",
            LogKind::KvmUnsupported => "kvm-unsupported",
            LogKind::KvmClock => "kvm-clock",
            LogKind::VmFailed => "vm-failed",
        }
    }

    /// Returns the kind with a name in documents.
    pub fn of_name(name: &str) -> Option<LogKind> {
        LogKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns what such lines say, for a person.
    pub fn words(self) -> &'static str {
        match self {
            LogKind::SplitLock => "split locks",
            LogKind::BusLock => "bus locks",
            LogKind::SoftLockup => "soft lockup: a CPU let no other task run",
            LogKind::HardLockup => "hard lockup: a CPU took no interrupt",
            LogKind::RcuStall => "RCU stall: a CPU or task did not get on",
            LogKind::HungTask => "a task slept uninterruptibly",
            LogKind::UnstableClock => "a clock source went wrong",
            LogKind::OutOfMemory => "a process was killed to get memory",
            LogKind::RtThrottling => "real-time tasks were throttled",
            LogKind::CpuTooHot => "a CPU was too hot and went slower",
            LogKind::HardwareError => "hardware errors",
            LogKind::SamplingLowered => "sampling took too long, its rate was lowered",
            LogKind::KvmUnsupported => "a guest did what KVM does not support",
            LogKind::KvmClock => "guests' TSCs cannot be relied on",
            LogKind::VmFailed => "a guest could not go on",
        }
    }
}

/// One line of a kernel log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelLogLine {
    /// What it is about.
    pub kind: LogKind,
    /// When, in nanoseconds on the clock of printk (`local_clock` of `kernel/sched/clock.c`), which perf and ftrace
    /// have by default too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printk_ns: Option<u64>,
    /// When, in nanoseconds of `CLOCK_MONOTONIC`, as `journalctl -o short-monotonic` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monotonic_ns: Option<u64>,
    /// When, as a calendar has it, in the words of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The CPUs that it names.
    #[serde(skip_serializing_if = "CpuSet::is_empty", with = "crate::cpus")]
    pub cpus: CpuSet,
    /// The thread that it names; of a process that was killed, its first thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// That thread's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// For how many seconds it had been so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// The message.
    pub text: String,
}

/// What a kernel log says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KernelLog {
    /// How many lines of the kernel were read.
    pub lines: u64,
    /// How many lines of each kind there were.
    pub counts: BTreeMap<LogKind, u64>,
    /// The first and the last ones of each kind, in the order of the log.
    pub kept: Vec<KernelLogLine>,
}

impl KernelLog {
    /// Returns the lines of a kind that are kept.
    pub fn of(&self, kind: LogKind) -> impl Iterator<Item = &KernelLogLine> {
        self.kept.iter().filter(move |line| line.kind == kind)
    }
}
