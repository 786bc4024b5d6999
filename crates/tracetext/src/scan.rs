//! Small steps over bytes: tokens, numbers, white space.

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

/// Returns whether all bytes are decimal digits, and there is one.
#[inline]
pub(crate) fn all_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// Reads a decimal number that is all of `bytes`.
#[inline]
pub(crate) fn decimal(bytes: &[u8]) -> Option<u64> {
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

/// Reads a thread or process id that is all of `bytes`; perf prints -1 where it knows none.
#[inline]
pub(crate) fn id(bytes: &[u8]) -> Option<i32> {
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
        if let Some(digit) = (b as u8 as char).to_digit(16) {
            table[b] = digit as u8;
        }
        b += 1;
    }
    table
};

/// Reads a hexadecimal number at the start of `bytes`. Returns it with the count of its digits.
#[inline]
pub(crate) fn hex_prefix(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut n = 0u64;
    let mut len = 0;
    for &b in bytes {
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

/// Returns how many hexadecimal digits `bytes` starts with.
#[inline]
pub(crate) fn hex_digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| HEX[**b as usize] < 16).count()
}

/// Returns whether a number may end before these bytes: what follows is no letter, digit or underscore.
#[inline]
pub(crate) fn ends_number(rest: &[u8]) -> bool {
    match rest.first() {
        None | Some(b' ' | b',') => true,
        Some(b) => !b.is_ascii_alphanumeric() && *b != b'_',
    }
}

/// Reads a hexadecimal number, with or without `0x`, at the start of `bytes`.
#[inline]
pub(crate) fn hex(bytes: &[u8]) -> Option<u64> {
    let digits = bytes
        .strip_prefix(b"0x")
        .or_else(|| bytes.strip_prefix(b"0X"))
        .unwrap_or(bytes);
    let (n, len) = hex_prefix(digits)?;
    ends_number(&digits[len..]).then_some(n)
}

/// Reads a number at the start of `bytes`: hexadecimal behind `0x`, decimal otherwise.
#[inline]
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
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

/// Returns whether `needle` occurs in `bytes`.
pub(crate) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(bytes, needle).is_some()
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

    #[test]
    fn ids_may_be_minus_one_and_no_more_than_an_int() {
        assert_eq!(id(b"3743"), Some(3743));
        assert_eq!(id(b"-1"), Some(-1));
        assert_eq!(id(b"99999999999"), None);
        assert_eq!(id(b"4294967295"), None);
        assert_eq!(id(b""), None);
        assert_eq!(id(b"1x"), None);
    }
}
