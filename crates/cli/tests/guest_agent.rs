//! `trapline agent` and `trapline record --agent` on the machine that runs the tests, which is host and guest at once.
//!
//! It needs root and tracefs; where they are missing nothing is tested, which is said, unless TRAPLINE_REQUIRE_TOOLS
//! asks for it.

mod liars;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::agents::{
    Agent, NOBODY, TOKEN, command, done, events, folder, guests, header, info, perf_reads, said,
    status, token,
};
use crate::common::{note, trapline};
use crate::record_command::possible;

#[test]
fn a_guest_is_recorded_to_a_file() {
    if !possible() {
        return;
    }
    let folder = folder();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done";
    let arguments = ["agent", "-o", "guest.perf.data", "--", "bash", "-c", script];
    let output = done(folder.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let file = folder.path().join("guest.perf.data");
    let of_file = info(&file);
    assert_eq!(of_file["quality"]["truncated"], false, "{of_file}");
    let names = of_file["events"].to_string();
    for name in [
        "sched:sched_switch",
        "sched:sched_waking",
        "power:cpu_idle",
        "block:block_rq_issue",
    ] {
        assert!(names.contains(name), "{name}: {names}");
    }
    let count = events(&of_file);
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    let reported = reported.replace(',', "");
    assert!(
        reported.contains(&format!(": {count} events")),
        "{count}: {reported}"
    );
    perf_reads(&file, count);
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Nobody made it together with another one.
    assert_eq!(header(&file).together.own, None);

    // Only what was asked for.
    let arguments = ["agent", "-o", "cpus", "--for", "cpus", "--time", "0.2"];
    assert!(done(folder.path(), &arguments).status.success());
    let names = info(&folder.path().join("cpus"))["events"].to_string();
    assert!(
        names.contains("sched:") && !names.contains("block:"),
        "{names}"
    );
}

#[test]
fn a_file_that_is_there_and_a_link_are_refused() {
    if !possible() {
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("there"), "what is there").expect("a file");
    symlink("elsewhere", folder.path().join("link")).expect("a link");
    for name in ["there", "link"] {
        let output = done(folder.path(), &["agent", "-o", name, "--", "true"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains("is there already"), "{output:?}");
    }
    let there = fs::read_to_string(folder.path().join("there")).expect("a file");
    assert_eq!(there, "what is there");
    assert!(!folder.path().join("elsewhere").exists());
}

/// Makes events until it is gone.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        let mut shell = Command::new("bash");
        shell.args(["-c", "while true; do (true); done"]);
        Busy(shell.spawn().expect("bash"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_is_never_larger_than_it_may_be() {
    if !possible() {
        return;
    }
    let folder = folder();
    let _busy = Busy::start();
    let most = 2 << 20;
    // It ends by itself: its time is the test's.
    let output = done(
        folder.path(),
        &["agent", "-o", "full", "--size", "2M", "--time", "500"],
    );
    assert!(output.status.success(), "{output:?}");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        reported.contains("its file may have 2048 KiB"),
        "{reported}"
    );
    let file = folder.path().join("full");
    let length = fs::metadata(&file).expect("a file").len();
    assert!((most / 2..=most).contains(&length), "{length}");
    assert_eq!(info(&file)["quality"]["truncated"], false);

    let output = done(folder.path(), &["agent", "-o", "none", "--size", "20K"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("allow "), "{output:?}");
    assert!(!folder.path().join("none").exists());

    // The agent's own bound holds for hosts, whatever they ask for.
    let agent = Agent::start(folder.path(), &["--once", "--size", "2M"]);
    let mut host = command(
        folder.path(),
        &[
            "record",
            "--for",
            "exits",
            "-o",
            "out",
            "--agent",
            &agent.address,
            "--agent-token",
            "token",
        ],
    );
    host.args(["--agent-size", "1G", "--", "bash", "-c"]);
    host.arg("until [ $(stat -c %s agent/agent.perf.data) -gt 1500000 ]; do (true); done; for i in {1..3000}; do \
              (true); done");
    let output = host.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let guest = guests(&folder.path().join("out"));
    let length = fs::metadata(&guest[0]).expect("a file").len();
    assert!((most / 2..=most).contains(&length), "{length}: {output:?}");
    assert_eq!(info(&guest[0])["quality"]["truncated"], false);
}

#[test]
fn a_host_takes_its_guests_recordings() {
    if !possible() {
        return;
    }
    let folder = folder();
    let more = folder.path().join("more");
    fs::create_dir(&more).expect("a folder");
    token(&more.join("token"), TOKEN, 0o400);
    fs::create_dir(more.join("agent")).expect("a folder");
    let one = Agent::start(folder.path(), &["--once"]);
    let two = Agent::start(&more, &["--once"]);

    // Who reads the network may do nothing any more, and is its folder's owner.
    let session = one.session();
    for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
        assert_eq!(status(session, set), "0000000000000000", "{set}");
    }
    assert!(status(session, "Uid").starts_with(&format!("{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}")));
    assert_eq!(status(session, "Groups"), "");
    assert_eq!(status(two.session(), "CapEff"), "0000000000000000");

    let arguments = [
        "record",
        "--for",
        "sched",
        "-o",
        "out",
        "--agent",
        &one.address,
        "--agent",
        &two.address,
        "--agent-token",
        "token",
        "--",
        "bash",
        "-c",
        "for i in {1..50}; do (true); done; sleep 0.2",
    ];
    let output = done(folder.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let reported = String::from_utf8_lossy(&output.stdout).replace(',', "");
    let out = folder.path().join("out");
    let host = header(&out.join("perf.data"));
    let own = host.together.own.expect("a number");
    let guests = guests(&out);
    assert_eq!(
        (guests.len(), host.together.guests.len()),
        (2, 2),
        "{reported}"
    );
    let span = |info: &Value| {
        let start = info["start_ns"].as_u64().expect("a time");
        start..start + info["duration_ns"].as_u64().expect("a time")
    };
    let of_host = span(&info(&out));
    let mut ids = Vec::new();
    for guest in &guests {
        let of_file = info(guest);
        let count = events(&of_file);
        assert!(
            reported.contains(&format!(": {count} events")),
            "{count}: {reported}"
        );
        assert_eq!(of_file["quality"]["truncated"], false);
        perf_reads(guest, count);
        // Without paths nobody asks for packets and requests.
        let names = of_file["events"].to_string();
        assert!(
            names.contains("sched:") && !names.contains("block:"),
            "{names}"
        );
        let together = header(guest).together;
        assert_eq!(together.host, Some(own));
        ids.extend(together.own);
        // Both sides have the same clock here, so what was measured is how well that is done.
        let offset_ns = together.offset_ns.expect("clocks were compared");
        let bound_ns = bound(guest);
        assert!(
            offset_ns.unsigned_abs() <= bound_ns,
            "{offset_ns} of {bound_ns}"
        );
        // All of the host's recording is within the guest's.
        let of_guest = span(&of_file);
        assert!(
            of_guest.start <= of_host.start && of_guest.end >= of_host.end,
            "{of_guest:?} {of_host:?}"
        );
    }
    ids.sort_unstable();
    let mut known = host.together.guests.clone();
    known.sort_unstable();
    assert_eq!(ids, known);
    // The folder is still the host's recording, and the agent's is empty.
    assert_eq!(
        header(&out.join("perf.data")).hostname,
        header(&guests[0]).hostname
    );
    assert_eq!(
        fs::read_dir(folder.path().join("agent"))
            .expect("a folder")
            .count(),
        0
    );
}

/// Returns what a guest's clock was wrong by at most, as its recording says: half of the longest answer.
fn bound(path: &Path) -> u64 {
    let bytes = fs::read(path).expect("a file");
    let text = String::from_utf8_lossy(&bytes);
    let rounds = text.split("\"round_ns\":").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse::<u64>().ok()
    });
    rounds.max().expect("clocks were compared").div_ceil(2)
}

#[test]
fn who_does_not_have_the_token_gets_nothing() {
    if !possible() {
        return;
    }
    let folder = folder();
    token(
        &folder.path().join("other"),
        "another token, as long",
        0o600,
    );
    token(&folder.path().join("open"), TOKEN, 0o644);
    let mut agent = Agent::start(folder.path(), &[]);
    let record = |address: &str, token: &str| {
        let arguments = ["record", "--for", "sched", "-o", "out", "--agent", address];
        let output = done(
            folder.path(),
            &[&arguments[..], &["--agent-token", token, "--", "true"]].concat(),
        );
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(!folder.path().join("out").exists(), "{output:?}");
        said(&output)
    };
    let address = agent.address.clone();
    assert!(record(&address, "other").contains("wrong token"));
    let line = agent.line("wrong token");
    assert!(line.contains("(1 wrong token in a row)"), "{line}");
    assert!(record(&address, "open").contains("chmod 600"));
    assert!(record(&address, "none").contains("none: cannot be read"));
    assert_eq!(
        fs::read_dir(folder.path().join("agent"))
            .expect("a folder")
            .count(),
        0
    );

    // Nothing listens without one either.
    for (file, reported) in [("open", "chmod 600"), ("none", "cannot be read")] {
        let arguments = [
            "agent",
            "--listen",
            "tcp:127.0.0.1:0",
            "--token-file",
            file,
            "-o",
            "agent",
        ];
        let output = done(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = said(&output);
        assert!(
            said.contains(reported) && !said.contains("listening"),
            "{said}"
        );
    }
    drop(agent);
    assert!(record(&address, "token").contains("no agent answers there"));
}

#[test]
fn an_agent_that_dies_leaves_the_hosts_recording_and_its_own() {
    if !possible() {
        return;
    }
    let folder = folder();
    let mut agent = Agent::start(folder.path(), &[]);
    let session = agent.session();
    let script =
        format!("sleep 0.3; kill -9 {session}; for i in {{1..50}}; do (true); done; sleep 0.1");
    let arguments = [
        "record",
        "--for",
        "sched",
        "-o",
        "out",
        "--agent",
        &agent.address,
        "--agent-token",
        "token",
    ];
    let arguments = [&arguments[..], &["--", "bash", "-c", &script]].concat();
    let output = done(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let why = said(&output);
    assert!(
        why.contains("the recording of guest") && why.contains("is missing"),
        "{why}"
    );
    let out = folder.path().join("out");
    let of_host = info(&out);
    assert_eq!(of_host["quality"]["truncated"], false, "{of_host}");
    assert!(guests(&out).is_empty());
    let kept = folder.path().join("agent/agent.perf.data");
    let of_guest = info(&kept);
    assert_eq!(of_guest["quality"]["truncated"], true, "{of_guest}");
    // What is there is known to be its guest's.
    assert_eq!(
        header(&kept).together.host,
        header(&out.join("perf.data")).together.own
    );

    // The next one is recorded all the same.
    agent.line("signal: 9");
    let again = agent.session();
    assert_ne!(again, session);
    let arguments = [
        "record",
        "--for",
        "sched",
        "-o",
        "again",
        "--agent",
        &agent.address,
        "--agent-token",
        "token",
        "--",
        "true",
    ];
    let output = done(folder.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(guests(&folder.path().join("again")).len(), 1);
}

#[test]
fn a_host_that_dies_ends_the_guests_recording() {
    if !possible() {
        return;
    }
    let folder = folder();
    let mut agent = Agent::start(folder.path(), &[]);
    let arguments = [
        "record",
        "--for",
        "sched",
        "-o",
        "out",
        "--agent",
        &agent.address,
        "--agent-token",
        "token",
    ];
    let mut host = command(folder.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let file = folder.path().join("out/perf.data");
    while !fs::read(&file).is_ok_and(|there| there.starts_with(b"PERFILE2")) {
        assert!(host.try_wait().expect("a child").is_none(), "it ended");
        sleep(Duration::from_millis(10));
    }
    host.kill().expect("it is there");
    host.wait().expect("it ends");
    let line = agent.line("closed the connection");
    assert!(line.contains("agent.perf.data has "), "{line}");
    let kept = folder.path().join("agent/agent.perf.data");
    assert_eq!(
        info(&kept)["quality"]["truncated"],
        false,
        "it ended in order"
    );
    let host = header(&file).together;
    let guest = header(&kept).together;
    assert_eq!(
        (guest.host, host.guests),
        (host.own, vec![guest.own.expect("a number")])
    );
    assert!(guest.host.is_some());
}

#[test]
fn an_agent_that_is_asked_to_end_leaves_nobody_behind() {
    if !possible() {
        return;
    }
    let folder = folder();
    for (name, to_keeper) in [
        ("TERM", true),
        ("INT", true),
        ("KILL", true),
        ("TERM", false),
    ] {
        let mut agent = Agent::start(folder.path(), &["--once"]);
        let session = agent.session();
        let reported = if to_keeper { agent.child.id() } else { session };
        agent.signal(reported, name);
        let ended = agent.child.wait().expect("it ends");
        assert_eq!(ended.success(), name != "KILL", "{name}: {ended}");
        // Its process ends too, though nobody waits for it where the other was killed.
        while Path::new(&format!("/proc/{session}")).exists()
            && status(session, "State") != "Z (zombie)"
        {
            sleep(Duration::from_millis(10));
        }
    }
}

/// Runs a script that has a file system of its own at `full`, with room for so much; `None` where nothing can be
/// mounted.
fn with_little_room(folder: &Path, room: &str, script: &str) -> Option<()> {
    let script =
        format!("mkdir full && mount -t tmpfs -o size={room} none full || exit 77\n{script}");
    let mut shell = Command::new("unshare");
    shell
        .current_dir(folder)
        .env("TRAPLINE", trapline().get_program());
    let output = shell
        .args(["-m", "bash", "-c", &script])
        .output()
        .expect("unshare");
    if output.status.code() == Some(77) {
        note("skipped: nothing can be mounted here");
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(())
}

#[test]
fn a_full_disk_leaves_what_had_room() {
    if !possible() {
        return;
    }
    let folder = folder();
    let busy = "(while true; do (true); done) & busy=$!";
    let alone = format!(
        "{busy}\n$TRAPLINE agent -o full/guest --time 500 2> error; echo $? > status; kill $busy; cp full/guest \
         guest; umount full"
    );
    if with_little_room(folder.path(), "3m", &alone).is_none() {
        return;
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
    assert_eq!(read("status").trim(), "1");
    let error = read("error");
    assert!(error.contains("No space left on device"), "{error}");
    assert!(
        error.contains("full/guest has what was recorded until then"),
        "{error}"
    );
    let of_guest = info(&folder.path().join("guest"));
    assert_eq!(of_guest["quality"]["truncated"], true);
    assert!(events(&of_guest) > 1000, "{of_guest}");

    // With a host, which hears of it, and gets what there is.
    fs::remove_dir(folder.path().join("full")).expect("nothing is in it");
    let listen = "$TRAPLINE agent --listen tcp:127.0.0.1:0 --token-file token -o full --once 2> said & agent=$!";
    let until =
        "until grep -q listening said; do sleep 0.05; done; at=$(sed -n 's/listening on //p' said)";
    let record = "$TRAPLINE record --for exits -o out --agent $at --agent-token token -- bash -c 'for i in {1..12}; \
                  do for j in {1..2000}; do (true); done; done' > reported";
    let hosts = format!(
        "chmod 700 full\n{busy}\n{listen}\n{until}\n{record}\n kill $busy; wait $agent; umount full"
    );
    with_little_room(folder.path(), "3m", &hosts);
    let reported = read("reported");
    assert!(
        reported.contains("It ended before this one did")
            && reported.contains("No space left on device"),
        "{reported}"
    );
    let guest = guests(&folder.path().join("out"));
    let of_guest = info(&guest[0]);
    assert_eq!(of_guest["quality"]["truncated"], true);
    assert!(events(&of_guest) > 1000, "{of_guest}");
}

#[test]
fn a_folder_where_others_may_write_is_refused() {
    if !possible() {
        return;
    }
    let folder = folder();
    let of_agent = folder.path().join("agent");
    fs::set_permissions(&of_agent, fs::Permissions::from_mode(0o777)).expect("permissions");
    for (path, reported) in [
        ("agent", "chmod 700"),
        ("none", "No such file"),
        ("token", "Not a directory"),
    ] {
        let arguments = [
            "agent",
            "--listen",
            "tcp:127.0.0.1:0",
            "--token-file",
            "token",
            "-o",
            path,
        ];
        let output = done(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(said(&output).contains(reported), "{output:?}");
    }
}
