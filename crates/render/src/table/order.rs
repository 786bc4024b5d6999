//! The order of a table's rows, by any of its columns.

use std::cmp::Ordering;
use std::error::Error;
use std::fmt;

use serde_json::Value;

use super::{Column, Table, Unit};

/// A column that rows were to be sorted by, and that their table does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownColumn {
    /// How it was called.
    pub name: String,
    /// What the table's columns are called.
    pub columns: Vec<String>,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.iter().map(String::as_str);
        let near = words::did_you_mean(&self.name, columns);
        let all = self.columns.join(", ");
        write!(
            f,
            "there is no column '{}'{near}; there are {all}",
            self.name
        )
    }
}

impl Error for UnknownColumn {}

/// Returns which of two values stands first: the larger number, the text that comes first in the alphabet. What is not
/// known comes last.
fn order(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => other.cmp(one),
        _ => match (one.as_u64(), other.as_u64()) {
            (Some(one), Some(other)) => other.cmp(&one),
            _ => {
                let number = |value: &Value| value.as_f64().unwrap_or(f64::NEG_INFINITY);
                number(other).total_cmp(&number(one))
            }
        },
    }
}

/// Returns which of two numbers that name something stands first: the smaller one.
fn order_of_names(one: &Value, other: &Value) -> Ordering {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => order(one, other),
    }
}

impl<R> Column<'_, R> {
    /// Returns whether somebody means it: by what a terminal shows above it, by its name, or by that without its unit.
    /// The last two ways are not asked for a column that only a terminal has.
    fn is_called(&self, name: &str, way: NameWay) -> bool {
        match way {
            NameWay::Heading => {
                let heading = self.heading.as_ref();
                heading.is_some_and(|heading| heading.text.eq_ignore_ascii_case(name))
            }
            NameWay::Name => self.name.eq_ignore_ascii_case(name),
            NameWay::WithoutUnit => {
                let bare = self.name.strip_suffix("_ns");
                bare.is_some_and(|bare| bare.eq_ignore_ascii_case(name))
            }
        }
    }

    /// Returns what people call it who want it: the heading that a terminal shows, or else its name.
    fn called(&self) -> String {
        let heading = self
            .heading
            .as_ref()
            .map(|heading| heading.text.to_lowercase());
        let heading = heading.filter(|text| !text.is_empty() && !text.contains(' '));
        heading.unwrap_or_else(|| self.name.to_string())
    }
}

/// How somebody may call a column.
#[derive(Debug, Clone, Copy)]
enum NameWay {
    Heading,
    Name,
    WithoutUnit,
}

impl<'t, R> Table<'t, R> {
    /// Returns the column that somebody means. What a terminal shows above one goes before names.
    fn called(&self, name: &str) -> Result<&Column<'t, R>, UnknownColumn> {
        let ways = [NameWay::Heading, NameWay::Name, NameWay::WithoutUnit];
        let of = |way| {
            self.columns
                .iter()
                .find(|column| column.is_called(name, way))
        };
        ways.into_iter().find_map(of).ok_or_else(|| {
            let mut columns: Vec<String> = Vec::new();
            for column in self
                .columns
                .iter()
                .filter(|column| column.unit != Unit::Nested)
            {
                let called = column.called();
                if !columns.contains(&called) {
                    columns.push(called);
                }
            }
            UnknownColumn {
                name: name.to_owned(),
                columns,
            }
        })
    }

    /// Returns the places of rows in the order of a column: largest first, names in alphabetical order, numbers that
    /// name something from the smallest on, and what is not known last. Equal ones stay as they are.
    pub(crate) fn order(&self, rows: &[R], column: &str) -> Result<Vec<usize>, UnknownColumn> {
        let column = self.called(column)?;
        let (unit, values) = (column.unit, rows.iter().map(|row| column.value(row)));
        let keys: Vec<Value> = values.map(Option::unwrap_or_default).collect();
        let mut places: Vec<usize> = (0..rows.len()).collect();
        places.sort_by(|one, other| match unit {
            Unit::Number | Unit::Vector => order_of_names(&keys[*one], &keys[*other]),
            _ => order(&keys[*one], &keys[*other]),
        });
        Ok(places)
    }
}

/// Puts rows into an order of theirs.
pub(crate) fn reorder<T>(rows: &mut Vec<T>, places: &[usize]) {
    let mut taken: Vec<Option<T>> = std::mem::take(rows).into_iter().map(Some).collect();
    rows.extend(
        places
            .iter()
            .filter_map(|place| taken.get_mut(*place)?.take()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<'static, (Option<u64>, &'static str, i32)> {
        Table::new()
            .column("total_ns", Unit::Nanoseconds, |r: &(Option<u64>, _, _)| r.0)
            .heading("time", 9)
            .column("comm", Unit::Name, |r| r.1)
            .column("tid", Unit::Number, |r| r.2)
    }

    #[test]
    fn rows_stand_in_the_order_of_a_column() {
        let rows = [
            (Some(3), "b", 10),
            (None, "a", 9),
            (Some(700), "c", -1),
            (Some(3), "a", 11),
        ];
        let places = |column| table().order(&rows, column).expect("a column");
        assert_eq!(places("total_ns"), [2, 0, 3, 1]);
        // By what a terminal calls it, and without the unit.
        assert_eq!(places("time"), places("total_ns"));
        assert_eq!(places("total"), places("total_ns"));
        assert_eq!(places("comm"), [1, 3, 0, 2]);
        assert_eq!(places("tid"), [2, 1, 0, 3]);
        let mut moved = rows.to_vec();
        reorder(&mut moved, &places("time"));
        assert_eq!(moved[0], rows[2]);
        assert_eq!(moved.len(), rows.len());
    }

    #[test]
    fn a_column_that_is_not_there_is_answered_with_those_that_are() {
        let error = table().order(&[], "tme").expect_err("no column");
        let said = error.to_string();
        assert!(said.contains("no column 'tme'"), "{said}");
        assert!(said.contains("time") && said.contains("comm"), "{said}");
    }
}
