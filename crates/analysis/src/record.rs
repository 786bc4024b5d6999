//! Numbers of events that have no typed view, out of records and texts alike.

use event::{Body, Event, EventType};
use tracefmt::{Abi, FormatField};

/// How a number stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Radix {
    /// Decimal, or hexadecimal behind `0x`.
    Any,
    /// Hexadecimal, with `0x` or without.
    Hex,
}

/// Where one number of one kind of event is.
#[derive(Debug, Clone)]
pub(crate) enum Number {
    Raw { field: FormatField, abi: Abi },
    Text(&'static [(&'static str, Radix)]),
}

impl Number {
    /// Finds a field of records; in texts the number behind the first of these words that stands there. `None` if the
    /// records of this kernel do not have it.
    pub(crate) fn of(
        ty: &EventType<'_>,
        fields: &[&str],
        words: &'static [(&'static str, Radix)],
    ) -> Option<Number> {
        let Some(format) = ty.format else {
            return Some(Number::Text(words));
        };
        let field = fields.iter().find_map(|name| format.field(name))?;
        Some(Number::Raw {
            field: field.clone(),
            abi: format.abi,
        })
    }

    /// Reads it.
    pub(crate) fn get(&self, event: &Event<'_>) -> Option<u64> {
        match (self, event.body) {
            (Number::Raw { field, abi }, Body::Raw(record)) => field.value(record, abi.endian),
            (Number::Text(words), Body::Text { text, .. }) => words
                .iter()
                .find_map(|(word, radix)| behind(text, word, *radix)),
            _ => None,
        }
    }
}

/// Reads the number behind a word: `IRQ 27`, `level: 1`, `irq=27`, `address 0x8000`.
fn behind(text: &str, word: &str, radix: Radix) -> Option<u64> {
    let mut rest = text;
    loop {
        let at = rest.find(word)?;
        let begins = rest[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let after = &rest[at + word.len()..];
        let number = after.trim_start_matches([':', '=', ' ']);
        if begins && number.len() < after.len() {
            return parse(number, radix);
        }
        rest = after;
    }
}

fn parse(text: &str, radix: Radix) -> Option<u64> {
    let (digits, hex) = match text.strip_prefix("0x") {
        Some(digits) => (digits, true),
        None => (text, radix == Radix::Hex),
    };
    let base = if hex { 16 } else { 10 };
    let end = digits
        .find(|c: char| !c.is_digit(base))
        .unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], base).ok()
}

#[cfg(test)]
mod tests {
    use super::{Radix, behind};

    #[test]
    fn numbers_stand_behind_their_words() {
        for (text, word, radix, number) in [
            ("IRQ 0xec", "IRQ", Radix::Hex, Some(0xec)),
            ("irq 236", "irq", Radix::Any, Some(236)),
            ("VCPU: 1, IRQ 27, level 1", "IRQ", Radix::Any, Some(27)),
            ("VCPU: 1, IRQ 27, level 1", "level", Radix::Any, Some(1)),
            (
                "vcpu 0 rip 0x1 address 0x00fee00300 error_code 0x1",
                "address",
                Radix::Hex,
                Some(0xfee0_0300),
            ),
            (
                "address fee00300 error_code 1",
                "address",
                Radix::Hex,
                Some(0xfee0_0300),
            ),
            ("vcpu_id=3 irq=27 level=1", "irq", Radix::Any, Some(27)),
            (
                "rip 0x5 intr_info 0x800000ec",
                "intr_info",
                Radix::Hex,
                Some(0x8000_00ec),
            ),
            ("nothing", "IRQ", Radix::Any, None),
            ("IRQ", "IRQ", Radix::Any, None),
        ] {
            assert_eq!(behind(text, word, radix), number, "{text} {word}");
        }
    }
}
