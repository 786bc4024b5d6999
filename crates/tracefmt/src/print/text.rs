//! Numbers and strings into bytes, without the machinery of `core::fmt`.
//!
//! A line is many short pieces, and a call of `memcpy` for each costs more than the piece. So pieces are
//! written as whole blocks of 16 or 32 bytes, and the next one goes over what is too much.

use std::hint::black_box;

use crate::FormatText;
use crate::cast::{low_8, low_32};
use crate::index_of;

/// Bytes behind every string of a pool, so that blocks can be read past its end.
pub(super) const PADDING: usize = 128;

/// Appends `pool[at..at + len]`; the pool must be padded with [`PADDING`] bytes.
#[inline]
pub(super) fn put_pooled(out: &mut FormatText, pool: &[u8], at: usize, len: usize) {
    if len <= 32
        && let Some(block) = pool.get(at..).and_then(|p| p.first_chunk::<32>())
    {
        out.block(block, len);
    } else {
        out.extend_from_slice(pool.get(at..at + len).unwrap_or(&[]));
    }
}

/// Copies a whole block to a place in a window; does nothing where it does not fit.
#[inline(always)]
pub(super) fn block_at<const N: usize>(window: &mut [u8], at: usize, block: &[u8; N]) {
    if let Some(to) = window.get_mut(at..).and_then(|w| w.first_chunk_mut::<N>()) {
        *to = *block;
    }
}

