//! The lines of a text, and whose each is.

use std::ops::Range;

/// Lines that are kept; a text with more is read up to there.
const MAX_LINES: usize = 1 << 18;

/// The lines of a text.
#[derive(Debug, Default)]
pub(crate) struct TicketLines<'t> {
    lines: Vec<&'t [u8]>,
    /// Whether a line is part of something.
    taken: Vec<bool>,
}

impl<'t> TicketLines<'t> {
    pub(crate) fn new(text: &'t [u8]) -> TicketLines<'t> {
        let mut rest = Some(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
        let mut lines = Vec::new();
        while let Some(text) = rest.filter(|_| lines.len() < MAX_LINES) {
            let (line, next) = match memchr::memchr2(b'\n', b'\r', text) {
                Some(at) => {
                    let crlf = text[at] == b'\r' && text.get(at + 1) == Some(&b'\n');
                    (&text[..at], text.get(at + 1 + usize::from(crlf)..))
                }
                None => (text, None),
            };
            lines.push(line);
            rest = next.filter(|next| !next.is_empty());
        }
        TicketLines {
            taken: vec![false; lines.len()],
            lines,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns a line that belongs to nothing yet; empty if it does.
    pub(crate) fn free(&self, at: usize) -> &'t [u8] {
        match self.is_free(at) {
            true => self.line(at),
            false => b"",
        }
    }

    /// Returns a line.
    pub(crate) fn line(&self, at: usize) -> &'t [u8] {
        self.lines.get(at).copied().unwrap_or_default()
    }

    pub(crate) fn is_free(&self, at: usize) -> bool {
        self.taken.get(at) == Some(&false)
    }

    /// Marks lines as part of something.
    pub(crate) fn take(&mut self, range: Range<usize>) {
        if let Some(taken) = self.taken.get_mut(range) {
            taken.fill(true);
        }
    }

    /// Returns of each line whether it belongs to something.
    pub(crate) fn taken(&self) -> Vec<bool> {
        self.taken.clone()
    }

    /// Returns a text with the lines that belong to nothing, in their places: others are empty.
    pub(crate) fn free_text(&self) -> Vec<u8> {
        self.text_of(|at| self.is_free(at))
    }

    /// Returns a text with some of the lines, in their places: others are empty.
    pub(crate) fn text_of(&self, wanted: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            if wanted(at) {
                out.extend_from_slice(line);
            }
            out.push(b'\n');
        }
        out
    }

    /// Returns the ranges of lines that belong to nothing and have neither an empty line nor the mark of a block of
    /// code between them.
    pub(crate) fn free_blocks(&self) -> Vec<Range<usize>> {
        let mut blocks = Vec::new();
        let mut from = None;
        for at in 0..=self.len() {
            let line = unquoted(self.free(at)).trim_ascii();
            let solid = !line.is_empty() && !perftables::is_fence(&String::from_utf8_lossy(line));
            match (solid, from) {
                (true, None) => from = Some(at),
                (false, Some(first)) => {
                    blocks.push(first..at);
                    from = None;
                }
                _ => {}
            }
        }
        blocks
    }
}

/// Returns a line without the marks that mailers put before it, and the blank behind them.
pub(crate) fn unquoted(line: &[u8]) -> &[u8] {
    // What is no text behind them stays as it is.
    let text = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let marks = pasted::unquoted(text).map_or(0, |rest| text.len() - rest.len());
    line.get(marks..).unwrap_or_default()
}
