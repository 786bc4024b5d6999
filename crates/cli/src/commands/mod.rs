//! One file a command.

pub(crate) mod compare;
pub(crate) mod compare_each;
mod console;
pub(crate) mod diagnose;
pub(crate) mod events;
pub(crate) mod exits;
pub(crate) mod facts;
pub(crate) mod info;
pub(crate) mod paths;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod sched;
pub(crate) mod vcpus;

/// The version that JSON documents carry.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
