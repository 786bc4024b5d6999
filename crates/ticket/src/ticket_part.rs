//! What a part of a text is.

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartKind {
    /// Events, as a tool printed them: whose text it is.
    Trace(String),
    /// A table that a tool printed.
    Table {
        /// The tool.
        printer: &'static str,
        /// What its rows are, where the tool prints several kinds.
        of: Option<&'static str>,
    },
    /// The definition of this guest.
    Definition(String),
    /// Facts of a host or its VMs, and of what.
    Facts(String),
    /// What a benchmark printed: its tool and its first result.
    Score(String),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketPart {
    /// What it is.
    pub kind: PartKind,
    /// Its first line, counted from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// The heading or sentence before it.
    pub name: Option<String>,
    /// The definition of the guest that it is of, as a place in [`crate::Ticket::definitions`]: the guest that the
    /// nearest line before it names. Of a text with one definition that.
    pub definition: Option<usize>,
}
