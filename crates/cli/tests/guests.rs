//! Hosts' recordings with those of their guests: the pairs of the corpus, whose files name each other.

use std::path::{Path, PathBuf};

use std::process::Command;

pub(crate) use fixtures::pairs::{GUEST, GuestPair as Pair, HOST, pairs};
use serde_json::Value;

use crate::common::list;
use crate::common::{Failures, Run, file, note, number, read, run, run_with, write_text};

/// Runs a command over a host and more.
pub(crate) fn over(command: &str, paths: &[&Path], more: &[&str]) -> Run {
    let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
    let more = more.iter().map(|one| (*one).to_owned());
    run(std::iter::once(command.to_owned()).chain(paths).chain(more))
}

pub(crate) fn document(command: &str, paths: &[&Path], more: &[&str]) -> Value {
    let mut all = vec!["--format", "json"];
    all.extend_from_slice(more);
    over(command, paths, &all).json().expect("it can be read")
}

/// Makes a folder of files as `trapline record` names them: of [`HOST`], of [`GUEST`], and of a guest whose recording
/// is broken. What is in the files decides, not what they are called.
pub(crate) fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    for (from, to) in [(HOST, "perf.data"), (GUEST, "guest-a.perf.data")] {
        std::fs::write(folder.path().join(to), read(&file(from))).expect("there is room");
    }
    write_text(folder.path(), "guest-b.perf.data", "broken\n");
    folder
}

fn events(info: &Value) -> u64 {
    list(&info["events"])
        .iter()
        .map(|one| number(one, "count"))
        .sum()
}

#[test]
fn guests_events_lie_in_the_windows_of_their_vcpus() {
    let mut failures = Failures::default();
    let pairs = pairs();
    for Pair { host, guest } in &pairs {
        let name = guest.display();
        let both = document("info", &[host, guest], &[]);
        let row = &list(&both["guests"])[0];
        let [inside, outside, uncovered] =
            ["inside", "outside", "uncovered"].map(|field| number(row, field));
        failures.check(outside * 1000 <= inside + outside, || {
            format!("{name}: {row}")
        });
        failures.equal(
            &format!("{name}: residual"),
            &number(row, "residual_ns"),
            &0,
        );
        let alone = document("info", &[guest], &[]);
        let all = events(&alone);
        failures.equal(
            &format!("{name}: events"),
            &(inside + outside + uncovered),
            &all,
        );
        failures.check(inside * 2 > all, || format!("{name}: {row}"));
        failures.equal(&format!("{name}: drift"), &row["drift_ppb"], &0.into());
        // What is said of the host is what is said of it alone, whatever stands first, with any number of threads.
        let of_host = document("info", &[host], &[]);
        for field in ["events", "vms", "start_ns", "duration_ns"] {
            failures.equal(&format!("{name}: {field}"), &both[field], &of_host[field]);
        }
        for (paths, more) in [
            ([guest, host], ["--threads", "2"]),
            ([host, guest], ["--threads", "1"]),
        ] {
            let again = document("info", &paths.map(PathBuf::as_path), &more);
            failures.equal(
                &format!("{name}: {more:?}"),
                &again["guests"],
                &both["guests"],
            );
        }
    }
    failures.finish(pairs.len());
}

#[test]
fn tasks_of_exits_are_asked_of_guests_alone() {
    let host = file(HOST);
    let run = over("exits", &[&host], &["--by", "task"]);
    assert_eq!(run.status, 1);
    assert!(
        run.stderr.contains("--by task takes recordings of guests"),
        "{}",
        run.stderr
    );
    // A byte for the serial line is written in its interrupt.
    let guest = file(GUEST);
    let ports = document("exits", &[&host, &guest], &["--event", "ioport"]);
    let bytes = |row: &&Value| row["key"] == "0x3f8:POUT";
    let rows: Vec<&Value> = list(&ports["rows"]).iter().filter(bytes).collect();
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (row["task_what"].as_str(), row["task_name"].as_str()),
        (Some("interrupt"), Some("ttyS0"))
    );
    assert_eq!(row["task_tid"], Value::Null);
}

#[test]
fn functions_of_exits_take_symbols_of_the_guest() {
    let host = file("vmx/tiny-irqchip/perf.data.zst");
    let run = over("exits", &[&host], &["--by", "function"]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("--guest-kallsyms"), "{}", run.stderr);
}

