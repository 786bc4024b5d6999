//! Where things are in the guest: its memory, its registers and its interrupts. Code that is assembled and the machine
//! that runs it agree here.
//!
//! Nothing is meant to look like a device of QEMU: a recorder is to count, and not to guess.

/// Bytes of guest memory, from address 0.
pub(crate) const MEMORY_BYTES: usize = 0x6_0000;
/// Most vCPUs: each has a page.
pub(crate) const MAX_VCPUS: u32 = 64;
/// Where the page of the first vCPU is.
const FIRST_PAGE: u32 = 0x1_0000;
/// Bytes of a vCPU's page: its code, its data, and its stack, which grows down from the end.
const PAGE_BYTES: u32 = 0x1000;
/// In a page, where code ends and data begins.
pub(crate) const DATA: u16 = 0xc00;
/// In a page, where the stack begins.
#[cfg(target_arch = "x86_64")]
pub(crate) const STACK: u16 = 0xff0;
/// In a page, 32 bits each: interrupts that the guest took, by [`IrqVector`].
pub(crate) const TAKEN: u16 = DATA;
/// In a page, 32 bits: whether the guest asks user space to hold it before its next HLT.
pub(crate) const HOLD: u16 = DATA + 0x10;

/// Returns the address of a vCPU's page.
pub(crate) const fn page(vcpu: u32) -> u32 {
    FIRST_PAGE + vcpu * PAGE_BYTES
}

/// Where an interrupt comes from. Each has a vector and a count of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IrqVector {
    /// A message (MSI), from an irqfd.
    Message,
    /// The local APIC's timer.
    Timer,
    /// A pin of the IOAPIC, from an irqfd.
    Pin,
}

impl IrqVector {
    /// All of them.
    pub(crate) const ALL: [IrqVector; 3] = [IrqVector::Message, IrqVector::Timer, IrqVector::Pin];

    /// Returns its number on x86: above 31, which are the processor's own.
    #[cfg(any(target_arch = "x86_64", test))]
    pub(crate) const fn number(self) -> u8 {
        0x40 + self as u8
    }

    /// Returns where in a vCPU's page it is counted.
    pub(crate) const fn counter(self) -> u16 {
        TAKEN + 4 * self as u16
    }

    /// Returns the word for it in results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            IrqVector::Message => "msi",
            IrqVector::Timer => "timer",
            IrqVector::Pin => "pin",
        }
    }
}

/// Ports of x86.
#[cfg(any(target_arch = "x86_64", test))]
pub(crate) mod port {
    /// Written by `--pio-out`.
    pub(crate) const OUT: u16 = 0xc000;
    /// Read by `--pio-in`.
    pub(crate) const IN: u16 = 0xc004;
    /// Written at the end of each round.
    pub(crate) const ROUND: u16 = 0xc008;
    /// Written by a guest that is to be held in user space.
    pub(crate) const HOLD: u16 = 0xc00c;
    /// An ioeventfd.
    pub(crate) const IOEVENTFD: u16 = 0xc010;

    /// Returns the port by which a vCPU asks its device for a message: an ioeventfd.
    pub(crate) const fn message(vcpu: u32) -> u16 {
        0xc100 + 4 * vcpu as u16
    }

    /// Returns the port by which a vCPU asks its device for a pin's interrupt: an ioeventfd.
    pub(crate) const fn pin(vcpu: u32) -> u16 {
        0xc200 + 4 * vcpu as u16
    }
}

/// Registers in memory, from an address that differs by architecture.
pub(crate) mod mmio {
    /// Where they begin on x86: below 1 MiB, where real mode reaches.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const BASE_X86: u32 = 0xd_0000;
    /// Where they begin on aarch64.
    #[cfg(any(target_arch = "aarch64", test))]
    pub(crate) const BASE_AARCH64: u32 = 0x0a00_0000;
    /// Written by `--mmio-write`.
    pub(crate) const WRITE: u16 = 0;
    /// Read by `--mmio-read`.
    pub(crate) const READ: u16 = 4;
    /// Written at the end of each round, on aarch64.
    #[cfg(any(target_arch = "aarch64", test))]
    pub(crate) const ROUND: u16 = 8;
    /// Written by a guest that woke up and wants its interrupt line low, on aarch64.
    #[cfg(any(target_arch = "aarch64", test))]
    pub(crate) const LOWER: u16 = 12;
    /// An ioeventfd.
    pub(crate) const IOEVENTFD: u16 = 0x1000;

    /// Returns the register by which a vCPU asks its device to be woken, on aarch64: an ioeventfd.
    #[cfg(any(target_arch = "aarch64", test))]
    pub(crate) const fn wake(vcpu: u32) -> u16 {
        0x2000 + 4 * vcpu as u16
    }
}
