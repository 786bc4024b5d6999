//! From the tree to the steps: conversions and their arguments.

use super::ast::{AstNode, BinOp, FormatAst, Id, ValueName, number_prefix};
use super::load::{LoadKind, Locator, NumberLoad};
use super::operand::{Expr, Operand};
use super::parser::{Dialect, MAX_DEPTH, ParsedFormat};
use super::printf::{PrintfPart, Spec, split};
use super::program::{
    Action, ConversionKind, FormWidth, HexDump, NameTable, PoolRange, PrintStep, Program,
    RecordBytes, TextSource,
};
use super::text::PADDING;
use super::types::is_array;
use crate::cast::index;
use crate::{Abi, Diagnostic, FieldKind, FormatField};

/// Appends to a list of tables, sources or forms, and returns the index. These are referred to by 16 bits, the highest
/// of which means none; no format has more than a few.
fn put<T>(list: &mut Vec<T>, item: T) -> Option<u16> {
    let index = u16::try_from(list.len()).ok();
    let index = index.filter(|index| *index < u16::MAX)?;
    list.push(item);
    Some(index)
}

/// Compiles one line.
pub(super) struct Compiler<'a> {
    pub(super) tree: &'a FormatAst,
    pub(super) fields: &'a [FormatField],
    pub(super) abi: Abi,
    pub(super) dialect: Dialect,
    pub(super) program: Program,
    pub(super) notes: Vec<Diagnostic>,
    pending: Vec<u8>,
}

/// Compiles a parsed line.
///
/// # Errors
/// In the tool's dialect: says what libtraceevent 1.7.1 cannot print of the line.
pub(super) fn compile(
    line: &ParsedFormat,
    fields: &[FormatField],
    abi: Abi,
) -> Result<(Program, Vec<Diagnostic>), String> {
    let parts = split(&line.format, line.dialect, abi.long_size)?;
    let mut compiler = Compiler {
        tree: &line.tree,
        fields,
        abi,
        dialect: line.dialect,
        program: Program {
            kernel: line.dialect == Dialect::C,
            abi,
            ..Program::default()
        },
        notes: Vec::new(),
        pending: Vec::new(),
    };
    let mut args = line.args.iter().copied();
    for part in &parts {
        match part {
            PrintfPart::Literal(text) => {
                compiler.literal(text);
                compiler
                    .program
                    .pieces
                    .push(ConversionKind::Literal(text.ends_with(b"0x")));
            }
            PrintfPart::Conversion(spec, extension) => {
                compiler.conversion(spec, extension, &mut args)?;
            }
        }
    }
    compiler.flush();
    super::blocks::merge(&mut compiler.program);
    compiler.program.pool.extend([0; PADDING]);
    Ok((compiler.program, compiler.notes))
}

