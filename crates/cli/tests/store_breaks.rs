//! What breaks stores of many files in engines, each of which happened to somebody, and does not break ours:
//!
//! - a key that stands in the path and in the file too: [`a_day_is_in_paths_alone`];
//! - a file that was cut off or damaged: [`a_broken_file_is_left_out_of_any_table`];
//! - a page that was damaged: [`a_damaged_page_is_found_by_a_check`];
//! - what writers leave: [`leftovers_are_in_nobodys_way`];
//! - a column that was added later: [`columns_that_were_added_are_null_before`];
//! - sums beyond 64 bits: [`sums_are_exact_or_an_error`], and `fleet/src/checked_sums.rs`;
//! - integers that are divided by integers: `fleet/src/portable_sql.rs`;
//! - a text for people in a column that tables are joined by: [`a_vm_has_one_name_in_all_tables`];
//! - a recording without rows, as an error: [`a_recording_without_rows_is_one`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::writer::ColumnCloseResult;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::types::Type;
use serde_json::Value;

use crate::common::stores::{
    asked, columns_and_rows, engine, files, rows, stored, utf8, without_vms,
};
use crate::common::{Failures, Run, file, json, run};

/// Breaks a file.
type Damage = fn(&mut Vec<u8>);

/// The day of what [`stored`] stores.
const DAY: &str = "day=2026-11-23";

/// Returns the tables of a store.
fn tables(store: &Path) -> Vec<String> {
    let entries = fs::read_dir(store).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("UTF-8"));
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

/// Makes a store of two recordings of one day, with single things.
fn two_recordings(folder: &Path) -> PathBuf {
    let store = folder.join("fleet");
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "x86/preempted-sick/perf.data.zst",
    ] {
        stored(&store, &file(name), &["--detail"]);
    }
    store
}

/// Returns the one row that a question is answered with.
fn row(engine: &Path, sql: &str, store: &Path) -> (Value, Run) {
    let done = asked(engine, &["sql", "--json", sql, utf8(store)]);
    assert_eq!(done.status, 0, "{sql}: {}", done.stderr);
    let answer = done.json().expect("an answer");
    (answer["rows"][0].clone(), done)
}

/// Engines fail where `day` is in the path and in the file, and make one host of `host=007` and `host=7`.
#[test]
fn a_day_is_in_paths_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = two_recordings(folder.path());
    for path in files(&store) {
        let below = path.strip_prefix(&store).expect("below");
        let parts: Vec<&str> = below
            .iter()
            .map(|part| part.to_str().expect("UTF-8"))
            .collect();
        let [table, day, name] = parts[..] else {
            panic!("{}", below.display());
        };
        assert_eq!(day, DAY);
        assert!(!name.contains('='), "{name}");
        let (columns, _) = columns_and_rows(&store, table);
        assert_eq!(columns[..2], ["host", "run"], "{table}");
        assert!(!columns.iter().any(|column| column == "day"), "{table}");
    }
    let Some(engine) = engine() else { return };
    for table in tables(&store) {
        let sql = format!("SELECT max(day) AS day, count(host) AS n, count(*) AS all FROM {table}");
        let sql = sql.replace("AS all", "AS rows_n");
        let (row, _) = row(&engine, &sql, &store);
        assert_eq!(row["n"], row["rows_n"], "{table}");
        if row["rows_n"] != 0 {
            assert_eq!(row["day"], "2026-11-23", "{table}");
        }
    }
}

