//! Expressions of numbers, from the tree to what [`super::expr`] evaluates.

use super::ast::{AstNode, BinOp, Id};
use super::compile::Compiler;
use super::load::{LoadKind, NumberLoad};
use super::operand::{Expr, Operand};
use super::parser::{Dialect, MAX_DEPTH};
use super::strict::char_value;
use super::types::{Ty, cast_type, field_type, is_array, tool_cast, tool_element_size};
use crate::FieldKind;

impl Compiler<'_> {
    /// Compiles a number; returns it and its C type (in the tool's dialect always unsigned 64-bit).
    pub(super) fn number(&mut self, id: Id) -> (Operand, Ty) {
        match self.dialect {
            Dialect::Tool => (self.tool_number(id, 0), Ty::U64),
            Dialect::C => self.c_number(id, 0),
        }
    }

    /// Compiles a field that is a number.
    pub(super) fn field_number(&mut self, index: usize) -> (Operand, Ty) {
        let field = &self.fields[index];
        let ty = field_type(field);
        let signed = ty.signed && self.dialect == Dialect::C;
        let kind = LoadKind::new(field.size, signed, self.abi.endian);
        if kind == LoadKind::Nothing {
            return (Operand::Const(0), Ty::U64);
        }
        (
            self.program.exprs.load(NumberLoad {
                offset: field.offset,
                kind,
            }),
            ty,
        )
    }

    fn tool_number(&mut self, id: Id, depth: u32) -> Operand {
        if depth > MAX_DEPTH {
            self.note("nested too deeply");
            return Operand::Const(0);
        }
        let depth = depth + 1;
        match self.tree.node(id) {
            AstNode::Atom(text) => {
                let text = text.clone();
                match self.atom(&text) {
                    // What is no number may be a kernel symbol: `vmemmap_base`.
                    0 if !text.starts_with(|c: char| c.is_ascii_digit()) => {
                        self.program.exprs.symbol(&text)
                    }
                    value => Operand::Const(value),
                }
            }
            AstNode::Text(text) | AstNode::Char(text) => {
                Operand::Const(super::ast::number_prefix(text))
            }
            AstNode::Field(Some(field)) => self.field_number(*field).0,
            AstNode::Cast { ctype, item } => {
                let value = self.tool_number(*item, depth);
                match tool_cast(u64::MAX, ctype) {
                    u64::MAX => value,
                    mask => self.program.exprs.push(Expr::Unsigned(
                        BinOp::And,
                        value,
                        Operand::Const(mask),
                    )),
                }
            }
            AstNode::Unary { op, item } => {
                let (op, value) = (*op, self.tool_number(*item, depth));
                self.program.exprs.push(match op {
                    b'!' => Expr::LogNot(value),
                    b'~' => Expr::Invert(value),
                    b'-' => Expr::Negate(value),
                    _ => return value,
                })
            }
            AstNode::Binary {
                op, left, right, ..
            } => {
                let op = *op;
                let (left, right) = (
                    self.tool_number(*left, depth),
                    self.tool_number(*right, depth),
                );
                self.program.exprs.push(Expr::Unsigned(op, left, right))
            }
            AstNode::Index { base, index } => {
                let (base, index) = (*base, self.tool_number(*index, depth));
                self.tool_element(base, index)
            }
            AstNode::Cond { cond, then, other } => {
                let (cond, then, other) = (*cond, *then, *other);
                let cond = self.tool_number(cond, depth);
                let then = then.map_or(cond, |then| self.tool_number(then, depth));
                let other = self.tool_number(other, depth);
                self.program.exprs.push(Expr::Cond(cond, then, other))
            }
            AstNode::DynamicLen(field) => match self.locator(*field) {
                Some(locator) => self.program.exprs.push(Expr::DynamicLen(locator)),
                None => Operand::Const(0),
            },
            // Text, and addresses in the reader's memory.
            _ => Operand::Const(0),
        }
    }

    /// Compiles `base[index]` the way libtraceevent reads it: the type of a cast cuts the element, but the
    /// index of a dynamic array counts bytes.
    fn tool_element(&mut self, base: Id, index: Operand) -> Operand {
        let cast = match self.tree.node(base) {
            AstNode::Cast { ctype, .. } => ctype.strip_suffix(" *").map(|t| tool_cast(u64::MAX, t)),
            _ => None,
        };
        let element = match *self.tree.node(self.tree.uncast(base)) {
            AstNode::Dynamic(field) => {
                let size = match tool_element_size(&self.fields[field], self.abi) {
                    0 => u32::from(self.abi.long_size),
                    size => size,
                };
                let kind = LoadKind::new(size, false, self.abi.endian);
                match self.locator(field) {
                    Some(at) => self
                        .program
                        .exprs
                        .push(Expr::DynamicElement(at, 1, kind, index)),
                    None => return Operand::Const(0),
                }
            }
            AstNode::Field(Some(field)) => {
                let size = tool_element_size(&self.fields[field], self.abi);
                let kind = LoadKind::new(size, false, self.abi.endian);
                self.fixed_element(self.fields[field].offset, size, kind, index)
            }
            _ => {
                self.note("an index into what is no array");
                return Operand::Const(0);
            }
        };
        match cast {
            None | Some(u64::MAX) => element,
            Some(mask) => {
                self.program
                    .exprs
                    .push(Expr::Unsigned(BinOp::And, element, Operand::Const(mask)))
            }
        }
    }

    /// Compiles an element of an array in place; where the index is a constant, a plain load.
    fn fixed_element(&mut self, offset: u32, size: u32, kind: LoadKind, index: Operand) -> Operand {
        if let Operand::Const(index) = index
            && let Ok(index) = u32::try_from(index)
            && let Some(at) = index
                .checked_mul(size)
                .and_then(|at| at.checked_add(offset))
        {
            return self.program.exprs.load(NumberLoad { offset: at, kind });
        }
        self.program
            .exprs
            .push(Expr::Element(offset, size, kind, index))
    }

    fn c_number(&mut self, id: Id, depth: u32) -> (Operand, Ty) {
        if depth > MAX_DEPTH {
            self.note("nested too deeply");
            return (Operand::Const(0), Ty::INT);
        }
        let depth = depth + 1;
        match self.tree.node(id) {
            AstNode::Atom(text) => {
                let text = text.clone();
                let value = self.atom(&text);
                (Operand::Const(value), literal_type(&text, value))
            }
            AstNode::Char(text) => (Operand::Const(u64::from(char_value(text))), Ty::INT),
            AstNode::Field(Some(field)) => self.field_number(*field),
            AstNode::Cast { ctype, item } => {
                let ctype = ctype.clone();
                let (value, _) = self.c_number(*item, depth);
                match cast_type(&ctype, self.abi) {
                    Some(ty) => (self.wrapped(value, ty), ty),
                    None => (value, Ty::U64),
                }
            }
            AstNode::Unary { op, item } => {
                let op = *op;
                let (value, ty) = self.c_number(*item, depth);
                let ty = ty.promoted();
                let expr = match op {
                    b'!' => return (self.program.exprs.push(Expr::LogNot(value)), Ty::INT),
                    b'~' => Expr::Invert(value),
                    b'-' => Expr::Negate(value),
                    _ => return (value, ty),
                };
                let value = self.program.exprs.push(expr);
                (self.wrapped(value, ty), ty)
            }
            AstNode::Binary {
                op, left, right, ..
            } => {
                let op = *op;
                let (left, right) = (self.c_number(*left, depth), self.c_number(*right, depth));
                self.c_binary(op, left, right)
            }
            AstNode::Index { base, index } => {
                let base = *base;
                let (index, _) = self.c_number(*index, depth);
                self.c_element(base, index)
            }
            AstNode::Cond { cond, then, other } => {
                let (cond, then, other) = (*cond, *then, *other);
                let cond = self.c_number(cond, depth);
                let (then, a) = then.map_or(cond, |then| self.c_number(then, depth));
                let (other, b) = self.c_number(other, depth);
                let ty = a.common(b);
                let (then, other) = (self.wrapped(then, ty), self.wrapped(other, ty));
                (self.program.exprs.push(Expr::Cond(cond.0, then, other)), ty)
            }
            AstNode::DynamicLen(field) => match self.locator(*field) {
                Some(locator) => (self.program.exprs.push(Expr::DynamicLen(locator)), Ty::INT),
                None => (Operand::Const(0), Ty::INT),
            },
            AstNode::Swap { bytes, item } => {
                let bytes = *bytes;
                let (value, _) = self.c_number(*item, depth);
                let ty = Ty {
                    bits: bytes * 8,
                    signed: false,
                };
                (self.program.exprs.push(Expr::Swap(bytes, value)), ty)
            }
            AstNode::Flags { value, .. } | AstNode::Symbolic { value, .. } => {
                self.c_number(*value, depth)
            }
            AstNode::Unknown(items) => match items.first() {
                Some(item) => self.c_number(*item, depth),
                None => (Operand::Const(0), Ty::INT),
            },
            _ => (Operand::Const(0), Ty::INT),
        }
    }

    /// Cuts a number to a type.
    fn wrapped(&mut self, value: Operand, ty: Ty) -> Operand {
        if ty.bits == 64 {
            return value;
        }
        self.program
            .exprs
            .push(Expr::Wrap(ty.bits, ty.signed, value))
    }

    fn c_binary(&mut self, op: BinOp, left: (Operand, Ty), right: (Operand, Ty)) -> (Operand, Ty) {
        let ty = match op {
            BinOp::LogAnd | BinOp::LogOr => {
                let value = self.program.exprs.push(Expr::Unsigned(op, left.0, right.0));
                return (value, Ty::INT);
            }
            BinOp::Shl | BinOp::Shr => left.1.promoted(),
            _ => left.1.common(right.1),
        };
        let a = self.wrapped(left.0, ty);
        let b = if matches!(op, BinOp::Shl | BinOp::Shr) {
            right.0
        } else {
            self.wrapped(right.0, ty)
        };
        let value = self.program.exprs.push(if ty.signed {
            Expr::Signed(op, a, b)
        } else {
            Expr::Unsigned(op, a, b)
        });
        match op {
            BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge | BinOp::Eq | BinOp::Ne => {
                (value, Ty::INT)
            }
            BinOp::And | BinOp::Or | BinOp::Xor => (value, ty),
            _ => (self.wrapped(value, ty), ty),
        }
    }

    fn c_element(&mut self, base: Id, index: Operand) -> (Operand, Ty) {
        let cast = match self.tree.node(base) {
            AstNode::Cast { ctype, .. } => ctype
                .strip_suffix(" *")
                .and_then(|t| cast_type(t, self.abi)),
            _ => None,
        };
        let (AstNode::Field(Some(index_of)) | AstNode::Dynamic(index_of)) =
            *self.tree.node(self.tree.uncast(base))
        else {
            self.note("an index into what is no array");
            return (Operand::Const(0), Ty::INT);
        };
        let field = &self.fields[index_of];
        if !is_array(field) {
            self.note("an index into what is no array");
            return (Operand::Const(0), Ty::INT);
        }
        let (FieldKind::Array { element }
        | FieldKind::DataLoc { element }
        | FieldKind::RelLoc { element }) = field.kind
        else {
            return (Operand::Const(0), Ty::INT);
        };
        let own = Ty {
            bits: u8::try_from(element.clamp(1, 8) * 8).unwrap_or(64),
            signed: field.signed,
        };
        let ty = cast.unwrap_or(own);
        let size = u32::from(ty.bits / 8);
        let kind = LoadKind::new(size, ty.signed, self.abi.endian);
        let element = match self.locator(index_of) {
            Some(at) => self
                .program
                .exprs
                .push(Expr::DynamicElement(at, size, kind, index)),
            None => self.fixed_element(field.offset, size, kind, index),
        };
        (element, ty)
    }
}

/// Returns the type of a number in the text by its value and suffix (C11 6.4.4.1).
fn literal_type(text: &str, value: u64) -> Ty {
    let suffix = text.trim_start_matches(|c: char| !matches!(c, 'u' | 'U' | 'l' | 'L'));
    let unsigned = suffix.contains(['u', 'U']);
    let long = suffix.contains(['l', 'L']);
    let decimal = !text.starts_with('0');
    let fits = |max: u64| value <= max;
    let bits =
        if long || !fits(u64::from(u32::MAX)) || (decimal && !unsigned && !fits(i32::MAX as u64)) {
            64
        } else {
            32
        };
    let top = if bits == 64 {
        i64::MAX as u64
    } else {
        i32::MAX as u64
    };
    Ty {
        bits,
        signed: !unsigned && fits(top),
    }
}
