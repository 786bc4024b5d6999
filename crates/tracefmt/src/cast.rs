//! Conversions between integers.
//!
//! Print formats are C, which cuts a number to the width of its type: what goes is meant to go. A bit that becomes a
//! sign, or stops being one, is `cast_signed` and `cast_unsigned`.

/// Keeps the low 8 bits, as C's conversion to `unsigned char` does.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are asked for"
)]
pub(crate) const fn low_8(value: u64) -> u8 {
    value as u8
}

/// Keeps the low 16 bits, as C's conversion to `unsigned short` does.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are asked for"
)]
pub(crate) const fn low_16(value: u64) -> u16 {
    value as u16
}

/// Keeps the low 32 bits, as C's conversion to `unsigned int` does.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are asked for"
)]
pub(crate) const fn low_32(value: u64) -> u32 {
    value as u32
}

/// Keeps the low 32 bits, the highest of which is the sign: C's conversion to `int`.
#[inline(always)]
pub(crate) const fn int(value: u64) -> i32 {
    low_32(value).cast_signed()
}

/// Returns a number of bytes, or a position, that a record or a format gives: as many as there can be where it is more.
#[inline(always)]
pub(crate) fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Returns a position in what was made of a format, or a length there, of which 32 bits are kept. No text is so long
/// that it needs more; of one that is, what lies behind is not found.
#[inline(always)]
pub(crate) fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
