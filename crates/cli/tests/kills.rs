//! Whenever a program is killed, what has its name can be opened, and what it left goes with the next run.
//!
//! `TRAPLINE_KILLS` sets how often (8 by default of each kind; 500 by hand before a release).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{json, trapline};
use crate::record_command::possible;

fn kills() -> u32 {
    let set = std::env::var("TRAPLINE_KILLS").ok();
    set.map_or(8, |set| set.parse().expect("a number"))
}

fn recording() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    root.join("x86/clocksource-acpi_pm/loop/perf.data.guest.zst")
}

/// Moments over a span, the same in each run, none twice.
fn moment(number: u32, span: Duration) -> Duration {
    let spread = number.wrapping_mul(0x9e37_79b9) >> 8;
    span.mul_f64(f64::from(spread) / f64::from(1u32 << 24))
}

/// Runs a program and kills it after a time, unless it has ended.
fn killed(mut program: Command, after: Duration) {
    program.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = program.spawn().expect("the program");
    sleep(after);
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn a_recorder_that_is_killed_leaves_what_can_be_opened() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (mut none, mut open) = (0, 0);
    let program = |name: &str| {
        let mut program = trapline();
        program.current_dir(folder.path());
        program.args(["record", "--for", "sched", "-o", name]);
        program.stdout(Stdio::null()).stderr(Stdio::null());
        program
    };
    // How long it takes until there is a file depends on what else the machine does.
    let begun = Instant::now();
    let mut first = program("first").spawn().expect("the program");
    let file = folder.path().join("first/perf.data");
    while !file.exists() && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    let span = begun.elapsed() * 2;
    first.kill().expect("it records until it is stopped");
    let _ = first.wait();
    for number in 0..kills() {
        let name = format!("out-{number}");
        killed(program(&name), moment(number, span));
        let data = folder.path().join(&name).join("perf.data");
        if !data.exists() {
            none += 1;
            continue;
        }
        json(&["info"], &data).unwrap_or_else(|error| panic!("{name}: {error}"));
        open += 1;
        fs::remove_dir_all(folder.path().join(&name)).expect("it is removed");
    }
    assert_eq!(none + open, kills());
    assert!(open > 0, "it was never killed late enough");
}

/// Each file that `-o` writes is the whole one, or is not there.
#[test]
fn a_writer_that_is_killed_leaves_a_whole_file_or_none() {
    let input = recording();
    let kinds: [(&[&str], &str); 6] = [
        (&["report", "-o", "page.html"], "page.html"),
        (&["export", "-o", "x.pftrace"], "x.pftrace"),
        (&["export", "-o", "x.csv"], "x.csv"),
        (&["export", "-o", "x.json"], "x.json"),
        (&["redact", "-o", "x.redacted"], "x.redacted"),
        (&["salvage", "-o", "x.salvaged"], "x.salvaged"),
    ];
    let unpacked = tempfile::tempdir().expect("a folder");
    let plain = unpacked.path().join("perf.data");
    fs::write(&plain, crate::common::read(&input)).expect("a recording");
    let mut lengths = BTreeMap::new();
    for (arguments, file) in kinds {
        let folder = tempfile::tempdir().expect("a folder");
        let program = || {
            let mut program = trapline();
            program
                .current_dir(folder.path())
                .args(arguments)
                .arg(&plain);
            program
        };
        let begun = Instant::now();
        let output = program().output().expect("the program");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let span = begun.elapsed();
        let written = folder.path().join(file);
        let whole = fs::read(&written).expect("it is written").len();
        for number in 0..kills() {
            fs::remove_file(&written).ok();
            killed(program(), moment(number, span));
            if written.exists() {
                // Names of a redacted recording are at random; lengths are not.
                let length = fs::read(&written).expect("it is read").len();
                assert_eq!(length, whole, "{arguments:?}, {number}");
            }
        }
        // Who finds a half file waits until nobody can be about to lock it.
        sleep(Duration::from_millis(2100));
        assert!(program().output().expect("the program").status.success());
        let left = fs::read_dir(folder.path()).expect("a folder").flatten();
        let names: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert_eq!(names, [file], "{arguments:?}");
        lengths.insert(file, whole);
    }
    assert_eq!(lengths.len(), kinds.len());
}
