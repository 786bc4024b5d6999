//! Single exits, for whoever wants each.

use event::ExitReason;
use model::Times;

/// An exit that was timed: the table of exits by reason has counted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleExit {
    /// The vCPU's thread.
    pub tid: i32,
    /// The CPU on which it entered the guest again; [`event::NONE`] when not recorded.
    pub cpu: i32,
    /// When it left the guest.
    pub start: u64,
    /// When it entered it again.
    pub end: u64,
    /// Why it left.
    pub reason: ExitReason,
    /// What the vCPU did in that time; all 0 where that was not asked for.
    pub times: Times,
    /// Whether it was in the VMM.
    pub user: bool,
}

/// Exits that have ended, where somebody wants them.
#[derive(Debug, Default)]
pub(super) struct Singles {
    wanted: bool,
    ended: Vec<SingleExit>,
}

impl Singles {
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.wanted
    }

    pub(super) fn push(&mut self, exit: SingleExit) {
        self.ended.push(exit);
    }

    pub(super) fn swap(&mut self, empty: &mut Vec<SingleExit>) {
        std::mem::swap(&mut self.ended, empty);
    }
}
