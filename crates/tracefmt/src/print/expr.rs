//! Numbers read from a record: the compiled form of expressions, and their evaluation.

use std::sync::OnceLock;

use super::arith::{signed_binary, swap, unsigned_binary};
use super::ast::BinOp;
use super::load::{LoadKind, NumberLoad};
use super::operand::{BitSlice, Expr, Operand};
use super::simplify::simplify;
use super::types::wrap;
use crate::Kallsyms;
use crate::cast::index;
use crate::index_of;

/// All expressions of a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Exprs {
    nodes: Vec<Expr>,
    /// Names that may be kernel symbols, and their addresses once they have been looked up.
    symbols: Vec<(String, OnceLock<u64>)>,
}

impl Exprs {
    pub(super) fn push(&mut self, expr: Expr) -> Operand {
        if let Some(operand) = simplify(&expr) {
            return operand;
        }
        let expr = match expr {
            Expr::Unsigned(BinOp::Eq, Operand::Bits(bits), Operand::Const(value))
            | Expr::Signed(BinOp::Eq, Operand::Bits(bits), Operand::Const(value)) => {
                Expr::Equals(bits, value)
            }
            expr => expr,
        };
        self.nodes.push(expr);
        Operand::Node(index(self.nodes.len() - 1))
    }

    /// Returns the value of an operand; an operand refers only to nodes made before it, so this ends.
    #[inline]
    pub(super) fn eval(&self, operand: Operand, record: &[u8]) -> u64 {
        match operand {
            Operand::Const(value) => value,
            Operand::Bits(bits) => bits.read(record),
            Operand::Node(id) => self.eval_node(id, record),
        }
    }

    /// Compiles a name that may be that of a kernel symbol.
    pub(super) fn symbol(&mut self, name: &str) -> Operand {
        self.symbols.push((name.to_owned(), OnceLock::new()));
        self.push(Expr::Symbol(index(self.symbols.len() - 1)))
    }

    /// Looks up the kernel symbols the line names, the first time there are any symbols at all.
    #[inline]
    pub(super) fn resolve(&self, symbols: &Kallsyms) {
        if !self.symbols.is_empty() {
            self.look_up(symbols);
        }
    }

    #[cold]
    fn look_up(&self, symbols: &Kallsyms) {
        for (name, address) in &self.symbols {
            if address.get().is_none() && !symbols.is_empty() {
                // Only one thread gets to set it, and all would set the same.
                let _ = address.set(symbols.address(name).unwrap_or(0));
            }
        }
    }

    /// Compiles a number in the record.
    pub(super) fn load(&mut self, load: NumberLoad) -> Operand {
        let size = match load.kind {
            LoadKind::U8 => 1,
            LoadKind::U16 => 2,
            LoadKind::U32 => 4,
            LoadKind::U64 => 8,
            LoadKind::Nothing => return Operand::Const(0),
            _ => return self.push(Expr::Load(load)),
        };
        // No record is longer than a page; an offset far behind reads as nothing.
        if load.offset > u32::MAX / 2 {
            return Operand::Const(0);
        }
        Operand::Bits(BitSlice::new(load.offset, size))
    }

    /// Returns the test `bits == value`, where the operand is one.
    pub(super) fn as_test(&self, operand: Operand) -> Option<(BitSlice, u64)> {
        match operand {
            Operand::Node(id) => match self.nodes.get(index_of(id)) {
                Some(Expr::Equals(bits, value)) => Some((*bits, *value)),
                _ => None,
            },
            _ => None,
        }
    }

