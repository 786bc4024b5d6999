//! Numbers read from a record: the compiled form of expressions, and their evaluation.

use super::ast::BinOp;
use super::types::wrap;
use crate::{Endian, Field, FieldKind, Kallsyms};
use std::sync::OnceLock;

/// How a number lies in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
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
            LoadKind::I8 => i64::from(get::<1>(record, offset)[0] as i8) as u64,
            LoadKind::I16 => i64::from(i16::from_le_bytes(get(record, offset))) as u64,
            LoadKind::I32 => i64::from(i32::from_le_bytes(get(record, offset))) as u64,
            LoadKind::BigU16 => u64::from(u16::from_be_bytes(get(record, offset))),
            LoadKind::BigU32 => u64::from(u32::from_be_bytes(get(record, offset))),
            LoadKind::BigU64 => u64::from_be_bytes(get(record, offset)),
            LoadKind::BigI16 => i64::from(i16::from_be_bytes(get(record, offset))) as u64,
            LoadKind::BigI32 => i64::from(i32::from_be_bytes(get(record, offset))) as u64,
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
    pub(super) fn of(field: &Field, endian: Endian) -> Option<Locator> {
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
        let (at, size) = (self.offset as usize, self.size as usize);
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

/// Some bits of an unsigned little-endian number in the record: `(eight bytes >> shift) & mask`.
///
/// Nearly all numbers formats print are of this kind, and they take one unaligned read of eight bytes
/// whatever their size: those that end where the number ends, so that it does not matter what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    start: u32,
    shift: u8,
    mask: u64,
}

