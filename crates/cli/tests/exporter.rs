//! `trapline top --prometheus` as others meet it: two processes of which one may do nothing, clients of all kinds,
//! and how it ends. What it serves is read by Prometheus in `top`. Where the kernel does not let it count, that is
//! skipped, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{free_port, note, tools_are_required, trapline};

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
    assert!(
        !tools_are_required(),
        "TRAPLINE_REQUIRE_TOOLS is set: {said}"
    );
    note(&format!(
        "SKIPPED: the exporter was not tested here: {said}"
    ));
    false
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
    let metrics = until("a scrape", || scrape(exporter.address));
    assert_ne!(exporter.front(), Some(front));
    for line in [
        "trapline_exporter_restarts_total 1",
        "trapline_exporter_connections_refused_total 0",
        "trapline_lost_events_total ",
        "trapline_build_info{version=\"",
    ] {
        assert!(metrics.contains(&format!("\n{line}")), "{line}\n{metrics}");
    }
    let after = "trapline_exporter_requests_total{code=\"404\"} 0";
    assert!(metrics.contains(after), "{metrics}");
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

/// Asks for the metrics at a socket in the file system.
fn scrape_unix(path: &Path) -> Option<String> {
    let mut stream = UnixStream::connect(path).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200 ").then_some(answer)
}

#[test]
fn a_socket_in_the_file_system_is_its_users_and_goes_with_the_exporter() {
    if !counts() {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("exporter.sock");
    let at = format!("unix:{}", path.display());
    // Somebody was killed, and its file is left over.
    drop(UnixListener::bind(&path).expect("the folder is ours"));
    let start = || {
        let mut command = trapline();
        command.args(["top", "--prometheus", &at]);
        command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    };
    let address = free_port();
    let first = Exporter {
        child: start(),
        address,
    };
    until("a scrape", || scrape_unix(&path));
    let mode = fs::metadata(&path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o660);
    let second = start().wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("another process listens there"), "{said}");
    assert!(scrape_unix(&path).is_some(), "the first goes on");
    let (status, said) = first.end(Signal::TERM);
    assert!(status.success() && said.is_empty(), "{status}: {said}");
    assert!(!path.exists());
}

/// Returns a command that is there, or `None`, which is said.
fn tool(name: &str) -> Option<Command> {
    let there = Command::new(name).arg("--version").output();
    if there.is_ok() {
        return Some(Command::new(name));
    }
    assert!(
        !tools_are_required(),
        "TRAPLINE_REQUIRE_TOOLS is set, and {name} is missing"
    );
    note(&format!("SKIPPED: no {name} here"));
    None
}

#[test]
fn sockets_of_systemd_are_served() {
    let output = trapline().args(["top", "--prometheus", "systemd"]).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("LISTEN_FDS") && said.lines().count() == 1,
        "{said}"
    );
    if !counts() {
        return;
    }
    let Some(mut command) = tool("systemd-socket-activate") else {
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("exporter.sock");
    let address = free_port();
    command.args(["-l", &address.to_string(), "-l"]).arg(&path);
    let program = trapline().get_program().to_owned();
    // As the unit has it.
    let few = "+bpf,+perfmon,+setuid,+setgid,+kill";
    command.args(["setpriv", "--no-new-privs"]);
    command.arg(format!("--bounding-set=-all,{few}"));
    command
        .arg(program)
        .args(["top", "--prometheus", "systemd"]);
    let child = command.stderr(Stdio::null()).spawn().expect("it starts");
    let exporter = Exporter { child, address };
    until("a scrape", || scrape(address));
    until("a scrape", || scrape_unix(&path));
    assert_eq!(exporter.status("CapEff:"), "0000000000000000");
    assert_eq!(exporter.status("CapBnd:").len(), 16);
}

