//! What a line prints, whatever the record holds: whether text of the recording is among it, which may be anything.

use super::program::{Action, Program, TextSource};
use super::text::PADDING;
use crate::is_plain;

impl Program {
    /// Returns whether the line consists of numbers and of the format's own text, and that is plain.
    pub(super) fn prints_plain(&self) -> bool {
        let pool = self.pool.len().saturating_sub(PADDING);
        let plain = |action: &Action| match *action {
            Action::Chars(..) | Action::Comm(_) | Action::Dynamic(_) | Action::Symbol(..) => false,
            Action::Text(source, _) => self
                .sources
                .get(usize::from(source))
                .is_some_and(TextSource::prints_plain),
            // `%c` prints any character.
            Action::Number(_, form) => self
                .forms
                .get(usize::from(form))
                .is_some_and(|form| form.spec.conversion != b'c'),
            Action::Nothing
            | Action::Literal(_)
            | Action::Unsigned(..)
            | Action::Signed(..)
            | Action::Hex(..)
            | Action::Prefixed(..)
            | Action::Block(..)
            | Action::Pointer(_)
            | Action::Name(..)
            | Action::Choice(..)
            | Action::JumpIfZero(..)
            | Action::JumpUnless(..)
            | Action::Jump(_) => true,
        };
        let steps = &self.steps;
        is_plain(self.pool.get(..pool).unwrap_or_default())
            && steps.iter().all(|s| is_plain(s.text()) && plain(&s.action))
    }
}

impl TextSource {
    /// Returns whether it is made of numbers and of the format's own text.
    fn prints_plain(&self) -> bool {
        match self {
            TextSource::Chars(_) | TextSource::Dynamic(_) | TextSource::Address(_) => false,
            TextSource::Literal(_)
            | TextSource::Name(..)
            | TextSource::Flags(..)
            | TextSource::Hex { .. }
            | TextSource::Array { .. }
            | TextSource::HexDump(_)
            | TextSource::Bitmask(..)
            | TextSource::CpuList(..)
            | TextSource::Decimal(_)
            | TextSource::UnsignedDecimal(_)
            | TextSource::HexNumber(_)
            | TextSource::Mac { .. }
            | TextSource::Ipv4 { .. }
            | TextSource::Ipv6 { .. }
            | TextSource::Socket { .. }
            | TextSource::Uuid { .. }
            | TextSource::Bytes { .. } => true,
        }
    }
}
