//! Why a text is no domain's XML, and what is said beside one that is.

use std::fmt;

/// Why a text cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct DomainError {
    /// What sort of error it is.
    pub kind: ErrorKind,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters; for bytes that are no text, in bytes.
    pub column: usize,
    /// What was found, what was expected, what to do.
    pub what: String,
}

/// The sorts of [`DomainError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The bytes are not UTF-8.
    Encoding,
    /// The document is larger or deeper than any that libvirt would take.
    Limit,
    /// There is a document type declaration or an entity of its own: neither is ever read.
    Entity,
    /// It is not well-formed XML.
    Malformed,
    /// It is XML, but of something else than a domain.
    NotDomain,
    /// It holds a domain, but libvirt would not take this document back.
    NotEditable,
}

impl DomainError {
    /// Returns an error at a byte of a text.
    pub(crate) fn at(
        text: &str,
        offset: usize,
        kind: ErrorKind,
        what: impl Into<String>,
    ) -> DomainError {
        let (line, column) = position(text, offset);
        DomainError {
            kind,
            line,
            column,
            what: what.into(),
        }
    }
}

/// What is said about a document that could be read, or about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainNote {
    /// Why it is noted.
    pub kind: NoteKind,
    /// Line that it is about, from 1.
    pub line: usize,
    /// Which of the changes it is about, by its place in the slice that was given to `apply`.
    pub change: Option<usize>,
    /// A sentence.
    pub what: String,
}

/// The sorts of [`DomainNote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteKind {
    /// Something in the document is not understood and left out.
    Unread,
    /// The change holds already: nothing was changed.
    Holds,
    /// The change cannot be made in this document: nothing was changed.
    Refused,
    /// The change was made, and this is to be known of it.
    Advice,
}

impl fmt::Display for DomainNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Returns line and column, both from 1, of a byte.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = text.get(..offset).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before.get(start..).unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// Returns a text as it can stand in a message: short, and on one line.
pub(crate) fn quoted(text: &str) -> String {
    /// Characters that are shown.
    const MAX: usize = 40;
    let mut out: String = text
        .chars()
        .take(MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(MAX).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let text = "<a>\r\n  <größe x/>\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, text.find("x/").unwrap()), (2, 10));
        assert_eq!(position(text, 99), (3, 1));
    }

    #[test]
    fn what_is_shown_is_short_and_on_one_line() {
        assert_eq!(quoted("a\nb"), "a\u{fffd}b");
        assert_eq!(quoted(&"x".repeat(50)).chars().count(), 41);
    }
}
