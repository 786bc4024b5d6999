//! Words and fields of an event's text.

use crate::scan;

/// Bytes that end a word.
const SEPARATES: [bool; 256] = {
    let mut table = [false; 256];
    table[b' ' as usize] = true;
    table[b'\t' as usize] = true;
    table[b',' as usize] = true;
    table[b';' as usize] = true;
    table
};

/// The words of a text. Commas and semicolons end a word too.
pub(super) struct Words<'t> {
    text: &'t [u8],
    /// Where the last word ended.
    pub at: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t [u8]) -> Words<'t> {
        Words { text, at: 0 }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<&'t [u8]> {
        let separates = |b: &u8| SEPARATES[*b as usize];
        let rest = self.text.get(self.at..)?;
        let start = rest.iter().position(|b| !separates(b))?;
        let rest = &rest[start..];
        let len = rest.iter().position(separates).unwrap_or(rest.len());
        self.at += start + len;
        Some(&rest[..len])
    }

    /// Reads the next word as a number; a number with something glued to it is none.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u32> {
        scan::number(self.next()?).and_then(|n| u32::try_from(n).ok())
    }

    /// Reads the next word as a hexadecimal number behind `0x`.
    #[inline]
    pub(super) fn hex(&mut self) -> Option<u64> {
        scan::hex(self.next().filter(|word| word.starts_with(b"0x"))?)
    }
}

/// Fields printed as `name=value`.
pub(super) struct Fields<'t>(pub &'t [u8]);

impl<'t> Fields<'t> {
    pub(super) fn get(&self, name: &[u8]) -> Option<&'t [u8]> {
        let mut words = Words::new(self.0);
        while let Some(word) = words.next() {
            let value = word
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(b"="));
            match value {
                // Some print formats pad the value with blanks.
                Some(b"") => return words.next(),
                Some(value) => return Some(value),
                None => {}
            }
        }
        None
    }

    pub(super) fn number(&self, name: &[u8]) -> Option<u64> {
        scan::number(self.get(name)?)
    }

    pub(super) fn hex(&self, name: &[u8]) -> Option<u64> {
        scan::hex(self.get(name)?)
    }

    /// Returns whether no second base follows, as in `ecx=0x1b (27)` of the kernel's option `fields`.
    pub(super) fn in_one_base(&self, name: &[u8]) -> bool {
        self.get(name).is_some_and(|v| !v.starts_with(b"0x"))
    }
}
