/*!
Tables. Each is one list of columns, from which its JSON, its CSV and its text come.

A column is one entry: a name, a unit and a value, and where it stands. It stands in JSON and in CSV under its name,
unless it says otherwise; on a terminal and in Markdown in the views that it says ([`Views`]); on a page where it has a
heading there. Documents have columns as they are declared, since scripts rely on that; people see a column behind the
one that it names ([`Table::after`]). No list of names says it once more.
*/

mod cell;
mod csv;
#[cfg(test)]
mod described;
mod document_rows;
mod html;
mod order;
mod shapes;
mod stored;
mod views;

use std::borrow::{Borrow, Cow};
use std::fmt::{self, Write};

use serde_json::{Map, Value};
use words::share;

use crate::schema::{HasShape, Shape};
use crate::{ClockUnit, Layout, clean, markdown};

use cell::{BorrowedText, CellSource, ColumnCell, ComputedCell};
pub use cell::{CellTaker, TableCell};
pub(crate) use csv::CsvRows;
pub(crate) use document_rows::DocumentRows;
pub use order::UnknownColumn;
pub(crate) use order::reorder;
pub use stored::{RowsTaker, StoredColumn, StoredRows, StoredType};
pub(crate) use views::Views;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A word of ours, of KVM or of the kernel, or a sentence.
    Text,
    /// What somebody called a VM, a host, a task or a file, and what a guest printed: private.
    Name,
    /// A number that names something, such as a process.
    Number,
    /// How many.
    Count,
    /// A duration or a point in time.
    Nanoseconds,
    /// A part of a whole, 0 to 1.
    Share,
    /// A value that is no integer, in the unit that the row says.
    Value,
    /// A port, a register or an address in memory.
    Address,
    /// A vector of interrupts: people read it in hexadecimal.
    Vector,
    /// True or false.
    Flag,
    /// A list or an object.
    Nested,
}

/// What stands above a column on a terminal, and how wide it is there.
struct Heading {
    text: Cow<'static, str>,
    width: usize,
    left: bool,
    /// What keeps it apart from the column before it.
    gap: &'static str,
}

type CellText<'t, R> = Box<dyn Fn(&R, Layout) -> String + 't>;
type Form<'t, R> = Box<dyn Fn(&R) -> String + 't>;

struct Column<'t, R> {
    name: Cow<'static, str>,
    unit: Unit,
    /// What the value may be.
    shape: Shape,
    value: Box<dyn ColumnCell<R> + 't>,
    /// Whether the row has the column; all rows have where this is `None`.
    known: Option<fn(&R) -> bool>,
    /// Its place in a row's object, by member, and member of that.
    json: Option<Cow<'static, str>>,
    csv: bool,
    /// How CSV has it, where that is not the value as it is.
    csv_form: Option<Form<'t, R>>,
    /// The column that CSV has before it, where that is another than the one that was declared before it.
    csv_after: Option<&'static str>,
    /// What terminals and Markdown it stands in.
    views: Views,
    /// Whether views leave it out where no row has a value.
    where_known: bool,
    /// Whether nearly every row has another text.
    unique: bool,
    heading: Option<Heading>,
    /// Its heading on a page, where it stands on one.
    page: Option<&'static str>,
    /// The column that people see before it: `""` for none, and `None` for the one that was declared before it.
    after: Option<&'static str>,
    show: Option<CellText<'t, R>>,
}

impl<R> Column<'_, R> {
    /// Returns the value; `None` where the row does not have the column.
    fn value(&self, row: &R) -> Option<Value> {
        let known = self.known.is_none_or(|known| known(row));
        known.then(|| {
            let mut value = Value::Null;
            self.value.put(row, &mut |cell| value = cell.into_value());
            value
        })
    }

    fn text(&self, row: &R, layout: Layout) -> String {
        if let Some(show) = &self.show {
            return show(row, layout);
        }
        match self.value(row) {
            None | Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) => clean(&text),
            Some(value) => match (self.unit, value.as_u64(), value.as_f64()) {
                (Unit::Nanoseconds, Some(ns), _) => layout.time(ns),
                (Unit::Share, _, Some(part)) => share::cell(part),
                (Unit::Vector, Some(vector), _) => format!("{vector:#x}"),
                _ => value.to_string(),
            },
        }
    }
}

/// Columns of rows of a kind.
pub(crate) struct Table<'t, R> {
    columns: Vec<Column<'t, R>>,
    clock: ClockUnit,
    /// What the times of a row count, where rows differ in that.
    clock_of: Option<fn(&R) -> ClockUnit>,
}

impl<R> fmt::Debug for Table<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.columns.iter().map(|column| &column.name);
        f.debug_list().entries(names).finish()
    }
}

