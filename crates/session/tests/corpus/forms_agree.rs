//! Any form, one answer: a recording and its own text. Wrapped forms and pipes are in
//! `crates/cli/tests/forms_agree.rs`.

use std::path::Path;

use analysis::ExitTable;
use fixtures::json::number;
use fixtures::{CorpusCase, Failures, FixtureQuestion, cases, note, open};
use serde_json::Value;

/// All tables of exits of a file.
fn exits(path: &Path) -> Result<Value, session::Error> {
    let tables = [
        ExitTable::Vmexit,
        ExitTable::Ioport,
        ExitTable::Mmio,
        ExitTable::Msr,
    ];
    let asked = tables
        .into_iter()
        .fold(FixtureQuestion::new(), FixtureQuestion::table);
    asked.exits_document(path)
}

/// Whether a recording's clock counts ticks.
fn in_ticks(path: &Path) -> bool {
    let session =
        session::Session::open(session::SessionOptions::default()).expect("no files beside");
    let input = session.input(path).expect("a file");
    input
        .recording()
        .is_ok_and(|recording| !recording.nanoseconds())
}

/// Times of a text are cut to its last digit: a duration is the difference of two such.
const MICROSECOND: u64 = 1000;

/// Compares the tables of a recording with those of a text of it, to the text's resolution in nanoseconds.
fn same_tables(failures: &mut Failures, what: &str, ours: &Value, text: &Value, resolution: u64) {
    failures.equal(&format!("{what}: isa"), &text["isa"], &ours["isa"]);
    let not_timed = |document: &Value| -> Vec<Value> {
        let warnings = document["quality"]["warnings"].as_array().cloned();
        let mut warnings = warnings.unwrap_or_default();
        warnings.retain(|w| w.as_str().is_some_and(|w| w.starts_with("Not timed")));
        warnings
    };
    failures.equal(
        &format!("{what}: not timed"),
        &not_timed(text),
        &not_timed(ours),
    );
    let tables = |document: &Value| document["tables"].as_array().cloned().unwrap_or_default();
    let (ours, text) = (tables(ours), tables(text));
    failures.equal(&format!("{what}: tables"), &text.len(), &4);
    for (ours, text) in ours.iter().zip(&text) {
        let what = format!("{what} {}", ours["event"]);
        let rows = |table: &Value| table["rows"].as_array().cloned().unwrap_or_default();
        let (ours, text) = (rows(ours), rows(text));
        failures.equal(&format!("{what}: rows"), &text.len(), &ours.len());
        for row in &ours {
            let what = format!("{what} {}", row["key"]);
            let Some(other) = text.iter().find(|other| other["key"] == row["key"]) else {
                failures.check(false, || format!("{what}: not in the text"));
                continue;
            };
            failures.equal(&what, &other["waiting"], &row["waiting"]);
            failures.equal(&what, &other["count"], &row["count"]);
            let count = number(row, "count");
            for (name, slack) in [
                ("min_ns", resolution),
                ("max_ns", resolution),
                ("total_ns", resolution * count),
                // Rounded to whole nanoseconds on either side.
                ("mean_ns", resolution + u64::from(resolution > 0)),
            ] {
                let (a, b) = (number(row, name), number(other, name));
                failures.check(a.abs_diff(b) <= slack, || {
                    format!("{what}: {name} is {a}, from the text {b}, resolution {resolution}")
                });
            }
        }
    }
}

/// Says whether a recording holds exits.
fn has_exits(case: &CorpusCase) -> Option<Value> {
    exits(&case.path).ok()
}

#[test]
fn a_recording_and_its_text_agree() {
    let mut failures = Failures::default();
    let mut texts = 0;
    for case in cases() {
        let names = ["script", "report-N", "report"];
        let names = names.map(|name| (name, case.references.get(name)));
        if names.iter().all(|(_, path)| path.is_none()) {
            continue;
        }
        let Some(ours) = has_exits(&case) else {
            continue;
        };
        let ticks = in_ticks(&case.path);
        for (name, path) in names {
            let Some(path) = path else { continue };
            let what = format!("{} as text of {name}", case.name);
            texts += 1;
            match exits(path) {
                // Ticks are printed whole.
                Ok(text) => {
                    let resolution = if ticks { 0 } else { MICROSECOND };
                    same_tables(&mut failures, &what, &ours, &text, resolution);
                }
                Err(error) => failures.check(false, || format!("{what}: {error}")),
            }
        }
    }
    note(&format!("{texts} texts"));
    failures.finish(500);
}

