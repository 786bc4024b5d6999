//! The host's side of a connection.

use std::io::Write;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::address::AgentAddress;
use crate::channel::{CONTENT, Channel, MESSAGE};
use crate::clock::{ClockSample, ClockSamples};
use crate::error::AgentError;
use crate::greeting;
use crate::link::Link;
use crate::message::{AgentMessage, RecordingEnd, RecordingStart, Start};
use crate::secret::SharedToken;

/// How long a connection may take to be made, and both sides to know each other: an agent that was given wrong tokens
/// takes its time.
const GREETING: Duration = Duration::from_secs(20);
/// Bytes of a recording that come in a second at least: who sends less is not waited for.
const SLOWEST: u64 = 256 << 10;
/// How long an agent may take to begin a recording, and to end one: it has files to write.
const WORK: Duration = Duration::from_secs(60);

/// A connection to an agent that has the same token.
#[derive(Debug)]
pub struct Connection {
    channel: Channel,
    /// Bytes that its recording may have, by what was asked for.
    size: u64,
}

impl Connection {
    /// Connects to an agent.
    ///
    /// # Errors
    ///
    /// [`AgentError::Io`] where nobody listens there, [`AgentError::WrongToken`], [`AgentError::Version`],
    /// [`AgentError::OtherProtocol`].
    pub fn to(peer: &AgentAddress, token: &SharedToken) -> Result<Connection, AgentError> {
        let link = Link::connect(peer, MESSAGE)?;
        Connection::over(link, token)
    }

    /// The same over a link that is there.
    ///
    /// # Errors
    ///
    /// As [`Connection::to`].
    pub fn over(link: Link, token: &SharedToken) -> Result<Connection, AgentError> {
        let channel = greeting::of_host(link, token, Instant::now() + GREETING)?;
        Ok(Connection { channel, size: 0 })
    }

    fn say(&mut self, message: &AgentMessage) -> Result<(), AgentError> {
        let (kind, says) = message.bytes();
        self.channel.send(kind, &says, Instant::now() + MESSAGE)
    }

    fn hear(&mut self, within: Duration) -> Result<AgentMessage, AgentError> {
        let (kind, says) = self.channel.receive(Instant::now() + within)?;
        AgentMessage::of(kind, says)
    }

    /// Has the agent begin to record.
    ///
    /// # Errors
    ///
    /// [`AgentError::Refused`] with the agent's reason.
    pub fn start(&mut self, start: &Start) -> Result<RecordingStart, AgentError> {
        self.say(&AgentMessage::Start(*start))?;
        self.size = start.size;
        match self.hear(WORK)? {
            AgentMessage::Started(started) => Ok(started),
            other => Err(other.unexpected("that the recording has begun")),
        }
    }

    /// Compares the clocks once; `None` where either cannot tell its time. `now` gives the host's, ns.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub fn clock(
        &mut self,
        mut now: impl FnMut() -> Option<u64>,
    ) -> Result<Option<ClockSample>, AgentError> {
        let asked = now();
        self.say(&AgentMessage::Clock(asked.unwrap_or(0)))?;
        let answer = self.hear(MESSAGE)?;
        let answered = now();
        match answer {
            AgentMessage::Time(of, guest) if of == asked.unwrap_or(0) => {
                let all = asked.zip(guest).zip(answered);
                Ok(all
                    .and_then(|((asked, guest), answered)| ClockSample::of(asked, guest, answered)))
            }
            other => Err(other.unexpected("the guest's time")),
        }
    }

    /// Has the agent end its recording, and sends it how the clocks compared.
    ///
    /// # Errors
    ///
    /// [`AgentError::Refused`] with the agent's reason, [`AgentError::Damaged`] where its file is larger than was asked
    /// for.
    pub fn stop(&mut self, clocks: &ClockSamples) -> Result<RecordingEnd, AgentError> {
        self.say(&AgentMessage::Stop(*clocks))?;
        match self.hear(WORK)? {
            AgentMessage::Stopped(stopped) if stopped.length > self.size => Err(
                AgentError::Damaged("it is larger than was asked for".to_owned()),
            ),
            AgentMessage::Stopped(stopped) => Ok(stopped),
            other => Err(other.unexpected("that the recording has ended")),
        }
    }

    /// Fetches the recording that [`Connection::stop`] reported. The agent keeps its own until it hears
    /// [`Connection::done`].
    ///
    /// # Errors
    ///
    /// [`AgentError::Damaged`] where what came is not what was sent; those of writing.
    pub fn fetch(
        &mut self,
        stopped: &RecordingEnd,
        file: &mut impl Write,
    ) -> Result<(), AgentError> {
        self.say(&AgentMessage::Fetch)?;
        let mut hash = Sha256::new();
        let mut left = stopped.length;
        let until = Instant::now() + WORK + Duration::from_secs(stopped.length / SLOWEST);
        loop {
            let within = until.saturating_duration_since(Instant::now());
            match self.hear(within.min(MESSAGE))? {
                AgentMessage::Chunk(bytes) => {
                    let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    if more > left {
                        return Err(AgentError::Damaged("it is longer than was said".to_owned()));
                    }
                    // Pieces of nothing would come for ever.
                    if more < left && bytes.len() < CONTENT {
                        return Err(AgentError::Damaged(
                            "it comes in smaller pieces than was agreed".to_owned(),
                        ));
                    }
                    left -= more;
                    hash.update(&bytes);
                    file.write_all(&bytes)?;
                }
                AgentMessage::End(_) if left > 0 => {
                    return Err(AgentError::Damaged("it ends early".to_owned()));
                }
                AgentMessage::End(said) if said != <[u8; 32]>::from(hash.finalize()) => {
                    return Err(AgentError::Damaged("its SHA-256 is another".to_owned()));
                }
                AgentMessage::End(_) => break,
                other => return Err(other.unexpected("the recording")),
            }
        }
        file.flush()?;
        Ok(())
    }

    /// Lets the agent remove the recording that was fetched.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub fn done(&mut self) -> Result<(), AgentError> {
        self.say(&AgentMessage::Done)
    }
}
