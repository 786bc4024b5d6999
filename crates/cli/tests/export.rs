//! `trapline export`: tables, summaries and documents, and how the command is used.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Failures, case, cases, json, number, read_text, run, write_text};
use serde_json::Value;

/// Runs the command and returns what it printed.
fn printed(args: &[&str], path: &Path) -> Option<String> {
    let mut all: Vec<&std::ffi::OsStr> = args.iter().map(AsRef::as_ref).collect();
    all.push(path.as_os_str());
    let run = run(all);
    (run.status == 0).then(|| run.text())
}

/// Reads CSV of which no cell has a line break, times under the name that they have in nanoseconds, whatever they count.
pub(crate) fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let cells = |line: &str| -> Vec<String> {
        let (mut out, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => out.push(String::new()),
                c => out.last_mut().expect("a cell").push(c),
            }
        }
        out
    };
    let mut lines = text.lines();
    let head = cells(lines.next().expect("names of columns"));
    let row = |line: &str| {
        let cells = cells(line);
        assert_eq!(cells.len(), head.len(), "{line}");
        // A column of ticks stands behind that of nanoseconds, and is taken for it.
        let name = |name: &String| match name.strip_suffix("_ticks") {
            Some(stem) => format!("{stem}_ns"),
            None => name.clone(),
        };
        head.iter().map(name).zip(cells).collect()
    };
    lines.map(row).collect()
}

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
    let spans = printed(&["export", "--as", "csv"], path);
    let document = json(&["vcpus"], path);
    let (Some(spans), Ok(document)) = (&spans, &document) else {
        return failures.check(spans.is_none() && document.is_err(), || what.to_owned());
    };
    let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows(spans) {
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
        for state in [
            "guest", "kernel", "user", "poll", "halted", "runnable", "unknown",
        ] {
            let sum = number(row, &format!("{state}_ns"));
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
    let Some(exits) = printed(&["export", "--table", "exits", "--format", "csv"], path) else {
        return;
    };
    let Ok(document) = json(&["exits"], path) else {
        // Of a recording without KVM's events there is no exit in either.
        failures.equal(what, &rows(&exits).len(), &0);
        return;
    };
    let fields = [
        "duration_ns",
        "guest_ns",
        "kernel_ns",
        "user_ns",
        "poll_ns",
        "halted_ns",
        "runnable_ns",
        "unknown_ns",
        "kernel_blocked_ns",
        "user_blocked_ns",
    ];
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in rows(&exits) {
        let sums = found
            .entry(row["reason"].clone())
            .or_insert_with(|| vec![0; fields.len() + 1]);
        sums[0] += 1;
        for (sum, field) in sums.iter_mut().skip(1).zip(fields) {
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

/// Rows that other commands print too are the same rows.
#[test]
fn instances_and_events_are_those_of_the_commands() {
    let mut failures = Failures::default();
    for name in [
        "x86/preempted-sick/perf.data.zst",
        "arm64/vhost-mmio/boot1/trace.dat.zst",
        "x86/format-variants/lost.dat.zst",
    ] {
        let path = case(name).path;
        for (ours, theirs) in [
            (
                &["export", "--table", "instances", "--as", "csv"][..],
                &["paths", "--each", "--format", "csv"][..],
            ),
            (
                &[
                    "export",
                    "--table",
                    "instances",
                    "--path",
                    "timer",
                    "--vcpu",
                    "0",
                    "--as",
                    "csv",
                ],
                &[
                    "paths", "--path", "timer", "--vcpu", "0", "--each", "--format", "csv",
                ],
            ),
            (
                &["export", "--table", "events", "--as", "csv"],
                &["events", "--format", "csv"],
            ),
        ] {
            failures.equal(
                &format!("{name}: {ours:?}"),
                &printed(ours, &path),
                &printed(theirs, &path),
            );
        }
    }
    failures.finish(9);
}

/// Which exit a row is: the access and the device behind it, and who handled it.
#[test]
fn exits_say_which_access_made_them() {
    let path = case("x86/clocksource-acpi_pm/loop/perf.data.guest.zst").path;
    let text = printed(&["export", "--table", "exits", "--as", "csv"], &path).expect("exits");
    let rows = rows(&text);
    let timer = rows.iter().filter(|row| row["access"] == "0x608:PIN");
    let timer: Vec<_> = timer.collect();
    let document = json(&["exits", "--event", "ioport"], &path).expect("exits");
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

#[test]
fn the_document_has_what_the_commands_have() {
    let mut failures = Failures::default();
    for name in [
        "x86/preempted-sick/perf.data.zst",
        "vmx/tiny-irqchip/perf.data.zst",
    ] {
        let path = case(name).path;
        let all = json(&["export"], &path).expect("a document");
        let report = json(&["report"], &path).expect("a report");
        let report = report["recordings"][0].as_object().expect("an object");
        for (field, value) in report {
            // A report has those paths that rules look at.
            if !["input", "paths"].contains(&field.as_str()) {
                failures.equal(&format!("{name}: {field}"), &all[field], value);
            }
        }
        let paths = json(&["paths"], &path).expect("paths");
        failures.equal(&format!("{name}: paths"), &all["paths"], &paths["paths"]);
        failures.equal(name, &all["command"], &Value::from("export"));
    }
    failures.finish(20);
}

/// Returns Markdown without its code spans.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("")
}

/// Whatever things are called, nothing of it becomes markup.
#[test]
fn names_stay_names_in_markdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let evil = "@root|a|<img/src>![i](http://e.vil)#1`</script>\\|**b**";
    let seed = case("x86/preempted-sick/perf.data.zst").path;
    let info = json(&["info"], &seed).expect("info");
    let vcpus = info["vms"][0]["vcpus"].as_array().expect("vCPUs");
    let mut ps = String::from("  PID   TID COMMAND COMMAND\n");
    let pid = number(&info["vms"][0], "pid");
    let tids = vcpus.iter().map(|vcpu| number(vcpu, "tid"));
    for tid in std::iter::once(pid).chain(tids) {
        ps.push_str(&format!(
            " {pid}  {tid} qemu qemu-system-x86_64 -name {}\n",
            evil.replace(' ', "_")
        ));
    }
    let facts = write_text(folder.path(), "ps.txt", &ps);
    let odd = folder.path().join("`@all|<b>x~~.data");
    fs::copy(&seed, &odd).expect("a copy");
    let facts = facts.to_str().expect("a plain name");
    let text = printed(&["export", "--as", "md", "--facts", facts], &odd).expect("a summary");
    assert!(text.contains("@root"), "the VM is not called so: {text}");
    let plain = without_code(&text);
    for markup in ["<", "@", "](", "://", "\\x7c\\x7c", "<b>", "**b**", "~~"] {
        assert!(!plain.contains(markup), "{markup} in {plain}");
    }
    // Code spans end in their line, and tables have as many cells in each row.
    let mut cells = None;
    for line in text.lines() {
        assert!(line.matches('`').count().is_multiple_of(2), "{line}");
        let bars = line.matches('|').count();
        if !line.starts_with('|') {
            assert_eq!(bars, 0, "{line}");
            cells = None;
            continue;
        }
        assert_eq!(bars, *cells.get_or_insert(bars), "{line}");
    }
}

#[test]
fn what_is_written_is_known_by_the_name_or_said() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let path = case("vmx/tiny-irqchip/perf.data.zst").path;
    let path = path.to_str().expect("a plain name");
    let file = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a plain name")
            .to_owned()
    };
    for (name, more, begins) in [
        ("x.pftrace", &[][..], "\n"),
        ("x.perfetto-trace", &[], "\n"),
        ("x.csv", &[], "vm_pid,vm_name,vcpu,tid,state,"),
        ("x.md", &[], "## trapline: "),
        ("x.json", &[], "{\n  \"trapline\""),
        ("odd.name", &["--as", "md"], "## trapline: "),
        (
            "x.json",
            &["--as", "csv", "--table", "events"],
            "time_ns,cpu,",
        ),
    ] {
        let out = file(name);
        let run = run([&["export", path, "-o", &out], more].concat());
        failures.equal(&run.stderr, &run.status, &0);
        failures.equal(name, &run.text(), &format!("wrote {out}\n"));
        let text = String::from_utf8_lossy(&fs::read(&out).expect("the file")).into_owned();
        failures.check(text.starts_with(begins), || format!("{name}: {:.60}", text));
    }
    for (args, says) in [
        (
            vec!["-o".to_owned(), file("x.xlsx")],
            "known by the end of the name",
        ),
        (vec![], "name a file with -o, or say --as"),
        (
            vec![
                "-o".to_owned(),
                file("x.md"),
                "--table".into(),
                "exits".into(),
            ],
            "--table chooses the rows of a CSV",
        ),
        (
            vec!["-o".to_owned(), file("nowhere/x.md")],
            "cannot be written",
        ),
        (
            vec!["-o".to_owned(), file("nowhere/x.pftrace")],
            "cannot be written",
        ),
        (
            vec![
                "-o".to_owned(),
                file("x.md"),
                "--path".into(),
                "nowhere".into(),
            ],
            "--path nowhere",
        ),
    ] {
        let mut all = vec!["export".to_owned(), path.to_owned()];
        all.extend(args);
        let run = run(all);
        // A folder that is not there is no wrong usage.
        let unwritten = run.stderr.contains("cannot be written");
        let wanted = if unwritten { 1 } else { 2 };
        failures.equal(&run.stderr, &run.status, &wanted);
        failures.check(run.stderr.contains(says), || run.stderr.clone());
    }
    failures.finish(30);
}

/// A file that was there stays when the command fails, and nothing half-written is left.
#[test]
fn files_are_whole_or_as_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let nothing = write_text(folder.path(), "nothing.txt", "this is no recording\n");
    for name in ["x.pftrace", "x.csv", "x.md", "x.json"] {
        let out = write_text(folder.path(), name, "before");
        let run = run([
            "export".as_ref(),
            nothing.as_os_str(),
            "-o".as_ref(),
            out.as_os_str(),
        ]);
        assert_eq!(run.status, 1, "{}", run.stderr);
        assert_eq!(read_text(&out), "before");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").collect();
    assert_eq!(left.len(), 5, "{left:?}");
}

/// Losses and warnings go to standard error, beside the file.
#[test]
fn losses_are_said_beside_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = case("x86/format-variants/lost.dat.zst").path;
    for name in ["x.pftrace", "x.csv", "x.md", "x.json"] {
        let out = folder.path().join(name);
        let run = run([
            "export".as_ref(),
            path.as_os_str(),
            "-o".as_ref(),
            out.as_os_str(),
        ]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(run.stderr.contains(" lost"), "{name}: {}", run.stderr);
    }
}

/// docs/export.md has every column, in the order of the files.
#[test]
fn the_manual_has_every_column() {
    let manual =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export.md"));
    let manual = manual.expect("docs/export.md");
    let path = case("vmx/tiny-irqchip/perf.data.zst").path;
    for table in ["spans", "exits", "instances", "events"] {
        let text = printed(&["export", "--as", "csv", "--table", table], &path).expect("a table");
        let head = text.lines().next().expect("names");
        let (_, part) = manual
            .split_once(&format!("### `{table}`\n"))
            .expect("a chapter");
        let part = part.split("\n#").next().unwrap_or_default();
        let document: Vec<&str> = part
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert_eq!(document.join(","), head, "{table}");
    }
}
