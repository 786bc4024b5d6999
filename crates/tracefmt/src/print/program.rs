//! A `print fmt:` line ready to run: a flat list of steps, each a piece of literal text and what follows it.

use super::expr::Exprs;
use super::load::{Locator, NumberLoad};
use super::operand::{BitSlice, Operand};
use super::printf::Spec;
use super::value::FlatOperand;
use crate::Abi;
use crate::cast::{low_8, size};

/// A range of the program's pool of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PoolRange {
    pub(super) at: u32,
    pub(super) len: u32,
}

/// Literal text of up to 16 bytes, then something that depends on the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrintStep {
    pub(super) text: [u8; 16],
    pub(super) len: u8,
    pub(super) action: Action,
}

impl PrintStep {
    /// Returns a step with this text, which must not be longer than 16 bytes.
    pub(super) fn new(text: &[u8], action: Action) -> PrintStep {
        let mut block = [0; 16];
        let len = text.len().min(16);
        block[..len].copy_from_slice(&text[..len]);
        PrintStep {
            text: block,
            len: low_8(len as u64),
            action,
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text[..usize::from(self.len).min(16)]
    }
}

/// What a step prints behind its literal text.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Action {
    Nothing,
    /// Literal text too long for a step.
    Literal(PoolRange),
    /// `%u`, `%lu`, `%03u`: the number, with at least so many digits.
    Unsigned(FlatOperand, u8),
    /// `%d`, `%ld`, `%03d`: the number, its sign in the highest of so many bits, at least so many
    /// places.
    Signed(FlatOperand, u8, u8),
    /// `%x`, `%08lx`: the number, with at least so many digits.
    Hex(FlatOperand, u8),
    /// `%#x`, `%#lx`: the number behind `0x`, and whether 0 has that too.
    Prefixed(FlatOperand, bool),
    /// Text of a fixed length, and the range of [`Program::patches`] with the numbers put into it.
    Block(PoolRange, u32, u32),
    /// A number in any other form: index into the forms.
    Number(FlatOperand, u16),
    /// `%p`, as glibc prints it: `0x…` and `(nil)`.
    Pointer(FlatOperand),
    /// `%ps` (without the offset) and `%pS`.
    Symbol(FlatOperand, bool),
    /// `__print_symbolic` as a plain `%s`: index into the tables.
    Name(FlatOperand, u16),
    /// A `char` array at offset and of length, as a plain `%s`.
    Chars(u32, u32),
    /// A `char` array of 16 bytes at offset: the name of a thread.
    Comm(u32),
    /// `__get_str` as a plain `%s`.
    Dynamic(Locator),
    /// One of two strings.
    Choice(FlatOperand, PoolRange, PoolRange),
    /// Any other text: indices into the sources, and into the forms (`u16::MAX` for a plain `%s`).
    Text(u16, u16),
    /// Goes on at a step of that index when the number is 0.
    JumpIfZero(FlatOperand, u32),
    /// Goes on at a step of that index when the bits are not that number.
    JumpUnless(BitSlice, u64, u32),
    /// Goes on at a step of that index.
    Jump(u32),
}

/// A number in a text of fixed length: always the same number of hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patch {
    /// Where in the text its first digit stands.
    pub(super) at: u32,
    /// 1 to 16 digits.
    pub(super) digits: u8,
    pub(super) value: FlatOperand,
}

/// How a form's width or precision is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct FormWidth {
    pub(super) spec: Spec,
    pub(super) width: Option<Operand>,
    pub(super) precision: Option<Operand>,
}

/// Where bytes lie in the record.
#[derive(Debug, Clone, Copy)]
pub(super) enum RecordBytes {
    /// At an offset, so many.
    Fixed(u32, u32),
    /// From an offset to the end of the record.
    Rest(u32),
    Dynamic(Locator),
}

/// Text that takes more than one look at the record.
#[derive(Debug, Clone)]
pub(super) enum TextSource {
    Literal(PoolRange),
    /// Up to the first NUL.
    Chars(RecordBytes),
    /// `__get_str`.
    Dynamic(Locator),
    /// A pointer to a string of the kernel: by the printk table, else its address.
    Address(NumberLoad),
    Name(Operand, u16),
    Flags(Operand, PoolRange, u16),
    Hex {
        data: RecordBytes,
        len: Operand,
        apart: bool,
    },
    Array {
        data: RecordBytes,
        count: Operand,
        element: Operand,
    },
    HexDump(HexDump),
    /// A bit mask in hexadecimal, and how many of its bits count.
    Bitmask(RecordBytes, Option<Operand>),
    /// A bit mask as a list of ranges, and how many of its bits count.
    CpuList(RecordBytes, Option<Operand>),

