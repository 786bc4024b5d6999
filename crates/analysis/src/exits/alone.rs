//! Accesses in a recording that has no exits, or no entries: they are counted, and have no times.

use event::index_of;

use super::rows::{CountedRow, Key};
use super::{Convention, ExitTable, Exits, ExitsReport};

impl ExitsReport {
    /// Returns whether its times are known: those of accesses are not where no exits, or no entries, were recorded.
    pub fn is_timed(&self) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| row.total_ns().is_some())
    }
}

impl Exits {
    /// Returns whether rows have accesses that have no time. perf leaves them out.
    pub(super) fn counts_alone(&self) -> bool {
        self.options.convention != Convention::Perf
    }

    /// Returns whether a table's accesses without a time are all that there is of them: the recording has no entries,
    /// or, for reads of memory, which end with their own event, no exits. Before a vCPU is known they belong to exits
    /// that are not in the recording.
    pub(super) fn shows_alone(&self, table: ExitTable, write: bool) -> bool {
        let reads = table == ExitTable::Mmio && !write && self.isa.is_none();
        self.counts_alone() && (!self.any_known || reads)
    }

    /// Returns whether a row has accesses without a time that are shown.
    pub(super) fn is_shown_alone(&self, table: ExitTable, row: &CountedRow) -> bool {
        let write = matches!(row.key, Key::Access { write: true, .. });
        row.alone > 0 && self.shows_alone(table, write)
    }

    /// Counts an access that has no time so far: of a thread that has shown no entry, or a read without an exit.
    /// perf leaves it out; where the recording has no exits at all it is all there is.
    #[cold]
    pub(super) fn access_alone(&mut self, tid: i32, table: usize, key: Key) {
        let write = matches!(key, Key::Access { write: true, .. });
        if !self.shows_alone(ExitTable::ALL[table], write) {
            return;
        }
        let group = self.groups.of(tid);
        let row = self.tables[table].row(key, group);
        if let Some(row) = self.tables[table].rows.get_mut(index_of(row)) {
            row.alone = row.alone.saturating_add(1);
        }
    }
}
