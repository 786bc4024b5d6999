//! `trapline export --as parquet`: what a store has of a recording is what the commands print of it, row by row; a
//! recording is there whole or not at all; masked names are in no byte.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::common::stores::{
    alone, as_json, columns_and_rows, files, rows, stored, sweeping_recordings,
};
use crate::common::{Failures, file, json, run};

/// Returns a value as CSV has it.
fn as_csv(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Bool(flag) => flag.to_string(),
        Field::Str(text) => text.clone(),
        other => panic!("a value of type {other:?}"),
    }
}

/// Sums of vCPUs are those that the commands print (`store_sums` has the others), single things those of the other
/// exports, and both agree.
#[test]
fn a_store_has_what_the_commands_print() {
    let mut failures = Failures::default();
    for (name, path) in sweeping_recordings() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("fleet");
        stored(&store, &path, &["--detail", "--host", "web1"]);

        // Ticks are null in a store, as under the names of nanoseconds in documents.
        let text = path.to_str().expect("a path");
        let vcpus = run(["vcpus", "--json", text]).json().unwrap_or_default();
        let printed: Vec<Value> = vcpus["rows"].as_array().cloned().unwrap_or_default();
        let kept = rows(&store, "vcpus");
        failures.equal(&format!("{name}: vCPUs"), &kept.len(), &printed.len());
        for (row, printed) in kept.iter().zip(&printed) {
            for (column, value) in row {
                // Nested values stand beside each other, and ticks have no column.
                let nested = match column.split_once('_') {
                    Some(("polls", member)) => &printed["polls"][member],
                    Some(("wait", member)) => &printed["waits"][member],
                    _ if column == "waits" => &printed["waits"]["count"],
                    _ => &printed[column.as_str()],
                };
                if !["host", "run"].contains(&column.as_str()) {
                    let of = format!("{name}: vCPU {}: {column}", printed["tid"]);
                    failures.equal(&of, &as_json(value), nested);
                }
            }
        }

        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for table in ["spans", "exits", "instances"] {
            let path = path.to_str().expect("a path");
            let csv = run(["export", "--as", "csv", "--table", table, path]);
            // What has no table to print has none to store.
            let mut printed = match csv.status {
                0 => fixtures::csv::csv_cells(&csv.text()).into_iter(),
                _ => Vec::new().into_iter(),
            };
            let head = printed.next().unwrap_or_default();
            let (names, kept) = columns_and_rows(&store, table);
            failures.equal(&format!("{name}: {table}"), &kept.len(), &printed.len());
            let place = |column: &str| names.iter().position(|one| one == column);
            let places: Vec<Option<usize>> = head.iter().map(|column| place(column)).collect();
            for (column, place) in head.iter().zip(&places) {
                let left_out = column == "end_ns" || column.ends_with("_ticks");
                let what = format!("{name}: {table}: {column}");
                failures.equal(&what, &place.is_none(), &left_out);
            }
            for (row, printed) in kept.iter().zip(printed) {
                for ((column, place), text) in head.iter().zip(&places).zip(&printed) {
                    let Some(place) = *place else { continue };
                    // What a spreadsheet would run has a sign before it in CSV alone.
                    let text = text.strip_prefix('\'').unwrap_or(text);
                    let ours = as_csv(&row[place]);
                    failures.check(ours == text, || {
                        format!("{name}: {table}: {column}: {ours:?}, expected {text:?}")
                    });
                }
            }
            if let ("spans", Some(tid), Some(ns)) = (table, place("tid"), place("duration_ns")) {
                for span in &kept {
                    if let Field::Long(ns) = &span[ns] {
                        *sums.entry(as_csv(&span[tid])).or_default() += ns;
                    }
                }
            }
        }

        for vcpu in &kept {
            let observed = as_csv(&vcpu["observed_ns"]).parse().unwrap_or(0);
            let sum = sums.get(&as_csv(&vcpu["tid"])).copied().unwrap_or(0);
            failures.equal(
                &format!("{name}: the time of {:?}", vcpu["tid"]),
                &sum,
                &observed,
            );
        }
    }
    failures.finish(100);
}

