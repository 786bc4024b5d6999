//! What makes a file unusable as perf.data.

/// Why nothing at all can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PerfFileError {
    /// The magic bytes are not there.
    #[error("not perf.data: expected PERFILE2 at byte 0")]
    Magic,
    /// The file is shorter than its own header.
    #[error("perf.data header cut off: expected {expected} bytes, found {found}")]
    Header {
        /// Bytes the header has.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// No event attribute could be read, so no record can be understood.
    #[error("perf.data has no usable event attribute: {0}")]
    Attributes(String),
}
