//! Runs a compiled line over a record.

use super::blocks::MAX_BLOCK;
use super::load::Locator;
use super::operand::Operand;
use super::printf::{Spec, put_number, put_padded};
use super::program::{Action, FormWidth, PoolRange, Program, RecordBytes};
use super::style::PrintStyle;
use super::text::{
    PADDING, block_at, decimal_at, hex_at, hex_exactly, length_in_block, put_hex, put_pooled,
    put_string, until_nul,
};
use super::value::FlatOperand;
use crate::cast::int;
use crate::index_of;
use crate::{FormatCatalog, FormatText};

/// A line that is this long is not continued, in bytes: the kernel's own are at most a page.
pub(super) const MAX_LINE: usize = 64 << 10;

/// Room that a step takes up at most that is run in it: its own text, the longest block, and what the next step goes
/// over.
const STEP: usize = 16 + MAX_BLOCK as usize + 64;

/// What comes behind a step.
enum StepSequel {
    /// The step behind it.
    Step,
    /// The step of that index.
    Jump(u32),
    /// The step itself once more, but for its literal text, by [`ProgramRun::action`].
    Again,
}

/// A program, the record it runs over, and what surrounds them.
#[derive(Clone, Copy)]
pub(super) struct ProgramRun<'a> {
    pub(super) program: &'a Program,
    pub(super) record: &'a [u8],
    pub(super) env: &'a FormatCatalog,
    pub(super) style: PrintStyle,
}

impl<'a> ProgramRun<'a> {
    /// Appends the line.
    #[inline(never)]
    pub(super) fn line(&self, out: &mut FormatText) {
        let steps = &self.program.steps[..];
        let mut rest = steps;
        let full = out.len() + MAX_LINE;
        while !rest.is_empty() && out.len() <= full {
            // Most steps write into a window of known size, so that one look says that there is room for all of them.
            let left = full - out.len();
            let room = out.room(STEP);
            let most = room.len().min(left + STEP);
            let room = room.get_mut(..most).unwrap_or_default();
            let mut at = 0;
            let mut again = None;
            // Jumps go forward only, so every step runs at most once.
            while let Some((step, behind)) = rest.split_first()
                && let Some(window) = room.get_mut(at..)
                && let Some(window) = window.first_chunk_mut::<STEP>()
            {
                rest = behind;
                block_at(window, 0, &step.text);
                let mut written = usize::from(step.len);
                let next = self.quick(&step.action, window, &mut written);
                at += written;
                match next {
                    StepSequel::Step => {}
                    StepSequel::Jump(target) => {
                        let behind = steps.len() - behind.len();
                        rest = steps.get((index_of(target)).max(behind)..).unwrap_or(&[]);
                    }
                    StepSequel::Again => {
                        again = Some(&step.action);
                        break;
                    }
                }
            }
            out.advance(at);
            if let Some(action) = again {
                self.action(action, out);
            }
        }
    }

    /// Prints what an action prints to a place in a window, in which there is room for any that is not handed on.
    #[inline(always)]
    fn quick(&self, action: &Action, room: &mut [u8; STEP], at: &mut usize) -> StepSequel {
        match action {
            Action::Unsigned(value, width) => {
                *at += decimal_at(room, *at, self.value(value), u32::from(*width));
            }
            Action::Signed(value, bits, width) => {
                let shift = (64 - u32::from(*bits)) & 63;
                let value = (self.value(value) << shift).cast_signed() >> shift;
                block_at(room, *at, b"-");
                let minus = u32::from(value < 0);
                *at += index_of(minus);
                let width = u32::from(*width).saturating_sub(minus);
                *at += decimal_at(room, *at, value.unsigned_abs(), width);
            }
            Action::Hex(value, width) => {
                *at += hex_at(room, *at, self.value(value), u32::from(*width));
            }
            Action::Prefixed(value, zero) => {
                let value = self.value(value);
                if value != 0 || *zero {
                    block_at(room, *at, b"0x");
                    *at += 2;
                }
                *at += hex_at(room, *at, value, 1);
            }
            Action::Block(block, first, last) => {
                let len = index_of(block.len);
                let pool = self.program.pool.get(index_of(block.at)..);
                match pool.and_then(|pool| pool.first_chunk::<PADDING>()) {
                    Some(text) if len <= PADDING => block_at(room, *at, text),
                    _ => {
                        if let Some(place) = room.get_mut(*at..*at + len) {
                            place.copy_from_slice(self.pool(*block));
                        }
                    }
                }
                self.patch(*first, *last, room.get_mut(*at..).unwrap_or_default());
                *at += len;
            }
            Action::Comm(offset) => {
                let chars = self.record.get(index_of(*offset)..);
                let Some(chars) = chars.and_then(|r| r.first_chunk::<16>()) else {
                    return StepSequel::Again;
                };
                block_at(room, *at, chars);
                *at += length_in_block(chars);
            }
            Action::Name(value, table) => {
                let table = self.program.tables.get(usize::from(*table));
                match table.and_then(|t| t.lookup(self.value(value))) {
                    Some(name) => return self.string_at(room, at, name),
                    None => return StepSequel::Again,
                }
            }
            Action::Choice(value, then, other) => {
                let chosen = if self.value(value) != 0 { then } else { other };
                return self.string_at(room, at, *chosen);
            }
            Action::Literal(text) => return self.string_at(room, at, *text),
            Action::JumpUnless(bits, value, target) => {
                if bits.read(self.record) != *value {
                    return StepSequel::Jump(*target);
                }
            }
            Action::JumpIfZero(value, target) => {
                if self.value(value) == 0 {
                    return StepSequel::Jump(*target);
                }
            }
            Action::Jump(target) => return StepSequel::Jump(*target),
            Action::Nothing => {}
            Action::Number(..)
            | Action::Pointer(_)
            | Action::Symbol(..)
            | Action::Chars(..)
            | Action::Dynamic(_)
            | Action::Text(..) => return StepSequel::Again,
        }
        StepSequel::Step
    }

