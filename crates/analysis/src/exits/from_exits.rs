//! Ports and addresses that the exits themselves have, where nothing else records the accesses.
//!
//! The processor says of an exit for a port which one it was, and on AMD the address of a nested page fault
//! ([`event::ExitDetail`]). That is counted beside the tables of accesses, and takes their place where the recording
//! has no event of such accesses at all. It differs from what `kvm_pio` and `kvm_mmio` would have shown:
//!
//! - An exit is one access here. `OUTS` with a repeat prefix makes a `kvm_pio` for each port write of one exit, and an
//!   instruction that reads and writes memory two `kvm_mmio`.
//! - The time is that of the whole exit, from `kvm_exit` to `kvm_entry`.
//! - Of an L2 guest the accesses that its own hypervisor handles are counted too.
//! - Of memory only those faults count that KVM knew as emulated (`GuestAccess::of_exit`): the first access to
//!   a page is a fault as any other.

use event::{EventType, Kind, KvmExit, index_of};
use model::{GuestAccess, Times};

use super::rows::{CountedRow, Key, TableRows};
use super::{ExitTable, Exits, ExitsReport, IOPORT, MMIO};

/// Tables that exits can fill, with the event of each.
pub(super) const FILLED: [(usize, ExitTable); 2] =
    [(IOPORT, ExitTable::Ioport), (MMIO, ExitTable::Mmio)];

/// Accesses as the exits have them.
#[derive(Debug, Default)]
pub(super) struct AccessesOfExits {
    /// In the order of [`FILLED`].
    tables: [TableRows; 2],
    /// Whether the recording has events of these accesses, so that the exits are not asked.
    recorded: [bool; 2],
}

/// Returns the place of a table among those that exits can fill.
fn place(table: usize) -> Option<usize> {
    FILLED.iter().position(|(filled, _)| *filled == table)
}

impl AccessesOfExits {
    /// Returns one that counts what is wanted of the tables.
    pub(super) fn of(tables: &[TableRows; 4]) -> AccessesOfExits {
        AccessesOfExits {
            tables: FILLED.map(|(table, _)| TableRows {
                wanted: tables[table].wanted,
                most: tables[table].most,
                ..TableRows::default()
            }),
            recorded: [false; 2],
        }
    }

    /// Takes a kind of events of a recording that says which were recorded.
    pub(super) fn announced(&mut self, ty: &EventType<'_>) {
        if ty.recorded {
            self.saw(ty.kind);
        }
    }

    /// Takes that an event of a kind came.
    #[inline]
    pub(super) fn saw(&mut self, kind: Kind) {
        let at = match kind {
            Kind::KvmPio => 0,
            Kind::KvmMmio => 1,
            _ => return,
        };
        if !self.recorded[at] {
            self.recorded[at] = true;
            self.tables[at] = TableRows::default();
        }
    }

    /// Returns the row of what an exit was for, with its table's place; `None` where the exit does not say it or is not
    /// asked.
    #[inline]
    pub(super) fn row(&mut self, exit: &KvmExit, group: i32) -> Option<(u8, u32)> {
        let (at, address, write) = match GuestAccess::of_exit(exit.detail()?)? {
            GuestAccess::Port { port, write } => (0u8, u64::from(port), write),
            GuestAccess::Mmio { gpa, write } => (1, gpa, write),
            GuestAccess::Msr { .. } => return None,
        };
        let rows = &mut self.tables[usize::from(at)];
        let row = rows
            .wanted
            .then(|| rows.row(Key::Access { address, write }, group))?;
        Some((at, row))
    }

    /// Adds an exit of a row.
    #[inline]
    pub(super) fn add(
        &mut self,
        (at, row): (u8, u32),
        ns: u64,
        times: (&Times, &Times),
        vmm: bool,
    ) {
        let rows = &mut self.tables[usize::from(at)];
        // They go when events of the accesses come.
        if index_of(row) < rows.rows.len() {
            rows.add(row, ns, times, vmm);
            rows.rows[index_of(row)].whole.add(ns);
        }
    }

    /// Returns the rows that take the place of a table's.
    pub(super) fn instead_of(&self, table: usize) -> Option<&TableRows> {
        let at = place(table)?;
        let counted = |row: &CountedRow| row.stats.count() > 0;
        let rows = &self.tables[at];
        (!self.recorded[at] && rows.rows.iter().any(counted)).then_some(rows)
    }

    /// Returns the most rows of a table.
    pub(super) fn most_rows(&self) -> usize {
        let rows = self.tables.iter().map(|table| table.rows.len());
        rows.max().unwrap_or(0)
    }

    /// Returns the tables, to be changed.
    pub(super) fn tables_mut(&mut self) -> impl Iterator<Item = &mut TableRows> {
        self.tables.iter_mut()
    }

    /// Returns the tables, with their names.
    pub(super) fn tables(&self) -> impl Iterator<Item = (ExitTable, &TableRows)> {
        let tables = FILLED.iter().zip(&self.tables);
        tables.map(|((_, table), rows)| (*table, rows))
    }
}

impl Exits {
    /// Returns whether the exits are asked what they were for. perf's tables have no such rows.
    pub(super) fn asks_exits(&self) -> bool {
        self.options.convention == super::Convention::Handling
    }
}

impl ExitsReport {
    /// Returns which event would have recorded the accesses of a table that is made of the exits alone.
    pub fn missing_event(&self) -> Option<&'static str> {
        match self.table {
            _ if !self.from_exits => None,
            ExitTable::Ioport => Some("kvm_pio"),
            ExitTable::Mmio => Some("kvm_mmio"),
            ExitTable::Vmexit | ExitTable::Msr => None,
        }
    }
}
