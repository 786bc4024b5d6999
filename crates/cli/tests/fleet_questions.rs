//! How `trapline sql` and `trapline fleet` are asked: by file, by number, of which days, among which peers, with
//! guests, and of an engine of another version.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fixtures::pairs::{GUEST, HOST};
use serde_json::json;

use crate::common::stores::{alone, asked, engine, rows, stored, utf8};
use crate::common::{file, run};

const DAYS: [&str; 3] = ["2026-11-09", "2026-11-16", "2026-11-23"];

/// Makes a store of two hosts on three days.
fn three_days(folder: &Path) -> PathBuf {
    let store = folder.join("fleet");
    for day in DAYS {
        for (host, name) in [
            ("web1", "timer-storm-healthy"),
            ("db1", "preempted-healthy"),
        ] {
            let recording = file(&format!("x86/{name}/perf.data.zst"));
            let role = format!("role={}", &host[..2]);
            let args = [
                "export", "--as", "parquet", "--day", day, "--host", host, "--label", &role, "-o",
            ];
            let done = run([&args[..], &[utf8(&store), utf8(&recording)]].concat());
            assert_eq!(done.status, 0, "{}", done.stderr);
        }
    }
    store
}

/// The same question by its words, by a file and by its number has the same rows, in each form.
#[test]
fn questions_are_asked_by_words_files_and_numbers() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = three_days(folder.path());
    let numbered = asked(&engine, &["sql", "--question", "3", "--csv", utf8(&store)]);
    assert_eq!(numbered.status, 0, "{}", numbered.stderr);
    assert!(numbered.text().lines().count() > 1, "{}", numbered.text());
    let shown = asked(&engine, &["sql", "--question", "3", "--show", utf8(&store)]);
    assert!(
        shown.text().contains("'2026-11-23'"),
        "the last day is asked: {}",
        shown.text()
    );
    let sql = folder.path().join("question.sql");
    fs::write(&sql, shown.text()).expect("written");
    let by_file = asked(&engine, &["sql", "-f", utf8(&sql), "--csv", utf8(&store)]);
    assert_eq!(by_file.text(), numbered.text(), "{}", by_file.stderr);
    let words = shown.text();
    let words = words.trim().trim_end_matches(';');
    let by_words = asked(&engine, &["sql", words, "--csv", utf8(&store)]);
    assert_eq!(by_words.text(), numbered.text(), "{}", by_words.stderr);
    let document = asked(&engine, &["sql", words, "--json", utf8(&store)])
        .json()
        .expect("an answer");
    let table = asked(&engine, &["sql", words, utf8(&store)]).text();
    let csv = numbered.text();
    let hosts = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap_or_default());
    let hosts: Vec<&str> = hosts.collect();
    let listed = document["rows"].as_array().expect("rows").iter();
    assert_eq!(
        listed
            .map(|row| row["host"].as_str().unwrap_or_default())
            .collect::<Vec<_>>(),
        hosts
    );
    assert!(hosts.iter().all(|host| table.contains(host)), "{table}");
    let none = asked(&engine, &["sql", "-f", "/nowhere.sql", utf8(&store)]);
    assert_eq!(none.status, 1);
    assert!(none.stderr.contains("/nowhere.sql"), "{}", none.stderr);
}

/// The day in question, the days it is held against, and whom hosts are held against are what is asked for.
#[test]
fn a_fleet_is_asked_of_days_and_peers() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = three_days(folder.path());
    let coverage = |more: &[&str]| {
        let done = asked(
            &engine,
            &[&["fleet", "--json", utf8(&store)], more].concat(),
        );
        assert_eq!(done.status, 0, "{more:?}: {}", done.stderr);
        done.json().expect("a document")["coverage"].clone()
    };
    for (more, day, before, groups) in [
        (&[][..], DAYS[2], &DAYS[..2], 2),
        (&["--day", DAYS[1]], DAYS[1], &DAYS[..1], 2),
        (&["--day", DAYS[0]], DAYS[0], &[], 2),
        (&["--since", "7d"], DAYS[2], &DAYS[1..2], 2),
        (&["--since", "6d"], DAYS[2], &[], 2),
        (&["--since", "2026-11-10"], DAYS[2], &DAYS[1..2], 2),
        (&["--peers", "arch"], DAYS[2], &DAYS[..2], 1),
    ] {
        let said = coverage(more);
        assert_eq!(said["day"], day, "{more:?}");
        assert_eq!(said["before"], json!(before), "{more:?}");
        assert_eq!(said["groups"], groups, "{more:?}");
        assert_eq!(said["hosts"], 2, "{more:?}");
    }
    for (more, why) in [
        (["--day", "2026-11-24"], "no recording of 2026-11-24"),
        (["--day", "yesterday"], "yesterday"),
        (["--since", "week"], "week"),
        (["--peers", "colour"], "colour"),
    ] {
        let done = asked(&engine, &[&["fleet", utf8(&store)], &more[..]].concat());
        assert_ne!(done.status, 0, "{more:?}: {}", done.text());
        assert!(done.stderr.contains(why), "{more:?}: {}", done.stderr);
    }
}

