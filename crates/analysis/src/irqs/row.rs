//! What is counted of one interrupt of a vCPU.

use crate::guests::IrqGuest;

/// One vector of a vCPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IrqRow {
    /// The VM, as a place in the list of them ([`model::Machine::vms`]).
    pub vm: Option<usize>,
    /// Number of the vCPU, where the thread is known to be one.
    pub vcpu: Option<u32>,
    /// Thread of the vCPU; [`event::NONE`] of an interrupt that vCPUs share.
    pub tid: i32,
    /// The vector; `None` for handlers of a guest for which no injection was seen.
    pub vector: Option<u8>,
    /// Of arm64 the number of the interrupt, and how often its line was raised and lowered.
    pub gic: Option<GicIrq>,
    /// Interrupts that its local APIC accepted; those that came while the same vector was waiting are among them.
    /// `None` where it is not known of all of that vector whose vCPU of that number they were for, or where none are
    /// recorded.
    pub accepted: Option<u64>,
    /// Those of them that were posted for the processor to take (APICv, AVIC); `None` where that is not recorded.
    pub posted: Option<u64>,
    /// Interrupts that KVM put into the guest; `None` where that is not recorded.
    pub injected: Option<u64>,
    /// Injections that an exit undid and that KVM repeated; not among [`IrqRow::injected`].
    pub repeated: Option<u64>,
    /// What the guest did with them, where its recording is there.
    pub guest: Option<IrqGuest>,
}

/// The row in which an event was counted: vector or INTID, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IrqPlace {
    /// The vCPU's thread; [`event::NONE`] of an interrupt that vCPUs share.
    pub tid: i32,
    /// The VM, as a place in the list of them, of an interrupt of arm64.
    pub vm: Option<usize>,
    /// The vector, or the INTID.
    pub number: u32,
}

/// An interrupt of arm64's interrupt controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GicIrq {
    /// Its INTID: 16 to 31 are a vCPU's own (27 its virtual timer), 32 to 1019 are shared by all of a VM.
    pub intid: u32,
    /// How often its line was raised. One that is level-triggered and still pending may be raised again.
    pub raised: u64,
    /// How often it was lowered.
    pub lowered: u64,
}

/// How many interrupts, and how many that are special: posted, injected once more, lowered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IrqCounts {
    pub count: u64,
    pub special: u64,
}

impl IrqCounts {
    /// Counts one more, which may be special.
    pub(super) fn add_one(&mut self, is_special: bool) {
        match is_special {
            true => self.special += 1,
            false => self.count += 1,
        }
    }

    pub(super) fn add(&mut self, other: IrqCounts) {
        self.count += other.count;
        self.special += other.special;
    }
}
