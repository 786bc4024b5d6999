//! What keeps two sides from working together.

use std::io;

/// What keeps two sides from working together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side said nothing for too long, or took nothing.
    #[error("the other side did not answer in time")]
    TimedOut,
    /// The other side is gone.
    #[error("the other side closed the connection")]
    Closed,
    /// The other side speaks something else.
    #[error("no trapline answers there: it speaks another protocol")]
    OtherProtocol,
    /// The other side speaks another version.
    #[error(
        "the other side is {program} and speaks version {theirs} of the protocol, and this trapline speaks version \
         {ours}: use the same trapline on both sides"
    )]
    Version {
        /// This side's version.
        ours: u16,
        /// The other side's.
        theirs: u16,
        /// What the other side calls itself.
        program: String,
    },
    /// The other side has another token.
    #[error("wrong token: the host's file and the guest's have to hold the same")]
    WrongToken,
    /// A message is not the other side's, or not the one whose turn it is.
    #[error("a message was changed on its way, or is of somebody else")]
    Forged,
    /// Messages cannot be encrypted.
    #[error("messages cannot be encrypted: {0}")]
    Noise(String),
    /// A message is longer than messages are.
    #[error("a message of {length} bytes was announced, where {most} are the most")]
    TooLong {
        /// Bytes that were announced.
        length: usize,
        /// Bytes that a message has at most here.
        most: usize,
    },
    /// A message cannot be read.
    #[error("a message of kind {kind} cannot be read: {why}")]
    Malformed {
        /// Its kind.
        kind: u8,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A message that does not belong here.
    #[error("a message of kind {kind} came where {expected} was expected")]
    Unexpected {
        /// Its kind.
        kind: u8,
        /// What was expected.
        expected: &'static str,
    },
    /// The other side says why it cannot do what was asked.
    #[error("{0}")]
    Refused(String),
    /// The file that came is not the one that was sent.
    #[error("the recording that came is not what it has to be: {0}")]
    Damaged(String),
}

impl AgentError {
    /// Returns what a step of the Noise protocol failed for that no peer has a hand in.
    pub(crate) fn of_noise(error: snow::Error) -> AgentError {
        AgentError::Noise(error.to_string())
    }
}
