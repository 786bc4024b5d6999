//! What guests say whose recordings are walked with their host's.

mod doing;
mod follow;
mod inside;
mod irqs;
mod tasks;

pub use doing::{Did as GuestDid, DidKind as GuestDidKind, Doing as GuestDoing, Who as GuestWho};
pub(crate) use follow::Follow;
pub use inside::{Inside, InsideReport};
pub use irqs::{GuestIrqs, IrqGuest, IrqHandler};
pub use tasks::{GuestHeld, GuestPart, GuestTask, GuestTasks, GuestTasksReport};
