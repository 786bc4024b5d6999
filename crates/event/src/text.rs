//! Reads what events print: numbers, words, and fields as `name=value`.
//!
//! Words are searched, not counted off, so that what versions of the kernel and of the tools add or drop between them
//! does not matter.

/// Returns whether all bytes are decimal digits, and there is one.
#[inline]
pub fn all_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// Reads a decimal number that is all of `bytes`.
#[inline]
pub fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 19 {
        return None;
    }
    // Nineteen digits always fit.
    let mut n = 0u64;
    for &b in bytes {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n = n * 10 + u64::from(digit);
    }
    Some(n)
}

/// Returns a number of eight decimal digits that stand as they would in memory, the first one lowest.
#[inline]
pub fn eight_digits(digits: u64) -> Option<u32> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let values = digits ^ ZEROS;
    // A value above 9 has a high bit, or gets one.
    if (values | values.wrapping_add(0x7676_7676_7676_7676)) & HIGH != 0 {
        return None;
    }
    let pairs = (values.wrapping_mul(10).wrapping_add(values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let eight = (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff;
    u32::try_from(eight).ok()
}

/// Returns how many of eight bytes, the first one lowest, are hexadecimal digits before the first that is none, and
/// the number that those are.
#[inline]
fn hex_digits_of(bytes: u64) -> (usize, u64) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    // Adding to seven bits sets the eighth where a byte is as large as asked; no byte overflows into the next.
    let from = |bytes: u64, least: u64| (bytes & !HIGH).wrapping_add((0x80 - least) * ONES);
    let digits = from(bytes, 0x30) & !from(bytes, 0x3a);
    let letters = bytes | (0x20 * ONES);
    let letters = from(letters, 0x61) & !from(letters, 0x67) & HIGH;
    let others = !((digits & HIGH) | letters) & HIGH | bytes & HIGH;
    let count = others.trailing_zeros() / 8;
    if count == 0 {
        return (0, 0);
    }
    let nibbles = (bytes & (0x0f * ONES)).wrapping_add((letters >> 7).wrapping_mul(9));
    // Zeros go before them.
    let nibbles = nibbles << ((8 - count) * 8);
    let pairs = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs << 8 | pairs >> 16) & 0x0000_ffff_0000_ffff;
    (count as usize, (fours << 16 | fours >> 32) & 0xffff_ffff)
}

/// Reads a thread or process id that is all of `bytes`; perf prints -1 where it knows none.
#[inline]
pub fn id(bytes: &[u8]) -> Option<i32> {
    let (sign, digits) = match bytes.split_first() {
        Some((b'-', rest)) => (-1, rest),
        _ => (1, bytes),
    };
    if digits.len() > 10 {
        return None;
    }
    i32::try_from(decimal(digits)?).ok().map(|n| n * sign)
}

/// Values of hexadecimal digits; 16 for all other bytes.
const HEX: [u8; 256] = {
    let mut table = [16; 256];
    let mut b = 0;
    while b < 256 {
        // Below 256 and below 16: a const fn has no other conversion.
        #[allow(clippy::cast_possible_truncation)]
        if let Some(digit) = (b as u8 as char).to_digit(16) {
            table[b] = digit as u8;
        }
        b += 1;
    }
    table
};

/// Reads a hexadecimal number at the start of `bytes`. Returns it with the count of its digits.
#[inline]
pub fn hex_prefix(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut n = 0u64;
    let mut len = 0;
    while let Some(chunk) = bytes.get(len..).and_then(|rest| rest.first_chunk::<8>()) {
        let (count, number) = hex_digits_of(u64::from_le_bytes(*chunk));
        n = n << (4 * count) | number;
        len += count;
        if count < 8 {
            break;
        }
    }
    for &b in bytes.get(len..).unwrap_or_default() {
        let digit = HEX[b as usize];
        if digit == 16 {
            break;
        }
        n = n << 4 | u64::from(digit);
        len += 1;
    }
    // Of more digits than fit the first have to be zeros.
    let fits = len <= 16 || bytes[..len - 16].iter().all(|b| *b == b'0');
    (len > 0 && fits).then_some((n, len))
}