/// A recording and its text give the same states of vCPUs, as far as both have the events for it.
#[test]
fn vcpus_of_a_recording_and_its_text_agree() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok(ours) = FixtureQuestion::new().vcpus_document(&case.path) else {
            continue;
        };
        let ticks = in_ticks(&case.path);
        for name in ["script", "report-N", "report"] {
            let Some(path) = case.references.get(name) else {
                continue;
            };
            let what = format!("{} as text of {name}", case.name);
            let text = match FixtureQuestion::new().vcpus_document(path) {
                Ok(text) => text,
                Err(error) => {
                    failures.check(false, || format!("{what}: {error}"));
                    continue;
                }
            };
            // perf script does not print where events were lost.
            let lost = |document: &Value| number(&document["quality"], "lost_events");
            if lost(&text) != lost(&ours) {
                continue;
            }
            // A kind of event that never happened is not in a text.
            let same = text["unknowable"] == ours["unknowable"];
            let rows = |document: &Value| document["rows"].as_array().cloned().unwrap_or_default();
            let (ours, text) = (rows(&ours), rows(&text));
            failures.equal(&format!("{what}: vCPUs"), &text.len(), &ours.len());
            for row in &ours {
                let what = format!("{what}: thread {}", row["tid"]);
                let Some(other) = text.iter().find(|other| other["tid"] == row["tid"]) else {
                    failures.check(false, || format!("{what}: not in the text"));
                    continue;
                };
                failures.equal(&what, &other["exits"], &row["exits"]);
                // Without process ids and names it is not known how many VMs there are.
                if !other["vm_pid"].is_null() {
                    failures.equal(&what, &other["vcpu"], &row["vcpu"]);
                }
                // Each exit has at most a handful of spans, each as exact as two stamps are.
                let spans = 8 * (number(row, "exits") + number(&row["waits"], "count") + 4);
                let slack = if ticks { 0 } else { MICROSECOND * spans };
                for states in [
                    &["observed_ns"][..],
                    &["guest_ns"],
                    // A poll of 10 us is one or not by a digit.
                    &["kernel_ns", "poll_ns", "unknown_ns"],
                    &["user_ns"],
                    &["halted_ns"],
                    &["runnable_ns"],
                ] {
                    if !same && states[0] != "observed_ns" && states[0] != "guest_ns" {
                        continue;
                    }
                    let sum = |row: &Value| states.iter().map(|s| number(row, s)).sum::<u64>();
                    let (a, b) = (sum(row), sum(other));
                    failures.check(a.abs_diff(b) <= slack, || {
                        format!("{what}: {states:?} is {a}, from the text {b}, slack {slack}")
                    });
                }
            }
        }
    }
    failures.finish(200);
}

/// The same instances of every path are found in a recording and in its text.
#[test]
fn paths_of_a_recording_and_its_text_agree() {
    let mut failures = Failures::default();
    let mut instances = 0;
    for case in cases() {
        let ticks = in_ticks(&case.path);
        let Ok(ours) = FixtureQuestion::new().paths_document(&case.path) else {
            continue;
        };
        for name in ["script", "report-N", "report"] {
            let Some(path) = case.references.get(name) else {
                continue;
            };
            let what = format!("{} as text of {name}", case.name);
            let text = match FixtureQuestion::new().paths_document(path) {
                Ok(text) => text,
                Err(error) => {
                    failures.check(false, || format!("{what}: {error}"));
                    continue;
                }
            };
            let lost = |document: &Value| number(&document["quality"], "lost_events");
            if lost(&text) != lost(&ours) {
                continue;
            }
            let vms = FixtureQuestion::new()
                .info_document(path)
                .map(|info| info["vms"].clone());
            let vms = vms.unwrap_or_default();
            let mut vms = vms.as_array().into_iter().flatten();
            let guessed = vms.any(|vm| vm["guessed"] == true);
            let paths =
                |document: &Value| document["paths"].as_array().cloned().unwrap_or_default();
            for (ours, text) in paths(&ours).iter().zip(paths(&text)) {
                let what = format!("{what}: {}", ours["path"]);
                let count = number(ours, "count");
                instances += count;
                failures.equal(&what, &number(&text, "count"), &count);
                failures.equal(&what, &text["dropped"], &ours["dropped"]);
                let slack = if ticks { 0 } else { MICROSECOND * count };
                let total = |path: &Value| number(&path["total"], "total_ns");
                // A text has no processes. Where VMs are a guess in it, an interrupt with only the vCPU's number
                // may stay unresolved: its instance then ends earlier, and never later.
                let less = total(ours).saturating_sub(total(&text)) > slack;
                // Nor does it say whether a wake-up was made in an interrupt; without that a thread that wakes a halted
                // vCPU has not raised an interrupt of arm64's ITS: an instance of 'kick' ends before that.
                let unseen = case.name.starts_with("arm64/") && ours["path"] == "kick";
                failures.check(!less || guessed || unseen, || {
                    format!("{what}: {} and {}", total(ours), total(&text))
                });
                failures.check(total(&text) <= total(ours).saturating_add(slack), || {
                    format!(
                        "{what}: {} and {}, which is more",
                        total(ours),
                        total(&text)
                    )
                });
            }
        }
    }
    note(&format!("{instances} instances"));
    failures.finish(200);
}

