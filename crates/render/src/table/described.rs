//! A table as `docs/columns.md` describes it.

use super::{Column, Table, Views};

impl<R> Column<'_, R> {
    fn described(&self) -> String {
        let places = self.json.as_ref().map(|place| format!("`{place}`"));
        let places = match (places, self.known) {
            (Some(place), Some(_)) => place + ", in some rows",
            (place, _) => place.unwrap_or_default(),
        };
        let csv = match (self.csv, &self.csv_form) {
            (false, _) => "",
            (true, None) => "yes",
            (true, Some(_)) => "in a form of its own",
        };
        let heading = match &self.heading {
            Some(heading) if self.views != Views::NONE => match &*heading.text {
                "" => "without a heading",
                text => text,
            },
            _ => "",
        };
        let (name, unit) = (&self.name, self.unit.described());
        let page = self.page.unwrap_or_default();
        format!("| `{name}` | {unit} | {places} | {csv} | {heading} | {page} |\n")
    }
}

impl<R> Table<'_, R> {
    /// Returns the columns as a table of Markdown, after a look at whether they are as they are to be.
    pub(crate) fn described(&self) -> String {
        let named = |name: &str| {
            self.columns
                .iter()
                .filter(|column| column.name == name)
                .count()
        };
        for column in &self.columns {
            let name = &column.name;
            assert_eq!(named(name), 1, "two columns are called {name}");
            for anchor in column.after.iter().chain(&column.csv_after) {
                let there = anchor.is_empty() || named(anchor) == 1;
                assert!(
                    there,
                    "{name} is to stand behind {anchor}, which is no column"
                );
            }
        }
        for after in [
            |column: &Column<'_, R>| column.after,
            |column: &Column<'_, R>| column.csv_after,
        ] {
            // A circle of columns that are to stand behind each other has no order.
            let ordered = self.ordered(after);
            let place = |name: &str| ordered.iter().position(|column| column.name == name);
            let behind = |column: &&Column<'_, R>| {
                after(column).is_none_or(|anchor| place(anchor) < place(&column.name))
            };
            assert!(
                ordered.iter().all(behind),
                "columns stand behind each other in a circle"
            );
        }
        let head = "| column | unit | JSON | CSV | terminal | page |\n| --- | --- | --- | --- | --- | --- |\n";
        head.to_owned()
            + &self
                .columns
                .iter()
                .map(Column::described)
                .collect::<String>()
    }
}