/// Reads a hexadecimal number and drops it from the text.
#[inline]
pub(crate) fn take_hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let (number, len) = hex_prefix(text)?;
    Some((number, text.get(len..)?))
}

/// Returns how many hexadecimal digits `bytes` starts with.
#[inline]
pub fn hex_digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| HEX[**b as usize] < 16).count()
}

/// Returns whether a number may end before these bytes: what follows is no letter, digit or underscore.
#[inline]
pub fn ends_number(rest: &[u8]) -> bool {
    match rest.first() {
        None | Some(b' ' | b',') => true,
        Some(b) => !b.is_ascii_alphanumeric() && *b != b'_',
    }
}

/// Reads a hexadecimal number, with or without `0x`, at the start of `bytes`.
#[inline]
pub fn hex(bytes: &[u8]) -> Option<u64> {
    let digits = bytes
        .strip_prefix(b"0x")
        .or_else(|| bytes.strip_prefix(b"0X"))
        .unwrap_or(bytes);
    let (n, len) = hex_prefix(digits)?;
    ends_number(&digits[len..]).then_some(n)
}

/// Reads a number at the start of `bytes`: hexadecimal behind `0x`, decimal otherwise.
#[inline]
pub fn number(bytes: &[u8]) -> Option<u64> {
    if bytes.starts_with(b"0x") || bytes.starts_with(b"0X") {
        return hex(bytes);
    }
    let (negative, bytes) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, bytes),
    };
    let len = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at(len);
    let n = decimal(digits)?;
    ends_number(rest).then_some(if negative { n.wrapping_neg() } else { n })
}

/// Drops what trace-cmd's plugin and libtraceevent put before the fields they could not print.
pub(crate) fn without_complaints(text: &[u8]) -> &[u8] {
    let start = match text.first() {
        // `<CANT FIND FIELD exit_reason>TRAP: ...`, `CAN'T FIND FIELD "vcpu_id"<CANT FIND FIELD rip>PC: ...`.
        Some(b'<' | b'C') => {
            memchr::memrchr(b'>', &text[..text.len().min(160)]).map_or(0, |at| at + 1)
        }
        Some(b'[') if text.starts_with(b"[FAILED TO PARSE]") => 17,
        _ => 0,
    };
    &text[start..]
}

/// Returns where a short word is first found: of texts of one line, whose words are short, preparing a search takes
/// longer than the search.
#[inline]
pub fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    let (first, others) = word.split_first()?;
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        at += memchr::memchr(*first, rest)? + 1;
        if text.get(at..)?.starts_with(others) {
            return Some(at - 1);
        }
    }
}

/// Returns the text behind the first occurrence of `name`.
#[inline]
pub(crate) fn behind<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    text.get(find(text, name)? + name.len()..)
}

/// Returns what stands up to the next blank.
pub(crate) fn word(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|b| matches!(b, b' ' | b'\t'));
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// Returns the number of a field that is printed as `name=number`.
pub(crate) fn field_number(text: &[u8], name: &str) -> Option<u64> {
    let mut rest = text;
    loop {
        let at = find(rest, name.as_bytes())?;
        let (before, found) = rest.split_at(at);
        let after = found.get(name.len()..)?;
        let begins = before
            .last()
            .is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_');
        if begins && let Some(value) = after.strip_prefix(b"=") {
            return number(word(value));
        }
        rest = after;
    }
}

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
pub(crate) struct TextWords<'t> {
    text: &'t [u8],
    /// Where the last word ended.
    pub at: usize,
}

