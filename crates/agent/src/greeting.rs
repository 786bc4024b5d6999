//! How both sides find out that they speak the same and have the same token.
//!
//! The host shows it first: who does not have the token gets nothing from an agent that depends on it.

use std::time::Instant;

use crate::channel::Channel;
use crate::error::AgentError;
use crate::link::Link;
use crate::message::MessageFields;
use crate::noise::{HANDSHAKE, NoiseHandshake, NoiseSide};
use crate::secret::SharedToken;

/// The version of the protocol.
pub const VERSION: u16 = 2;

/// What a greeting begins with, in all versions.
const MAGIC: &[u8; 8] = b"trapline";
/// Bytes of what a side calls itself at most.
const PROGRAM: usize = 64;
/// What this side calls itself.
const SELF: &str = concat!("trapline ", env!("CARGO_PKG_VERSION"));

/// Kinds of messages.
const HELLO: u8 = 1;
const HANDSHAKE_OF_HOST: u8 = 2;
const HANDSHAKE_OF_GUEST: u8 = 3;
const WRONG_TOKEN: u8 = 4;
const READY: u8 = 5;

/// Returns this side's greeting.
fn hello() -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    let program = SELF.as_bytes();
    let program = &program[..program.len().min(PROGRAM)];
    out.push(u8::try_from(program.len()).unwrap_or(0));
    out.extend_from_slice(program);
    out
}

/// Reads a greeting. What stands in it is the same in all versions; what stands behind it is not.
fn check_hello(kind: u8, says: &[u8]) -> Result<(), AgentError> {
    let mut fields = MessageFields::of(kind, says);
    if kind != HELLO || fields.take(MAGIC.len()).ok() != Some(&MAGIC[..]) {
        return Err(AgentError::OtherProtocol);
    }
    let version = fields.u16()?;
    let length = usize::from(fields.u8()?);
    if length > PROGRAM {
        return Err(AgentError::OtherProtocol);
    }
    let program = String::from_utf8_lossy(fields.take(length)?).into_owned();
    if version != VERSION {
        return Err(AgentError::Version {
            ours: VERSION,
            theirs: version,
            program,
        });
    }
    fields.end()
}

/// Greets an agent.
pub(crate) fn of_host(link: Link, token: &SharedToken, by: Instant) -> Result<Channel, AgentError> {
    let mut channel = Channel::new(link);
    let own = hello();
    channel.send(HELLO, &own, by)?;
    let (kind, theirs) = channel.receive(by)?;
    check_hello(kind, &theirs)?;
    let mut noise = NoiseHandshake::begin(NoiseSide::Host, token, &[own, theirs].concat())?;
    channel.send(HANDSHAKE_OF_HOST, &noise.write()?, by)?;
    match channel.receive(by)? {
        (WRONG_TOKEN, _) => Err(AgentError::WrongToken),
        (HANDSHAKE_OF_GUEST, message) => {
            noise.read(&message)?;
            channel.lock(noise.end()?);
            // What was overheard could be said again up to here: this says that the host has the connection's keys.
            channel.send(READY, &[], by)?;
            Ok(channel)
        }
        (kind, _) => Err(AgentError::Unexpected {
            kind,
            expected: "the agent's part of the handshake",
        }),
    }
}

/// Greets a host that has connected.
pub(crate) fn of_guest(
    link: Link,
    token: &SharedToken,
    by: Instant,
) -> Result<Channel, AgentError> {
    let mut channel = Channel::new(link);
    let (kind, theirs) = channel.receive(by)?;
    let own = hello();
    match check_hello(kind, &theirs) {
        // So that it can say both versions.
        Err(error @ AgentError::Version { .. }) => {
            channel.send(HELLO, &own, by)?;
            return Err(error);
        }
        other => other?,
    }
    channel.send(HELLO, &own, by)?;
    let mut noise = NoiseHandshake::begin(NoiseSide::Guest, token, &[theirs, own].concat())?;
    let (kind, message) = channel.receive(by)?;
    if kind != HANDSHAKE_OF_HOST || message.len() != HANDSHAKE {
        return Err(AgentError::Unexpected {
            kind,
            expected: "the host's part of the handshake",
        });
    }
    if let Err(error) = noise.read(&message) {
        // Whether it can be known or not: it was wrong.
        let _ = channel.send(WRONG_TOKEN, &[], by);
        return Err(error);
    }
    channel.send(HANDSHAKE_OF_GUEST, &noise.write()?, by)?;
    channel.lock(noise.end()?);
    match channel.receive(by) {
        Ok((READY, says)) if says.is_empty() => Ok(channel),
        Ok((kind, _)) => Err(AgentError::Unexpected {
            kind,
            expected: "that the host is ready",
        }),
        // It has said again what it overheard.
        Err(AgentError::Forged) => Err(AgentError::WrongToken),
        Err(error) => Err(error),
    }
}
