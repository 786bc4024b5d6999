//! The guest's side of a connection.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::channel::{CONTENT, Channel, MESSAGE};
use crate::clock::ClockSamples;
use crate::error::AgentError;
use crate::greeting;
use crate::link::Link;
use crate::message::{AgentMessage, EndReason, RecordingEnd, RecordingStart, Start};
use crate::secret::SharedToken;

/// How often it is looked whether time is over or somebody asked the agent to end.
const LOOK: Duration = Duration::from_millis(250);

/// What an agent allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long a recording goes on at most.
    pub time: Duration,
    /// Bytes that its file has at most.
    pub size: u64,
    /// How long a host may take to show that it has the token.
    pub greeting: Duration,
    /// How long a host may say nothing: after that it is taken to be gone.
    pub silence: Duration,
}

/// What records a guest.
pub trait GuestRecorder {
    /// Begins a recording of at most so many bytes. Its time is looked after by [`serve`].
    ///
    /// # Errors
    ///
    /// Returns why it cannot, in a sentence for the host.
    fn start(&mut self, start: &Start) -> Result<RecordingStart, String>;

    /// Records until the peer has something to say, at most for a time. Returns whether there is room for more.
    ///
    /// # Errors
    ///
    /// Returns why it cannot go on, in a sentence for the host; what was recorded before is there.
    fn turn(&mut self, peer: BorrowedFd<'_>, at_most: Duration) -> Result<bool, String>;

    /// Returns what time it is on the clock of the events, ns; `None` where that cannot be known.
    fn now_ns(&mut self) -> Option<u64>;

    /// Records nothing any more.
    ///
    /// # Errors
    ///
    /// As [`GuestRecorder::turn`].
    fn stop(&mut self) -> Result<(), String>;

    /// Ends the file, which may say how the clocks compared. Called once, whatever ended the recording.
    ///
    /// # Errors
    ///
    /// As [`GuestRecorder::turn`].
    fn finish(&mut self, clocks: &ClockSamples) -> Result<RecordedGuest, String>;

    /// Reads the file from a place on. Returns how many bytes were read, 0 at its end.
    ///
    /// # Errors
    ///
    /// Those of reading.
    fn read(&mut self, at: u64, room: &mut [u8]) -> io::Result<usize>;

    /// The host has the file.
    fn fetched(&mut self);
}

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordedGuest {
    /// Bytes of the file.
    pub length: u64,
    /// Events in it.
    pub events: u64,
    /// Events that found no room in a ring; `None` where the kernel does not say.
    pub lost: Option<u64>,
}

/// What came of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionOutcome {
    /// The host has the recording.
    Fetched(RecordedGuest),
    /// The recording is kept, since the host did not say that it has it.
    Kept(RecordedGuest),
    /// The host wanted nothing.
    Nothing,
}

/// A recording that is being made, or was made and not fetched.
struct AgentSession<'s, M: GuestRecorder> {
    channel: Channel,
    machine: &'s mut M,
    limits: &'s Limits,
    stop: &'s AtomicBool,
    /// Why it ended, with what it failed for.
    ended: Option<(EndReason, String)>,
    /// Whether its file was ended, and what there is.
    finished: bool,
    recorded: Option<RecordedGuest>,
}

/// Serves one host: has it show its token, records what it asks for as long as it may, and sends the file.
///
/// Whatever the host does, a recording that has begun is ended, and its file is whole.
///
/// # Errors
///
/// [`AgentError::WrongToken`] where the host has another token; those of the connection. The second value says what was
/// recorded all the same.
pub fn serve<M: GuestRecorder>(
    link: Link,
    token: &SharedToken,
    machine: &mut M,
    limits: &Limits,
    stop: &AtomicBool,
) -> Result<ConnectionOutcome, (AgentError, Option<RecordedGuest>)> {
    let greeted = greeting::of_guest(link, token, Instant::now() + limits.greeting);
    let mut session = AgentSession {
        channel: greeted.map_err(|error| (error, None))?,
        machine,
        limits,
        stop,
        ended: None,
        finished: false,
        recorded: None,
    };
    match session.run() {
        Ok(outcome) => Ok(outcome),
        Err(error) => {
            // Whether it can be known or not.
            let _ = session.say(&AgentMessage::Failed(error.to_string()));
            Err((error, session.recorded))
        }
    }
}

