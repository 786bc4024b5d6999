//! What stands for a machine in documents that leave it.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What makes our ids ours: no other program's are the same.
const APPLICATION: &[u8] = b"trapline machine id";
/// Bytes of an id: as many as `/etc/machine-id` has.
const BYTES: usize = 16;

/// Returns what stands for the machine whose `/etc/machine-id` this is: 32 hexadecimal digits.
///
/// That file's number is not to be shown to others (machine-id(5)): it is the key of an HMAC-SHA256 here, as in
/// systemd's `sd_id128_get_machine_app_specific()`, and cannot be found from what comes out. `None` where the text is
/// no such number: 32 hexadecimal digits, of which not all are 0; before a machine was started the first time the file
/// may say `uninitialized`.
pub fn machine_id(machine_id_file: &str) -> Option<String> {
    let number = machine_id_file.trim();
    let number = Some(number).filter(|text| text.len() == 2 * BYTES && text.is_ascii())?;
    let mut key = [0; BYTES];
    for (at, byte) in key.iter_mut().enumerate() {
        let digits = number.get(2 * at..2 * at + 2)?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
    }
    if key == [0; BYTES] {
        return None;
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(APPLICATION);
    let mut out = String::new();
    for byte in mac.finalize().into_bytes().iter().take(BYTES) {
        let _ = write!(out, "{byte:02x}");
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::machine_id;

    /// What stands for a machine is the same each time, and made by HMAC-SHA256: `printf 'trapline machine id' |
    /// openssl dgst -sha256 -mac hmac -macopt hexkey:...` has these first 16 bytes.
    #[test]
    fn it_is_made_of_the_number_and_does_not_show_it() {
        let id = machine_id("0123456789abcdef0123456789abcdef\n").expect("an id");
        assert_eq!(id, "40a34b2b23939d2d531b4fb6075b010a");
        assert_eq!(machine_id("0123456789ABCDEF0123456789ABCDEF"), Some(id));
    }

    #[test]
    fn what_is_no_number_stands_for_no_machine() {
        for text in [
            "",
            "uninitialized",
            "00000000000000000000000000000000",
            "0123456789abcdef0123456789abcde",
            "0123456789abcdef0123456789abcdef0",
            "+123456789abcdef0123456789abcdef",
            "\u{e9}23456789abcdef0123456789abcdef",
        ] {
            assert_eq!(machine_id(text), None, "{text}");
        }
    }
}
