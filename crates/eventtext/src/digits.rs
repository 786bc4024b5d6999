//! Numbers as text, at a fixed width and without a formatter in between: what a line per event costs.

use event::index_of;
use tracefmt::FormatText;

/// The numbers 00 to 99 as two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The numbers 000 to 999 as three digits each, and a colon behind.
pub(crate) const THREES: [[u8; 4]; 1000] = {
    let mut threes = [*b"000:"; 1000];
    let mut n = 0;
    while n < 1000 {
        threes[n][0] += (n / 100) as u8;
        threes[n][1] += (n / 10 % 10) as u8;
        threes[n][2] += (n % 10) as u8;
        n += 1;
    }
    threes
};

/// All bytes as two hexadecimal digits each.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut n = 0;
    while n < 256 {
        pairs[n] = [digits[n >> 4], digits[n & 15]];
        n += 1;
    }
    pairs
};

/// Returns two digits of a number below 100.
#[inline(always)]
fn pair(number: u32) -> [u8; 2] {
    PAIRS[(number % 100) as usize]
}

/// Returns the six digits of a number below a million.
#[inline(always)]
pub(crate) fn six(number: u32) -> [u8; 6] {
    let [a, b] = pair(number / 10_000);
    let [c, d] = pair(number / 100);
    let [e, f] = pair(number);
    [a, b, c, d, e, f]
}

/// Returns the three digits of a number below a thousand.
#[inline]
pub(crate) fn three(number: u32) -> [u8; 3] {
    let [a, b, c, _] = THREES[(number % 1000) as usize];
    [a, b, c]
}

/// Returns the three digits of a number below a thousand with a colon and a space, and more of these to make it eight
/// bytes.
#[inline(always)]
pub(crate) fn three_and_colon(number: u32) -> [u8; 8] {
    let [a, b, c, colon] = THREES[(number % 1000) as usize];
    [a, b, c, colon, b' ', b' ', b' ', b' ']
}

/// Returns the nine digits of a number below a milliard.
pub(crate) fn nine(number: u32) -> [u8; 9] {
    let [a, b, c, d, e, f] = six(number / 1000);
    let [g, h, i] = three(number % 1000);
    [a, b, c, d, e, f, g, h, i]
}

/// Appends a number, filled with spaces from the left up to `width`.
pub(crate) fn decimal(out: &mut FormatText, mut number: u64, width: usize) {
    let mut digits = [b' '; 20];
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&pair((number % 100) as u32));
        number /= 100;
    }
    let last = pair(number as u32);
    at -= 1;
    digits[at] = last[1];
    if number >= 10 {
        at -= 1;
        digits[at] = last[0];
    }
    let filled = digits.len() - width.min(digits.len());
    out.extend_from_slice(&digits[at.min(filled)..]);
}

/// Appends a signed number, filled with spaces from the left up to `width`.
pub(crate) fn signed(out: &mut FormatText, number: i64, width: usize) {
    if number >= 0 {
        return decimal(out, number.unsigned_abs(), width);
    }
    let magnitude = number.unsigned_abs();
    let digits = index_of(magnitude.ilog10()) + 1;
    out.fill(b' ', width.saturating_sub(digits + 1));
    out.push(b'-');
    decimal(out, magnitude, 0);
}

/// Returns a number in hexadecimal digits, filled with spaces from the left up to 16 (`%16lx`).
#[inline]
pub(crate) fn hex16(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    for (place, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        place.copy_from_slice(&HEX[usize::from(byte)]);
    }
    let blank = (number | 1).leading_zeros() as usize / 4;
    if blank > 0 {
        digits[..blank].fill(b' ');
    }
    digits
}

/// Appends a number in as many hexadecimal digits as it needs.
pub(crate) fn hex(out: &mut FormatText, number: u64) {
    let blank = (number | 1).leading_zeros() as usize / 4;
    out.extend_from_slice(&hex16(number)[blank..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut FormatText)) -> String {
        let mut out = FormatText::new();
        out.push(b'|');
        write(&mut out);
        String::from_utf8(out.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn three_digits_are_those_of_the_formatter() {
        for n in 0..1000 {
            assert_eq!(&three(n)[..], format!("{n:03}").as_bytes());
            assert_eq!(&three_and_colon(n)[..], format!("{n:03}:    ").as_bytes());
        }
    }

    #[test]
    fn digits_equal_those_of_the_formatter() {
        let numbers = [0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 65_536, 999_999];
        for n in numbers {
            assert_eq!(&six(n)[..], format!("{n:06}").as_bytes());
            assert_eq!(
                &nine(n * 1000 + 7)[..],
                format!("{:09}", n * 1000 + 7).as_bytes()
            );
        }
        for n in numbers
            .map(u64::from)
            .into_iter()
            .chain([1 << 40, u64::MAX])
        {
            assert_eq!(text(|o| decimal(o, n, 10)), format!("|{n:10}"));
            assert_eq!(text(|o| decimal(o, n, 0)), format!("|{n}"));
            assert_eq!(&hex16(n)[..], format!("{n:16x}").as_bytes());
            assert_eq!(text(|o| hex(o, n)), format!("|{n:x}"));
        }
        for n in [0, 5, -1, -99_999, i64::from(i32::MIN), i64::MIN, i64::MAX] {
            assert_eq!(text(|o| signed(o, n, 5)), format!("|{n:5}"));
        }
    }
}
