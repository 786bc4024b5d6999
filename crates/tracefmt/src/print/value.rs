//! Operands in the form that the steps of a program have them.

use super::expr::Exprs;
use super::operand::{Bits, Operand, read_eight};

/// An operand in the form steps have it: flat, so that the usual case takes one test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    kind: ValueKind,
    shift: u8,
    /// Where the bits are, or which node it is.
    start: u32,
    /// Which bits count, or the constant.
    mask: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Bits,
    Const,
    Node,
}

impl From<Operand> for Value {
    fn from(operand: Operand) -> Value {
        match operand {
            Operand::Bits(Bits { start, shift, mask }) => Value {
                kind: ValueKind::Bits,
                shift,
                start,
                mask,
            },
            Operand::Const(mask) => Value {
                kind: ValueKind::Const,
                shift: 0,
                start: 0,
                mask,
            },
            Operand::Node(start) => Value {
                kind: ValueKind::Node,
                shift: 0,
                start,
                mask: 0,
            },
        }
    }
}

impl Value {
    /// Returns the number.
    #[inline(always)]
    pub(super) fn read(&self, exprs: &Exprs, record: &[u8]) -> u64 {
        if self.kind == ValueKind::Bits
            && let Some(word) = read_eight(record, self.start)
        {
            return (word >> (self.shift & 63)) & self.mask;
        }
        self.work_out(exprs, record)
    }

    #[cold]
    #[inline(never)]
    fn work_out(&self, exprs: &Exprs, record: &[u8]) -> u64 {
        match self.kind {
            ValueKind::Bits => 0,
            ValueKind::Const => self.mask,
            ValueKind::Node => exprs.eval(Operand::Node(self.start), record),
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
