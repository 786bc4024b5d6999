//! Numbers and strings into bytes, without the machinery of `core::fmt`.
//!
//! A line is many short pieces, and a call of `memcpy` for each costs more than the piece. So pieces are
//! appended as whole blocks of 16 or 32 bytes, and what is too much is cut off again.

/// Bytes behind every string of a pool, so that blocks can be read past its end.
pub(super) const PADDING: usize = 32;

/// Appends `pool[at..at + len]`; the pool must be padded with [`PADDING`] bytes.
#[inline]
pub(super) fn put_pooled(out: &mut Vec<u8>, pool: &[u8], at: usize, len: usize) {
    let end = out.len() + len;
    if len <= 16
        && let Some(block) = pool.get(at..).and_then(|p| p.first_chunk::<16>())
    {
        out.extend_from_slice(block);
        out.truncate(end);
    } else if len <= 32
        && let Some(block) = pool.get(at..).and_then(|p| p.first_chunk::<32>())
    {
        out.extend_from_slice(block);
        out.truncate(end);
    } else {
        out.extend_from_slice(pool.get(at..at + len).unwrap_or(&[]));
    }
}

/// Returns the 16 hexadecimal digits of a number.
#[inline]
fn hex_block(value: u64) -> [u8; 16] {
    // Spread the nibbles over 16 bytes, then add '0', and what lies between '9' and 'a' where it is needed.
    fn spread(half: u32) -> u64 {
        let x = u64::from(half);
        let x = (x | (x << 16)) & 0x0000_ffff_0000_ffff;
        let x = (x | (x << 8)) & 0x00ff_00ff_00ff_00ff;
        let x = (x | (x << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
        let above_nine = ((x + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
        x + 0x3030_3030_3030_3030 + above_nine * (b'a' - b'9' - 1) as u64
    }
    let mut block = [0u8; 16];
    block[..8].copy_from_slice(&spread((value >> 32) as u32).to_be_bytes());
    block[8..].copy_from_slice(&spread(value as u32).to_be_bytes());
    block
}

/// Appends a number in hexadecimal with at least `width` (at most 16) digits.
#[inline]
pub(super) fn put_hex(out: &mut Vec<u8>, value: u64, width: u32) {
    let digits = (67 - (value | 1).leading_zeros()) / 4;
    let digits = digits.max(width.min(16));
    let block = hex_block(value << (64 - 4 * digits));
    let end = out.len() + digits as usize;
    out.extend_from_slice(&block);
    out.truncate(end);
}

/// Two decimal digits for every number below 100.
const PAIRS: [u8; 200] = {
    let mut table = [0; 200];
    let mut i = 0;
    while i < 100 {
        table[2 * i] = b'0' + (i / 10) as u8;
        table[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    table
};

/// Writes the decimal digits of a number to the end of a block, and returns where they begin.
#[inline]
pub(super) fn decimal_block(mut value: u64, block: &mut [u8; 20]) -> usize {
    let mut at = 20;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        block[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        block[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        block[at] = b'0' + value as u8;
    }
    at
}

/// Appends a number in decimal.
#[inline]
pub(super) fn put_decimal(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
    } else if value < 100 {
        let pair = value as usize * 2;
        out.extend_from_slice(&[PAIRS[pair], PAIRS[pair + 1]]);
    } else {
        let mut block = [0u8; 20];
        let at = decimal_block(value, &mut block);
        out.extend_from_slice(&block[at..]);
    }
}

/// Appends a signed number in decimal.
#[inline]
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_decimal(out, value.unsigned_abs());
}

/// Returns the bytes up to the first NUL.
#[inline]
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    // Names of threads are what is printed most, and they are in fields of 16 bytes.
    if let Some(block) = bytes.first_chunk::<16>() {
        const ONES: u128 = u128::MAX / 255;
        let word = u128::from_le_bytes(*block);
        let nul = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if nul != 0 {
            return &bytes[..(nul.trailing_zeros() / 8) as usize];
        }
        if bytes.len() == 16 {
            return bytes;
        }
    }
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Appends the string at the start of `bytes`, which ends at a NUL or with them.
#[inline]
pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let text = until_nul(bytes);
    if text.len() <= 16
        && let Some(block) = bytes.first_chunk::<16>()
    {
        let end = out.len() + text.len();
        out.extend_from_slice(block);
        out.truncate(end);
    } else {
        out.extend_from_slice(text);
    }
}

/// Appends two hexadecimal digits.
#[inline]
pub(super) fn put_hex_byte(out: &mut Vec<u8>, byte: u8, upper: bool) {
    let digits = if upper {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
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
        for v in values {
            let mut out = Vec::new();
            put_hex(&mut out, v, 1);
            assert_eq!(String::from_utf8_lossy(&out), format!("{v:x}"));
            out.clear();
            put_hex(&mut out, v, 8);
            assert_eq!(String::from_utf8_lossy(&out), format!("{v:08x}"));
            out.clear();
            put_decimal(&mut out, v);
            assert_eq!(String::from_utf8_lossy(&out), format!("{v}"));
            out.clear();
            put_signed(&mut out, v as i64);
            assert_eq!(String::from_utf8_lossy(&out), format!("{}", v as i64));
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
        let mut out = Vec::new();
        put_string(&mut out, b"qemu\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(out, b"qemu");
    }

    #[test]
    fn pooled_strings_of_every_length_are_copied() {
        let mut pool: Vec<u8> = (0..100).collect();
        pool.extend([0; PADDING]);
        for len in 0..=100 {
            let mut out = vec![7];
            put_pooled(&mut out, &pool, 0, len);
            assert_eq!(out[0], 7);
            assert_eq!(out[1..], pool[..len]);
        }
    }
}
