//! Memory has a limit, and its end is one sentence.

use std::fmt::Write as _;

use crate::common::{json, run, trapline};

/// Returns so many tasks that each run once, as perf script prints them.
fn tasks(many: u32) -> String {
    let mut text = String::new();
    for number in 0..many {
        let (tid, us) = (1000 + number, u64::from(number) * 10);
        for (at, prev, next) in [
            (us, ("swapper/1", 0, "R"), ("task", tid)),
            (us + 5, ("task", tid, "S"), ("swapper/1", 0)),
        ] {
            let (s, us) = (at / 1_000_000, at % 1_000_000);
            let _ = writeln!(
                text,
                "{:>16} {}/{} [001] {s}.{us:06}: sched:sched_switch: prev_comm={} prev_pid={} prev_prio=120 \
                 prev_state={} ==> next_comm={} next_pid={} next_prio=120",
                prev.0, prev.1, prev.1, prev.0, prev.1, prev.2, next.0, next.1
            );
        }
    }
    text
}

/// Within little memory fewer threads are kept apart, which is said, and their sums are the same.
#[test]
fn threads_that_do_not_fit_are_summed_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.txt");
    std::fs::write(&path, tasks(12_000)).expect("a file");
    let all = json(&["sched"], &path).expect("a recording");
    let few = json(&["sched", "--max-memory", "96M"], &path).expect("a recording");
    let ran = |report: &serde_json::Value| -> u64 {
        let rows = report["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["on_cpu_ns"].as_u64().unwrap_or(0)).sum()
    };
    assert_eq!(ran(&few), ran(&all));
    assert_eq!(ran(&all), 12_000 * 5000);
    let doubts = |report: &serde_json::Value| report["quality"].to_string();
    assert!(doubts(&few).contains("threads-merged"), "{}", doubts(&few));
    assert!(!doubts(&all).contains("threads-merged"));
}

/// Both sides of a comparison are held at once, whatever is read beside each.
#[test]
fn sides_of_a_comparison_share_what_is_kept_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.txt");
    std::fs::write(&path, tasks(18_000)).expect("a file");
    let path = path.display().to_string();
    let facts = folder.path().join("facts.txt");
    std::fs::write(&facts, "* CPU #0: thread_id=1\n").expect("a file");
    let facts = facts.display().to_string();
    for beside in [&["--a-facts", facts.as_str()][..], &[]] {
        let all = ["compare", &path, &path, "--format", "json"];
        let ran = run([&all[..], beside].concat());
        let compared = ran.json().unwrap_or_else(|error| panic!("{error}"));
        let doubts = compared["quality"].to_string();
        assert!(doubts.contains("threads-merged"), "{beside:?}: {doubts}");
    }
}

#[test]
fn less_than_any_recording_takes_is_wrong_usage() {
    for size in ["1M", "none", "0"] {
        let output = trapline()
            .args(["exits", "--max-memory", size, "nowhere"])
            .output()
            .expect("the program");
        assert_eq!(output.status.code(), Some(2), "{size}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("--max-memory"), "{text}");
    }
}

/// What `ulimit -v` allows is too little.
#[test]
fn the_end_of_memory_is_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.txt");
    std::fs::write(&path, tasks(100_000)).expect("a file");
    let program = env!("CARGO_BIN_EXE_trapline");
    let mut ended = Vec::new();
    // The program itself takes some tens of MiB of addresses, which differs by how it was built.
    for kib in [60, 80, 100, 120, 140, 160, 200].map(|mib| mib * 1024) {
        let script = format!("ulimit -v {kib}; exec \"$@\"");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, "sh", program, "report", "--threads", "1"])
            .arg(&path)
            .output()
            .expect("a shell");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if text.contains("out of memory") {
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(text.contains("bytes are not to be had"), "{text}");
            ended.push(kib);
        }
        assert!(
            !text.contains("panicked") && !text.contains("backtrace"),
            "{text}"
        );
    }
    assert!(!ended.is_empty(), "no limit was too low");
}
