//! Commands that read give away what reading does not need, before they read.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{tools_are_required, trapline};

/// Whether this kernel has both; where they are required it has to.
fn has_both() -> bool {
    let mut tried = trapline();
    tried.args(["rules", "--sandbox", "required"]);
    let has = tried.output().expect("the program").status.success();
    assert!(
        has || !tools_are_required(),
        "this kernel has no Landlock or no seccomp"
    );
    has
}

/// The mode of seccomp of a process that waits for its input: 2 is a filter.
fn seccomp(child: &Child) -> String {
    for _ in 0..1000 {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.expect("it runs");
        let mode = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"));
        let mode = mode.unwrap_or_default().trim();
        if mode != "0" {
            return mode.to_owned();
        }
        sleep(Duration::from_millis(10));
    }
    "0".to_owned()
}

#[test]
fn each_command_that_reads_is_restricted_before_it_reads() {
    if !has_both() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Whoever opens it waits for somebody who writes.
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    for command in [
        "report",
        "diagnose",
        "info",
        "events",
        "exits",
        "vcpus",
        "irqs",
        "virtqueues",
        "counters",
        "paths",
        "flame",
        "sched",
        "salvage",
        "redact",
        "export",
        "compare",
    ] {
        let mut program = trapline();
        program.current_dir(folder.path()).arg(command).arg("pipe");
        match command {
            "export" => drop(program.args(["-o", "x.csv"])),
            "compare" => drop(program.arg("pipe")),
            "salvage" | "redact" => drop(program.args(["-o", "x"])),
            _ => {}
        }
        let program = program.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = program.spawn().expect("the program");
        assert_eq!(seccomp(&child), "2", "{command}");
        child.kill().expect("it waits");
        let _ = child.wait();
        // And not where nobody wants it.
        if command == "report" {
            let mut child = trapline();
            child
                .current_dir(folder.path())
                .args(["report", "pipe", "--sandbox", "off"]);
            let mut child = child.stdout(Stdio::null()).spawn().expect("the program");
            // This waits until it is about to read.
            let writer = fs::OpenOptions::new().write(true).open(&pipe);
            let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
            assert!(status.expect("it runs").contains("Seccomp:\t0"));
            drop(writer);
            child.kill().expect("it waits");
            let _ = child.wait();
        }
    }
}

#[test]
fn files_that_are_named_are_written_wherever_they_are() {
    if !has_both() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("deep")).expect("a folder");
    std::os::unix::fs::symlink("deep/behind.html", folder.path().join("link.html"))
        .expect("a link");
    fs::write(folder.path().join("deep/behind.html"), "old").expect("a file");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let input = root.join("x86/clocksource-acpi_pm/loop/perf.data.guest.zst");
    let run = |arguments: &[&str]| {
        let mut program = trapline();
        program
            .current_dir(folder.path())
            .args(arguments)
            .arg(&input);
        program
            .args(["--sandbox", "required"])
            .output()
            .expect("the program")
    };
    for (arguments, file) in [
        (&["report", "-o", "page.html"][..], "page.html"),
        (&["report", "-o", "deep/page.html"], "deep/page.html"),
        (&["report", "-o", "link.html"], "deep/behind.html"),
        (&["export", "-o", "deep/x.pftrace"], "deep/x.pftrace"),
        (&["redact", "-o", "deep/redacted"], "deep/redacted"),
    ] {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let written = fs::read(folder.path().join(file)).expect("it is written");
        assert!(written.len() > 1000, "{file}");
    }
    for arguments in [
        &["export", "-o", "/dev/null", "--as", "csv"][..],
        &["exits"],
    ] {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn what_does_more_than_to_read_has_none() {
    let output = trapline().args(["facts", "--sandbox", "required"]).output();
    let output = output.expect("the program");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no sandbox"));
}

#[test]
fn what_is_in_force_is_said_where_that_is_asked_for() {
    if !has_both() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus/x86/clocksource-acpi_pm/loop/perf.data.guest.zst");
    let run = |sandbox: &str| {
        let mut program = trapline();
        program
            .current_dir(folder.path())
            .arg("report")
            .arg(&recording);
        program.args(["-o", "page.html", "--sandbox", sandbox]);
        let output = program.output().expect("the program");
        assert!(output.status.success(), "{output:?}");
        let page = fs::read(folder.path().join("page.html")).expect("it is written");
        (String::from_utf8_lossy(&output.stderr).into_owned(), page)
    };
    let (said, with) = run("show");
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("sandbox: "))
        .collect();
    assert!(lines.len() >= 3, "{said}");
    assert!(
        lines[0].contains("these alone are written: below "),
        "{said}"
    );
    assert!(
        said.contains("seccomp refuses system calls for the network; "),
        "{said}"
    );
    let (silent, without) = run("auto");
    assert!(!silent.contains("sandbox"), "{silent}");
    assert_eq!(with.len(), without.len());
}
