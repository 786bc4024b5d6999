//! Why an input cannot be used: which one, what is wrong with it, and what to do.

use std::io;

use source::OpenError;
use ticket::NamedCommand;

use crate::{InputKind, InputPurpose, TimeError};

/// Why an input cannot be used. Its text is one sentence that names the input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A recording was cut off before its first event.
    #[error(
        "{name}: cut off at byte {at:#x}, before its first event, so it has no events; copy the whole file, or record \
         again"
    )]
    CutBeforeEvents {
        /// File name.
        name: String,
        /// Its length in bytes.
        at: usize,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is a text that names commands, and what they print is not in it.
    #[error(
        "{name}: is a text in which nothing is an event, a table, a definition or a fact of a host; it names {}, whose \
         output is not in it (a picture of it cannot be read): paste that output, or give the recording",
        commands_in(commands)
    )]
    OutputMissing {
        /// The input.
        name: String,
        /// The commands.
        commands: Vec<NamedCommand>,
    },
    /// It is something else than what was wanted.
    #[error("{name}: {}", kind.in_place_of(*wanted))]
    WrongKind {
        /// The input.
        name: String,
        /// What it is.
        kind: InputKind,
        /// What was wanted.
        wanted: InputPurpose,
    },
    /// A file beside the recordings cannot be read.
    #[error("{name}: {}; expected {}", words::io_reason(error), wanted.expected())]
    Unreadable {
        /// The file.
        name: String,
        /// The system's word.
        error: io::Error,
        /// What was wanted.
        wanted: InputPurpose,
    },
    /// A file beside the recordings holds nothing of what was wanted.
    #[error("{name}: {reason}; expected {}", wanted.expected())]
    Nothing {
        /// The file.
        name: String,
        /// What it does not have.
        reason: String,
        /// What was wanted.
        wanted: InputPurpose,
    },
    /// A guest's definition cannot be used.
    #[error("{name}: {error}")]
    Definition {
        /// The file.
        name: String,
        /// Why.
        error: domain::DomainError,
    },
    /// A file holds none of the guest that is meant, or several.
    #[error(
        "{option}: holds the definitions of {found} VMs, and with a recording one is wanted; --vm NAME chooses it"
    )]
    NotOneDefinition {
        /// The option and the file.
        option: String,
        /// How many are left.
        found: usize,
    },
    /// A file of paths cannot be used.
    #[error("{name}: {error}")]
    PathFile {
        /// The file.
        name: String,
        /// Why.
        error: paths::lang::LanguageError,
    },
    /// Standard input is to be read twice.
    #[error("standard input (-) is named twice, and can be read once: put one of them into a file")]
    StandardInputTwice,
    /// Guests' recordings are named, and which of several hosts they are of is not.
    #[error(
        "--guest names recordings of one host's guests, and {} of hosts are given ({}): give one host, or leave \
         --guest out where recordings name each other",
        names.len(),
        names.join(", ")
    )]
    GuestsOfSeveral {
        /// The recordings of hosts.
        names: Vec<String>,
    },
    /// The recording's clock does not have the times that were asked for.
    #[error("{name}: {error}")]
    Time {
        /// The recording.
        name: String,
        /// Why.
        error: TimeError,
    },
    /// The recording does not show the VM, vCPU or process that was asked for.
    #[error("{name}: no vCPU{asked} is in it{near}; {known}")]
    NoSuchVcpu {
        /// The recording.
        name: String,
        /// What was asked for, with a blank before it.
        asked: String,
        /// A name that may have been meant, in brackets with a blank before it.
        near: String,
        /// Which VMs are known, and how to know more.
        known: String,
    },
    /// Filters were given with tables.
    #[error("{name}: a printed table cannot be filtered, because it holds sums")]
    TablesFiltered {
        /// The input.
        name: String,
    },
    /// Folded stacks cannot be read as it was asked for.
    #[error("{name}: folded stacks {reason}")]
    Folded {
        /// The input.
        name: String,
        /// Why, after the words 'folded stacks'.
        reason: String,
    },
    /// An input begins as a table does, and no row of it can be read.
    #[error("{name}: looks like a printed table, but no row of it could be read")]
    TablesUnread {
        /// The input.
        name: String,
    },
    /// A line was named of an input without tables.
    #[error(
        "{name}:{line}: {name} has no printed tables, of which a line behind a colon names one; give it alone"
    )]
    LineWithoutTable {
        /// The input.
        name: String,
        /// The line.
        line: u64,
    },
    /// An input has several tables of one kind, and one has to be chosen.
    #[error("{name}: {reason}")]
    TablesAmbiguous {
        /// The input.
        name: String,
        /// Which, and what to do.
        reason: String,
    },
    /// The events that were asked for are not in the recording, or cannot be recognized.
    #[error("{name}: {reason}")]
    EventsMissing {
        /// The recording.
        name: String,
        /// What is missing, and how to record it.
        reason: String,
    },
}

impl Error {
    /// Returns whether the command line is wrong, whatever the inputs hold.
    pub fn is_wrong_usage(&self) -> bool {
        matches!(self, Error::StandardInputTwice)
    }
}

/// Lists commands with their lines.
fn commands_in(commands: &[NamedCommand]) -> String {
    let each = commands.iter();
    let each: Vec<String> = each
        .map(|one| format!("'{}' in line {}", one.command, one.line))
        .collect();
    words::list(&each)
}
