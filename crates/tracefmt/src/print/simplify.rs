//! Expressions that come down to a constant or to bits of the record, when a line is compiled.

use super::arith::{signed_binary, swap, unsigned_binary};
use super::ast::BinOp;
use super::operand::{BitSlice, Expr, Operand};
use super::types::wrap;

/// Returns the operand an expression comes down to, where nothing is left to do but to read some bits.
pub(super) fn simplify(expr: &Expr) -> Option<Operand> {
    if let Some(value) = fold(expr) {
        return Some(Operand::Const(value));
    }
    match *expr {
        // No unsigned number is below 0; formats ask all the same, of signed fields.
        Expr::Unsigned(BinOp::Lt, _, Operand::Const(0)) => return Some(Operand::Const(0)),
        Expr::Unsigned(BinOp::Ge, _, Operand::Const(0)) => return Some(Operand::Const(1)),
        Expr::Cond(Operand::Const(cond), then, other) => {
            return Some(if cond != 0 { then } else { other });
        }
        _ => {}
    }
    let (operand, bits) = match *expr {
        Expr::Unsigned(_, operand @ Operand::Bits(bits), _) => (operand, bits),
        Expr::Wrap(_, _, operand @ Operand::Bits(bits)) => (operand, bits),
        _ => return None,
    };
    match *expr {
        Expr::Unsigned(BinOp::And, _, Operand::Const(mask)) => Some(Operand::Bits(BitSlice {
            mask: bits.mask & mask,
            ..bits
        })),
        Expr::Unsigned(BinOp::Shr, _, Operand::Const(count)) => {
            let count = u8::try_from(count).ok()?;
            let shift = bits.shift.checked_add(count).filter(|shift| *shift < 64)?;
            Some(Operand::Bits(BitSlice {
                shift,
                mask: bits.mask >> count,
                ..bits
            }))
        }
        Expr::Unsigned(BinOp::Add, _, Operand::Const(0)) => Some(operand),
        Expr::Wrap(width, signed, _) if operand.width() + u32::from(signed) <= u32::from(width) => {
            Some(operand)
        }
        Expr::Wrap(width @ 1..=64, false, _) => {
            let mask = u64::MAX >> (64 - width);
            Some(Operand::Bits(BitSlice {
                mask: bits.mask & mask,
                ..bits
            }))
        }
        _ => None,
    }
}

/// Returns the value of an expression whose operands are all constants.
fn fold(expr: &Expr) -> Option<u64> {
    use Operand::Const;
    Some(match *expr {
        Expr::Unsigned(op, Const(a), Const(b)) => unsigned_binary(op, a, b),
        Expr::Signed(op, Const(a), Const(b)) => {
            signed_binary(op, a.cast_signed(), b.cast_signed()).cast_unsigned()
        }
        Expr::Invert(Const(a)) => !a,
        Expr::Negate(Const(a)) => a.wrapping_neg(),
        Expr::LogNot(Const(a)) => u64::from(a == 0),
        Expr::Wrap(bits, signed, Const(a)) => wrap(bits, signed, a),
        Expr::Swap(bytes, Const(a)) => swap(bytes, a),
        _ => return None,
    })
}
