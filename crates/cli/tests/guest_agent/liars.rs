//! Guests whose agents speak the protocol, have the token, and lie: the host looks at what they send before it repeats
//! it.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agent::{
    ClockSamples, ConnectionOutcome, GuestRecorder, Limits, Link, RecordedGuest, RecordingStart,
    SharedToken, Start, serve,
};

use crate::common::agents::{TOKEN, done, folder, guests, info, said};
use crate::record_command::possible;

/// A recorder that says what it likes.
struct LyingGuest {
    file: Vec<u8>,
    own: u64,
    events: u64,
    name: &'static str,
    missing: String,
    /// How many ns its clock goes on with each question.
    tick_ns: u64,
    now_ns: u64,
}

impl LyingGuest {
    fn of(file: Vec<u8>) -> LyingGuest {
        LyingGuest {
            file,
            own: 7,
            events: 12_345,
            name: "web1",
            missing: String::new(),
            tick_ns: 1,
            now_ns: 1 << 40,
        }
    }
}

impl GuestRecorder for LyingGuest {
    fn start(&mut self, start: &Start) -> Result<RecordingStart, String> {
        Ok(RecordingStart {
            own: self.own,
            time: start.time,
            size: start.size,
            name: self.name.to_owned(),
            missing: self.missing.clone(),
        })
    }

    fn turn(&mut self, _: BorrowedFd<'_>, _: Duration) -> Result<bool, String> {
        thread::sleep(Duration::from_millis(1));
        Ok(true)
    }

    fn now_ns(&mut self) -> Option<u64> {
        self.now_ns += self.tick_ns;
        Some(self.now_ns)
    }

    fn stop(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn finish(&mut self, _: &ClockSamples) -> Result<RecordedGuest, String> {
        Ok(RecordedGuest {
            length: self.file.len() as u64,
            events: self.events,
            lost: Some(0),
        })
    }

    fn read(&mut self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let left = &self.file[usize::try_from(at).expect("a place")..];
        let count = left.len().min(room.len());
        room[..count].copy_from_slice(&left[..count]);
        Ok(count)
    }

    fn fetched(&mut self) {}
}

/// Serves one host. Returns where, and what came of it.
fn served(mut guest: LyingGuest) -> (String, JoinHandle<Option<ConnectionOutcome>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp:{}", listener.local_addr().expect("its address"));
    let thread = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a host");
        let token = SharedToken::of(TOKEN.as_bytes()).expect("a token");
        let limits = Limits {
            time: Duration::from_secs(60),
            size: 1 << 30,
            greeting: Duration::from_secs(20),
            silence: Duration::from_secs(20),
        };
        let stop = AtomicBool::new(false);
        serve(Link::Tcp(stream), &token, &mut guest, &limits, &stop).ok()
    });
    (address, thread)
}

/// Records this machine with that guest. Returns how it ended, and what was printed and said.
fn recorded(folder: &Path, guest: LyingGuest) -> (Option<i32>, String, String) {
    let (address, thread) = served(guest);
    let with_agent = ["--agent", &address, "--agent-token", "token"];
    let arguments = [
        &["record", "--for", "sched", "-o", "out"][..],
        &with_agent,
        &["--", "sleep", "0.1"],
    ];
    let output = done(folder, &arguments.concat());
    let outcome = thread.join().expect("an agent");
    if output.status.code() == Some(1) {
        assert!(
            !matches!(outcome, Some(ConnectionOutcome::Fetched(_))),
            "an agent keeps what the host does not take: {outcome:?}"
        );
    }
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), printed, said(&output))
}

#[test]
fn what_is_no_recording_of_this_guest_is_not_kept() {
    if !possible() {
        return;
    }
    let other = folder();
    let arguments = ["agent", "-o", "other", "--for", "cpus", "--time", "0.1"];
    assert!(done(other.path(), &arguments).status.success());
    let other = fs::read(other.path().join("other")).expect("a recording");
    for (file, why) in [
        (vec![b'x'; 100_000], "it is no perf.data"),
        (Vec::new(), "it is no perf.data"),
        (b"PERFILE2".to_vec(), "it cannot be read"),
        (other, "it is not the recording that was begun"),
    ] {
        let folder = folder();
        let (code, _, said) = recorded(folder.path(), LyingGuest::of(file));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(why) && said.contains("is missing"), "{said}");
        assert!(guests(&folder.path().join("out")).is_empty());
        let of_host = info(&folder.path().join("out"));
        assert_eq!(of_host["quality"]["truncated"], false, "{of_host}");
    }
}

/// What it counts, how its clock runs and what it is called.
#[test]
fn what_an_agent_says_of_its_recording_is_looked_at() {
    if !possible() {
        return;
    }
    let folder = folder();
    // A recording that an honest agent made for some host.
    let mut honest = crate::common::agents::Agent::start(folder.path(), &["--once"]);
    let with_agent = ["--agent", &honest.address, "--agent-token", "token"];
    let arguments = [
        &["record", "--for", "sched", "-o", "first"][..],
        &with_agent,
        &["--", "sleep", "0.1"],
    ];
    let output = done(folder.path(), &arguments.concat());
    assert!(output.status.success(), "{output:?}");
    let _ = honest.child.wait();
    let first = guests(&folder.path().join("first"));
    let [path] = &first[..] else {
        panic!("{first:?}")
    };
    let own = crate::common::agents::header(path).together.own;

    let guest = LyingGuest {
        own: own.expect("it has a number"),
        name: "web\n\u{1b}[2J1",
        missing: "x\u{7}y\n".repeat(1000),
        // As if its clock had gone on for a day between two answers.
        tick_ns: 86_400_000_000_000,
        ..LyingGuest::of(fs::read(path).expect("a recording"))
    };
    let (code, printed, said) = recorded(folder.path(), guest);
    assert_eq!(code, Some(0), "{said}");
    assert!(!printed.contains("12345 events, "), "{printed}");
    assert!(
        printed.contains("Its agent said that it recorded 12345 events."),
        "{printed}"
    );
    assert!(
        printed.contains("Its clock did not run like this host's"),
        "{printed}"
    );
    for text in [&printed, &said] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}'),
            "{text:?}"
        );
    }
    assert_eq!(said.matches("x y").count(), 40, "{said}");
}
