//! Paths through guests in what is made of pictures: `report`, its page, `export` as Markdown and JSON. Their numbers
//! are those of `paths`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::list;
use crate::common::page::Page;
use crate::common::{Failures, number};
use crate::guests::{Pair, document, over, pairs};

/// The paths through guests, in their order.
fn guest_paths() -> Vec<&'static str> {
    paths::WITH_GUESTS.iter().map(|(name, _)| *name).collect()
}

/// Returns the paths of a document, by name, and their names in order.
fn by_name(document: &Value) -> (BTreeMap<String, Value>, Vec<String>) {
    let all = list(&document["paths"]);
    let names = all.iter().map(|path| path["path"].as_str());
    let names: Vec<String> = names.map(|name| name.expect("a name").to_owned()).collect();
    (
        names.iter().cloned().zip(all.iter().cloned()).collect(),
        names,
    )
}

#[test]
fn reports_and_exports_have_the_numbers_of_the_command() {
    let mut failures = Failures::default();
    let mut found = BTreeMap::new();
    for Pair { host, guest } in &pairs() {
        let both = [host.as_path(), guest.as_path()];
        let (expected, _) = by_name(&document("paths", &both, &[]));
        let report = document("report", &both, &[]);
        let export = document("export", &both, &[]);
        for (what, document, of_host) in [
            ("report", &report["recordings"][0], rules::PATHS.to_vec()),
            (
                "export",
                &export,
                paths::BUILTIN.iter().map(|one| one.0).collect(),
            ),
        ] {
            let what = format!("{what} {}", guest.display());
            let (reported, names) = by_name(document);
            let all: Vec<&str> = of_host.into_iter().chain(guest_paths()).collect();
            failures.check(names == all, || format!("{what}: {names:?}"));
            for (name, path) in &reported {
                // A path that is followed on request alone is not among the command's.
                if let Some(expected) = expected.get(name) {
                    failures.check(path == expected, || {
                        format!("{what}: {name}: {path}, not {expected}")
                    });
                }
            }
        }
        for name in guest_paths() {
            *found.entry(name).or_default() += number(&expected[name], "count");
        }
    }
    let found: BTreeMap<&str, u64> = found;
    assert!(
        found["packet"] >= 30 && found["guest-ipi"] > 4_000,
        "{found:?}"
    );
    failures.finish(10);
}

#[test]
fn who_names_paths_gets_these_alone() {
    let pairs = pairs();
    let both = [pairs[0].host.as_path(), pairs[0].guest.as_path()];
    for (named, args) in [
        (vec!["kick"], vec!["--path", "kick"]),
        (
            vec!["packet", "ipi"],
            vec!["--path", "packet", "--path", "ipi"],
        ),
    ] {
        let export = document("export", &both, &args);
        assert_eq!(by_name(&export).1, named);
        let (paths, _) = by_name(&document("paths", &both, &args));
        assert_eq!(by_name(&export).0, paths);
    }
}

#[test]
fn the_texts_and_the_page_show_them() {
    let mut shown = 0;
    let mut failures = Failures::default();
    for Pair { host, guest } in &pairs() {
        let name = guest.display();
        let both = [host.as_path(), guest.as_path()];
        let (expected, _) = by_name(&document("paths", &both, &[]));
        let (_, page) = Page::of(&both, &[]);
        let page = page.expect("a page").text;
        let full = over("report", &both, &["--full"]).text();
        let screen = over("report", &both, &[]).text();
        let summary = over("export", &both, &["--as", "md", "-o", "-"]).text();
        for path in guest_paths() {
            let any = number(&expected[path], "count") > 0;
            for (what, text, part) in [
                ("page", &page, format!("id=\"table-path-{path}\"")),
                ("page", &page, format!("{path}: how long instances took")),
                ("full", &full, format!("\n{path}: A guest's")),
                (
                    "summary",
                    &summary,
                    format!("\n| `{path}` | {}", expected[path]["count"]),
                ),
            ] {
                failures.check(text.contains(&part) == any, || {
                    format!("{name}: {what}: {path} is there, or not: {any}")
                });
            }
        }
        let alone = over("report", &[host], &[]).text();
        // One that no guest's recording shows a step of is what the host's path is.
        let inside = expected.values().any(|path| {
            let stages = list(&path["stages"]).iter();
            let mut names = stages.filter_map(|stage| stage["name"].as_str());
            names.any(|name| name.contains("guest: ") || name.contains("peer: received"))
        });
        shown += usize::from(inside);
        failures.check(
            screen.contains("\nslowest through guests: ") == inside,
            || screen.clone(),
        );
        failures.check(!alone.contains("through guests"), || alone.clone());
        failures.check(summary.contains("\n### Paths through the guests\n"), || {
            summary.clone()
        });
    }
    assert!(shown > 0, "no pair shows a path within its guest");
    failures.finish(20);
}
