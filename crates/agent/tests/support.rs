//! An agent that records nothing but bytes.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agent::{
    AgentError, ClockSamples, ConnectionOutcome, GuestRecorder, Limits, Link, RecordedGuest,
    RecordingStart, SharedToken, Start, serve,
};

/// A machine that records the numbers of its turns.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    pub(crate) bytes: Vec<u8>,
    /// After so many bytes it cannot go on.
    pub(crate) fails_at: Option<usize>,
    pub(crate) refuses: Option<String>,
    /// What is read of its file is cut off here.
    pub(crate) cut_at: Option<usize>,
    pub(crate) size: u64,
    pub(crate) started: u32,
    pub(crate) stopped: u32,
    pub(crate) clocks: Vec<ClockSamples>,
    pub(crate) fetched: u32,
    pub(crate) asked: Option<Start>,
    /// What its clock says.
    pub(crate) time: u64,
}

/// Bytes that a turn records.
const TURN: usize = 10_000;

impl GuestRecorder for Fake {
    fn start(&mut self, start: &Start) -> Result<RecordingStart, String> {
        if let Some(why) = &self.refuses {
            return Err(why.clone());
        }
        self.started += 1;
        self.size = start.size;
        self.asked = Some(*start);
        Ok(RecordingStart {
            own: 77,
            time: start.time,
            size: start.size,
            name: "guest-a".to_owned(),
            missing: String::new(),
        })
    }

    fn turn(&mut self, _: BorrowedFd<'_>, _: Duration) -> Result<bool, String> {
        thread::sleep(Duration::from_micros(200));
        if self.fails_at.is_some_and(|at| self.bytes.len() >= at) {
            return Err("no room is left".to_owned());
        }
        let number = u8::try_from(self.bytes.len() / TURN % 251).unwrap_or(0);
        let fits = (self.bytes.len() + 2 * TURN) as u64 <= self.size;
        if self.bytes.len() + TURN <= usize::try_from(self.size).unwrap_or(usize::MAX) {
            self.bytes.extend(vec![number; TURN]);
        }
        Ok(fits)
    }

    fn now_ns(&mut self) -> Option<u64> {
        self.time += 1000;
        Some(self.time)
    }

    fn stop(&mut self) -> Result<(), String> {
        self.stopped += 1;
        Ok(())
    }

    fn finish(&mut self, clocks: &ClockSamples) -> Result<RecordedGuest, String> {
        self.clocks.push(*clocks);
        Ok(RecordedGuest {
            length: self.bytes.len() as u64,
            events: 5,
            lost: Some(1),
        })
    }

    fn read(&mut self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let end = self.cut_at.unwrap_or(usize::MAX).min(self.bytes.len());
        let left = self.bytes.get(at..end).unwrap_or_default();
        // As a file system may do it.
        let count = left.len().min(room.len()).min(7001);
        room[..count].copy_from_slice(&left[..count]);
        Ok(count)
    }

    fn fetched(&mut self) {
        self.fetched += 1;
    }
}

/// What an agent ended with.
pub(crate) type Ended = Result<ConnectionOutcome, (AgentError, Option<RecordedGuest>)>;

pub(crate) fn token(text: &str) -> SharedToken {
    SharedToken::of(text.as_bytes()).expect("a token")
}

pub(crate) const TOKEN: &str = "a token of some length";

/// Limits of an agent whose peers do what they should, on a machine that may be busy.
pub(crate) fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        size: 1 << 20,
        greeting: Duration::from_secs(20),
        silence: Duration::from_secs(20),
    }
}

/// Limits where a peer stalls on purpose: nobody waits long for it.
pub(crate) fn impatient() -> Limits {
    Limits {
        greeting: Duration::from_millis(300),
        silence: Duration::from_millis(300),
        ..limits()
    }
}

/// Two ends of a connection.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let one = TcpStream::connect(address).expect("a connection");
    let (other, _) = listener.accept().expect("a connection");
    (one, other)
}

/// An agent that serves one connection.
pub(crate) struct Agent {
    pub(crate) stop: Arc<AtomicBool>,
    thread: JoinHandle<(Fake, Ended)>,
}

impl Agent {
    /// Starts one. Returns the host's end too.
    pub(crate) fn start(machine: Fake, limits: Limits) -> (Agent, TcpStream) {
        let (host, guest) = pair();
        let stop = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut machine = machine;
            let link = Link::Tcp(guest);
            let ended = serve(link, &token(TOKEN), &mut machine, &limits, &reported);
            (machine, ended)
        });
        (Agent { stop, thread }, host)
    }

    pub(crate) fn tell_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns what it did, once it has ended.
    pub(crate) fn end(self) -> (Fake, Ended) {
        self.thread.join().expect("an agent does not panic")
    }
}