/// Every kind of event is as frequent in the text as in the recording.
#[test]
fn a_text_has_the_events_of_its_recording() {
    let mut failures = Failures::default();
    for case in cases() {
        for name in ["script", "report-N"] {
            let Some(path) = case.references.get(name) else {
                continue;
            };
            // An event of several lines shows its stack: lines of it are not events.
            let Ok(ours) = FixtureQuestion::new().info_document(&case.path) else {
                continue;
            };
            if !ours["events"]
                .as_array()
                .is_some_and(|e| e.iter().any(|e| number(e, "count") > 0))
            {
                continue;
            }
            let what = format!("{} as text of {name}", case.name);
            let counts = |info: &Value| {
                let events = info["events"].as_array().cloned().unwrap_or_default();
                let mut counts: Vec<(String, u64)> = events
                    .iter()
                    .map(|e| {
                        (
                            e["name"].as_str().unwrap_or_default().to_owned(),
                            number(e, "count"),
                        )
                    })
                    .filter(|(_, count)| *count > 0)
                    .collect();
                counts.sort();
                counts
            };
            match FixtureQuestion::new().info_document(path) {
                Ok(text) => failures.equal(&what, &counts(&text), &counts(&ours)),
                Err(error) => failures.check(false, || format!("{what}: {error}")),
            }
        }
    }
    failures.finish(30);
}

/// The kernel's own trace file, of which there is no other form: its events are counted by their lines.
#[test]
fn the_kernels_own_text_is_counted_by_line() {
    let mut failures = Failures::default();
    for case in cases().into_iter().filter(|c| c.kind == "text") {
        let mut expected = std::collections::BTreeMap::<String, u64>::new();
        for line in std::io::BufRead::lines(open(&case.path)) {
            let line = line.expect("text");
            // `TASK-PID [CPU] FLAGS SECONDS: EVENT: ...`
            if line.starts_with('#') || !line.contains('[') {
                continue;
            }
            let Some((_, rest)) = line.split_once(": ") else {
                continue;
            };
            if let Some((event, _)) = rest.trim_start().split_once(':') {
                *expected.entry(event.to_owned()).or_default() += 1;
            }
        }
        if !case.name.contains("ftrace-trace.txt") && !case.name.starts_with("seed-text/case4") {
            continue;
        }
        let info = FixtureQuestion::new().info_document(&case.path);
        let info = info.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let events = info["events"].as_array().expect("events");
        let found = events.iter().filter(|e| number(e, "count") > 0);
        let found: std::collections::BTreeMap<String, u64> = found
            .map(|e| {
                (
                    e["name"].as_str().unwrap_or_default().to_owned(),
                    number(e, "count"),
                )
            })
            .collect();
        failures.equal(&case.name, &found, &expected);
        let exits = FixtureQuestion::new().exits_document(&case.path);
        let exits = exits.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        failures.check(number(&exits, "total_count") > 0, || {
            format!("{}: no exits", case.name)
        });
    }
    failures.finish(3);
}
