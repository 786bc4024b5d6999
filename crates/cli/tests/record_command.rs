//! `trapline record` on the machine that runs the tests: what it writes is what happened, whatever ends it.
//!
//! It needs root and tracefs; where they are missing nothing is tested, which is said, unless TRAPLINE_REQUIRE_TOOLS
//! asks for it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{json, note, run, trapline};

/// From a signal to the next one, both without effect: an instance that takes as long as a script wants. Tests run
/// side by side and events are the whole machine's, so each has signals of its own.
const PATH: &str = "name = \"signals\"\nabout = \"From one signal to another.\"\n
[[step]]\nname = \"first\"\nevent = \"signal_generate\"\nwhere = \"sig == FIRST\"\nbind = \"sender = thread\"\n
[[step]]\nname = \"second\"\nevent = \"signal_generate\"\nwhere = \"sig == SECOND\"\njoin = \"thread = sender\"\n";

/// Whether recording is possible here.
pub(crate) fn possible() -> bool {
    let possible = fs::read_dir("/sys/kernel/tracing/events").is_ok();
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some();
    assert!(
        possible || !required,
        "events cannot be recorded here: is tracefs mounted, and is this root?"
    );
    if !possible {
        note("skipped: events cannot be recorded here (needs root and tracefs)");
    }
    possible
}

/// Returns a command that records signals beside what else is asked.
pub(crate) fn record(folder: &Path, more: &[&str]) -> Command {
    let mut command = trapline();
    command.current_dir(folder).env("PATH", "/usr/bin:/bin");
    command.args(["record", "--event", "signal:signal_generate"]);
    command.args(more);
    command
}

/// Writes the path of two signals.
pub(crate) fn write_path(folder: &Path, first: u32) -> PathBuf {
    let text = PATH.replace("FIRST", &first.to_string());
    let path = folder.join("signals.toml");
    fs::write(&path, text.replace("SECOND", &(first + 1).to_string())).expect("a file");
    path
}

/// A script that makes `count` instances at once, then one of `slow` seconds if that is not 0.
pub(crate) fn signals(first: u32, count: u32, slow: &str) -> Vec<String> {
    let second = first + 1;
    let slow = match slow {
        "0" => String::new(),
        slow => format!("kill -{first} $$; sleep {slow}; kill -{second} $$; sleep 0.4;"),
    };
    let script = format!(
        "trap '' {first} {second}; i=0; while [ $i -lt {count} ]; do kill -{first} $$; kill -{second} $$; i=$((i+1)); \
         done; {slow} true"
    );
    ["bash", "-c", &script].map(str::to_owned).to_vec()
}

pub(crate) fn recorded(path: &Path, event: &str) -> u64 {
    let info = json(&["info"], path).expect("a recording");
    let events = info["events"].as_array().cloned().unwrap_or_default();
    let one = events.iter().find(|one| one["name"] == event);
    one.and_then(|one| one["count"].as_u64()).unwrap_or(0)
}

