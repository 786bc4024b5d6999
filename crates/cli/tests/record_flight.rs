//! The flight recorder that sleeps: the kernel keeps what happened last, and nobody looks at it before something has
//! happened.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::common::{json, note};
use crate::record_command::{possible, record, signals, write_path};

/// Returns how many instances of two signals a recording has.
fn instances(folder: &Path, recording: &str, first: u32) -> u64 {
    let path = write_path(folder, first);
    let recording = folder.join(recording);
    let paths = json(
        &["paths", "--path", &path.display().to_string()],
        &recording,
    );
    let paths = paths.expect("paths");
    paths["paths"][0]["count"].as_u64().expect("a number")
}

fn quality(folder: &Path, recording: &str) -> Value {
    json(&["info"], &folder.join(recording)).expect("a recording")["quality"].clone()
}

/// Runs a recorder of a script. Returns what it said.
fn reported(folder: &Path, more: &[&str], script: &str) -> String {
    let mut command = record(folder, &["--for", "sched", "-o", "out"]);
    command.args(more).args(["--", "bash", "-c", script]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_happened_last_is_all_there_and_nothing_older() {
    if possible() {
        // Programs write it where the kernel takes them, or perf does.
        is_all_there(&[]);
        is_all_there(&["--no-compact"]);
    }
}

fn is_all_there(more: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let [old, new] =
        [(36, 2000), (38, 1500)].map(|(first, count)| signals(first, count, "0")[2].clone());
    let script = format!("{old}; sleep 3.2; {new}; exit 3");
    let reported = reported(folder.path(), &[&["--keep", "3"], more].concat(), &script);
    assert!(reported.contains("the last 3.000s"), "{reported}");
    assert_eq!(instances(folder.path(), "out", 38), 1500, "{reported}");
    assert_eq!(instances(folder.path(), "out", 36), 0, "{reported}");
    let quality = quality(folder.path(), "out");
    assert_eq!(quality["lost_events"], 0, "{quality}");
    assert_eq!(quality["truncated"], false, "{quality}");
    // Nothing of it is out of order, and all that was asked for is there.
    assert_eq!(quality["warnings"], serde_json::json!([]), "{quality}");
    let file = folder.path().join("out/perf.data");
    if let Ok(perf) = Command::new("perf")
        .args(["script", "-i"])
        .arg(&file)
        .output()
    {
        let lines = perf.stdout.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty()).count() as u64;
        let info = json(&["info"], &file).expect("a recording");
        let events = info["events"].as_array().expect("events");
        let sum: u64 = events.iter().filter_map(|one| one["count"].as_u64()).sum();
        assert_eq!(lines, sum, "{}", String::from_utf8_lossy(&perf.stderr));
    }
}

#[test]
fn a_ring_that_holds_less_is_named_in_what_is_printed_and_in_the_file() {
    if possible() {
        is_named(&[]);
        is_named(&["--no-compact"]);
    }
}

fn is_named(more: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    // Thread names come with forks and executions, which are gone over: they are read when the recording is written.
    let program = folder.path().join("oddly-named");
    fs::copy("/bin/sleep", &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let script = "./oddly-named 60 & i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done; kill %1; wait; \
                  ./oddly-named 60 & \
                  i=0; while [ $i -lt 800 ]; do /bin/true; i=$((i+1)); done; (sleep 2; kill $!) & exit 3";
    let arguments = [&["--keep", "300", "--ring", "16"], more].concat();
    let reported = reported(folder.path(), &arguments, script);
    // Programs have a few slots more.
    let rings = ["16", "24"].map(|kib| format!("its ring of {kib} KiB holds the last "));
    assert!(
        rings.iter().any(|ring| reported.contains(ring)),
        "{reported}"
    );
    // Whoever says how large rings are is not sent to --memory, which would change nothing.
    assert!(reported.contains("give more --ring"), "{reported}");
    let quality = quality(folder.path(), "out");
    let warnings = quality["warnings"].to_string();
    assert!(
        warnings.contains("The recorder was asked to keep 300.0s and kept "),
        "{warnings}"
    );
    assert!(
        warnings.contains("were overwritten in the rings of CPU "),
        "{warnings}"
    );
    // What was gone over is not lost.
    assert_eq!(quality["lost_events"], 0, "{quality}");
    let bytes = fs::read(folder.path().join("out/perf.data")).expect("a file");
    assert!(memchr::memmem::find(&bytes, b"oddly-named\0").is_some());
    // What an event costs is said beside what was kept.
    assert!(memchr::memmem::find(&bytes, b"{\"cost\":{\"event_ns\":").is_some());
    // Everything in it is of the time that is said.
    let lines: Vec<&str> = reported
        .lines()
        .filter(|line| line.contains("holds the last"))
        .collect();
    let since = lines
        .iter()
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    let since = since.fold(0.0, f64::max);
    let info = json(&["info"], &folder.path().join("out")).expect("a recording");
    let first = info["start_ns"].as_u64().expect("a time");
    assert!(first as f64 / 1e9 > since - 1e-6, "{first} {reported}");
}

/// How often a process was put off its CPU: by itself, and by others.
fn switches(child: &Child) -> [u64; 2] {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("its status");
    ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse().ok())
            .expect("a number")
    })
}

