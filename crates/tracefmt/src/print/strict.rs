//! Expressions as a C compiler reads them.
//!
//! Used for the texts libtraceevent gives up on. What even this cannot read costs only the argument it
//! stands in: that one shows the value of the first field in it.

use super::ast::{AstNode, BinOp, HexDumpCall, Id, known_enumerator, number_prefix};
use super::lexer::FormatToken;
use super::parser::{MAX_DEPTH, Parser, ParserResult};
use super::types::cast_type;
use super::types::type_size;

/// Of an argument that is not understood, so many fields are shown at most.
const MAX_SHOWN: usize = 16;

impl Parser<'_, '_> {
    /// Parses the arguments behind the format; a comma is the current token.
    pub(super) fn arguments(&mut self) -> Vec<Id> {
        let mut args = Vec::new();
        while self.token.is_delim(b',') {
            let before = self.save();
            self.advance();
            if self.token == FormatToken::End {
                break;
            }
            let parsed = self.ternary().and_then(|id| match self.token {
                FormatToken::End | FormatToken::Delim(b',') => Ok(id),
                _ => Err(self.fault("expected a comma")),
            });
            let id = match parsed {
                Ok(id) => id,
                Err(fault) => {
                    self.restore(before);
                    self.advance();
                    let shown = self.skip_argument();
                    self.note(format!(
                        "argument not understood, {} at byte {}",
                        fault.what, fault.at
                    ));
                    self.tree.push(AstNode::Unknown(shown))
                }
            };
            args.push(id);
        }
        args
    }

