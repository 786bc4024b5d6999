//! Checks that `docs/columns.md` has the columns that tables have.

use std::fs;
use std::path::Path;

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