/// A file for each table, with rows or without, of which every row says whose it is.
#[test]
fn every_table_has_a_file_and_the_same_recording_takes_its_own_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let plain = file("vmx/tiny-irqchip/perf.data.zst");
    let said = stored(
        &store,
        &plain,
        &["--label", "role=web", "--label", "rack=7"],
    );
    assert!(said.contains("day 2026-11-23"), "{said}");
    let first: Vec<(PathBuf, Vec<u8>)> = files(&store)
        .into_iter()
        .map(|path| (path.clone(), fs::read(&path).expect("it is there")))
        .collect();
    assert_eq!(first.len(), 11);
    let run_row = &rows(&store, "runs")[0];
    assert_eq!(as_csv(&run_row["role"]), "web");
    assert_eq!(as_csv(&run_row["labels"]), "rack=7");
    assert_eq!(as_csv(&run_row["time_source"]), "given");
    for table in ["vcpus", "exit_rows", "tasks", "paths", "stages", "hists"] {
        for row in rows(&store, table) {
            assert_eq!(row["run"], run_row["run"], "{table}");
            assert_eq!(row["host"], run_row["host"], "{table}");
        }
    }

    // Unpacked and under another name it is the same recording; what is stored is the same but for its name.
    let unpacked = folder.path().join("perf.data");
    fs::write(&unpacked, fixtures::read(&plain)).expect("written");
    stored(
        &store,
        &unpacked,
        &["--label", "role=web", "--label", "rack=7"],
    );
    let again = files(&store);
    assert_eq!(again.len(), first.len());
    for (path, bytes) in &first {
        if !path.starts_with(store.join("runs")) {
            assert_eq!(
                &fs::read(path).expect("it is there"),
                bytes,
                "{}",
                path.display()
            );
        }
    }
}

/// What a writer that was ended left behind is in nobody's way, and goes with the next one.
#[test]
fn a_recording_is_there_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let recording = file("vmx/tiny-irqchip/perf.data.zst");
    stored(&store, &recording, &["--detail"]);
    let whole: Vec<(PathBuf, Vec<u8>)> = files(&store)
        .into_iter()
        .map(|path| (path.clone(), fs::read(&path).expect("it is there")))
        .collect();
    // As if it had been ended after each of its renames: later tables lie under the names they had while written.
    for ended in 0..whole.len() {
        for (path, bytes) in whole.iter().skip(ended) {
            fs::remove_file(path).expect("removed");
            let mut begun = path.clone().into_os_string();
            begun.push(".4711.tmp");
            fs::write(begun, &bytes[..bytes.len() / 2]).expect("written");
        }
        stored(&store, &recording, &["--detail"]);
        let names: Vec<PathBuf> = whole.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(files(&store), names, "ended after {ended}");
        for (path, bytes) in &whole {
            assert_eq!(
                &fs::read(path).expect("it is there"),
                bytes,
                "{}",
                path.display()
            );
        }
    }
    // A recording that cannot be read is named, the others are stored, and the status says so.
    let broken = folder.path().join("broken.data");
    fs::write(&broken, b"no recording").expect("written");
    let done = run([
        "export".as_ref(),
        "--as".as_ref(),
        "parquet".as_ref(),
        "-o".as_ref(),
        store.as_os_str(),
        broken.as_os_str(),
        recording.as_os_str(),
    ]);
    assert_eq!(done.status, 1);
    let said = done.stderr.contains("not stored: ") && done.stderr.contains("broken.data");
    assert!(said, "{}", done.stderr);
    assert!(done.text().contains("stored "), "{}", done.text());
}