/// Starts a flight recorder and waits until it keeps.
fn keeping(folder: &Path, more: &[&str]) -> Child {
    let mut command = record(folder, &["--for", "sched", "-o", "out"]);
    command
        .args(more)
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let stderr = child.stderr.take().expect("standard error");
    let mut stderr = BufReader::new(stderr);
    stderr.read_line(&mut line).expect("a line");
    assert!(line.contains("keeping the last"), "{line}");
    // It has no more to say than a pipe holds.
    child.stderr = Some(stderr.into_inner());
    // Until it sleeps.
    for _ in 0..500 {
        let before = switches(&child);
        sleep(Duration::from_millis(20));
        if switches(&child) == before {
            break;
        }
    }
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(sent.expect("kill").success());
}

#[test]
fn a_recorder_that_waits_for_a_signal_does_not_run_until_it_comes() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = keeping(folder.path(), &["--keep", "600", "--times", "2"]);
    let before = switches(&child);
    let mut busy = Command::new("bash");
    let script = &signals(46, 4000, "0")[2];
    busy.args(["-c", script]);
    assert!(busy.status().expect("bash").success());
    // Thousands of events, and nobody has looked at them.
    assert_eq!(switches(&child), before);
    signal(&child, "-USR1");
    for _ in 0..1000 {
        if fs::read(folder.path().join("out-1/facts.json")).is_ok_and(|text| text.ends_with(b"}\n"))
        {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    assert_eq!(instances(folder.path(), "out-1", 46), 4000);
    // It goes on, and what it has written is still kept.
    assert!(
        Command::new("bash")
            .args(["-c", script])
            .status()
            .expect("bash")
            .success()
    );
    signal(&child, "-USR1");
    assert!(child.wait().expect("it ends").success());
    assert!(instances(folder.path(), "out-2", 46) >= 4000);
}

/// A line of the kernel's log that harms nobody, with a number that it is known by.
fn log(number: u32) -> String {
    format!(
        "echo '<4>perf: interrupt took too long ({number} > 2500), lowering \
         kernel.perf_event_max_sample_rate to 79000' > /dev/kmsg"
    )
}

/// Returns the numbers of such lines that a log of a recording's facts has.
fn logged(host: &Value, log: &str) -> Vec<u32> {
    let lines = host[log]["kept"].as_array();
    let texts = lines
        .into_iter()
        .flatten()
        .filter_map(|line| line["text"].as_str());
    let numbers = texts.filter_map(|text| {
        let (_, rest) = text.split_once("interrupt took too long (")?;
        rest.split(' ').next()?.parse().ok()
    });
    numbers.collect()
}

fn host_facts(folder: &Path) -> Value {
    let text = fs::read(folder.join("out/facts.json")).expect("facts");
    serde_json::from_slice::<Value>(&text).expect("JSON")["host"].clone()
}

/// Whether lines can be written to the kernel's log and read from it here.
fn log_is_there() -> bool {
    let mut shell = Command::new("bash");
    let written = shell
        .args(["-c", &log(9000)])
        .stderr(Stdio::null())
        .status();
    let there = written.is_ok_and(|status| status.success()) && fs::File::open("/dev/kmsg").is_ok();
    if !there {
        note("skipped: the kernel's log cannot be written and read here");
    }
    there
}

#[test]
fn the_kernels_log_is_cut_where_what_is_kept_begins() {
    if !possible() || !log_is_there() {
        return;
    }
    let slow = signals(50, 0, "0.7")[2].clone();
    // Of this run: the log may have those of others.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time");
    let run = 10_000_000 + (now.as_millis() % 1_000_000) as u32 * 10;
    for (first, trigger) in [(run, "exit 3"), (run + 2, slow.as_str())] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write_path(folder.path(), 50);
        let until = format!("{} > 500ms", path.display());
        let mut more = vec!["--keep", "3"];
        if trigger != "exit 3" {
            more.extend(["--until", &until]);
        }
        let script = format!("{}; sleep 4.5; {}; {trigger}", log(first), log(first + 1));
        let reported = reported(folder.path(), &more, &script);
        let host = host_facts(folder.path());
        assert_eq!(
            logged(&host, "kernel_log_during"),
            [first + 1],
            "{reported}"
        );
        let before = logged(&host, "kernel_log");
        assert!(
            before.contains(&first) && !before.contains(&(first + 1)),
            "{before:?}"
        );
        // What was counted in the last seconds alone is not known.
        assert!(host["counters"].is_object(), "{host}");
        assert!(host.get("counters_during").is_none(), "{host}");
    }
}

#[test]
fn what_is_kept_from_the_beginning_has_what_was_counted_in_it() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    reported(folder.path(), &["--keep", "300"], "sleep 0.2; exit 3");
    let host = host_facts(folder.path());
    assert!(host["counters_during"].is_object(), "{host}");
}
