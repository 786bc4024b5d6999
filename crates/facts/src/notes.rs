//! What was not understood, in bounded words.

use std::ops::RangeInclusive;

/// Most single notes: what follows is counted.
const MAX_NOTES: usize = 16;

/// Notes about a text, with line numbers.
#[derive(Debug, Default)]
pub(crate) struct FactsNotes {
    list: Vec<String>,
    more: usize,
    /// First and last of the lines that were not understood and follow each other.
    lines: Option<(usize, usize)>,
    /// All of those before, first and last.
    unknown: Vec<(usize, usize)>,
}

impl FactsNotes {
    /// Notes something about a line.
    pub(crate) fn add(&mut self, line: usize, what: impl AsRef<str>) {
        self.flush();
        self.push(format!("line {line}: {}", what.as_ref()));
    }

    /// Notes a line that is nothing known.
    pub(crate) fn unknown(&mut self, line: usize) {
        match &mut self.lines {
            Some((_, last)) if line == *last || line == *last + 1 => *last = line,
            _ => {
                self.flush();
                self.lines = Some((line, line));
            }
        }
    }

    /// Takes back that a line is nothing known, if it was the last one noted.
    pub(crate) fn is_known(&mut self, line: usize) {
        match &mut self.lines {
            Some((first, last)) if *last == line && first == last => self.lines = None,
            Some((_, last)) if *last == line => *last -= 1,
            _ => {}
        }
    }

    /// Returns all notes, and the lines that are nothing known.
    pub(crate) fn finish(mut self) -> (Vec<String>, Vec<RangeInclusive<usize>>) {
        self.flush();
        let unknown = self.unknown.iter().map(|(first, last)| *first..=*last);
        let unknown = unknown.collect();
        if self.more > 0 {
            self.list.push(format!("{} more notes", self.more));
        }
        (self.list, unknown)
    }

    fn flush(&mut self) {
        self.unknown.extend(self.lines);
        match self.lines.take() {
            Some((first, last)) if first == last => {
                self.push(format!("line {first}: not understood"));
            }
            Some((first, last)) => self.push(format!("lines {first} to {last}: not understood")),
            None => {}
        }
    }

    fn push(&mut self, note: String) {
        if self.list.len() < MAX_NOTES {
            self.list.push(note);
        } else {
            self.more += 1;
        }
    }
}
