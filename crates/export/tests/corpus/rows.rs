//! Rows of spans and exits add up to what the tables say.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::ExitTable;
use fixtures::csv::csv_rows;
use fixtures::json::{STATE_FIELDS, number};
use fixtures::{Failures, FileForm, FixtureQuestion, case, cases};

fn ns(row: &BTreeMap<String, String>, column: &str) -> u64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

/// The same of a column that is empty where the recording cannot show it.
fn known_ns(row: &BTreeMap<String, String>, column: &str) -> u64 {
    match row[column].is_empty() {
        true => 0,
        false => ns(row, column),
    }
}

/// Sums of rows against what `vcpus` says.
fn spans_agree(failures: &mut Failures, what: &str, path: &Path) {
    let asked = FixtureQuestion::new();
    let spans = asked.exported_text(path, FileForm::Spans).ok();
    let document = asked.vcpus_document(path);
    let (Some(spans), Ok(document)) = (&spans, &document) else {
        return failures.check(spans.is_none() && document.is_err(), || what.to_owned());
    };
    let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for row in csv_rows(spans) {
        assert_eq!(
            ns(&row, "end_ns") - ns(&row, "start_ns"),
            ns(&row, "duration_ns")
        );
        // Those of a thread come in order.
        let end = last.insert(row["tid"].clone(), ns(&row, "end_ns"));
        assert!(
            end.is_none_or(|end| end <= ns(&row, "start_ns")),
            "{what}: {row:?}"
        );
        let state = row["state"]
            .strip_suffix("_blocked")
            .unwrap_or(&row["state"]);
        let key = (row["tid"].clone(), state.to_owned());
        *found.entry(key).or_default() += ns(&row, "duration_ns");
    }
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in document["rows"].as_array().expect("rows") {
        for field in STATE_FIELDS {
            let state = field.strip_suffix("_ns").expect("nanoseconds");
            let sum = number(row, field);
            if sum > 0 {
                *expected
                    .entry((row["tid"].to_string(), state.to_owned()))
                    .or_default() += sum;
            }
        }
    }
    failures.equal(&format!("{what}: spans"), &found, &expected);
}

fn exits_agree(failures: &mut Failures, what: &str, path: &Path) {
    let asked = FixtureQuestion::new();
    let Ok(exits) = asked.exported_text(path, FileForm::Exits) else {
        return;
    };
    let Ok(document) = asked.exits_document(path) else {
        // Of a recording without KVM's events there is no exit in either.
        return failures.equal(what, &csv_rows(&exits).len(), &0);
    };
    let blocked = ["kernel_blocked_ns", "user_blocked_ns"];
    let fields = [&["duration_ns"], &STATE_FIELDS[..], &blocked].concat();
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in csv_rows(&exits) {
        let sums = found
            .entry(row["reason"].clone())
            .or_insert_with(|| vec![0; fields.len() + 1]);
        sums[0] += 1;
        for (sum, field) in sums.iter_mut().skip(1).zip(&fields) {
            *sum += known_ns(&row, field);
        }
    }
    let mut expected = BTreeMap::new();
    for row in document["rows"].as_array().expect("rows") {
        let key = row["key"].as_str().expect("a key").to_owned();
        let mut sums = vec![number(row, "count"), number(row, "total_ns")];
        sums.extend(fields.iter().skip(1).map(|field| number(row, field)));
        expected.insert(key, sums);
    }
    failures.equal(&format!("{what}: exits"), &found, &expected);
}

#[test]
fn rows_add_up_to_what_the_tables_say() {
    let mut failures = Failures::default();
    for case in cases() {
        spans_agree(&mut failures, &case.name, &case.path);
        exits_agree(&mut failures, &case.name, &case.path);
    }
    failures.finish(30);
}

/// Which exit a row is: the access and the device behind it, and who handled it.
#[test]
fn exits_say_which_access_made_them() {
    let path = case("x86/clocksource-acpi_pm/loop/perf.data.guest.zst").path;
    let text = FixtureQuestion::new().exported_text(&path, FileForm::Exits);
    let rows = csv_rows(&text.expect("exits"));
    let timer = rows.iter().filter(|row| row["access"] == "0x608:PIN");
    let timer: Vec<_> = timer.collect();
    let asked = FixtureQuestion::new().table(ExitTable::Ioport);
    let document = asked.exits_document(&path).expect("exits");
    let document = document["rows"].as_array().expect("rows").iter();
    let document = document
        .filter(|row| row["key"] == "0x608:PIN")
        .map(|row| number(row, "count"));
    assert_eq!(timer.len() as u64, document.sum::<u64>());
    assert!(
        timer
            .iter()
            .all(|row| row["device"] == "acpi-tmr" && row["waiting"] == "false")
    );
}
