//! Tables as typed columns, as a store of many recordings keeps them.
//!
//! A column's unit says its type and whether it is private, so that no list says it once more. What only terminals show
//! and what is nested is not stored.

use std::borrow::{Borrow, Cow};

use super::cell::{CellTaker, TableCell};
use super::{Column, Table, Unit};
use crate::ClockUnit;

/// What the values of a stored column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredType {
    /// 64 bits with a sign.
    Integer,
    /// A number that need not be whole.
    Double,
    /// True or false.
    Flag,
    /// UTF-8.
    Text,
}

/// A column as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredColumn {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What its values are.
    pub kind: StoredType,
    /// Whether it is what somebody called something, and no word of ours or of the kernel.
    pub is_private: bool,
    /// Whether nearly every row has another text.
    pub is_unique: bool,
    /// Its unit, as `docs/columns.md` has it.
    pub unit: &'static str,
}

/// Rows of a table, handed out column by column: what is done with a column is decided once and not for each cell.
pub trait StoredRows {
    /// Returns how many they are.
    fn count(&self) -> usize;

    /// Hands out the values that all of them have of a stored column, by its place among these.
    fn column(&self, place: usize, take: CellTaker<'_>);
}

/// Takes some rows of a table.
pub type RowsTaker<'t> = &'t mut dyn FnMut(&dyn StoredRows);

/// Rows that are held until they are handed out together.
const BATCH: usize = 256;

/// Rows, and the table that says what of them is stored.
struct TableRows<'r, 't, R, B> {
    table: &'r Table<'t, R>,
    rows: &'r [B],
}

impl<R, B: Borrow<R>> StoredRows for TableRows<'_, '_, R, B> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn column(&self, place: usize, take: CellTaker<'_>) {
        let table = self.table;
        let mut stored = table.columns.iter().filter(|one| one.stored().is_some());
        let Some(column) = stored.nth(place) else {
            return;
        };
        for row in self.rows {
            let row = row.borrow();
            let clock = table.clock_of.map_or(table.clock, |clock| clock(row));
            column.put_stored(row, clock, take);
        }
    }
}

impl Unit {
    fn stored(self) -> Option<StoredType> {
        match self {
            Unit::Number | Unit::Count | Unit::Nanoseconds | Unit::Vector => {
                Some(StoredType::Integer)
            }
            Unit::Share | Unit::Value => Some(StoredType::Double),
            Unit::Flag => Some(StoredType::Flag),
            // An address may not fit into 64 bits with a sign: it stands as people write it.
            Unit::Text | Unit::Name | Unit::Address => Some(StoredType::Text),
            Unit::Nested => None,
        }
    }
}

impl<R> Column<'_, R> {
    /// Returns what it is stored as; `None` where it is not.
    fn stored(&self) -> Option<StoredType> {
        if !self.csv && self.json.is_none() {
            return None;
        }
        // What is nested is stored as CSV has it, where it has a form for it.
        let flat = self.csv_form.as_ref().map(|_| StoredType::Text);
        self.unit.stored().or(flat)
    }

    fn put_stored(&self, row: &R, clock: ClockUnit, take: CellTaker<'_>) {
        let counts = self.unit != Unit::Nanoseconds || clock == ClockUnit::Nanoseconds;
        if !counts || self.known.is_some_and(|known| !known(row)) {
            return take(TableCell::Null);
        }
        match (self.unit, &self.csv_form) {
            (Unit::Nested, Some(form)) => take(TableCell::Text(&form(row))),
            (Unit::Address, _) => self.value.put(row, &mut |cell| match cell {
                TableCell::Unsigned(address) => take(TableCell::Text(&format!("{address:#x}"))),
                _ => take(TableCell::Null),
            }),
            _ => self.value.put(row, take),
        }
    }
}

impl<'t, R> Table<'t, R> {
    /// Returns the columns that a store keeps, in their order.
    pub(crate) fn stored_columns(&self) -> Vec<StoredColumn> {
        let stored = self.columns.iter().filter_map(|column| {
            Some(StoredColumn {
                name: column.name.clone(),
                kind: column.stored()?,
                // Of what is nested nobody says what is in it.
                is_private: matches!(column.unit, Unit::Name | Unit::Nested),
                is_unique: column.unique,
                unit: column.unit.described(),
            })
        });
        stored.collect()
    }

    /// Returns rows as they are stored. Times that are ticks, of which nobody knows how many make a second, are null.
    pub(crate) fn stored_rows<'r, B: Borrow<R>>(
        &'r self,
        rows: &'r [B],
    ) -> impl StoredRows + use<'r, 't, R, B> {
        TableRows { table: self, rows }
    }

    /// Hands out rows as they are stored, some at a time.
    pub(crate) fn store<B: Borrow<R>>(
        &self,
        rows: impl IntoIterator<Item = B>,
        take: RowsTaker<'_>,
    ) {
        let mut rows = rows.into_iter();
        loop {
            let batch: Vec<B> = rows.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return;
            }
            take(&self.stored_rows(&batch));
        }
    }

    /// Leaves out a column.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.columns.retain(|column| column.name != name);
        self
    }
}
