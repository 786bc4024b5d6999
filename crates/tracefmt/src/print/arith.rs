//! The arithmetic of print formats: 64 bits, wrapping, without traps.

use super::ast::BinOp;
use crate::cast::{low_16, low_32};

/// Swaps the low bytes of a number: 2, 4 or 8 of them.
pub(super) fn swap(bytes: u8, value: u64) -> u64 {
    match bytes {
        2 => u64::from(low_16(value).swap_bytes()),
        4 => u64::from(low_32(value).swap_bytes()),
        _ => value.swap_bytes(),
    }
}

/// Unsigned 64-bit arithmetic; division by zero gives 0, shifts take the low six bits of the count.
pub(super) fn unsigned_binary(op: BinOp, a: u64, b: u64) -> u64 {
    match op {
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div => a.checked_div(b).unwrap_or(0),
        BinOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Shl => a.wrapping_shl(low_32(b)),
        BinOp::Shr => a.wrapping_shr(low_32(b)),
        BinOp::Lt => u64::from(a < b),
        BinOp::Gt => u64::from(a > b),
        BinOp::Le => u64::from(a <= b),
        BinOp::Ge => u64::from(a >= b),
        BinOp::Eq => u64::from(a == b),
        BinOp::Ne => u64::from(a != b),
        BinOp::And => a & b,
        BinOp::Xor => a ^ b,
        BinOp::Or => a | b,
        BinOp::LogAnd => u64::from(a != 0 && b != 0),
        BinOp::LogOr => u64::from(a != 0 || b != 0),
    }
}

/// Signed 64-bit arithmetic; division by zero gives 0, shifts take the low six bits of the count.
pub(super) fn signed_binary(op: BinOp, a: i64, b: i64) -> i64 {
    match op {
        BinOp::Div => a.checked_div(b).unwrap_or(0),
        BinOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinOp::Shr => a.wrapping_shr(low_32(b.cast_unsigned())),
        BinOp::Lt => i64::from(a < b),
        BinOp::Gt => i64::from(a > b),
        BinOp::Le => i64::from(a <= b),
        BinOp::Ge => i64::from(a >= b),
        _ => unsigned_binary(op, a.cast_unsigned(), b.cast_unsigned()).cast_signed(),
    }
}
