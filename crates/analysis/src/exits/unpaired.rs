//! Exits that have no time.

use event::ExitReason;

/// Exits that were recorded and could not be timed, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnpairedExits {
    /// Before the first entry of their vCPU that was recorded.
    pub before_first_entry: Vec<(ExitReason, u64)>,
    /// No entry followed: the recording ended, or the entry was lost.
    pub without_entry: Vec<(ExitReason, u64)>,
}

/// Exits of which there is no time for another reason than a missing entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UntimedExits {
    /// The recording does not say which thread made them.
    pub without_thread: u64,
    /// Their events have not the fields that say why they were.
    pub unreadable: u64,
    /// The entry that followed is earlier, as the clock went back.
    pub clock_back: u64,
    /// perf's convention on arm64 begins with an entry, and none came before.
    pub first: u64,
    /// Of all exits, those that only an inner event shows.
    pub inner: u64,
}
