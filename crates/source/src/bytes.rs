//! Where the bytes of an input are.

use crate::map::FileMap;

/// The bytes of an input.
#[derive(Debug)]
pub(crate) enum InputBytes {
    Mapped(FileMap),
    Memory(Vec<u8>),
}

impl InputBytes {
    /// Returns them.
    pub(crate) fn get(&self) -> &[u8] {
        match self {
            InputBytes::Mapped(map) => map.bytes(),
            InputBytes::Memory(bytes) => bytes,
        }
    }
}
