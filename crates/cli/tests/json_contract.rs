//! The JSON of every command is the contract's: these fields, in this order, of these types. CSV parses,
//! and has the JSON's numbers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Failures, case, cases, json, number, run};
use serde_json::Value;

/// What every document begins with.
const ENVELOPE: [&str; 5] = ["trapline", "schema", "command", "inputs", "quality"];
const QUALITY: [&str; 5] = [
    "lost_events",
    "truncated",
    "warnings",
    "doubts",
    "accounted",
];
const INFO: [&str; 8] = [
    "format",
    "arch",
    "kernel",
    "cpus",
    "start_ns",
    "duration_ns",
    "events",
    "vms",
];
const EXITS: [&str; 7] = [
    "event",
    "isa",
    "rows",
    "total_count",
    "total_ns",
    "handling_ns",
    "unknowable",
];
const ROW: [&str; 12] = [
    "key", "name", "waiting", "count", "share", "total_ns", "min_ns", "mean_ns", "max_ns",
    "p50_ns", "p90_ns", "p99_ns",
];
/// What stands behind them: where the row's time went, which adds up to its total; what of it the vCPU slept;
/// and who handled it.
const SPLIT: [&str; 11] = [
    "guest_ns",
    "kernel_ns",
    "user_ns",
    "poll_ns",
    "halted_ns",
    "runnable_ns",
    "unknown_ns",
    "kernel_blocked_ns",
    "user_blocked_ns",
    "user_count",
    "handled_by",
];
/// How many of those add up.
const STATES: usize = 7;
/// What `--by` puts before a row's own fields.
const GROUP: [&str; 2] = ["vm_pid", "vcpu"];
/// What it puts behind them.
const NAMED: &str = "vm_name";
/// What `--by task` puts behind that.
const TASK: [&str; 3] = ["task_what", "task_name", "task_tid"];
/// What `--by function` puts behind that.
const FUNCTION: [&str; 2] = ["function", "function_address"];

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

fn is_optional(value: &Value, is: fn(&Value) -> bool) -> bool {
    value.is_null() || is(value)
}

/// Checks the parts that `info` has, alone or inside a report.
fn info_types(failures: &mut Failures, what: &str, info: &Value) {
    for (field, holds) in [
        ("format", info["format"].is_string()),
        ("arch", is_optional(&info["arch"], Value::is_string)),
        ("kernel", is_optional(&info["kernel"], Value::is_string)),
        ("cpus", info["cpus"].is_u64()),
        ("start_ns", is_optional(&info["start_ns"], Value::is_u64)),
        (
            "duration_ns",
            is_optional(&info["duration_ns"], Value::is_u64),
        ),
    ] {
        failures.check(holds, || format!("{what}: {field} is {}", info[field]));
    }
    for event in info["events"].as_array().into_iter().flatten() {
        failures.equal(
            &format!("{what}: event"),
            &keys(event),
            &vec!["name", "count"],
        );
        let typed = event["name"].is_string() && event["count"].is_u64();
        failures.check(typed, || format!("{what}: event {event}"));
    }
    for vm in info["vms"].as_array().into_iter().flatten() {
        // A guess is called one.
        let mut fields = vec!["pid", "name", "vcpus"];
        if vm["guessed"] == true {
            fields.push("guessed");
        }
        failures.equal(&format!("{what}: VM"), &keys(vm), &fields);
        let typed =
            is_optional(&vm["pid"], Value::is_u64) && is_optional(&vm["name"], Value::is_string);
        failures.check(typed, || format!("{what}: VM {vm}"));
        for vcpu in vm["vcpus"].as_array().into_iter().flatten() {
            failures.equal(&format!("{what}: vCPU"), &keys(vcpu), &vec!["id", "tid"]);
            let typed = vcpu["id"].is_u64() && vcpu["tid"].is_u64();
            failures.check(typed, || format!("{what}: vCPU {vcpu}"));
        }
    }
}

