//! Every command's document begins as the contract says, and has the parts that it says; CSV parses, and has the JSON's
//! numbers. What is in tables is in `crates/render/tests/corpus/contract.rs`.

use std::path::Path;

use fixtures::csv::csv_cells;
use serde_json::Value;

use crate::common::{Failures, case, cases, json, run};

/// What every document begins with.
const ENVELOPE: [&str; 5] = ["trapline", "schema", "command", "inputs", "quality"];
const QUALITY: [&str; 5] = [
    "lost_events",
    "truncated",
    "warnings",
    "doubts",
    "accounted",
];
const INFO: [&str; 11] = [
    "format",
    "arch",
    "kernel",
    "cpus",
    "start_ns",
    "duration_ns",
    "host",
    "started_unix_ns",
    "time_source",
    "events",
    "vms",
];

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object();
    object
        .map(|o| o.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// Checks the head of a document and returns its own part's fields.
fn own_part<'v>(
    failures: &mut Failures,
    what: &str,
    document: &'v Value,
    command: &str,
) -> Vec<&'v str> {
    let all = keys(document);
    let (head, own) = all.split_at(ENVELOPE.len().min(all.len()));
    failures.equal(&format!("{what}: begins"), &head, &&ENVELOPE[..]);
    failures.equal(what, &document["command"].as_str(), &Some(command));
    let version = document["trapline"].as_str();
    failures.equal(what, &version, &Some(env!("CARGO_PKG_VERSION")));
    let inputs = document["inputs"].as_array();
    let inputs = inputs.is_some_and(|i| !i.is_empty() && i.iter().all(Value::is_string));
    failures.check(inputs, || format!("{what}: inputs {}", document["inputs"]));
    let quality = &document["quality"];
    failures.equal(
        &format!("{what}: quality"),
        &keys(quality),
        &QUALITY.to_vec(),
    );
    let warnings = quality["warnings"].as_array();
    let typed = quality["lost_events"].is_u64()
        && quality["truncated"].is_boolean()
        && warnings.is_some_and(|w| w.iter().all(Value::is_string));
    failures.check(typed, || format!("{what}: quality {quality}"));
    // Warnings are the doubts' texts, and all that is read is counted.
    let doubts = quality["doubts"].as_array().into_iter().flatten();
    let texts: Vec<&Value> = doubts.clone().map(|doubt| &doubt["text"]).collect();
    let same = warnings.is_some_and(|all| all.iter().collect::<Vec<_>>() == texts);
    failures.check(same, || format!("{what}: doubts {quality}"));
    let known = |doubt: &Value| {
        let severity = doubt["severity"].as_str();
        let severity = matches!(severity, Some("note" | "warning" | "serious"));
        severity && doubt["id"].is_string() && doubt["concerns"].is_array()
    };
    failures.check(doubts.clone().all(known), || {
        format!("{what}: doubts {quality}")
    });
    let accounted = &quality["accounted"];
    failures.check(accounted.is_null() || *accounted == 1.0, || {
        format!("{what}: accounted {accounted}")
    });
    own.to_vec()
}

#[test]
fn documents_have_the_contracts_fields() {
    let mut failures = Failures::default();
    for case in cases() {
        let name = &case.name;
        let Ok(info) = json(&["info"], &case.path) else {
            // A fragment of text that is no list of events.
            failures.check(case.kind == "text", || format!("{name}: info"));
            continue;
        };
        let what = format!("{name}: info");
        let own = own_part(&mut failures, &what, &info, "info");
        failures.equal(&what, &own, &INFO.to_vec());

        let what = format!("{name}: report");
        let report = json(&["report"], &case.path).unwrap_or_else(|e| panic!("{what}: {e}"));
        own_part(&mut failures, &what, &report, "report");

        let what = format!("{name}: export");
        let export = json(&["export"], &case.path).unwrap_or_else(|e| panic!("{what}: {e}"));
        let own = own_part(&mut failures, &what, &export, "export");
        // What nothing was recorded for is left out.
        let parts = ["exits", "vcpus", "sched", "irqs", "paths", "findings"].into_iter();
        let parts = parts.filter(|part| own.contains(part));
        let fields: Vec<&str> = INFO.into_iter().chain(parts).collect();
        failures.equal(&what, &own, &fields);
        failures.check(own.len() >= INFO.len() + 3, || what.clone());
    }
    failures.finish(1500);
}

fn csv_of(args: &[&str], path: &Path) -> Vec<Vec<String>> {
    let path = path.to_string_lossy();
    let mut all = vec![args[0], path.as_ref(), "--format", "csv"];
    all.extend_from_slice(&args[1..]);
    let run = run(all);
    assert_eq!(run.status, 0, "{path}: {}", run.stderr);
    csv_cells(&run.text())
}

#[test]
fn csv_has_the_numbers_of_the_json() {
    let mut failures = Failures::default();
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "x86/format-variants/v7.dat.zst",
        "arm64/two-guests-mmio/perf.data.guest.zst",
    ] {
        let path = case(name).path;
        let info = json(&["info"], &path).expect("info");
        let rows = csv_of(&["info"], &path);
        let events = info["events"].as_array().expect("events");
        failures.equal(&format!("{name}: info"), &rows.len(), &(events.len() + 1));
        for (row, event) in rows[1..].iter().zip(events) {
            let expected = [
                event["name"].as_str().unwrap_or_default().to_owned(),
                event["count"].to_string(),
            ];
            failures.equal(name, row, &expected.to_vec());
        }

        let events = json(&["events"], &path).expect("events");
        let events = events["events"].as_array().expect("events");
        let rows = csv_of(&["events"], &path);
        failures.equal(&format!("{name}: events"), &rows.len(), &(events.len() + 1));
        for (row, event) in rows[1..].iter().zip(events) {
            let time: Option<u64> = row[0].parse().ok();
            failures.equal(name, &time, &event["time_ns"].as_u64());
            let text = event["text"].as_str().unwrap_or_default();
            failures.equal(name, &row.last().map(String::as_str), &Some(text));
        }
    }
    failures.finish(10_000);
}

/// A table on a terminal, JSON and CSV: every command has all three.
#[test]
fn every_command_has_every_format() {
    let mut failures = Failures::default();
    let path = case("vmx/tiny-irqchip/perf.data.kvmstat.zst").path;
    for command in ["info", "events", "exits", "vcpus", "report"] {
        let table = run([command.as_ref(), path.as_os_str()]);
        let again = run([
            command.as_ref(),
            "--format".as_ref(),
            "table".as_ref(),
            path.as_os_str(),
        ]);
        failures.equal(command, &table.status, &0);
        failures.check(table.stdout == again.stdout, || {
            format!("{command}: table is the default")
        });
        failures.check(json(&[command], &path).is_ok(), || {
            format!("{command}: JSON")
        });
        let rows = csv_of(&[command], &path);
        let columns = rows[0].len();
        failures.check(
            rows.len() > 2 && rows.iter().all(|r| r.len() == columns),
            || format!("{command}: CSV rows are of one length"),
        );
    }
    failures.finish(20);
}
