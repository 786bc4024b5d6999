//! Tables as CSV: cells are written where they stand, so that rows of single things cost little.

use std::borrow::Borrow;

use super::{Column, Table, Unit};
use crate::ClockUnit;
use crate::csv;

impl<R> Column<'_, R> {
    fn put_csv(&self, row: &R, out: &mut String) {
        if let Some(form) = &self.csv_form {
            csv::field(out, &form(row));
        } else if self.known.is_none_or(|known| known(row)) {
            self.value
                .put(row, &mut |cell| cell.put_csv(self.unit, out));
        }
    }
}

impl<'t, R> Table<'t, R> {
    fn csv_columns(&self) -> Vec<&Column<'t, R>> {
        let moved = self.columns.iter().any(|column| column.csv_after.is_some());
        let mut columns = match moved {
            true => self.ordered(|column| column.csv_after),
            false => self.columns.iter().collect(),
        };
        columns.retain(|column| column.csv);
        columns
    }

    /// Returns the names of CSV's columns as a line.
    fn csv_head(&self) -> String {
        let columns = self.csv_columns().into_iter();
        let names = columns.flat_map(|column| {
            let ticks = self.ticks_name(column);
            std::iter::once(column.name.to_string()).chain(ticks)
        });
        let mut out = String::new();
        csv::row(&mut out, names);
        out
    }

    /// Returns what the column is called that has a column's times where they are ticks.
    fn ticks_name(&self, column: &Column<'t, R>) -> Option<String> {
        let clock = self.clock;
        (column.unit == Unit::Nanoseconds).then(|| clock.ticks_name(&column.name))?
    }

    /// Returns rows as CSV, the names of columns first.
    pub(crate) fn csv(&self, rows: impl IntoIterator<Item = impl Borrow<R>>) -> String {
        let mut out = self.csv_head();
        let columns = self.csv_columns();
        let places: Vec<CellPlace<'_, 't, R>> = columns
            .into_iter()
            .map(|column| (column, self.ticks_name(column).is_some()))
            .collect();
        for row in rows {
            let row = row.borrow();
            let clock = self.clock_of.map_or(self.clock, |clock| clock(row));
            put_row(places.iter().copied(), row, clock, &mut out);
        }
        out
    }

    /// Returns what makes lines of CSV of single rows.
    pub(crate) fn csv_rows(self) -> CsvRows<'t, R> {
        let chosen = self.csv_columns();
        let number = |one: &Column<'t, R>| {
            let mut all = self.columns.iter();
            all.position(|column| std::ptr::eq(column, one))
        };
        let places = chosen.into_iter().filter_map(|column| {
            let ticks = self.ticks_name(column).is_some();
            Some((number(column)?, ticks))
        });
        CsvRows {
            places: places.collect(),
            head: self.csv_head(),
            table: self,
        }
    }
}

/// A column, and whether one of ticks stands behind it.
type CellPlace<'p, 't, R> = (&'p Column<'t, R>, bool);

fn put_row<'p, 't: 'p, R: 'p>(
    places: impl Iterator<Item = CellPlace<'p, 't, R>>,
    row: &R,
    clock: ClockUnit,
    out: &mut String,
) {
    for (position, (column, has_ticks)) in places.enumerate() {
        if position > 0 {
            out.push(',');
        }
        if !has_ticks {
            column.put_csv(row, out);
            continue;
        }
        if clock == ClockUnit::Nanoseconds {
            column.put_csv(row, out);
        }
        out.push(',');
        if clock == ClockUnit::Ticks {
            column.put_csv(row, out);
        }
    }
    out.push('\n');
}

/// Lines of CSV, one after the other.
#[derive(Debug)]
pub(crate) struct CsvRows<'t, R> {
    table: Table<'t, R>,
    /// Which columns, in order, and whether one of ticks stands behind each.
    places: Vec<(usize, bool)>,
    head: String,
}

impl<'t, R> CsvRows<'t, R> {
    /// Returns the table that they are of.
    pub(crate) fn table(&self) -> &Table<'t, R> {
        &self.table
    }

    /// Returns the names of the columns as a line.
    pub(crate) fn head(&self) -> String {
        self.head.clone()
    }

    /// Appends a row as a line.
    pub(crate) fn put(&self, row: &R, out: &mut String) {
        let table = &self.table;
        let clock = table.clock_of.map_or(table.clock, |clock| clock(row));
        let places = self.places.iter();
        let columns = places.filter_map(|(at, ticks)| Some((table.columns.get(*at)?, *ticks)));
        put_row(columns, row, clock, out);
    }

    /// Returns a row as a line.
    pub(crate) fn line(&self, row: &R) -> String {
        let mut out = String::new();
        self.put(row, &mut out);
        out
    }
}
