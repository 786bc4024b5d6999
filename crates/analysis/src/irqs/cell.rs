//! Single interrupts of the table, while the walk goes on.

use model::Vm;

use super::gic::GicSender;
use super::row::IrqPlace;
use super::{IrqSender, Irqs, target};

/// What of an interrupt is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IrqColumn {
    /// A local APIC took it.
    Accepted,
    /// The processor takes it by itself.
    Posted,
    /// KVM put it into the guest.
    Injected,
    /// KVM did so once more.
    Repeated,
    /// Its line was raised (arm64).
    Raised,
    /// Its line was lowered.
    Lowered,
}

/// Which row an event was counted in, as far as the event says it.
#[derive(Debug, Clone, Copy)]
pub(super) enum CountedIrq {
    /// Accepted, or posted.
    Brought(IrqSender),
    /// Injected into the guest of a thread, by vector.
    Injected(i32, u8),
    /// Raised or lowered.
    Line(GicSender),
}

impl Irqs {
    /// Returns in which row and column an event was counted since this was asked last; `None` where none was, or it is
    /// not known whose. `vms` are those of the whole recording.
    pub fn take_counted(&mut self, vms: &[Vm]) -> Option<(IrqColumn, IrqPlace)> {
        let (column, counted) = self.counted.take()?;
        let place = match counted {
            CountedIrq::Brought(sender) => IrqPlace {
                tid: target(vms, &sender)?,
                vm: None,
                number: sender.vector.into(),
            },
            CountedIrq::Injected(tid, vector) => IrqPlace {
                tid,
                vm: None,
                number: vector.into(),
            },
            CountedIrq::Line(sender) => sender.place(vms)?,
        };
        Some((column, place))
    }
}
