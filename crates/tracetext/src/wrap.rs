//! Lines broken in two by terminals, mail programs and page layouts.
//!
//! A line that is no event's may be the rest of the one before. Where a terminal broke a line, in the middle
//! of a word, the parts are put together as they are; where a program broke it between words, with a blank.
//! Which it was shows in what is read: with the wrong choice numbers run into words.

use std::cmp::Ordering;

use event::{Data, Kind, TextReader, TextReading};

use crate::event_like::is_task;
use crate::scan;

/// A shorter line was not broken for its length.
const MIN_WIDTH: usize = 40;

/// The event before: what it is, and what was read of it.
#[derive(Debug)]
pub(crate) struct PendingEvent<'l> {
    pub kind: Kind,
    /// The kind of one that is read whole, and not in parts.
    pub whole: Kind,
    pub reading: TextReading,
    /// The line, up to the break.
    pub line: &'l [u8],
    /// Where in it what the event says begins.
    pub args: usize,
    /// Whether the line behind looks like something else that follows events, a call chain's.
    pub foreign: bool,
    /// Whether it is indented. Terminals do not indent what they wrap, but may break before a blank.
    pub indented: bool,
    /// Whether lines before it were broken at the same length.
    pub hard: bool,
}

/// Broken lines of one length in a row from which on the next one of it was broken there too, in the middle of a word.
const SAME: u32 = 2;

/// Where the lines of a text are broken: a program that breaks between words leaves lines of all lengths.
#[derive(Debug, Default)]
pub(crate) struct BrokenWidth {
    width: usize,
    lines: u32,
}

impl BrokenWidth {
    /// Notes that a line of this length was broken.
    pub(crate) fn note(&mut self, width: usize) {
        self.lines = match self.width == width {
            true => self.lines.saturating_add(1),
            false => 1,
        };
        self.width = width;
    }

    /// Whether a line of this length is broken wherever it was full.
    pub(crate) fn is_hard(&self, width: usize) -> bool {
        self.width == width && self.lines >= SAME
    }
}

/// How to put the rest behind a broken line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glue {
    None,
    Blank,
}

impl Glue {
    pub(crate) fn join(self, line: &[u8], rest: &[u8]) -> Vec<u8> {
        let mut joined = Vec::with_capacity(line.len() + 1 + rest.len());
        joined.extend_from_slice(line);
        if self == Glue::Blank {
            joined.push(b' ');
        }
        joined.extend_from_slice(rest);
        joined
    }
}

impl PendingEvent<'_> {
    /// Returns how `rest`, which is no event's line, continues this one; `None` when it does not.
    pub(crate) fn continued_by(&self, rest: &[u8], says: &mut TextReader) -> Option<Glue> {
        let args = self.line.get(self.args..).unwrap_or_default();
        // The column of another event's task, unless a terminal broke what this one says.
        if is_task(rest) && !self.at_width() {
            return None;
        }
        if self.kind == Kind::Other {
            let bare = scan::trim(args).is_empty();
            let long = self.line.len() >= MIN_WIDTH;
            let fits = !self.foreign
                && ((bare && !rest.is_empty())
                    || (long && (says_more(args, rest) || self.at_width()))
                    || self.needs(args, rest));
            return fits.then(|| self.plain_glue(args));
        }
        if !self.reading.complete {
            let mut read = |glue: Glue| says.read(self.kind, &glue.join(args, rest));
            let together = read(Glue::None);
            let apart = read(Glue::Blank);
            // A number that was broken reads well both ways, but is right only in one piece.
            let word_goes_on = ends_in_word(args) && !self.indented;
            let (best, glue) = match rank(&together).cmp(&rank(&apart)) {
                Ordering::Equal if word_goes_on => (together, Glue::None),
                Ordering::Greater => (together, Glue::None),
                _ => (apart, Glue::Blank),
            };
            return (rank(&best) > rank(&self.reading)).then_some(glue);
        }
        if self.line.len() < MIN_WIDTH {
            return None;
        }
        let (before, word) = (last_word(args), first_word(rest));
        let behind = first_word(&rest[word.len()..]);
        let joined = [before, word].concat();
        let tight = !self.indented && !args.last().copied().is_some_and(scan::is_blank);
        // `0xffffffff81` and `77a62b info1 ...`, `= 0x2cdea` and `76f99`. Of a whole address and another the
        // joined number is too long: that is a call chain's line.
        let digits = word.iter().all(|b| b.is_ascii_hexdigit() || *b == b',')
            // `0` and `x0000000006080041`.
            || before == b"0" && scan::hex(&joined).is_some();
        let fits = behind.is_empty() || is_known(behind) || (self.at_width() && !self.foreign);
        let number = joined.starts_with(b"0x") || self.at_width();
        if digits && fits && number && scan::hex(&joined).is_some() {
            return tight.then_some(Glue::None);
        }
        if is_known(word) || (is_known(before) && word.first().is_some_and(u8::is_ascii_digit)) {
            return Some(Glue::Blank);
        }
        // `intr_in` and `fo 0x00000000`.
        (is_known(&joined) && tight && !self.foreign).then_some(Glue::None)
    }

    /// Returns whether the event says nothing that can be read without `rest`, and does with it.
    fn needs(&self, args: &[u8], rest: &[u8]) -> bool {
        let says = |text: &[u8]| TextReader::read_whole(self.whole, text) != Data::Other;
        self.whole != Kind::Other && !says(args) && says(&self.plain_glue(args).join(args, rest))
    }

    /// Returns whether the line ends where terminals end.
    ///
    /// Programs that quote break between words.
    fn at_width(&self) -> bool {
        let quoted = self.line.first() == Some(&b'>');
        self.hard || !quoted && matches!(self.line.len(), 80 | 100 | 120 | 132 | 160 | 200)
    }

    fn plain_glue(&self, args: &[u8]) -> Glue {
        // A terminal breaks at its width, and then a word goes on.
        let blank = self.indented || args.last().copied().is_some_and(scan::is_blank);
        if self.at_width() && !blank {
            Glue::None
        } else {
            Glue::Blank
        }
    }
}

/// Orders readings by how much they say.
fn rank(reading: &TextReading) -> (bool, u8) {
    (reading.complete, reading.found)
}

/// Words that follow the ones read in KVM's events.
const KNOWN_WORDS: [&[u8]; 12] = [
    b"info",
    b"info1",
    b"info2",
    b"intr_info",
    b"error_code",
    b"requests",
    b"(...)",
    b"(#GP)",
    b"isa=",
    b"val",
    b"[immediate",
    b"exception=",
];

fn first_word(text: &[u8]) -> &[u8] {
    let start = scan::skip_blanks(text, 0);
    &text[start..scan::token_end(text, start)]
}

fn last_word(text: &[u8]) -> &[u8] {
    let end = scan::back_over_blanks(text, text.len());
    &text[scan::token_start(text, end)..end]
}

fn is_known(word: &[u8]) -> bool {
    KNOWN_WORDS.iter().any(|known| word.starts_with(known))
}

fn ends_in_word(text: &[u8]) -> bool {
    text.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns whether this reads like more of what an event says, not like a sentence.
fn says_more(args: &[u8], rest: &[u8]) -> bool {
    let word = first_word(rest);
    let number = word.first().is_some_and(u8::is_ascii_digit) && word.len() <= 24;
    let open = matches!(scan::trim(args).last(), Some(b'=' | b',' | b'>' | b'('));
    number || open || rest.contains(&b'=') || scan::contains(rest, b"0x") || word.starts_with(b"[")
}
