//! What a line prints, whatever the record holds: whether text of the recording is among it, which may be anything.

use super::program::{Action, Program, Source};
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
                .is_some_and(Source::prints_plain),
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

impl Source {
    /// Returns whether it is made of numbers and of the format's own text.
    fn prints_plain(&self) -> bool {
        match self {
            Source::Chars(_) | Source::Dynamic(_) | Source::Address(_) => false,
            Source::Literal(_)
            | Source::Name(..)
            | Source::Flags(..)
            | Source::Hex { .. }
            | Source::Array { .. }
            | Source::HexDump(_)
            | Source::Bitmask(..)
            | Source::CpuList(..)
            | Source::Decimal(_)
            | Source::UnsignedDecimal(_)
            | Source::HexNumber(_)
            | Source::Mac { .. }
            | Source::Ipv4 { .. }
            | Source::Ipv6 { .. }
            | Source::Socket { .. }
            | Source::Uuid { .. }
            | Source::Bytes { .. } => true,
        }
    }
}