/// Returns eight hexadecimal digits, the first in the lowest byte.
#[inline(always)]
fn hex_digits(half: u32) -> u64 {
    // Each byte gets one digit: the numbers are spread out step by step, then made letters all at once.
    let x = u64::from(half.swap_bytes());
    let x = (x | (x << 16)) & 0x0000_ffff_0000_ffff;
    let x = (x | (x << 8)) & 0x00ff_00ff_00ff_00ff;
    let x = ((x >> 4) | (x << 8)) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = ((x + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    // `a` is 39 behind where it would stand behind the 9. Bits of a mask, as to multiply by 39 takes longer.
    x + ZEROS + (((letters << 7) - letters) & 0x2727_2727_2727_2727)
}

/// Returns sixteen hexadecimal digits.
#[inline(always)]
fn all_hex_digits(value: u64) -> [u8; 16] {
    // Read back from memory, the bytes are widened as a vector. The compiler would take a number apart byte by byte.
    let bytes = black_box(value.to_be_bytes());
    let mut lanes = [0u16; 8];
    for (lane, byte) in lanes.iter_mut().zip(&bytes) {
        *lane = u16::from(*byte);
    }
    for lane in &mut lanes {
        *lane = ((*lane >> 4) | (*lane << 8)) & 0x0f0f;
    }
    for lane in &mut lanes {
        let letters = ((*lane + 0x0606) >> 4) & 0x0101;
        *lane += 0x3030 + letters * 39;
    }
    let mut digits = [0; 16];
    for (two, lane) in digits.chunks_exact_mut(2).zip(lanes) {
        two.copy_from_slice(&lane.to_le_bytes());
    }
    digits
}

/// Writes a number in hexadecimal with at least `width` (at most 16) digits into 16 bytes of a window, and
/// returns how many digits there are.
#[inline(always)]
pub(super) fn hex_at(window: &mut [u8], at: usize, value: u64, width: u32) -> usize {
    let digits = (67 - (value | 1).leading_zeros()) / 4;
    let digits = digits.max(width.min(16));
    let left = value << ((64 - 4 * digits) & 63);
    block_at(window, at, &all_hex_digits(left));
    index_of(digits)
}

/// Writes the lowest `digits` (at most 16) hexadecimal digits of a number, and nothing behind them.
#[inline(always)]
pub(super) fn hex_exactly(window: &mut [u8], at: usize, value: u64, digits: u32) {
    if digits == 16 {
        return block_at(window, at, &all_hex_digits(value));
    }
    if digits == 8 {
        return block_at(window, at, &hex_digits(low_32(value)).to_le_bytes());
    }
    for i in 0..digits.min(16) as usize {
        let nibble = (value >> (4 * (index_of(digits) - 1 - i))) & 15;
        if let Some(to) = window.get_mut(at + i) {
            *to = LOWER[nibble as usize];
        }
    }
}

/// Appends a number in hexadecimal with at least `width` (at most 16) digits.
#[inline]
pub(super) fn put_hex(out: &mut FormatText, value: u64, width: u32) {
    let digits = hex_at(out.room(16), 0, value, width);
    out.advance(digits);
}

/// Returns the eight decimal digits of a number below 100,000,000, the highest in the lowest byte, each
/// as a number.
#[inline(always)]
fn decimal_digits(value: u32) -> u64 {
    // Two, then four, then eight numbers side by side, divided at once by multiplying.
    let x = u64::from(value / 10_000) | (u64::from(value % 10_000) << 32);
    let tens = ((x * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let x = tens | ((x - tens * 100) << 16);
    let tens = ((x * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((x - tens * 10) << 8)
}

const ZEROS: u64 = 0x3030_3030_3030_3030;
const EIGHT: u64 = 100_000_000;

/// Writes a number in decimal with at least `width` (at most 8) digits into 24 bytes of a window, and
/// returns how many digits there are.
#[inline(always)]
pub(super) fn decimal_at(window: &mut [u8], at: usize, value: u64, width: u32) -> usize {
    if value < 10 && width <= 1 {
        block_at(window, at, &[b'0' + low_8(value)]);
        return 1;
    }
    if value < EIGHT {
        return first_digits_at(window, at, low_32(value), width);
    }
    long_decimal_at(window, at, value)
}

/// Writes a number below 100,000,000 into eight bytes.
#[inline(always)]
fn first_digits_at(window: &mut [u8], at: usize, value: u32, width: u32) -> usize {
    let digits = decimal_digits(value);
    // The digits that are wanted stay even when they are 0.
    let kept = 1u64 << (64 - 8 * width.clamp(1, 8));
    let leading = (digits | kept).trailing_zeros() & 0x38;
    block_at(window, at, &((digits | ZEROS) >> leading).to_le_bytes());
    8 - (leading / 8) as usize
}

#[inline(never)]
fn long_decimal_at(window: &mut [u8], at: usize, value: u64) -> usize {
    let eight = |window: &mut [u8], at, value: u64| {
        block_at(
            window,
            at,
            &(decimal_digits(low_32(value % EIGHT)) | ZEROS).to_le_bytes(),
        );
    };
    let high = value / EIGHT;
    if high < EIGHT {
        let len = first_digits_at(window, at, low_32(high), 1);
        eight(window, at + len, value);
        return len + 8;
    }
    let len = first_digits_at(window, at, low_32(high / EIGHT), 1);
    eight(window, at + len, high);
    eight(window, at + len + 8, value);
    len + 16
}

/// Appends a number in decimal.
#[inline]
pub(super) fn put_decimal(out: &mut FormatText, value: u64) {
    let digits = decimal_at(out.room(24), 0, value, 1);
    out.advance(digits);
}

/// Appends a signed number in decimal.
#[inline]
pub(super) fn put_signed(out: &mut FormatText, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_decimal(out, value.unsigned_abs());
}

/// Returns how many of 16 bytes stand before the first NUL.
#[inline(always)]
pub(super) fn length_in_block(block: &[u8; 16]) -> usize {
    const ONES: u128 = u128::MAX / 255;
    let word = u128::from_le_bytes(*block);
    let nul = word.wrapping_sub(ONES) & !word & (ONES << 7);
    (nul.trailing_zeros() / 8) as usize
}

/// Returns the bytes up to the first NUL.
#[inline]
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    // Names of threads are what is printed most, and they are in fields of 16 bytes.
    if let Some(block) = bytes.first_chunk::<16>() {
        let len = length_in_block(block);
        if len < 16 || bytes.len() == 16 {
            return &bytes[..len];
        }
    }
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Appends the string at the start of `bytes`, which ends at a NUL or with them.
#[inline]
pub(super) fn put_string(out: &mut FormatText, bytes: &[u8]) {
    let text = until_nul(bytes);
    if text.len() <= 16
        && let Some(block) = bytes.first_chunk::<16>()
    {
        out.block(block, text.len());
    } else {
        out.extend_from_slice(text);
    }
}

/// Appends bytes as two hexadecimal digits each, with spaces between them if they are to stand apart.
pub(super) fn put_hex_bytes(out: &mut FormatText, bytes: &[u8], apart: bool) {
    if !apart {
        return bytes.iter().for_each(|b| put_hex_byte(out, *b, false));
    }
    let room = out.room(3 * bytes.len());
    for (to, byte) in room.chunks_exact_mut(3).zip(bytes) {
        to.copy_from_slice(&[
            LOWER[usize::from(byte >> 4)],
            LOWER[usize::from(byte & 15)],
            b' ',
        ]);
    }
    out.advance((3 * bytes.len()).saturating_sub(1));
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Appends two hexadecimal digits.
#[inline]
pub(super) fn put_hex_byte(out: &mut FormatText, byte: u8, upper: bool) {
    let digits = if upper { UPPER } else { LOWER };
    out.extend_from_slice(&[
        digits[usize::from(byte >> 4)],
        digits[usize::from(byte & 15)],
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_equal_what_the_standard_library_writes() {
        let mut values = vec![
            0,
            1,
            9,
            10,
            15,
            16,
            99,
            100,
            255,
            12345,
            u64::MAX,
            u64::MAX / 10,
        ];
        for shift in 0..64 {
            values.extend([
                1u64 << shift,
                (1u64 << shift) - 1,
                0x1234_5678_9abc_def0 >> shift,
            ]);
        }
        for power in 1..20 {
            values.extend([10u64.pow(power) - 1, 10u64.pow(power), 10u64.pow(power) + 1]);
        }
        for v in values {
            assert_eq!(all_hex_digits(v), *format!("{v:016x}").as_bytes());
            let mut out = FormatText::new();
            put_hex(&mut out, v, 1);
            assert_eq!(String::from_utf8_lossy(out.as_bytes()), format!("{v:x}"));
            out.clear();
            put_hex(&mut out, v, 8);
            assert_eq!(String::from_utf8_lossy(out.as_bytes()), format!("{v:08x}"));
            out.clear();
            put_decimal(&mut out, v);
            assert_eq!(String::from_utf8_lossy(out.as_bytes()), format!("{v}"));
            out.clear();
            put_signed(&mut out, v.cast_signed());
            assert_eq!(
                String::from_utf8_lossy(out.as_bytes()),
                format!("{}", v.cast_signed())
            );
        }
    }

    #[test]
    fn strings_end_at_the_first_nul_or_with_their_bytes() {
        assert_eq!(until_nul(b"ab\0cdefghijklmnopqr"), b"ab");
        assert_eq!(until_nul(b"0123456789abcdef"), b"0123456789abcdef");
        assert_eq!(until_nul(b"0123456789abcdefg\0h"), b"0123456789abcdefg");
        assert_eq!(until_nul(b""), b"");
        assert_eq!(
            until_nul(&[0x01, 0x80, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]),
            &[1, 0x80]
        );
        let mut out = FormatText::new();
        put_string(&mut out, b"qemu\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(out.as_bytes(), b"qemu");
    }

    #[test]
    fn pooled_strings_of_every_length_are_copied() {
        let mut pool: Vec<u8> = (0..100).collect();
        pool.extend([0; PADDING]);
        for len in 0..=100 {
            let mut out = FormatText::new();
            out.push(7);
            put_pooled(&mut out, &pool, 0, len);
            assert_eq!(out.as_bytes()[0], 7);
            assert_eq!(out.as_bytes()[1..], pool[..len]);
        }
    }
}