impl<'t, R> Table<'t, R> {
    /// Returns a table without columns.
    pub(crate) fn new() -> Table<'t, R> {
        Table {
            columns: Vec::new(),
            clock: ClockUnit::Nanoseconds,
            clock_of: None,
        }
    }

    /// Adds a column that stands in JSON and in CSV. What follows applies to the column added last.
    pub(crate) fn column<V: CellSource + HasShape + 't>(
        self,
        name: impl Into<Cow<'static, str>>,
        unit: Unit,
        value: impl Fn(&R) -> V + 't,
    ) -> Table<'t, R> {
        let value = Box::new(ComputedCell::new(value));
        self.add(name.into(), unit, V::shape(), value)
    }

    /// Adds a column of texts that rows have themselves.
    pub(crate) fn texts(
        self,
        name: &'static str,
        unit: Unit,
        text: impl for<'r> Fn(&'r R) -> Option<&'r str> + 't,
    ) -> Table<'t, R> {
        let value = Box::new(BorrowedText(text));
        self.add(name.into(), unit, Shape::Text.or_null(), value)
    }

    fn add(
        mut self,
        name: Cow<'static, str>,
        unit: Unit,
        shape: Shape,
        value: Box<dyn ColumnCell<R> + 't>,
    ) -> Table<'t, R> {
        self.columns.push(Column {
            name: name.clone(),
            unit,
            shape,
            value,
            known: None,
            json: Some(name),
            csv: unit != Unit::Nested,
            csv_form: None,
            csv_after: None,
            views: Views::NONE,
            where_known: false,
            unique: false,
            heading: None,
            page: None,
            after: None,
            show: None,
        });
        self
    }

    /// Adds columns that only some rows have: others leave them out in JSON, and have nothing in CSV.
    pub(crate) fn only_if(
        self,
        known: fn(&R) -> bool,
        add: impl FnOnce(Table<'t, R>) -> Table<'t, R>,
    ) -> Table<'t, R> {
        let from = self.columns.len();
        let mut table = add(self);
        for column in table.columns.iter_mut().skip(from) {
            column.known = Some(known);
        }
        table
    }

    fn last(mut self, change: impl FnOnce(&mut Column<'t, R>)) -> Table<'t, R> {
        if let Some(column) = self.columns.last_mut() {
            change(column);
        }
        self
    }

    /// Its values, whose type does not say it, have this shape.
    pub(crate) fn within(self, shape: Shape) -> Table<'t, R> {
        self.last(|column| column.shape = shape)
    }

    /// It does not stand in CSV.
    pub(crate) fn json_only(self) -> Table<'t, R> {
        self.last(|column| column.csv = false)
    }

    /// It does not stand in JSON rows, where the document or what is around a row says it.
    pub(crate) fn csv_only(self) -> Table<'t, R> {
        self.last(|column| column.json = None)
    }

    /// It stands on terminals alone.
    pub(crate) fn text_only(self) -> Table<'t, R> {
        self.csv_only().json_only()
    }

    /// It stands in JSON at another place: a member's name, or `member.member`.
    pub(crate) fn json_at(self, place: &'static str) -> Table<'t, R> {
        self.last(|column| column.json = Some(place.into()))
    }

    /// CSV has it in another form than JSON.
    pub(crate) fn csv_form(self, form: impl Fn(&R) -> String + 't) -> Table<'t, R> {
        self.last(|column| {
            column.csv = true;
            column.csv_form = Some(Box::new(form));
        })
    }

    /// CSV has it behind another column than JSON.
    pub(crate) fn csv_after(self, name: &'static str) -> Table<'t, R> {
        self.last(|column| column.csv_after = Some(name))
    }

    /// It has a heading on terminals, where it stands in the ordinary view unless [`Table::views`] says otherwise, to
    /// the right of so many columns.
    pub(crate) fn heading(self, text: impl Into<Cow<'static, str>>, width: usize) -> Table<'t, R> {
        let (text, left, gap) = (text.into(), false, "");
        self.last(|column| {
            column.views = Views::TERMINAL;
            column.heading = Some(Heading {
                text,
                width,
                left,
                gap,
            });
        })
    }

    /// As [`Table::heading`], to the left.
    pub(crate) fn left(self, text: impl Into<Cow<'static, str>>, width: usize) -> Table<'t, R> {
        let aligned = self.heading(text, width);
        aligned.last(|column| {
            if let Some(heading) = &mut column.heading {
                heading.left = true;
            }
        })
    }

    /// It is kept apart from a column before it.
    pub(crate) fn gap(self, gap: &'static str) -> Table<'t, R> {
        self.last(|column| {
            if let Some(heading) = &mut column.heading {
                heading.gap = gap;
            }
        })
    }

    /// A terminal shows it in another way than its unit's.
    pub(crate) fn show(self, show: impl Fn(&R, Layout) -> String + 't) -> Table<'t, R> {
        self.last(|column| column.show = Some(Box::new(show)))
    }

    /// It stands in these views, and in no others.
    pub(crate) fn views(self, views: Views) -> Table<'t, R> {
        self.last(|column| column.views = views)
    }

    /// Nearly every row has another text: a store keeps no list of those that there are.
    pub(crate) fn unique(self) -> Table<'t, R> {
        self.last(|column| column.unique = true)
    }

    /// Views leave it out where no row has a value.
    pub(crate) fn where_known(self) -> Table<'t, R> {
        self.last(|column| column.where_known = true)
    }

    /// The same where a condition holds.
    pub(crate) fn where_known_if(self, holds: bool) -> Table<'t, R> {
        self.last(|column| column.where_known = holds)
    }

    /// It stands on a page, under this heading.
    pub(crate) fn page(self, heading: &'static str) -> Table<'t, R> {
        self.last(|column| column.page = Some(heading))
    }

    /// The same where a condition holds.
    pub(crate) fn page_if(self, stands: bool, heading: &'static str) -> Table<'t, R> {
        self.last(|column| column.page = stands.then_some(heading))
    }

    /// People see it behind this column, wherever documents have it; `""` for before all others.
    pub(crate) fn after(self, name: &'static str) -> Table<'t, R> {
        self.last(|column| column.after = Some(name))
    }

    /// Its times count this. CSV then has them in columns of ticks, behind those of nanoseconds, which are empty.
    pub(crate) fn counted_in(mut self, clock: ClockUnit) -> Table<'t, R> {
        self.clock = clock;
        self
    }

    /// The times of each row count what the row says.
    pub(crate) fn clock_of(mut self, clock: fn(&R) -> ClockUnit) -> Table<'t, R> {
        self.clock_of = Some(clock);
        self
    }

    /// Returns the columns in an order: each as it was declared, or behind the one that it names.
    fn ordered(&self, after: fn(&Column<'t, R>) -> Option<&'static str>) -> Vec<&Column<'t, R>> {
        let (mut moved, mut out): (Vec<_>, Vec<_>) = self
            .columns
            .iter()
            .partition(|column| after(column).is_some());
        while !moved.is_empty() {
            let before = moved.len();
            moved.retain(|column| {
                let anchor = after(column).unwrap_or_default();
                let place = out.iter().position(|one| one.name == anchor);
                let Some(place) =
                    place.map_or_else(|| anchor.is_empty().then_some(0), |at| Some(at + 1))
                else {
                    return true;
                };
                // Several behind one column stand as they were declared.
                let same = |one: &&&Column<'t, R>| after(one) == Some(anchor);
                let place = place + out[place..].iter().take_while(same).count();
                out.insert(place, column);
                false
            });
            if moved.len() == before {
                out.append(&mut moved);
            }
        }
        out
    }

    /// Returns the columns of a view, as people see them.
    fn of_view(&self, view: Views) -> Vec<&Column<'t, R>> {
        let mut columns = self.ordered(|column| column.after);
        columns.retain(|column| column.views.any(view));
        columns
    }

    /// Returns a row as an object of a document.
    pub(crate) fn object(&self, row: &R) -> Map<String, Value> {
        let mut object = Map::new();
        for column in &self.columns {
            if let Some((place, value)) = column.json.as_deref().zip(column.value(row)) {
                put(&mut object, place, value);
            }
        }
        if let Some(clock) = self.clock_of {
            clock(row).move_members(&mut object);
        }
        object
    }

    /// Returns rows as a list of objects.
    pub(crate) fn json(&self, rows: impl IntoIterator<Item = impl Borrow<R>>) -> Value {
        let rows = rows.into_iter();
        rows.map(|row| Value::Object(self.object(row.borrow())))
            .collect()
    }

    /// Returns what a terminal shows of a row, for those who lay it out themselves.
    pub(crate) fn shown(&self, row: &R, layout: Layout) -> Vec<String> {
        let columns = self.of_view(Views::TERMINAL).into_iter();
        columns.map(|column| column.text(row, layout)).collect()
    }

    /// Returns rows as a table of Markdown, with the columns of a view. Those that no row has anything in are left out.
    pub(crate) fn markdown(&self, view: Views, rows: &[R], layout: Layout) -> String {
        let shown = self.of_view(view).into_iter();
        let any = |column: &&Column<'t, R>| {
            let mut values = rows.iter().filter_map(|row| column.value(row));
            values.any(|value| !value.is_null() && value.as_str() != Some(""))
        };
        let shown: Vec<&Column<'t, R>> = shown.filter(any).collect();
        let mut out = String::new();
        for column in &shown {
            let heading = column.heading.as_ref().map(|heading| &*heading.text);
            let heading = heading.filter(|text| !text.is_empty());
            let _ = write!(out, "| {} ", heading.unwrap_or(&column.name));
        }
        out.push_str("|\n");
        for column in &shown {
            out.push_str(match column.unit {
                Unit::Text | Unit::Name | Unit::Flag | Unit::Nested => "| --- ",
                _ => "| ---: ",
            });
        }
        out.push_str("|\n");
        for row in rows.iter().take(layout.limit) {
            for column in &shown {
                let cell = column.text(row, layout);
                let cell = match (column.unit, &*cell) {
                    (Unit::Text | Unit::Name, "-") => cell,
                    (Unit::Text | Unit::Name, name) => markdown::code(name),
                    (_, value) => markdown::text(value),
                };
                let _ = write!(out, "| {cell} ");
            }
            out.push_str("|\n");
        }
        if rows.len() > layout.limit {
            let _ = writeln!(out, "\n... and {} more", rows.len() - layout.limit);
        }
        out
    }

    /// Returns the columns of a view as a terminal shows them.
    pub(crate) fn view(&self, view: Views) -> View<'_, 't, R> {
        let columns = self.of_view(view).into_iter();
        View {
            columns: columns
                .filter_map(|column| Some((column, column.heading.as_ref()?)))
                .collect(),
        }
    }
}

/// Puts a value at its place in an object.
fn put(object: &mut Map<String, Value>, place: &str, value: Value) {
    let Some((outer, inner)) = place.split_once('.') else {
        object.insert(place.to_owned(), value);
        return;
    };
    let within = object.entry(outer).or_insert_with(|| Map::new().into());
    if let Value::Object(within) = within {
        put(within, inner, value);
    }
}

/// Columns as a terminal shows them.
pub(crate) struct View<'v, 't, R> {
    columns: Vec<(&'v Column<'t, R>, &'v Heading)>,
}

impl<R> View<'_, '_, R> {
    /// Leaves out columns of which no row has a value, where they are to be left out then.
    pub(crate) fn known_of(mut self, rows: &[R]) -> Self {
        self.columns.retain(|(column, _)| {
            let mut values = rows.iter().filter_map(|row| column.value(row));
            !column.where_known || values.any(|value| !value.is_null())
        });
        self
    }

    /// Returns how many columns of the terminal there are before a column.
    pub(crate) fn indent(&self, name: &str) -> usize {
        let mut width = 0;
        for (at, (column, heading)) in self.columns.iter().enumerate() {
            width += if at > 0 { heading.gap.len() } else { 0 };
            if column.name == name {
                return width;
            }
            width += heading.width;
        }
        0
    }

    fn lay(&self, text: impl Fn(&Column<'_, R>, &Heading) -> String) -> String {
        let mut out = String::new();
        for (column, heading) in &self.columns {
            let (text, width) = (text(column, heading), heading.width);
            if !out.is_empty() {
                out.push_str(heading.gap);
                let fills = heading.left || text.chars().count() >= width;
                // What is wider than its column must not run into the one before it.
                out.push_str(if fills && !out.ends_with(' ') && !text.is_empty() {
                    " "
                } else {
                    ""
                });
            }
            let _ = match heading.left {
                true => write!(out, "{text:<width$}"),
                false => write!(out, "{text:>width$}"),
            };
        }
        out
    }

    /// Returns the headings, without a line break.
    pub(crate) fn head(&self) -> String {
        self.lay(|_, heading| heading.text.to_string())
    }

    /// Returns a row, without a line break.
    pub(crate) fn line(&self, row: &R, layout: Layout) -> String {
        self.lay(|column, _| column.text(row, layout))
    }

    /// Returns the headings and the first rows, and how many more there are.
    pub(crate) fn text(
        &self,
        rows: impl IntoIterator<Item = impl Borrow<R>>,
        layout: Layout,
    ) -> String {
        let mut out = self.head() + "\n";
        let mut rows = rows.into_iter();
        for row in rows.by_ref().take(layout.limit) {
            out.push_str(&self.line(row.borrow(), layout));
            out.push('\n');
        }
        out.push_str(&more(rows.count()));
        out
    }
}

/// Returns the line that says how many rows are not shown.
pub(crate) fn more(left: usize) -> String {
    match left {
        0 => String::new(),
        _ => format!("... and {left} more\n"),
    }
}

#[cfg(test)]
mod tests;