/// A file is named and left out, and the rest answers: whichever table it is of, and whatever is wrong with it.
#[test]
fn a_broken_file_is_left_out_of_any_table() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = two_recordings(folder.path());
    let all = files(&store);
    let damages: [(&str, Damage); 4] = [
        ("cut in half", |bytes| bytes.truncate(bytes.len() / 2)),
        ("empty", Vec::clear),
        // A file system that lost its power has the length of a file, and zeros.
        ("zeros behind its middle", |bytes| {
            let half = bytes.len() / 2;
            bytes[half..].fill(0);
        }),
        ("a damaged footer", |bytes| {
            let end = bytes.len() - 8;
            let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four"));
            let begins = end - usize::try_from(length).expect("a length");
            bytes[begins..end].fill(0xff);
        }),
    ];
    for table in tables(&store) {
        let broken = all.iter().find(|path| path.starts_with(store.join(&table)));
        let broken = broken.expect("a file");
        let name = broken
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let bytes = fs::read(broken).expect("it is there");
        let sql = format!("SELECT count(*) AS n FROM {table}");
        let whole = row(&engine, &sql, &store).0["n"]
            .as_u64()
            .expect("a number");
        let (_, kept) = columns_and_rows(&store, &table);
        assert_eq!(whole, kept.len() as u64, "{table}");
        fs::remove_file(broken).expect("removed");
        let others = match table.as_str() {
            // Nothing of a recording is read without its row.
            "runs" => 1,
            _ => columns_and_rows(&store, &table).1.len() as u64,
        };
        for (what, damage) in &damages {
            let mut damaged = bytes.clone();
            damage(&mut damaged);
            fs::write(broken, damaged).expect("written");
            let (answer, done) = row(&engine, &sql, &store);
            assert_eq!(answer["n"], others, "{table}: {what}");
            let document = done.json().expect("an answer");
            let left = document["left_out"].as_array().expect("files");
            let named = left.iter().any(|one| {
                one["file"]
                    .as_str()
                    .is_some_and(|file| file.ends_with(name) && file.starts_with(&table))
            });
            assert!(named, "{table}: {what}: {left:?}");
            assert!(
                done.stderr.contains(name),
                "{table}: {what}: {}",
                done.stderr
            );
            let screen = asked(&engine, &["fleet", utf8(&store)]);
            assert_eq!(screen.status, 0, "{table}: {what}: {}", screen.stderr);
            let said = format!("{}{}", screen.text(), screen.stderr);
            // The screen is made of sums: what it does not read it says nothing of.
            let read = ["runs", "facts", "findings", "vcpus", "paths", "tasks"].contains(&&*table);
            assert_eq!(said.contains(name), read, "{table}: {what}: {said}");
            let checked = run(["fleet", "--check", utf8(&store)]);
            assert_eq!(checked.status, 1, "{table}: {what}: {}", checked.text());
            assert!(
                checked.text().contains(name),
                "{table}: {what}: {}",
                checked.text()
            );
        }
        fs::write(broken, &bytes).expect("written");
    }
}

/// Behind a footer that is whole a page may be damaged: a question fails, and says what names the file.
#[test]
fn a_damaged_page_is_found_by_a_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = two_recordings(folder.path());
    assert_eq!(run(["fleet", "--check", utf8(&store)]).status, 0);
    let all = files(&store);
    let spans = all
        .iter()
        .filter(|path| path.starts_with(store.join("spans")));
    let spans = spans.max_by_key(|path| fs::metadata(path).map_or(0, |file| file.len()));
    let spans = spans.expect("a file");
    let mut bytes = fs::read(spans).expect("it is there");
    let half = bytes.len() / 2;
    for byte in bytes[100..half].iter_mut().step_by(50) {
        *byte ^= 0xff;
    }
    fs::write(spans, bytes).expect("written");
    let checked = run(["fleet", "--check", utf8(&store)]);
    assert_eq!(checked.status, 1, "{}", checked.text());
    let name = spans
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let said = checked.text();
    assert!(
        said.contains(name) && said.contains("a page of it is damaged"),
        "{said}"
    );
    let Some(engine) = engine() else { return };
    let sql = "SELECT max(state) AS state, sum(duration_ns) AS ns FROM spans";
    let done = asked(&engine, &["sql", sql, utf8(&store)]);
    assert_eq!(done.status, 1, "{}", done.text());
    assert!(done.stderr.contains("fleet --check"), "{}", done.stderr);
    let sql = "SELECT count(*) AS n FROM vcpus";
    assert_eq!(asked(&engine, &["sql", sql, utf8(&store)]).status, 0);
}

/// What a writer or a compaction left is not read, whatever its name.
#[test]
fn leftovers_are_in_nobodys_way() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = two_recordings(folder.path());
    let counts = |store: &Path| -> Vec<Value> {
        let of = |table: &String| {
            let sql = format!("SELECT count(*) AS n FROM {table}");
            let (row, done) = row(&engine, &sql, store);
            assert_eq!(
                done.json().expect("an answer")["left_out"],
                Value::Array(Vec::new())
            );
            row["n"].clone()
        };
        tables(store).iter().map(of).collect()
    };
    let before = counts(&store);
    for path in files(&store) {
        let bytes = fs::read(&path).expect("it is there");
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let day = path.parent().expect("a folder");
        // Whole ones would be counted twice, halves would end the engine.
        fs::write(day.join(format!(".{name}")), &bytes).expect("written");
        fs::write(
            day.join(format!("{name}.4711.tmp")),
            &bytes[..bytes.len() / 2],
        )
        .expect("written");
        let compacted = day.with_file_name(format!(".{DAY}.tmp"));
        fs::create_dir_all(&compacted).expect("made");
        fs::write(compacted.join("all.0.parquet"), &bytes).expect("written");
    }
    assert_eq!(counts(&store), before);
    let screen = asked(&engine, &["fleet", utf8(&store)]);
    assert_eq!(screen.status, 0, "{}", screen.stderr);
}

