//! What can go wrong with a store.

use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;

/// Why a recording was not written into a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A Parquet file cannot be made or read.
    #[error("{}: {error}", .path.display())]
    Parquet {
        /// Which.
        path: PathBuf,
        /// Why.
        error: ParquetError,
    },
    /// The store has names that are masked by another key, or names as they are.
    #[error(
        "{}: the store has {there}, and this would have {here}: rows of one host would not find each other. Use the \
         key that the store was begun with, or another folder.",
        .path.display()
    )]
    OtherMask {
        /// A file of the store.
        path: PathBuf,
        /// What the store has.
        there: &'static str,
        /// What would be written.
        here: &'static str,
    },
    /// The store was written by a version whose tables are not known here.
    #[error(
        "{}: the store's tables are of version {there}, of a newer trapline; this one writes version {here}",
        .path.display()
    )]
    Newer {
        /// A file of the store.
        path: PathBuf,
        /// Its version.
        there: u32,
        /// Ours.
        here: u32,
    },
    /// The recording is in a file that was made of many.
    #[error("{}: the recording is in this file already, with others; its tables stay as they are", .path.display())]
    Compacted {
        /// The file.
        path: PathBuf,
    },
    /// The folder is no store: a job made it of one, for the screen.
    #[error(
        "{}: the folder has what the screen of 'trapline fleet' is made of, and nothing else; name the store that it \
         was made of",
        .path.display()
    )]
    Screen {
        /// The folder.
        path: PathBuf,
    },
    /// A day is none.
    #[error("{day} is no day: write it as 2026-11-23")]
    NoDay {
        /// What was given.
        day: String,
    },
}

impl StoreError {
    /// Returns what becomes of an error about a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.into();
        |error| StoreError::File { path, error }
    }

    /// Returns what becomes of an error of Parquet's about a file.
    pub(crate) fn parquet(path: impl Into<PathBuf>) -> impl FnOnce(ParquetError) -> StoreError {
        let path = path.into();
        |error| match error {
            // What the system says of the file is all that there is to say.
            ParquetError::External(inner) => match inner.downcast() {
                Ok(error) => StoreError::File {
                    path,
                    error: *error,
                },
                Err(inner) => StoreError::Parquet {
                    path,
                    error: ParquetError::External(inner),
                },
            },
            error => StoreError::Parquet { path, error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_as_the_system_says_it() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let text = full.to_string();
        let error = StoreError::parquet("x")(ParquetError::External(Box::new(full)));
        assert_eq!(error.to_string(), format!("x: {text}"));
        let other = StoreError::parquet("x")(ParquetError::External("no file".into()));
        assert_eq!(other.to_string(), "x: External: no file");
    }
}
