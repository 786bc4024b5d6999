//! Who records: what root gives away, what a user with CAP_PERFMON alone can record, and what a recorder without
//! permission says.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{json, note, trapline};
use crate::record_command::{possible, record, recorded};

/// Whoever owns nothing.
const NOBODY: u32 = 65534;

/// Prints the capabilities of the recorder, and those of the command itself.
const CAPABILITIES: &str = "sed -n 's/^Cap/recorder Cap/p' /proc/$PPID/task/*/status; sed -n 's/^Cap/own Cap/p' \
                            /proc/self/status";

/// Returns the numbers of a set that somebody was found to have.
fn sets(output: &Output, who: &str, set: &str) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let prefix = format!("{who} {set}:");
    let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    let sets: Vec<u64> = lines
        .map(|hex| u64::from_str_radix(hex.trim(), 16).expect("a set"))
        .collect();
    assert!(!sets.is_empty(), "{output:?}");
    sets
}

/// Lets the tests' own files be used by everybody, in a file system of their own, and tracefs be read by everybody,
/// from a copy of it: the machine's own stays as it is. What follows is run by nobody, with these capabilities.
const SETUP: &str = "set -e; capabilities=$1; shift; mkdir -p copy; mount -t tmpfs none copy; mkdir copy/events
here=$PWD; cd /sys/kernel/tracing/events
cp --parents -t \"$here/copy/events\" header_page header_event {kvm,sched,irq,workqueue,signal}/*/{id,format} \
2> /dev/null || true
cd \"$here\"; chmod -R a+rX copy; mount --bind copy /sys/kernel/tracing
exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all$capabilities \
--ambient-caps=-all$capabilities \"$@\"";

/// A folder where nobody may write, with the program.
pub(crate) fn folder_of_nobody() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("trapline");
    fs::copy(trapline().get_program(), &program).expect("a copy");
    for path in [folder.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
        chown(path, Some(NOBODY), Some(NOBODY)).expect("its owner");
    }
    (folder, program)
}

/// Runs the program as nobody with capabilities, such as `,+perfmon`.
pub(crate) fn as_nobody(folder: &Path, capabilities: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command
        .current_dir(folder)
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    command.args(["-m", "bash", "-c", SETUP, "bash", capabilities]);
    command.arg(folder.join("trapline")).args(arguments);
    command.output().expect("unshare")
}

pub(crate) fn error(output: &Output) -> String {
    // Lines are broken at the width of a terminal.
    let text = String::from_utf8_lossy(&output.stderr);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether mounts and capabilities are there to test with.
fn possible_as_nobody(folder: &Path) -> bool {
    let output = as_nobody(folder, "", &["--version"]);
    let possible = output.status.success();
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some();
    assert!(possible || !required, "{output:?}");
    if !possible {
        note("skipped: this machine has no setpriv, or nothing can be mounted");
    }
    possible
}

#[test]
fn root_gives_away_what_it_needs_no_more_and_the_command_has_it_all() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let status = fs::read_to_string("/proc/self/status").expect("its status");
    let own = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let own = u64::from_str_radix(own.expect("a set").trim(), 16).expect("a set");

    let command = [
        "-o",
        "out",
        "--for",
        "sched",
        "--",
        "bash",
        "-c",
        CAPABILITIES,
    ];
    let output = record(folder.path(), &command).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert!(
            sets(&output, "recorder", set).iter().all(|set| *set == 0),
            "{output:?}"
        );
    }
    assert_eq!(sets(&output, "own", "CapEff"), [own]);

    // What writes later may write where the folder is another user's, and nothing else.
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("its owner");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("permissions");
    let script = format!("{CAPABILITIES}; exit 3");
    let command = [
        "-o", "late", "--for", "sched", "--keep", "9", "--", "bash", "-c", &script,
    ];
    let output = record(folder.path(), &command).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let dac_override = 1 << 1;
    let left = sets(&output, "recorder", "CapPrm");
    assert!(left.iter().all(|set| *set == dac_override), "{left:?}");
    assert!(json(&["info"], &folder.path().join("late")).is_ok());
}

