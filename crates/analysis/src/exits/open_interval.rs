//! What is timed, from its beginning on.

use model::Times;

/// An interval that has begun.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OpenInterval {
    /// 0 when none has: perf takes 0 for none too.
    pub(super) time: u64,
    pub(super) row: Option<u32>,
    /// What the vCPU had done until then.
    pub(super) times: Times,
}

impl OpenInterval {
    /// Nothing has begun. What stands in the times does not matter then.
    #[inline]
    pub(super) fn is_over(&mut self) {
        self.time = 0;
        self.row = None;
    }
}