    /// Copies a string of the pool to a place in a window, if it is a short one.
    #[inline(always)]
    fn string_at(&self, room: &mut [u8; STEP], at: &mut usize, text: PoolRange) -> StepSequel {
        let pool = self.program.pool.get(index_of(text.at)..);
        match pool.and_then(|p| p.first_chunk::<32>()) {
            Some(string) if text.len <= 32 => {
                block_at(room, *at, string);
                *at += index_of(text.len);
                StepSequel::Step
            }
            _ => StepSequel::Again,
        }
    }

    /// Puts numbers into the text of a block.
    #[inline(always)]
    fn patch(&self, first: u32, last: u32, text: &mut [u8]) {
        let patches = self.program.patches.get(index_of(first)..last as usize);
        for patch in patches.unwrap_or(&[]) {
            let (at, digits) = (index_of(patch.at), u32::from(patch.digits));
            hex_exactly(text, at, self.value(&patch.value), digits);
        }
    }

    /// Prints what an action prints, apart from the literal text before it.
    pub(super) fn action(&self, action: &Action, out: &mut FormatText) {
        match action {
            Action::Name(value, table) => {
                let value = self.value(value);
                let table = self.program.tables.get(usize::from(*table));
                match table.and_then(|t| t.lookup(value)) {
                    Some(name) => self.pooled(out, name),
                    None => {
                        out.extend_from_slice(b"0x");
                        put_hex(out, value, 1);
                    }
                }
            }
            Action::Choice(value, then, other) => {
                let chosen = if self.value(value) != 0 { then } else { other };
                self.pooled(out, *chosen);
            }
            Action::Chars(offset, len) => {
                put_string(out, self.bytes(RecordBytes::Fixed(*offset, *len)));
            }
            Action::Dynamic(locator) => {
                out.extend_from_slice(self.dynamic(*locator).unwrap_or(&[]))
            }
            Action::Number(value, form) => {
                if let Some(form) = self.program.forms.get(usize::from(*form)) {
                    let mut value = self.value(value);
                    if form.spec.sized && self.style == PrintStyle::Perf {
                        // The libtraceevent of perf 6.1 skips the `z` of `%zu`.
                        value &= 0xffff_ffff;
                    }
                    put_number(out, value, &self.spec(form));
                }
            }
            Action::Pointer(value) => put_pointer(out, self.value(value)),
            Action::Symbol(value, offset) => self.symbol(self.value(value), *offset, out),
            Action::Text(source, form) => self.text(*source, *form, out),
            Action::Comm(offset) => put_string(out, self.bytes(RecordBytes::Fixed(*offset, 16))),
            Action::Literal(text) => self.pooled(out, *text),
            Action::Unsigned(..)
            | Action::Signed(..)
            | Action::Hex(..)
            | Action::Prefixed(..)
            | Action::Block(..) => {
                let mut at = 0;
                if let Some(window) = out.room(STEP).first_chunk_mut() {
                    self.quick(action, window, &mut at);
                }
                out.advance(at);
            }
            Action::Nothing | Action::Jump(_) | Action::JumpIfZero(..) | Action::JumpUnless(..) => {
            }
        }
    }

