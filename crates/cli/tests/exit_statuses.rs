//! Exit statuses are alike in all commands: 0 answered, 1 an input that cannot be used, 2 wrong usage, 3 a doubt with
//! `--strict`. docs/commands.md and the man pages have the same words.

use std::fs;

use crate::common::{Failures, case, run};

/// Commands that read a recording, with what they take beside it.
const READERS: [&[&str]; 13] = [
    &["report"],
    &["report", "--full"],
    &["report", "--brief"],
    &["diagnose"],
    &["info"],
    &["events"],
    &["exits"],
    &["vcpus"],
    &["irqs"],
    &["paths"],
    &["sched"],
    &["flame", "--off-cpu"],
    &["export", "--as", "json"],
];

/// Commands that read none.
const OTHERS: [&str; 8] = [
    "rules", "facts", "overhead", "top", "record", "agent", "bench", "compare",
];

#[test]
fn commands_that_read_end_alike() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let path = path.display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("empty.dat").display().to_string();
    fs::write(&empty, b"").expect("a file");
    let missing = folder.path().join("missing.dat").display().to_string();
    for command in READERS {
        let mut of = |what: &str, status: i32, args: &[&str]| {
            let run = run(command.iter().chain(args));
            let what = format!("{command:?} {what}: {}", run.stderr);
            failures.equal(&what, &run.status, &status);
            if status != 0 {
                failures.check(run.stdout.is_empty(), || what.clone());
                failures.check(!run.stderr.is_empty(), || what.clone());
            }
        };
        of("answered", 0, &[&path]);
        of("no such file", 1, &[&missing]);
        of("empty", 1, &[&empty]);
        of("no such VM", 1, &[&path, "--vm", "nosuch"]);
        of("facts that are missing", 1, &[&path, "--facts", &missing]);
        of("unknown option", 2, &[&path, "--frobnicate"]);
        of("a value that is none", 2, &[&path, "--cpu", "x"]);
        of("standard input twice", 2, &["-", "--facts", "-"]);
        of("two formats", 2, &[&path, "--json", "--csv"]);
    }
    failures.finish(300);
}

#[test]
fn a_doubt_is_status_3_where_it_is_asked_for() {
    let mut failures = Failures::default();
    // A recording with a doubt about everything: its end is missing.
    let path = case("x86/console-sick/perf.data.zst").path;
    let path = path.display().to_string();
    for command in READERS {
        // Documents say which doubts there are.
        let plain = command
            .iter()
            .filter(|word| **word != "--brief" && **word != "--full");
        let document = match command[0] {
            "export" => run(command.iter().copied().chain([path.as_str()])),
            _ => run(plain.copied().chain([path.as_str(), "--json"])),
        };
        let document = document.json().expect("a document");
        let doubts = document["quality"]["doubts"].as_array().map_or(0, Vec::len);
        let strict = run(command.iter().copied().chain([path.as_str(), "--strict"]));
        let expected = if doubts > 0 { 3 } else { 0 };
        failures.equal(
            &format!("{command:?}, {doubts} doubts"),
            &strict.status,
            &expected,
        );
        failures.check(!strict.stdout.is_empty(), || {
            format!("{command:?} prints nothing")
        });
    }
    failures.finish(26);
}

#[test]
fn the_other_commands_end_alike() {
    let mut failures = Failures::default();
    for command in OTHERS {
        for (status, args) in [
            (0, &["--help"][..]),
            (2, &["--frobnicate"]),
            (2, &["--color", "red"]),
        ] {
            let run = run([command].iter().chain(args));
            failures.equal(
                &format!("{command} {args:?}: {}", run.stderr),
                &run.status,
                &status,
            );
        }
    }
    for (status, args) in [
        (0, &["rules"][..]),
        (0, &["facts"]),
        (0, &["bench", "clock", "-n=5", "--warmup=0"]),
        (1, &["facts", "nowhere.json"]),
        (1, &["facts", "--root", "nowhere"]),
        (1, &["compare", "nowhere.dat", "nowhere-else.dat"]),
        (1, &["record", "--", "./nowhere"]),
        (2, &["rules", "nosuch"]),
        (2, &["top", "--format", "json"]),
        (2, &["record", "--json"]),
        (2, &["bench"]),
        (2, &["bench", "nosuch"]),
        (2, &["compare"]),
        (2, &["nosuch"]),
        (2, &["--strict"]),
    ] {
        let run = run(args);
        failures.equal(&format!("{args:?}: {}", run.stderr), &run.status, &status);
    }
    failures.finish(39);
}

/// What cannot be meant is wrong usage, whichever command finds it out; what is not for an input is the input's status.
#[test]
fn what_cannot_be_meant_is_wrong_usage() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let path = path.display().to_string();
    let text = fixtures::file("seed-text/case5-slow-host.perf-sched-latency.txt");
    let table = text.display().to_string();
    for (status, args) in [
        (
            2,
            &[
                "paths",
                &path,
                "--path",
                "irqfd",
                "--instance",
                "1",
                "--csv",
            ][..],
        ),
        (2, &["flame", &path, "--wakeup"]),
        (2, &["flame", &path, "-o", "x.pdf"]),
        (2, &["flame", &path, &path, "--off-cpu"]),
        (2, &["export", &path, "-o", "x.pdf"]),
        (2, &["report", &path, "-o", "x.pdf"]),
        (2, &["report", "-", "-"]),
        (2, &["compare", "-", "-"]),
        (2, &["diagnose", &path, "--patch"]),
        (
            2,
            &["compare", "--each", &path, &path, "--score", "zebra=1"],
        ),
        (1, &["sched", &table, "--by", "cpu"]),
        (1, &["report", &table, "--vcpu", "1"]),
        (1, &["report", &table, "--cost"]),
        (1, &["exits", &path, "--by", "task"]),
        (1, &["flame", &path, "--unit", "samples"]),
    ] {
        let run = run(args);
        failures.equal(&format!("{args:?}: {}", run.stderr), &run.status, &status);
    }
    failures.finish(15);
}
