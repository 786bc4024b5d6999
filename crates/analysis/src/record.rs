//! Numbers of events that have no typed view, out of records and texts alike.

use event::text::{find, hex_prefix};
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
    #[inline]
    pub(crate) fn get(&self, event: &Event<'_>) -> Option<u64> {
        match (self, &event.body) {
            (Number::Raw { field, abi }, Body::Raw(record)) => field.value(record, abi.endian),
            (Number::Text(words), Body::Text { text, .. }) => first_behind(text, words),
            _ => None,
        }
    }
}

/// Reads the number behind the first of some words that stands in a text.
#[inline(never)]
fn first_behind(text: &str, words: &[(&str, Radix)]) -> Option<u64> {
    let mut words = words.iter();
    words.find_map(|(word, radix)| behind(text, word, *radix))
}

/// Reads the number behind a word: `IRQ 27`, `level: 1`, `irq=27`, `address 0x8000`.
fn behind(text: &str, word: &str, radix: Radix) -> Option<u64> {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let at = find(rest, word)?;
        let (before, found) = rest.split_at(at);
        let after = found.get(word.len()..)?;
        let apart = |b: &&u8| matches!(b, b':' | b'=' | b' ');
        let marks = after.iter().take_while(apart).count();
        if marks > 0 && !ends_in_word(before) {
            return parse(&after[marks..], radix);
        }
        from += at + word.len();
    }
}

/// Returns whether a text ends in a letter, a digit or an underscore, so that what follows begins no word.
fn ends_in_word(text: &[u8]) -> bool {
    let wordy = |c: char| c.is_alphanumeric() || c == '_';
    match text.last() {
        None => false,
        Some(b) if b.is_ascii() => wordy(char::from(*b)),
        // Letters of other alphabets have four bytes at most.
        Some(_) => {
            let last = &text[text.len().saturating_sub(4)..];
            let text = last.utf8_chunks().last();
            text.and_then(|text| text.valid().chars().next_back())
                .is_some_and(wordy)
        }
    }
}

fn parse(text: &[u8], radix: Radix) -> Option<u64> {
    let (digits, hex) = match text.strip_prefix(b"0x") {
        Some(digits) => (digits, true),
        None => (text, radix == Radix::Hex),
    };
    if hex {
        return hex_prefix(digits).map(|(number, _)| number);
    }
    let end = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
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
            ("IRQIRQ 5", "IRQ", Radix::Any, Some(5)),
            ("xIRQ 5", "IRQ", Radix::Any, None),
            ("\u{e9}IRQ 5", "IRQ", Radix::Any, None),
            ("\u{1d400}IRQ 5", "IRQ", Radix::Any, None),
            ("\u{201c}IRQ 5", "IRQ", Radix::Any, Some(5)),
            (
                "IRQ 18446744073709551615",
                "IRQ",
                Radix::Any,
                Some(u64::MAX),
            ),
            ("IRQ 18446744073709551616", "IRQ", Radix::Any, None),
            ("IRQ 0x10000000000000000", "IRQ", Radix::Any, None),
            ("nothing", "IRQ", Radix::Any, None),
            ("IRQ", "IRQ", Radix::Any, None),
        ] {
            assert_eq!(behind(text, word, radix), number, "{text} {word}");
        }
    }
}
