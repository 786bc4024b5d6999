//! `trapline record --pair 'A -> B'`: of A no more than each thread's last before B.
//!
//! It needs root, tracefs and BPF.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{json, note, trapline};
use crate::record_command::{possible, recorded};

const FIRST: &str = "signal:signal_generate";
const SECOND: &str = "sched:sched_process_fork";

/// Says who it is, then sends itself three signals and starts a program, five times.
const SCRIPT: &str = "trap '' 40; echo \"shell=$$\"; \
                      for i in 1 2 3 4 5; do kill -40 $$; kill -40 $$; kill -40 $$; /bin/true; done";

/// Returns whether this machine's kernel takes no BPF programs, by what a recorder said that needs them.
pub(crate) fn refuses_programs(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let refused = !output.status.success()
        && ["the pair ", "--compact: "]
            .iter()
            .any(|what| said.contains(what))
        && ["permitted", "denied", "BTF"]
            .iter()
            .any(|why| said.contains(why));
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some();
    assert!(
        !refused || !required,
        "BPF programs are refused here: {said}"
    );
    if refused {
        note("skipped: this kernel takes no BPF programs");
    }
    refused
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = trapline();
    command.current_dir(folder).args(arguments);
    command.output().expect("the program")
}

/// Returns the times of an event in a recording, ns, of those lines that have all of these texts in them.
fn times(folder: &Path, name: &str, event: &str, with: &[&str]) -> Vec<u64> {
    let output = run(folder, &["events", name, "--format", "csv"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text
        .lines()
        .filter(|line| line.contains(event) && with.iter().all(|with| line.contains(with)));
    lines
        .filter_map(|line| line.split(',').find_map(|cell| cell.parse::<u64>().ok()))
        .collect()
}

/// What is recorded of a pair is what a recording of everything has: each thread's last before.
#[test]
fn of_the_first_event_the_last_before_each_second_is_recorded() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pair = format!("{FIRST} -> {SECOND}");
    let program = env!("CARGO_BIN_EXE_trapline");
    let inner = [
        program, "record", "--for", "named", "--pair", &pair, "-o", "pairs", "--", "bash", "-c",
        SCRIPT,
    ];
    let outer = [
        "record", "--for", "named", "-e", FIRST, "-e", SECOND, "-o", "all", "--",
    ];
    let output = run(folder.path(), &[&outer[..], &inner[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if refuses_programs(&output) {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains(&format!("{FIRST} -> {SECOND}: ")), "{text}");
    let pairs = folder.path().join("pairs");
    assert_eq!(
        recorded(&pairs, FIRST),
        recorded(&folder.path().join("pairs/perf.data"), FIRST)
    );

    // The signals of the script, of which every third stands right before a fork. Other tests send some too.
    let shell = text.lines().find_map(|line| line.strip_prefix("shell="));
    let sent = format!("pid={} ", shell.expect("the shell's number").trim());
    let all = times(folder.path(), "all", FIRST, &["sig=40", &sent]);
    let kept = times(folder.path(), "pairs", FIRST, &["sig=40", &sent]);
    assert_eq!((all.len(), kept.len()), (15, 5), "{all:?}\n{kept:?}");
    // Behind the second of three, and before the next three, however late either recording stamps them.
    let next = all.iter().skip(3).step_by(3).copied();
    let next = next.chain(std::iter::once(u64::MAX));
    for ((three, kept), next) in all.chunks(3).zip(&kept).zip(next) {
        assert!(three[1] < *kept && *kept < next, "{three:?} {kept} {next}");
    }
    let info = json(&["info"], &pairs).expect("a recording");
    assert!(info.to_string().contains("extras-paired"), "{info}");
    let paths = run(folder.path(), &["paths", "pairs"]);
    let paths = String::from_utf8_lossy(&paths.stdout).into_owned();
    assert!(paths.contains(&format!("{FIRST} → {SECOND}")), "{paths}");
}

/// With a time, pairs that were shorter leave nothing.
#[test]
fn pairs_that_are_short_are_left_out() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // No program is started while the script waits, and no signal sent.
    let wait =
        "e=$((${EPOCHREALTIME/./}+200000)); while [ ${EPOCHREALTIME/./} -lt $e ]; do :; done";
    let script = format!(
        "LC_ALL=C; trap '' 40; kill -40 $$; /bin/true; kill -40 $$; {wait}; /bin/true; true"
    );
    let pair = format!("{FIRST} -> {SECOND} > 100ms");
    let output = run(
        folder.path(),
        &[
            "record", "--for", "named", "--pair", &pair, "-o", "out", "--", "bash", "-c", &script,
        ],
    );
    if refuses_programs(&output) {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let first = times(folder.path(), "out", FIRST, &["sig=40"]);
    let second = times(folder.path(), "out", SECOND, &[]);
    // The one behind which the script waits; the other one too where the machine does not get on.
    assert!(!first.is_empty(), "{output:?}");
    for at in &first {
        let behind = second.iter().find(|second| *second > at);
        let took = behind.map(|behind| behind - at);
        assert!(
            took.is_some_and(|ns| ns > 100_000_000),
            "{first:?} {second:?}"
        );
    }
}

#[test]
fn a_pair_that_cannot_be_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    for pair in ["kvm:kvm_exit", "-> b", "a -> b > soon"] {
        let output = run(folder.path(), &["record", "--pair", pair, "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{pair}: {output:?}");
    }
    if !possible() {
        return;
    }
    let output = run(
        folder.path(),
        &[
            "record",
            "--pair",
            "sched:sched_switch -> sched:sched_waking",
            "--",
            "true",
        ],
    );
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("--for named"), "{text}");
}

/// Polls, as a switch's thread does.
#[inline(never)]
fn polled_by_pairs(calls: &AtomicU64) {
    calls.fetch_add(1, Ordering::Relaxed);
    std::hint::black_box(calls);
}

/// Sends, now and then.
#[inline(never)]
fn sent_by_pairs(calls: &AtomicU64) {
    calls.fetch_add(1, Ordering::Relaxed);
    std::hint::black_box((calls, 1));
}

/// A probe in a loop is there in windows, and what came outside of them is said to be missing.
#[test]
fn a_function_that_is_called_all_the_time_is_looked_at_in_windows() {
    if !possible() || !Path::new("/sys/kernel/tracing/uprobe_events").exists() {
        note("skipped: this kernel has no uprobes");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let program = program.display();
    let find = |name: &str| {
        let pattern = format!("{program}:*{name}*");
        let list = run(folder.path(), &["record", "--list-probes", &pattern]);
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        list.lines().next().map(|line| line.trim().to_owned())
    };
    let (Some(poll), Some(send)) = (find("polled_by_pairs"), find("sent_by_pairs")) else {
        note("skipped: this program has no symbols");
        return;
    };
    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&over);
    let poller = std::thread::spawn(move || {
        let (polls, sends) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut last = Instant::now();
        while !seen.load(Ordering::Relaxed) {
            polled_by_pairs(&polls);
            if last.elapsed() > Duration::from_millis(2) {
                sent_by_pairs(&sends);
                last = Instant::now();
            }
        }
        (polls.into_inner(), sends.into_inner())
    });
    let pair = format!("{poll} -> {send}");
    let output = run(
        folder.path(),
        &[
            "record",
            "--for",
            "named",
            "--pair",
            &pair,
            "--seconds",
            "4",
            "-o",
            "out",
        ],
    );
    over.store(true, Ordering::Relaxed);
    let (polls, sends) = poller.join().expect("it ended");
    if refuses_programs(&output) {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("The first event was looked at in"), "{text}");
    let info = json(&["info"], &folder.path().join("out")).expect("a recording");
    let events = info["events"].as_array().cloned().unwrap_or_default();
    let count = |name: &str| {
        let mut of = events
            .iter()
            .filter(|one| one["name"].as_str().is_some_and(|it| it.contains(name)));
        of.next().and_then(|one| one["count"].as_u64()).unwrap_or(0)
    };
    let (first, second) = (count("polled_by_pairs"), count("sent_by_pairs"));
    assert!(
        first > 0 && first < second && second <= sends,
        "{first} of {second}, {sends}\n{text}"
    );
    assert!(polls > 100 * first, "{polls}");
    assert!(info.to_string().contains("extras-paired"), "{info}");
}
