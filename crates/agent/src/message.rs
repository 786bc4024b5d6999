//! What both sides say to each other once they know each other.

use std::time::Duration;

use crate::clock::{ClockSample, ClockSamples};
use crate::error::AgentError;

/// Questions that a recording of a guest is to answer, as bits: what its CPUs did, and what it sent and read.
pub const CPU: u8 = 1;
/// See [`CPU`].
pub const IO: u8 = 2;
/// When programs asked to send, and when they had what they received.
pub const SOCKETS: u8 = 4;

/// Bytes of a name and of a text at most.
const NAME: usize = 255;
const TEXT: usize = 16 << 10;

/// Kinds of messages.
mod kind {
    pub(super) const START: u8 = 16;
    pub(super) const STARTED: u8 = 17;
    pub(super) const CLOCK: u8 = 18;
    pub(super) const TIME: u8 = 19;
    pub(super) const STOP: u8 = 20;
    pub(super) const STOPPED: u8 = 21;
    pub(super) const FETCH: u8 = 22;
    pub(super) const CHUNK: u8 = 23;
    pub(super) const END: u8 = 24;
    pub(super) const DONE: u8 = 25;
    pub(super) const FAILED: u8 = 31;
}

/// What a host wants recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Which questions it is to answer, as bits ([`CPU`], [`IO`]).
    pub questions: u8,
    /// How long it may go on.
    pub time: Duration,
    /// Bytes that the file may have.
    pub size: u64,
    /// The number of the host's own recording.
    pub host: u64,
}

/// What an agent has begun to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingStart {
    /// The number of its recording.
    pub own: u64,
    /// How long it goes on at most, and bytes that its file has at most: no more than was asked for, and no more than
    /// the agent allows.
    pub time: Duration,
    /// See [`RecordingStart::time`].
    pub size: u64,
    /// The guest's host name.
    pub name: String,
    /// What of the questions is not recorded, and why; empty where all is.
    pub missing: String,
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The host said so.
    Asked,
    /// Its time was over.
    Time,
    /// Its file was full.
    Size,
    /// The agent could not go on.
    Failed,
}

/// What an agent has recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingEnd {
    /// Why it ended.
    pub ended: EndReason,
    /// Bytes of its file.
    pub length: u64,
    /// Events in it.
    pub events: u64,
    /// Events that found no room in a ring; `None` where the guest's kernel does not say.
    pub lost: Option<u64>,
    /// What it could not go on for; empty where it could.
    pub why: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentMessage {
    Start(Start),
    Started(RecordingStart),
    /// What time is it? With the host's time, which the answer repeats.
    Clock(u64),
    /// The host's time, and the guest's.
    Time(u64, Option<u64>),
    Stop(ClockSamples),
    Stopped(RecordingEnd),
    Fetch,
    Chunk(Vec<u8>),
    /// The SHA-256 of all chunks.
    End([u8; 32]),
    Done,
    Failed(String),
}

/// What a message says, field by field.
#[derive(Debug)]
pub(crate) struct MessageFields<'m> {
    kind: u8,
    left: &'m [u8],
}

