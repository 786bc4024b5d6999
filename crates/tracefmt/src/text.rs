//! Text that grows at its end, a line an event.

use std::fmt;

/// The first bytes of a text that is not empty: all usual lines fit.
const FIRST: usize = 512;

/// Text that is appended to.
///
/// Behind the text there are bytes already, so that a piece can be written as a block of known size, too long even, and
/// the next one over what is too much of it. A vector would have to fill such blocks before they are written, and cut
/// them off after.
#[derive(Debug, Clone, Default)]
pub struct FormatText {
    /// The text, and what may be written over.
    bytes: Vec<u8>,
    len: usize,
}

impl FormatText {
    /// Returns an empty text.
    pub fn new() -> FormatText {
        FormatText::default()
    }

    /// Returns an empty text that has room for so many bytes.
    pub fn with_capacity(bytes: usize) -> FormatText {
        FormatText {
            bytes: vec![0; bytes],
            len: 0,
        }
    }

    /// Returns the text, which may be no UTF-8.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Returns how long the text is, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes all text away. The room stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Cuts the text to a length in bytes; does nothing where it is no longer.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends a byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.block(&[byte], 1);
    }

    /// Appends bytes.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let room = self.room(bytes.len());
        if let Some(place) = room.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.len += bytes.len();
    }

    /// Appends so many times a byte.
    pub fn fill(&mut self, byte: u8, count: usize) {
        if let Some(place) = self.room(count).get_mut(..count) {
            place.fill(byte);
        }
        self.len += count;
    }

    /// Appends the first `len` of `N` bytes.
    #[inline(always)]
    pub fn block<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        if let Some(place) = self.room(N).first_chunk_mut::<N>() {
            *place = *bytes;
        }
        self.len += len.min(N);
    }

    /// Returns the bytes behind the text, `least` or more, to be written over. They hold anything.
    #[inline(always)]
    pub fn room(&mut self, least: usize) -> &mut [u8] {
        if self.bytes.len().saturating_sub(self.len) < least {
            self.grow(least);
        }
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    /// Makes the first `count` bytes behind the text, which were written into the room there, part of it.
    #[inline(always)]
    pub fn advance(&mut self, count: usize) {
        self.len = self.bytes.len().min(self.len.saturating_add(count));
    }

    #[cold]
    fn grow(&mut self, least: usize) {
        let needed = self.len.saturating_add(least);
        let size = needed.max(2 * self.bytes.len()).max(FIRST);
        self.bytes.resize(size, 0);
    }
}

impl fmt::Write for FormatText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Whether text consists of printable ASCII characters, line feeds and tabs, so that it steers no terminal and nothing
/// in it has to be looked at again.
pub fn is_plain(bytes: &[u8]) -> bool {
    // One look at all bytes, without a branch for each.
    let plain = |b: u8| (b.wrapping_sub(0x20) < 0x5f) | (b == b'\n') | (b == b'\t');
    bytes.iter().fold(true, |all, &b| all & plain(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_all_kinds_follow_each_other() {
        let mut text = FormatText::new();
        assert!(text.is_empty() && text.as_bytes().is_empty());
        text.push(b'a');
        text.block(b"bcd", 2);
        text.block(b"d", 7);
        text.extend_from_slice(b"");
        text.extend_from_slice(b"ef");
        text.fill(b'.', 3);
        let room = text.room(2);
        assert!(room.len() >= 2);
        room[..2].copy_from_slice(b"gh");
        text.advance(1);
        assert_eq!(text.as_bytes(), b"abcdef...g");
        text.truncate(100);
        text.truncate(4);
        assert_eq!((text.as_bytes(), text.len()), (&b"abcd"[..], 4));
        text.clear();
        text.push(b'x');
        assert_eq!(text.as_bytes(), b"x");
    }

    #[test]
    fn a_text_grows_to_any_length() {
        let mut text = FormatText::with_capacity(3);
        let mut expected = Vec::new();
        for n in 0..2000 {
            let piece = b"0123456789".repeat(8)[..n % 77].to_vec();
            text.extend_from_slice(&piece);
            text.block(&[b'-'; 40], n % 5);
            expected.extend_from_slice(&piece);
            expected.extend(std::iter::repeat_n(b'-', n % 5));
        }
        text.advance(usize::MAX / 2);
        assert!(text.as_bytes().starts_with(&expected));
        let more = text.len();
        text.fill(b'z', 5000);
        assert_eq!(text.as_bytes()[more..], [b'z'; 5000]);
    }

    #[test]
    fn printable_ascii_in_lines_is_plain() {
        let plain: Vec<u8> = (0..=255).filter(|b| is_plain(&[*b])).collect();
        assert_eq!(plain[..2], *b"\t\n");
        assert_eq!(plain[2..], (0x20..=0x7e).collect::<Vec<u8>>());
        for at in 0..200 {
            let mut text = vec![b'x'; 200];
            assert!(is_plain(&text));
            text[at] = 0x7f;
            assert!(!is_plain(&text));
        }
    }
}