/// Checks one table of exits.
fn table_types(failures: &mut Failures, what: &str, table: &Value, groups: &[&str]) {
    let isa = is_optional(&table["isa"], Value::is_string);
    failures.check(isa, || format!("{what}: isa {}", table["isa"]));
    let (mut count, mut total, mut handling, mut shares) = (0, 0, 0, 0.0);
    for row in table["rows"].as_array().into_iter().flatten() {
        let mut fields: Vec<&str> = groups.iter().chain(&ROW).chain(&SPLIT).copied().collect();
        if !groups.is_empty() {
            fields.push(NAMED);
            failures.check(row[NAMED].is_string(), || format!("{what}: {row}"));
        }
        failures.equal(&format!("{what}: row"), &keys(row), &fields);
        let states = SPLIT[..STATES].iter().map(|state| number(row, state));
        failures.equal(
            &format!("{what}: states of {}", row["key"]),
            &states.sum::<u64>(),
            &number(row, "total_ns"),
        );
        failures.equal(what, &number(row, "guest_ns"), &0);
        for (part, of) in [
            ("kernel_blocked_ns", "kernel_ns"),
            ("user_blocked_ns", "user_ns"),
            ("user_count", "count"),
        ] {
            failures.check(number(row, part) <= number(row, of), || {
                format!("{what}: {part} of {row}")
            });
        }
        let by = row["handled_by"].as_str();
        let of_users = match number(row, "user_count") {
            0 => "kernel",
            n if n == number(row, "count") => "user",
            _ => "both",
        };
        failures.check(by.is_none_or(|by| by == of_users), || {
            format!("{what}: handled_by of {row}")
        });
        let typed = row["key"].is_string()
            && row["name"].is_string()
            && row["waiting"].is_boolean()
            && row["share"].is_f64()
            && ROW
                .iter()
                .filter(|f| f.ends_with("_ns") || **f == "count")
                .all(|f| row[*f].is_u64())
            && groups.iter().all(|g| is_optional(&row[*g], Value::is_u64));
        failures.check(typed, || format!("{what}: row {row}"));
        let ns = |name: &str| number(row, name);
        let times = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"].map(ns);
        failures.check(times.is_sorted(), || format!("{what}: times of {row}"));
        let mean = ns("mean_ns");
        failures.check(times[0] <= mean && mean <= times[4], || {
            format!("{what}: mean of {row}")
        });
        count += number(row, "count");
        total += number(row, "total_ns");
        shares += row["share"].as_f64().unwrap_or(f64::NAN);
        if row["waiting"] == Value::Bool(false) {
            handling += number(row, "total_ns");
        }
    }
    failures.equal(
        &format!("{what}: total_count"),
        &number(table, "total_count"),
        &count,
    );
    failures.equal(
        &format!("{what}: total_ns"),
        &number(table, "total_ns"),
        &total,
    );
    failures.equal(
        &format!("{what}: handling_ns"),
        &number(table, "handling_ns"),
        &handling,
    );
    failures.check(count == 0 || (shares - 1.0).abs() < 1e-9, || {
        format!("{what}: shares add up to {shares}")
    });
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
        info_types(&mut failures, &what, &info);

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

        let has_exits = info["events"].as_array().is_some_and(|events| {
            let is_exit = |e: &&Value| e["name"].as_str().is_some_and(|n| n.ends_with("kvm_exit"));
            events
                .iter()
                .filter(is_exit)
                .any(|e| number(e, "count") > 0)
        });
        if !has_exits {
            continue;
        }
        let what = format!("{name}: exits");
        let exits = json(&["exits"], &case.path).unwrap_or_else(|e| panic!("{what}: {e}"));
        let own = own_part(&mut failures, &what, &exits, "exits");
        failures.equal(&what, &own, &EXITS.to_vec());
        failures.equal(&what, &exits["event"].as_str(), &Some("vmexit"));
        table_types(&mut failures, &what, &exits, &[]);

        // The contract has one table a document: with several, the first is where it says, and all follow.
        let what = format!("{name}: exits of four tables");
        let several = json(&["exits", "--event", "vmexit,ioport,mmio,msr"], &case.path);
        let several = several.unwrap_or_else(|e| panic!("{what}: {e}"));
        let own = own_part(&mut failures, &what, &several, "exits");
        let fields: Vec<&str> = EXITS.iter().copied().chain(["tables"]).collect();
        failures.equal(&what, &own, &fields);
        let tables = several["tables"].as_array().cloned().unwrap_or_default();
        let events: Vec<&str> = tables.iter().filter_map(|t| t["event"].as_str()).collect();
        failures.equal(&what, &events, &vec!["vmexit", "ioport", "mmio", "msr"]);
        for table in &tables {
            failures.equal(&what, &keys(table), &EXITS.to_vec());
            table_types(&mut failures, &what, table, &[]);
        }
        failures.equal(&what, &several["rows"], &exits["rows"]);

        let what = format!("{name}: exits by vCPU");
        let by = json(&["exits", "--by", "vm,vcpu"], &case.path).expect("exits");
        table_types(&mut failures, &what, &by, &GROUP);
        failures.equal(&what, &by["total_count"], &exits["total_count"]);
        failures.equal(&what, &by["total_ns"], &exits["total_ns"]);
        let mut sums = BTreeMap::<String, u64>::new();
        for row in by["rows"].as_array().into_iter().flatten() {
            *sums.entry(row["key"].to_string()).or_default() += number(row, "count");
        }
        for row in exits["rows"].as_array().into_iter().flatten() {
            let sum = sums.get(&row["key"].to_string()).copied().unwrap_or(0);
            failures.equal(
                &format!("{what} {}", row["key"]),
                &sum,
                &number(row, "count"),
            );
        }
    }
    failures.finish(5000);
}