#[test]
fn wrong_pairs_are_refused_with_what_speaks_against_them() {
    let arm = file("arm64/virtio-mmio/boot2-vsock/trace.dat.zst");
    let x86 = file(HOST);
    let guest = file(GUEST);
    let refused = |paths: &[&Path], more: &[&str]| {
        let run = over("info", paths, more);
        assert_eq!(run.status, 1, "{}", run.text());
        run.stderr
    };
    let other = refused(&[&arm, &guest], &[]);
    assert!(
        other.contains("was recorded with another host's recording"),
        "{other}"
    );
    let itself = refused(&[&x86, &x86], &[]);
    assert!(itself.contains("by chance"), "{itself}");
    let named = format!("--guest=nobody={}", guest.display());
    let named = refused(&[&x86], &[&named]);
    assert!(named.contains("not of nobody"), "{named}");
    let twice = refused(&[&x86, &guest, &guest], &[]);
    assert!(twice.contains("is given twice"), "{twice}");
    // Without ids, as texts, nothing but causality speaks.
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let text = |path: &Path, name: &str| {
        let text = over("events", &[path], &[]).text();
        write_text(folder.path(), name, &text)
    };
    let [arm, x86, guest] =
        [(arm, "arm"), (x86, "x86"), (guest, "guest")].map(|(path, name)| text(&path, name));
    let other = refused(&[&arm, &guest], &[]);
    assert!(other.contains("at the best offset of its clock"), "{other}");
    let fits = document("info", &[&x86, &guest], &[]);
    let row = &list(&fits["guests"])[0];
    assert_eq!(
        (number(row, "inside"), number(row, "outside")),
        (45515, 0),
        "{row}"
    );
    assert_eq!(row["whose"], "shown");
    // A guest through a pipe.
    let path = x86.to_string_lossy();
    let input = std::fs::read(&guest).expect("it was written");
    let piped = run_with(["info", path.as_ref(), "-", "--format", "json"], &input);
    let piped = piped.json().expect("it can be read");
    assert_eq!(list(&piped["guests"])[0]["inside"], row["inside"]);
}

#[test]
fn events_of_both_stand_in_the_order_that_trace_cmd_gives_them() {
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let names = ["host.dat", "host-a.dat"];
    for name in names {
        let bytes = read(&file(&format!("x86/host-guest-pingpong/{name}.zst")));
        std::fs::write(folder.path().join(name), bytes).expect("there is room");
    }
    let report = Command::new("trace-cmd")
        .args(["report", "-N", "-i", names[0], "-i", names[1]])
        .current_dir(folder.path())
        .output();
    let Ok(report) = report else {
        assert!(!required, "trace-cmd is missing");
        note("skipped: no trace-cmd here");
        return;
    };
    let theirs = String::from_utf8_lossy(&report.stdout).into_owned();
    let theirs: Vec<&str> = theirs
        .lines()
        .filter(|line| !line.contains(": cpus="))
        .collect();
    let paths = names.map(|name| folder.path().join(name));
    let ours = over("events", &paths.each_ref().map(PathBuf::as_path), &[]).text();
    let ours: Vec<&str> = ours.lines().collect();
    assert_eq!(ours.len(), theirs.len());
    // trace-cmd adds the TSC's offset in ticks, and trapline in nanoseconds: a sum of two that were cut may be one
    // less.
    let mut later = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if ours == theirs {
            continue;
        }
        let cut = |line: &str| {
            let (head, rest) = line.split_once(": ").expect("the recording's name");
            let (before, rest) = rest.split_once("] ").expect("the CPU");
            let (time, text) = rest.trim_start().split_once(": ").expect("a time");
            let time = time.replace('.', "").parse::<u64>().expect("seconds");
            (head.to_owned() + before + text, time)
        };
        let ((ours, our_us), (theirs, their_us)) = (cut(ours), cut(theirs));
        assert_eq!(ours, theirs);
        assert_eq!(our_us + 1, their_us, "{ours}");
        later += 1;
    }
    assert!(later * 1000 < ours.len(), "{later} of {}", ours.len());
    // Other forms say of which recording an event is.
    let rows = over(
        "events",
        &paths.each_ref().map(PathBuf::as_path),
        &["--format", "csv", "--event", "sched_switch"],
    );
    let rows = rows.text();
    let mut rows = rows.lines();
    assert!(
        rows.next()
            .is_some_and(|head| head.starts_with("recording,time_ns,"))
    );
    let of_guest = rows
        .clone()
        .filter(|row| row.contains("host-a.dat,"))
        .count();
    assert_eq!((of_guest, rows.count()), (7983, 7983 + 10947));
}

#[test]
fn a_folder_of_record_brings_its_guests_to_every_command() {
    let folder = recorded();
    let (host, guest) = (file(HOST), file(GUEST));
    let mut failures = Failures::default();
    for command in ["info", "vcpus", "exits", "irqs", "sched", "events", "paths"] {
        let mut given = document(command, &[&host, &guest], &[]);
        let mut found = document(command, &[folder.path()], &[]);
        let warnings = found["quality"]["warnings"].to_string();
        failures.check(warnings.contains("guest-b.perf.data"), || {
            format!("{command} does not say what it left out: {warnings}")
        });
        let inputs = found["inputs"].to_string();
        failures.check(inputs.contains("guest-a.perf.data"), || {
            format!("{command}: inputs {inputs}")
        });
        // They differ in the names of files, and in that warning.
        for one in [&mut given, &mut found] {
            let one = one.as_object_mut().expect("a document");
            one.retain(|name, _| name != "inputs" && name != "quality");
            let guests = one.get_mut("guests").and_then(Value::as_array_mut);
            for guest in guests.into_iter().flatten() {
                guest["input"].take();
            }
            let events = match command {
                "events" => one.get_mut("events").and_then(Value::as_array_mut),
                _ => None,
            };
            for event in events.into_iter().flatten() {
                event["recording"].take();
            }
        }
        failures.check(found == given, || {
            format!("{command} of the folder is another answer")
        });
    }
    failures.finish(21);
}