/// Names that somebody gave are in no byte of a masked store, and the same name is the same everywhere.
#[test]
fn masked_names_are_in_no_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    fs::write(&key, "0123456789abcdef0123456789abcdef\n").expect("written");
    let key = key.to_str().expect("a path");
    let store = folder.path().join("fleet");
    let recording = file("x86/preempted-sick/perf.data.zst");
    let seed = json(&["info"], &recording).expect("info");
    let vm = &seed["vms"][0];
    let mut ps = String::from("  PID   TID COMMAND COMMAND\n");
    for vcpu in vm["vcpus"].as_array().expect("vCPUs") {
        ps.push_str(&format!(
            " {}  {} planted-comm qemu-system-x86_64 -name planted-vm\n",
            vm["pid"], vcpu["tid"]
        ));
    }
    let facts = folder.path().join("ps.txt");
    fs::write(&facts, ps).expect("written");
    let facts = facts.to_str().expect("a path");
    let private = [
        "--host",
        "planted-host",
        "--label",
        "role=planted-role",
        "--facts",
        facts,
        "--detail",
    ];
    let mut masked = private.to_vec();
    masked.extend(["--mask", key]);
    let said = stored(&store, &recording, &masked);
    assert!(
        said.contains("planted-host"),
        "people who have the key read the name: {said}"
    );
    let names = [
        "planted-host",
        "planted-role",
        "planted-vm",
        "planted-comm",
        "preempted-sick",
        "qemu",
    ];
    for path in files(&store) {
        let bytes = fs::read(&path).expect("it is there");
        let shown = String::from_utf8_lossy(&bytes).into_owned() + &path.display().to_string();
        for name in &names[..4] {
            assert!(!shown.contains(name), "{name} in {}", path.display());
        }
        // Parquet packs what it holds: values are read back, too.
        let reader =
            SerializedFileReader::new(File::open(&path).expect("it opens")).expect("Parquet");
        for row in reader.get_row_iter(None).expect("rows") {
            let text = row.expect("a row").to_string();
            for name in names {
                assert!(!text.contains(name), "{name} in {}: {text}", path.display());
            }
        }
    }
    let plain = folder.path().join("plain");
    stored(&plain, &recording, &private);
    let all: String = files(&plain)
        .iter()
        .map(|path| String::from_utf8_lossy(&fs::read(path).expect("it is there")).into_owned())
        .collect();
    assert!(
        all.contains("planted-host") && all.contains("planted-vm"),
        "nothing was planted"
    );
    // The VM has one name in all tables.
    let name = |table: &str| rows(&store, table)[0]["vm_name"].clone();
    assert_eq!(name("vcpus"), name("spans"));

    // Names that are masked, that are not, and that are masked with another key do not get into one store.
    let other = folder.path().join("other");
    fs::write(&other, "another key of enough bytes").expect("written");
    let other = other.to_str().expect("a path");
    for more in [vec![], vec!["--mask", other]] {
        let store = store.to_str().expect("a path");
        let recording = recording.to_str().expect("a path");
        let mut args = vec!["export", "--as", "parquet", "-o", store, recording];
        args.extend(more);
        let done = run(&args);
        assert_eq!(done.status, 1, "{}", done.stderr);
        assert!(done.stderr.contains("masked"), "{}", done.stderr);
    }
}

/// What a store cannot have is refused with a sentence that says why.
#[test]
fn wrong_stores_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("a path");
    let recording = file("vmx/tiny-irqchip/perf.data.zst");
    let recording = recording.to_str().expect("a path");
    let short = Path::new(folder).join("short");
    fs::write(&short, "secret").expect("written");
    let short = short.to_str().expect("a path");
    for (more, status, why) in [
        (&["--day", "23.11.2026"][..], 1, "is no day"),
        (&["--vcpu", "0"], 2, "whole recordings"),
        (&["--table", "spans"], 2, "rows of a CSV file"),
        (&["--path", "irqfd"], 2, "the same tables"),
        (&["--mask", short], 2, "at least 16 bytes"),
        (&["--label", "role"], 2, "NAME=VALUE"),
    ] {
        let mut args = vec!["export", "--as", "parquet", "-o", folder, recording];
        args.extend(more);
        let done = run(&args);
        assert_eq!(done.status, status, "{more:?}: {}", done.stderr);
        assert!(done.stderr.contains(why), "{more:?}: {}", done.stderr);
    }
    for args in [
        &["export", "--as", "parquet", recording][..],
        &["export", "--as", "csv", "--detail", recording],
    ] {
        assert_eq!(run(args).status, 2, "{args:?}");
    }
}

/// Without the engine one sentence says how to get it, and what reads a store besides.
#[test]
fn without_its_engine_sql_says_how_to_get_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = alone(folder.path(), &["sql", "SELECT 1", "fleet"]);
    assert_eq!(done.status, 1);
    let said = done.stderr;
    assert!(
        said.contains("trapline-fleet") && said.contains("duckdb"),
        "{said}"
    );
}

