//! Tasks, and the scheduler's events about them.

mod events;
mod task;

pub use events::{
    SchedMigrateTask, SchedProcessExit, SchedProcessFork, SchedStatRuntime, SchedSwitch,
    SchedWakeup, TaskRename,
};
pub use task::{Leaves, TaskComm, TaskState};
