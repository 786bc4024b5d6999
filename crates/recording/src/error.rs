//! Why a recording cannot be made, or not to its end.

use std::io;

use agent::{AgentError, TokenError};
use record::RecordError;

/// Why a recording cannot be made, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// What was asked for cannot be done: a sentence that says what to do.
    #[error("{0}")]
    Refused(String),
    /// Something failed at a place: a file, a folder, a guest.
    #[error("{place}: {error}")]
    At {
        /// The place, as messages name it.
        place: String,
        /// What failed.
        error: Box<RecordingError>,
    },
    /// Events, rings or the file.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An agent in a guest.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The token that is shared with agents.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The system, or whoever reads what is said meanwhile.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Names the place at which something failed.
pub(crate) trait AtPlace<T> {
    /// Returns the same, or the error with its place in front.
    fn at(self, place: impl FnOnce() -> String) -> Result<T, RecordingError>;
}

impl<T, E: Into<RecordingError>> AtPlace<T> for Result<T, E> {
    fn at(self, place: impl FnOnce() -> String) -> Result<T, RecordingError> {
        self.map_err(|error| RecordingError::At {
            place: place(),
            error: Box::new(error.into()),
        })
    }
}
