//! Why nothing at all could be read.

use std::fmt;

/// Why [`TraceDat::parse`](crate::TraceDat::parse) could take nothing from its input.
///
/// Everything less than that is in diagnostics, beside what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceDatError {
    /// The first ten bytes are not those of a trace.dat.
    NotTraceDat,
    /// The version text is neither `6` nor `7`.
    UnknownVersion {
        /// Where the version text begins, in bytes.
        offset: u64,
        /// The text found there.
        found: String,
    },
    /// The input ends inside the first, fixed part of the file.
    EndsEarly {
        /// Where the missing part should begin, in bytes.
        offset: u64,
        /// What should be there.
        expected: &'static str,
    },
    /// The file says it is compressed in a way that is not known here.
    UnknownCompression {
        /// Where the name of the compression begins, in bytes.
        offset: u64,
        /// The name found there.
        found: String,
    },
}

impl fmt::Display for TraceDatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceDatError::NotTraceDat => f.write_str(
                "at byte 0x0: not a trace.dat: expected its magic bytes 17 08 44 \"tracing\"",
            ),
            TraceDatError::UnknownVersion { offset, found } => {
                write!(
                    f,
                    "at byte {offset:#x}: trace.dat version {found:?}: expected 6 or 7"
                )
            }
            TraceDatError::EndsEarly { offset, expected } => {
                write!(f, "at byte {offset:#x}: the file ends: expected {expected}")
            }
            TraceDatError::UnknownCompression { offset, found } => {
                write!(
                    f,
                    "at byte {offset:#x}: compression {found:?}: expected zstd, zlib or none"
                )
            }
        }
    }
}

impl std::error::Error for TraceDatError {}
