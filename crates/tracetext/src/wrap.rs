//! Lines broken in two by terminals, mail programs and page layouts.
//!
//! A line that is no event's may be the rest of the one before. Where a terminal broke a line, in the middle
//! of a word, the parts are put together as they are; where a program broke it between words, with a blank.
//! Which it was shows in what is read: with the wrong choice numbers run into words.

use event::Kind;

use crate::kvm::{Reader, Reading};
use crate::scan;

/// A shorter line was not broken for its length.
const MIN_WIDTH: usize = 40;

/// The event before: what it is, and what was read of it.
#[derive(Debug)]
pub(crate) struct Begun<'l> {
    pub kind: Kind,
    pub reading: Reading,
    /// The line, up to the break.
    pub line: &'l [u8],
    /// Where in it what the event says begins.
    pub args: usize,
}

/// How to put the rest behind a broken line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glue {
    None,
    Blank,
}

impl Glue {
    pub fn join(self, line: &[u8], rest: &[u8]) -> Vec<u8> {
        let mut joined = Vec::with_capacity(line.len() + 1 + rest.len());
        joined.extend_from_slice(line);
        if self == Glue::Blank {
            joined.push(b' ');
        }
        joined.extend_from_slice(rest);
        joined
    }
}

impl Begun<'_> {
    /// Returns how `rest`, which is no event's line, continues this one; `None` when it does not.
    ///
    /// `foreign` says that `rest` looks like something else that follows events, a call chain's line.
    pub fn continued_by(&self, rest: &[u8], foreign: bool, kvm: &mut Reader) -> Option<Glue> {
        let args = self.line.get(self.args..).unwrap_or_default();
        if self.kind == Kind::Other {
            let bare = scan::trim(args).is_empty();
            let long = self.line.len() >= MIN_WIDTH;
            let fits = !foreign && ((bare && !rest.is_empty()) || (long && says_more(args, rest)));
            return fits.then(|| self.plain_glue(args, rest));
        }
        if !self.reading.complete {
            let mut read = |glue: Glue| kvm.read(self.kind, &glue.join(args, rest));
            let together = read(Glue::None);
            let apart = read(Glue::Blank);
            // A number that was broken reads well both ways, but is right only in one piece.
            let (best, glue) = if rank(&together) >= rank(&apart) {
                (together, Glue::None)
            } else {
                (apart, Glue::Blank)
            };
            return (rank(&best) > rank(&self.reading)).then_some(glue);
        }
        if foreign || self.line.len() < MIN_WIDTH {
            return None;
        }
        let word = first_word(rest);
        if KNOWN_WORDS.iter().any(|w| word.starts_with(w)) {
            return Some(self.plain_glue(args, rest));
        }
        // The last number may go on, where nothing else can follow it: `= 0x2cdea` and `76f99`.
        let alone = scan::trim(rest).len() == word.len();
        let number = !word.is_empty() && word.iter().all(u8::is_ascii_hexdigit);
        let fits = number && ends_in_word(args) && (alone || self.at_width());
        let together = fits && kvm.read(self.kind, &Glue::None.join(args, rest)).complete;
        together.then_some(Glue::None)
    }

    /// Returns whether the line ends where terminals end.
    fn at_width(&self) -> bool {
        matches!(self.line.len(), 80 | 100 | 120 | 132 | 160 | 200)
    }

    fn plain_glue(&self, args: &[u8], rest: &[u8]) -> Glue {
        // A terminal breaks at its width, and then a word goes on.
        if self.at_width()
            && ends_in_word(args)
            && !rest.first().is_some_and(|b| scan::is_blank(*b))
        {
            Glue::None
        } else {
            Glue::Blank
        }
    }
}

/// Orders readings by how much they say.
fn rank(reading: &Reading) -> (bool, u8) {
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
