//! Byte order, word size and diagnostics: what every parser of a recording needs.

use crate::cast::{low_16, low_32};
use std::fmt;

/// Byte order of the machine that made a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Endian {
    /// Least significant byte first (x86, arm64, riscv).
    #[default]
    Little,
    /// Most significant byte first (s390x, some ppc64 and arm64 kernels).
    Big,
}

impl Endian {
    /// Reads `size` bytes (1, 2, 4 or 8) at `offset` as an unsigned number.
    ///
    /// Returns `None` when the bytes are not all there or `size` is another number.
    #[inline]
    pub fn uint(self, data: &[u8], offset: usize, size: usize) -> Option<u64> {
        let end = offset.checked_add(size)?;
        let bytes = data.get(offset..end)?;
        Some(match (self, size) {
            (_, 1) => u64::from(bytes[0]),
            (Endian::Little, 2) => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (Endian::Little, 4) => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (Endian::Little, 8) => u64::from_le_bytes(bytes.try_into().ok()?),
            (Endian::Big, 2) => u64::from(u16::from_be_bytes(bytes.try_into().ok()?)),
            (Endian::Big, 4) => u64::from(u32::from_be_bytes(bytes.try_into().ok()?)),
            (Endian::Big, 8) => u64::from_be_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// Reads a 16-bit number at `offset`.
    #[inline]
    pub fn u16(self, data: &[u8], offset: usize) -> Option<u16> {
        self.uint(data, offset, 2).map(low_16)
    }

    /// Reads a 32-bit number at `offset`.
    #[inline]
    pub fn u32(self, data: &[u8], offset: usize) -> Option<u32> {
        self.uint(data, offset, 4).map(low_32)
    }

    /// Reads a 64-bit number at `offset`.
    #[inline]
    pub fn u64(self, data: &[u8], offset: usize) -> Option<u64> {
        self.uint(data, offset, 8)
    }

    /// Returns the bytes of a 64-bit number.
    #[inline]
    pub fn u64_bytes(self, number: u64) -> [u8; 8] {
        match self {
            Endian::Little => number.to_le_bytes(),
            Endian::Big => number.to_be_bytes(),
        }
    }

    /// Returns the bytes of a 16-bit number.
    #[inline]
    pub fn u16_bytes(self, number: u16) -> [u8; 2] {
        match self {
            Endian::Little => number.to_le_bytes(),
            Endian::Big => number.to_be_bytes(),
        }
    }

    /// Returns the bytes of a 32-bit number.
    #[inline]
    pub fn u32_bytes(self, number: u32) -> [u8; 4] {
        match self {
            Endian::Little => number.to_le_bytes(),
            Endian::Big => number.to_be_bytes(),
        }
    }
}

/// Byte order and word size of the machine that made a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abi {
    /// Byte order of every number in the recording.
    pub endian: Endian,
    /// `sizeof(long)` of the kernel, in bytes: 4 or 8.
    pub long_size: u8,
}

impl Default for Abi {
    /// Returns what x86-64 and arm64 kernels are: little-endian, 8-byte long.
    fn default() -> Self {
        Abi {
            endian: Endian::Little,
            long_size: 8,
        }
    }
}

/// One thing a parser could not take as it stood; what surrounds it was read all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Byte offset in the input, where it is known.
    pub offset: Option<u64>,
    /// What was found and what was expected, without the offset, in lower case and without a period.
    pub message: String,
}

impl Diagnostic {
    /// Returns a diagnostic at a known place.
    pub fn at(offset: u64, message: impl Into<String>) -> Self {
        Diagnostic {
            offset: Some(offset),
            message: message.into(),
        }
    }

    /// Returns a diagnostic without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Diagnostic {
            offset: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "at byte {offset:#x}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
