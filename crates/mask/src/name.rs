//! Names that differ and are not read: those of hosts, VMs and tasks in a store that others look at.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a masked name: 2^64 names would have to be there before two are likely to be alike.
const BYTES: usize = 16;
/// What the key's own mark is made of. No name begins with a zero byte.
const MARK: &str = "\0trapline key";

/// Masks names by HMAC-SHA256 (RFC 2104): with one key a name always becomes the same, so that rows of several
/// recordings still find each other, and nobody without the key finds out which name it was.
pub struct NameMask(Hmac<Sha256>);

impl std::fmt::Debug for NameMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NameMask")
    }
}

impl NameMask {
    /// Bytes that a key has at least: what is shorter can be found by trying.
    pub const LEAST_KEY: usize = 16;

    /// Returns the mask of a key; `None` where the key is too short.
    pub fn new(key: &[u8]) -> Option<NameMask> {
        let long = key.len() >= Self::LEAST_KEY;
        long.then(|| Hmac::new_from_slice(key).ok().map(NameMask))?
    }

    /// Returns what stands for a name: `m` and 32 hexadecimal digits. Nothing stands for an empty one.
    pub fn name(&self, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        let mut mac = self.0.clone();
        mac.update(name.as_bytes());
        let mut out = String::from("m");
        for byte in mac.finalize().into_bytes().iter().take(BYTES) {
            let _ = write!(out, "{byte:02x}");
        }
        out
    }

    /// Returns a text by which keys differ, and which says nothing of them.
    pub fn fingerprint(&self) -> String {
        self.name(MARK)
    }
}

#[cfg(test)]
mod tests {
    use super::NameMask;

    /// RFC 4231, test case 1, whose first half stands for the name.
    #[test]
    fn it_is_hmac_sha256() {
        let mask = NameMask::new(&[0x0b; 20]).expect("a key");
        assert_eq!(mask.name("Hi There"), "mb0344c61d8db38535ca8afceaf0bf12b");
        assert_eq!(mask.name(""), "");
        let other = NameMask::new(&[0x0c; 20]).expect("a key");
        assert_ne!(mask.fingerprint(), other.fingerprint());
        assert!(NameMask::new(b"secret").is_none());
    }
}
