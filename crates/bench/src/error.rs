//! Why nothing can be measured at all.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::ipi::MAX_PAIRED;

/// Why nothing can be measured at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BenchError {
    /// None of the CPUs may be used.
    #[error("none of the CPUs {wanted} may be used: this process may run on {allowed}")]
    NoCpu {
        /// What was asked for.
        wanted: String,
        /// Where it may run.
        allowed: String,
    },
    /// Too many pairs.
    #[error("{cpus} CPUs have too many pairs: choose {MAX_PAIRED} or fewer with --cpu")]
    TooManyPairs {
        /// CPUs.
        cpus: usize,
    },
    /// The peer cannot be bound.
    #[error("{address}: cannot be bound: {why}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        why: String,
    },
    /// The file, device or folder cannot be used.
    #[error("{}: {why}", path.display())]
    Disk {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file that is there is never written.
    #[error(
        "{}: only a file that trapline makes itself is written: give a folder on that disk with --write", .0.display()
    )]
    WriteToFile(PathBuf),
    /// A thread cannot be started, or may not run where it has to.
    #[error("{0}")]
    Thread(String),
}
