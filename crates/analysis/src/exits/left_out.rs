//! Accesses that are in no row of their table, since they have no time: as with perf, each table times them from the
//! access to the entry behind it (reads of memory from the exit to the value), and one that another one follows before
//! that has none.

use doubts::{DoubtKind, Doubts};
use event::{Data, Kind};

use super::{ExitTable, Exits, IOPORT, MMIO, MSR};
use crate::analysis::{AccountScope, AccountedEvents, EventAccount};

/// The events of each table of accesses: what they are called, and their kinds.
const TABLES: [(usize, &str, &[Kind]); 3] = [
    (IOPORT, "kvm_pio", &[Kind::KvmPio]),
    (MMIO, "kvm_mmio", &[Kind::KvmMmio]),
    (
        MSR,
        "kvm_msr, kvm_sys_access",
        &[Kind::KvmMsr, Kind::KvmSysAccess],
    ),
];

/// How many events of accesses a walk has shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AccessTally {
    /// By table; of reads of memory the event with the value counts.
    seen: [u64; 4],
    /// Events of reads of memory whose value was not there yet: another event follows.
    unsatisfied: u64,
}

impl AccessTally {
    /// An access was seen.
    #[inline]
    pub(super) fn saw(&mut self, table: usize) {
        if let Some(seen) = self.seen.get_mut(table) {
            *seen += 1;
        }
    }

    /// A read of memory whose value is not there yet.
    #[inline]
    pub(super) fn saw_unsatisfied(&mut self) {
        self.unsatisfied += 1;
    }
}

impl Exits {
    /// An event was seen of which it is not known who made it, or that has not the fields it needs.
    #[cold]
    pub(super) fn saw_unusable(&mut self, kind: Kind, data: &Data) {
        let table = match (kind, data) {
            (Kind::KvmExit, Data::Other) => {
                self.untimed.unreadable += 1;
                return;
            }
            (_, Data::KvmExit(exit)) => {
                self.untimed.without_thread += u64::from(!exit.inner);
                return;
            }
            (Kind::KvmPio, _) => IOPORT,
            (Kind::KvmMsr | Kind::KvmSysAccess, _) => MSR,
            (Kind::KvmMmio, _) => MMIO,
            _ => return,
        };
        if self.tables[table].wanted {
            self.tally.saw(table);
        }
    }

    /// Returns how many accesses of a table are in no row, and of how many.
    fn left_out(&self, table: usize) -> (u64, u64) {
        let seen = self.tally.seen.get(table).copied().unwrap_or(0);
        let rows = self.tables[table].rows.iter();
        let shown = rows.map(|row| {
            let alone = match self.is_shown_alone(ExitTable::ALL[table], row) {
                true => row.alone,
                false => 0,
            };
            row.stats.count().saturating_add(alone)
        });
        let shown = shown.fold(0, u64::saturating_add);
        (seen.saturating_sub(shown), seen)
    }

    /// Raises that accesses are in no row.
    pub(super) fn raise_left_out(&self, doubts: &mut Doubts) {
        let tables = TABLES
            .iter()
            .filter(|(table, ..)| self.tables[*table].wanted);
        let left_out: Vec<String> = tables
            .filter_map(|(table, name, _)| match self.left_out(*table) {
                (0, _) => None,
                (left_out, all) => Some(format!("{left_out} of {all} {name}")),
            })
            .collect();
        if !left_out.is_empty() {
            doubts.raise(DoubtKind::AccessesLeftOut {
                accesses: words::list(&left_out),
            });
        }
    }

    /// Returns how many accesses are accounted for: in rows, or as left out.
    pub(super) fn count_accesses(&self) -> impl Iterator<Item = EventAccount> {
        let tables = TABLES
            .iter()
            .filter(|(table, ..)| self.tables[*table].wanted);
        tables.map(|(table, name, kinds)| {
            let unsatisfied = match *table {
                MMIO => self.tally.unsatisfied,
                _ => 0,
            };
            EventAccount {
                which: AccountedEvents::Kinds(kinds),
                name,
                of: AccountScope::Chosen,
                events: self.tally.seen[*table].saturating_add(unsatisfied),
            }
        })
    }
}
