//! What a store has of exits, tasks, paths, findings and histograms is what the commands print, row by row. Sums of
//! vCPUs and single things are in `store`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use parquet::record::Field;
use serde_json::{Value, json};

use crate::common::Failures;
use crate::common::stores::{StoredRow, as_json, rows, run_json, stored, sweeping_recordings};

/// What a store's row says besides: whose it is, and what documents say once for all rows.
const OF_RECORDING: [&str; 4] = ["host", "run", "event", "isa"];

/// By what rows of a table are sorted; stages and sentences stay in the order of what they are of.
const KEYS: [&str; 5] = ["id", "path", "key", "pid", "comm"];

/// Returns what a row is sorted by.
fn key(value: &dyn Fn(&str) -> Value) -> String {
    KEYS.map(|column| value(column).to_string()).join(" ")
}

/// Holds rows of a store against those of a document; `printed` returns what a column is called there.
fn compare(
    failures: &mut Failures,
    what: &str,
    kept: &[StoredRow],
    printed: &[Value],
    of: impl Fn(&Value, &str) -> Value,
) {
    failures.equal(&format!("{what}: rows"), &kept.len(), &printed.len());
    // Tables of people are in an order that the command's options choose.
    let mut kept: Vec<&StoredRow> = kept.iter().collect();
    kept.sort_by_key(|row| key(&|column| row.get(column).map_or(Value::Null, as_json)));
    let mut printed: Vec<&Value> = printed.iter().collect();
    printed.sort_by_key(|row| key(&|column| row[column].clone()));
    for (row, printed) in kept.into_iter().zip(printed) {
        for (column, value) in row {
            if !OF_RECORDING.contains(&column.as_str()) {
                let (kept, printed) = (as_json(value), of(printed, column));
                // What reads JSON here is not exact in a number's last digit.
                let near = |one: f64, other: f64| (one - other).abs() <= 1e-15 * one.abs();
                let alike = match (&kept, kept.as_f64(), printed.as_f64()) {
                    (Value::Number(number), Some(one), Some(other)) if number.is_f64() => {
                        near(one, other)
                    }
                    _ => kept == printed,
                };
                failures.check(alike, || {
                    format!("{what}: {column}: {kept}, expected {printed}")
                });
            }
        }
    }
}

/// Returns a list of a document.
fn list(document: &Value, name: &str) -> Vec<Value> {
    document[name].as_array().cloned().unwrap_or_default()
}

/// Returns a column of a path as the document of paths has it.
fn of_path(path: &Value, column: &str) -> Value {
    let sum = |value: &Value| value["total_ns"].as_u64().unwrap_or(0);
    match column {
        "slow_count" => path["slow"]["count"].clone(),
        "slow_from_ns" => path["slow"]["threshold_ns"].clone(),
        "holder" => {
            let terms = list(path, "ledger");
            // Of two that took as long the first is named.
            let most = terms.iter().rev().max_by_key(|term| sum(term));
            most.map_or(Value::Null, |term| term["holder"].clone())
        }
        "dropped" => {
            let dropped = path["dropped"].as_object().into_iter().flatten();
            let all: u64 = dropped.filter_map(|(_, count)| count.as_u64()).sum();
            json!(all)
        }
        _ if path["total"].get(column).is_some() => path["total"][column].clone(),
        _ => path[column].clone(),
    }
}

/// Exits by each event that the recording has.
fn exits(failures: &mut Failures, name: &str, store: &Path, recording: &str) {
    let mut tables: BTreeMap<String, Vec<StoredRow>> = BTreeMap::new();
    for row in rows(store, "exit_rows") {
        if let Field::Str(event) = &row["event"] {
            tables.entry(event.clone()).or_default().push(row);
        }
    }
    for (event, kept) in tables {
        let printed = run_json(&["exits", "--event", &event, recording]);
        let isa = kept.first().map(|row| as_json(&row["isa"]));
        failures.equal(&format!("{name}: isa"), &isa.as_ref(), &printed.get("isa"));
        let what = format!("{name}: exits of {event}");
        compare(
            failures,
            &what,
            &kept,
            &list(&printed, "rows"),
            |row, column| row[column].clone(),
        );
    }
}