impl<M: GuestRecorder> AgentSession<'_, M> {
    fn say(&mut self, message: &AgentMessage) -> Result<(), AgentError> {
        let (kind, says) = message.bytes();
        self.channel.send(kind, &says, Instant::now() + MESSAGE)
    }

    /// Waits for a message of the host, as long as it may say nothing.
    fn hear(&mut self) -> Result<AgentMessage, AgentError> {
        let until = Instant::now() + self.limits.silence;
        while !self.channel.link().has_something(LOOK)? {
            self.look(until)?;
        }
        self.receive()
    }

    fn receive(&mut self) -> Result<AgentMessage, AgentError> {
        let (kind, says) = self.channel.receive(Instant::now() + MESSAGE)?;
        AgentMessage::of(kind, says)
    }

    /// Ends where the agent is to end, or the host has said nothing for too long.
    fn look(&self, until: Instant) -> Result<(), AgentError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(AgentError::Refused("the agent was asked to end".to_owned()));
        }
        match Instant::now() >= until {
            true => Err(AgentError::TimedOut),
            false => Ok(()),
        }
    }

    fn run(&mut self) -> Result<ConnectionOutcome, AgentError> {
        let asked = match self.hear() {
            Ok(AgentMessage::Start(asked)) => asked,
            // It only wanted to know whether the token fits.
            Err(AgentError::Closed) => return Ok(ConnectionOutcome::Nothing),
            Ok(other) => return Err(other.unexpected("what is to be recorded")),
            Err(error) => return Err(error),
        };
        let start = Start {
            time: asked.time.min(self.limits.time),
            size: asked.size.min(self.limits.size),
            ..asked
        };
        let started = self.machine.start(&start).map_err(AgentError::Refused)?;
        let recorded = self.record(&start, started);
        // What broke the connection does not keep the file from being ended.
        if recorded.is_err() && !self.finished {
            if self.ended.is_none() {
                self.end((EndReason::Failed, String::new()));
            }
            self.recorded = self.machine.finish(&ClockSamples::default()).ok();
        }
        recorded?;
        self.send()
    }

    /// Records until the host ends it and knows what there is.
    fn record(&mut self, start: &Start, started: RecordingStart) -> Result<(), AgentError> {
        let started = RecordingStart {
            time: start.time,
            size: start.size,
            ..started
        };
        self.say(&AgentMessage::Started(started))?;
        let until = Instant::now() + start.time;
        let mut heard = Instant::now();
        loop {
            let has_something = self.turn(until)?;
            if has_something {
                heard = Instant::now();
                match self.receive()? {
                    AgentMessage::Clock(host_ns) => {
                        let time = AgentMessage::Time(host_ns, self.machine.now_ns());
                        self.say(&time)?;
                    }
                    AgentMessage::Stop(clocks) => return self.stopped(&clocks),
                    other => return Err(other.unexpected("a comparison of clocks, or the end")),
                }
            }
            self.look(heard + self.limits.silence)?;
        }
    }

    /// Records for a while, or waits if that is over. Returns whether the host has something to say.
    fn turn(&mut self, until: Instant) -> Result<bool, AgentError> {
        if self.ended.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            let turned = match left.is_zero() {
                true => Ok(None),
                false => {
                    let peer = self.channel.as_fd();
                    self.machine.turn(peer, left.min(LOOK)).map(Some)
                }
            };
            let ended = match turned {
                Ok(Some(true)) => None,
                Ok(Some(false)) => Some((EndReason::Size, String::new())),
                Ok(None) => Some((EndReason::Time, String::new())),
                Err(why) => Some((EndReason::Failed, why)),
            };
            if let Some(ended) = ended {
                self.end(ended);
            }
            return Ok(self.channel.link().has_something(Duration::ZERO)?);
        }
        Ok(self.channel.link().has_something(LOOK)?)
    }

    /// Records nothing any more.
    fn end(&mut self, ended: (EndReason, String)) {
        let stopped = self.machine.stop();
        self.ended = Some(match stopped {
            Err(why) if ended.0 != EndReason::Failed => (EndReason::Failed, why),
            _ => ended,
        });
    }

    fn stopped(&mut self, clocks: &ClockSamples) -> Result<(), AgentError> {
        if self.ended.is_none() {
            self.end((EndReason::Asked, String::new()));
        }
        self.finished = true;
        let recorded = self.machine.finish(clocks).map_err(AgentError::Refused)?;
        self.recorded = Some(recorded);
        let ended = self.ended.clone();
        let (ended, why) = ended.unwrap_or((EndReason::Asked, String::new()));
        self.say(&AgentMessage::Stopped(RecordingEnd {
            ended,
            length: recorded.length,
            events: recorded.events,
            lost: recorded.lost,
            why,
        }))
    }

    /// Sends the file, if the host wants it.
    fn send(&mut self) -> Result<ConnectionOutcome, AgentError> {
        let recorded = self.recorded.unwrap_or_default();
        match self.hear() {
            Ok(AgentMessage::Fetch) => {}
            Err(AgentError::Closed) => return Ok(ConnectionOutcome::Kept(recorded)),
            Ok(other) => return Err(other.unexpected("that the file is wanted")),
            Err(error) => return Err(error),
        }
        let mut hash = Sha256::new();
        let mut room = vec![0; CONTENT];
        let mut at = 0;
        while at < recorded.length {
            let left = usize::try_from(recorded.length - at).unwrap_or(usize::MAX);
            let chunk = &mut room[..left.min(CONTENT)];
            let mut filled = 0;
            while filled < chunk.len() {
                match self.machine.read(at, &mut chunk[filled..])? {
                    0 => {
                        return Err(AgentError::Damaged(
                            "it was cut while it was sent".to_owned(),
                        ));
                    }
                    read => {
                        filled += read;
                        at += u64::try_from(read).unwrap_or(0);
                    }
                }
            }
            hash.update(&chunk);
            self.say(&AgentMessage::Chunk(chunk.to_vec()))?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(AgentError::Refused("the agent was asked to end".to_owned()));
            }
        }
        self.say(&AgentMessage::End(hash.finalize().into()))?;
        match self.hear() {
            Ok(AgentMessage::Done) => {
                self.machine.fetched();
                Ok(ConnectionOutcome::Fetched(recorded))
            }
            Err(AgentError::Closed) => Ok(ConnectionOutcome::Kept(recorded)),
            Ok(other) => Err(other.unexpected("that the host has the file")),
            Err(error) => Err(error),
        }
    }
}