#[test]
fn what_is_recorded_is_what_happened() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = record(folder.path(), &["--for", "sched", "-o", "out", "--"]);
    let output = command
        .args(signals(40, 5000, "0"))
        .output()
        .expect("it runs");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let file = folder.path().join("out/perf.data");

    // As many as happened, and as many as it says.
    let path = write_path(folder.path(), 40);
    let paths = json(&["paths", "--path", &path.display().to_string()], &file);
    let paths = paths.expect("paths");
    assert_eq!(paths["paths"][0]["count"], 5000, "{reported}");
    let info = json(&["info"], &file).expect("a recording");
    let events = info["events"].as_array().expect("events");
    let sum: u64 = events.iter().filter_map(|one| one["count"].as_u64()).sum();
    assert!(
        reported.contains(&format!(": {sum} events,")),
        "{sum}: {reported}"
    );
    assert!(reported.contains("No event was lost."), "{reported}");
    assert_eq!(info["quality"]["lost_events"], 0);
    assert_eq!(info["quality"]["truncated"], false);
    // The folder is a recording, with the host's settings.
    let facts = fs::read_to_string(folder.path().join("out/facts.json")).expect("facts");
    assert!(facts.contains("\"host\""), "{facts}");
    let of_folder = json(&["info"], &folder.path().join("out")).expect("a recording");
    assert_eq!(of_folder["events"], info["events"]);

    // perf reads the same out of it.
    if let Ok(perf) = Command::new("perf")
        .args(["script", "-i"])
        .arg(&file)
        .output()
    {
        let lines = perf.stdout.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty()).count();
        // Whoever reads formats says what of them is wrong.
        let said = String::from_utf8_lossy(&perf.stderr);
        assert!(!said.contains("expected type"), "{said}");
        assert_eq!(
            lines as u64,
            sum,
            "{}",
            String::from_utf8_lossy(&perf.stderr)
        );
    }
}

#[test]
fn perfs_reports_count_what_info_counts() {
    if !possible() {
        return;
    }
    let Ok(perf) = Command::new("perf").arg("--version").output() else {
        note("skipped: perf is not installed");
        return;
    };
    assert!(perf.status.success());
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = record(folder.path(), &["-o", "out", "--"]);
    command.args(signals(50, 1000, "0"));
    assert!(command.output().expect("it runs").status.success());
    let file = folder.path().join("out/perf.data");
    let info = json(&["info"], &file).expect("a recording");
    let events = info["events"].as_array().expect("events").iter();
    let counts = events.filter_map(|one| Some((one["name"].as_str()?, one["count"].as_u64()?)));
    let mut counts: Vec<(String, u64)> = counts
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    counts.sort();
    let of_perf = |before: &str, behind: &[&str]| {
        let mut perf = Command::new("perf");
        let output = perf.arg(before).arg("-i").arg(&file).args(behind).output();
        let output = output.expect("perf");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(
            !said.contains("expected type") && !said.contains("failed to"),
            "{said}"
        );
        // perf kvm prints its table as messages.
        said + &String::from_utf8_lossy(&output.stdout)
    };

    // perf report has a heading for each event, with its count: each was recorded, so that there is nothing
    // approximate in it.
    let text = of_perf("report", &["--stdio", "--sort", "comm"]);
    let mut of_report = Vec::new();
    let mut event = None;
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("of event '") {
            event = Some(name.trim_end_matches('\'').to_owned());
        } else if let Some(count) = line.strip_prefix("# Event count (approx.): ") {
            let count = count.parse().expect("a number");
            of_report.push((event.take().expect("an event"), count));
        }
    }
    of_report.retain(|(_, count)| *count > 0);
    of_report.sort();
    assert_eq!(of_report, counts);
    let signals = counts
        .iter()
        .find(|(name, _)| name == "signal:signal_generate");
    assert!(signals.expect("signals").1 >= 2000, "{counts:?}");

    // perf kvm pairs exits with entries, so one of each vCPU may be open at the end.
    let text = of_perf("kvm", &["stat", "report"]);
    let total = text
        .split("Total Samples:")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let total: u64 = total.expect("a sum").trim().parse().expect("a number");
    let exits = counts
        .iter()
        .find(|(name, _)| name == "kvm:kvm_exit")
        .map_or(0, |one| one.1);
    let vcpus: u64 = info["vms"].as_array().expect("VMs").len() as u64 * 256;
    assert!(
        total <= exits && exits - total <= vcpus,
        "{total} of {exits}"
    );
}

