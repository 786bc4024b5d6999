//! Agents that tests start on the machine that they run on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use source::{ReaderOptions, RecordingBytes, RecordingHeader};

use super::{json, trapline};

pub(crate) const NOBODY: u32 = 65534;
pub(crate) const TOKEN: &str = "a token of some length";

/// A folder with a token and a folder of nobody's for the agent.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    // Nobody has to get through.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    token(&folder.path().join("token"), TOKEN, 0o600);
    let of_agent = folder.path().join("agent");
    fs::create_dir(&of_agent).expect("a folder");
    fs::set_permissions(&of_agent, fs::Permissions::from_mode(0o700)).expect("permissions");
    chown(&of_agent, Some(NOBODY), Some(NOBODY)).expect("its owner");
    folder
}

pub(crate) fn token(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

/// Returns a command that runs in a folder.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = trapline();
    command.current_dir(folder).env("PATH", "/usr/bin:/bin");
    command.args(arguments);
    command
}

pub(crate) fn done(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("it runs")
}

/// What it said on standard error; lines are broken at the width of a terminal.
pub(crate) fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An agent that listens.
pub(crate) struct Agent {
    pub(crate) child: Child,
    lines: BufReader<ChildStderr>,
    pub(crate) address: String,
}

impl Agent {
    pub(crate) fn start(folder: &Path, more: &[&str]) -> Agent {
        let at = ["agent", "--listen", "tcp:127.0.0.1:0"];
        let token = ["--token-file", "token", "-o", "agent"];
        let mut child = command(folder, &[&at[..], &token, more].concat())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Agent {
            child,
            lines,
            address,
        }
    }

    /// Returns the process that serves a host, once it has given away what it may do.
    pub(crate) fn session(&self) -> u32 {
        let pid = self.child.id();
        for _ in 0..6000 {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let session: Option<u32> = children
                .ok()
                .and_then(|text| text.split(' ').next()?.parse().ok());
            if let Some(session) = session
                && status(session, "NoNewPrivs") == "1"
            {
                return session;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("it serves nobody");
    }

    /// Returns the next line that has a text in it.
    pub(crate) fn line(&mut self, with: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).expect("a line");
            assert!(read > 0, "it never said '{with}'");
            if line.contains(with) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, pid: u32, name: &str) {
        let _ = self;
        let kill = Command::new("kill")
            .args(["-s", name, &pid.to_string()])
            .status();
        assert!(kill.expect("kill").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // On hearing of it, it lets the process know that it has started too.
            self.signal(self.child.id(), "TERM");
        }
        let _ = self.child.wait();
    }
}

/// Returns a line of a process's status.
pub(crate) fn status(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(key, _)| *key == name);
    found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

pub(crate) fn header(path: &Path) -> RecordingHeader {
    let recording = RecordingBytes::open(path).expect("it is there");
    let reader = recording.reader(ReaderOptions::default());
    reader.expect("it is a recording").header().clone()
}

pub(crate) fn info(path: &Path) -> Value {
    json(&["info"], path).expect("a recording")
}

pub(crate) fn events(info: &Value) -> u64 {
    let events = info["events"].as_array().expect("events").iter();
    events.filter_map(|one| one["count"].as_u64()).sum()
}

/// perf, where it is installed, reads as many events as there are.
pub(crate) fn perf_reads(path: &Path, count: u64) {
    if let Ok(perf) = Command::new("perf")
        .args(["script", "-i"])
        .arg(path)
        .output()
    {
        let lines = perf.stdout.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty()).count();
        let said = String::from_utf8_lossy(&perf.stderr);
        assert_eq!(lines as u64, count, "{said}");
        assert!(!said.contains("expected type"), "{said}");
    }
}

/// Returns the recordings of guests in a folder.
pub(crate) fn guests(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let paths = entries.map(|entry| entry.path());
    let is_guests = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("guest-")
    };
    let mut found: Vec<PathBuf> = paths.filter(is_guests).collect();
    found.sort();
    found
}
