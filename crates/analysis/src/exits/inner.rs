//! What an exit really was, where an event behind it says so.

use event::{Event, ExitReason, Isa};
use model::ThreadHandle;

use super::rows::Key;
use super::{Convention, Exits, VMEXIT};

impl Exits {
    /// Takes what the exit under way really was, as far as it is known of the one before. Returns `false` where none is
    /// under way: then it is the exit.
    pub(super) fn inner(
        &mut self,
        event: &Event<'_>,
        thread: ThreadHandle,
        reason: ExitReason,
    ) -> bool {
        let slot = self.slot(thread);
        // perf prints what an SEV-ES guest asks for as the exit that it makes.
        let as_perf = self.options.convention == Convention::Perf && reason.isa == Isa::Svm;
        if as_perf || !self.vcpus[slot].known && self.counts_from_entry(reason.isa) {
            return true;
        }
        if self.vcpus[slot].open.is_none() {
            return false;
        }
        let group = self.groups.of(event.tid);
        let row = self.tables[VMEXIT]
            .wanted
            .then(|| self.tables[VMEXIT].row(Key::Reason(reason), group));
        let state = &mut self.vcpus[slot];
        state.open = Some(reason);
        state.exit.row = row;
        true
    }
}