#[test]
fn a_user_with_cap_perfmon_records_all_but_probes() {
    if !possible() {
        return;
    }
    let (folder, _program) = folder_of_nobody();
    if !possible_as_nobody(folder.path()) {
        return;
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let paranoid = paranoid.ok().and_then(|text| text.trim().parse().ok());
    if paranoid.is_none_or(|level: i32| level > 2) {
        note("skipped: kernel.perf_event_paranoid is above 2, where CAP_PERFMON is not looked at");
        return;
    }
    let signals = "trap '' 34; i=0; while [ $i -lt 500 ]; do kill -34 $$; i=$((i+1)); done";
    for question in ["exits", "sched", "paths", "stacks"] {
        let script = format!("{CAPABILITIES}; {signals}");
        let arguments = [
            "record",
            "--for",
            question,
            "--event",
            "signal:signal_generate",
            "-o",
            question,
            "--",
            "bash",
            "-c",
            &script,
        ];
        let output = as_nobody(folder.path(), ",+perfmon", &arguments);
        assert!(output.status.success(), "{question}: {output:?}");
        let file = folder.path().join(question).join("perf.data");
        assert!(
            recorded(&file, "signal:signal_generate") >= 500,
            "{question}: {output:?}"
        );
        // The command has what nobody has.
        for (who, set) in [
            ("recorder", "CapPrm"),
            ("own", "CapEff"),
            ("own", "CapAmb"),
            ("own", "CapInh"),
        ] {
            assert!(
                sets(&output, who, set).iter().all(|set| *set == 0),
                "{output:?}"
            );
        }
        match question {
            "paths" => assert!(
                error(&output).contains("not recorded: probe irqfd_wakeup"),
                "{output:?}"
            ),
            _ => assert!(
                !error(&output).contains("not recorded: probe"),
                "{output:?}"
            ),
        }
    }
    assert!(
        recorded(&folder.path().join("stacks/perf.data"), "cpu-clock") > 0
            || recorded(&folder.path().join("stacks/perf.data"), "cycles") > 0
    );

    // The flight recorder as well; its rings are as large as this user may lock.
    let script = format!("{signals}; exit 3");
    let arguments = [
        "record",
        "--keep",
        "60",
        "--for",
        "exits",
        "--event",
        "signal:signal_generate",
        "-o",
        "kept",
        "--",
        "bash",
        "-c",
        &script,
    ];
    let output = as_nobody(folder.path(), ",+perfmon", &arguments);
    assert!(output.status.success(), "{output:?}");
    assert!(
        error(&output).contains("as much as kernel.perf_event_mlock_kb lets this user lock"),
        "{output:?}"
    );
    assert!(
        recorded(
            &folder.path().join("kept/perf.data"),
            "signal:signal_generate"
        ) >= 500,
        "{output:?}"
    );

    // The list says the same beforehand.
    let output = as_nobody(
        folder.path(),
        ",+perfmon",
        &["record", "--check", "--format", "json"],
    );
    assert!(output.status.success(), "{output:?}");
    let lines: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lines = lines["checks"].as_array().expect("a list").iter();
    let ok = |name: &str| {
        lines
            .clone()
            .find(|line| line["name"] == name)
            .expect("a line")["ok"]
            .clone()
    };
    assert_eq!(["events", "tracefs", "folder"].map(ok), [true, true, true]);
    assert_eq!(["kprobes", "uprobes", "bpf"].map(ok), [false, false, false]);
}

#[test]
fn a_user_without_permission_hears_what_is_missing() {
    if !possible() {
        return;
    }
    let (folder, program) = folder_of_nobody();
    if !possible_as_nobody(folder.path()) {
        return;
    }
    let output = as_nobody(folder.path(), "", &["record", "-o", "none", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    let said = error(&output);
    assert!(
        said.contains("missing events kernel.perf_event_paranoid is "),
        "{said}"
    );
    // tracefs itself, which is root's own: it is there, so nobody has to mount it.
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(folder.path().join("trapline"));
    let output = command
        .args(["top", "--once", "--interval", "10ms"])
        .output();
    let top = error(&output.expect("setpriv"));
    assert!(!top.contains("is not mounted"), "{top}");
    assert!(said.contains("give it CAP_PERFMON"), "{said}");
    assert!(!said.contains("ok tracefs"), "{said}");
    assert!(!folder.path().join("none").exists());

    // Where tracefs is root's own.
    if fs::metadata("/sys/kernel/tracing")
        .expect("tracefs")
        .permissions()
        .mode()
        & 0o5
        == 0
    {
        let mut command = Command::new("setpriv");
        command.current_dir(folder.path()).args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
        ]);
        command.args(["--inh-caps=-all,+perfmon", "--ambient-caps=-all,+perfmon"]);
        let output = command
            .arg(program)
            .args(["record", "--check"])
            .output()
            .expect("setpriv");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("'mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing'"),
            "{text}"
        );
        assert!(
            error(&output).contains("nothing can be recorded"),
            "{output:?}"
        );
    }
}

