//! What a recording is called in a store.

use std::fmt;

use sha2::{Digest, Sha256};

/// A number that a recording's content gives: the same recording has it wherever and whenever it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u64);

impl RunId {
    /// Returns the number of a recording of which `info` says this (its JSON without the name of the file).
    pub fn of(info: &[u8]) -> RunId {
        let hash = Sha256::digest(info);
        let first = hash.first_chunk().copied().unwrap_or_default();
        RunId(u64::from_be_bytes(first))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::RunId;

    /// SHA-256 of "abc" begins so (FIPS 180-4, appendix B.1 of its 2002 text).
    #[test]
    fn it_is_the_beginning_of_the_hash() {
        assert_eq!(RunId::of(b"abc").to_string(), "ba7816bf8f01cfea");
    }
}
