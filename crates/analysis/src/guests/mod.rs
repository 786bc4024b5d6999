//! What guests say whose recordings are walked with their host's.

mod doing;
mod follow;
mod inside;
mod irqs;
mod tasks;

pub use doing::{ContextKind, ContextName, GuestContext, NamedContext};
pub(crate) use follow::GuestCpus;
pub use inside::{InsideEvents, InsideReport};
pub use irqs::{GuestIrqs, IrqGuest, IrqHandler};
pub use tasks::{GuestHeld, GuestPart, GuestTask, GuestTasks, GuestTasksReport};
