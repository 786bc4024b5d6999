//! One field of an event: where it lies in the record and how to read it.

use crate::index_of;
use crate::{Abi, Endian};

/// How the bytes of a field are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// One number (or pointer, or enum) of the field's size.
    Scalar,
    /// A fixed array of elements of this many bytes.
    Array {
        /// Bytes of one element; 1 for `char[16]`.
        element: u32,
    },
    /// `__data_loc`: the field holds a 32-bit word, low half the offset of the data from the start of the
    /// record, high half its length.
    DataLoc {
        /// Bytes of one element.
        element: u32,
    },
    /// `__rel_loc`: as [`FieldKind::DataLoc`], with the offset counted from the end of the field itself.
    RelLoc {
        /// Bytes of one element.
        element: u32,
    },
}

/// One field of an event's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatField {
    /// Name as the format gives it, without array brackets.
    pub name: String,
    /// C type as the format gives it, with `__data_loc` and array brackets kept: `char comm[16]` has the
    /// type `char[16]`.
    pub ctype: String,
    /// Offset in bytes from the start of the record (the common fields included).
    pub offset: u32,
    /// Size in bytes; for dynamic fields that of the locator word.
    pub size: u32,
    /// Whether numbers in it are signed.
    pub signed: bool,
    /// How to read it.
    pub kind: FieldKind,
    /// Whether the field holds text (`char` arrays, static or dynamic).
    pub is_string: bool,
}

impl FormatField {
    /// Reads the field as an unsigned number, sign-extended when the field is signed.
    ///
    /// Returns `None` when the record is too short or the field is no scalar.
    #[inline]
    pub fn value(&self, record: &[u8], endian: Endian) -> Option<u64> {
        if !matches!(self.kind, FieldKind::Scalar) {
            return None;
        }
        let at = index_of(self.offset);
        // Nearly always there is a whole word, and no need to find out how much of it counts.
        if endian == Endian::Little
            && matches!(self.size, 1 | 2 | 4 | 8)
            && let Some(word) = record
                .get(at..at.saturating_add(8))
                .and_then(<[u8]>::first_chunk)
        {
            let beyond = (64 - self.size * 8) & 63;
            let high = u64::from_le_bytes(*word) << beyond;
            return Some(match self.signed {
                true => (high.cast_signed() >> beyond).cast_unsigned(),
                false => high >> beyond,
            });
        }
        let raw = endian.uint(record, at, index_of(self.size))?;
        if self.signed && self.size < 8 {
            let shift = 64 - self.size * 8;
            return Some(((raw << shift).cast_signed() >> shift).cast_unsigned());
        }
        Some(raw)
    }

    /// Returns the bytes of the field's data: those of the field itself, or those a locator points to.
    ///
    /// Returns `None` when they are not all in the record.
    pub fn bytes<'r>(&self, record: &'r [u8], abi: Abi) -> Option<&'r [u8]> {
        let (start, len) = match self.kind {
            FieldKind::Scalar | FieldKind::Array { .. } => {
                // The last field of an ftrace record may be declared with size 0: it takes what is left.
                if self.size == 0 {
                    return record.get(index_of(self.offset)..);
                }
                (index_of(self.offset), index_of(self.size))
            }
            FieldKind::DataLoc { .. } | FieldKind::RelLoc { .. } => {
                let word = abi.endian.u32(record, index_of(self.offset))?;
                let mut start = (word & 0xffff) as usize;
                if matches!(self.kind, FieldKind::RelLoc { .. }) {
                    start += index_of(self.offset) + index_of(self.size);
                }
                (start, (word >> 16) as usize)
            }
        };
        record.get(start..start.checked_add(len)?)
    }

    /// Returns the field's text up to the first NUL byte.
    pub fn text<'r>(&self, record: &'r [u8], abi: Abi) -> Option<&'r [u8]> {
        let bytes = self.bytes(record, abi)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}
