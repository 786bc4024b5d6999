//! Why a recording cannot be opened, in words a user can act on.

use std::io;

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
        "{name}: is {found}; expected perf.data, trace.dat, or the text of perf script, trace-cmd report \
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
    /// It is longer than may be kept of it.
    #[error(
        "{name}: is longer than the {limit} that are kept of a pipe or of what is packed; --spool-limit SIZE allows \
         more, and a file that is not packed needs no limit"
    )]
    TooLarge {
        /// File name.
        name: String,
        /// The limit.
        limit: String,
    },
    /// It unpacks to more than recordings do.
    #[error(
        "{name}: its first {packed} bytes unpack to more than {limit}, which those of no recording do; \
         --spool-limit SIZE reads it all the same, up to that size"
    )]
    Bomb {
        /// File name.
        name: String,
        /// Bytes of it that were read.
        packed: u64,
        /// What they unpacked to.
        limit: String,
    },
    /// There is no room for what it unpacks to.
    #[error(
        "{name}: cannot be kept in the temporary folder {folder}: {reason}; TMPDIR names another one"
    )]
    Spool {
        /// File name.
        name: String,
        /// The folder.
        folder: String,
        /// Why.
        reason: String,
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
    /// Says that the temporary folder cannot be used.
    pub(crate) fn spool(name: &str, error: &io::Error) -> OpenError {
        // The library that makes the file puts its path into the error; only the system's word is of use.
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "there is no such folder".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::StorageFull => "no space is left".to_owned(),
            _ => error.to_string(),
        };
        OpenError::Spool {
            name: name.to_owned(),
            folder: std::env::temp_dir().display().to_string(),
            reason,
        }
    }

    /// Sorts a system's error into what a user can do about it.
    pub(crate) fn from_io(name: &str, error: io::Error) -> OpenError {
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