/// One file of each table and day has the rows that many had, and a recording that is in it is not stored twice.
#[test]
fn a_store_is_compacted_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let path = store.to_str().expect("a path");
    let recordings = [
        "vmx/tiny-irqchip/perf.data.zst",
        "x86/preempted-sick/perf.data.zst",
    ]
    .map(file);
    for recording in &recordings {
        stored(&store, recording, &["--detail"]);
    }
    let tables = [
        "vcpus",
        "exit_rows",
        "tasks",
        "hists",
        "spans",
        "exits",
        "instances",
        "runs",
    ];
    let before = tables.map(|table| rows(&store, table));
    let checked = run(["fleet", "--check", path]);
    assert_eq!(checked.status, 0, "{}", checked.text());
    assert!(
        checked
            .text()
            .contains("28 files of 1 day: nothing is wrong"),
        "{}",
        checked.text()
    );

    let done = run(["fleet", "--compact", path]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.text().contains("28 files are 14"), "{}", done.text());
    assert_eq!(files(&store).len(), 14);
    for (table, before) in tables.iter().zip(&before) {
        assert_eq!(&rows(&store, table), before, "{table}");
    }
    assert_eq!(run(["fleet", "--check", path]).status, 0);
    // Again there is nothing to do, and a recording that is in it stays there once.
    assert!(run(["fleet", "--compact", path]).text().contains("already"));
    for recording in &recordings {
        assert!(stored(&store, recording, &["--detail"]).contains("already"));
    }
    assert_eq!(files(&store).len(), 14);
    // Details of days before go, those of this one stay.
    let recording = recordings[0].to_str().expect("a path");
    let more = [
        "export",
        "--as",
        "parquet",
        "--detail",
        "--day",
        "2026-11-01",
        "-o",
        path,
        recording,
    ];
    assert_eq!(run(more).status, 0);
    assert_eq!(
        run(["fleet", "--compact", "--keep-detail", "7d", path]).status,
        0
    );
    assert!(!store.join("spans/day=2026-11-01").exists());
    assert!(store.join("spans/day=2026-11-23").exists());
    assert!(store.join("vcpus/day=2026-11-01").exists());

    // What is wrong is named: a cut file, one without its recording, what a writer left, a folder that is no day.
    let whole = files(&store);
    let of = |table: &str| {
        whole
            .iter()
            .find(|path| path.starts_with(store.join(table)))
            .expect("a file")
    };
    let bytes = fs::read(of("tasks")).expect("it is there");
    fs::write(of("tasks"), &bytes[..bytes.len() / 2]).expect("written");
    fs::copy(
        of("vcpus"),
        store.join("vcpus/day=2026-11-23/nobody-0.parquet"),
    )
    .expect("copied");
    fs::write(store.join("runs/day=2026-11-23/x-1.parquet.7.tmp"), "half").expect("written");
    fs::create_dir(store.join("runs/day=yesterday")).expect("made");
    let checked = run(["fleet", "--check", path]);
    assert_eq!(checked.status, 1);
    for why in [
        "It cannot be read",
        "not written to its end",
        "A writer left it",
        "The folder's day is none",
    ] {
        assert!(checked.text().contains(why), "{why}: {}", checked.text());
    }
}

/// A name that two machines have is no fault of the store, and is named; of recordings without facts it says nothing.
#[test]
fn a_check_names_hosts_of_one_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let mut said = Vec::new();
    for (name, id) in [
        ("console-healthy", Some("aaaaaa0102030405060708090a0b0c0d")),
        ("preempted-healthy", None),
        (
            "timer-storm-healthy",
            Some("bbbbbb0102030405060708090a0b0c0d"),
        ),
    ] {
        let facts = folder.path().join(format!("{name}.json"));
        let mut more = vec!["--host", "web"];
        if let Some(id) = id {
            let document = format!(r#"{{"facts_version":1,"host":{{"machine_id":"{id}"}}}}"#);
            fs::write(&facts, document).expect("written");
            more.extend(["--facts", facts.to_str().expect("a path")]);
        }
        let recording = file(&format!("x86/{name}/perf.data.zst"));
        stored(&store, &recording, &more);
        let checked = run(["fleet", "--check", store.to_str().expect("a path")]);
        assert_eq!(checked.status, 0, "{}", checked.text());
        said.push(checked.text());
    }
    let note = "web is the name of 2 machines, which have other machine ids";
    assert!(!said[1].contains("is the name of"), "{}", said[1]);
    assert!(said[2].contains(note), "{}", said[2]);
    assert!(said[2].contains("nothing is wrong"), "{}", said[2]);
}

#[test]
fn a_day_in_the_future_is_doubted() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let recording = file("x86/console-healthy/perf.data.zst");
    let (store, recording) = (
        store.to_str().expect("a path"),
        recording.to_str().expect("a path"),
    );
    let day = ["--as", "parquet", "--host", "web", "--day", "2999-01-01"];
    let done = run([&["export", recording, "-o", store], &day[..]].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
    let checked = run(["fleet", "--check", store]);
    assert_ne!(checked.status, 0, "{}", checked.text());
    let said = format!("{}{}", checked.text(), checked.stderr);
    assert!(said.contains("day=2999-01-01"), "{said}");
    assert!(said.contains("The day is in the future"), "{said}");
}
