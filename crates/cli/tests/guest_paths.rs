//! Paths through guests in what is made of pictures: `report`, its page, `export` as Markdown and JSON. Their numbers are those of `paths`.

use std::collections::BTreeMap;

use analysis::{LaneGroup, Measured, Picture, TimelineNames};
use serde_json::Value;
use session::{Options, PictureOptions, Session};

use crate::common::instances::list;
use crate::common::page::Page;
use crate::common::{Failures, number};
use crate::guests::{Pair, document, over, pairs};
use crate::timeline::TINY;

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
            let (told, names) = by_name(document);
            let all: Vec<&str> = of_host.into_iter().chain(guest_paths()).collect();
            failures.check(names == all, || format!("{what}: {names:?}"));
            for (name, path) in &told {
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

/// Returns a picture of a host with some guests.
fn picture(pair: &Pair, with: bool, options: &PictureOptions) -> Picture {
    let session = Session::open(Options {
        threads: 1,
        ..Options::default()
    });
    let mut recordings = vec![pair.host.clone()];
    if with {
        recordings.push(pair.guest.clone());
    }
    let session = session.expect("no files beside");
    let (mut pictures, _) = session
        .pictures_with(&recordings, &[], options)
        .expect("they fit");
    assert_eq!(pictures.len(), 1);
    pictures.remove(0)
}

/// Takes out what is of guests, and returns the rest in words.
fn of_host(mut picture: Picture) -> String {
    picture.guests.clear();
    picture.guest_exits.clear();
    picture.guest_paths.clear();
    let guests = guest_paths();
    let examples = &mut picture.examples;
    examples.retain(|one| !guests.contains(&one.path.as_str()));
    for row in picture.vcpus.iter_mut().flat_map(|report| &mut report.rows) {
        row.guest = None;
    }
    picture.series.of.retain(|measured, _| {
        !matches!(
            measured,
            Measured::GuestTime(_)
                | Measured::GuestSteal(_)
                | Measured::GuestKnown
                | Measured::GuestExits(..)
        )
    });
    if let Some(timeline) = &mut picture.timeline {
        let lanes = &mut timeline.lanes;
        lanes.retain(|lane| lane.group != LaneGroup::Guests);
        let marks = &mut timeline.marks;
        marks.retain(|marks| !guests.contains(&marks.label.as_str()));
        // Names stand behind those of the host.
        timeline.names = TimelineNames::default();
    }
    format!("{picture:#?}")
}

#[test]
fn what_is_found_of_a_host_is_the_same_where_instances_go_through_its_guests() {
    let mut failures = Failures::default();
    for pair in &pairs() {
        let name = pair.guest.display();
        for options in [
            PictureOptions::default().through_guests(),
            PictureOptions::to_report(),
            PictureOptions::to_compare(),
        ] {
            let alone = picture(pair, false, &options);
            let with = picture(pair, true, &options);
            failures.check(alone.guest_paths.is_empty(), || format!("{name}: alone"));
            let names: Vec<&str> = with
                .guest_paths
                .iter()
                .map(|one| one.name.as_str())
                .collect();
            // What is compared is of hosts: nothing through guests is followed there.
            let expected = if options.comparing {
                Vec::new()
            } else {
                guest_paths()
            };
            failures.check(names == expected, || format!("{name}: {names:?}"));
            let all = with.all_paths().count();
            failures.equal(
                &format!("{name}: all"),
                &all,
                &(options.paths.len() + names.len()),
            );
            marks(&mut failures, &with);
            let (alone, with) = (of_host(alone), of_host(with));
            failures.check(alone == with, || {
                let both = alone.lines().zip(with.lines());
                let apart = both.into_iter().find(|(alone, with)| alone != with);
                format!("{name}: {apart:?}")
            });
        }
    }
    failures.finish(20);
}

/// The timeline marks each instance, and there are examples of each path, with steps on threads of the host.
fn marks(failures: &mut Failures, picture: &Picture) {
    let Some(timeline) = &picture.timeline else {
        return;
    };
    for path in &picture.guest_paths {
        let id = format!("path:{}", path.name);
        let marks = timeline.marks.iter().filter(|marks| marks.id == id);
        let marks = marks.flat_map(|marks| &marks.marks);
        let count: u64 = marks.map(|mark| mark.count).sum();
        failures.equal(&id, &count, &path.count);
        let examples = picture.examples.iter().filter(|one| one.path == path.name);
        let examples: Vec<_> = examples.collect();
        failures.equal(&id, &examples.len(), &usize::from(path.count > 0));
        for step in examples.iter().flat_map(|one| &one.slow.steps) {
            let vcpus = picture.vcpus.iter().flat_map(|report| &report.rows);
            let is_vcpu = vcpus.into_iter().any(|row| row.tid == step.tid);
            failures.check(is_vcpu || step.machine.is_none(), || {
                format!("{id}: {step:?}")
            });
        }
    }
}

/// Of a large recording the page has every event of some times only: the host's are the same, and the slowest instances have theirs.
#[test]
fn slow_instances_are_of_interest_behind_all_that_is_of_the_host() {
    let session = Session::open(Options::default()).expect("no files beside");
    let whys = |pair: &Pair, with: bool| -> Vec<(u64, u64, String)> {
        let mut recordings = vec![pair.host.clone()];
        recordings.extend(with.then(|| pair.guest.clone()));
        let hosts = session.hosts(&recordings, &[]).expect("they fit");
        let options = PictureOptions {
            timeline_limits: TINY,
            ..PictureOptions::to_report()
        };
        let mut picture = hosts[0].picture(&options).expect("it is a host").picture;
        let details = hosts[0].input().details(&mut picture, &[]);
        details.expect("it is still there");
        let windows = picture.timeline.expect("it was asked for").windows;
        let windows = windows.into_iter();
        windows.map(|one| (one.begin, one.end, one.why)).collect()
    };
    let mut added = 0;
    for pair in &pairs() {
        let (alone, with) = (whys(pair, false), whys(pair, true));
        let more: Vec<_> = with.iter().filter(|one| !alone.contains(one)).collect();
        assert_eq!(with.len(), alone.len() + more.len(), "{alone:?} {with:?}");
        for (_, _, why) in &more {
            let is_told =
                |path: &str| why.starts_with(&format!("path {path}: its slowest instance, "));
            assert!(guest_paths().into_iter().any(is_told), "{why}");
        }
        added += more.len();
    }
    assert!(added > 0);
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
