//! Small steps over bytes: tokens and white space; numbers are read as those of events are.

pub(crate) use event::text::{all_digits, decimal, hex, hex_digits, id, number};

/// Returns whether a byte separates columns.
#[inline]
pub(crate) fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

/// Eight spaces, for passing over the padding of columns at a step.
const SPACES: u64 = 0x2020_2020_2020_2020;

/// Returns where the text before `end` ends when white space behind it is dropped.
#[inline]
pub(crate) fn back_over_blanks(bytes: &[u8], end: usize) -> usize {
    let mut end = end.min(bytes.len());
    while let Some(chunk) = bytes[..end].last_chunk::<8>() {
        let others = u64::from_le_bytes(*chunk) ^ SPACES;
        end -= others.leading_zeros() as usize / 8;
        if others != 0 {
            break;
        }
    }
    while end > 0 && is_blank(bytes[end - 1]) {
        end -= 1;
    }
    end
}

/// Returns where the token that ends at `end` starts.
#[inline]
pub(crate) fn token_start(bytes: &[u8], end: usize) -> usize {
    let token = bytes[..end].iter().rev().take_while(|b| !is_blank(**b));
    end - token.count()
}

/// Returns the first position from `at` that is no white space.
#[inline]
pub(crate) fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    let mut at = at.min(bytes.len());
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let others = u64::from_le_bytes(*chunk) ^ SPACES;
        at += others.trailing_zeros() as usize / 8;
        if others != 0 {
            break;
        }
    }
    while bytes.get(at).copied().is_some_and(is_blank) {
        at += 1;
    }
    at
}

/// Returns where the token that starts at `at` ends.
#[inline]
pub(crate) fn token_end(bytes: &[u8], at: usize) -> usize {
    let token = bytes.get(at..).unwrap_or_default().iter();
    at + token.take_while(|b| !is_blank(**b)).count()
}

/// Drops white space at both ends, line ends included.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

/// Returns whether `needle` occurs in `bytes`.
pub(crate) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(bytes, needle).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_passed_over_in_both_directions() {
        for before in 0..20 {
            for tabs in 0..3 {
                let blanks = " ".repeat(before) + &"\t ".repeat(tabs);
                let text = format!("{blanks}x{blanks}");
                let (bytes, len) = (text.as_bytes(), blanks.len());
                assert_eq!(skip_blanks(bytes, 0), len);
                assert_eq!(back_over_blanks(bytes, text.len()), len + 1);
                assert_eq!(skip_blanks(blanks.as_bytes(), 0), len);
                assert_eq!(back_over_blanks(blanks.as_bytes(), len), 0);
            }
        }
        assert_eq!(token_start(b"ab cd", 5), 3);
        assert_eq!(token_start(b"abcd", 4), 0);
        assert_eq!(token_end(b"ab cd", 0), 2);
        assert_eq!(token_end(b"ab", 9), 9);
    }
}
