//! What `trapline record` chooses: records by a filter, CPUs, threads, functions of programs.
//!
//! It needs root and tracefs, as `record_command`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{json, note, trapline};
use crate::record_command::{possible, recorded, signals};

/// Returns how many events of a recording there are of each kind.
fn counts(folder: &Path) -> Vec<(String, u64)> {
    let info = json(&["info"], folder).expect("a recording");
    let events = info["events"].as_array().cloned().unwrap_or_default();
    let named = events.iter().filter_map(|one| {
        let count = one["count"].as_u64()?;
        Some((one["name"].as_str()?.to_owned(), count))
    });
    named.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_filter_between_slashes_leaves_out_other_records() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |filter: &str, out: &str| {
        let mut command = trapline();
        command.current_dir(folder.path());
        let event = format!("signal:signal_generate/{filter}/");
        command.args(["record", "--for", "exits", "-e", &event, "-o", out, "--"]);
        command.args(signals(40, 30, "0"));
        command.output().expect("the program")
    };
    assert!(run("sig == 41", "one").status.success());
    let of_one = recorded(&folder.path().join("one"), "signal:signal_generate");
    assert!((30..60).contains(&of_one), "{of_one}");
    let refused = run("no_such_field == 1", "two");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(
        text.contains("its fields are") && text.contains("sig"),
        "{text}"
    );
    let open = run("", "three");
    assert_eq!(open.status.code(), Some(2), "{open:?}");
}

#[test]
fn a_recording_says_which_time_of_day_its_times_are() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = record_in(
        folder.path(),
        &["--for", "sched", "--seconds", "0.2", "-o", "day"],
    );
    assert!(output.status.success(), "{output:?}");
    let info = json(&["info"], &folder.path().join("day")).expect("a recording");
    let began = info["started_unix_ns"].as_u64().expect("a time of day");
    let ago = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_nanos(began));
    assert!(ago.is_ok_and(|ago| ago.as_secs() < 300), "{began}");
    assert_eq!(info["time_source"], "recorder");
}

#[test]
fn cpus_and_threads_are_chosen() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |options: &[&str]| record_in(folder.path(), options);
    let output = run(&["--for", "sched", "-C", "0", "--seconds", "0.3", "-o", "cpu"]);
    assert!(output.status.success(), "{output:?}");
    let events = run_in(folder.path(), &["events", "cpu", "--format", "csv"]);
    let mut lines = events.lines();
    let head = lines.next().expect("a head");
    let at = head
        .split(',')
        .position(|name| name == "cpu")
        .expect("a column");
    assert!(
        lines.all(|line| line.split(',').nth(at) == Some("0")),
        "{head}"
    );
    let none = run(&[
        "--for",
        "sched",
        "-C",
        "4000",
        "--seconds",
        "0.1",
        "-o",
        "none",
    ]);
    let text = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(text.contains("CPU 4000 is not on line"), "{text}");

    let mut sleeper = Command::new("bash");
    sleeper.args(["-c", "while :; do read -t 0.01; done"]);
    let (input, _held) = std::io::pipe().expect("a pipe");
    let mut sleeper = sleeper.stdin(input).spawn().expect("bash");
    let tid = sleeper.id().to_string();
    let output = run(&[
        "--for",
        "sched",
        "--tid",
        &tid,
        "--seconds",
        "0.5",
        "-o",
        "tid",
    ]);
    sleeper.kill().expect("it runs");
    sleeper.wait().expect("it ended");
    assert!(output.status.success(), "{output:?}");
    let events = run_in(folder.path(), &["events", "tid"]);
    let switches: Vec<&str> = events
        .lines()
        .filter(|line| line.contains("sched_switch"))
        .collect();
    assert!(switches.len() > 10, "{events}");
    let of_it = |line: &&&str| {
        line.contains(&format!("bash:{tid} ")) || line.contains(&format!("pid={tid} "))
    };
    let others: Vec<_> = switches.iter().filter(|line| !of_it(line)).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Records in a folder.
