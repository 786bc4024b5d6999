//! vCPUs that are not kept apart any more.

use event::index_of;
use model::RetiredThreads;

use super::Exits;

impl Exits {
    /// Forgets vCPUs that are not kept apart any more; their rows are added to those of the others.
    pub(super) fn fold(&mut self, retired: &RetiredThreads) {
        for slot in retired
            .handles()
            .filter_map(|thread| self.by_thread.remove(thread))
        {
            if let Some(state) = self.vcpus.get_mut(index_of(slot)) {
                let state = std::mem::take(state);
                if let Some(reason) = state.open {
                    *self.without_entry.entry(reason).or_insert(0) += 1;
                }
                self.free.push(slot);
            }
        }
        if self.groups.are_threads() {
            let past = |group: i32| retired.has_tid(group);
            let tables = self.tables.iter_mut().chain(self.of_exits.tables_mut());
            tables.for_each(|rows| rows.fold(past));
        }
        self.groups.retire(retired);
    }
}
