//! `trapline top --prometheus` as others meet it: two processes of which one may do nothing, clients of all kinds, and
//! how it ends. What it serves is read by Prometheus in `top`. Where the kernel does not let it count, that is skipped,
//! unless `TRAPLINE_REQUIRE_TOOLS=1` is set.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{note, trapline};

/// How often something is looked at that takes its time, a tenth of a second apart.
const TRIES: u32 = 600;

/// An exporter that runs.
struct Exporter {
    child: Child,
    address: SocketAddr,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether this machine lets it count.
fn counts() -> bool {
    let once = ["top", "--once", "--interval", "10ms"];
    let output = trapline().args(once).output().expect("the program starts");
    if output.status.success() {
        return true;
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "TRAPLINE_REQUIRE_TOOLS is set: {said}");
    note(&format!(
        "SKIPPED: the exporter was not tested here: {said}"
    ));
    false
}

fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address")
}

/// Asks for the metrics.
fn scrape(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).ok()?;
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200 ").then_some(answer)
}

/// Looks again and again.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..TRIES {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what} does not come about");
}

impl Exporter {
    /// Starts one, by a shell where it is to have limits.
    fn start(before: &str) -> Exporter {
        let address = free_port();
        let program = trapline().get_program().to_owned();
        let mut command = Command::new("sh");
        let script = format!("{before} exec \"$0\" top --prometheus {address}");
        command.args(["-c", &script]).arg(program);
        let child = command.stderr(Stdio::piped()).spawn();
        let child = child.expect("a shell starts");
        let exporter = Exporter { child, address };
        until("a scrape", || scrape(address));
        exporter
    }

    /// Returns the process that speaks HTTP.
    fn front(&self) -> Option<Pid> {
        let own = self.child.id();
        let list = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).ok()?;
        let first = list.split_whitespace().next()?.parse().ok()?;
        Pid::from_raw(first)
    }

    /// Returns a line of what the kernel says of the process that speaks HTTP.
    fn status(&self, name: &str) -> String {
        let front = self.front().expect("it serves").as_raw_nonzero();
        let status = fs::read_to_string(format!("/proc/{front}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let words = line.expect("the kernel says it").split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    }

    fn end(mut self, signal: Signal) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        let status = self.child.wait().expect("it ends");
        let mut said = String::new();
        let mut errors = self.child.stderr.take().expect("it was asked for");
        errors.read_to_string(&mut said).expect("text");
        (status, said)
    }
}

#[test]
fn who_speaks_http_may_do_nothing_else_and_is_started_again() {
    if !counts() {
        return;
    }
    let mut exporter = Exporter::start("");
    for capabilities in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(exporter.status(capabilities), "0000000000000000");
    }
    if rustix::process::geteuid().is_root() {
        let nobody = "65534 65534 65534 65534";
        assert_eq!(
            (exporter.status("Uid:"), exporter.status("Gid:")),
            (nobody.into(), nobody.into())
        );
        assert_eq!(exporter.status("Groups:"), "");
    }
    assert_eq!(exporter.status("NoNewPrivs:"), "1");
    let front = exporter.front().expect("it serves");
    kill_process(front, Signal::KILL).expect("it runs");
    let mut said = String::new();
    let errors = exporter.child.stderr.as_mut().expect("it was asked for");
    BufReader::new(errors).read_line(&mut said).expect("text");
    assert!(said.contains("is started again"), "{said}");
    until("a scrape", || scrape(exporter.address));
    assert_ne!(exporter.front(), Some(front));
}

#[test]
fn an_exporter_ends_as_it_is_asked_to_and_says_what_is_wrong() {
    if !counts() {
        return;
    }
    for signal in [Signal::TERM, Signal::INT] {
        let exporter = Exporter::start("");
        let front = exporter.front().expect("it serves");
        let (status, said) = exporter.end(signal);
        assert!(status.success() && said.is_empty(), "{status}: {said}");
        let gone = until("its end", || kill_process(front, Signal::TERM).err());
        assert_eq!(gone, rustix::io::Errno::SRCH);
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    let output = trapline().args(["top", "--prometheus", &address]).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&address) && said.lines().count() == 1,
        "{said}"
    );
}
