//! What expressions are made of: constants, bits of the record, and what is done with them.

use super::ast::BinOp;
use super::load::{LoadKind, Locator, NumberLoad};
use crate::cast::low_8;
use crate::index_of;

/// A number: a constant, bits of a field, or the result of the node of that index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Const(u64),
    Bits(BitSlice),
    Node(u32),
}

impl Operand {
    /// Returns how many bits the number can have at most.
    pub(super) fn width(self) -> u32 {
        match self {
            Operand::Const(value) => 64 - value.leading_zeros(),
            Operand::Bits(bits) => 64 - bits.mask.leading_zeros(),
            Operand::Node(_) => 64,
        }
    }
}

/// Some bits of an unsigned little-endian number in the record: `(eight bytes >> shift) & mask`.
///
/// Nearly all numbers formats print are of this kind, and they take one unaligned read of eight bytes
/// whatever their size: those that end where the number ends, so that it does not matter what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitSlice {
    pub(super) start: u32,
    pub(super) shift: u8,
    pub(super) mask: u64,
}

impl BitSlice {
    /// Returns the bits that make up a number of 1, 2, 4 or 8 bytes.
    pub(super) fn new(offset: u32, size: u32) -> BitSlice {
        let mask = u64::MAX >> (64 - 8 * size);
        match (offset + size).checked_sub(8) {
            Some(start) => BitSlice {
                start,
                shift: low_8(u64::from(64 - 8 * size)),
                mask,
            },
            // One of the common fields, which are eight bytes together.
            None => BitSlice {
                start: 0,
                shift: low_8(u64::from(8 * offset)),
                mask,
            },
        }
    }

    /// Reads the bits; 0 when the record ends before the number does.
    #[inline(always)]
    pub(super) fn read(self, record: &[u8]) -> u64 {
        match read_eight(record, self.start) {
            Some(word) => (word >> (self.shift & 63)) & self.mask,
            None => 0,
        }
    }
}

/// Reads eight little-endian bytes.
#[inline(always)]
pub(super) fn read_eight(record: &[u8], start: u32) -> Option<u64> {
    let start = index_of(start);
    let bytes = record.get(start..start + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What is done with operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expr {
    /// Unsigned arithmetic and comparison of 64-bit numbers.
    Unsigned(BinOp, Operand, Operand),
    /// Signed arithmetic and comparison of 64-bit numbers.
    Signed(BinOp, Operand, Operand),
    /// `field == constant`: the question formats ask most often.
    Equals(BitSlice, u64),
    /// A signed or big-endian number.
    Load(NumberLoad),
    Invert(Operand),
    Negate(Operand),
    LogNot(Operand),
    /// Cuts to a width and extends again.
    Wrap(u8, bool, Operand),
    Cond(Operand, Operand, Operand),
    /// Element of an array that lies in the record at a fixed offset: offset, size of an element, index.
    Element(u32, u32, LoadKind, Operand),
    /// Element of a dynamic array: where, what one step of the index is, index.
    DynamicElement(Locator, u32, LoadKind, Operand),
    DynamicLen(Locator),
    /// Swaps this many bytes.
    Swap(u8, Operand),
    /// Address of the kernel symbol of that index.
    Symbol(u32),
}
