//! What keeps a recording from being made.

use std::io;
use std::path::PathBuf;

/// What keeps a recording from being made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// tracefs is not mounted where it is looked for.
    #[error(
        "tracefs is not mounted, so the kernel's events cannot be named: mount it with 'mount -t tracefs nodev \
         /sys/kernel/tracing', as root"
    )]
    NoTracefs,
    /// tracefs is there, and this user may not read it.
    #[error(
        "{path}: this user may not read it, so the kernel's events cannot be named: record as root, or let a group of \
         this user read it, as root: 'mount -o remount,gid=GROUP,mode=750 {path}'"
    )]
    Closed {
        /// Where it is mounted.
        path: PathBuf,
    },
    /// A file of the kernel cannot be read.
    #[error("{path}: cannot be read: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An event cannot be opened.
    #[error("event {name} cannot be opened on CPU {cpu}: {why}")]
    Open {
        /// The event.
        name: String,
        /// The CPU.
        cpu: u32,
        /// Why, and what to do.
        why: String,
    },
    /// The process may not have as many open files as there are events and CPUs.
    #[error(
        "{files} files are needed, one for each event on each CPU, and the process may open {allowed}: raise the limit \
         with 'ulimit -n {files}'"
    )]
    Files {
        /// Files that are needed.
        files: u64,
        /// Files that may be open.
        allowed: u64,
    },
    /// A ring cannot be made.
    #[error("the ring buffer of CPU {cpu}, {kib} KiB, cannot be made: {why}")]
    Ring {
        /// The CPU.
        cpu: u32,
        /// Its size.
        kib: usize,
        /// Why, and what to do.
        why: String,
    },
    /// A CPU that was asked for is not on line.
    #[error("CPU {cpu} is not on line here; CPUs {on_line} are")]
    NotOnLine {
        /// The CPU.
        cpu: u32,
        /// Those that are, as a list.
        on_line: String,
    },
    /// A filter is refused.
    #[error(
        "the kernel refuses the filter of {name}, '{filter}': {error}; its fields are {fields}"
    )]
    Filter {
        /// The event.
        name: String,
        /// The filter.
        filter: String,
        /// The fields that a filter of it may name.
        fields: String,
        /// Why.
        error: io::Error,
    },
    /// A pair cannot be recorded.
    #[error("the pair {name} cannot be recorded: {why}")]
    Pair {
        /// Its events, or the one that is missing.
        name: String,
        /// Why.
        why: String,
    },
    /// No program can write events as short records.
    #[error("--compact: {why}; without it perf's own events are recorded")]
    Compact {
        /// Why.
        why: String,
    },
    /// The recording cannot be written.
    #[error("the recording cannot be written: {0}")]
    Write(io::Error),
    /// The kernel cannot wait for its own events.
    #[error("waiting for events failed: {0}")]
    Wait(io::Error),
    /// The clock of the events cannot be read.
    #[error("the clock of the events cannot be read: {why}")]
    NoClock {
        /// Why, and what to do.
        why: String,
    },
    /// What an event costs cannot be measured.
    #[error("what an event costs cannot be measured: {why}")]
    NotMeasured {
        /// Why, and what to do.
        why: String,
    },
}
