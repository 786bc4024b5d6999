//! Peers that have the token and are hostile all the same: whatever they say, a recording that was begun is ended once,
//! and nobody waits for ever.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::channel::{CONTENT, Channel};
use crate::clock::ClockSamples;
use crate::error::AgentError;
use crate::greeting;
use crate::host::Connection;
use crate::link::Link;
use crate::message::{AgentMessage, EndReason, RecordingEnd, RecordingStart, Start};
use crate::secret::SharedToken;
use crate::server::{GuestRecorder, Limits, RecordedGuest, serve};

/// Counts what it is asked to do.
#[derive(Debug, Default)]
struct Counting {
    started: u32,
    stopped: u32,
    finished: u32,
}

impl GuestRecorder for Counting {
    fn start(&mut self, start: &Start) -> Result<RecordingStart, String> {
        self.started += 1;
        Ok(RecordingStart {
            own: 1,
            time: start.time,
            size: start.size,
            name: String::new(),
            missing: String::new(),
        })
    }

    fn turn(&mut self, _: BorrowedFd<'_>, _: Duration) -> Result<bool, String> {
        thread::sleep(Duration::from_micros(100));
        Ok(true)
    }

    fn now_ns(&mut self) -> Option<u64> {
        None
    }

    fn stop(&mut self) -> Result<(), String> {
        self.stopped += 1;
        Ok(())
    }

    fn finish(&mut self, _: &ClockSamples) -> Result<RecordedGuest, String> {
        self.finished += 1;
        Ok(RecordedGuest {
            length: 100_000,
            ..RecordedGuest::default()
        })
    }

    fn read(&mut self, _: u64, room: &mut [u8]) -> io::Result<usize> {
        Ok(room.len())
    }

    fn fetched(&mut self) {}
}

fn token() -> SharedToken {
    SharedToken::of(b"0123456789abcdef").expect("a token")
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn pair() -> (Link, Link) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("its address"));
    let (other, _) = listener.accept().expect("a connection");
    (Link::Tcp(one.expect("a connection")), Link::Tcp(other))
}

/// What a host says: something of the protocol, or anything.
fn said() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let start = Start {
        questions: 3,
        time: Duration::MAX,
        size: u64::MAX,
        host: 7,
    };
    let known = [
        AgentMessage::Start(start),
        AgentMessage::Clock(7),
        AgentMessage::Stop(ClockSamples::default()),
        AgentMessage::Fetch,
        AgentMessage::Done,
    ];
    let known = known.map(|message| message.bytes()).to_vec();
    prop_oneof![
        4 => proptest::sample::select(known),
        1 => (0u8..40, vec(any::<u8>(), 0..80)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_agent_ends_what_it_began(starts in any::<bool>(), messages in vec(said(), 0..12)) {
        let (host, guest) = pair();
        let agent = thread::spawn(move || {
            let limits = Limits {
                time: Duration::from_secs(60),
                size: 1 << 20,
                greeting: Duration::from_secs(20),
                silence: Duration::from_secs(20),
            };
            let mut machine = Counting::default();
            let ended = serve(guest, &token(), &mut machine, &limits, &AtomicBool::new(false));
            (machine, ended.is_ok())
        });
        let mut channel = greeting::of_host(host, &token(), soon()).expect("the same token");
        let start = said_first(starts);
        for (kind, says) in start.into_iter().chain(messages) {
            // It may have ended the connection.
            if channel.send(kind, &says, soon()).is_err() {
                break;
            }
        }
        drop(channel);
        let (machine, _) = agent.join().expect("an agent does not panic");
        prop_assert!(machine.started <= 1);
        prop_assert_eq!(machine.stopped, machine.started);
        prop_assert_eq!(machine.finished, machine.started);
    }

    #[test]
    fn a_host_believes_nothing_that_is_too_much(
        length in prop_oneof![4 => 0u64..200_000, 1 => any::<u64>()],
        chunks in vec(0..=CONTENT, 0..4),
        hash in any::<bool>(),
    ) {
        let (host, guest) = pair();
        let agent = thread::spawn(move || -> Result<(), AgentError> {
            let mut channel = greeting::of_guest(guest, &token(), soon())?;
            let say = |channel: &mut Channel, message: AgentMessage| {
                let (kind, says) = message.bytes();
                channel.send(kind, &says, soon())
            };
            channel.receive(soon())?;
            say(&mut channel, AgentMessage::Started(RecordingStart {
                own: 1,
                time: Duration::ZERO,
                size: 0,
                name: "\u{1b}[2J/../x".to_owned(),
                missing: "x\n".repeat(1000),
            }))?;
            channel.receive(soon())?;
            say(&mut channel, AgentMessage::Stopped(RecordingEnd {
                ended: EndReason::Asked,
                length,
                events: u64::MAX,
                lost: Some(u64::MAX),
                why: String::new(),
            }))?;
            channel.receive(soon())?;
            for length in chunks {
                say(&mut channel, AgentMessage::Chunk(vec![1; length]))?;
            }
            if hash {
                say(&mut channel, AgentMessage::End([0; 32]))?;
            }
            Ok(())
        });
        let mut host = Connection::over(host, &token()).expect("the same token");
        let start = Start { questions: 3, time: Duration::ZERO, size: 1 << 20, host: 1 };
        host.start(&start).expect("it says that it records");
        let stopped = host.stop(&ClockSamples::default());
        prop_assert_eq!(stopped.is_ok(), length <= start.size);
        if let Ok(stopped) = stopped {
            let mut file = Vec::new();
            // No file has this hash.
            prop_assert!(host.fetch(&stopped, &mut file).is_err());
            prop_assert!(file.len() as u64 <= length);
        }
        drop(host);
        // Whether it could say all or not.
        let _ = agent.join().expect("it does not panic");
    }
}

/// Returns the message that begins a recording, if it is to be the first.
fn said_first(starts: bool) -> Option<(u8, Vec<u8>)> {
    let start = Start {
        questions: 3,
        time: Duration::from_secs(9),
        size: 1 << 19,
        host: 7,
    };
    starts.then(|| AgentMessage::Start(start).bytes())
}
