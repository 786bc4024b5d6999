//! One file a command.

pub mod compare;
pub mod compare_each;
mod console;
pub mod diagnose;
pub mod events;
pub mod exits;
pub mod facts;
pub mod info;
pub mod paths;
pub mod report;
pub mod rules;
pub mod sched;
pub mod vcpus;

/// The version that JSON documents carry.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
