//! Operators in the order libtraceevent 1.7.1 takes them, which is not always C's.
//!
//! Found by reading its `event-parse.c` and by printing with trace-cmd 3.1.6; what differs from C:
//! - operators of one rank group from the right: `a - b - c` is `a - (b - c)`;
//! - of a ternary's last branch only the first operand belongs to it: `a ? b : c + d` is `(a ? b : c) + d`,
//!   and `a ? b : c ? d : e` is `(a ? b : c) ? d : e`;
//! - parentheses on the right of an operator lose to one that binds tighter: `a + (b & c)` is
//!   `(a + b) & c`.
//!
//! Our text has to equal the tool's, so the same happens here. What the tool gives up on is an error here
//! too, and then [`super::strict`] reads the text.

use super::ast::{AstNode, BinOp, Id};
use super::lexer::FormatToken;
use super::parser::{Parser, ParserResult};
use crate::cast::low_32;

impl Parser<'_, '_> {
    /// Parses the arguments behind the format; a comma is the current token.
    pub(super) fn tool_arguments(&mut self) -> ParserResult<Vec<Id>> {
        let mut args = Vec::new();
        loop {
            self.advance();
            if self.token == FormatToken::End {
                return Ok(args);
            }
            let id = self.tool_operand()?;
            args.push(id);
            if let FormatToken::Op(_) = self.token {
                self.tool_operator(id)?;
                if self.token == FormatToken::End {
                    return Ok(args);
                }
                // Whatever ends an argument with operators is taken for the comma.
                continue;
            }
            if !self.token.is_delim(b',') {
                return Ok(args);
            }
        }
    }

    /// Parses an operand and all operators behind it.
    pub(super) fn tool_expression(&mut self) -> ParserResult<Id> {
        let id = self.tool_operand()?;
        while let FormatToken::Op(op) = self.token {
            if matches!(op, "}" | "]" | ":") {
                break;
            }
            self.tool_operator(id)?;
        }
        Ok(id)
    }

    /// Parses one operand: a field, a number, a literal, a call, or what stands in parentheses.
    fn tool_operand(&mut self) -> ParserResult<Id> {
        self.deeper(|p| match p.token.clone() {
            FormatToken::Item("REC") => {
                p.advance();
                p.field_access()
            }
            FormatToken::Item(word) => {
                p.advance();
                if p.token.is_delim(b'(') {
                    p.advance();
                    return p.call(word);
                }
                let mut atom = word.to_owned();
                while let FormatToken::Item(more) = p.token {
                    atom.push(' ');
                    atom.push_str(more);
                    p.advance();
                }
                Ok(p.tree.push(AstNode::Atom(atom)))
            }
            FormatToken::Text(text) => {
                p.advance();
                Ok(p.tree.push(AstNode::Text(text.into_owned())))
            }
            FormatToken::Char(text) => {
                p.advance();
                Ok(p.tree.push(AstNode::Char(text.to_owned())))
            }
            FormatToken::Delim(b'(') => {
                p.advance();
                p.tool_parenthesis()
            }
            FormatToken::Op(op @ ("~" | "!" | "-" | "+")) => {
                p.advance();
                let item = p.tool_operand()?;
                let id = p.tree.push(AstNode::Unary {
                    op: op.as_bytes()[0],
                    item,
                });
                p.tool_rest(id, Some(item), 0)?;
                Ok(id)
            }
            _ => Err(p.fault("expected an operand")),
        })
    }

    /// Parses what is behind `(`: an expression, a type to cast to, or `REC)->field`.
    fn tool_parenthesis(&mut self) -> ParserResult<Id> {
        if self.token == FormatToken::Item("REC") {
            self.advance();
            if self.token.is_delim(b')') {
                self.advance();
                return self.field_access();
            }
            let id = self.field_access()?;
            return self.tool_close(id);
        }
        let id = self.tool_operand()?;
        self.tool_close(id)
    }

    /// Parses the operators behind the first operand in parentheses, `)`, and the operand of a cast.
    fn tool_close(&mut self, id: Id) -> ParserResult<Id> {
        if let FormatToken::Op(_) = self.token {
            self.tool_operator(id)?;
        }
        self.expect_delim(b')')?;
        if self.token.starts_operand() {
            let AstNode::Atom(ctype) = self.tree.node(id).clone() else {
                return Err(self.fault("expected a type in the parentheses of a cast"));
            };
            let item = self.tool_operand()?;
            self.tree.set(id, AstNode::Cast { ctype, item });
        }
        Ok(id)
    }

    /// Applies the operator at the current token to the node `id`, which becomes the operator's node.
    fn tool_operator(&mut self, id: Id) -> ParserResult<()> {
        self.deeper(|p| p.tool_operator_inner(id))
    }

    fn tool_operator_inner(&mut self, id: Id) -> ParserResult<()> {
        let FormatToken::Op(text) = self.token else {
            return Err(self.fault("expected an operator"));
        };
        match text {
            "?" => {
                let node = self.tree.take(id);
                let cond = self.tree.push(node);
                self.advance();
                let then = self.tool_expression()?;
                if !self.token.is_op(":") {
                    return Err(self.fault("expected ':'"));
                }
                self.advance();
                let other = self.tool_operand()?;
                self.tree.set(
                    id,
                    AstNode::Cond {
                        cond,
                        then: Some(then),
                        other,
                    },
                );
                self.tool_rest(id, None, 0)
            }
            "[" => {
                let node = self.tree.take(id);
                let base = self.tree.push(node);
                self.advance();
                let index = self.tool_operand()?;
                if !self.token.is_op("]") {
                    return Err(self.fault("expected ']'"));
                }
                self.advance();
                self.tree.set(id, AstNode::Index { base, index });
                self.tool_rest(id, None, 0)
            }
            _ => {
                let Some(op) = BinOp::from_text(text) else {
                    return Err(self.fault(format!("operator {text} is not known here")));
                };
                self.tool_binary(id, op)
            }
        }
    }

