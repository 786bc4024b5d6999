//! Cuts a text into lines.

use std::borrow::Cow;

use crate::clean;

/// No line of a trace is longer; longer ones are passed over, so that a picture renamed to `.txt` costs
/// nothing.
pub(crate) const MAX_LINE: usize = u16::MAX as usize;

/// One line, or several joined.
#[derive(Debug, Clone)]
pub(crate) struct TextLine<'b> {
    /// The line without its end, cleaned if it needed to be.
    pub bytes: Cow<'b, [u8]>,
    /// The same as text, if it is known to be UTF-8 and was not changed.
    pub text: Option<&'b str>,
    /// Where it starts.
    pub start: usize,
    /// Where the next one starts.
    pub next: usize,
    /// How many lines of the text it is made of.
    pub count: u64,
}

impl<'b> TextLine<'b> {
    /// Returns a line put together from others.
    pub(crate) fn made(bytes: Vec<u8>, start: usize, next: usize, count: u64) -> TextLine<'b> {
        TextLine {
            bytes: Cow::Owned(bytes),
            text: None,
            start,
            next,
            count,
        }
    }
}

/// The lines of a piece of text.
#[derive(Debug)]
pub(crate) struct TextLines<'b> {
    bytes: &'b [u8],
    /// Whether the text ends with this piece.
    end: bool,
    separator: u8,
    /// The beginning that is UTF-8.
    valid: &'b str,
    /// Where the next byte stands that may need cleaning.
    suspect: usize,
}

/// What was found at a position.
#[derive(Debug)]
pub(crate) enum Cut<'b> {
    Line(TextLine<'b>),
    /// Nothing, or only part of a line.
    More,
    /// The rest is part of a line that is too long already.
    TooLong,
}

impl<'b> TextLines<'b> {
    pub(crate) fn new(bytes: &'b [u8], end: bool, separator: u8) -> TextLines<'b> {
        let suspect = clean::next_suspect(bytes, 0);
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        TextLines {
            bytes,
            end,
            separator,
            valid,
            suspect,
        }
    }

    /// Returns the line that starts at `at`. Each call must be for a later line than the one before.
    #[inline]
    pub(crate) fn cut(&mut self, at: usize) -> Cut<'b> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let (len, step) = match memchr::memchr(self.separator, rest) {
            Some(len) => (len, len + 1),
            None if rest.is_empty() => return Cut::More,
            None if self.end => (rest.len(), rest.len()),
            None if rest.len() > MAX_LINE => return Cut::TooLong,
            None => return Cut::More,
        };
        let next = at + step;
        let mut line = &rest[..len];
        if let Some((b'\r', before)) = line.split_last() {
            line = before;
        }
        let mut bytes = Cow::Borrowed(line);
        let mut text = self.valid.get(at..at + line.len());
        if self.suspect < next {
            if line.len() <= MAX_LINE {
                bytes = Cow::Owned(clean::clean(line));
                text = None;
            }
            self.suspect = clean::next_suspect(self.bytes, next);
        }
        Cut::Line(TextLine {
            bytes,
            text,
            start: at,
            next,
            count: 1,
        })
    }
}