fn record_in(folder: &Path, options: &[&str]) -> Output {
    let mut command = trapline();
    command.current_dir(folder).arg("record").args(options);
    command.output().expect("the program")
}

/// Returns what a command prints in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> String {
    let mut command = trapline();
    let output = command.current_dir(folder).args(arguments).output();
    let output = output.expect("the program");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A function of a library is probed by its symbol, where it is called and where it returns.
#[test]
fn functions_of_programs_are_probed_by_their_names() {
    let uprobes = Path::new("/sys/kernel/tracing/uprobe_events");
    if !possible() || !uprobes.exists() {
        note("skipped: this kernel has no uprobes");
        return;
    }
    let maps = fs::read_to_string("/proc/self/maps").expect("this process");
    let mapped = maps
        .split_whitespace()
        .find(|word| word.ends_with("/libc.so.6"));
    let Some(libc) = mapped else {
        note("skipped: no libc.so.6 here");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let place = format!("{libc}:getppid");
    let list = run_in(folder.path(), &["record", "--list-probes", &place]);
    assert_eq!(list.trim(), place);
    let mut command = trapline();
    command.current_dir(folder.path());
    let back = format!("{place}%return");
    command.args([
        "record", "--for", "exits", "--probe", &place, "--probe", &back,
    ]);
    command.args(["-o", "out", "--", "bash", "-c", "true"]);
    let output = command.output().expect("the program");
    assert!(output.status.success(), "{output:?}");
    let counts = counts(&folder.path().join("out"));
    let of = |end: &str| {
        let mut found = counts.iter().filter(|(name, _)| name.ends_with(end));
        found.next().map_or(0, |(_, count)| *count)
    };
    // Every shell asks for its parent when it starts.
    assert!(
        of(":getppid") > 0 && of(":getppid__return") > 0,
        "{counts:?}"
    );
}

/// A budget that nothing fits leaves questions out, and refuses what was named.
#[test]
fn a_budget_leaves_out_or_refuses() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |options: &[&str]| {
        let output = record_in(folder.path(), options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let said: Vec<&str> = said.split_whitespace().collect();
        (output.status.success(), said.join(" "))
    };
    let (recorded, said) = run(&["--budget", "100%", "--seconds", "0.1", "-o", "all"]);
    assert!(recorded && !said.contains("left out"), "{said}");
    // The recorder itself is switched to, whatever else is.
    let none = [
        "--for",
        "sched",
        "--budget",
        "0",
        "--seconds",
        "0.1",
        "-o",
        "none",
    ];
    let (recorded, said) = run(&none);
    assert!(!recorded, "{said}");
    assert!(said.contains("more than --budget 0 %"), "{said}");
    assert!(said.contains("sched:sched_switch"), "{said}");
    assert!(!folder.path().join("none").exists());
}

/// What 'ulimit -n' has to allow is what recording takes, and no multiple of that.
#[test]
fn files_that_are_needed_are_counted() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |most: u64, out: &str| {
        let limit = format!("--nofile={most}:{most}");
        let mut command = Command::new("prlimit");
        command.current_dir(folder.path()).arg(limit);
        command.arg(trapline().get_program());
        let counts = "ls /proc/$PPID/fd | wc -l";
        command.args([
            "record", "--for", "sched", "-o", out, "--", "sh", "-c", counts,
        ]);
        command.output().expect("prlimit")
    };
    let refused = run(20, "none");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let (_, needed) = said.split_once("ulimit -n ").expect(&said);
    let needed: String = needed.chars().take_while(char::is_ascii_digit).collect();
    let needed: u64 = needed.parse().expect("a number");
    let output = run(needed, "enough");
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let open = printed.lines().find_map(|line| line.trim().parse().ok());
    let open: u64 = open.expect(&printed);
    // Some are open for a moment, and not while the command looks.
    assert!(
        (open..=open + 48).contains(&needed),
        "{open} open, {needed} asked for"
    );
}
