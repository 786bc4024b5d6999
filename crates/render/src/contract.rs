//! Checks that `docs/columns.md` has the columns that tables have.

use std::fs;
use std::path::Path;

use crate::store::{StoreTable, StoredType, run_columns};

const HEAD: &str = "# Columns

The columns of every table, as `crates/render` has them: one entry each, from which all outputs come. A `name` is what
somebody called a VM, a host, a task or a file, or a sentence with such names; a `text` is a word of KVM's, of the \
kernel's
or of ours. JSON says where a row's object has the column, CSV whether the CSV has it; a row without it leaves the field
empty. The last columns are the heading on a terminal and on a page. Where the recording's
clock counts ticks of unknown rate (`x86-tsc`, `counter`), `_ns` is null and empty, and the same name with `_ticks` \
behind
it has the value, in CSV too. `runtime_ns`, `event_ns` and `recorder_ns` are nanoseconds whatever the clock counts. \
Names
and units are a contract. A test writes this file: `TRAPLINE_WRITE_GOLDEN=1 cargo test -p render contract`.
";

fn written() -> String {
    let tables = crate::tables().into_iter().chain(crate::printed_tables());
    let tables = tables.chain(crate::irq_tables());
    let tables = tables.chain(crate::live_tables());
    let tables = tables.map(|(title, table)| format!("\n## {title}\n\n{table}"));
    HEAD.to_owned() + &tables.collect::<String>()
}

const STORE_HEAD: &str = "# Tables of a store

What `trapline export --as parquet` writes ([store.md](store.md)) and `trapline sql` asks. Every table begins with
`host` and `run`, which together name a recording, and has its day, in UTC, as the column `day` that its folders say
(`2026-11-23`). Names and units are those of the commands' own tables ([columns.md](columns.md)); any value may be
null, which says that it is not known or not of this row. Times are nanoseconds of the recording's clock; where that
counts ticks of unknown rate they are null. Private columns are what somebody called something: `--mask` masks them.
A test writes this file: `TRAPLINE_WRITE_GOLDEN=1 cargo test -p render contract`.
";

fn written_tables() -> String {
    let mut out = STORE_HEAD.to_owned();
    for table in StoreTable::ALL {
        let detail = match table.is_detail() {
            true => " With `--detail` alone.",
            false => "",
        };
        out.push_str(&format!(
            "\n## `{}`\n\n{}{detail}\n\n",
            table.name(),
            table.about()
        ));
        out.push_str("| column | type | unit | private |\n| --- | --- | --- | --- |\n");
        for column in run_columns().into_iter().chain(table.columns()) {
            let kind = match column.kind {
                StoredType::Integer => "INT64",
                StoredType::Double => "DOUBLE",
                StoredType::Flag => "BOOLEAN",
                StoredType::Text => "UTF-8",
            };
            let private = if column.is_private { "yes" } else { "" };
            out.push_str(&format!(
                "| `{}` | {kind} | {} | {private} |\n",
                column.name, column.unit
            ));
        }
    }
    out
}

/// Engines read all files of a table by one list of columns, whose names have to differ.
#[test]
fn tables_of_a_store_are_documented() {
    for table in StoreTable::ALL {
        let columns: Vec<_> = run_columns().into_iter().chain(table.columns()).collect();
        let mut names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
        names.push("day");
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(
            names.len(),
            all,
            "{} has two columns of one name",
            table.name()
        );
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet-columns.md");
    let written = written_tables();
    if std::env::var_os("TRAPLINE_WRITE_GOLDEN").is_some() {
        fs::write(&file, &written).expect("docs can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        kept, written,
        "docs/fleet-columns.md says something else than the tables"
    );
}

#[test]
fn columns_are_documented() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/columns.md");
    let written = written();
    if std::env::var_os("TRAPLINE_WRITE_GOLDEN").is_some() {
        fs::write(&file, &written).expect("docs can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        kept, written,
        "docs/columns.md says something else than the tables"
    );
}