/// What a guest did stands beside its host: by whose recording, and which task each span of its vCPUs ran.
#[test]
fn guests_are_stored_beside_their_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let (host, guest) = (file(HOST), file(GUEST));
    let store = folder.path().join("with");
    stored(&store, &host, &["--detail", "--guest", utf8(&guest)]);
    let alone = folder.path().join("alone");
    stored(&alone, &host, &["--detail"]);
    let guests = rows(&store, "runs")[0]["guests"].to_string();
    assert!(guests.contains("host-a"), "{guests}");
    assert_eq!(rows(&alone, "runs")[0]["guests"].to_string(), "null");
    let tasks = |store: &Path| {
        let spans = rows(store, "spans");
        spans
            .iter()
            .filter(|row| row["task_name"].to_string() != "null")
            .count()
    };
    assert!(tasks(&store) > 100, "{}", tasks(&store));
    assert_eq!(tasks(&alone), 0);
    // It is the same recording: its sums are what they were.
    let observed = |store: &Path| -> Vec<String> {
        rows(store, "vcpus")
            .iter()
            .map(|row| row["observed_ns"].to_string())
            .collect()
    };
    assert_eq!(observed(&store), observed(&alone));
}

/// An engine of another version is not asked, and both versions are named.
#[test]
fn an_engine_of_another_version_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("trapline-fleet");
    fs::write(&other, "#!/bin/sh\necho trapline-fleet 9.9.9\n").expect("written");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("a program");
    let recording = file("vmx/tiny-irqchip/perf.data.zst");
    let done = alone(folder.path(), &["sql", "SELECT 1", utf8(&recording)]);
    assert_eq!(done.status, 1);
    let said = done.stderr;
    assert!(
        said.contains("trapline-fleet 9.9.9") && said.contains("install both of one version"),
        "{said}"
    );
}

/// A host whose clock is wrong decides neither what a fleet is asked nor which details are forgotten.
#[test]
fn a_day_in_the_future_is_nobodys_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let recording = file("x86/console-healthy/perf.data.zst");
    let args = [
        "export", "--as", "parquet", "--detail", "--host", "web", "-o",
    ];
    for day in [DAYS[0], DAYS[2], "2999-01-01"] {
        let more = [utf8(&store), utf8(&recording), "--day", day];
        assert_eq!(run([&args[..], &more].concat()).status, 0);
    }
    if let Some(engine) = engine() {
        let done = asked(&engine, &["fleet", "--json", utf8(&store)]);
        let document = done.json().expect("a document");
        assert_eq!(document["coverage"]["day"], DAYS[2]);
        assert_eq!(document["coverage"]["before"], json!([DAYS[0]]));
        let limits = document["limits"].to_string();
        assert!(
            limits.contains("Left out, as a clock was in the future there: 2999-01-01."),
            "{limits}"
        );
        let shown = asked(&engine, &["sql", "--question", "7", "--show", utf8(&store)]);
        assert!(
            shown
                .stderr
                .contains("1 day in the future, the first 2999-01-01"),
            "{}",
            shown.stderr
        );
        let shown = shown.text();
        assert!(
            shown.contains(DAYS[2]) && shown.contains(DAYS[0]) && !shown.contains("2999"),
            "{shown}"
        );
        // Who names it, sees it.
        let done = asked(
            &engine,
            &["fleet", "--json", "--day", "2999-01-01", utf8(&store)],
        );
        let document = done.json().expect("a document");
        assert_eq!(document["coverage"]["day"], "2999-01-01");
        let limits = document["limits"].to_string();
        assert!(
            limits.contains("A clock was in the future there"),
            "{limits}"
        );
    }
    let done = run(["fleet", "--compact", "--keep-detail", "7d", utf8(&store)]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let has = |day: &str| store.join(format!("spans/day={day}")).exists();
    assert_eq!([has(DAYS[0]), has(DAYS[2])], [false, true]);
}