#[test]
fn a_flight_recorder_that_could_not_write_does_not_begin() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = record(
        folder.path(),
        &["--keep", "5", "-o", "not/there", "--", "false"],
    )
    .output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error(&output).contains("no folder can be made in not"),
        "{output:?}"
    );
}

#[test]
fn a_flight_recorder_whose_names_are_taken_does_not_begin() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("out")).expect("a folder");
    fs::create_dir(folder.path().join("several-2")).expect("a folder");
    let cases: [&[&str]; 2] = [&["-o", "out"], &["-o", "several", "--times", "3"]];
    for (asked, taken) in cases.iter().zip(["out", "several-2"]) {
        let mut command = record(folder.path(), &["--for", "sched", "--keep", "5"]);
        // Had it begun, the command would have run.
        command.args(*asked).args(["--", "touch", "begun"]);
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = error(&output);
        assert!(
            said.contains(&format!("{taken} is there already")),
            "{said}"
        );
        assert!(!folder.path().join("begun").exists());
        // The list says it too.
        let mut command = record(folder.path(), &["--check", "--keep", "5"]);
        let output = command.args(*asked).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            error(&output).contains(&format!("{taken} is there already")),
            "{output:?}"
        );
    }
}

#[test]
fn what_is_asked_in_a_wrong_way_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    for (more, reported) in [
        (&["--event", "cycles"][..], "SYSTEM:NAME"),
        (&["--event", "sched:*"], "no pattern"),
        (
            &["--keep", "1", "--until", "no-such > 1ms"],
            "--until no-such: there is no built-in path",
        ),
        (
            &["--keep", "1", "--until", "irqfd > 20"],
            "'20' has no unit",
        ),
        (&["--keep", "1", "--times", "0"], "--times"),
        (&["--keep", "1", "--memory", "0"], "more than nothing"),
        (&["--ring", "0"], "1 KiB or more"),
    ] {
        let mut command = record(folder.path(), &["--for", "exits", "-o", "out"]);
        let output = command.args(more).args(["--", "false"]).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{more:?}: {output:?}");
        assert!(error(&output).contains(reported), "{more:?}: {output:?}");
        assert!(!folder.path().join("out").exists(), "{more:?}");
    }
    let output = record(folder.path(), &["-o", "not/there", "--", "true"]).output();
    let output = output.expect("it runs");
    if possible() {
        assert!(
            error(&output).contains("there is no folder to make it in"),
            "{output:?}"
        );
    }
}