    /// Skips to the next comma outside of parentheses, and returns the fields on the way, each once.
    fn skip_argument(&mut self) -> Vec<Id> {
        let mut open = 0usize;
        let mut shown = Vec::new();
        let mut seen = Vec::new();
        loop {
            match self.token {
                FormatToken::End => return shown,
                FormatToken::Delim(b',') if open == 0 => return shown,
                FormatToken::Delim(b'(') | FormatToken::Op("{" | "[") => open += 1,
                FormatToken::Delim(b')') | FormatToken::Op("}" | "]") => {
                    open = open.saturating_sub(1)
                }
                FormatToken::Item("REC") => {
                    self.advance();
                    if self.token.is_op("->")
                        && let Ok(id) = self.field_access()
                        && let AstNode::Field(Some(field)) = *self.tree.node(id)
                        && seen.len() < MAX_SHOWN
                        && !seen.contains(&field)
                    {
                        seen.push(field);
                        shown.push(id);
                    }
                    continue;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Parses an expression up to, and with, `? :`.
    pub(super) fn ternary(&mut self) -> ParserResult<Id> {
        self.deeper(|p| {
            let cond = p.binary(BinOp::LogOr.rank())?;
            if !p.token.is_op("?") {
                return Ok(cond);
            }
            p.advance();
            let then = if p.token.is_op(":") {
                None
            } else {
                Some(p.ternary()?)
            };
            if !p.token.is_op(":") {
                return Err(p.fault("expected ':'"));
            }
            p.advance();
            let other = p.ternary()?;
            Ok(p.tree.push(AstNode::Cond { cond, then, other }))
        })
    }

    /// Parses operands joined by operators of rank `loosest` or tighter.
    fn binary(&mut self, loosest: i32) -> ParserResult<Id> {
        self.deeper(|p| {
            let mut left = p.unary()?;
            while let FormatToken::Op(text) = p.token
                && let Some(op) = BinOp::from_text(text)
                && op.rank() <= loosest
            {
                p.advance();
                let right = p.binary(op.rank() - 1)?;
                left = p.tree.push(AstNode::Binary {
                    op,
                    rank: op.rank(),
                    left,
                    right,
                });
            }
            Ok(left)
        })
    }

    fn unary(&mut self) -> ParserResult<Id> {
        self.deeper(|p| {
            let FormatToken::Op(op) = p.token else {
                return p.postfix();
            };
            match op {
                "~" | "!" | "-" | "+" => {
                    p.advance();
                    let item = p.unary()?;
                    Ok(p.tree.push(AstNode::Unary {
                        op: op.as_bytes()[0],
                        item,
                    }))
                }
                // Where an address is taken, the helper that gets it wants the field's bytes.
                "&" => {
                    p.advance();
                    p.unary()
                }
                _ => Err(p.fault(format!("operator {op} is not known here"))),
            }
        })
    }

    fn postfix(&mut self) -> ParserResult<Id> {
        let mut id = self.primary()?;
        while self.token.is_op("[") {
            self.advance();
            let index = self.ternary()?;
            if !self.token.is_op("]") {
                return Err(self.fault("expected ']'"));
            }
            self.advance();
            id = self.tree.push(AstNode::Index { base: id, index });
        }
        Ok(id)
    }

    fn primary(&mut self) -> ParserResult<Id> {
        match self.token.clone() {
            FormatToken::Item("REC") => {
                self.advance();
                self.field_access()
            }
            FormatToken::Item(word) => {
                self.advance();
                if self.token.is_delim(b'(') {
                    self.advance();
                    return self.call(word);
                }
                if !word.starts_with(|c: char| c.is_ascii_digit())
                    && known_enumerator(word).is_none()
                {
                    self.note(format!("the value of {word} is not known"));
                }
                Ok(self.tree.push(AstNode::Atom(word.to_owned())))
            }
            FormatToken::Text(text) => {
                self.advance();
                Ok(self.tree.push(AstNode::Text(text.into_owned())))
            }
            FormatToken::Char(text) => {
                self.advance();
                Ok(self.tree.push(AstNode::Char(text.to_owned())))
            }
            FormatToken::Delim(b'(') => {
                self.advance();
                if let Some(ctype) = self.cast() {
                    let item = self.unary()?;
                    return Ok(self.tree.push(AstNode::Cast { ctype, item }));
                }
                if self.token == FormatToken::Item("REC") {
                    let before = self.save();
                    self.advance();
                    if self.token.is_delim(b')') {
                        self.advance();
                        return self.field_access();
                    }
                    self.restore(before);
                }
                let id = self.ternary()?;
                self.expect_delim(b')')?;
                Ok(id)
            }
            _ => Err(self.fault("expected an operand")),
        }
    }

    /// Parses `type)` behind an opening parenthesis; where no cast stands there nothing is used up.
    fn cast(&mut self) -> Option<String> {
        let before = self.save();
        let mut name = String::new();
        let mut words = Vec::new();
        while let FormatToken::Item(word) = self.token {
            if word == "REC" {
                break;
            }
            words.push(word);
            self.advance();
        }
        let mut sure = type_size(&words, self.abi).is_some() && !words.is_empty();
        sure |= words
            .iter()
            .any(|w| matches!(*w, "struct" | "enum" | "union" | "const"));
        name.push_str(&words.join(" "));
        while self.token.is_op("*") && !words.is_empty() {
            name.push_str(" *");
            self.advance();
        }
        let closed = self.token.is_delim(b')') && !words.is_empty();
        if closed {
            self.advance();
            if self.token.starts_operand() || (sure && matches!(self.token, FormatToken::Op(_))) {
                return Some(name);
            }
        }
        self.restore(before);
        None
    }

    /// Parses the arguments of a call, from behind the parenthesis up to and over the closing one.
    fn call_arguments(&mut self) -> ParserResult<Vec<Id>> {
        let mut args = Vec::new();
        while !self.token.is_delim(b')') {
            args.push(self.ternary()?);
            if self.token.is_delim(b',') {
                self.advance();
            } else if !self.token.is_delim(b')') {
                return Err(self.fault("expected ',' or ')'"));
            }
        }
        self.advance();
        Ok(args)
    }

    /// Returns what a function computes of its argument and a constant.
    fn with_constant(&mut self, left: Id, op: BinOp, constant: &str) -> AstNode {
        let right = self.tree.push(AstNode::Atom(constant.to_owned()));
        AstNode::Binary {
            op,
            rank: op.rank(),
            left,
            right,
        }
    }

    /// Parses a call of a kernel function, from behind the parenthesis up to and over the closing one.
    pub(super) fn kernel_call(&mut self, name: &str) -> ParserResult<Id> {
        let args = self.call_arguments()?;
        let node = match (name, args.as_slice()) {
            ("__print_ns_to_secs", [ns]) => self.with_constant(*ns, BinOp::Div, "1000000000ULL"),
            ("__print_ns_without_secs", [ns]) => {
                self.with_constant(*ns, BinOp::Rem, "1000000000ULL")
            }
            ("__print_hex_dump", &[prefix, kind, row, group, data, len, ascii]) => {
                // `enum { DUMP_PREFIX_NONE, _ADDRESS, _OFFSET }`, as a name or resolved.
                let offsets = matches!(self.tree.node(kind),
                    AstNode::Atom(kind) if kind == "DUMP_PREFIX_OFFSET" || kind == "2");
                AstNode::HexDump(HexDumpCall {
                    prefix,
                    offsets,
                    row,
                    group,
                    data,
                    len,
                    ascii,
                })
            }
            ("__builtin_constant_p", [_]) => AstNode::Atom("0".to_owned()),
            ("__builtin_choose_expr", [cond, then, other]) => AstNode::Cond {
                cond: *cond,
                then: Some(*then),
                other: *other,
            },
            ("MAJOR", [dev]) => self.with_constant(*dev, BinOp::Shr, "20"),
            ("MINOR", [dev]) => self.with_constant(*dev, BinOp::And, "0xfffff"),
            (_, [item]) if swapped_bytes(name).is_some() => AstNode::Swap {
                bytes: swapped_bytes(name).unwrap_or(8),
                item: *item,
            },
            _ => {
                self.note(format!("function {name} is not known"));
                let mut shown = args.clone();
                shown.retain(|a| self.reads_record(*a, 0));
                if shown.is_empty() {
                    shown.extend(args.first());
                }
                AstNode::Unknown(shown)
            }
        };
        Ok(self.tree.push(node))
    }

    /// Returns whether a node's value comes from the record.
    fn reads_record(&self, id: Id, depth: u32) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let reads = |id: &Id| self.reads_record(*id, depth + 1);
        match self.tree.node(id) {
            AstNode::Field(_) | AstNode::Str(_) | AstNode::Dynamic(_) | AstNode::DynamicLen(_) => {
                true
            }
            AstNode::Cast { item, .. }
            | AstNode::Unary { item, .. }
            | AstNode::Swap { item, .. } => reads(item),
            AstNode::Binary { left, right, .. } => reads(left) || reads(right),
            AstNode::Index { base, .. } => reads(base),
            AstNode::Cond { cond, .. } => reads(cond),
            _ => false,
        }
    }

    /// Returns the value of a table's entry; `None`, and a note, where the kernel left a name in it.
    pub(super) fn entry_value(&mut self, id: Id) -> Option<i64> {
        let value = self.constant(id, 0);
        if value.is_none() {
            self.note("a table entry has no value that is known");
        }
        value
    }

    fn constant(&self, id: Id, depth: u32) -> Option<i64> {
        if depth > MAX_DEPTH {
            return None;
        }
        let value = |id: Id| self.constant(id, depth + 1);
        Some(match self.tree.node(id) {
            AstNode::Atom(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                number_prefix(text).cast_signed()
            }
            AstNode::Atom(text) => known_enumerator(text)?,
            AstNode::Char(text) => i64::from(char_value(text)),
            AstNode::Cast { ctype, item } => {
                let value = value(*item)?.cast_unsigned();
                let cut = cast_type(ctype, self.abi).map_or(value, |t| t.wrap(value));
                cut.cast_signed()
            }
            AstNode::Unary { op, item } => {
                let value = value(*item)?;
                match op {
                    b'-' => value.wrapping_neg(),
                    b'~' => !value,
                    b'!' => i64::from(value == 0),
                    _ => value,
                }
            }
            AstNode::Binary {
                op, left, right, ..
            } => super::arith::signed_binary(*op, value(*left)?, value(*right)?),
            AstNode::Cond { cond, then, other } => {
                let c = value(*cond)?;
                match (c != 0, then) {
                    (true, Some(then)) => value(*then)?,
                    (true, None) => c,
                    (false, _) => value(*other)?,
                }
            }
            _ => return None,
        })
    }
}

/// Returns how many bytes a byte-order helper swaps, for names of such helpers.
///
/// The recordings this is for come from little-endian machines, where network order is the other one.
fn swapped_bytes(name: &str) -> Option<u8> {
    let name = name.trim_start_matches('_');
    Some(match name {
        "ntohs" | "htons" | "be16_to_cpu" | "cpu_to_be16" | "builtin_bswap16" | "swab16" => 2,
        "ntohl" | "htonl" | "be32_to_cpu" | "cpu_to_be32" | "builtin_bswap32" | "swab32" => 4,
        "be64_to_cpu" | "cpu_to_be64" | "builtin_bswap64" | "swab64" => 8,
        _ => return None,
    })
}

/// Returns the value of a character literal.
pub(super) fn char_value(text: &str) -> u8 {
    match text.as_bytes() {
        [b'\\', b'n', ..] => b'\n',
        [b'\\', b't', ..] => b'\t',
        [b'\\', b'r', ..] => b'\r',
        [b'\\', b'0', ..] => 0,
        [b'\\', c, ..] => *c,
        [c, ..] => *c,
        [] => 0,
    }
}