/// Writes a file again without a column, as a version has it that did not know it.
fn without_column(path: &Path, column: &str) {
    let old = File::open(path).expect("it opens");
    let reader = SerializedFileReader::new(old.try_clone().expect("a handle")).expect("Parquet");
    let metadata = reader.metadata();
    let root = metadata.file_metadata().schema();
    let fields = root
        .get_fields()
        .iter()
        .filter(|field| field.name() != column);
    let schema = Type::group_type_builder(root.name());
    let schema = schema
        .with_fields(fields.cloned().collect())
        .build()
        .expect("a schema");
    let begun = path.with_extension("begun");
    let out = File::create(&begun).expect("a file");
    let mut writer =
        SerializedFileWriter::new(out, Arc::new(schema), Arc::default()).expect("a writer");
    for group in metadata.row_groups() {
        let mut kept = writer.next_row_group().expect("a group");
        for chunk in group.columns() {
            if chunk.column_descr().name() != column {
                let chunk = ColumnCloseResult {
                    bytes_written: u64::try_from(chunk.compressed_size()).expect("a length"),
                    rows_written: u64::try_from(group.num_rows()).expect("a number"),
                    metadata: chunk.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                kept.append_column(&old, chunk).expect("a column");
            }
        }
        kept.close().expect("a group");
    }
    for pair in metadata
        .file_metadata()
        .key_value_metadata()
        .into_iter()
        .flatten()
    {
        writer.append_key_value_metadata(pair.clone());
    }
    writer.close().expect("a file");
    fs::rename(begun, path).expect("renamed");
}

/// Every column but those that name a recording may have been added later than a file was written: it is null there,
/// and what it is in the others. So it is where both are made one file.
#[test]
fn columns_that_were_added_are_null_before() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = two_recordings(folder.path());
    let all = files(&store);
    let mut failures = Failures::default();
    let mut looked = 0;
    for table in tables(&store) {
        let (columns, kept) = columns_and_rows(&store, &table);
        let path = all
            .iter()
            .find(|path| path.starts_with(store.join(&table)))
            .expect("a file");
        let run = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name");
        let run = run.rsplit_once('-').expect("a run").1.to_owned();
        // One at a time, of those that have a value in the file.
        let old = |row: &&Vec<Field>| row[1] == Field::Str(run.clone());
        let has = |at: usize| kept.iter().filter(old).any(|row| row[at] != Field::Null);
        let Some(at) = (2..columns.len()).rev().find(|at| has(*at)) else {
            continue;
        };
        let column = &columns[at];
        looked += 1;
        without_column(path, column);
        let sql = format!("SELECT count({column}) AS n, count(*) AS rows_n FROM {table}");
        let others = kept
            .iter()
            .filter(|row| row[at] != Field::Null && !old(row))
            .count();
        let (answer, _) = row(&engine, &sql, &store);
        failures.equal(
            &format!("{table}: {column}"),
            &answer["n"],
            &Value::from(others),
        );
        failures.equal(
            &format!("{table}: rows"),
            &answer["rows_n"],
            &Value::from(kept.len()),
        );
        let sql =
            format!("SELECT count(*) AS n FROM {table} WHERE run = '{run}' AND {column} IS NULL");
        let (row, _) = row(&engine, &sql, &store);
        let rows = kept.iter().filter(old).count();
        failures.equal(
            &format!("{table}: {column} IS NULL"),
            &row["n"],
            &Value::from(rows),
        );
    }
    assert!(looked >= 12, "{looked} tables");
    for number in 1..=12 {
        let done = asked(
            &engine,
            &["sql", "--question", &number.to_string(), utf8(&store)],
        );
        failures.check(done.status == 0, || {
            format!("question {number}: {}", done.stderr)
        });
    }
    let screen = asked(&engine, &["fleet", utf8(&store)]);
    failures.check(screen.status == 0, || format!("fleet: {}", screen.stderr));
    let before = tables(&store)
        .into_iter()
        .map(|table| (rows_of(&engine, &store, &table), table));
    let before: Vec<(Value, String)> = before.collect();
    let done = run(["fleet", "--compact", utf8(&store)]);
    failures.check(done.status == 0, || format!("compacted: {}", done.stderr));
    for (rows, table) in before {
        failures.equal(
            &format!("{table} compacted"),
            &rows_of(&engine, &store, &table),
            &rows,
        );
    }
    failures.finish(60);
}

