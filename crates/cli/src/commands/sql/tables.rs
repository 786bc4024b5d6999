//! The tables that can be asked.

use anyhow::Result;
use render::store::{StoreTable, StoredType, run_columns};
use serde::Serialize;

use crate::options::Format;
use crate::output;

/// A table, as the engine and `--tables` have it.
#[derive(Debug, Serialize)]
pub(crate) struct AskedTable {
    name: &'static str,
    about: &'static str,
    /// Whether it is filled where details were asked for alone.
    detail: bool,
    columns: Vec<AskedColumn>,
}

/// A column.
#[derive(Debug, Serialize)]
struct AskedColumn {
    name: String,
    kind: &'static str,
    unit: &'static str,
    private: bool,
}

/// Returns all tables, each with the columns that files have.
pub(crate) fn all() -> Vec<AskedTable> {
    let table = |table: StoreTable| {
        let columns = run_columns().into_iter().chain(table.columns());
        let columns = columns.map(|column| AskedColumn {
            name: column.name.into_owned(),
            kind: match column.kind {
                StoredType::Integer => "integer",
                StoredType::Double => "double",
                StoredType::Flag => "flag",
                StoredType::Text => "text",
            },
            unit: column.unit,
            private: column.is_private,
        });
        AskedTable {
            name: table.name(),
            about: table.about(),
            detail: table.is_detail(),
            columns: columns.collect(),
        }
    };
    StoreTable::ALL.into_iter().map(table).collect()
}

/// Prints them.
pub(super) fn print(format: Format) -> Result<()> {
    let all = all();
    match format {
        Format::Json => output::print(&(serde_json::to_string_pretty(&all)? + "\n")),
        Format::Csv => {
            let mut out = String::from("table,column,type,unit,private\n");
            for table in &all {
                for column in &table.columns {
                    let row = [
                        table.name,
                        &column.name,
                        column.kind,
                        column.unit,
                        if column.private { "true" } else { "false" },
                    ];
                    render::csv::row(&mut out, row);
                }
            }
            output::print(&out)
        }
        Format::Table => output::print(&text(&all)),
    }
}

fn text(all: &[AskedTable]) -> String {
    let mut out = String::new();
    for table in all {
        let detail = if table.detail { " (with --detail)" } else { "" };
        out.push_str(&format!("{}{detail}: {}\n", table.name, table.about));
        for column in &table.columns {
            let private = if column.private { ", private" } else { "" };
            out.push_str(&format!(
                "  {:<26} {:<8} {}{private}\n",
                column.name, column.kind, column.unit
            ));
        }
        out.push_str("  day                        text     the folder's, in UTC: 2026-11-23\n\n");
    }
    out.push_str("Names that are private are masked where the store was written with --mask.\n");
    out
}