    fn tool_binary(&mut self, id: Id, op: BinOp) -> ParserResult<()> {
        let node = self.tree.take(id);
        self.advance();
        if op == BinOp::Mul && self.token.is_delim(b')') {
            // `(struct x *)`: a pointer type, and no product.
            let AstNode::Atom(mut name) = node else {
                return Err(self.fault("expected a pointer type"));
            };
            name.push_str(" *");
            self.tree.set(id, AstNode::Atom(name));
            return Ok(());
        }
        let left = self.tree.push(node);
        let right = self.tool_operand()?;
        let rank = op.rank();
        if rank < self.rank_of(right) {
            // What came from the right binds looser and takes over; this operator gets its left operand.
            let (node, inner, outer_rank) = self.taking_over(right)?;
            self.tree.set(id, node);
            self.tree.set(
                right,
                AstNode::Binary {
                    op,
                    rank,
                    left,
                    right: inner,
                },
            );
            return self.tool_rest(id, Some(right), outer_rank);
        }
        self.tree.set(
            id,
            AstNode::Binary {
                op,
                rank,
                left,
                right,
            },
        );
        self.tool_rest(id, Some(right), rank)
    }

    /// Takes what stands at `right` out of the tree. Returns it with `right` itself as its left operand, the operand
    /// that was there, and its rank.
    fn taking_over(&mut self, right: Id) -> ParserResult<(AstNode, Id, i32)> {
        Ok(match self.tree.take(right) {
            AstNode::Binary {
                op,
                rank,
                left: inner,
                right: last,
            } => (
                AstNode::Binary {
                    op,
                    rank,
                    left: right,
                    right: last,
                },
                inner,
                rank,
            ),
            AstNode::Cond { cond, then, other } => (
                AstNode::Cond {
                    cond: right,
                    then,
                    other,
                },
                cond,
                0,
            ),
            AstNode::Unary { op, item } => {
                let null = self.tree.push(AstNode::Null);
                let op = if op == b'-' { BinOp::Sub } else { BinOp::Add };
                (
                    AstNode::Binary {
                        op,
                        rank: 0,
                        left: right,
                        right: item,
                    },
                    null,
                    0,
                )
            }
            other => return Err(self.fault(format!("operator before {other:?}"))),
        })
    }

    /// Applies a further operator: to the whole node `id` when it binds looser than `rank`, else to the
    /// operand on its right.
    fn tool_rest(&mut self, id: Id, right: Option<Id>, rank: i32) -> ParserResult<()> {
        let FormatToken::Op(text) = self.token else {
            return Ok(());
        };
        let next = match text {
            ":" => return Ok(()),
            "?" => 16,
            "~" | "!" => 4,
            "++" | "--" => 3,
            _ => BinOp::from_text(text).map_or(-1, BinOp::rank),
        };
        match right {
            _ if next > rank => self.tool_operator(id),
            Some(right) => self.tool_operator(right),
            None => Err(self.fault(format!("operator {text} is not known here"))),
        }
    }

    /// Returns the rank libtraceevent compares a right operand by; low for what is no operator.
    fn rank_of(&self, id: Id) -> i32 {
        match self.tree.node(id) {
            AstNode::Binary { op, .. } => op.rank(),
            AstNode::Unary {
                op: b'-' | b'+', ..
            } => 7,
            AstNode::Unary { .. } => 4,
            AstNode::Cond { .. } => 16,
            _ => -1,
        }
    }

    /// Returns the value of a table entry written with operators; unknown names count as 0.
    ///
    /// Only the operators libtraceevent evaluates there are taken.
    pub(super) fn tool_constant(&self, id: Id, depth: u32) -> ParserResult<i64> {
        if depth > super::parser::MAX_DEPTH {
            return Err(self.fault("nested too deeply"));
        }
        let value = |id| self.tool_constant(id, depth + 1);
        Ok(match self.tree.node(id) {
            AstNode::Atom(text) | AstNode::Text(text) | AstNode::Char(text) => {
                super::ast::number_prefix(text).cast_signed()
            }
            AstNode::Cast { ctype, item } => {
                super::types::tool_cast(value(*item)?.cast_unsigned(), ctype).cast_signed()
            }
            AstNode::Unary { op: b'-', item } => value(*item)?.wrapping_neg(),
            AstNode::Unary { op: b'+', item } => value(*item)?,
            AstNode::Unary { op: b'~', item } => !value(*item)?,
            AstNode::Binary {
                op, left, right, ..
            } => {
                let (a, b) = (value(*left)?, value(*right)?);
                match op {
                    BinOp::Or => a | b,
                    BinOp::LogOr => i64::from(a != 0 || b != 0),
                    BinOp::And => a & b,
                    BinOp::LogAnd => i64::from(a != 0 && b != 0),
                    BinOp::Lt => i64::from(a < b),
                    BinOp::Le => i64::from(a <= b),
                    BinOp::Gt => i64::from(a > b),
                    BinOp::Ge => i64::from(a >= b),
                    BinOp::Shl => a.wrapping_shl(low_32(b.cast_unsigned())),
                    BinOp::Shr => a.wrapping_shr(low_32(b.cast_unsigned())),
                    BinOp::Eq => i64::from(a == b),
                    BinOp::Ne => i64::from(a != b),
                    BinOp::Sub => a.wrapping_sub(b),
                    BinOp::Add => a.wrapping_add(b),
                    _ => return Err(self.fault("operator is not known in a table")),
                }
            }
            _ => return Err(self.fault("expected a constant in a table")),
        })
    }
}
