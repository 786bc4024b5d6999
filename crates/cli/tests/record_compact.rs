//! `trapline record --compact`: what programs write becomes the records that perf would have written.
//!
//! It needs root, tracefs, BPF and the kernel's BTF.

use std::path::Path;
use std::process::Output;

use crate::common::{json, note, trapline};
use crate::record_command::possible;
use crate::record_pairs::refuses_programs;

/// Says who it is, and starts programs.
const SCRIPT: &str = "echo me=$$; for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; sleep 0.01; done";
/// Events that programs write.
const WRITTEN: [&str; 4] = [
    "sched_switch:",
    "sched_waking:",
    "sched_wakeup:",
    "sched_migrate_task:",
];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = trapline();
    command.current_dir(folder).args(arguments);
    command.output().expect("the program")
}

/// Returns what a thread did in a recording, event by event: names and fields.
fn events(folder: &Path, name: &str, tid: &str) -> Vec<String> {
    let output = run(folder, &["events", name]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut out = Vec::new();
    for line in text.lines() {
        let Some(at) = WRITTEN.iter().filter_map(|event| line.find(event)).min() else {
            continue;
        };
        let (head, event) = line.split_at(at);
        let mut words = head.split(|c: char| !c.is_ascii_digit());
        if words.any(|word| word == tid) {
            out.push(event.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    out
}

/// Returns an event without the names of threads, which may have spaces.
fn numbers(event: &str) -> String {
    let mut out = String::new();
    let mut in_name = false;
    for word in event.split(' ') {
        if let Some((key, _)) = word.split_once('=') {
            in_name = key.ends_with("comm");
        }
        if !in_name {
            out.push_str(word);
            out.push(' ');
        }
    }
    out
}

#[test]
fn records_are_those_that_perf_would_have_written() {
    if programs_may_be_there() {
        are_those_of_perf(&[], "exit 0");
    }
}

/// The same where programs go on over what is old, and what they wrote is read when the command has failed.
#[test]
fn what_programs_wrote_last_is_that_too() {
    if programs_may_be_there() {
        are_those_of_perf(&["--keep", "60"], "exit 3");
    }
}

fn programs_may_be_there() -> bool {
    let has_btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    if !has_btf {
        note("skipped: this kernel has no BTF");
    }
    possible() && has_btf
}

/// Records a script by programs, and all of that by perf's own records.
fn are_those_of_perf(more: &[&str], end: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_trapline");
    let script = format!("{SCRIPT}; {end}");
    let of_programs = ["--compact", "--for", "sched", "-o", "compact"];
    let inner = [
        &[program, "record"],
        &of_programs[..],
        more,
        &["--", "bash", "-c", &script],
    ]
    .concat();
    let outer = ["record", "--for", "sched", "-o", "whole", "--"];
    let output = run(folder.path(), &[&outer[..], &inner[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if refuses_programs(&output) {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let me = text.lines().find_map(|line| line.strip_prefix("me="));
    let me = me.expect("the script said who it is").trim();

    let whole = events(folder.path(), "whole", me);
    let compact = events(folder.path(), "compact", me);
    assert!(compact.len() > 20, "{compact:?}");
    // What perf wrote is there, in that order and with the same numbers. perf itself misses an event that happens while
    // it writes another one, and what came behind the end of the shorter recording.
    let mut left = compact.iter();
    let (mut same_names, mut found) = (0, 0);
    for event in &whole {
        let Some(other) = left.by_ref().find(|other| numbers(other) == numbers(event)) else {
            break;
        };
        found += 1;
        same_names += usize::from(other == event);
    }
    assert!(
        found + 5 >= whole.len(),
        "{found}\n{whole:#?}\n{compact:#?}"
    );
    assert!(
        compact.len() <= whole.len() + whole.len() / 4,
        "{whole:#?}\n{compact:#?}"
    );
    // A thread that gets another name at that moment may have the one or the other.
    assert!(same_names * 10 >= found * 9, "{whole:#?}\n{compact:#?}");

    let info = json(&["info"], &folder.path().join("compact")).expect("a recording");
    assert_eq!(info["quality"]["lost_events"], 0, "{info}");
    let text = info.to_string();
    // What programs do not know is perf's own, in the same file.
    assert!(text.contains("sched:sched_process_fork"), "{text}");
    let sched = run(folder.path(), &["sched", "compact"]);
    let sched = String::from_utf8_lossy(&sched.stdout).into_owned();
    assert!(!sched.contains("switches are missing"), "{sched}");
}

#[test]
fn what_programs_cannot_choose_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    for more in [["--cpu", "0"], ["--tid", "1"], ["--vm", "web"]] {
        let output = run(
            folder.path(),
            &[&["record", "--compact"], &more[..], &["--", "true"]].concat(),
        );
        assert_eq!(output.status.code(), Some(2), "{more:?}: {output:?}");
    }
}