/// Reads comma separated values: fields may be quoted, with quotes doubled, and then hold line breaks.
fn csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut field = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                assert!(field.is_empty(), "a quote inside a field");
                loop {
                    match chars.next().expect("a closing quote") {
                        '"' if chars.peek() == Some(&'"') => {
                            chars.next();
                            field.push('"');
                        }
                        '"' => break,
                        c => field.push(c),
                    }
                }
            }
            ',' => row.push(std::mem::take(&mut field)),
            '\r' => {}
            '\n' => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(field.is_empty() && row.is_empty(), "the last line ends");
    rows
}

fn csv_of(args: &[&str], path: &Path) -> Vec<Vec<String>> {
    let path = path.to_string_lossy();
    let mut all = vec![args[0], path.as_ref(), "--format", "csv"];
    all.extend_from_slice(&args[1..]);
    let run = run(all);
    assert_eq!(run.status, 0, "{path}: {}", run.stderr);
    csv(&run.text())
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
        let args = ["exits", "--event", "vmexit,ioport,mmio,msr", "--by", "vcpu"];
        let document = json(&args, &path).expect("exits");
        let rows = csv_of(&args, &path);
        let head: Vec<&str> = ["event", "isa"]
            .into_iter()
            .chain(GROUP)
            .chain(ROW)
            .chain(SPLIT)
            .chain([NAMED])
            .chain(TASK)
            .chain(FUNCTION)
            .collect();
        failures.equal(
            &format!("{name}: head"),
            &rows[0],
            &head.iter().map(|s| (*s).to_owned()).collect(),
        );
        let mut expected = Vec::new();
        for table in document["tables"].as_array().expect("tables") {
            for row in table["rows"].as_array().expect("rows") {
                let plain = |v: &Value| match v {
                    Value::String(s) => s.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                };
                let mut fields = vec![plain(&table["event"]), plain(&table["isa"])];
                fields.extend(
                    GROUP
                        .iter()
                        .chain(&ROW)
                        .chain(&SPLIT)
                        .chain(&[NAMED])
                        .chain(&TASK)
                        .chain(&FUNCTION)
                        .map(|field| plain(&row[*field])),
                );
                expected.push(fields);
            }
        }
        failures.equal(&format!("{name}: rows"), &rows.len(), &(expected.len() + 1));
        for (ours, expected) in rows[1..].iter().zip(&expected) {
            // Shares are written in either way of writing fractions.
            let share = |fields: &[String]| fields[8].parse::<f64>().expect("a share");
            failures.check((share(ours) - share(expected)).abs() < 1e-12, || {
                format!("{name}: {ours:?}")
            });
            failures.equal(name, &ours[..8].to_vec(), &expected[..8].to_vec());
            failures.equal(name, &ours[9..].to_vec(), &expected[9..].to_vec());
        }

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
