//! The kinds of time in an account, and up to where each is normal.

use event::ExitClass;

/// A kind of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountPart {
    /// The vCPU ran its guest.
    Guest,
    /// Its guest had asked to wait.
    Halted,
    /// KVM polled for its wake-up.
    Polling,
    /// KVM handled exits of a class.
    Kvm(ExitClass),
    /// The VMM handled exits of a class.
    Vmm(ExitClass),
    /// KVM or the VMM handled exits of a class: which of them was not recorded.
    KvmOrVmm(ExitClass),
    /// It slept in KVM though its guest had not asked to wait.
    AsleepInKvm,
    /// It slept in the VMM.
    AsleepInVmm,
    /// It could run, and its CPU was idle.
    RunnableIdle,
    /// It could run, and another task had its CPU.
    RunnableBehind,
    /// It could run, and the recorder had its CPU.
    RunnableRecorder,
    /// Nothing in the recording says what it was.
    NotRecorded,
    /// A thread that works for VMs had a CPU, nearly all the time.
    Thread,
    /// Such threads that took less.
    OtherThreads,
}

/// An eighth of all vCPUs' time. Healthy: `console-mmio-other-vcpu-healthy` (11.1 % in the VMM for one reason),
/// `vhost-mmio` (10.4 % in KVM). Near miss: `cpuid-sick` (13.2 % in KVM).
const EXITS: f64 = 0.125;
/// Three quarters of the time of exits: a printed table has no guest time that it could be small beside. Healthy:
/// `case4-vhost` (67 %).
const TABLED: f64 = 0.75;
/// An eighth. Healthy: `flame-iperf3` (10.6 %), `work-healthy` (4.9 %). Near miss: `preempted-sick` (20 %).
const RUNNABLE: f64 = 0.125;
/// Of polling a tenth, too: `ipi-haltpoll` (9.5 %).
const POLLING: f64 = 0.1;
/// A twentieth: locks and short waits. Near miss: `stopped-vmm-sick` (15 %).
const ASLEEP: f64 = 0.05;
/// A fifth of a single vCPU's. Healthy: `virtio-mmio-nogso-probes` (16.9 %). Of the others twice what is normal of all
/// vCPUs: `vhost-mmio/boot1` (19.8 % in KVM for page faults), `console-mmio-other-vcpu-healthy` (17.9 % in the VMM).
/// Near miss: `cpuid-sick` (44.1 %).
const ASLEEP_OF_ONE: f64 = 0.2;

impl AccountPart {
    /// Returns up to which share of the account it is normal where no finding explains it.
    pub fn normal_share(self, of_exits: bool) -> f64 {
        match self {
            // The guest works, or asked to wait. Whether it gets anywhere is what the rules on progress ask.
            AccountPart::Guest | AccountPart::Halted => 1.0,
            AccountPart::RunnableRecorder => 1.0,
            AccountPart::Kvm(ExitClass::Waiting) if of_exits => 1.0,
            AccountPart::Kvm(_) | AccountPart::Vmm(_) if of_exits => TABLED,
            AccountPart::Kvm(_) | AccountPart::Vmm(_) => EXITS,
            AccountPart::KvmOrVmm(_) => 2.0 * EXITS,
            AccountPart::Polling => POLLING,
            AccountPart::RunnableIdle | AccountPart::RunnableBehind => RUNNABLE,
            AccountPart::AsleepInKvm | AccountPart::AsleepInVmm => ASLEEP,
            AccountPart::OtherThreads => 1.0,
            AccountPart::NotRecorded | AccountPart::Thread => 0.0,
        }
    }

    /// Returns the same of the account of a single vCPU of several, whose load differs: twice as much.
    pub fn normal_share_of_one(self) -> f64 {
        match self {
            AccountPart::AsleepInKvm | AccountPart::AsleepInVmm => ASLEEP_OF_ONE,
            AccountPart::KvmOrVmm(_) => 3.0 * EXITS,
            _ => 2.0 * self.normal_share(false),
        }
    }

    /// Returns the class of the exits whose handling it is.
    pub fn exits(self) -> Option<ExitClass> {
        match self {
            AccountPart::Kvm(class) | AccountPart::Vmm(class) | AccountPart::KvmOrVmm(class) => {
                Some(class)
            }
            _ => None,
        }
    }

    /// Returns its name in documents.
    pub fn id(self) -> &'static str {
        match self {
            AccountPart::Guest => "guest",
            AccountPart::Halted => "halted",
            AccountPart::Polling => "polling",
            AccountPart::Kvm(_) => "kvm",
            AccountPart::Vmm(_) => "vmm",
            AccountPart::KvmOrVmm(_) => "kvm_or_vmm",
            AccountPart::AsleepInKvm => "asleep_in_kvm",
            AccountPart::AsleepInVmm => "asleep_in_vmm",
            AccountPart::RunnableIdle => "runnable_idle",
            AccountPart::RunnableBehind => "runnable_behind",
            AccountPart::RunnableRecorder => "runnable_recorder",
            AccountPart::NotRecorded => "not_recorded",
            AccountPart::Thread => "thread",
            AccountPart::OtherThreads => "threads",
        }
    }
}

/// What a rule's findings explain: rows of an account, of which they take as much as they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainedTime {
    /// The handling of exits of a class, by KVM and by the VMM.
    Exits(ExitClass),
    /// The handling of all exits.
    AllExits,
    /// Another kind.
    Part(AccountPart),
    /// Waiting for a CPU, whoever had it.
    Runnable,
    /// Sleep in KVM or in the VMM.
    Asleep,
    /// All time of vCPUs.
    All,
}

impl ExplainedTime {
    /// Returns whether it is about a kind of time.
    pub(crate) fn is(self, part: AccountPart) -> bool {
        match self {
            ExplainedTime::Exits(class) => part.exits() == Some(class),
            ExplainedTime::AllExits => part.exits().is_some(),
            ExplainedTime::Part(one) => one == part,
            ExplainedTime::Runnable => matches!(
                part,
                AccountPart::RunnableIdle | AccountPart::RunnableBehind
            ),
            ExplainedTime::Asleep => {
                matches!(part, AccountPart::AsleepInKvm | AccountPart::AsleepInVmm)
            }
            ExplainedTime::All => !matches!(part, AccountPart::Thread | AccountPart::OtherThreads),
        }
    }
}
