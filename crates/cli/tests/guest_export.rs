//! `trapline export` of a host's recording with those of its guests: files have what commands print. What traces and
//! rows have of guests is in `crates/export/tests`.

use std::fs;
use std::path::Path;

use crate::common::list;
use crate::common::{Run, file, read, run, write_text};
use crate::guests::{GUEST, HOST, document, over, recorded};

fn printed(command: &str, paths: &[&Path], more: &[&str]) -> String {
    let run = over(command, paths, more);
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.text()
}

#[test]
fn other_tables_are_those_of_their_commands() {
    let (host, guest) = (file(HOST), file(GUEST));
    let paths = [host.as_path(), &guest];
    let csv = ["--format", "csv"];
    let events = [
        "--as",
        "csv",
        "--table",
        "events",
        "--time",
        "1023.1,1023.2",
    ];
    let theirs = [&csv[..], &events[4..]].concat();
    let events = printed("export", &paths, &events);
    assert_eq!(events, printed("events", &paths, &theirs));
    assert!(events.starts_with("recording,time_ns,"), "{events:.60}");
    assert!(events.contains(&format!("\n{},", guest.display())));
    let instances = printed("export", &paths, &["--as", "csv", "--table", "instances"]);
    assert_eq!(
        instances,
        printed("paths", &paths, &["--each", "--format", "csv"])
    );
    assert!(
        instances.contains("\nguest-ipi,"),
        "no path through a guest"
    );
    let exits = ["--as", "csv", "--table", "exits"];
    assert_eq!(
        printed("export", &paths, &exits),
        printed("export", &[&host], &exits)
    );
}

#[test]
fn the_document_and_the_summary_have_what_a_report_has() {
    let (host, guest) = (file(HOST), file(GUEST));
    let reported = format!("--guest={}", guest.display());
    let whole = document("export", &[&host, &guest], &[]);
    let report = document("report", &[&host, &guest], &[]);
    let report = report["recordings"][0].as_object().expect("a part");
    for (field, value) in report {
        // A report has those paths that rules look at.
        if !["input", "paths"].contains(&field.as_str()) {
            assert!(whole[field] == *value, "{field} differs");
        }
    }
    assert!(!list(&whole["guest_exits"]).is_empty());
    assert_eq!(list(&whole["guests"]).len(), 1);
    assert_eq!(list(&whole["inputs"]).len(), 2);
    // In whatever order they stand, and however the guest is named.
    for (paths, more) in [
        (vec![guest.as_path(), host.as_path()], vec![]),
        (vec![host.as_path()], vec![reported.as_str()]),
    ] {
        let same = document("export", &paths, &more);
        for field in ["vcpus", "guest_exits", "findings", "inputs"] {
            assert!(same[field] == whole[field], "{more:?}: {field} differs");
        }
    }
    let summary = printed("export", &[&host, &guest], &["--as", "md"]);
    let name = guest.display();
    for part in [
        &format!("- guest's recording: `{name}`, of VM `guest 3`\n"),
        "### What the guests did\n",
        "| `interrupt ttyS0` | ",
        &format!("`trapline vcpus {} --guest={name}`", host.display()),
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let alone = printed("export", &[&host], &["--as", "md"]);
    assert!(!alone.contains("guest's recording") && !alone.contains("What the guests did"));
}

/// A guest that cannot be used is refused with the reason, and no file is begun.
#[test]
fn guests_that_cannot_be_used_are_refused() {
    let host = file(HOST);
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let guest = read(&file(GUEST));
    let cut = folder.path().join("cut.dat");
    fs::write(&cut, &guest[..guest.len() / 2000]).expect("there is room");
    let text = write_text(folder.path(), "no-recording", "nothing of the kind\n");
    let arm = file("arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst");
    let refused = |run: &Run, what: &str| {
        assert_eq!(run.status, 1, "{what}: {}", run.text());
        run.stderr.clone()
    };
    for kind in ["x.pftrace", "x.csv", "x.md", "x.json"] {
        let out = folder.path().join(kind);
        let written = format!("-o{}", out.display());
        for path in [&cut, &text, &arm] {
            let reported = format!("--guest={}", path.display());
            let by_option = refused(&over("export", &[&host], &[&reported, &written]), &reported);
            let by_place = refused(&over("export", &[&host, path], &[&written]), kind);
            let name = path.file_name().expect("a name").to_string_lossy();
            for said in [by_option, by_place] {
                assert!(said.contains(&*name), "{kind}: {said}");
            }
            assert!(!out.exists(), "{kind} was begun");
        }
    }
    let known = file(GUEST).display().to_string();
    let host = host.display().to_string();
    let reported = format!("--guest={known}");
    let twice = run(["export", "--as", "csv", &host, &known, &reported]);
    assert!(
        refused(&twice, "twice").contains("is given twice"),
        "{}",
        twice.stderr
    );
}

#[test]
fn a_folder_has_its_hosts_guests() {
    let folder = recorded();
    let csv = ["--as", "csv"];
    let run = over("export", &[folder.path()], &csv);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let given = printed("export", &[&file(HOST), &file(GUEST)], &csv);
    assert!(run.text() == given, "the folder's rows differ");
    assert!(
        run.stderr.contains("guest-b.perf.data"),
        "what is left out is said: {}",
        run.stderr
    );
    let whole = document("export", &[folder.path()], &[]);
    assert_eq!(list(&whole["guests"]).len(), 1);
    let warnings = whole["quality"]["warnings"].to_string();
    assert!(warnings.contains("guest-b.perf.data"), "{warnings}");
}
