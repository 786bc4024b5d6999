//! `trapline flame`: which forms it writes, and what it refuses. What is in flame graphs is in `crates/analysis/tests`
//! and `crates/render/tests`.

use std::fs;
use std::path::Path;

use crate::common::{all_cases, file, json, run, write_text};

#[test]
fn what_cannot_be_shown_is_said() {
    // Its events have no subsystem, and so may be anything: one is a line of the function tracer.
    let text = file("seed-text/case1-irqfd.trace-cmd.txt");
    let done = run(["flame", &text.display().to_string()]);
    assert_eq!(done.status, 1);
    assert!(
        done.stderr.contains("'trapline record --for stacks'"),
        "{}",
        done.stderr
    );
    let tracepoints = all_cases()
        .into_iter()
        .find(|case| case.kind == "trace.dat")
        .unwrap();
    let done = run(["flame", &tracepoints.path.display().to_string()]);
    assert_eq!(done.status, 1);
    assert!(
        done.stderr.contains("'trapline record --for stacks'"),
        "{}",
        done.stderr
    );
    let recording = file("arm64/vhost-mmio/boot2-vsock/perf.data.l2");
    let recording = recording.display().to_string();
    let done = run(["flame", &recording, "-o", "out.pdf"]);
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains(".folded"), "{}", done.stderr);
    assert!(!Path::new("out.pdf").exists());
    let done = run(["flame", &recording, "--event", "cycles", "--format", "csv"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let done = run(["flame", &recording, "--event", "nothing"]);
    assert_eq!(done.status, 1);
}

#[test]
fn differences_have_forms_of_their_own() {
    let a = file("arm64/vhost-mmio/boot2-vsock/perf.data.l2")
        .display()
        .to_string();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.json").display().to_string();
    let done = run(["flame", &a, "--diff", &a, "-o", &out]);
    assert_ne!(done.status, 0);
    assert!(done.stderr.contains("no differences"), "{}", done.stderr);
    let done = run(["flame", &a, "-o", "x.png"]);
    assert_ne!(done.status, 0);
    assert!(done.stderr.contains(".svg, .html"), "{}", done.stderr);
    // Two columns behind each stack, of which those of a recording and itself are the same.
    let out = folder.path().join("x.folded");
    let done = run(["flame", &a, "--diff", &a, "-o", &out.display().to_string()]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    for line in fs::read_to_string(&out).unwrap().lines() {
        let mut words = line.rsplitn(3, ' ');
        assert_eq!(words.next(), words.next(), "{line}");
    }
}

/// A file that cannot be written whole is not written, and what was there stays.
#[test]
fn files_are_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let recording = file("arm64/vhost-mmio/boot2-vsock/perf.data.l2")
        .display()
        .to_string();
    let out = write_text(folder.path(), "out.svg", "before");
    assert_eq!(
        run(["flame", &recording, "-o", &out.display().to_string()]).status,
        0
    );
    assert!(fs::read_to_string(&out).unwrap().contains("<svg"));
    let nowhere = folder
        .path()
        .join("no-folder/out.svg")
        .display()
        .to_string();
    assert_eq!(run(["flame", &recording, "-o", &nowhere]).status, 1);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// A thread may be on a CPU that is left out.
#[test]
fn a_filter_of_cpus_is_said_to_hide_switches() {
    let folder = tempfile::tempdir().unwrap();
    let switch = |time: &str, prev: &str, next: &str| {
        format!(
            "x 7/7 [001] {time}: sched:sched_switch: prev_comm={prev} prev_prio=120 prev_state=S ==> \
             next_comm={next} next_prio=120\n\tffffffff81000000 schedule+0x1 ([kernel.kallsyms])\n\n"
        )
    };
    let [one, other] = ["x prev_pid=7", "swapper/1 prev_pid=0"];
    let text = switch("1.000000001", one, "swapper/1 next_pid=0")
        + &switch("1.000000900", other, "x next_pid=7");
    let path = write_text(folder.path(), "switches.txt", &text);
    let document = json(&["flame", "--off-cpu", "--cpu", "1"], &path).unwrap();
    let quality = document["quality"].to_string();
    assert!(quality.contains("--cpu leaves out switches"), "{quality}");
}