/// Returns all that a table has, in order.
fn rows_of(engine: &Path, store: &Path, table: &str) -> Value {
    let (columns, _) = columns_and_rows(store, table);
    let order: Vec<String> = (1..=columns.len())
        .map(|column| column.to_string())
        .collect();
    let sql = format!("SELECT * FROM {table} ORDER BY {}", order.join(", "));
    let done = asked(engine, &["sql", "--json", &sql, utf8(store)]);
    done.json().expect("an answer")["rows"].clone()
}

/// An engine that wraps around has a negative sum of positive numbers, or none.
#[test]
fn sums_are_exact_or_an_error() {
    let Some(engine) = engine() else { return };
    let recording = file("vmx/tiny-irqchip/perf.data.zst");
    let most = "CAST(9223372036854775807 AS BIGINT) - tid";
    let ask = |sql: &str| asked(&engine, &["sql", "--csv", sql, utf8(&recording)]);
    let done = ask(&format!("SELECT sum({most}) AS s FROM vcpus"));
    assert_eq!(done.status, 1, "{}", done.text());
    assert!(done.stderr.contains("CAST(x AS DOUBLE)"), "{}", done.stderr);
    let done = ask(&format!(
        "SELECT sum(CAST({most} AS DOUBLE)) AS s FROM vcpus"
    ));
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(
        done.text().contains("1.8446744073709552e19"),
        "{}",
        done.text()
    );
    // Between the first number and the last it may be larger than what it is in the end.
    let done = ask(&format!(
        "SELECT sum(x) AS s FROM (SELECT {most} AS x FROM vcpus UNION ALL SELECT 7 - ({most}) AS x FROM vcpus) v"
    ));
    assert_eq!(
        (done.status, done.text().as_str()),
        (0, "s\n14\n"),
        "{}",
        done.stderr
    );
}

/// A VM is what it is called, and not "qemu-system-x86 (process 1689)" in one table and "qemu-system-x86" in another.
#[test]
fn a_vm_has_one_name_in_all_tables() {
    let mut failures = Failures::default();
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "x86/preempted-sick/perf.data.zst",
        "arm64/virtio-mmio/boot1/perf.data.tracepoints.zst",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("fleet");
        let recording = file(name);
        stored(&store, &recording, &["--detail"]);
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut having = 0;
        for table in tables(&store) {
            let (columns, _) = columns_and_rows(&store, &table);
            if ["vm_pid", "vm_name"]
                .iter()
                .all(|one| columns.iter().any(|column| column == one))
            {
                having += 1;
                for row in rows(&store, &table) {
                    let name = row["vm_name"].to_string();
                    names
                        .entry(row["vm_pid"].to_string())
                        .or_default()
                        .insert(name);
                }
            }
        }
        assert!(having >= 4, "{name}: {having} tables");
        let printed = json(&["vcpus"], &recording).expect("vCPUs");
        for row in printed["rows"].as_array().expect("rows") {
            let vm = names.entry(row["vm_pid"].to_string()).or_default();
            vm.insert(row["vm_name"].to_string());
        }
        for (vm, names) in names.iter().filter(|(vm, _)| *vm != "null") {
            failures.check(names.len() == 1, || format!("{name}: VM {vm} is {names:?}"));
        }
    }
    failures.finish(3);
}

/// A recording that has nothing of a table has a file without rows of it; what could be judged stands in its row.
#[test]
fn a_recording_without_rows_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = without_vms(folder.path());
    let store = folder.path().join("fleet");
    stored(&store, &text, &["--detail"]);
    let empty = [
        "vcpus",
        "exit_rows",
        "findings",
        "spans",
        "exits",
        "instances",
    ];
    for table in empty {
        let (columns, rows) = columns_and_rows(&store, table);
        assert!(columns.len() > 2 && rows.is_empty(), "{table}");
    }
    let judged = |store: &Path| rows(store, "runs")[0]["can_tell"].to_string();
    assert!(!judged(&store).contains("preempted"), "{}", judged(&store));
    let other = folder.path().join("other");
    stored(&other, &file("x86/preempted-sick/perf.data.zst"), &[]);
    assert!(judged(&other).contains("preempted"), "{}", judged(&other));
    let Some(engine) = engine() else { return };
    for table in empty {
        let (row, _) = row(
            &engine,
            &format!("SELECT count(*) AS n FROM {table}"),
            &store,
        );
        assert_eq!(row["n"], 0, "{table}");
    }
}
