//! Messages: a length, a kind and what it says; encrypted once both sides know each other.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::error::AgentError;
use crate::link::Link;
use crate::noise::{NoiseKeys, TAG};

/// Bytes that a message has at most, with its kind: before both sides know each other, and from then on. The length
/// before it is not counted.
const MOST_PLAIN: usize = 256;
const MOST: usize = 1 + CONTENT + TAG;
/// Bytes that a message says at most.
///
/// Noise allows 65,535 bytes in all.
pub(crate) const CONTENT: usize = 32 << 10;

/// How long a message that has begun may take to come, or to be taken.
pub(crate) const MESSAGE: Duration = Duration::from_secs(10);

/// A connection that messages go over.
#[derive(Debug)]
pub(crate) struct Channel {
    link: Link,
    /// What messages are encrypted by.
    keys: Option<NoiseKeys>,
}

impl Channel {
    pub(crate) fn new(link: Link) -> Channel {
        Channel { link, keys: None }
    }

    /// From now on each message is encrypted.
    pub(crate) fn lock(&mut self, keys: NoiseKeys) {
        self.keys = Some(keys);
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, kind: u8, says: &[u8], by: Instant) -> Result<(), AgentError> {
        let mut plain = Vec::with_capacity(1 + says.len());
        plain.push(kind);
        plain.extend_from_slice(says);
        let mut bytes = vec![0; 4];
        match &mut self.keys {
            // What would be too long is not encrypted first.
            Some(keys) if plain.len() <= 1 + CONTENT => keys.encrypt(&plain, &mut bytes)?,
            _ => bytes.append(&mut plain),
        }
        let (length, most) = (bytes.len() - 4, self.most());
        if length > most {
            return Err(AgentError::TooLong { length, most });
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.link.write(&bytes, by)
    }

    /// Receives a message. Returns its kind and what it says.
    pub(crate) fn receive(&mut self, by: Instant) -> Result<(u8, Vec<u8>), AgentError> {
        let mut length = [0; 4];
        self.link.read(&mut length, by)?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        let most = self.most();
        let least = 1 + if self.keys.is_some() { TAG } else { 0 };
        if length > most {
            // Who has not said that it is trapline is most likely something else.
            return Err(match self.keys {
                None => AgentError::OtherProtocol,
                Some(_) => AgentError::TooLong { length, most },
            });
        }
        if length < least {
            return Err(AgentError::Malformed {
                kind: 0,
                why: "it is too short",
            });
        }
        let mut message = vec![0; length];
        self.link.read(&mut message, by)?;
        if let Some(keys) = &mut self.keys {
            message = keys.decrypt(&message)?;
        }
        let says = message.split_off(1);
        Ok((message[0], says))
    }

    fn most(&self) -> usize {
        match self.keys {
            None => MOST_PLAIN,
            Some(_) => MOST,
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}