#[test]
fn small_rings_lose_and_say_so() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = record(
        folder.path(),
        &["--for", "exits", "--ring", "4", "-o", "out", "--"],
    );
    let output = command
        .args(signals(44, 20_000, "0"))
        .output()
        .expect("it runs");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let file = folder.path().join("out/perf.data");
    let recorded = recorded(&file, "signal:signal_generate");
    // Other tests send signals meanwhile, so there may be more.
    let lost = json(&["info"], &file).expect("a recording")["quality"]["lost_events"].clone();
    let lost = lost.as_u64().expect("a number");
    if reported.contains("No event was lost.") {
        // Whoever reads was quick enough; then all is there.
        assert!(recorded >= 40_000, "{recorded}: {reported}");
    } else {
        assert!(reported.contains("found no room in a ring"), "{reported}");
        // What was recorded and what was lost is what happened.
        assert!(recorded < 40_000, "{recorded}");
        let reported_lost: u64 = reported
            .lines()
            .find(|line| line.contains("found no room"))
            .and_then(|line| line.split(' ').next()?.replace(',', "").parse().ok())
            .expect("a number");
        // What the file says counts lost names and mappings of threads too.
        assert!(
            lost >= reported_lost && reported_lost > 0,
            "{lost} and {reported_lost}"
        );
        assert!(
            recorded + reported_lost >= 40_000,
            "{recorded} and {reported_lost}"
        );
    }
}

/// Starts a recorder of a busy machine.
fn spawned(folder: &Path, more: &[&str]) -> (Child, PathBuf) {
    let mut command = record(folder, &["--for", "sched", "-o", "out"]);
    command
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().expect("it starts");
    (child, folder.join("out/perf.data"))
}

/// The same, and waits until it writes.
fn started(folder: &Path, more: &[&str]) -> (Child, PathBuf) {
    let (child, file) = spawned(folder, more);
    for _ in 0..500 {
        // It gets its name when it can be read.
        if file.exists() {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    (child, file)
}

#[test]
fn a_killed_recorder_leaves_a_recording() {
    if !possible() {
        return;
    }
    let times = std::env::var("TRAPLINE_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6u64);
    let mut opened = 0;
    for number in 0..times {
        // Any moment: of every second recorder from its first instruction on, of the others from when it writes on.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let after = u64::from(now.expect("a clock").subsec_nanos()) * 7919 % 600_000_000;
        let kill = format!("kill {number}, after {} us", after / 1000);
        let folder = tempfile::tempdir().expect("a folder");
        let more = ["--ring", "64"];
        let mut busy = Command::new("bash");
        busy.args(["-c", "while true; do sleep 0.0005; done"]);
        let mut busy = busy.spawn().expect("bash");
        let (mut child, file) = match number % 2 {
            0 => spawned(folder.path(), &more),
            _ => started(folder.path(), &more),
        };
        sleep(Duration::from_nanos(after));
        child.kill().expect("it is there");
        let _ = child.wait();
        busy.kill().expect("it is there");
        let _ = busy.wait();
        // A file that is there can be read from its first byte on.
        let Ok(there) = fs::read(&file) else {
            // Nothing was recorded yet.
            assert_eq!(number % 2, 0, "{kill}");
            continue;
        };
        assert!(there.starts_with(b"PERFILE2"), "{kill}");
        let info = json(&["info"], &file);
        let info = info.unwrap_or_else(|error| panic!("{kill}: {error}"));
        assert_eq!(info["quality"]["truncated"], true, "{kill}");
        let warnings = info["quality"]["warnings"].to_string();
        assert!(
            warnings.contains("did not end in order"),
            "{kill}: {warnings}"
        );
        opened += 1;
        if let Ok(perf) = Command::new("perf")
            .args(["script", "-i"])
            .arg(&file)
            .output()
        {
            let errors = String::from_utf8_lossy(&perf.stderr);
            assert!(perf.status.success(), "{kill}: {errors}");
            assert!(!errors.contains("failed to process"), "{kill}: {errors}");
        }
    }
    note(&format!(
        "{times} recorders were killed, {opened} of them while they recorded"
    ));
    assert!(opened >= times / 2, "{opened}");
}

#[test]
fn a_folder_that_is_there_and_a_link_are_refused() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("there")).expect("a folder");
    symlink("elsewhere", folder.path().join("link")).expect("a link");
    for name in ["there", "link"] {
        let output = record(folder.path(), &["-o", name, "--", "true"])
            .output()
            .expect("it runs");
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("is there already"), "{error}");
    }
    assert!(!folder.path().join("elsewhere").exists());
    assert_eq!(
        fs::read_dir(folder.path().join("there"))
            .expect("a folder")
            .count(),
        0
    );
}

