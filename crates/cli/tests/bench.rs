//! `trapline bench` on the machine that runs the tests, with few iterations: what is asked for is measured and counted,
//! results can be read back and compared, and what cannot be measured is said. How long anything takes is not tested.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fixtures::bench_results::ipi_result;
use serde_json::Value;

use crate::common::list;
use crate::common::{Run, file, run, trapline, write_text};

/// Few iterations, none of which warms up, and no row that takes long.
const FEW: [&str; 5] = ["-n", "20", "--warmup", "3", "--row-time=20s"];

fn bench(args: &[&str]) -> Run {
    let all: Vec<&str> = [&["bench"], args, &FEW].concat();
    run(all)
}

fn document(args: &[&str]) -> Value {
    let all = [args, &["--format=json"]].concat();
    bench(&all).json().expect("a document")
}

/// Returns what a run has printed that has to succeed.
fn ok(run: Run) -> String {
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.text()
}

/// Checks that a run fails, in one line that has these words.
fn fails(run: Run, words: &str) {
    assert!(
        matches!(run.status, 1 | 2),
        "{}: {}",
        run.status,
        run.text()
    );
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {value:#}"))
}

/// Checks a result against itself, and returns its rows that were measured.
fn checked(document: &Value, iterations: u64) -> Vec<&Value> {
    assert_eq!(document["command"], "bench");
    assert_eq!(document["result_version"], 1);
    assert_eq!(document["interrupted"], false);
    let begin = number(&document["started"], "monotonic_ns");
    let end = number(&document["ended"], "monotonic_ns");
    assert!(begin < end);
    let mut measured = Vec::new();
    for row in list(&document["rows"]) {
        if row["missing"].is_string() {
            assert_eq!(number(row, "count"), 0, "{row:#}");
            continue;
        }
        assert_eq!(number(row, "count"), iterations, "{row:#}");
        let names = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"];
        let values: Vec<u64> = names.iter().map(|name| number(row, name)).collect();
        assert!(values.is_sorted(), "{row:#}");
        let mean = number(row, "mean_ns");
        assert!(values[0] <= mean && mean <= values[4], "{row:#}");
        number(row, "first_ns");
        let slow = list(&row["slow"]);
        assert_eq!(slow.len(), 10);
        assert_eq!(number(&slow[0], "ns"), values[4]);
        for one in slow {
            let at = number(one, "begin_ns");
            assert!((begin..end).contains(&at), "{row:#}");
        }
        measured.push(row);
    }
    measured
}

/// Returns whether there is another CPU to measure to.
fn has_another_cpu(document: &Value) -> bool {
    let cpus = document["plan"]["cpus"].as_str().unwrap_or_default();
    cpus.contains([',', '-'])
}

#[test]
fn ipis_are_measured_as_often_as_was_asked_for() {
    let document = document(&["ipi", "--idle=50us", "--pairs"]);
    let rows = checked(&document, 20);
    assert!(!rows.is_empty());
    if has_another_cpu(&document) {
        let busy: Vec<_> = rows
            .iter()
            .filter(|row| row["target"] == "busy" && !row["to"].is_null())
            .collect();
        assert!(busy.len() >= 2, "{document:#}");
        // The kernel itself has counted them: the first, those that warm up, those that count.
        for row in busy {
            let sent = number(row, "interrupts");
            assert!(sent >= 12, "{row:#}");
        }
    }
}

#[test]
fn wake_ups_are_measured_in_every_state() {
    let document = document(&["wake", "--idle=200us", "--short=5us"]);
    let rows = checked(&document, 20);
    let of = |what: &str| rows.iter().filter(|row| row["what"] == what).count();
    for kind in ["futex", "pipe", "eventfd"] {
        let round_trips = of(&format!("{kind} round trip"));
        assert!(round_trips > 0, "{document:#}");
        if has_another_cpu(&document) {
            assert_eq!(of(kind), 3 * round_trips, "idle, longer idle, busy");
        }
    }
}

#[test]
fn clocks_timers_and_exits_are_measured() {
    let clock = document(&["clock"]);
    let rows = checked(&clock, 20);
    assert!(rows.iter().any(|row| row["what"] == "CLOCK_MONOTONIC"));
    let timer = document(&["timer"]);
    assert_eq!(checked(&timer, 20).len(), 9);
    let exits = document(&["exits"]);
    let rows = checked(&exits, 20);
    let has_cpuid = rows.iter().any(|row| row["what"] == "CPUID");
    assert_eq!(has_cpuid, cfg!(target_arch = "x86_64"));
    // What is not there is said, and the rest is measured.
    for row in list(&exits["rows"]) {
        let why = row["missing"].as_str();
        assert!(why.is_none_or(|why| !why.contains("os error")), "{row:#}");
    }
}

#[test]
fn tables_fit_a_terminal_and_csv_has_every_row() {
    for name in ["exits", "clock", "net"] {
        let text = ok(bench(&[name]));
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{text}");
        let rows = list(&document(&[name])["rows"]).len();
        let csv = ok(bench(&[name, "--format=csv"]));
        assert_eq!(csv.lines().count(), rows + 1, "{csv}");
        assert!(csv.starts_with("what,target,from,to,count,first_ns,"));
    }
}

#[test]
fn disks_are_read_and_only_own_files_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().display().to_string();
    let made = document(&["disk", &folder, "--write", "--size=1M"]);
    let rows = checked(&made, 20);
    assert_eq!(rows.len(), 3);
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);

    let kept = PathBuf::from(&folder).join("kept");
    fs::write(&kept, vec![7; 10_000]).expect("a file");
    let kept = kept.display().to_string();
    assert_eq!(checked(&document(&["disk", &kept]), 20).len(), 1);
    let refused = bench(&["disk", &kept, "--write"]);
    fails(refused, "only a file that trapline makes itself is written");
    assert_eq!(fs::read(&kept).expect("a file"), vec![7; 10_000]);

    fs::write(&kept, "short").expect("a file");
    fails(bench(&["disk", &kept]), "shorter than one request");
    fails(
        bench(&["disk", "/nowhere"]),
        "/nowhere: No such file or directory",
    );
    fails(
        bench(&["disk", "/dev/null"]),
        "no file, block device or folder",
    );
}