    fn eval_node(&self, id: u32, record: &[u8]) -> u64 {
        let Some(expr) = self.nodes.get(index_of(id)) else {
            return 0;
        };
        match *expr {
            Expr::Equals(bits, value) => u64::from(bits.read(record) == value),
            Expr::Load(load) => load.kind.read(record, index_of(load.offset)),
            Expr::Unsigned(BinOp::LogAnd, a, b) => {
                u64::from(self.eval(a, record) != 0 && self.eval(b, record) != 0)
            }
            Expr::Unsigned(BinOp::LogOr, a, b) => {
                u64::from(self.eval(a, record) != 0 || self.eval(b, record) != 0)
            }
            Expr::Unsigned(op, a, b) => {
                unsigned_binary(op, self.eval(a, record), self.eval(b, record))
            }
            Expr::Signed(op, a, b) => {
                let [a, b] = [a, b].map(|of| self.eval(of, record).cast_signed());
                signed_binary(op, a, b).cast_unsigned()
            }
            Expr::Invert(a) => !self.eval(a, record),
            Expr::Negate(a) => self.eval(a, record).wrapping_neg(),
            Expr::LogNot(a) => u64::from(self.eval(a, record) == 0),
            Expr::Wrap(bits, signed, a) => wrap(bits, signed, self.eval(a, record)),
            Expr::Cond(c, a, b) => {
                let chosen = if self.eval(c, record) != 0 { a } else { b };
                self.eval(chosen, record)
            }
            Expr::Element(offset, size, kind, index) => {
                let at = self.eval(index, record).wrapping_mul(u64::from(size));
                read_at(kind, record, u64::from(offset).wrapping_add(at))
            }
            Expr::DynamicElement(locator, step, kind, index) => {
                let at = self.eval(index, record).wrapping_mul(u64::from(step));
                let start = locator.resolve(record).0 as u64;
                read_at(kind, record, start.wrapping_add(at))
            }
            Expr::DynamicLen(locator) => locator.resolve(record).1 as u64,
            Expr::Swap(bytes, a) => swap(bytes, self.eval(a, record)),
            Expr::Symbol(symbol) => {
                let address = self.symbols.get(index_of(symbol)).and_then(|s| s.1.get());
                address.copied().unwrap_or(0)
            }
        }
    }
}

/// Reads a number at an offset that came out of arithmetic: libtraceevent keeps 32 bits of it.
fn read_at(kind: LoadKind, record: &[u8], offset: u64) -> u64 {
    kind.read(record, (offset & 0xffff_ffff) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endian;

    #[test]
    fn constants_are_worked_out_when_compiled() {
        let mut exprs = Exprs::default();
        let c = Operand::Const;
        assert_eq!(exprs.push(Expr::Unsigned(BinOp::Shl, c(1), c(11))), c(2048));
        assert_eq!(exprs.push(Expr::Unsigned(BinOp::Div, c(1), c(0))), c(0));
        assert_eq!(
            exprs.push(Expr::Signed(
                BinOp::Div,
                c(i64::MIN.cast_unsigned()),
                c(u64::MAX)
            )),
            c(0)
        );
        assert_eq!(exprs.push(Expr::Signed(BinOp::Lt, c(u64::MAX), c(0))), c(1));
        assert_eq!(
            exprs.push(Expr::Unsigned(BinOp::Lt, c(u64::MAX), c(0))),
            c(0)
        );
    }

    #[test]
    fn shifts_masks_and_casts_become_one_read() {
        let mut exprs = Exprs::default();
        let load = |exprs: &mut Exprs, size| {
            exprs.load(NumberLoad {
                offset: 1,
                kind: LoadKind::new(size, false, Endian::Little),
            })
        };
        let record = [0xff, 0x78, 0x56, 0x34, 0x12, 0, 0, 0];
        let word = load(&mut exprs, 4);
        assert_eq!(exprs.eval(word, &record), 0x1234_5678);
        let shifted = exprs.push(Expr::Unsigned(BinOp::Shr, word, Operand::Const(8)));
        let masked = exprs.push(Expr::Unsigned(BinOp::And, shifted, Operand::Const(0xfff)));
        let cut = exprs.push(Expr::Wrap(8, false, masked));
        assert_eq!(exprs.eval(shifted, &record), 0x0012_3456);
        assert_eq!(exprs.eval(masked, &record), 0x456);
        assert_eq!(exprs.eval(cut, &record), 0x56);
        assert_eq!((shifted.width(), masked.width(), cut.width()), (24, 12, 8));
        assert!(exprs.nodes.is_empty());
        // What the record does not hold reads as 0.
        let long = [&[0; 8][..], &record].concat();
        let behind = exprs.load(NumberLoad {
            offset: 9,
            kind: LoadKind::U32,
        });
        assert_eq!(exprs.eval(behind, &long), 0x1234_5678);
        assert_eq!(exprs.eval(behind, &long[..12]), 0);
        assert_eq!(exprs.eval(word, &[]), 0);
        let far = exprs.push(Expr::Unsigned(BinOp::Shr, shifted, Operand::Const(63)));
        assert_eq!(exprs.eval(far, &record), 0);
    }
}
