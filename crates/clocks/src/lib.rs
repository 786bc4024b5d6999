/*!
How a guest's clock reads on its host's, by causality.

A guest's event happens while its vCPU is in the guest: between a `kvm_entry` of the vCPU's thread and the `kvm_exit`
behind it, as the host's recording has them ([`GuestWindow`]). Each event so allows some offsets between the two clocks
and forbids others, and the offset that most events allow is the one there is ([`fit`]). Nothing else is believed, least
of all what a recorder measured over a network: on arm64 pairs of trace-cmd such measurements differ by 100 to 250 us
from each other within three seconds, where one constant puts every event into its window.
*/

mod density;
mod fit;
mod plateau;
mod search;

pub use density::{Density, LikelyOffsets, likely};
pub use fit::{Fit, fit};
pub use plateau::{Plateau, plateau};
pub use search::search;

/// A time in which a vCPU was in its guest, on the host's clock in nanoseconds: from its `kvm_entry` to its `kvm_exit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestWindow {
    /// When it entered.
    pub entry: u64,
    /// When it left; at least `entry`.
    pub exit: u64,
}

/// A vCPU as both sides saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VcpuWindows<'a> {
    /// When the host had it in its guest, in order; none overlaps another.
    pub windows: &'a [GuestWindow],
    /// When the guest had events on it, on the guest's clock in nanoseconds, in order.
    pub events: &'a [u64],
}