impl Compiler<'_> {
    pub(super) fn note(&mut self, what: impl Into<String>) {
        if self.notes.len() < 32 {
            self.notes.push(Diagnostic::new(what));
        }
    }

    /// Puts a string into the pool.
    pub(super) fn pooled(&mut self, text: &[u8]) -> PoolRange {
        let at = index(self.program.pool.len());
        self.program.pool.extend_from_slice(text);
        PoolRange {
            at,
            len: index(text.len()),
        }
    }

    /// Appends literal text; it goes out with the next step.
    fn literal(&mut self, text: &[u8]) {
        self.pending.extend_from_slice(text);
    }

    /// Makes a step; literal text that waits goes before it.
    pub(super) fn action(&mut self, action: Action) {
        let mut text = std::mem::take(&mut self.pending);
        if text.len() > 16 {
            let long = self.pooled(&text);
            self.program
                .steps
                .push(PrintStep::new(&[], Action::Literal(long)));
            text.clear();
        }
        if !(text.is_empty() && matches!(action, Action::Nothing)) {
            self.program.steps.push(PrintStep::new(&text, action));
        }
    }

    /// Makes a step of literal text that waits for one.
    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.action(Action::Nothing);
        }
    }

    /// Returns the index of the step that comes next; literal text that waits goes before it.
    fn label(&mut self) -> u32 {
        self.flush();
        index(self.program.steps.len())
    }

    fn conversion(
        &mut self,
        spec: &Spec,
        extension: &str,
        args: &mut impl Iterator<Item = Id>,
    ) -> Result<(), String> {
        let mut missing = false;
        let mut next = || {
            let id = args.next();
            missing |= id.is_none();
            id
        };
        let width = if spec.stars.width { next() } else { None };
        let precision = if spec.stars.precision { next() } else { None };
        let id = next();
        if missing && self.dialect == Dialect::Tool {
            return Err("a conversion has no argument".to_owned());
        }
        let unknown = |node: &AstNode| matches!(node, AstNode::Unknown(items) if items.is_empty());
        let Some(id) = id.filter(|id| !unknown(self.tree.node(*id))) else {
            self.note("a conversion has no argument that is known");
            self.literal(b"?");
            return Ok(());
        };
        let width = width.map(|id| self.number(id).0);
        let precision = precision.map(|id| self.number(id).0);
        let form = FormWidth {
            spec: *spec,
            width,
            precision,
        };
        let first = self.program.steps.len();
        match spec.conversion {
            b's' => self.text(id, &form, 0),
            b'p' => self.pointer(id, &form, extension)?,
            _ => self.numeric(id, &form),
        }
        self.piece(id, first);
        Ok(())
    }

    /// Notes for [`super::raw`] which field the conversion prints that was just compiled.
    fn piece(&mut self, id: Id, first: usize) {
        let info = match *self.tree.node(self.tree.uncast(id)) {
            AstNode::Field(Some(field)) => {
                let action = match self.program.steps.get(first..) {
                    Some(
                        [
                            PrintStep {
                                action: Action::Literal(_),
                                ..
                            },
                            step,
                        ]
                        | [step],
                    ) => Some(step.action),
                    _ => None,
                };
                ConversionKind::Field(field, action)
            }
            _ => ConversionKind::Other,
        };
        self.program.pieces.push(info);
    }

    /// Compiles `%d` and its kin.
    fn numeric(&mut self, id: Id, form: &FormWidth) {
        let operand = self.number(id).0;
        let spec = &form.spec;
        let plain = spec.is_plain();
        let cut = |c: &mut Self| {
            c.program
                .exprs
                .push(Expr::Wrap(spec.bits, false, operand))
                .into()
        };
        // So many digits at least, where that is all the format asks for.
        let digits = match spec.width {
            _ if plain => Some(1),
            Some(width @ 1..) if spec.is_zero_padded() => u8::try_from(width).ok(),
            _ => None,
        };
        let action = match (spec.conversion, digits) {
            (b'u', Some(digits @ ..=8)) => Action::Unsigned(cut(self), digits),
            (b'd', Some(digits @ ..=8)) => Action::Signed(operand.into(), spec.bits, digits),
            (b'x', Some(digits @ ..=16)) => Action::Hex(cut(self), digits),
            (b'x', None) if spec.is_prefixed() => Action::Prefixed(cut(self), spec.kernel),
            _ => match self.form(form) {
                Some(form) => Action::Number(operand.into(), form),
                None => Action::Signed(operand.into(), spec.bits, 1),
            },
        };
        self.action(action);
    }

    /// Keeps a form, and returns its index.
    fn form(&mut self, form: &FormWidth) -> Option<u16> {
        put(&mut self.program.forms, *form)
    }

    /// Makes a step that prints a source in a form.
    pub(super) fn source(&mut self, source: TextSource, form: &FormWidth) {
        let form = if form.spec.is_plain() {
            None
        } else {
            self.form(form)
        };
        let Some(index) = put(&mut self.program.sources, source) else {
            return;
        };
        self.action(Action::Text(index, form.unwrap_or(u16::MAX)));
    }

    /// Keeps a table, and returns its index.
    fn table(&mut self, entries: &[ValueName]) -> u16 {
        let entries = entries
            .iter()
            .map(|e| {
                let name = self.string(&e.name);
                (e.value, name)
            })
            .collect();
        put(&mut self.program.tables, NameTable::new(entries)).unwrap_or(0)
    }

    /// Puts a string literal of an argument into the pool.
    fn string(&mut self, text: &str) -> PoolRange {
        let text = self.unescaped(text);
        self.pooled(&text)
    }

    /// Resolves the escapes of a string literal of an argument.
    ///
    /// libtraceevent resolves escapes in the format only; the compiler that made the kernel, everywhere.
    fn unescaped(&self, text: &str) -> Vec<u8> {
        if self.dialect == Dialect::C && text.contains('\\') {
            let parts = split(&text.replace('%', "%%"), Dialect::C, 8).unwrap_or_default();
            if let [PrintfPart::Literal(text)] = parts.as_slice() {
                return text.clone();
            }
        }
        text.as_bytes().to_vec()
    }

    /// Compiles an argument of `%s`.
    pub(super) fn text(&mut self, id: Id, form: &FormWidth, depth: u32) {
        if depth > MAX_DEPTH {
            return self.note("nested too deeply");
        }
        let tool = self.dialect == Dialect::Tool;
        match self.tree.node(id) {
            AstNode::Cond { cond, then, other } => self.choice(*cond, *then, *other, form, depth),
            AstNode::Atom(text) if !tool && text.starts_with(|c: char| c.is_ascii_digit()) => {
                let (operand, _) = self.number(id);
                self.source(TextSource::Decimal(operand), form);
            }
            AstNode::Text(text) | AstNode::Atom(text) | AstNode::Char(text) => {
                self.constant(text, form)
            }
            AstNode::Field(Some(field)) => self.text_field(*field, form),
            AstNode::Flags { .. }
            | AstNode::Symbolic { .. }
            | AstNode::Hex { .. }
            | AstNode::Array { .. }
            | AstNode::HexDump(_) => self.helper(id, form),
            AstNode::Str(Some(field)) => match self.locator(*field) {
                Some(locator) if form.spec.is_plain() => self.action(Action::Dynamic(locator)),
                Some(locator) => self.source(TextSource::Dynamic(locator), form),
                // An array in place where a dynamic one is meant.
                None => self.text_field(*field, form),
            },
            AstNode::Bitmask(Some(field)) => {
                let data = self.field_bytes(*field);
                self.source(TextSource::Bitmask(data, None), form);
            }
            AstNode::Cpumask(Some(field)) => {
                let data = self.field_bytes(*field);
                self.source(TextSource::CpuList(data, None), form);
            }
            // libtraceevent prints nothing for these.
            _ if tool => {}
            AstNode::Dynamic(field) => match self.locator(*field) {
                Some(locator) => {
                    self.source(TextSource::Chars(RecordBytes::Dynamic(locator)), form)
                }
                None => self.text_field(*field, form),
            },
            AstNode::Cast { item, .. } => self.text(*item, form, depth + 1),
            AstNode::Unknown(items) => match items.as_slice() {
                // At the top this is looked for before; here it is a branch.
                [] => self.literal(b"?"),
                [item] => self.text(*item, form, depth + 1),
                items => self.named(items, form, depth),
            },
            _ => {
                let (operand, ty) = self.number(id);
                let source = if ty.signed {
                    TextSource::Decimal(operand)
                } else if ty.bits == 64 {
                    TextSource::HexNumber(operand)
                } else {
                    TextSource::UnsignedDecimal(operand)
                };
                self.source(source, form);
            }
        }
    }

    /// Compiles a text that is the same for every record.
    fn constant(&mut self, text: &str, form: &FormWidth) {
        if form.spec.is_plain() {
            let text = self.unescaped(text);
            // What `%s` prints ends at a NUL, which only an escape could have put there.
            self.literal(super::text::until_nul(&text));
        } else {
            let text = self.string(text);
            self.source(TextSource::Literal(text), form);
        }
    }

    /// Compiles a call of a `__print_` helper.
    fn helper(&mut self, id: Id, form: &FormWidth) {
        let source = match self.tree.node(id) {
            AstNode::Flags {
                value,
                delim,
                table,
            } => {
                let operand = self.number(*value).0;
                let delim = self.string(delim);
                TextSource::Flags(operand, delim, self.table(table))
            }
            AstNode::Symbolic { value, table } => {
                let operand = self.number(*value).0;
                let table = self.table(table);
                if form.spec.is_plain() {
                    return self.action(Action::Name(operand.into(), table));
                }
                TextSource::Name(operand, table)
            }
            AstNode::Hex { data, len, apart } => {
                let len = self.number(*len).0;
                let data = self.bytes(*data);
                TextSource::Hex {
                    data,
                    len,
                    apart: *apart,
                }
            }
            AstNode::Array {
                data,
                count,
                element,
            } => {
                let (count, element) = (self.number(*count).0, self.number(*element).0);
                let data = self.bytes(*data);
                TextSource::Array {
                    data,
                    count,
                    element,
                }
            }
            AstNode::HexDump(dump) => {
                let prefix = match self.tree.node(dump.prefix) {
                    AstNode::Text(text) => self.string(text),
                    _ => PoolRange::default(),
                };
                let [row, group, len, ascii] =
                    [dump.row, dump.group, dump.len, dump.ascii].map(|id| self.number(id).0);
                TextSource::HexDump(HexDump {
                    prefix,
                    offsets: dump.offsets,
                    row,
                    group,
                    data: self.bytes(dump.data),
                    len,
                    ascii,
                })
            }
            _ => return,
        };
        self.source(source, form);
    }

    /// Compiles what stands in an argument that is not understood: its values, fields with their names.
    fn named(&mut self, items: &[Id], form: &FormWidth, depth: u32) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.literal(b" ");
            }
            if let AstNode::Field(Some(field)) = *self.tree.node(self.tree.uncast(*item)) {
                self.literal(self.fields[field].name.clone().as_bytes());
                self.literal(b"=");
            }
            self.text(*item, form, depth + 1);
        }
    }

    /// Compiles `cond ? then : other` as an argument of `%s`.
    fn choice(&mut self, cond: Id, then: Option<Id>, other: Id, form: &FormWidth, depth: u32) {
        if let (Some(then), AstNode::Unary { op: b'!', item }) = (then, self.tree.node(cond))
            && depth < MAX_DEPTH
        {
            return self.choice(*item, Some(other), then, form, depth + 1);
        }
        let then = then.unwrap_or(cond);
        let both = matches!(
            self.tree.node(cond),
            AstNode::Binary {
                op: BinOp::LogAnd,
                ..
            }
        );
        if !both {
            let operand = self.number(cond).0;
            if let Operand::Const(value) = operand {
                return self.text(if value != 0 { then } else { other }, form, depth + 1);
            }
            if form.spec.is_plain()
                && let (AstNode::Text(a), AstNode::Text(b)) =
                    (self.tree.node(then), self.tree.node(other))
            {
                let (a, b) = (self.string(a), self.string(b));
                return self.action(Action::Choice(operand.into(), a, b));
            }
        }
        let mut branches = Vec::new();
        self.branch(cond, &mut branches, depth);
        self.text(then, form, depth + 1);
        self.action(Action::Jump(0));
        let leave = self.program.steps.len() - 1;
        let otherwise = self.label();
        for at in branches {
            match &mut self.program.steps[at].action {
                Action::JumpUnless(_, _, target) | Action::JumpIfZero(_, target) => {
                    *target = otherwise;
                }
                _ => {}
            }
        }
        self.text(other, form, depth + 1);
        let end = self.label();
        self.program.steps[leave].action = Action::Jump(end);
    }

    /// Makes the jumps to where a condition that is not met leads; their targets are put in later.
    fn branch(&mut self, cond: Id, branches: &mut Vec<usize>, depth: u32) {
        if let AstNode::Binary {
            op: BinOp::LogAnd,
            left,
            right,
            ..
        } = *self.tree.node(cond)
            && depth < MAX_DEPTH
        {
            self.branch(left, branches, depth + 1);
            return self.branch(right, branches, depth + 1);
        }
        let operand = self.number(cond).0;
        self.action(match self.program.exprs.as_test(operand) {
            Some((bits, value)) => Action::JumpUnless(bits, value, 0),
            None => Action::JumpIfZero(operand.into(), 0),
        });
        branches.push(self.program.steps.len() - 1);
    }

    /// Compiles a field as an argument of `%s`.
    fn text_field(&mut self, index: usize, form: &FormWidth) {
        let field = &self.fields[index];
        let tool = self.dialect == Dialect::Tool;
        if !is_array(field) && field.size == u32::from(self.abi.long_size) {
            let kind = LoadKind::new(field.size, false, self.abi.endian);
            let load = NumberLoad {
                offset: field.offset,
                kind,
            };
            return self.source(TextSource::Address(load), form);
        }
        if !is_array(field) && !tool {
            let (operand, ty) = self.field_number(index);
            let source = if ty.signed {
                TextSource::Decimal(operand)
            } else {
                TextSource::UnsignedDecimal(operand)
            };
            return self.source(source, form);
        }
        let data = match field.kind {
            FieldKind::DataLoc { .. } | FieldKind::RelLoc { .. } if tool => {
                RecordBytes::Fixed(field.offset, field.size)
            }
            _ => self.field_bytes(index),
        };
        match data {
            RecordBytes::Fixed(offset, 16) if form.spec.is_plain() => {
                self.action(Action::Comm(offset))
            }
            RecordBytes::Fixed(offset, len) if form.spec.is_plain() => {
                self.action(Action::Chars(offset, len));
            }
            data => self.source(TextSource::Chars(data), form),
        }
    }

    /// Returns where a field's bytes lie: its own, or those its locator points to.
    pub(super) fn field_bytes(&self, index: usize) -> RecordBytes {
        let field = &self.fields[index];
        match self.locator(index) {
            Some(locator) => RecordBytes::Dynamic(locator),
            None if field.size == 0 => RecordBytes::Rest(field.offset),
            None => RecordBytes::Fixed(field.offset, field.size),
        }
    }

    /// Returns where the bytes lie an argument stands for.
    pub(super) fn bytes(&self, id: Id) -> RecordBytes {
        match self.tree.node(self.tree.uncast(id)) {
            AstNode::Field(Some(field)) | AstNode::Dynamic(field) => self.field_bytes(*field),
            AstNode::Str(Some(field)) | AstNode::Bitmask(Some(field)) => self.field_bytes(*field),
            AstNode::Unknown(items) if items.first().is_some_and(|item| *item < id) => {
                self.bytes(items[0])
            }
            _ => RecordBytes::Fixed(0, 0),
        }
    }

    /// Returns the locator of a dynamic field.
    pub(super) fn locator(&self, index: usize) -> Option<Locator> {
        Locator::of(&self.fields[index], self.abi.endian)
    }

    /// Returns the value of a number or name in the text.
    pub(super) fn atom(&mut self, text: &str) -> u64 {
        if let Some(value) = super::ast::known_enumerator(text)
            && self.dialect == Dialect::C
        {
            return value.cast_unsigned();
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            self.note(format!("the value of {text} is not known"));
        }
        number_prefix(text)
    }
}