impl<'t> TextWords<'t> {
    pub(crate) fn new(text: &'t [u8]) -> TextWords<'t> {
        TextWords { text, at: 0 }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'t [u8]> {
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
    pub(crate) fn number(&mut self) -> Option<u32> {
        number(self.next()?).and_then(|n| u32::try_from(n).ok())
    }

    /// Reads the next word as a hexadecimal number behind `0x`.
    #[inline]
    pub(crate) fn hex(&mut self) -> Option<u64> {
        hex(self.next().filter(|word| word.starts_with(b"0x"))?)
    }
}

/// Fields printed as `name=value`.
pub(crate) struct TextFields<'t>(pub &'t [u8]);

impl<'t> TextFields<'t> {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&'t [u8]> {
        let mut words = TextWords::new(self.0);
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

    pub(crate) fn number(&self, name: &[u8]) -> Option<u64> {
        number(self.get(name)?)
    }

    pub(crate) fn hex(&self, name: &[u8]) -> Option<u64> {
        hex(self.get(name)?)
    }

    /// Returns whether no second base follows, as in `ecx=0x1b (27)` of the kernel's option `fields`.
    pub(crate) fn in_one_base(&self, name: &[u8]) -> bool {
        self.get(name).is_some_and(|v| !v.starts_with(b"0x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_only_when_it_ends_as_one() {
        assert_eq!(number(b"12 "), Some(12));
        assert_eq!(number(b"12,"), Some(12));
        assert_eq!(number(b"0x1f)"), Some(0x1f));
        assert_eq!(number(b"12reason"), None);
        assert_eq!(number(b"0x12info1"), None);
        assert_eq!(number(b"-1 "), Some(u64::MAX));
        assert_eq!(number(b"99999999999999999999999"), None);
        assert_eq!(hex(b"6e0 ="), Some(0x6e0));
        assert_eq!(hex(b"11112222333344445"), None);
        assert_eq!(hex(b"0x0001111222233334444"), Some(0x1111_2222_3333_4444));
    }

    #[test]
    fn numbers_are_read_alike_at_once_and_digit_by_digit() {
        let one_by_one = |bytes: &[u8]| {
            let digits: Vec<u64> = bytes
                .iter()
                .map_while(|b| char::from(*b).to_digit(16).map(u64::from))
                .collect();
            let extra = digits.len().saturating_sub(16);
            let fits = digits.iter().take(extra).all(|digit| *digit == 0);
            let number = digits.iter().fold(0u64, |n, digit| n << 4 | digit);
            (!digits.is_empty() && fits).then_some((number, digits.len()))
        };
        for byte in 0..=255 {
            for at in 0..20 {
                let mut bytes = *b"0a1B2c3D4e5F6789fe10";
                bytes[at] = byte;
                for end in [at, at + 1, 8, 16, 20] {
                    let bytes = &bytes[..end];
                    assert_eq!(hex_prefix(bytes), one_by_one(bytes), "{bytes:?}");
                    let bytes = [&b"0000"[..], bytes].concat();
                    assert_eq!(hex_prefix(&bytes), one_by_one(&bytes), "{bytes:?}");
                }
                if let Some(bytes) = bytes.first_chunk::<8>().filter(|_| at < 8) {
                    let mut bytes = bytes.map(|b| if b.is_ascii_digit() { b } else { b'7' });
                    bytes[at] = byte;
                    let read = eight_digits(u64::from_le_bytes(bytes)).map(u64::from);
                    assert_eq!(read, decimal(&bytes), "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn ids_may_be_minus_one_and_no_more_than_an_int() {
        assert_eq!(id(b"3743"), Some(3743));
        assert_eq!(id(b"-1"), Some(-1));
        assert_eq!(id(b"99999999999"), None);
        assert_eq!(id(b"4294967295"), None);
        assert_eq!(id(b""), None);
        assert_eq!(id(b"1x"), None);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = b"old_ns=7 ns=12 waited=0x1";
        assert_eq!(field_number(text, "ns"), Some(12));
        assert_eq!(field_number(text, "waited"), Some(1));
        assert_eq!(field_number(text, "wait"), None);
    }
}
