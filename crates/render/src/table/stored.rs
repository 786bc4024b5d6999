//! Tables as typed columns, as a store of many recordings keeps them.
//!
//! A column's unit says its type and whether it is private, so that no list says it once more. What only terminals show
//! and what is nested is not stored.

use std::borrow::Cow;

use super::cell::RowCell;
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

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StoredCell<'c> {
    /// Not known, or not of this row.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any number.
    Double(f64),
    /// True or false.
    Flag(bool),
    /// A text.
    Text(&'c str),
}

impl<'c> StoredCell<'c> {
    /// Returns a value as a store keeps it: null where 64 bits with a sign do not hold it, and of what is nested.
    fn of(cell: &RowCell<'c>) -> StoredCell<'c> {
        match cell {
            RowCell::Unsigned(number) => {
                i64::try_from(*number).map_or(StoredCell::Null, StoredCell::Integer)
            }
            RowCell::Signed(number) => StoredCell::Integer(*number),
            RowCell::Number(number) => StoredCell::Double(*number),
            RowCell::Flag(flag) => StoredCell::Flag(*flag),
            RowCell::Text(text) => StoredCell::Text(text),
            RowCell::Null | RowCell::Nested(_) => StoredCell::Null,
        }
    }
}

/// Takes a row's values, those of all columns in their order.
pub type CellTaker<'t> = &'t mut dyn FnMut(StoredCell<'_>);

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
            return take(StoredCell::Null);
        }
        if let (Unit::Nested, Some(form)) = (self.unit, &self.csv_form) {
            return take(StoredCell::Text(&form(row)));
        }
        let kind = self.unit.stored();
        self.value.put(row, &mut |cell| match (kind, &cell) {
            (Some(StoredType::Text), RowCell::Unsigned(address)) if self.unit == Unit::Address => {
                take(StoredCell::Text(&format!("{address:#x}")));
            }
            (Some(StoredType::Text), _) if self.unit == Unit::Address => take(StoredCell::Null),
            // A whole number is a number too.
            (Some(StoredType::Double), RowCell::Unsigned(number)) => {
                take(StoredCell::Double(*number as f64));
            }
            (Some(StoredType::Double), RowCell::Signed(number)) => {
                take(StoredCell::Double(*number as f64));
            }
            _ => take(StoredCell::of(&cell)),
        });
    }
}

impl<R> Table<'_, R> {
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

    /// Hands out the values of these columns of a row. Times that are ticks, of which nobody knows how many make a
    /// second, are null.
    pub(crate) fn store(&self, row: &R, take: CellTaker<'_>) {
        let clock = self.clock_of.map_or(self.clock, |clock| clock(row));
        for column in self.columns.iter().filter(|one| one.stored().is_some()) {
            column.put_stored(row, clock, take);
        }
    }

    /// Leaves out a column.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.columns.retain(|column| column.name != name);
        self
    }
}
