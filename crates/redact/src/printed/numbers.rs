//! Numbers of a text, which stay, but for addresses of the kernel.

use crate::redactor::RedactedNames;

/// Digits of an address of the kernel.
pub(super) const ADDRESS_DIGITS: usize = 16;

/// Appends a number, where the word is one; addresses of the kernel are moved. Returns whether it was; `None` where
/// it is no number.
pub(super) fn put_number(
    word: &[u8],
    names: &mut RedactedNames,
    out: &mut Vec<u8>,
) -> Option<bool> {
    if !is_number(word) {
        return None;
    }
    let digits = word
        .strip_prefix(b"0x")
        .or_else(|| word.strip_prefix(b"0X"))
        .unwrap_or(word);
    let text = str::from_utf8(digits).ok()?;
    let address = u64::from_str_radix(text, 16).ok();
    let moved = address
        .filter(|_| digits.len() == ADDRESS_DIGITS)
        .map(|address| names.kernel_address(address));
    out.extend(&word[..word.len() - digits.len()]);
    match moved.filter(|moved| Some(*moved) != address) {
        Some(moved) => {
            out.extend(format!("{moved:016x}").bytes());
            Some(true)
        }
        None => {
            out.extend(digits);
            Some(false)
        }
    }
}

/// Returns whether a word is a number: digits, also with a point, behind `0x`, or of an address, and a unit behind.
pub(super) fn is_number(word: &[u8]) -> bool {
    if let Some(digits) = word
        .strip_prefix(b"0x")
        .or_else(|| word.strip_prefix(b"0X"))
    {
        return !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    }
    let Some(first) = word.first() else {
        return false;
    };
    // Names begin with letters; an address may too.
    if word.len() == ADDRESS_DIGITS || first.is_ascii_digit() {
        let hex = word.iter().all(u8::is_ascii_hexdigit);
        if hex && word.len() <= ADDRESS_DIGITS {
            return true;
        }
    }
    let number = word
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
        .count();
    let (number, unit) = word.split_at(number);
    let is_address = number.iter().filter(|byte| **byte == b'.').count() > 1;
    first.is_ascii_digit()
        && !is_address
        && matches!(unit, b"" | b"ns" | b"us" | b"ms" | b"s" | b"x")
}