#[test]
fn a_recording_that_disk_has_no_room_for_leaves_no_folder() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for until in [&[][..], &["--until", "irqfd > 1s"]] {
        let mut command = record(
            folder.path(),
            &["--for", "sched", "--keep", "5", "-o", "out"],
        );
        command.args(["--disk", "1K"]).args(until);
        let output = command
            .args(["--", "bash", "-c", "sleep 0.3; false"])
            .output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            error(&output).contains("--disk leaves room for 1 KiB"),
            "{output:?}"
        );
        assert!(!folder.path().join("out").exists(), "{until:?}");
    }
}

#[test]
fn a_flight_recorder_looks_for_its_command_before_it_begins() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let asked = [
        "--for",
        "sched",
        "--keep",
        "5",
        "-o",
        "out",
        "--",
        "no-such-program",
    ];
    let output = record(folder.path(), &asked).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        error(&output),
        "trapline: no-such-program: there is no such program"
    );
}

/// Starts a flight recorder and asks it to write as soon as it catches that. Returns whether that was before its
/// events were open.
fn asked_early(folder: &Path) -> bool {
    let asked = [
        "--for",
        "sched",
        "--keep",
        "5",
        "--seconds",
        "1",
        "-o",
        "out",
    ];
    let mut recorder = record(folder, &asked).spawn().expect("it starts");
    let of = format!("/proc/{}", recorder.id());
    let caught = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & 1 << 9 != 0)
    };
    while !fs::read_to_string(format!("{of}/status")).is_ok_and(|text| caught(&text)) {
        assert!(recorder.try_wait().expect("a child").is_none());
        std::thread::yield_now();
    }
    let early = fs::read_dir(format!("{of}/fd")).expect("files").count() < 15;
    let mut kill = Command::new("kill");
    let sent = kill.args(["-USR1", &recorder.id().to_string()]);
    assert!(sent.status().expect("kill").success());
    assert!(recorder.wait().expect("it ends").success());
    let _ = fs::remove_dir_all(folder.join("out"));
    early
}

#[test]
fn a_signal_that_comes_before_anything_is_kept_does_not_end_the_recorder() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Whoever looks may be late.
    assert!((0..20).any(|_| asked_early(folder.path())));
}

#[test]
fn a_command_that_goes_on_is_said() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, keep) in [("file", &[][..]), ("kept", &["--keep", "5"])] {
        let mut command = record(folder.path(), &["--for", "sched", "--seconds", "0.2"]);
        // The command must not hold the pipe that is read.
        let script = "exec sleep 60 > /dev/null 2>&1";
        command
            .args(["-o", name])
            .args(keep)
            .args(["--", "bash", "-c", script]);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let said = error(&output);
        let (_, rest) = said.split_once("bash (process ").expect("its process");
        let (process, rest) = rest.split_once(')').expect("a number");
        assert!(rest.starts_with(" goes on"), "{said}");
        let ended = Command::new("kill").arg(process).status();
        assert!(ended.expect("kill").success(), "{said}");
    }
}

#[test]
fn a_disk_that_is_full_from_the_beginning_keeps_no_empty_recording() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = trapline();
    // A tmpfs counts pages: the host's settings need one at least.
    let script = format!(
        "mkdir d && mount -t tmpfs -o size=256k none d || exit 77\n\
         cat /dev/zero > d/filler 2> /dev/null\n\
         {} record --for sched -o d/out -- true 2> error; echo $? > status; ls -A d > left; umount d",
        program.get_program().display()
    );
    let mut shell = Command::new("unshare");
    shell
        .current_dir(folder.path())
        .args(["-m", "bash", "-c", &script]);
    if shell.status().expect("unshare").code() == Some(77) {
        note("skipped: nothing can be mounted here");
        return;
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
    let error = read("error");
    assert!(error.contains("No space left on device"), "{error}");
    assert_eq!(
        (read("status").trim(), read("left").trim()),
        ("1", "filler"),
        "{error}"
    );
}
