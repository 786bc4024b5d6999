//! Runs a compiled line over a record.

use super::load::Locator;
use super::operand::Operand;
use super::printf::{Spec, put_number, put_padded};
use super::program::{Action, Bytes, Form, Pooled, Program, Step};
use super::style::PrintStyle;
use super::text::{
    block_at, decimal_at, hex_at, hex_exactly, length_in_block, put_hex, put_pooled, put_string,
    put_text, until_nul, window,
};
use super::value::Value;
use crate::Formats;
use crate::cast::int;

/// A line that is this long is not continued, in bytes: the kernel's own are at most a page.
pub(super) const MAX_LINE: usize = 64 << 10;

/// A program, the record it runs over, and what surrounds them.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    pub(super) record: &'a [u8],
    pub(super) env: &'a Formats,
    pub(super) style: PrintStyle,
}

impl<'a> Run<'a> {
    /// Appends the line.
    pub(super) fn line(&self, out: &mut Vec<u8>) {
        let steps = &self.program.steps[..];
        let mut rest = steps;
        let full = out.len() + MAX_LINE;
        // Jumps go forward only, so every step runs at most once.
        while let Some((step, behind)) = rest.split_first() {
            rest = match self.step(step, out) {
                None => behind,
                Some(target) => {
                    let behind = steps.len() - behind.len();
                    steps.get((target as usize).max(behind)..).unwrap_or(&[])
                }
            };
            if out.len() > full {
                break;
            }
        }
    }

    /// Runs one step; returns the index of the next where it is not the one behind.
    #[inline(always)]
    fn step(&self, step: &Step, out: &mut Vec<u8>) -> Option<u32> {
        let text = &step.text;
        let before = usize::from(step.len);
        // Literal text goes into the same window as what follows it.
        match &step.action {
            Action::Unsigned(value, width) => {
                let value = self.value(value);
                let (start, window) = window::<40>(out);
                block_at(window, 0, text);
                let digits = decimal_at(window, before, value, u32::from(*width));
                out.truncate(start + before + digits);
            }
            Action::Signed(value, bits, width) => {
                let shift = (64 - u32::from(*bits)) & 63;
                let value = (self.value(value) << shift).cast_signed() >> shift;
                put_signed_behind(out, text, before, value, u32::from(*width));
            }
            Action::Hex(value, width) => {
                let value = self.value(value);
                let (start, window) = window::<32>(out);
                block_at(window, 0, text);
                let digits = hex_at(window, before, value, u32::from(*width));
                out.truncate(start + before + digits);
            }
            Action::Block(block, first, last) => {
                out.extend_from_slice(self.pool(*block));
                self.patch(*first, *last, out, block.len as usize);
            }
            Action::Chars(offset, len) => {
                put_text(out, text, before);
                put_string(out, self.bytes(Bytes::Fixed(*offset, *len)));
            }
            Action::Comm(offset) => self.comm(text, before, *offset, out),
            Action::Name(value, table) => {
                let value = self.value(value);
                let table = self.program.tables.get(usize::from(*table));
                match table.and_then(|t| t.lookup(value)) {
                    Some(name) => self.two(text, before, name, out),
                    None => {
                        put_text(out, text, before);
                        out.extend_from_slice(b"0x");
                        put_hex(out, value, 1);
                    }
                }
            }
            Action::Choice(value, then, other) => {
                let chosen = if self.value(value) != 0 { then } else { other };
                self.two(text, before, *chosen, out);
            }
            Action::JumpUnless(bits, value, target) => {
                put_text(out, text, before);
                if bits.read(self.record) != *value {
                    return Some(*target);
                }
            }
            Action::JumpIfZero(value, target) => {
                put_text(out, text, before);
                if self.value(value) == 0 {
                    return Some(*target);
                }
            }
            Action::Jump(target) => {
                put_text(out, text, before);
                return Some(*target);
            }
            Action::Nothing => put_text(out, text, before),
            Action::Literal(long) => self.pooled(out, *long),
            action => {
                put_text(out, text, before);
                self.action(action, out);
            }
        }
        None
    }

    /// Appends the text of a step and the name of a thread.
    #[inline(always)]
    fn comm(&self, text: &[u8; 16], before: usize, offset: u32, out: &mut Vec<u8>) {
        let chars = self
            .record
            .get(offset as usize..)
            .and_then(|r| r.first_chunk::<16>());
        let Some(chars) = chars else {
            put_text(out, text, before);
            put_string(out, self.bytes(Bytes::Fixed(offset, 16)));
            return;
        };
        let len = length_in_block(chars);
        let (start, window) = window::<32>(out);
        block_at(window, 0, text);
        block_at(window, before, chars);
        out.truncate(start + before + len);
    }