    /// A number in the place of text: signed decimal, unsigned decimal, or hexadecimal.
    Decimal(Operand),
    UnsignedDecimal(Operand),
    HexNumber(Operand),
    /// `%pM` and `%pm`: what stands between the bytes, and whether the last comes first.
    Mac {
        data: RecordBytes,
        between: Option<u8>,
        reversed: bool,
    },
    /// `%pI4`.
    Ipv4 {
        data: RecordBytes,
        padded: bool,
        reversed: bool,
    },
    /// `%pI6`.
    Ipv6 {
        data: RecordBytes,
        form: Ipv6Form,
    },
    /// `%pIS`.
    Socket {
        data: RecordBytes,
        padded: bool,
        reversed: bool,
        port: bool,
        form: Ipv6Form,
    },
    /// `%pU`.
    Uuid {
        data: RecordBytes,
        upper: bool,
        little: bool,
    },
    /// `%ph`: at most so many bytes.
    Bytes {
        data: RecordBytes,
        limit: Operand,
        between: Option<u8>,
    },
}

/// What `__print_hex_dump` was asked for.
#[derive(Debug, Clone)]
pub(super) struct HexDump {
    pub(super) prefix: PoolRange,
    /// Whether every row begins with its offset.
    pub(super) offsets: bool,
    pub(super) row: Operand,
    pub(super) group: Operand,
    pub(super) data: RecordBytes,
    pub(super) len: Operand,
    pub(super) ascii: Operand,
}

/// How IPv6 addresses are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ipv6Form {
    /// 32 digits.
    Digits,
    /// Eight groups of four digits.
    Groups,
    /// As RFC 5952 has it.
    Compressed,
}

/// Names by value.
#[derive(Debug, Clone, Default)]
pub(super) struct NameTable {
    /// In the order of the format, as `__print_flags` goes through them.
    pub(super) entries: Vec<(i64, PoolRange)>,
    /// How many entries there are up to the last whose value is not known.
    pub(super) unknown: usize,
    /// By value: what [`NameTable::lookup`] finds for small values.
    direct: Vec<PoolRange>,
    /// Sorted by value, the first of equals only.
    sorted: Vec<(i64, PoolRange)>,
}

/// Marks values without a name in [`NameTable::direct`].
const NO_NAME: PoolRange = PoolRange {
    at: u32::MAX,
    len: 0,
};

/// Values below this are looked up by index: exit reasons of all architectures lie below.
const DIRECT: i64 = 0x480;

impl NameTable {
    pub(super) fn new(entries: Vec<(i64, PoolRange)>) -> NameTable {
        let mut sorted = entries.clone();
        sorted.sort_by_key(|e| e.0);
        sorted.dedup_by_key(|e| e.0);
        let top = sorted
            .iter()
            .map(|e| e.0)
            .filter(|v| (0..DIRECT).contains(v))
            .max();
        let top = top.and_then(|top| usize::try_from(top).ok());
        let mut direct = vec![NO_NAME; top.map_or(0, |top| top + 1)];
        for (value, name) in &sorted {
            if let Some(slot) = usize::try_from(*value).ok().and_then(|v| direct.get_mut(v)) {
                *slot = *name;
            }
        }
        let unknown = entries.iter().rposition(|e| e.0 < 0).map_or(0, |at| at + 1);
        NameTable {
            entries,
            unknown,
            direct,
            sorted,
        }
    }

    /// Returns the name of a value: that of the first entry with the value.
    #[inline]
    pub(super) fn lookup(&self, value: u64) -> Option<PoolRange> {
        if let Some(name) = self.direct.get(size(value)) {
            return if *name == NO_NAME { None } else { Some(*name) };
        }
        let at = self
            .sorted
            .binary_search_by_key(&value.cast_signed(), |e| e.0)
            .ok()?;
        Some(self.sorted[at].1)
    }
}

/// What [`super::raw`] needs to know of the conversions: libtraceevent prints a raw field the way the
/// line prints it, where it does.
#[derive(Debug, Clone)]
pub(super) enum ConversionKind {
    /// Literal text, and whether it ends in `0x`.
    Literal(bool),
    /// A conversion of the field of that index, printed by the step.
    Field(usize, Option<Action>),
    /// Any other conversion.
    Other,
}

/// The compiled line.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    /// Whether the line is printed as the kernel prints it, and not as libtraceevent does.
    pub(super) kernel: bool,
    pub(super) abi: Abi,

    pub(super) steps: Vec<PrintStep>,
    pub(super) exprs: Exprs,
    pub(super) pool: Vec<u8>,
    pub(super) tables: Vec<NameTable>,
    pub(super) sources: Vec<TextSource>,
    pub(super) forms: Vec<FormWidth>,
    pub(super) patches: Vec<Patch>,
    pub(super) pieces: Vec<ConversionKind>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_values_names_it() {
        let name = |at| PoolRange { at, len: 1 };
        let table = NameTable::new(vec![
            (3, name(1)),
            (-1, name(2)),
            (3, name(3)),
            (0x8000_0000, name(4)),
        ]);
        assert_eq!(table.lookup(3), Some(name(1)));
        assert_eq!(table.lookup(2), None);
        assert_eq!(table.lookup(4), None);
        assert_eq!(table.lookup(u64::MAX), Some(name(2)));
        assert_eq!(table.lookup(0x8000_0000), Some(name(4)));
        assert_eq!(table.lookup(0xffff_ffff), None);
        assert_eq!(NameTable::default().lookup(0), None);
    }
}
