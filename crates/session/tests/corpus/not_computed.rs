//! What was not computed is null in JSON and empty in CSV, and never 0: what a recording cannot show, and the
//! percentiles, means and extremes of nothing. What was measured as 0 stays 0.

use fixtures::json::{STATE_FIELDS, list, number};
use serde_json::Value;

use fixtures::csv::csv_cells;
use fixtures::{Failures, FixtureQuestion, cases};
use render::ClockUnit;

fn rows<'d>(document: &'d Value, list: &str) -> &'d [Value] {
    document[list].as_array().map_or(&[], Vec::as_slice)
}

fn has_doubt(document: &Value, id: &str) -> bool {
    rows(&document["quality"], "doubts")
        .iter()
        .any(|doubt| doubt["id"] == id)
}

/// Checks rows with time by state: of what the document says cannot be known no row has 0.
fn states(failures: &mut Failures, what: &str, document: &Value, part: &Value) {
    for one in rows(part, "unknowable") {
        let why = one["why"].as_str().unwrap_or_default();
        for field in rows(one, "fields").iter().filter_map(Value::as_str) {
            for row in rows(part, "rows") {
                failures.check(row.get(field).is_some_and(|ns| *ns != 0), || {
                    format!("{what}: {field} is {} in {row}", row[field])
                });
            }
        }
        let texts = rows(&document["quality"], "warnings")
            .iter()
            .filter_map(Value::as_str);
        let said = texts.filter(|text| text.contains(why)).count();
        failures.check(rows(part, "rows").is_empty() || said == 1, || {
            format!("{what}: no doubt says '{why}'")
        });
    }
    // And what can be known is a number.
    let unknown: Vec<&str> = rows(part, "unknowable")
        .iter()
        .flat_map(|one| rows(one, "fields"))
        .filter_map(Value::as_str)
        .collect();
    for state in STATE_FIELDS.iter().filter(|state| !unknown.contains(state)) {
        for row in rows(part, "rows") {
            failures.check(row[*state].is_u64(), || format!("{what}: {state} of {row}"));
        }
    }
}

/// Checks that something of durations is there where there are any, and null where there are none.
fn of_any(failures: &mut Failures, what: &str, row: &Value, count: &str, fields: &[&str]) {
    for field in fields {
        let known = number(row, count) > 0;
        failures.check(
            row[*field].is_u64() == known && row.get(*field).is_some(),
            || {
                format!(
                    "{what}: {field} is {} of {} in {row}",
                    row[*field], row[count]
                )
            },
        );
    }
}

#[test]
fn nothing_that_was_not_computed_is_0() {
    let mut failures = Failures::default();
    let (mut unknown, mut measured) = (0, 0);
    for case in cases() {
        let name = &case.name;
        if let Ok(vcpus) = FixtureQuestion::new().vcpus_document(&case.path) {
            states(&mut failures, &format!("{name}: vcpus"), &vcpus, &vcpus);
            for row in rows(&vcpus, "rows") {
                let fields = ["p50_ns", "p90_ns", "p99_ns", "max_ns"];
                of_any(
                    &mut failures,
                    &format!("{name}: waits"),
                    &row["waits"],
                    "count",
                    &fields,
                );
                unknown += u64::from(row["runnable_ns"].is_null());
                measured += u64::from(row["runnable_ns"] == 0);
            }
        }
        if let Ok(exits) = FixtureQuestion::new().exits_document(&case.path) {
            states(&mut failures, &format!("{name}: exits"), &exits, &exits);
        }
        if let Ok(sched) = FixtureQuestion::new().sched_document(&case.path) {
            let what = format!("{name}: sched");
            let (runtimes, wakeups) = (
                !has_doubt(&sched, "no-runtimes"),
                !has_doubt(&sched, "no-wakeups"),
            );
            for row in rows(&sched, "rows") {
                failures.equal(&what, &row["runtime_ns"].is_u64(), &runtimes);
                failures.equal(&what, &row["woken_waits"].is_u64(), &wakeups);
                let fields = [
                    "delay_mean_ns",
                    "delay_max_ns",
                    "delay_p50_ns",
                    "delay_p90_ns",
                    "delay_p99_ns",
                ];
                of_any(&mut failures, &what, row, "switches", &fields);
                of_any(
                    &mut failures,
                    &what,
                    row,
                    "woken_waits",
                    &["woken_wait_p99_ns", "woken_wait_max_ns"],
                );
                of_any(
                    &mut failures,
                    &what,
                    row,
                    "preempted",
                    &["preempted_max_ns"],
                );
            }
            for row in rows(&sched, "cpus") {
                failures.equal(&what, &row["wakeups"].is_u64(), &wakeups);
                of_any(
                    &mut failures,
                    &what,
                    row,
                    "switches",
                    &["busy_ns", "idle_ns"],
                );
                of_any(
                    &mut failures,
                    &what,
                    row,
                    "delays",
                    &["delay_mean_ns", "delay_max_ns"],
                );
            }
        }
        let paths = FixtureQuestion::new().paths_document(&case.path);
        for path in paths.iter().flat_map(|document| rows(document, "paths")) {
            let mut total = path["total"].clone();
            total["count"] = path["count"].clone();
            let fields = ["p50_ns", "p90_ns", "p99_ns", "max_ns", "min_ns", "mean_ns"];
            of_any(
                &mut failures,
                &format!("{name}: {}", path["path"]),
                &total,
                "count",
                &fields,
            );
        }
    }
    // Both occur, so that neither check is of nothing.
    failures.check(unknown > 2 && measured > 2, || {
        format!("{unknown} unknown and {measured} measured as 0")
    });
    failures.finish(1000);
}

#[test]
fn csv_is_empty_where_json_is_null() {
    let mut failures = Failures::default();
    for case in cases() {
        let asked = FixtureQuestion::new();
        let clock = ClockUnit::Nanoseconds;
        let vcpus = asked
            .vcpus_document(&case.path)
            .ok()
            .zip(asked.vcpus(&case.path).ok());
        let vcpus =
            vcpus.map(|(document, (report, _))| (document, render::vcpus::csv(&report, clock)));
        let sched = asked
            .sched_document(&case.path)
            .ok()
            .zip(asked.sched(&case.path).ok());
        let sched =
            sched.map(|(document, (report, _))| (document, render::sched::csv(&report, clock)));
        for (table, fields) in [
            (vcpus, ["poll_ns", "runnable_ns", "user_ns"]),
            (sched, ["runtime_ns", "delay_mean_ns", "woken_waits"]),
        ] {
            let Some((document, text)) = table else {
                continue;
            };
            let rows = csv_cells(&text);
            let of_json = list(&document["rows"]);
            failures.equal(&case.name, &rows.len(), &(of_json.len() + 1));
            for field in fields {
                let at = rows[0].iter().position(|name| name == field);
                let at = at.expect("a column");
                for (row, of_json) in rows[1..].iter().zip(of_json) {
                    let value = match &of_json[field] {
                        Value::Null => String::new(),
                        value => value.to_string(),
                    };
                    failures.equal(&format!("{}: {field}", case.name), &row[at], &value);
                }
            }
        }
    }
    failures.finish(100);
}
