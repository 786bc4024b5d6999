//! What guests say whose recordings are walked with their host's.

mod doing;
mod inside;
mod tasks;

pub use doing::Doing as GuestDoing;
pub use inside::{Inside, InsideReport};
pub use tasks::{GuestTask, GuestTasks, GuestTasksReport};
