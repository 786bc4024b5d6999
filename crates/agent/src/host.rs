//! The host's side of a connection.

use std::io::Write;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::address::Peer;
use crate::channel::{CONTENT, Channel, MESSAGE};
use crate::clock::{Clocks, Sample};
use crate::error::Error;
use crate::greeting;
use crate::link::Link;
use crate::message::{Message, Start, Started, Stopped};
use crate::secret::Token;

/// How long a connection may take to be made, and both sides to know each other: an agent that has been told wrong tokens takes its time.
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
    /// [`Error::Io`] where nobody listens there, [`Error::WrongToken`], [`Error::Version`], [`Error::OtherProtocol`].
    pub fn to(peer: &Peer, token: &Token) -> Result<Connection, Error> {
        let link = Link::connect(peer, MESSAGE)?;
        Connection::over(link, token)
    }

    /// The same over a link that is there.
    ///
    /// # Errors
    ///
    /// As [`Connection::to`].
    pub fn over(link: Link, token: &Token) -> Result<Connection, Error> {
        let channel = greeting::of_host(link, token, Instant::now() + GREETING)?;
        Ok(Connection { channel, size: 0 })
    }

    fn say(&mut self, message: &Message) -> Result<(), Error> {
        let (kind, says) = message.bytes();
        self.channel.send(kind, &says, Instant::now() + MESSAGE)
    }

    fn hear(&mut self, within: Duration) -> Result<Message, Error> {
        let (kind, says) = self.channel.receive(Instant::now() + within)?;
        Message::of(kind, says)
    }

    /// Has the agent begin to record.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with the agent's reason.
    pub fn start(&mut self, start: &Start) -> Result<Started, Error> {
        self.say(&Message::Start(*start))?;
        self.size = start.size;
        match self.hear(WORK)? {
            Message::Started(started) => Ok(started),
            other => Err(other.unexpected("that the recording has begun")),
        }
    }

    /// Compares the clocks once; `None` where either cannot tell its time. `now` tells the host's, ns.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub fn clock(&mut self, mut now: impl FnMut() -> Option<u64>) -> Result<Option<Sample>, Error> {
        let asked = now();
        self.say(&Message::Clock(asked.unwrap_or(0)))?;
        let answer = self.hear(MESSAGE)?;
        let answered = now();
        match answer {
            Message::Time(of, guest) if of == asked.unwrap_or(0) => {
                let all = asked.zip(guest).zip(answered);
                Ok(all.and_then(|((asked, guest), answered)| Sample::of(asked, guest, answered)))
            }
            other => Err(other.unexpected("the guest's time")),
        }
    }

    /// Has the agent end its recording, and tells it how the clocks compared.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with the agent's reason, [`Error::Damaged`] where its file is larger than was asked for.
    pub fn stop(&mut self, clocks: &Clocks) -> Result<Stopped, Error> {
        self.say(&Message::Stop(*clocks))?;
        match self.hear(WORK)? {
            Message::Stopped(stopped) if stopped.length > self.size => {
                Err(Error::Damaged("it is larger than was asked for"))
            }
            Message::Stopped(stopped) => Ok(stopped),
            other => Err(other.unexpected("that the recording has ended")),
        }
    }

    /// Fetches the recording that [`Connection::stop`] reported, and lets the agent remove it.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] where what came is not what was sent; those of writing.
    pub fn fetch(&mut self, stopped: &Stopped, file: &mut impl Write) -> Result<(), Error> {
        self.say(&Message::Fetch)?;
        let mut hash = Sha256::new();
        let mut left = stopped.length;
        let until = Instant::now() + WORK + Duration::from_secs(stopped.length / SLOWEST);
        loop {
            let within = until.saturating_duration_since(Instant::now());
            match self.hear(within.min(MESSAGE))? {
                Message::Chunk(bytes) => {
                    let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    if more > left {
                        return Err(Error::Damaged("it is longer than was said"));
                    }
                    // Pieces of nothing would come for ever.
                    if more < left && bytes.len() < CONTENT {
                        return Err(Error::Damaged("it comes in smaller pieces than was agreed"));
                    }
                    left -= more;
                    hash.update(&bytes);
                    file.write_all(&bytes)?;
                }
                Message::End(_) if left > 0 => return Err(Error::Damaged("it ends early")),
                Message::End(said) if said != <[u8; 32]>::from(hash.finalize()) => {
                    return Err(Error::Damaged("its SHA-256 is another"));
                }
                Message::End(_) => break,
                other => return Err(other.unexpected("the recording")),
            }
        }
        file.flush()?;
        self.say(&Message::Done)
    }
}
