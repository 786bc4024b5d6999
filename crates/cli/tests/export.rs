//! `trapline export`: which files it writes, and that they have what other commands print. What is in files of rows
//! and in traces is in `crates/export/tests`.

use std::fs;
use std::path::Path;

use crate::common::stores::without_vms;
use crate::common::{Failures, case, json, number, read_text, run, write_text};
use serde_json::Value;

/// Runs the command and returns what it printed.
fn printed(args: &[&str], path: &Path) -> Option<String> {
    let mut all: Vec<&std::ffi::OsStr> = args.iter().map(AsRef::as_ref).collect();
    all.push(path.as_os_str());
    let run = run(all);
    (run.status == 0).then(|| run.text())
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

/// Whoever exports many recordings goes on: a table without rows is its columns, and the reason stands beside it.
#[test]
fn a_table_without_rows_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = without_vms(folder.path());
    let text = text.to_str().expect("a plain name");
    for table in ["spans", "exits"] {
        let file = folder.path().join(format!("{table}.csv"));
        let file = file.to_str().expect("a plain name");
        let run = run(["export", "--table", table, "-o", file, text]);
        assert_eq!(run.status, 0, "{table}: {}", run.stderr);
        let said = run.text();
        assert!(said.contains("has no rows"), "{table}: {said}");
        assert!(said.contains("trapline record"), "{table}: {said}");
        let written = fs::read_to_string(file).expect("a table");
        assert_eq!(written.lines().count(), 1, "{table}: {written}");
        assert!(written.contains("start_ns"), "{table}: {written}");
    }
}

/// perf says what time of day it was where it was asked for a clock, and the host's name is a member of the document.
#[test]
fn when_a_recording_began_is_in_its_summary() {
    let path = case("x86/format-variants/mono.perf.data.zst").path;
    let document = json(&["info"], &path).expect("a document");
    assert_eq!(document["time_source"], "clock_data", "{document}");
    let began = document["started_unix_ns"].as_u64().expect("a time");
    // Between 2026 and 2027, when the corpus was made.
    assert!(
        (1_767_225_600..1_798_761_600).contains(&(began / 1_000_000_000)),
        "{began}"
    );
    assert!(document["host"].is_string(), "{document}");
    let text = printed(&["info"], &path).expect("a text");
    assert!(
        text.lines().any(|line| line.starts_with("began ")),
        "{text}"
    );
    let plain = case("x86/format-variants/plain.perf.data.zst").path;
    let plain = json(&["info"], &plain).expect("a document");
    assert!(
        plain["started_unix_ns"].is_null() && plain["time_source"].is_null(),
        "{plain}"
    );
}
