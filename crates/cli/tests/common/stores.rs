//! Stores that `trapline export --as parquet` writes: their files, read with the library that wrote them, and the
//! engine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use serde_json::Value;

use super::{Run, cases, file, note, run, sweeping, tools_are_required, trapline, write_text};

/// Recordings of both containers, of text, with ticks, with guests' tasks, damaged ones.
const RECORDINGS: [&str; 8] = [
    "vmx/tiny-irqchip/trace.dat",
    "vmx/tiny-irqchip/perf.data.zst",
    "x86/format-variants/lost.dat.zst",
    "x86/preempted-sick/perf.data.zst",
    "x86/console-sick/perf.data.zst",
    "arm64/virtio-mmio/boot1/perf.data.tracepoints.zst",
    "seed-text/case1-irqfd.trace-cmd.txt",
    "seed-text/case4-virtio.trace-cmd.txt",
];

/// A row of a table: its values by column.
pub(crate) type StoredRow = BTreeMap<String, Field>;

/// Returns the Parquet files of a store, by table and day.
pub(crate) fn files(store: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    };
    for table in below(store) {
        for day in below(&table) {
            all.extend(below(&day));
        }
    }
    all.sort();
    all
}

/// Returns the names of a table's columns, and all its rows.
pub(crate) fn columns_and_rows(store: &Path, table: &str) -> (Vec<String>, Vec<Vec<Field>>) {
    let (mut names, mut out) = (Vec::new(), Vec::new());
    for path in files(store) {
        if !path.starts_with(store.join(table)) {
            continue;
        }
        let reader = SerializedFileReader::new(File::open(&path).expect("it opens"));
        let reader = reader.expect("a Parquet file");
        let schema = reader.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter();
        names = columns.map(|column| column.name().to_owned()).collect();
        for row in reader.get_row_iter(None).expect("rows") {
            let values = row.expect("a row").into_columns().into_iter();
            out.push(values.map(|(_, value)| value).collect());
        }
    }
    (names, out)
}

/// Returns all rows of a table.
pub(crate) fn rows(store: &Path, table: &str) -> Vec<StoredRow> {
    let (names, rows) = columns_and_rows(store, table);
    let rows = rows.into_iter();
    rows.map(|row| names.iter().cloned().zip(row).collect())
        .collect()
}

/// Stores a recording, and returns what was said.
pub(crate) fn stored(store: &Path, recording: &Path, more: &[&str]) -> String {
    let mut args: Vec<&str> = vec!["export", "--as", "parquet", "--day", "2026-11-23", "-o"];
    let store = store.to_str().expect("a path");
    let recording = recording.to_str().expect("a path");
    args.extend([store, recording]);
    args.extend(more);
    let done = run(&args);
    assert_eq!(done.status, 0, "{recording}: {}", done.stderr);
    done.text()
}

/// Returns the engine's folder. `None`, which is said, where it was not built, unless `TRAPLINE_REQUIRE_TOOLS=1` is
/// set.
pub(crate) fn engine() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = built.join("../../fleet/target/debug/trapline-fleet");
    let named = std::env::var_os("TRAPLINE_FLEET").map_or(built, PathBuf::from);
    if named.is_file() {
        return named.parent().map(Path::to_owned);
    }
    assert!(
        !tools_are_required(),
        "the engine is missing: run 'cargo build' in fleet"
    );
    note("skipped: no trapline-fleet here; run 'cargo build' in fleet");
    None
}

/// Runs the program with the engine on its PATH.
pub(crate) fn asked(engine: &Path, args: &[&str]) -> Run {
    Run::of(
        trapline()
            .env("PATH", engine)
            .args(args)
            .output()
            .expect("it starts"),
    )
}

/// Runs a copy of the program beside which no engine lies, with `folder` as its PATH.
pub(crate) fn alone(folder: &Path, args: &[&str]) -> Run {
    let own = tempfile::tempdir().expect("a folder");
    let program = own.path().join("trapline");
    fs::copy(trapline().get_program(), &program).expect("a copy");
    let done = Command::new(&program)
        .args(args)
        .env("PATH", folder)
        .output()
        .expect("it starts");
    Run::of(done)
}

/// Returns a path as an argument.
pub(crate) fn utf8(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// Writes a recording, as text, in which a task runs and no VM does.
pub(crate) fn without_vms(folder: &Path) -> PathBuf {
    let line = "swapper     0 [000]   100.000001: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
                prev_state=R ==> next_comm=a next_pid=7 next_prio=120\n";
    write_text(folder, "switches.txt", line)
}

/// Returns a value as JSON has it.
pub(crate) fn as_json(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Long(number) => Value::from(*number),
        Field::Double(number) => Value::from(*number),
        Field::Bool(flag) => Value::from(*flag),
        Field::Str(text) => Value::from(text.as_str()),
        other => panic!("a value of type {other:?}"),
    }
}

/// Returns the recordings that are looked at: all in a sweep.
pub(crate) fn sweeping_recordings() -> Vec<(String, PathBuf)> {
    match sweeping() {
        true => cases()
            .into_iter()
            .map(|case| (case.name, case.path))
            .collect(),
        false => RECORDINGS.map(|name| (name.to_owned(), file(name))).into(),
    }
}

/// Returns the document of a command; null where the recording cannot answer it.
pub(crate) fn run_json(args: &[&str]) -> Value {
    let done = run([args, &["--format", "json"]].concat());
    done.json().unwrap_or_default()
}
