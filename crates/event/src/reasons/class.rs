//! What kinds of exits there are, and an entry of a table of reasons.

/// What a guest did, or what happened to it, that made its vCPU leave: the same question on every architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum ExitClass {
    /// The guest asked to wait: `HLT`, `MWAIT`, `WFx`, `idle-halt`. The time until the next entry is then the guest's
    /// own idleness and nobody's work.
    Waiting,
    /// It spins, and the hardware noticed: `PAUSE`.
    Pause,
    /// It used an I/O port.
    Port,
    /// It touched memory that KVM knows to be a device's.
    Mmio,
    /// It touched memory that the host's tables do not map for it, or not so: a device's or not.
    PageFault,
    /// It read or wrote a model specific register.
    Msr,
    /// It used its interrupt controller where the hardware has to ask.
    Apic,
    /// An interrupt of the host, or another event from outside.
    Interrupt,
    /// A timer that KVM set for the guest, in the hardware's own (VMX-preemption timer).
    Timer,
    /// It can take an interrupt now.
    InterruptWindow,
    /// An exception in the guest that KVM looks at.
    Exception,
    /// It used a control, debug, descriptor or system register.
    Register,
    /// An instruction that KVM does in its place: `CPUID`, `RDTSC`, `WBINVD`.
    Instruction,
    /// It called its hypervisor.
    Hypercall,
    /// It is a hypervisor itself.
    Nested,
    /// The log of written pages is full.
    DirtyLog,
    /// It held the bus, or kept the CPU for too long.
    BusLock,
    /// It talks to its hypervisor as a confidential guest does: SEV-ES, SEV-SNP, TDX.
    Confidential,
    /// The vCPU cannot go on.
    End,
    /// Anything else, and what no table has.
    #[default]
    Other,
}

impl ExitClass {
    /// Returns what its exits are called, in a sentence about several of them.
    pub fn exits(self) -> &'static str {
        match self {
            ExitClass::Waiting => "halts",
            ExitClass::Pause => "PAUSE exits",
            ExitClass::Port => "port exits",
            ExitClass::Mmio => "MMIO exits",
            ExitClass::PageFault => "page faults",
            ExitClass::Msr => "MSR exits",
            ExitClass::Apic => "exits for the local APIC",
            ExitClass::Interrupt => "interrupts of the host",
            ExitClass::Timer => "exits for KVM's timer",
            ExitClass::InterruptWindow => "interrupt windows",
            ExitClass::Exception => "exceptions",
            ExitClass::Register => "exits for registers",
            ExitClass::Instruction => "emulated instructions",
            ExitClass::Hypercall => "hypercalls",
            ExitClass::Nested => "nested exits",
            ExitClass::DirtyLog => "exits for a full dirty log",
            ExitClass::BusLock => "bus locks",
            ExitClass::Confidential => "exits of a confidential guest",
            ExitClass::End => "exits that end the vCPU",
            ExitClass::Other => "other exits",
        }
    }
}

/// A reason in the table of its architecture.
#[derive(Debug, Clone, Copy)]
pub(super) struct TabledReason {
    pub code: u32,
    /// The kernel's name, which `perf kvm stat` prints too; where they differ, perf's.
    pub name: &'static str,
    pub class: ExitClass,
    /// What other kernels and tools call it.
    pub others: &'static [&'static str],
}

pub(super) const fn entry(code: u32, name: &'static str, class: ExitClass) -> TabledReason {
    TabledReason {
        code,
        name,
        class,
        others: &[],
    }
}

impl TabledReason {
    /// Adds what others call it.
    pub(super) const fn also(mut self, others: &'static [&'static str]) -> TabledReason {
        self.others = others;
        self
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.others.contains(&name)
    }
}

/// Returns the classes of the first codes of a table, so that an exit's is one load.
pub(super) const fn classes<const N: usize>(table: &[TabledReason]) -> [ExitClass; N] {
    let mut classes = [ExitClass::Other; N];
    let mut at = 0;
    while at < table.len() {
        let code = table[at].code as usize;
        if code < N {
            classes[code] = table[at].class;
        }
        at += 1;
    }
    classes
}