#[test]
fn units_are_as_systemd_wants_them() {
    let Some(mut verify) = tool("systemd-analyze") else {
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let program = trapline().get_program().to_string_lossy().into_owned();
    verify.args(["verify", "--man=no"]);
    for name in [
        "trapline-exporter.service",
        "trapline-exporter.socket",
        "trapline-watch.service",
    ] {
        let unit = fs::read_to_string(folder.join(name)).expect("it is kept");
        // Where it is installed there is nothing here.
        let unit = unit.replace("/usr/bin/trapline", &program);
        fs::write(place.path().join(name), unit).expect("the folder is ours");
        verify.arg(place.path().join(name));
    }
    let output = verify.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // It says something of units of this machine too, if these are wrong.
    let ours = said.lines().filter(|line| line.contains("trapline"));
    let ours: Vec<&str> = ours.collect();
    assert!(output.status.success() && ours.is_empty(), "{said}");
}

/// Hostile connections, in all.
const HOSTILE: usize = 10_000;
/// Who makes them, at a time.
const ATTACKERS: usize = 8;
/// Connections that each of them keeps open.
const HELD: usize = 60;
/// What the process that speaks HTTP may grow by, in KiB.
const MOST_GROWTH: u64 = 64 << 10;

/// Makes a hostile connection, and returns it if it is to stay open. Errors are what it asks for.
fn attack(address: SocketAddr, at: usize) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    let patience = Some(Duration::from_secs(5));
    stream.set_write_timeout(patience).ok()?;
    match at % 6 {
        // It says nothing.
        0 => return Some(stream),
        // It reads nothing.
        1 => {
            let asks = b"GET /metrics HTTP/1.1\r\n\r\n";
            return stream.write_all(asks).ok().map(|()| stream);
        }
        // It says half.
        2 => {
            let half = b"GET /metrics HTTP/1.1\r\nHost: ";
            return stream.write_all(half).ok().map(|()| stream);
        }
        // It says 400 MB, now and then.
        3 if at % 60 == 3 => {
            let header = vec![b'x'; 1 << 20];
            stream.write_all(b"GET / HTTP/1.1\r\nx: ").ok()?;
            for _ in 0..400 {
                stream.write_all(&header).ok()?;
            }
        }
        3 => stream
            .write_all(&[0x16, 0x03, 0x01, 0xff, 0x00, 0x0a])
            .ok()?,
        4 => stream
            .write_all(&b"GET /metrics HTTP/1.1\r\n\r\n".repeat(100))
            .ok()?,
        // It asks, and is gone.
        _ => stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?,
    }
    None
}

#[test]
fn ten_thousand_hostile_connections_keep_nobody_from_its_answer() {
    if !counts() {
        return;
    }
    let exporter = Exporter::start("");
    let address = exporter.address;
    let front = exporter.front();
    let kib = |exporter: &Exporter, name: &str| -> u64 {
        let text = exporter.status(name);
        let number = text
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok());
        number.expect("a number of KiB")
    };
    let before = kib(&exporter, "VmRSS:");
    let attackers: Vec<_> = (0..ATTACKERS)
        .map(|attacker| {
            std::thread::spawn(move || {
                let mut held = VecDeque::new();
                for at in (attacker..HOSTILE).step_by(ATTACKERS) {
                    held.extend(attack(address, at));
                    if held.len() > HELD {
                        held.pop_front();
                    }
                }
            })
        })
        .collect();
    let attacked = Instant::now();
    let (mut scrapes, mut unanswered, mut longest) = (0, 0, Duration::ZERO);
    while !attackers.iter().all(JoinHandle::is_finished) {
        let begun = Instant::now();
        scrapes += 1;
        if scrape(address).is_none() {
            unanswered += 1;
        }
        longest = longest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    for attacker in attackers {
        attacker.join().expect("it does not panic");
    }
    let after = kib(&exporter, "VmHWM:");
    note(&format!(
        "{HOSTILE} hostile connections in {:?}: {scrapes} scrapes, {unanswered} unanswered, the longest {longest:?}; \
         the process that answers had {before} KiB before and {after} KiB at most",
        attacked.elapsed()
    ));
    assert!(scrapes > 0);
    assert_eq!(unanswered, 0, "of {scrapes} scrapes");
    assert!(after <= before + MOST_GROWTH, "{before} KiB, then {after}");
    assert_eq!(exporter.front(), front, "it is still the same process");
    let metrics = until("a scrape", || scrape(address));
    assert!(metrics.contains("trapline_exporter_restarts_total 0\n"));
    assert!(metrics.contains("trapline_exporter_requests_total{code=\"431\"} "));
}

#[test]
fn an_exporter_without_file_descriptors_goes_on() {
    if !counts() {
        return;
    }
    let exporter = Exporter::start("ulimit -n 64;");
    let idle: Vec<_> = (0..150)
        .filter_map(|_| TcpStream::connect(exporter.address).ok())
        .collect();
    // Until those have been closed whose request does not come.
    until("a scrape", || scrape(exporter.address));
    drop(idle);
    assert!(exporter.end(Signal::TERM).0.success());
}