/// A peer that runs until it is dropped.
struct Peer {
    child: Child,
    address: String,
}

impl Peer {
    fn start() -> Peer {
        let mut child = trapline()
            .args(["bench", "net", "--serve", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.split_whitespace().nth(2).expect("an address");
        assert!(address.starts_with("127.0.0.1:"), "{line}");
        let address = address.to_owned();
        Peer { child, address }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(name: &str, child: &Child) {
    let kill = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status();
    assert!(kill.expect("kill").success());
}

#[test]
fn a_peer_answers_until_it_is_asked_to_end() {
    let mut peer = Peer::start();
    let document = document(&["net", "--connect", &peer.address, "--size=100"]);
    assert_eq!(checked(&document, 20).len(), 2);
    assert_eq!(document["plan"]["settings"]["peer"], *peer.address);
    signal("INT", &peer.child);
    let status = peer.child.wait().expect("an end");
    assert!(status.success(), "{status}");
    let nobody = bench(&["net", "--connect", &peer.address]);
    let text = nobody.text();
    assert!(text.contains("nobody answers at"), "{text}");
    fails(nobody, "nothing could be measured");
}

/// Interrupts a run of timers after some seconds, and returns what it printed; `None` where it had measured nothing
/// yet.
fn interrupted(out: &Path, seconds: u64) -> Option<String> {
    let mut child = trapline();
    child.args(["bench", "timer", "-n", "1000000", "--row-time=1000s", "-o"]);
    let child = child.arg(out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the program starts");
    sleep(Duration::from_secs(seconds));
    assert!(child.try_wait().expect("a child").is_none(), "it has ended");
    signal("INT", &child);
    let ended = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if said.contains("interrupted before anything was measured") {
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(!out.exists(), "nothing is written of nothing");
        return None;
    }
    assert!(ended.status.success(), "{said}");
    Some(String::from_utf8_lossy(&ended.stdout).into_owned())
}

#[test]
fn an_interrupted_run_has_what_was_measured_until_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("timer.json");
    // A busy machine may take its time to begin.
    let text = [1, 4, 16, 64]
        .iter()
        .find_map(|seconds| interrupted(&out, *seconds));
    let text = text.expect("something was measured in a minute");
    assert!(text.contains("warning: It was interrupted"), "{text}");
    let document: Value = serde_json::from_slice(&fs::read(&out).expect("a file")).expect("JSON");
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["quality"]["truncated"], true);
    assert!(number(&document["rows"][0], "count") > 0);
    assert!(document["rows"][8]["missing"].is_string());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    fails(
        bench(&["ipi", "--cpu=4000"]),
        "none of the CPUs 4000 may be used",
    );
    fails(
        bench(&["ipi", "-o", "/nowhere/x.json"]),
        "/nowhere: there is no such folder",
    );
    for args in [
        &["bench"][..],
        &["bench", "ipi", "-n", "0"],
        &["bench", "ipi", "--row-time", "2"],
        &["bench", "net", "--size", "31"],
        &["bench", "net", "--serve", "7700"],
        &[
            "bench",
            "net",
            "--serve",
            "127.0.0.1:0",
            "--connect",
            "127.0.0.1:1",
        ],
        &["bench", "disk", ".", "--size", "4K", "--row-time", "x"],
    ] {
        let done = run(args.iter().copied());
        assert_eq!(done.status, 2, "{args:?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    fails(
        run(["bench", "net", "--serve", &address]),
        "cannot be bound: Address already in use",
    );
}

/// Writes a result of known values.
fn result(folder: &Path, name: &str, rows: &[(&str, u64)]) -> String {
    let path = write_text(folder, &format!("{name}.json"), &ipi_result(name, rows));
    path.display().to_string()
}

#[test]
fn results_stand_side_by_side_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("default", 2300), ("haltpoll", 1150)]
        .map(|(name, ns)| result(folder.path(), name, &[("same node", ns)]));
    let compared = |more: &[&str]| run([&["compare", &files[0], &files[1]], more].concat());
    let text = ok(compared(&[]));
    assert!(text.contains("1.150us  0.50x"), "{text}");
    let document = compared(&["--format=json"]).json().expect("JSON");
    assert_eq!(document["command"], "compare");
    assert_eq!(list(&document["inputs"]).len(), 2);
    let csv = ok(compared(&["--format=csv"]));
    assert!(
        csv.contains("same node,idle,,,p50,2300,1150,0.5\n"),
        "{csv}"
    );
}

#[test]
fn results_are_compared_with_results_of_the_same_benchmark_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let ipi = result(folder, "a", &[("same node", 2300)]);
    let clock = folder.join("clock.json").display().to_string();
    ok(bench(&["clock", "-o", &clock]));
    ok(run(["compare", &clock, &clock]));
    let other = run(["compare", &ipi, &clock]);
    fails(
        other,
        "A is a result of 'trapline bench ipi', and B of 'trapline bench clock'",
    );
    let recording = file("x86/console-sick/perf.data.zst").display().to_string();
    for args in [[&ipi, &recording], [&recording, &ipi]] {
        let mixed = run(["compare", args[0], args[1]]);
        fails(
            mixed,
            "compare results with results, and recordings with recordings",
        );
    }
    fails(
        run(["compare", &ipi]),
        "those to compare it with are missing",
    );
    fails(
        run(["compare", &ipi, "--with", &ipi]),
        "for which there is no --with",
    );
    fails(
        run(["compare", &ipi, &ipi, "--guest", &recording]),
        "for which there is no --guest",
    );
    fails(
        run(["info", &ipi]),
        "is a result of 'trapline bench', which holds no events",
    );
}

#[test]
fn damaged_results_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let good = result(folder, "good", &[("same node", 2300)]);
    let text = fs::read_to_string(&good).expect("a file");
    let compared = |text: &str| {
        let bad = write_text(folder, "bad.json", text);
        run(["compare", &good, &bad.display().to_string()])
    };
    for cut in (0..text.len() - 3).step_by(500) {
        let done = compared(&text[..cut]);
        assert!(matches!(done.status, 1 | 2), "cut at {cut}");
    }
    fails(
        compared(&text[..1000]),
        "is no whole result of 'trapline bench' (EOF",
    );
    // Whatever is in it, nothing steers the terminal.
    let names = text.replace("\"good\"", "\"\\u001b[2Jgood\"");
    let names = names.replace("\"same node\"", "\"\\u001b]0;x\\u0007\"");
    let shown = ok(compared(&names));
    assert!(
        !shown.contains('\x1b') && !shown.contains('\x07'),
        "{shown}"
    );
}
