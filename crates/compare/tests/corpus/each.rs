//! Several sides in one table.

use std::path::PathBuf;

use fixtures::file;
use fixtures::json::{list, sides_of};

use crate::{compared_each, each_document};

#[test]
fn three_idle_policies_stand_side_by_side() {
    let names = ["ipi-default", "ipi-haltpoll", "ipi-idlepoll"];
    let paths = names.map(|name| file(&format!("x86/{name}/perf.kvm.pingpong.data.zst")));
    let document = each_document(&paths.each_ref().map(PathBuf::as_path));
    let hlt = sides_of(&document, "vmexit hlt");
    // idle=poll never halts.
    assert!(hlt[0]["value"].as_f64() > Some(100.0), "{hlt:?}");
    assert!(
        hlt[2]["value"].is_null() && hlt[2]["compared"] == true,
        "{hlt:?}"
    );
    for cells in list(&document["rows"]) {
        assert_eq!(list(&cells["sides"]).len(), 3);
    }
}

#[test]
fn a_tail_has_one_bound_in_all_columns() {
    let names = ["console-healthy", "console-sick", "console-healthy"];
    let paths = names.map(|name| file(&format!("x86/{name}/perf.data.zst")));
    let (each, names) = compared_each(&paths.each_ref().map(PathBuf::as_path));
    let document = render::compare_each::document(&each, &names, &[]);
    let document = serde_json::to_value(document).expect("a document");
    let rows = list(&document["rows"]);
    let tail = rows.iter().find(|row| row["what"] == "path irqfd tail");
    let tail = tail.unwrap_or_else(|| panic!("no tail in {rows:#?}"));
    let bound = tail["bound_ns"].as_u64().expect("a bound");
    let sides = list(&tail["sides"]);
    assert_eq!(sides[1]["tier"], "news", "{tail}");
    // The base against itself, at the same bound.
    assert_eq!(sides[2]["value"], sides[0]["value"], "{tail}");
    assert!(sides[2]["tier"].is_null(), "{tail}");
    for one in list(&document["against"]) {
        let all = ["likely", "noise"].map(|name| list(&one[name]));
        for change in all.into_iter().flatten() {
            if change["what"] == "path irqfd tail" {
                assert_eq!(change["bound_ns"].as_u64(), Some(bound), "{change}");
            }
        }
    }
    let table = render::compare_each::text(&each, &names, &[], usize::MAX, 80);
    let line = table
        .lines()
        .find(|line| line.starts_with("path irqfd tail, "));
    assert!(line.is_some_and(|line| line.contains(" ms on ")), "{table}");
}
