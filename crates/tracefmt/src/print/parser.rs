//! From the text behind `print fmt:` to a tree: what both ways of reading it share.
//!
//! The text is C, but what users hold our output against is what libtraceevent makes of it, and that reads
//! some C differently (see [`super::tool`]). So a text is first read the way libtraceevent 1.7.1 does. Where
//! that fails it is read as C (see [`super::strict`]), which prints what the kernel itself prints.

use super::ast::{AstNode, FormatAst, Id, ValueName, known_enumerator, number_prefix};
use super::lexer::{FormatToken, Lexer};
use super::types::{is_array, type_size};
use crate::{Abi, Diagnostic, FormatField};
use std::collections::HashMap;

/// How deep operators, parentheses and calls may be nested; real formats stay below twenty.
pub(super) const MAX_DEPTH: u32 = 200;

/// The longest text that is read, in bytes: what a record costs to print grows with it. Real ones stay below
/// 16 KiB.
const MAX_TEXT: usize = 64 << 10;

/// How the text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    /// As libtraceevent 1.7.1 reads it: operators in its order, every number unsigned.
    Tool,
    /// As a C compiler reads it: the kernel's own text comes out.
    #[default]
    C,
}

/// Why a text cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) what: String,
}

pub(super) type ParserResult<T> = Result<T, Fault>;

/// What a text was parsed into.
#[derive(Debug, Default)]
pub(super) struct ParsedFormat {
    pub(super) dialect: Dialect,
    /// The printf format, escapes kept.
    pub(super) format: String,
    pub(super) tree: FormatAst,
    /// Roots of the arguments behind the format.
    pub(super) args: Vec<Id>,
    pub(super) notes: Vec<Diagnostic>,
}

/// Reads one text; `token` is always the next token that has not been used.
pub(super) struct Parser<'t, 'f> {
    lexer: Lexer<'t>,
    pub(super) token: FormatToken<'t>,
    pub(super) token_at: usize,
    pub(super) tree: FormatAst,
    pub(super) fields: &'f [FormatField],
    /// The fields' indices by name; the first of equal names.
    by_name: HashMap<&'f str, usize>,
    pub(super) abi: Abi,
    pub(super) dialect: Dialect,
    pub(super) notes: Vec<Diagnostic>,
    depth: u32,
}

/// Parses a text in one dialect.
pub(super) fn parse(
    text: &str,
    fields: &[FormatField],
    abi: Abi,
    dialect: Dialect,
) -> ParserResult<ParsedFormat> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        token: FormatToken::End,
        token_at: 0,
        tree: FormatAst::default(),
        fields,
        by_name: fields
            .iter()
            .enumerate()
            .rev()
            .map(|(i, f)| (f.name.as_str(), i))
            .collect(),
        abi,
        dialect,
        notes: Vec::new(),
        depth: 0,
    };
    if text.len() > MAX_TEXT {
        return Err(Fault {
            at: MAX_TEXT,
            what: "the text is too long".to_owned(),
        });
    }
    if dialect == Dialect::Tool
        && let Some(at) = unprintable(text)
    {
        return Err(Fault {
            at,
            what: "a character in a string that does not print".to_owned(),
        });
    }
    parser.advance();
    let FormatToken::Text(format) = &parser.token else {
        return Err(parser.fault("expected a string literal"));
    };
    let format = format.clone().into_owned();
    parser.advance();
    let args = match (&parser.token, dialect) {
        (FormatToken::End, _) => Vec::new(),
        (FormatToken::Delim(b','), Dialect::Tool) => parser.tool_arguments()?,
        (FormatToken::Delim(b','), Dialect::C) => parser.arguments(),
        _ => return Err(parser.fault("expected a comma behind the format string")),
    };
    Ok(ParsedFormat {
        dialect,
        format,
        tree: parser.tree,
        args,
        notes: parser.notes,
    })
}

/// Returns where a string literal has a character that ends it for libtraceevent 1.7.1: a bare tab, or one
/// that is not ASCII.
fn unprintable(text: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text);
    loop {
        match lexer.next() {
            FormatToken::End => return None,
            FormatToken::Text(literal)
                if literal.bytes().any(|b| !matches!(b, 0x20..=0x7e | b'\n')) =>
            {
                return Some(lexer.position());
            }
            _ => {}
        }
    }
}