    #[inline(always)]
    fn value(&self, value: &FlatOperand) -> u64 {
        value.read(&self.program.exprs, self.record)
    }

    #[inline]
    pub(super) fn eval(&self, operand: Operand) -> u64 {
        self.program.exprs.eval(operand, self.record)
    }

    #[inline]
    pub(super) fn pooled(&self, out: &mut FormatText, text: PoolRange) {
        if text.len > 0 {
            put_pooled(
                out,
                &self.program.pool,
                index_of(text.at),
                index_of(text.len),
            );
        }
    }

    pub(super) fn pool(&self, text: PoolRange) -> &'a [u8] {
        let start = index_of(text.at);
        self.program
            .pool
            .get(start..start + index_of(text.len))
            .unwrap_or(&[])
    }

    /// Returns a form with what its stars stand for.
    fn spec(&self, form: &FormWidth) -> Spec {
        if form.width.is_none() && form.precision.is_none() {
            return form.spec;
        }
        let value = |operand: Operand| int(self.eval(operand));
        form.spec
            .with_stars(form.width.map(value), form.precision.map(value))
    }

    /// Returns the string a locator points to, up to its NUL whatever the locator says of its length.
    ///
    /// libtraceevent 1.7.1 prints none of length 0. That of perf 6.1 does not look.
    #[inline]
    pub(super) fn dynamic(&self, locator: Locator) -> Option<&'a [u8]> {
        let (start, len) = locator.resolve(self.record);
        if len == 0 && self.style == PrintStyle::TraceCmd {
            return None;
        }
        self.record.get(start..).map(until_nul)
    }

    /// Returns the bytes an address stands for, as many as the record holds.
    pub(super) fn bytes(&self, bytes: RecordBytes) -> &'a [u8] {
        let record = self.record;
        match bytes {
            RecordBytes::Fixed(offset, len) => {
                let end = (index_of(offset))
                    .saturating_add(index_of(len))
                    .min(record.len());
                record.get(index_of(offset)..end).unwrap_or(&[])
            }
            RecordBytes::Rest(offset) => record.get(index_of(offset)..).unwrap_or(&[]),
            RecordBytes::Dynamic(locator) => locator.bytes(record),
        }
    }

    /// Returns the record from where an address points to its end.
    pub(super) fn from(&self, bytes: RecordBytes) -> &'a [u8] {
        let start = match bytes {
            RecordBytes::Fixed(offset, _) | RecordBytes::Rest(offset) => index_of(offset),
            RecordBytes::Dynamic(locator) => locator.resolve(self.record).0,
        };
        self.record.get(start..).unwrap_or(&[])
    }

    /// Appends the name a table has for a number, or the number in hexadecimal.
    #[inline]
    pub(super) fn name(&self, operand: Operand, table: u16, spec: &Spec, out: &mut FormatText) {
        let value = self.eval(operand);
        match self
            .program
            .tables
            .get(usize::from(table))
            .and_then(|t| t.lookup(value))
        {
            Some(name) if spec.is_plain() => self.pooled(out, name),
            Some(name) => put_padded(out, self.pool(name), spec),
            None => {
                out.extend_from_slice(b"0x");
                put_hex(out, value, 1);
            }
        }
    }

    /// Appends the kernel function at an address, or the address.
    pub(super) fn symbol(&self, address: u64, offset: bool, out: &mut FormatText) {
        match self.env.kallsyms.lookup(address) {
            Some((name, into)) => {
                out.extend_from_slice(name.as_bytes());
                if offset {
                    out.extend_from_slice(b"+0x");
                    put_hex(out, into, 1);
                }
            }
            None => {
                out.extend_from_slice(b"0x");
                put_hex(out, address, 1);
            }
        }
    }

    #[inline(never)]
    fn text(&self, source: u16, form: u16, out: &mut FormatText) {
        let Some(source) = self.program.sources.get(usize::from(source)) else {
            return;
        };
        let spec = match self.program.forms.get(usize::from(form)) {
            Some(form) if form.spec.conversion == b's' => self.spec(form),
            _ => Spec::default(),
        };
        self.source(source, &spec, out);
    }
}

/// Appends an address the way glibc's `%p` does.
pub(super) fn put_pointer(out: &mut FormatText, address: u64) {
    if address == 0 {
        out.extend_from_slice(b"(nil)");
    } else {
        out.extend_from_slice(b"0x");
        put_hex(out, address, 1);
    }
}
