//! Accesses in a recording that has no exits: they are counted, and have no times.

use event::index_of;

use super::rows::Key;
use super::{Exits, ExitsReport};

impl ExitsReport {
    /// Returns whether its times are known: those of accesses are not where no exits were recorded.
    pub fn is_timed(&self) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| row.total_ns().is_some())
    }
}

impl Exits {
    /// Whether any exit or entry came, and not accesses alone.
    pub(super) fn has_exits(&self) -> bool {
        self.isa.is_some() || self.vcpus.iter().any(|vcpu| vcpu.known)
    }

    /// Counts an access of a thread that has shown neither exit nor entry. perf leaves it out, as its time cannot be
    /// known; where the recording has no exits at all it is all there is.
    #[cold]
    pub(super) fn access_alone(&mut self, tid: i32, table: usize, key: Key) {
        if self.has_exits() {
            return;
        }
        let group = self.groups.of(tid);
        let row = self.tables[table].row(key, group);
        if let Some(row) = self.tables[table].rows.get_mut(index_of(row)) {
            row.alone = row.alone.saturating_add(1);
        }
    }
}
