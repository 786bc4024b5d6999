//! Facts given beside a recording with `--facts`. What is known by them is in `crates/session/tests/corpus/facts.rs`.

use std::fs;

use crate::common::{Failures, case, file, json, run, run_with};

/// What info prints is facts again, and facts come through a pipe too.
#[test]
fn facts_are_printed_and_piped() {
    let mut failures = Failures::default();
    let recording = case("x86/format-variants/v7.dat.zst").path;
    let ps = file("x86/format-variants/l1-ps.txt");
    let folder = tempfile::tempdir().expect("a folder");
    let of_info = folder.path().join("info.json");
    let [recording_text, ps_text] = [&recording, &ps].map(|path| path.display().to_string());
    let info = |facts: &str| {
        [
            "info",
            &recording_text,
            "--facts",
            facts,
            "--format",
            "json",
        ]
        .map(str::to_owned)
    };
    let printed = run(info(&ps_text));
    fs::write(&of_info, &printed.stdout).expect("a written file");
    let vms = |facts: &str| run(info(facts)).json().expect("info")["vms"].clone();
    let again = vms(&of_info.display().to_string());
    failures.equal("info's own JSON", &again, &vms(&ps_text));
    failures.equal("the name", &again[0]["name"], &"a".into());
    let text = fs::read(&ps).expect("a text");
    let piped = run_with(info("-"), &text);
    failures.equal("ps on a pipe", &piped.stdout, &printed.stdout);
    let without = run(["exits", &recording_text, "--vm", "a"]);
    failures.equal("--vm a without facts", &without.status, &1);
    let report = run([
        "report",
        "--full",
        &recording_text,
        "--facts",
        &ps_text,
        "--vm",
        "a",
    ])
    .text();
    failures.check(report.contains("a, process 3736 (qemu-system-x86)"), || {
        report.clone()
    });
    failures.finish(5);
}

/// Events as objects have what facts say; as lines they are the tools', to the byte.
#[test]
fn events_are_of_their_processes() {
    let mut failures = Failures::default();
    let recording = case("x86/format-variants/v7.dat.zst").path;
    let recording = recording.display().to_string();
    let ps = file("x86/format-variants/l1-ps.txt").display().to_string();
    let lines = |args: &[&str]| run(["events", &recording].iter().chain(args)).text();
    let table = ["--event", "kvm_entry"];
    let with = ["--event", "kvm_entry", "--facts", &ps];
    failures.equal("lines", &lines(&with), &lines(&table));
    let csv = lines(&[&with[..], &["--format", "csv"]].concat());
    let of_process = csv.lines().skip(1).all(|line| line.contains(",3736,374"));
    failures.check(of_process && csv.lines().count() > 100, || {
        csv[..200].to_owned()
    });
    failures.finish(2);
}

/// What was not understood is listed with its file and line, in every command.
#[test]
fn what_is_not_understood_is_noted() {
    let mut failures = Failures::default();
    let recording = case("x86/format-variants/v7.dat.zst").path;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mail.txt");
    let ps = fs::read_to_string(file("x86/format-variants/l1-ps.txt")).expect("a text");
    fs::write(
        &path,
        format!("Hello,\nhere is what you asked for:\n\n{ps}"),
    )
    .expect("a written file");
    let path = path.display().to_string();
    for command in ["info", "exits", "report", "events"] {
        let document = json(&[command, "--facts", &path], &recording).expect("it succeeds");
        let warnings = document["quality"]["warnings"].to_string();
        failures.check(warnings.contains("mail.txt: lines 1 to 2"), || {
            format!("{command}: {warnings}")
        });
    }
    failures.finish(4);
}

#[test]
fn a_map_of_devices_that_is_not_there_is_said_to_be_missing() {
    let path = case("x86/clocksource-hpet/perf.data.guest.zst").path;
    let path = path.display().to_string();
    let missing = run(["exits", "--mtree", "/nowhere/mtree.txt", &path]);
    assert_eq!(missing.status, 1);
    assert!(
        missing.stdout.is_empty() && missing.stderr.contains("info mtree"),
        "{}",
        missing.stderr
    );
}