/// Paths, and their stages.
fn paths(failures: &mut Failures, name: &str, store: &Path, recording: &str) {
    let printed = run_json(&["paths", recording]);
    let kept = rows(store, "paths");
    if printed.is_null() {
        // A recording without any instance has none to print.
        let counts = kept.iter().map(|row| as_json(&row["count"]));
        let none = counts.filter(|count| *count != json!(0)).count();
        failures.equal(&format!("{name}: paths that are not printed"), &none, &0);
        return;
    }
    let printed = list(&printed, "paths");
    compare(
        failures,
        &format!("{name}: paths"),
        &kept,
        &printed,
        of_path,
    );
    let stages: Vec<Value> = printed
        .iter()
        .flat_map(|path| {
            let stages = list(path, "stages").into_iter();
            stages.map(|mut stage| {
                stage["path"] = path["path"].clone();
                stage["stage"] = stage["name"].take();
                stage
            })
        })
        .collect();
    let kept = rows(store, "stages");
    compare(
        failures,
        &format!("{name}: stages"),
        &kept,
        &stages,
        |stage, column| stage[column].clone(),
    );
}

/// Findings, and the sentences that show them.
fn findings(failures: &mut Failures, name: &str, store: &Path, recording: &str) {
    let printed = list(&run_json(&["diagnose", recording]), "findings");
    let kept = rows(store, "findings");
    compare(
        failures,
        &format!("{name}: findings"),
        &kept,
        &printed,
        |one, column| one[column].clone(),
    );
    let sentences: Vec<Value> = printed
        .iter()
        .flat_map(|one| {
            let all = list(one, "evidence").into_iter().enumerate();
            all.map(|(number, text)| json!({"id": one["id"], "n": number, "text": text}))
        })
        .collect();
    let kept = rows(store, "evidence");
    compare(
        failures,
        &format!("{name}: evidence"),
        &kept,
        &sentences,
        |one, column| one[column].clone(),
    );
}

/// Histograms have as many values as the sums that they are of.
fn histograms(failures: &mut Failures, name: &str, store: &Path) {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    let number = |field: &Field| as_json(field).as_i64().unwrap_or(0);
    for row in rows(store, "hists") {
        let metric = as_json(&row["metric"]);
        let metric = metric.as_str().unwrap_or_default().to_owned();
        // Ticks have no bounds in nanoseconds.
        let bounds = [&row["low_ns"], &row["high_ns"]].map(|bound| as_json(bound).as_i64());
        let wide = matches!(bounds, [None, None])
            || matches!(bounds, [Some(low), Some(high)] if low < high);
        failures.check(wide, || format!("{name}: {metric}: a bucket of {bounds:?}"));
        *counts.entry(metric).or_default() += number(&row["count"]);
    }
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    let mut add = |metric: String, count: i64| *expected.entry(metric).or_default() += count;
    for path in rows(store, "paths") {
        let path_name = as_json(&path["path"]);
        add(
            path_name.as_str().unwrap_or_default().to_owned(),
            number(&path["count"]),
        );
    }
    for vcpu in rows(store, "vcpus") {
        add("vcpu-wait".to_owned(), number(&vcpu["waits"]));
    }
    let metrics: BTreeSet<&String> = expected.keys().collect();
    for metric in metrics {
        let kept = counts.get(metric).copied().unwrap_or(0);
        failures.equal(
            &format!("{name}: values of {metric}"),
            &kept,
            &expected[metric],
        );
    }
}

#[test]
fn sums_are_those_of_documents() {
    let mut failures = Failures::default();
    for (name, path) in sweeping_recordings() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("fleet");
        stored(&store, &path, &[]);
        let recording = path.to_str().expect("a path");
        exits(&mut failures, &name, &store, recording);
        let printed = list(&run_json(&["sched", recording]), "rows");
        let kept = rows(&store, "tasks");
        let what = format!("{name}: tasks");
        compare(&mut failures, &what, &kept, &printed, |row, column| {
            row[column].clone()
        });
        paths(&mut failures, &name, &store, recording);
        findings(&mut failures, &name, &store, recording);
        histograms(&mut failures, &name, &store);
    }
    failures.finish(1000);
}
