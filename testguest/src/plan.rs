//! What a guest is to do, and which events must show it.

use std::time::Duration;

/// Something that a guest does a known number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Writes four bytes to a port that nobody in the kernel knows.
    PioOut,
    /// Reads four bytes from such a port.
    PioIn,
    /// Reads four bytes where there is no memory.
    MmioRead,
    /// Writes four bytes where there is no memory.
    MmioWrite,
    /// Halts. Without an irqchip, user space returns at once; with one, the local APIC's timer wakes the vCPU. On
    /// aarch64 a device raises the vCPU's interrupt line.
    Halt,
    /// CPUID.
    Cpuid,
    /// A hypercall that the kernel answers.
    Hypercall,
    /// Writes to a port that is an ioeventfd: no return to user space.
    Ioeventfd,
    /// Writes to a register that is an ioeventfd: no return to user space.
    IoeventfdMmio,
    /// Asks a device by an ioeventfd, halts, and is woken by the device's irqfd, which is a message (MSI).
    Irqfd,
    /// The same by an irqfd that is a pin of the IOAPIC.
    IrqfdPin,
}

impl Operation {
    /// All of them, in the order in which a round does them.
    pub(crate) const ALL: [Operation; 11] = [
        Operation::PioOut,
        Operation::PioIn,
        Operation::MmioRead,
        Operation::MmioWrite,
        Operation::Halt,
        Operation::Cpuid,
        Operation::Hypercall,
        Operation::Ioeventfd,
        Operation::IoeventfdMmio,
        Operation::Irqfd,
        Operation::IrqfdPin,
    ];

    /// Returns its name in options and results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Operation::PioOut => "pio-out",
            Operation::PioIn => "pio-in",
            Operation::MmioRead => "mmio-read",
            Operation::MmioWrite => "mmio-write",
            Operation::Halt => "hlt",
            Operation::Cpuid => "cpuid",
            Operation::Hypercall => "hypercall",
            Operation::Ioeventfd => "ioeventfd",
            Operation::IoeventfdMmio => "ioeventfd-mmio",
            Operation::Irqfd => "irqfd",
            Operation::IrqfdPin => "irqfd-pin",
        }
    }
}

/// What a guest is to do.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// How many vCPUs. All do the same.
    pub(crate) vcpus: u32,
    /// How many rounds each of them does.
    pub(crate) rounds: u32,
    /// How often a round does each operation, in the order of [`Operation::ALL`].
    pub(crate) per_round: [u32; Operation::ALL.len()],
    /// From the start of a round to the start of the next; none where rounds follow each other at once.
    pub(crate) period: Option<Duration>,
    /// How long a device waits from being asked to its interrupt.
    pub(crate) device_delay: Duration,
    /// How long the first vCPU is kept in user space while a message is pending, once.
    pub(crate) hold: Option<Duration>,
}

impl Plan {
    /// Returns how often a round does something.
    pub(crate) fn each_round(&self, operation: Operation) -> u32 {
        self.per_round[operation as usize]
    }

    /// Returns how often each vCPU does something in all.
    pub(crate) fn each_vcpu(&self, operation: Operation) -> u64 {
        u64::from(self.each_round(operation)) * u64::from(self.rounds)
    }

    /// Returns how often all vCPUs do something in all.
    pub(crate) fn in_all(&self, operation: Operation) -> u64 {
        self.each_vcpu(operation) * u64::from(self.vcpus)
    }

    /// Returns whether the VM has an interrupt controller in the kernel. An irqfd needs one, and so a VM without has
    /// none.
    pub(crate) fn has_irqchip(&self) -> bool {
        self.each_round(Operation::Irqfd) + self.each_round(Operation::IrqfdPin) > 0
    }

    /// Returns in which round the first vCPU is held: the middle one, so that others stand on both sides.
    pub(crate) fn hold_round(&self) -> u32 {
        self.rounds / 2
    }

    /// Returns whether a vCPU is held once.
    pub(crate) fn holds(&self, vcpu: u32) -> bool {
        self.hold.is_some() && vcpu == 0
    }
}
