//! What a column has of a row: handed out once, for JSON, CSV and stores alike. The function of a column is compiled
//! once then, and not for each of them.

use std::borrow::Cow;
use std::fmt::Write;
use std::marker::PhantomData;

use serde_json::{Map, Value};

use super::Unit;
use crate::csv;

/// A value of a row.
#[derive(Debug)]
pub enum TableCell<'c> {
    /// Not known, or not of this row.
    Null,
    /// A whole number that is not below zero.
    Unsigned(u64),
    /// A whole number.
    Signed(i64),
    /// Any number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A text.
    Text(&'c str),
    /// A list or an object.
    Nested(Value),
}

/// Takes a value.
pub type CellTaker<'t> = &'t mut dyn FnMut(TableCell<'_>);

impl TableCell<'_> {
    /// Returns it as a value of JSON.
    pub(crate) fn into_value(self) -> Value {
        match self {
            TableCell::Null => Value::Null,
            TableCell::Unsigned(number) => number.into(),
            TableCell::Signed(number) => number.into(),
            TableCell::Number(number) => number.into(),
            TableCell::Flag(flag) => flag.into(),
            TableCell::Text(text) => text.into(),
            TableCell::Nested(value) => value,
        }
    }

    /// Appends it as a cell of CSV.
    pub(crate) fn put_csv(self, unit: Unit, out: &mut String) {
        match self {
            TableCell::Null => {}
            TableCell::Unsigned(number) if unit == Unit::Address => {
                let _ = write!(out, "{number:#x}");
            }
            TableCell::Unsigned(number) => out.push_str(itoa::Buffer::new().format(number)),
            TableCell::Signed(number) => out.push_str(itoa::Buffer::new().format(number)),
            TableCell::Number(number) => csv::field(out, &number.to_string()),
            TableCell::Flag(flag) => out.push_str(if flag { "true" } else { "false" }),
            TableCell::Text(text) => csv::field(out, text),
            TableCell::Nested(value) => csv::field(out, &value.to_string()),
        }
    }
}

/// What a column has of a row.
pub(super) trait ColumnCell<R> {
    /// Hands it out, once.
    fn put(&self, row: &R, take: CellTaker<'_>);
}

/// What a function makes of a row.
pub(super) struct ComputedCell<F, V>(F, PhantomData<fn() -> V>);

impl<F, V> ComputedCell<F, V> {
    pub(super) fn new(value: F) -> ComputedCell<F, V> {
        ComputedCell(value, PhantomData)
    }
}

impl<R, V: CellSource, F: Fn(&R) -> V> ColumnCell<R> for ComputedCell<F, V> {
    fn put(&self, row: &R, take: CellTaker<'_>) {
        (self.0)(row).put(take);
    }
}

/// A text of the row itself.
pub(super) struct BorrowedText<F>(pub(super) F);

impl<R, F: for<'r> Fn(&'r R) -> Option<&'r str>> ColumnCell<R> for BorrowedText<F> {
    fn put(&self, row: &R, take: CellTaker<'_>) {
        take((self.0)(row).map_or(TableCell::Null, TableCell::Text));
    }
}

/// A value that can be a cell.
pub(crate) trait CellSource: Into<Value> {
    /// Hands it out.
    fn put(self, take: CellTaker<'_>) {
        put_value(self.into(), take);
    }
}

fn put_value(value: Value, take: CellTaker<'_>) {
    match value {
        Value::Null => take(TableCell::Null),
        Value::Bool(flag) => take(TableCell::Flag(flag)),
        Value::String(text) => take(TableCell::Text(&text)),
        Value::Number(number) => {
            let cell = match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => TableCell::Unsigned(number),
                (None, Some(number), _) => TableCell::Signed(number),
                (None, None, number) => number.map_or(TableCell::Null, TableCell::Number),
            };
            take(cell);
        }
        Value::Array(_) | Value::Object(_) => take(TableCell::Nested(value)),
    }
}

macro_rules! unsigned {
    ($($ty:ty),*) => {
        $(impl CellSource for $ty {
            fn put(self, take: CellTaker<'_>) {
                take(TableCell::Unsigned(self.into()));
            }
        })*
    };
}

unsigned!(u8, u16, u32, u64);

macro_rules! signed {
    ($($ty:ty),*) => {
        $(impl CellSource for $ty {
            fn put(self, take: CellTaker<'_>) {
                // What is not below zero is as one without a sign: an address among them.
                let number = i64::from(self);
                take(u64::try_from(number).map_or(TableCell::Signed(number), TableCell::Unsigned));
            }
        })*
    };
}

signed!(i8, i16, i32, i64);

impl CellSource for usize {
    fn put(self, take: CellTaker<'_>) {
        take(TableCell::Unsigned(self as u64));
    }
}

impl CellSource for isize {}
impl CellSource for f32 {}
impl CellSource for f64 {}
impl CellSource for Value {}
impl CellSource for Map<String, Value> {}
impl<'l, T> CellSource for &'l [T] where &'l [T]: Into<Value> {}
impl<T> CellSource for Vec<T> where Vec<T>: Into<Value> {}

impl CellSource for bool {
    fn put(self, take: CellTaker<'_>) {
        take(TableCell::Flag(self));
    }
}

impl CellSource for &str {
    fn put(self, take: CellTaker<'_>) {
        take(TableCell::Text(self));
    }
}

impl CellSource for String {
    fn put(self, take: CellTaker<'_>) {
        take(TableCell::Text(&self));
    }
}

impl CellSource for Cow<'_, str> {
    fn put(self, take: CellTaker<'_>) {
        take(TableCell::Text(&self));
    }
}

impl<T: CellSource> CellSource for Option<T> {
    fn put(self, take: CellTaker<'_>) {
        match self {
            Some(value) => value.put(take),
            None => take(TableCell::Null),
        }
    }
}
