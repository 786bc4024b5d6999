//! `%p` and what may follow it.

use super::ast::{AstNode, Id};
use super::compile::Compiler;
use super::operand::Operand;
use super::parser::Dialect;
use super::program::{Action, FormWidth, Ipv6Form, RecordBytes, TextSource};

impl Compiler<'_> {
    /// Compiles an argument of `%p`, with the letters that follow.
    ///
    /// Sources: libtraceevent 1.7.1's `print_arg_pointer`, the kernel's
    /// `Documentation/core-api/printk-formats.rst`.
    pub(super) fn pointer(
        &mut self,
        id: Id,
        form: &FormWidth,
        extension: &str,
    ) -> Result<(), String> {
        let letters = extension.as_bytes();
        let source = match letters {
            [b'f', b'w', ..] => None,
            [first @ (b'S' | b's' | b'F' | b'f' | b'B'), ..] => {
                let operand = self.number(id).0;
                let offset = matches!(first, b'S' | b'F' | b'B');
                self.action(Action::Symbol(operand.into(), offset));
                return Ok(());
            }
            [b'M' | b'm', ..] => Some(self.mac(id, letters)?),
            [b'I' | b'i', ..] => self.internet(id, letters)?,
            [b'U', ..] => Some(self.uuid(id, letters)?),
            [b'h', ..] => Some(self.hexadecimal(id, form, letters)?),
            [b'b', ..] => Some(self.bitmap(id, form, letters)),
            [b'e', ..] => Some(TextSource::Decimal(self.number(id).0)),
            _ => None,
        };
        match source {
            Some(source) => {
                let plain = FormWidth {
                    spec: super::printf::Spec::default(),
                    width: None,
                    precision: None,
                };
                self.source(source, &plain);
            }
            None => {
                let operand = self.number(id).0;
                self.action(Action::Pointer(operand.into()));
            }
        }
        Ok(())
    }

    /// `%pM` and `%pm`.
    fn mac(&mut self, id: Id, letters: &[u8]) -> Result<TextSource, String> {
        Ok(TextSource::Mac {
            data: self.addressed(id, 6)?,
            between: match letters.first() {
                Some(b'm') => None,
                _ if has(letters, b'F') => Some(b'-'),
                _ => Some(b':'),
            },
            reversed: has(letters, b'R'),
        })
    }

    /// `%pI4`, `%pI6`, `%pIS` and their kin; `None` where no letter says which.
    fn internet(&mut self, id: Id, letters: &[u8]) -> Result<Option<TextSource>, String> {
        let padded = letters.first() == Some(&b'i');
        let reversed = match letters.iter().rev().find(|l| b"hnbl".contains(l)) {
            Some(b'h') => self.abi.endian == crate::Endian::Little,
            Some(b'l') => true,
            _ => false,
        };
        let form = match (padded, has(letters, b'c')) {
            (true, _) => Ipv6Form::Digits,
            (false, true) => Ipv6Form::Compressed,
            (false, false) => Ipv6Form::Groups,
        };
        Ok(Some(match letters.get(1) {
            Some(b'4') => TextSource::Ipv4 {
                data: self.addressed(id, 4)?,
                padded,
                reversed,
            },
            Some(b'6') => TextSource::Ipv6 {
                data: self.addressed(id, 16)?,
                form,
            },
            Some(b'S') => TextSource::Socket {
                data: self.addressed(id, 0)?,
                padded,
                reversed,
                port: has(letters, b'p'),
                form,
            },
            _ => return Ok(None),
        }))
    }

    /// `%pU`.
    fn uuid(&mut self, id: Id, letters: &[u8]) -> Result<TextSource, String> {
        let (upper, little) = match letters.get(1) {
            Some(b'L') => (true, true),
            Some(b'l') => (false, true),
            Some(b'B') => (true, false),
            _ => (false, false),
        };
        Ok(TextSource::Uuid {
            data: self.addressed(id, 16)?,
            upper,
            little,
        })
    }

    /// `%ph`: its width is how many bytes it prints.
    fn hexadecimal(
        &mut self,
        id: Id,
        form: &FormWidth,
        letters: &[u8],
    ) -> Result<TextSource, String> {
        Ok(TextSource::Bytes {
            data: self.addressed(id, 0)?,
            limit: match (form.width, form.spec.width) {
                (Some(width), _) => width,
                (None, width) => Operand::Const(u64::from(width.unwrap_or(1))),
            },
            between: match letters.get(1) {
                Some(b'C') => Some(b':'),
                Some(b'D') => Some(b'-'),
                Some(b'N') => None,
                _ => Some(b' '),
            },
        })
    }

    /// `%pb` and `%pbl`: the width is how many bits count.
    fn bitmap(&mut self, id: Id, form: &FormWidth, letters: &[u8]) -> TextSource {
        let data = self.bytes(id);
        let bits = form
            .width
            .or_else(|| form.spec.width.map(|w| Operand::Const(w.into())));
        match letters.get(1) {
            Some(b'l') => TextSource::CpuList(data, bits),
            _ => TextSource::Bitmask(data, bits),
        }
    }

    /// Returns the bytes an address stands for; `size` is how many the conversion takes, 0 for any.
    ///
    /// libtraceevent wants a field of exactly that size there, and says so in the line where it finds
    /// something else.
    fn addressed(&mut self, id: Id, size: u32) -> Result<RecordBytes, String> {
        if self.dialect == Dialect::C {
            return Ok(self.bytes(id));
        }
        match self.tree.node(self.tree.uncast(id)) {
            AstNode::Field(Some(field)) if size == 0 || self.fields[*field].size == size => Ok(
                RecordBytes::Fixed(self.fields[*field].offset, self.fields[*field].size),
            ),
            AstNode::Dynamic(_) if size == 0 => Ok(self.bytes(id)),
            _ => Err("an address conversion of what is no field of its size".to_owned()),
        }
    }
}

/// Whether a letter is behind the first.
fn has(letters: &[u8], letter: u8) -> bool {
    letters.get(1..).unwrap_or(&[]).contains(&letter)
}