    /// Appends the text of a step and a string.
    #[inline(always)]
    fn two(&self, text: &[u8; 16], before: usize, second: Pooled, out: &mut Vec<u8>) {
        let len = second.len as usize;
        let pool = self.program.pool.get(second.at as usize..);
        match pool.and_then(|p| p.first_chunk::<32>()) {
            Some(string) if len <= 32 => {
                let (start, window) = window::<48>(out);
                block_at(window, 0, text);
                block_at(window, before, string);
                out.truncate(start + before + len);
            }
            _ => {
                put_text(out, text, before);
                self.pooled(out, second);
            }
        }
    }

    /// Puts numbers into text of fixed length that was just appended.
    #[inline(always)]
    fn patch(&self, first: u32, last: u32, out: &mut [u8], len: usize) {
        let start = out.len().saturating_sub(len);
        let patches = self
            .program
            .patches
            .get(first as usize..last as usize)
            .unwrap_or(&[]);
        let Some(text) = out.get_mut(start..) else {
            return;
        };
        for patch in patches {
            let (at, digits) = (patch.at as usize, u32::from(patch.digits));
            let value = self.value(&patch.value);
            hex_exactly(text, at, value, digits);
        }
    }

    /// Prints what an action prints, apart from the literal text before it.
    pub(super) fn action(&self, action: &Action, out: &mut Vec<u8>) {
        match action {
            Action::Unsigned(..) | Action::Signed(..) | Action::Hex(..) | Action::Name(..) => {
                self.step(&Step::new(&[], *action), out);
            }
            Action::Choice(value, then, other) => {
                self.pooled(
                    out,
                    if self.value(value) != 0 {
                        *then
                    } else {
                        *other
                    },
                );
            }
            Action::Chars(offset, len) => {
                put_string(out, self.bytes(Bytes::Fixed(*offset, *len)));
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
            Action::Comm(offset) => put_string(out, self.bytes(Bytes::Fixed(*offset, 16))),
            Action::Literal(text) => self.pooled(out, *text),
            Action::Nothing | Action::Block(..) => {}
            Action::Jump(_) | Action::JumpIfZero(..) | Action::JumpUnless(..) => {}
        }
    }

    #[inline(always)]
    fn value(&self, value: &Value) -> u64 {
        value.read(&self.program.exprs, self.record)
    }

    #[inline]
    pub(super) fn eval(&self, operand: Operand) -> u64 {
        self.program.exprs.eval(operand, self.record)
    }

    #[inline]
    pub(super) fn pooled(&self, out: &mut Vec<u8>, text: Pooled) {
        if text.len > 0 {
            put_pooled(out, &self.program.pool, text.at as usize, text.len as usize);
        }
    }

    pub(super) fn pool(&self, text: Pooled) -> &'a [u8] {
        let start = text.at as usize;
        self.program
            .pool
            .get(start..start + text.len as usize)
            .unwrap_or(&[])
    }

    /// Returns a form with what its stars stand for.
    fn spec(&self, form: &Form) -> Spec {
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
    pub(super) fn bytes(&self, bytes: Bytes) -> &'a [u8] {
        let record = self.record;
        match bytes {
            Bytes::Fixed(offset, len) => {
                let end = (offset as usize)
                    .saturating_add(len as usize)
                    .min(record.len());
                record.get(offset as usize..end).unwrap_or(&[])
            }
            Bytes::Rest(offset) => record.get(offset as usize..).unwrap_or(&[]),
            Bytes::Dynamic(locator) => locator.bytes(record),
        }
    }

    /// Returns the record from where an address points to its end.
    pub(super) fn from(&self, bytes: Bytes) -> &'a [u8] {
        let start = match bytes {
            Bytes::Fixed(offset, _) | Bytes::Rest(offset) => offset as usize,
            Bytes::Dynamic(locator) => locator.resolve(self.record).0,
        };
        self.record.get(start..).unwrap_or(&[])
    }

    /// Appends the name a table has for a number, or the number in hexadecimal.
    #[inline]
    pub(super) fn name(&self, operand: Operand, table: u16, spec: &Spec, out: &mut Vec<u8>) {
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
    pub(super) fn symbol(&self, address: u64, offset: bool, out: &mut Vec<u8>) {
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
    fn text(&self, source: u16, form: u16, out: &mut Vec<u8>) {
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

/// Appends the text of a step and a number with its sign, at least so many places.
#[inline(always)]
fn put_signed_behind(out: &mut Vec<u8>, text: &[u8; 16], before: usize, value: i64, width: u32) {
    let (start, window) = window::<41>(out);
    block_at(window, 0, text);
    block_at(window, before, b"-");
    let minus = u32::from(value < 0);
    let digits = before + minus as usize;
    let width = width.saturating_sub(minus);
    let end = digits + decimal_at(window, digits, value.unsigned_abs(), width);
    out.truncate(start + end);
}

/// Appends an address the way glibc's `%p` does.
pub(super) fn put_pointer(out: &mut Vec<u8>, address: u64) {
    if address == 0 {
        out.extend_from_slice(b"(nil)");
    } else {
        out.extend_from_slice(b"0x");
        put_hex(out, address, 1);
    }
}