#[test]
fn a_recording_that_is_removed_is_missed() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = "rm -r out";
    let output = record(
        folder.path(),
        &["--for", "sched", "-o", "out", "--", "bash", "-c", script],
    );
    let output = { output }.output().expect("it runs");
    assert!(!output.status.success(), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        error.contains("was removed while it was written"),
        "{error}"
    );
}

#[test]
fn a_full_disk_leaves_what_had_room() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // A file system of its own, which goes with the shell that mounts it.
    let program = trapline();
    let script = format!(
        "mkdir d && mount -t tmpfs -o size=24m none d || exit 77\n\
         (while true; do sleep 0.0003; done) & busy=$!\n\
         head -c 3M /dev/zero > d/filler\n\
         {} record --for all --event raw_syscalls:sys_enter --event raw_syscalls:sys_exit -o d/out --seconds 20 2> \
         error\n\
         echo $? > status; kill $busy; cp d/out/perf.data perf.data; umount d",
        program.get_program().display()
    );
    let mut shell = Command::new("unshare");
    shell
        .current_dir(folder.path())
        .args(["-m", "bash", "-c", &script]);
    let output = shell.output().expect("unshare");
    if output.status.code() == Some(77) {
        note("skipped: nothing can be mounted here");
        return;
    }
    let status = fs::read_to_string(folder.path().join("status")).expect("a status");
    let error = fs::read_to_string(folder.path().join("error")).expect("a message");
    let file = folder.path().join("perf.data");
    let info = json(&["info"], &file).expect("a recording");
    assert_eq!(status.trim(), "1", "{error}");
    assert!(error.contains("No space left on device"), "{error}");
    assert!(
        error.contains("has what was recorded until then"),
        "{error}"
    );
    assert_eq!(info["quality"]["truncated"], true, "{info}");
    assert!(recorded(&file, "raw_syscalls:sys_enter") > 1000, "{info}");
}

#[test]
fn the_flight_recorder_fires_on_what_is_slow_and_on_nothing_else() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    write_path(folder.path(), 48);
    let asked = [
        "--for",
        "sched",
        "--keep",
        "5",
        "--until",
        "signals.toml > 500ms",
        "-o",
        "out",
        "--",
    ];

    let output = record(folder.path(), &asked)
        .args(signals(48, 300, "0"))
        .output()
        .expect("it runs");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(reported.contains("nothing was written"), "{reported}");
    assert!(!folder.path().join("out").exists());

    // The path's events are recorded without being named.
    let mut command = trapline();
    command
        .current_dir(folder.path())
        .env("PATH", "/usr/bin:/bin");
    let output = command
        .arg("record")
        .args(asked)
        .args(signals(48, 300, "0.7"))
        .output()
        .expect("it runs");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(
        reported.contains("path signals.toml: an instance took"),
        "{reported}"
    );
    // The whole instance is there.
    let file = folder.path().join("out/perf.data");
    let paths = run([
        "paths".as_ref(),
        "--format".as_ref(),
        "json".as_ref(),
        "--path".as_ref(),
        folder.path().join("signals.toml").as_os_str(),
        file.as_os_str(),
    ]);
    let paths = paths.json().expect("paths");
    let longest = paths["paths"][0]["total"]["max_ns"]
        .as_u64()
        .expect("a time");
    assert!(longest >= 700_000_000, "{longest} ns");
}

