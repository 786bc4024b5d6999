//! How both sides find out that they speak the same and have the same token.
//!
//! The host proves it first: who does not have the token gets nothing from an agent that says anything of it.

use std::time::Instant;

use crate::channel::Channel;
use crate::error::AgentError;
use crate::link::Link;
use crate::message::MessageFields;
use crate::secret::{NONCE, Nonces, PROOF, SharedToken, random};

/// The version of the protocol.
pub const VERSION: u16 = 1;

/// What a greeting begins with, in all versions.
const MAGIC: &[u8; 8] = b"trapline";
/// Bytes of what a side calls itself at most.
const PROGRAM: usize = 64;
/// What this side calls itself.
const SELF: &str = concat!("trapline ", env!("CARGO_PKG_VERSION"));

/// Kinds of messages.
const HELLO: u8 = 1;
const PROOF_OF_HOST: u8 = 2;
const PROOF_OF_GUEST: u8 = 3;
const WRONG_TOKEN: u8 = 4;

/// A greeting.
#[derive(Debug)]
struct Hello {
    version: u16,
    program: String,
    nonce: [u8; NONCE],
}

impl Hello {
    fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.version.to_le_bytes());
        let program = self.program.as_bytes();
        let program = &program[..program.len().min(PROGRAM)];
        out.push(u8::try_from(program.len()).unwrap_or(0));
        out.extend_from_slice(program);
        out.extend(self.nonce);
        out
    }

    /// Reads one. What stands before the nonce is the same in all versions.
    fn of(kind: u8, says: &[u8]) -> Result<Hello, AgentError> {
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
        let nonce = fields.array()?;
        fields.end()?;
        Ok(Hello {
            version,
            program,
            nonce,
        })
    }

    fn own() -> Result<Hello, AgentError> {
        Ok(Hello {
            version: VERSION,
            program: SELF.to_owned(),
            nonce: random()?,
        })
    }
}

/// Greets an agent.
pub(crate) fn of_host(link: Link, token: &SharedToken, by: Instant) -> Result<Channel, AgentError> {
    let mut channel = Channel::new(link);
    let own = Hello::own()?;
    channel.send(HELLO, &own.bytes(), by)?;
    let (kind, says) = channel.receive(by)?;
    let theirs = Hello::of(kind, &says)?;
    let nonces = Nonces {
        host: own.nonce,
        guest: theirs.nonce,
    };
    channel.send(PROOF_OF_HOST, &nonces.of_host(token), by)?;
    match channel.receive(by)? {
        (WRONG_TOKEN, _) => Err(AgentError::WrongToken),
        (PROOF_OF_GUEST, proof) if nonces.is_guests(token, &proof) => {
            let [host, guest] = nonces.keys(token);
            channel.lock(host, guest);
            Ok(channel)
        }
        // It has taken our proof for right without having the token: it is not who it says.
        (PROOF_OF_GUEST, _) => Err(AgentError::WrongToken),
        (kind, _) => Err(AgentError::Unexpected {
            kind,
            expected: "the agent's proof that it has the token",
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
    let (kind, says) = channel.receive(by)?;
    let own = Hello::own()?;
    let theirs = match Hello::of(kind, &says) {
        // So that it can say both versions.
        Err(error @ AgentError::Version { .. }) => {
            channel.send(HELLO, &own.bytes(), by)?;
            return Err(error);
        }
        other => other?,
    };
    channel.send(HELLO, &own.bytes(), by)?;
    let nonces = Nonces {
        host: theirs.nonce,
        guest: own.nonce,
    };
    let (kind, proof) = channel.receive(by)?;
    if kind != PROOF_OF_HOST || proof.len() != PROOF {
        return Err(AgentError::Unexpected {
            kind,
            expected: "the host's proof that it has the token",
        });
    }
    if !nonces.is_hosts(token, &proof) {
        // Whether it can be known or not: it was wrong.
        let _ = channel.send(WRONG_TOKEN, &[], by);
        return Err(AgentError::WrongToken);
    }
    channel.send(PROOF_OF_GUEST, &nonces.of_guest(token), by)?;
    let [host, guest] = nonces.keys(token);
    channel.lock(guest, host);
    Ok(channel)
}
