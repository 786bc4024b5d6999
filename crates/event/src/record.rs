//! Reads fields out of binary records: where they are is found out once a format, a record then costs a few loads.

use std::fmt::Debug;

use tracefmt::{Endian, FieldKind, FormatField, index_of};

/// Returns the low 32 bits: fields are of 32 bits or less where this is used, and an odd format that says otherwise
/// gives an odd number.
#[inline(always)]
pub(crate) fn low32(number: u64) -> u32 {
    (number & 0xffff_ffff) as u32
}

/// Returns the low 16 bits, as [`low32`] does 32.
#[inline(always)]
pub(crate) fn low16(number: u64) -> u16 {
    (number & 0xffff) as u16
}

/// Returns the low 8 bits, as [`low32`] does 32.
#[inline(always)]
pub(crate) fn low8(number: u64) -> u8 {
    (number & 0xff) as u8
}

/// What a field of an event can be: how it is found in a record, and what conditions compare.
pub(crate) trait FieldType: Copy {
    /// Where it is in a record.
    type Place: Copy + Debug;

    /// Whether it reads as a number in records and texts alike, so that conditions may ask for it by name.
    const NUMBER: bool;

    /// Finds it; `None` when the format has something else there.
    fn place(field: &FormatField, endian: Endian) -> Option<Self::Place>;

    /// Reads it; `None` when the record is too short.
    fn read(place: Self::Place, record: &[u8]) -> Option<Self>;

    /// Takes the number that a text prints as `name=number`.
    fn printed(number: u64) -> Option<Self>;

    /// Returns what conditions compare.
    fn number(self) -> Option<u64>;
}

/// One number in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLoad {
    offset: u32,
    /// The same where a whole word may be read there, with the lowest byte first; beyond all records else.
    word_at: u32,
    size: u8,
    /// High bits of a word read there that are not of the number.
    beyond: u8,
    endian: Endian,
}

impl FieldLoad {
    pub(crate) fn of(field: &FormatField, endian: Endian) -> Option<FieldLoad> {
        let size = u8::try_from(field.size)
            .ok()
            .filter(|s| matches!(s, 1 | 2 | 4 | 8))?;
        matches!(field.kind, FieldKind::Scalar).then_some(FieldLoad {
            offset: field.offset,
            word_at: match endian {
                Endian::Little => field.offset,
                Endian::Big => u32::MAX,
            },
            size,
            beyond: 64 - 8 * size,
            endian,
        })
    }

    #[inline(always)]
    pub(crate) fn get(self, record: &[u8]) -> Option<u64> {
        // Nearly always there is a whole word, and no need to find out how much of it counts.
        let at = index_of(self.word_at);
        let word = record.get(at..at.saturating_add(8)).unwrap_or_default();
        if let Some(word) = word.first_chunk() {
            return Some(u64::from_le_bytes(*word) & u64::MAX >> (self.beyond & 63));
        }
        self.get_near_the_end(record)
    }

    #[inline(never)]
    fn get_near_the_end(self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(index_of(self.offset)..)?;
        if self.endian == Endian::Big {
            return self.endian.uint(bytes, 0, self.size as usize);
        }
        Some(match self.size {
            8 => u64::from_le_bytes(*bytes.first_chunk()?),
            4 => u64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
            2 => u64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            _ => u64::from(*bytes.first()?),
        })
    }
}

/// Declares a type that is a number in records.
macro_rules! number {
    ($type:ty, $number:literal, $from:expr, $to:expr) => {
        impl FieldType for $type {
            type Place = FieldLoad;

            const NUMBER: bool = $number;

            fn place(field: &FormatField, endian: Endian) -> Option<FieldLoad> {
                FieldLoad::of(field, endian)
            }

            #[inline(always)]
            fn read(place: FieldLoad, record: &[u8]) -> Option<$type> {
                place.get(record).map($from)
            }

            fn printed(number: u64) -> Option<$type> {
                Some($from(number))
            }

            fn number(self) -> Option<u64> {
                Some($to(self))
            }
        }
    };
}

pub(crate) use number;

number!(u64, true, |n: u64| n, |v: u64| v);
number!(u32, true, low32, u64::from);
number!(u16, true, low16, u64::from);
number!(bool, true, |n: u64| n != 0, u64::from);
number!(i32, true, |n: u64| low32(n).cast_signed(), |v: i32| {
    u64::from(v.cast_unsigned())
});

/// A field that not all kernels record.
impl<T: FieldType> FieldType for Option<T> {
    type Place = T::Place;

    const NUMBER: bool = T::NUMBER;

    fn place(field: &FormatField, endian: Endian) -> Option<T::Place> {
        T::place(field, endian)
    }

    #[inline(always)]
    fn read(place: T::Place, record: &[u8]) -> Option<Option<T>> {
        T::read(place, record).map(Some)
    }

    fn printed(number: u64) -> Option<Option<T>> {
        T::printed(number).map(Some)
    }

    fn number(self) -> Option<u64> {
        self.and_then(T::number)
    }
}

/// A `char` array in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chars {
    offset: u32,
    size: u32,
}

impl Chars {
    /// Finds it; of a longer one the first 16 bytes count.
    pub(crate) fn of(field: &FormatField) -> Option<Chars> {
        matches!(field.kind, FieldKind::Array { element: 1 }).then_some(Chars {
            offset: field.offset,
            size: field.size.min(16),
        })
    }

    #[inline]
    pub(crate) fn get(self, record: &[u8]) -> Option<&[u8]> {
        record
            .get(self.offset as usize..)?
            .get(..self.size as usize)
    }
}