impl Bits {
    /// Returns the bits that make up a number of 1, 2, 4 or 8 bytes.
    fn new(offset: u32, size: u32) -> Bits {
        let mask = u64::MAX >> (64 - 8 * size);
        match (offset + size).checked_sub(8) {
            Some(start) => Bits {
                start,
                shift: (64 - 8 * size) as u8,
                mask,
            },
            // One of the common fields, which are eight bytes together.
            None => Bits {
                start: 0,
                shift: (8 * offset) as u8,
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
fn read_eight(record: &[u8], start: u32) -> Option<u64> {
    let start = start as usize;
    let bytes = record.get(start..start + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

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

/// A number: a constant, bits of a field, or the result of the node of that index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Const(u64),
    Bits(Bits),
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

/// What is done with operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expr {
    /// Unsigned arithmetic and comparison of 64-bit numbers.
    Unsigned(BinOp, Operand, Operand),
    /// Signed arithmetic and comparison of 64-bit numbers.
    Signed(BinOp, Operand, Operand),
    /// `field == constant`: the question formats ask most often.
    Equals(Bits, u64),
    /// A signed or big-endian number.
    Load(Load),
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
        Operand::Node((self.nodes.len() - 1) as u32)
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
        self.push(Expr::Symbol(self.symbols.len() as u32 - 1))
    }

    /// Looks up the kernel symbols the line names, the first time there are any symbols at all.
    #[inline]
    pub(super) fn resolve(&self, symbols: &Kallsyms) {
        for (name, address) in &self.symbols {
            if address.get().is_none() && !symbols.is_empty() {
                // Only one thread gets to set it, and all would set the same.
                let _ = address.set(symbols.address(name).unwrap_or(0));
            }
        }
    }

    /// Compiles a number in the record.
    pub(super) fn load(&mut self, load: Load) -> Operand {
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
        Operand::Bits(Bits::new(load.offset, size))
    }

    /// Returns the test `bits == value`, where the operand is one.
    pub(super) fn as_test(&self, operand: Operand) -> Option<(Bits, u64)> {
        match operand {
            Operand::Node(id) => match self.nodes.get(id as usize) {
                Some(Expr::Equals(bits, value)) => Some((*bits, *value)),
                _ => None,
            },
            _ => None,
        }
    }

    fn eval_node(&self, id: u32, record: &[u8]) -> u64 {
        let Some(expr) = self.nodes.get(id as usize) else {
            return 0;
        };
        match *expr {
            Expr::Equals(bits, value) => u64::from(bits.read(record) == value),
            Expr::Load(load) => load.kind.read(record, load.offset as usize),
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
                signed_binary(op, self.eval(a, record) as i64, self.eval(b, record) as i64) as u64
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
                let address = self.symbols.get(symbol as usize).and_then(|s| s.1.get());
                address.copied().unwrap_or(0)
            }
        }
    }
}

/// Reads a number at an offset that came out of arithmetic: libtraceevent keeps 32 bits of it.
fn read_at(kind: LoadKind, record: &[u8], offset: u64) -> u64 {
    kind.read(record, (offset & 0xffff_ffff) as usize)
}

fn swap(bytes: u8, value: u64) -> u64 {
    match bytes {
        2 => u64::from((value as u16).swap_bytes()),
        4 => u64::from((value as u32).swap_bytes()),
        _ => value.swap_bytes(),
    }
}

/// Returns the operand an expression comes down to, where nothing is left to do but to read some bits.
fn simplify(expr: &Expr) -> Option<Operand> {
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
        Expr::Unsigned(BinOp::And, _, Operand::Const(mask)) => Some(Operand::Bits(Bits {
            mask: bits.mask & mask,
            ..bits
        })),
        Expr::Unsigned(BinOp::Shr, _, Operand::Const(count))
            if u64::from(bits.shift) + count < 64 =>
        {
            let count = count as u8;
            Some(Operand::Bits(Bits {
                shift: bits.shift + count,
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
            Some(Operand::Bits(Bits {
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
        Expr::Signed(op, Const(a), Const(b)) => signed_binary(op, a as i64, b as i64) as u64,
        Expr::Invert(Const(a)) => !a,
        Expr::Negate(Const(a)) => a.wrapping_neg(),
        Expr::LogNot(Const(a)) => u64::from(a == 0),
        Expr::Wrap(bits, signed, Const(a)) => wrap(bits, signed, a),
        Expr::Swap(bytes, Const(a)) => swap(bytes, a),
        _ => return None,
    })
}

/// Unsigned 64-bit arithmetic; division by zero gives 0, shifts take the low six bits of the count.
pub(super) fn unsigned_binary(op: BinOp, a: u64, b: u64) -> u64 {
    match op {
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div => a.checked_div(b).unwrap_or(0),
        BinOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Shl => a.wrapping_shl(b as u32),
        BinOp::Shr => a.wrapping_shr(b as u32),
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
        BinOp::Shr => a.wrapping_shr(b as u32),
        BinOp::Lt => i64::from(a < b),
        BinOp::Gt => i64::from(a > b),
        BinOp::Le => i64::from(a <= b),
        BinOp::Ge => i64::from(a >= b),
        _ => unsigned_binary(op, a as u64, b as u64) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_worked_out_when_compiled() {
        let mut exprs = Exprs::default();
        let c = Operand::Const;
        assert_eq!(exprs.push(Expr::Unsigned(BinOp::Shl, c(1), c(11))), c(2048));
        assert_eq!(exprs.push(Expr::Unsigned(BinOp::Div, c(1), c(0))), c(0));
        assert_eq!(
            exprs.push(Expr::Signed(BinOp::Div, c(i64::MIN as u64), c(u64::MAX))),
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
            exprs.load(Load {
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
        let behind = exprs.load(Load {
            offset: 9,
            kind: LoadKind::U32,
        });
        assert_eq!(exprs.eval(behind, &long), 0x1234_5678);
        assert_eq!(exprs.eval(behind, &long[..12]), 0);
        assert_eq!(exprs.eval(word, &[]), 0);
        let far = exprs.push(Expr::Unsigned(BinOp::Shr, shifted, Operand::Const(63)));
        assert_eq!(exprs.eval(far, &record), 0);
    }

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
