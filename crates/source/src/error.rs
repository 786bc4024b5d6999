//! Why a recording cannot be opened, in words a user can act on.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a recording cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such file.
    #[error("{0}: no such file; expected a recording made by perf, trace-cmd or ftrace")]
    Missing(String),
    /// It is a directory.
    #[error(
        "{0}: is a directory; expected a recording, such as the perf.data or trace.dat inside it"
    )]
    Directory(String),
    /// The user may not read it.
    #[error(
        "{0}: permission denied; recordings made as root belong to root: read it with sudo, or chown it"
    )]
    Denied(String),
    /// It holds nothing.
    #[error("{0}: is empty; expected a recording: did the recorder run to its end?")]
    Empty(String),
    /// It is something else.
    #[error(
        "{name}: {found}; expected perf.data, trace.dat, or the text of perf script, trace-cmd report \
         or the kernel's trace file"
    )]
    NotARecording {
        /// File name.
        name: String,
        /// What it looks like.
        found: String,
    },
    /// It is a recording in name, but nothing of it can be used.
    #[error("{name}: {reason}")]
    Unusable {
        /// File name.
        name: String,
        /// Why.
        reason: String,
    },
    /// What it unpacks to is too large for memory, and there is no temporary file for it.
    #[error(
        "{name}: unpacked it is too large for memory, and no temporary file can be kept in {}: {error}; set TMPDIR to a \
         folder with room for it",
        folder.display()
    )]
    Temporary {
        /// File name.
        name: String,
        /// Where temporary files go: `TMPDIR`, or the system's folder for them.
        folder: PathBuf,
        /// The system's word.
        error: String,
    },
    /// The system failed to read it.
    #[error("{name}: cannot be read: {error}")]
    Io {
        /// File name.
        name: String,
        /// The system's word.
        error: io::Error,
    },
}

impl OpenError {
    /// Sorts a system's error into what a user can do about it.
    pub(crate) fn from_io(name: &str, error: io::Error) -> OpenError {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        if let Some(Temporary { folder, error }) = inner {
            let error = match error.kind() {
                io::ErrorKind::NotFound => "no such folder".to_owned(),
                io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                _ => error.to_string(),
            };
            return OpenError::Temporary {
                name: name.to_owned(),
                folder: folder.clone(),
                error,
            };
        }
        match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing(name.to_owned()),
            io::ErrorKind::PermissionDenied => OpenError::Denied(name.to_owned()),
            io::ErrorKind::IsADirectory => OpenError::Directory(name.to_owned()),
            _ => OpenError::Io {
                name: name.to_owned(),
                error,
            },
        }
    }
}

/// A temporary file that failed, inside the [`io::Error`] that says so.
#[derive(Debug)]
pub(crate) struct Temporary {
    /// The folder for temporary files.
    pub folder: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

impl fmt::Display for Temporary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no temporary file in {}: {}",
            self.folder.display(),
            self.error
        )
    }
}

impl std::error::Error for Temporary {}
