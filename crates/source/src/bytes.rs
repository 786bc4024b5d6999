//! Where the bytes of an input are.

use crate::map::FileMap;

/// The bytes of an input.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(FileMap),
    Memory(Vec<u8>),
}

impl Bytes {
    /// Returns them.
    pub(crate) fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Memory(bytes) => bytes,
        }
    }
}
