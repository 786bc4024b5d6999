//! The documents of recordings are the contract's: these fields, in this order, of these types. CSV parses, and has the
//! same numbers.

use std::collections::BTreeMap;

use analysis::{ExitTable, RowSplit};
use fixtures::csv::csv_cells;
use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, case, cases};
use render::ClockUnit;
use serde_json::Value;

/// How many fields every document begins with: version, form, command, inputs, quality.
const ENVELOPE: usize = 5;
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
/// What stands behind them: where the row's time went, which adds up to its total; how much of its time the vCPU slept;
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
const NAMED: [&str; 2] = ["vm_name", "vm"];
/// What `--by task` puts behind that.
const TASK: [&str; 3] = ["task_what", "task_name", "task_tid"];
/// What `--by function` puts behind that.
const FUNCTION: [&str; 2] = ["function", "function_address"];

/// What stands behind all of these.
const DOUBTS: &str = "doubts";

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object();
    object
        .map(|o| o.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// Returns the fields of a document's own part.
fn own_part(document: &Value) -> Vec<&str> {
    keys(document).split_off(ENVELOPE)
}

/// Asks for all tables of exits.
fn four_tables() -> FixtureQuestion {
    use ExitTable::{Ioport, Mmio, Msr, Vmexit};
    let all = [Vmexit, Ioport, Mmio, Msr].into_iter();
    all.fold(FixtureQuestion::new(), FixtureQuestion::table)
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
        ("host", is_optional(&info["host"], Value::is_string)),
        (
            "started_unix_ns",
            is_optional(&info["started_unix_ns"], Value::is_u64),
        ),
        (
            "time_source",
            info["time_source"].is_string() == info["started_unix_ns"].is_u64(),
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
            fields.extend(NAMED);
            failures.check(row["vm"].is_string(), || format!("{what}: {row}"));
        }
        fields.push(DOUBTS);
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
        let asked = FixtureQuestion::new();
        let Ok(info) = asked.info_document(&case.path) else {
            // A fragment of text that is no list of events.
            failures.check(case.kind == "text", || format!("{name}: info"));
            continue;
        };
        let what = format!("{name}: info");
        failures.equal(&what, &own_part(&info), &INFO.to_vec());
        info_types(&mut failures, &what, &info);

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
        let exits = asked
            .exits_document(&case.path)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        failures.equal(&what, &own_part(&exits), &EXITS.to_vec());
        failures.equal(&what, &exits["event"].as_str(), &Some("vmexit"));
        table_types(&mut failures, &what, &exits, &[]);

        // The contract has one table a document: with several, the first is where it says, and all follow.
        let what = format!("{name}: exits of four tables");
        let several = four_tables().exits_document(&case.path);
        let several = several.unwrap_or_else(|e| panic!("{what}: {e}"));
        let own = own_part(&several);
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
        let by = FixtureQuestion::new().by(RowSplit {
            vm: true,
            vcpu: true,
            ..RowSplit::default()
        });
        let by = by.exits_document(&case.path).expect("exits");
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
    failures.finish(3500);
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
        let asked = four_tables().by(RowSplit {
            vcpu: true,
            ..RowSplit::default()
        });
        let document = asked.exits_document(&path).expect("exits");
        let (isa, reports, _) = asked.exits(&path).expect("exits");
        let rows = csv_cells(&render::exits::csv(isa, &reports, ClockUnit::Nanoseconds));
        let head: Vec<&str> = ["event", "isa"]
            .into_iter()
            .chain(GROUP)
            .chain(ROW)
            .chain(SPLIT)
            .chain(NAMED)
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
                        .chain(&NAMED)
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
    }
    failures.finish(300);
}