impl<'m> MessageFields<'m> {
    pub(crate) fn of(kind: u8, says: &'m [u8]) -> MessageFields<'m> {
        MessageFields { kind, left: says }
    }

    fn wrong(&self, why: &'static str) -> AgentError {
        AgentError::Malformed {
            kind: self.kind,
            why,
        }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'m [u8], AgentError> {
        let (taken, left) = self
            .left
            .split_at_checked(length)
            .ok_or_else(|| self.wrong("it ends early"))?;
        self.left = left;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], AgentError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, AgentError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, AgentError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, AgentError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number that may not be known.
    fn maybe(&mut self) -> Result<Option<u64>, AgentError> {
        let known = self.u8()?;
        let value = self.u64()?;
        match known {
            0 => Ok(None),
            1 => Ok(Some(value)),
            _ => Err(self.wrong("a number is neither known nor unknown")),
        }
    }

    fn text(&mut self, most: usize) -> Result<String, AgentError> {
        let length = usize::from(self.u16()?);
        if length > most {
            return Err(self.wrong("a text is too long"));
        }
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn sample(&mut self) -> Result<Option<ClockSample>, AgentError> {
        let known = self.u8()?;
        let sample = ClockSample {
            host_ns: self.u64()?,
            guest_ns: self.u64()?,
            round_ns: self.u64()?,
        };
        match known {
            0 => Ok(None),
            1 => Ok(Some(sample)),
            _ => Err(self.wrong("a sample is neither known nor unknown")),
        }
    }

    pub(crate) fn end(&self) -> Result<(), AgentError> {
        match self.left {
            [] => Ok(()),
            _ => Err(self.wrong("it is too long")),
        }
    }
}

fn put_maybe(out: &mut Vec<u8>, value: Option<u64>) {
    out.push(u8::from(value.is_some()));
    out.extend(value.unwrap_or(0).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str, most: usize) {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend(u16::try_from(end).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn put_sample(out: &mut Vec<u8>, sample: Option<ClockSample>) {
    out.push(u8::from(sample.is_some()));
    let words = sample.map_or([0; 3], |one| [one.host_ns, one.guest_ns, one.round_ns]);
    out.extend(words.into_iter().flat_map(u64::to_le_bytes));
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl AgentMessage {
    /// Returns its kind, and what it says.
    pub(crate) fn bytes(&self) -> (u8, Vec<u8>) {
        let mut out = Vec::new();
        let kind = match self {
            AgentMessage::Start(start) => {
                out.push(start.questions);
                for word in [ms(start.time), start.size, start.host] {
                    out.extend(word.to_le_bytes());
                }
                kind::START
            }
            AgentMessage::Started(started) => {
                for word in [started.own, ms(started.time), started.size] {
                    out.extend(word.to_le_bytes());
                }
                put_text(&mut out, &started.name, NAME);
                put_text(&mut out, &started.missing, TEXT);
                kind::STARTED
            }
            AgentMessage::Clock(host_ns) => {
                out.extend(host_ns.to_le_bytes());
                kind::CLOCK
            }
            AgentMessage::Time(host_ns, guest_ns) => {
                out.extend(host_ns.to_le_bytes());
                put_maybe(&mut out, *guest_ns);
                kind::TIME
            }
            AgentMessage::Stop(clocks) => {
                put_sample(&mut out, clocks.begin);
                put_sample(&mut out, clocks.end);
                kind::STOP
            }
            AgentMessage::Stopped(stopped) => {
                out.push(match stopped.ended {
                    EndReason::Asked => 0,
                    EndReason::Time => 1,
                    EndReason::Size => 2,
                    EndReason::Failed => 3,
                });
                for word in [stopped.length, stopped.events] {
                    out.extend(word.to_le_bytes());
                }
                put_maybe(&mut out, stopped.lost);
                put_text(&mut out, &stopped.why, TEXT);
                kind::STOPPED
            }
            AgentMessage::Fetch => kind::FETCH,
            AgentMessage::Chunk(bytes) => {
                out.extend_from_slice(bytes);
                kind::CHUNK
            }
            AgentMessage::End(hash) => {
                out.extend(hash);
                kind::END
            }
            AgentMessage::Done => kind::DONE,
            AgentMessage::Failed(why) => {
                put_text(&mut out, why, TEXT);
                kind::FAILED
            }
        };
        (kind, out)
    }

    /// Reads one.
    pub(crate) fn of(number: u8, says: Vec<u8>) -> Result<AgentMessage, AgentError> {
        if number == kind::CHUNK {
            return Ok(AgentMessage::Chunk(says));
        }
        let mut fields = MessageFields::of(number, &says);
        let message = match number {
            kind::START => AgentMessage::Start(Start {
                questions: fields.u8()?,
                time: Duration::from_millis(fields.u64()?),
                size: fields.u64()?,
                host: fields.u64()?,
            }),
            kind::STARTED => AgentMessage::Started(RecordingStart {
                own: fields.u64()?,
                time: Duration::from_millis(fields.u64()?),
                size: fields.u64()?,
                name: fields.text(NAME)?,
                missing: fields.text(TEXT)?,
            }),
            kind::CLOCK => AgentMessage::Clock(fields.u64()?),
            kind::TIME => AgentMessage::Time(fields.u64()?, fields.maybe()?),
            kind::STOP => AgentMessage::Stop(ClockSamples {
                begin: fields.sample()?,
                end: fields.sample()?,
            }),
            kind::STOPPED => AgentMessage::Stopped(RecordingEnd {
                ended: match fields.u8()? {
                    0 => EndReason::Asked,
                    1 => EndReason::Time,
                    2 => EndReason::Size,
                    3 => EndReason::Failed,
                    _ => return Err(fields.wrong("it ended for no known reason")),
                },
                length: fields.u64()?,
                events: fields.u64()?,
                lost: fields.maybe()?,
                why: fields.text(TEXT)?,
            }),
            kind::FETCH => AgentMessage::Fetch,
            kind::END => AgentMessage::End(fields.array()?),
            kind::DONE => AgentMessage::Done,
            kind::FAILED => AgentMessage::Failed(fields.text(TEXT)?),
            _ => return Err(fields.wrong("there is no such kind")),
        };
        fields.end()?;
        Ok(message)
    }

    /// Returns that it came where something else was expected.
    pub(crate) fn unexpected(&self, expected: &'static str) -> AgentError {
        match self {
            AgentMessage::Failed(why) => AgentError::Refused(why.clone()),
            other => AgentError::Unexpected {
                kind: other.bytes().0,
                expected,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn all() -> Vec<AgentMessage> {
        let sample = ClockSample {
            host_ns: 1,
            guest_ns: u64::MAX,
            round_ns: 3,
        };
        vec![
            AgentMessage::Start(Start {
                questions: CPU | IO,
                time: Duration::from_millis(1500),
                size: 7,
                host: 8,
            }),
            AgentMessage::Started(RecordingStart {
                own: 1,
                time: Duration::from_secs(2),
                size: 3,
                name: "gäst".to_owned(),
                missing: "ipi:ipi_send_cpu: this kernel has no such event".to_owned(),
            }),
            AgentMessage::Clock(5),
            AgentMessage::Time(5, None),
            AgentMessage::Time(5, Some(0)),
            AgentMessage::Stop(ClockSamples {
                begin: Some(sample),
                end: None,
            }),
            AgentMessage::Stopped(RecordingEnd {
                ended: EndReason::Size,
                length: 1,
                events: 2,
                lost: Some(3),
                why: String::new(),
            }),
            AgentMessage::Fetch,
            AgentMessage::Chunk(vec![1, 2, 3]),
            AgentMessage::End([7; 32]),
            AgentMessage::Done,
            AgentMessage::Failed("no room".to_owned()),
        ]
    }

    #[test]
    fn what_is_said_is_what_is_heard() {
        for message in all() {
            let (kind, bytes) = message.bytes();
            assert_eq!(AgentMessage::of(kind, bytes).expect("it is whole"), message);
        }
    }

    #[test]
    fn a_message_that_is_cut_or_too_long_is_none() {
        for message in all() {
            let (kind, bytes) = message.bytes();
            if matches!(message, AgentMessage::Chunk(_)) {
                continue;
            }
            for length in 0..bytes.len() {
                let cut = AgentMessage::of(kind, bytes[..length].to_vec());
                assert!(cut.is_err(), "{message:?}, {length} bytes");
            }
            let longer = [bytes, vec![0]].concat();
            assert!(AgentMessage::of(kind, longer).is_err(), "{message:?}");
        }
    }

    #[test]
    fn long_texts_end_where_a_character_ends() {
        let failed = AgentMessage::Failed("ä".repeat(TEXT));
        let (kind, bytes) = failed.bytes();
        assert_eq!(bytes.len(), 2 + TEXT);
        let Ok(AgentMessage::Failed(text)) = AgentMessage::of(kind, bytes) else {
            panic!("it is whole");
        };
        assert_eq!(text, "ä".repeat(TEXT / 2));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(kind in 0u8..40, bytes in vec(any::<u8>(), 0..200)) {
            if let Ok(message) = AgentMessage::of(kind, bytes) {
                // Its own bytes may be others: texts hold characters alone, and end at their most.
                let (kind, again) = message.bytes();
                prop_assert!(AgentMessage::of(kind, again).is_ok());
            }
        }
    }
}
