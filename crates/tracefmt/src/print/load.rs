//! How numbers and arrays lie in a record.

use crate::index_of;
use crate::{Endian, FieldKind, FormatField};

/// How a number lies in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberLoad {
    /// Offset from the start of the record, in bytes.
    pub(super) offset: u32,
    pub(super) kind: LoadKind,
}

/// Width, sign and byte order of a number in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadKind {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    BigU16,
    BigU32,
    BigU64,
    BigI16,
    BigI32,
    /// A size no number has: reads as 0.
    Nothing,
}

impl LoadKind {
    pub(super) fn new(size: u32, signed: bool, endian: Endian) -> LoadKind {
        use LoadKind::*;
        match (size, signed, endian) {
            (1, false, _) => U8,
            (1, true, _) => I8,
            (2, false, Endian::Little) => U16,
            (2, true, Endian::Little) => I16,
            (2, false, Endian::Big) => BigU16,
            (2, true, Endian::Big) => BigI16,
            (4, false, Endian::Little) => U32,
            (4, true, Endian::Little) => I32,
            (4, false, Endian::Big) => BigU32,
            (4, true, Endian::Big) => BigI32,
            (8, _, Endian::Little) => U64,
            (8, _, Endian::Big) => BigU64,
            _ => Nothing,
        }
    }

    /// Reads the number at `offset`; 0 when the record ends before its last byte.
    #[inline]
    pub(super) fn read(self, record: &[u8], offset: usize) -> u64 {
        #[inline]
        fn get<const N: usize>(record: &[u8], offset: usize) -> [u8; N] {
            record
                .get(offset..)
                .and_then(|r| r.first_chunk::<N>())
                .copied()
                .unwrap_or([0; N])
        }
        match self {
            LoadKind::U8 => u64::from(get::<1>(record, offset)[0]),
            LoadKind::U16 => u64::from(u16::from_le_bytes(get(record, offset))),
            LoadKind::U32 => u64::from(u32::from_le_bytes(get(record, offset))),
            LoadKind::U64 => u64::from_le_bytes(get(record, offset)),
            LoadKind::I8 => i64::from(get::<1>(record, offset)[0].cast_signed()).cast_unsigned(),
            LoadKind::I16 => i64::from(i16::from_le_bytes(get(record, offset))).cast_unsigned(),
            LoadKind::I32 => i64::from(i32::from_le_bytes(get(record, offset))).cast_unsigned(),
            LoadKind::BigU16 => u64::from(u16::from_be_bytes(get(record, offset))),
            LoadKind::BigU32 => u64::from(u32::from_be_bytes(get(record, offset))),
            LoadKind::BigU64 => u64::from_be_bytes(get(record, offset)),
            LoadKind::BigI16 => i64::from(i16::from_be_bytes(get(record, offset))).cast_unsigned(),
            LoadKind::BigI32 => i64::from(i32::from_be_bytes(get(record, offset))).cast_unsigned(),
            LoadKind::Nothing => 0,
        }
    }
}

/// The field that says where the data of a dynamic array lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locator {
    pub(super) offset: u32,
    pub(super) size: u32,
    pub(super) relative: bool,
    pub(super) endian: Endian,
}

impl Locator {
    /// Returns the locator of a dynamic field.
    pub(super) fn of(field: &FormatField, endian: Endian) -> Option<Locator> {
        let relative = match field.kind {
            FieldKind::DataLoc { .. } => false,
            FieldKind::RelLoc { .. } => true,
            _ => return None,
        };
        Some(Locator {
            offset: field.offset,
            size: field.size,
            relative,
            endian,
        })
    }

    /// Returns where the data begins and how long it is, in bytes.
    ///
    /// What points outside of the record becomes 0, each by itself, as libtraceevent 1.7.1 does it.
    #[inline]
    pub(super) fn resolve(self, record: &[u8]) -> (usize, usize) {
        let (at, size) = (index_of(self.offset), index_of(self.size));
        if at + size > record.len() {
            return (0, 0);
        }
        let word = self.endian.uint(record, at, size).unwrap_or(0);
        let offset = (word & 0xffff) as usize;
        let len = if size == 2 {
            // Kernels before 2.6.31: no length, the string ends itself.
            record.len().saturating_sub(offset)
        } else {
            ((word >> 16) & 0xffff) as usize
        };
        let start = if offset > record.len() { 0 } else { offset };
        let len = if offset + len > record.len() { 0 } else { len };
        (start + if self.relative { at + size } else { 0 }, len)
    }

    /// Returns the data, as much of it as the record holds.
    pub(super) fn bytes(self, record: &[u8]) -> &[u8] {
        let (start, len) = self.resolve(record);
        let end = start.saturating_add(len).min(record.len());
        record.get(start..end).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_outside_of_the_record_is_empty() {
        let locator = Locator {
            offset: 0,
            size: 4,
            relative: false,
            endian: Endian::Little,
        };
        assert_eq!(locator.resolve(&[4, 0, 2, 0, b'a', b'b']), (4, 2));
        assert_eq!(locator.resolve(&[4, 0, 3, 0, b'a', b'b']), (4, 0));
        assert_eq!(locator.resolve(&[9, 0, 3, 0, b'a', b'b']), (0, 0));
        assert_eq!(locator.resolve(&[4, 0, 3]), (0, 0));
        let relative = Locator {
            relative: true,
            ..locator
        };
        assert_eq!(relative.bytes(&[1, 0, 1, 0, b'a', b'b']), b"b");
    }
}
