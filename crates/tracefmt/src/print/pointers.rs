//! `%p` and what may follow it.

use super::ast::{Id, Node};
use super::compile::Compiler;
use super::operand::Operand;
use super::parser::Dialect;
use super::program::{Action, Bytes, Form, Ipv6Form, Source};

impl Compiler<'_> {
    /// Compiles an argument of `%p`, with the letters that follow.
    ///
    /// Sources: libtraceevent 1.7.1's `print_arg_pointer`, the kernel's
    /// `Documentation/core-api/printk-formats.rst`.
    pub(super) fn pointer(&mut self, id: Id, form: &Form, extension: &str) -> Result<(), String> {
        let letters = extension.as_bytes();
        let plain = Form {
            spec: super::printf::Spec::default(),
            width: None,
            precision: None,
        };
        let has = |letter: u8| letters.get(1..).unwrap_or(&[]).contains(&letter);
        match letters.first() {
            Some(b'f') if letters.get(1) == Some(&b'w') => self.plain_pointer(id),
            Some(first @ (b'S' | b's' | b'F' | b'f' | b'B')) => {
                let operand = self.number(id).0;
                let offset = matches!(first, b'S' | b'F' | b'B');
                self.action(Action::Symbol(operand.into(), offset));
            }
            Some(first @ (b'M' | b'm')) => {
                let data = self.addressed(id, 6)?;
                let between = match first {
                    b'm' => None,
                    _ if has(b'F') => Some(b'-'),
                    _ => Some(b':'),
                };
                self.source(
                    Source::Mac {
                        data,
                        between,
                        reversed: has(b'R'),
                    },
                    &plain,
                );
            }
            Some(first @ (b'I' | b'i')) => {
                let padded = *first == b'i';
                let reversed = match letters.iter().rev().find(|l| b"hnbl".contains(l)) {
                    Some(b'h') => self.abi.endian == crate::Endian::Little,
                    Some(b'l') => true,
                    _ => false,
                };
                let form = match (padded, has(b'c')) {
                    (true, _) => Ipv6Form::Digits,
                    (false, true) => Ipv6Form::Compressed,
                    (false, false) => Ipv6Form::Groups,
                };
                let source = match letters.get(1) {
                    Some(b'4') => Source::Ipv4 {
                        data: self.addressed(id, 4)?,
                        padded,
                        reversed,
                    },
                    Some(b'6') => Source::Ipv6 {
                        data: self.addressed(id, 16)?,
                        form,
                    },
                    Some(b'S') => {
                        let data = self.addressed(id, 0)?;
                        Source::Socket {
                            data,
                            padded,
                            reversed,
                            port: has(b'p'),
                            form,
                        }
                    }
                    _ => {
                        self.plain_pointer(id);
                        return Ok(());
                    }
                };
                self.source(source, &plain);
            }
            Some(b'U') => {
                let data = self.addressed(id, 16)?;
                let (upper, little) = match letters.get(1) {
                    Some(b'L') => (true, true),
                    Some(b'l') => (false, true),
                    Some(b'B') => (true, false),
                    _ => (false, false),
                };
                self.source(
                    Source::Uuid {
                        data,
                        upper,
                        little,
                    },
                    &plain,
                );
            }
            Some(b'h') => {
                let data = self.addressed(id, 0)?;
                let between = match letters.get(1) {
                    Some(b'C') => Some(b':'),
                    Some(b'D') => Some(b'-'),
                    Some(b'N') => None,
                    _ => Some(b' '),
                };
                let limit = match (form.width, form.spec.width) {
                    (Some(width), _) => width,
                    (None, width) => Operand::Const(u64::from(width.unwrap_or(1))),
                };
                self.source(
                    Source::Bytes {
                        data,
                        limit,
                        between,
                    },
                    &plain,
                );
            }
            Some(b'b') => {
                let data = self.bytes(id);
                let list = letters.get(1) == Some(&b'l');
                let bits = form
                    .width
                    .or_else(|| form.spec.width.map(|w| Operand::Const(w.into())));
                let source = if list {
                    Source::CpuList(data, bits)
                } else {
                    Source::Bitmask(data, bits)
                };
                self.source(source, &plain);
            }
            Some(b'e') => {
                let operand = self.number(id).0;
                self.source(Source::Decimal(operand), &plain);
            }
            _ => self.plain_pointer(id),
        }
        Ok(())
    }

    fn plain_pointer(&mut self, id: Id) {
        let operand = self.number(id).0;
        self.action(Action::Pointer(operand.into()));
    }

    /// Returns the bytes an address stands for; `size` is how many the conversion takes, 0 for any.
    ///
    /// libtraceevent wants a field of exactly that size there, and says so in the line where it finds
    /// something else.
    fn addressed(&mut self, id: Id, size: u32) -> Result<Bytes, String> {
        if self.dialect == Dialect::C {
            return Ok(self.bytes(id));
        }
        match self.tree.node(self.tree.uncast(id)) {
            Node::Field(Some(field)) if size == 0 || self.fields[*field].size == size => Ok(
                Bytes::Fixed(self.fields[*field].offset, self.fields[*field].size),
            ),
            Node::Dynamic(_) if size == 0 => Ok(self.bytes(id)),
            _ => Err("an address conversion of what is no field of its size".to_owned()),
        }
    }
}