#[test]
fn a_failed_command_is_what_the_flight_recorder_waits_for_too() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let keep = |name: &str, script: &str| {
        let asked = [
            "--for", "sched", "--keep", "5", "-o", name, "--", "bash", "-c", script,
        ];
        let output = record(folder.path(), &asked).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let reported = keep("good", "kill -0 $$; sleep 0.2");
    assert!(reported.contains("nothing was written"), "{reported}");
    let reported = keep("bad", "kill -0 $$; sleep 0.2; exit 3");
    assert!(
        reported.contains("the command ended with exit status: 3"),
        "{reported}"
    );
    assert!(folder.path().join("bad/perf.data").exists() && !folder.path().join("good").exists());
}

#[test]
fn what_it_cost_is_in_the_recording() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = record(folder.path(), &["-o", "out", "--for", "exits", "--"]);
    let output = command
        .args(signals(60, 5000, "0"))
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let out = folder.path().join("out");
    let report = json(&["report"], &out).expect("a report");
    let cost = &report["recordings"][0]["recording_cost"];
    let number = |name: &str| cost[name].as_u64().unwrap_or(0);
    // A system call takes longer than nothing, and no event takes a tenth of a millisecond.
    assert!((1..100_000).contains(&number("event_ns")), "{cost}");
    assert!(number("recorder_ns") > 0, "{cost}");
    let share = (number("event_ns") * number("events")) as f64 / number("span_ns") as f64;
    let reported = cost["share"].as_f64().expect("a share");
    assert!((share.min(1.0) - reported).abs() < 1e-9, "{share}: {cost}");
    assert!(
        number("events") <= recorded(&out, "signal:signal_generate"),
        "{cost}"
    );
    let info = run(["info".as_ref(), out.as_os_str()]).text();
    assert!(info.contains("recorder  trapline "), "{info}");

    // What it measured before it began is there if it is killed; what it took is not known then.
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, out) = started(folder.path(), &[]);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let bytes = fs::read(&out).expect("a file");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("{\"cost\":{"), "the cost was written first");
    assert!(!text.contains("recorder_ns"));
    let process = format!("\"recorder\":{{\"pid\":{}}}", child.id());
    assert!(text.contains(&process), "which process recorded is there");
}

#[test]
fn symbols_are_recorded_where_records_hold_addresses() {
    let shown = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if !possible() || shown.starts_with("0000000000000000") || shown.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (event, symbols) in [
        ("workqueue:workqueue_execute_start", true),
        ("sched:sched_switch", false),
    ] {
        let name = event.replace(':', "-");
        let mut command = trapline();
        command.current_dir(folder.path());
        command.args(["record", "--for", "exits", "--event", event, "-o", &name]);
        let output = command
            .args(["--", "sleep", "0.1"])
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let bytes = fs::read(folder.path().join(name).join("perf.data")).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.contains(" __schedule\n"), symbols, "{event}");
        // Where the kernel lies is there: perf says otherwise that addresses are hidden.
        assert!(text.contains("[kernel.kallsyms]_"), "{event}");
    }
}

#[test]
fn what_is_named_and_not_there_is_refused_before_anything_is_made() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (more, reported) in [
        (
            &["--event", "signal:no_such_event"][..],
            "--event 'signal:no_such_event'",
        ),
        (&["--probe", "no_such_function_at_all"][..], "--probe 'no_"),
        (&["--", "/no/such/program"][..], "/no/such/program"),
        (&["--", "no-such-program-in-path"][..], "no such program"),
        (&["--", "/etc/passwd"][..], "/etc/passwd: is no program"),
        (&["--", "/etc"][..], "/etc: is no program"),
    ] {
        let mut command = record(folder.path(), &["--for", "exits", "-o", "out"]);
        let output = command.args(more).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {error}");
        assert!(error.contains(reported), "{error}");
        assert!(!folder.path().join("out").exists(), "{more:?}");
    }
}