impl<'t> Parser<'t, '_> {
    /// Reads the next token.
    pub(super) fn advance(&mut self) {
        self.token_at = self.lexer.position();
        self.token = self.lexer.next();
    }

    /// Returns where reading stands, for [`Parser::restore`].
    pub(super) fn save(&self) -> (Lexer<'t>, FormatToken<'t>, usize) {
        (self.lexer.clone(), self.token.clone(), self.token_at)
    }

    /// Goes back to where [`Parser::save`] was.
    pub(super) fn restore(&mut self, state: (Lexer<'t>, FormatToken<'t>, usize)) {
        (self.lexer, self.token, self.token_at) = state;
    }

    pub(super) fn fault(&self, what: impl Into<String>) -> Fault {
        Fault {
            at: self.token_at,
            what: what.into(),
        }
    }

    pub(super) fn note(&mut self, what: impl Into<String>) {
        // One text cannot make more notes than it has tokens, but few are enough to tell.
        if self.notes.len() < 32 {
            self.notes.push(Diagnostic::at(self.token_at as u64, what));
        }
    }

    /// Runs `f` one level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        f: impl FnOnce(&mut Self) -> ParserResult<T>,
    ) -> ParserResult<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.fault("nested too deeply"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    pub(super) fn expect_delim(&mut self, delim: u8) -> ParserResult<()> {
        if !self.token.is_delim(delim) {
            return Err(self.fault(format!("expected '{}'", delim as char)));
        }
        self.advance();
        Ok(())
    }

    pub(super) fn expect_item(&mut self) -> ParserResult<&'t str> {
        let FormatToken::Item(name) = self.token else {
            return Err(self.fault("expected a name"));
        };
        self.advance();
        Ok(name)
    }

    pub(super) fn find_field(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Parses `->name`; `REC` has been read.
    pub(super) fn field_access(&mut self) -> ParserResult<Id> {
        if !self.token.is_op("->") {
            return Err(self.fault("expected '->' behind REC"));
        }
        self.advance();
        let name = self.expect_item()?;
        let field = self.find_field(name);
        if field.is_none() {
            self.note(format!("no field is named {name}"));
        }
        Ok(self.tree.push(AstNode::Field(field)))
    }

    /// Parses an expression up to a comma, parenthesis or brace, in the dialect's way.
    fn expression(&mut self) -> ParserResult<Id> {
        match self.dialect {
            Dialect::Tool => self.tool_expression(),
            Dialect::C => self.ternary(),
        }
    }

    /// Parses what is behind `name(`, up to and over the closing parenthesis.
    pub(super) fn call(&mut self, name: &str) -> ParserResult<Id> {
        let node = match name {
            "__print_flags" | "__print_flags_u64" => self.flags()?,
            "__print_symbolic" | "__print_symbolic_u64" => {
                let value = self.expression()?;
                let table = self.table()?;
                AstNode::Symbolic { value, table }
            }
            "__print_hex" | "__print_hex_str" => {
                let data = self.expression()?;
                self.expect_delim(b',')?;
                let len = self.expression()?;
                AstNode::Hex {
                    data,
                    len,
                    apart: name == "__print_hex",
                }
            }
            "__print_array" => {
                let data = self.expression()?;
                self.expect_delim(b',')?;
                let count = self.expression()?;
                self.expect_delim(b',')?;
                let element = self.expression()?;
                AstNode::Array {
                    data,
                    count,
                    element,
                }
            }
            "__get_str" | "__get_rel_str" => AstNode::Str(self.field_name()?),
            "__get_bitmask" | "__get_rel_bitmask" => AstNode::Bitmask(self.field_name()?),
            "__get_cpumask" | "__get_rel_cpumask" => AstNode::Cpumask(self.field_name()?),
            "__get_dynamic_array"
            | "__get_rel_dynamic_array"
            | "__get_sockaddr"
            | "__get_rel_sockaddr"
            | "__get_sockaddr_rel" => AstNode::Dynamic(self.array_name()?),
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                AstNode::DynamicLen(self.array_name()?)
            }
            "__builtin_expect" => {
                let id = self.expression()?;
                self.expect_delim(b',')?;
                self.expression()?;
                self.expect_delim(b')')?;
                return Ok(id);
            }
            "sizeof" => self.size_of()?,
            _ if self.dialect == Dialect::Tool => {
                return Err(self.fault(format!("function {name} is not known")));
            }
            _ => return self.kernel_call(name),
        };
        self.expect_delim(b')')?;
        if self.dialect == Dialect::Tool
            && matches!(node, AstNode::Dynamic(_))
            && self.token.is_op("[")
        {
            // libtraceevent means to take an index here, and then rejects every one.
            return Err(self.fault("an index behind a dynamic array"));
        }
        Ok(self.tree.push(node))
    }

    /// Parses the arguments of `__print_flags`.
    fn flags(&mut self) -> ParserResult<AstNode> {
        let value = self.expression()?;
        self.expect_delim(b',')?;
        let delim = match &self.token {
            FormatToken::Text(delim) => delim.clone().into_owned(),
            FormatToken::Item(delim) | FormatToken::Char(delim) => (*delim).to_owned(),
            _ => String::new(),
        };
        if !self.token.is_delim(b',') {
            self.advance();
        }
        let table = self.table()?;
        Ok(AstNode::Flags {
            value,
            delim,
            table,
        })
    }

    /// Parses the bare name of a field, as the `__get_` helpers take it.
    fn field_name(&mut self) -> ParserResult<Option<usize>> {
        let name = self.expect_item()?;
        let field = self.find_field(name);
        if field.is_none() {
            self.note(format!("no field is named {name}"));
        }
        Ok(field)
    }

    /// Parses the bare name of an array, which has to be a field.
    fn array_name(&mut self) -> ParserResult<usize> {
        let field = self.field_name()?;
        field.ok_or_else(|| self.fault("the array is no field"))
    }

    /// Parses `, { value, "name" }` as often as it comes.
    fn table(&mut self) -> ParserResult<Vec<ValueName>> {
        let mut table = Vec::new();
        while self.token.is_delim(b',') {
            self.advance();
            if !self.token.is_op("{") {
                // A trailing comma; anything else is found by who expects the parenthesis.
                break;
            }
            self.advance();
            if self.token.is_op("}") && self.dialect == Dialect::C {
                // The sentinel of an empty list.
                self.advance();
                continue;
            }
            let value = self.expression()?;
            let value = match self.dialect {
                Dialect::Tool => Some(self.tool_entry_value(value)?),
                Dialect::C => self.entry_value(value),
            };
            self.expect_delim(b',')?;
            let name = self.expression()?;
            // A list may end in `{ -1, ((void *)0) }`.
            let name = match self.tree.node(self.tree.uncast(name)) {
                AstNode::Text(name) | AstNode::Atom(name) | AstNode::Char(name) => name.clone(),
                _ => return Err(self.fault("expected a name in the table")),
            };
            if !self.token.is_op("}") {
                return Err(self.fault("expected '}'"));
            }
            self.advance();
            if let Some(value) = value {
                table.push(ValueName { value, name });
            }
        }
        Ok(table)
    }

    /// Parses the operand of `sizeof(` up to the closing parenthesis.
    ///
    /// libtraceevent 1.7.1 knows `int` and `long` with what may go before them, and fields that are no
    /// arrays.
    fn size_of(&mut self) -> ParserResult<AstNode> {
        let tool = self.dialect == Dialect::Tool;
        let mut words = Vec::new();
        while let FormatToken::Item(word) = self.token {
            self.advance();
            if word == "REC" {
                let field = self.field_access()?;
                return match *self.tree.node(field) {
                    AstNode::Field(Some(at)) if !(tool && is_array(&self.fields[at])) => {
                        Ok(AstNode::Atom(self.fields[at].size.to_string()))
                    }
                    _ => Err(self.fault("sizeof of what is no field, or an array")),
                };
            }
            words.push(word);
        }
        let mut pointer = false;
        while self.token.is_op("*") && !tool {
            self.advance();
            pointer = true;
        }
        let known = !tool
            || words
                .iter()
                .all(|w| matches!(*w, "unsigned" | "int" | "long"));
        let size = match pointer {
            true => Some(u32::from(self.abi.long_size)),
            false => type_size(&words, self.abi).filter(|_| known),
        };
        match size {
            Some(size) => Ok(AstNode::Atom(size.to_string())),
            None => Err(self.fault("sizeof of a type that is not known")),
        }
    }

    /// Returns the value of a table entry the way libtraceevent works it out when it parses: a number as
    /// far as one stands there, a known enumerator, and -1 for everything else.
    fn tool_entry_value(&self, id: Id) -> ParserResult<i64> {
        let id = self.tree.uncast(id);
        if let AstNode::Atom(text) | AstNode::Text(text) | AstNode::Char(text) = self.tree.node(id)
        {
            if text.starts_with(|c: char| c.is_ascii_digit()) {
                return Ok(number_prefix(text).cast_signed());
            }
            return Ok(known_enumerator(text).unwrap_or(-1));
        }
        // A sum that comes out negative is text beginning with '-', and so as good as unknown.
        let value = self.tool_constant(id, 0)?;
        Ok(if value < 0 { -1 } else { value })
    }
}
