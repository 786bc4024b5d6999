//! Checks that `docs/columns.md` has the columns that tables have.

use std::fs;
use std::path::Path;

use crate::{
    compare, console, diagnose, exits, info, paths, perf_stat, rules, sched, times, vcpus,
};

const HEAD: &str = "# Columns

The columns of every table, as `crates/render` has them. JSON says where a row's object has the column, CSV whether the
CSV has it; a row without it leaves the field empty. The last column is the heading on a terminal. Names and units are a
contract. A test writes this file: `TRAPLINE_WRITE_GOLDEN=1 cargo test -p render contract`.
";

fn written() -> String {
    let durations: Vec<&str> = times::names(true).collect();
    let shares: Vec<&str> = times::names(false).collect();
    let states = [&durations[..], &shares];
    let tables = [
        ("`info`: `events`", info::columns().described(&[])),
        (
            "`exits`: `rows`",
            exits::columns().described(&[&exits::NARROW, &exits::WIDE, &shares]),
        ),
        ("`vcpus`: `rows`", vcpus::columns().described(&states)),
        (
            "`sched`: `rows`",
            sched::tasks().described(&[&sched::TASKS]),
        ),
        (
            "`sched`: `cpus` (CSV: `--by cpu`)",
            sched::cpu_columns().described(&[&sched::CPUS]),
        ),
        (
            "`paths`: `paths[].stages`",
            paths::stages().described(&[&paths::SHOWN]),
        ),
        (
            "`paths --each`: `instances`",
            paths::instances().described(&[]),
        ),
        (
            "`compare`: `changes`, `likely`, `noise`",
            compare::columns().described(&[]),
        ),
        ("`diagnose`: `findings`", diagnose::columns().described(&[])),
        (
            "`report` of what perf stat printed: `counts`",
            perf_stat::columns().described(&[&perf_stat::SHOWN]),
        ),
        (
            "`events --console`: `console`",
            console::columns().described(&[]),
        ),
        ("`rules`: `rules`", rules::columns().described(&[])),
    ];
    let tables = tables.map(|(title, table)| format!("\n## {title}\n\n{table}"));
    HEAD.to_owned() + &tables.concat()
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
