//! Operands in the form that the steps of a program have them.

use super::expr::Exprs;
use super::operand::{BitSlice, Operand, read_eight};
use crate::cast::low_32;

/// An operand in the form steps have it: flat, so that the usual case takes one test.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlatOperand {
    kind: ValueKind,
    shift: u8,
    /// Where the bits are; behind the end of any record for what is no bits of it.
    start: u32,
    /// Which bits count, the constant, or which node it is.
    mask: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Bits,
    Const,
    Node,
}

impl From<Operand> for FlatOperand {
    fn from(operand: Operand) -> FlatOperand {
        let other = |kind, mask| FlatOperand {
            kind,
            shift: 0,
            start: u32::MAX,
            mask,
        };
        match operand {
            Operand::Bits(BitSlice { start, shift, mask }) => FlatOperand {
                kind: ValueKind::Bits,
                shift,
                start,
                mask,
            },
            Operand::Const(value) => other(ValueKind::Const, value),
            Operand::Node(id) => other(ValueKind::Node, u64::from(id)),
        }
    }
}

impl FlatOperand {
    /// Returns the number.
    #[inline(always)]
    pub(super) fn read(&self, exprs: &Exprs, record: &[u8]) -> u64 {
        match read_eight(record, self.start) {
            Some(word) => (word >> (self.shift & 63)) & self.mask,
            None => self.work_out(exprs, record),
        }
    }

    #[cold]
    #[inline(never)]
    fn work_out(&self, exprs: &Exprs, record: &[u8]) -> u64 {
        match self.kind {
            ValueKind::Bits => 0,
            ValueKind::Const => self.mask,
            ValueKind::Node => exprs.eval(Operand::Node(low_32(self.mask)), record),
        }
    }

    /// Returns how many bits the number can have at most.
    pub(super) fn width(&self) -> u32 {
        match self.kind {
            ValueKind::Node => 64,
            _ => 64 - self.mask.leading_zeros(),
        }
    }
}
