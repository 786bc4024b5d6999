//! Reads one field of events by its name, out of records and texts alike.

use std::borrow::Cow;

use tracefmt::{Abi, EventFormat, FormatField};

use crate::named::{self, InRecord, InText, NumberBase};
use crate::sink::{Body, Event, EventType};
use crate::text::find;
use crate::vocabulary::Data;

/// A value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldScalar<'e> {
    /// A number.
    Number(u64),
    /// A text.
    Text(Cow<'e, str>),
}

impl FieldScalar<'_> {
    /// Returns what stands for the value where values are looked up: a number is itself.
    pub fn key(&self) -> u64 {
        match self {
            FieldScalar::Number(number) => *number,
            // FNV-1a: 64 bits separate different names well enough.
            FieldScalar::Text(text) => text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }),
        }
    }
}

/// Where a field of a kind of event is.
#[derive(Debug, Clone)]
enum FieldPlace {
    /// A field of the record, of which some bits count.
    Raw {
        field: FormatField,
        abi: Abi,
        shift: u32,
        mask: u64,
    },
    /// A field of the record that is text.
    RawText { field: FormatField, abi: Abi },
    /// Five fields of the record, decimal places of 100 each.
    RawPlaces {
        fields: Box<[FormatField; 5]>,
        abi: Abi,
    },
    /// A field that older kernels do not record: 0 there.
    OrZero {
        field: Option<FormatField>,
        abi: Abi,
    },
    /// In a line, as the table of names says.
    Text(InText),
    /// In a line, behind its own name.
    Behind(Box<str>),
    /// In the typed view.
    Typed(usize),
    /// The event does not have it.
    Nowhere,
}

/// Reads one field of one kind of event.
#[derive(Debug, Clone)]
pub struct FieldReader(FieldPlace);

impl FieldReader {
    /// Finds out where events of this kind have a field of that name.
    pub fn of(ty: &EventType<'_>, name: &str) -> FieldReader {
        FieldReader(
            match (ty.kind.named(name, ty.format.is_none()), ty.format) {
                (Some(typed), _) => FieldPlace::Typed(typed),
                (None, Some(format)) => in_record(format, ty.name, name),
                (None, None) => match named::find(ty.name, name) {
                    Some(field) => FieldPlace::Text(field.text),
                    None => FieldPlace::Behind(name.into()),
                },
            },
        )
    }

    /// Reads it. `data` is the event's typed view.
    #[inline]
    pub fn get<'e>(&self, event: &Event<'e>, data: &Data) -> Option<FieldScalar<'e>> {
        match &self.0 {
            FieldPlace::Typed(at) => data.number(*at).map(FieldScalar::Number),
            _ => self.search(event),
        }
    }

    /// Reads it where the typed view does not have it.
    #[inline(never)]
    fn search<'e>(&self, event: &Event<'e>) -> Option<FieldScalar<'e>> {
        match (&self.0, event.body) {
            (
                FieldPlace::Raw {
                    field,
                    abi,
                    shift,
                    mask,
                },
                Body::Raw(record),
            ) => {
                let value = field.value(record, abi.endian)?;
                Some(FieldScalar::Number(value >> shift & mask))
            }
            (FieldPlace::RawText { field, abi }, Body::Raw(record)) => Some(FieldScalar::Text(
                String::from_utf8_lossy(field.text(record, *abi)?),
            )),
            (FieldPlace::RawPlaces { fields, abi }, Body::Raw(record)) => {
                places(fields.iter().map(|field| field.value(record, abi.endian)))
            }
            (FieldPlace::OrZero { field, abi }, Body::Raw(record)) => {
                let value = field.as_ref().and_then(|f| f.value(record, abi.endian));
                Some(FieldScalar::Number(value.unwrap_or(0)))
            }
            (FieldPlace::Text(how), Body::Text { text, .. }) => in_text(*how, text),
            (FieldPlace::Behind(label), Body::Text { text, .. }) => {
                behind(text, label, NumberBase::Any)
            }
            _ => None,
        }
    }

    /// Reads it as a number.
    #[inline]
    pub fn number(&self, event: &Event<'_>, data: &Data) -> Option<u64> {
        match self.get(event, data)? {
            FieldScalar::Number(number) => Some(number),
            FieldScalar::Text(_) => None,
        }
    }
}

/// Finds a field in the records of a format.
fn in_record(format: &EventFormat, event: &str, name: &str) -> FieldPlace {
    let abi = format.abi;
    let known = named::find(event, name).map(|field| field.record);
    let found = match known {
        Some(InRecord::OrZero) => {
            let field = format.field(name).cloned();
            return FieldPlace::OrZero { field, abi };
        }
        Some(InRecord::Places(names)) => {
            let field = |name: &str| format.field(name).cloned();
            let [a, b, c, d, e] = names.map(field);
            return match (a, b, c, d, e) {
                (Some(a), Some(b), Some(c), Some(d), Some(e)) => FieldPlace::RawPlaces {
                    fields: Box::new([a, b, c, d, e]),
                    abi,
                },
                _ => FieldPlace::Nowhere,
            };
        }
        Some(InRecord::Bits(bits)) => bits.iter().find_map(|bits| {
            let field = format.field(bits.field)?.clone();
            Some((field, bits.shift, bits.mask))
        }),
        None => None,
    };
    let found = found.or_else(|| Some((format.field(name)?.clone(), 0, u64::MAX)));
    match found {
        Some((field, ..)) if field.is_string => FieldPlace::RawText { field, abi },
        Some((field, shift, mask)) => FieldPlace::Raw {
            field,
            abi,
            shift,
            mask,
        },
        None => FieldPlace::Nowhere,
    }
}

/// Reads a field of a text as the table of names says.
fn in_text<'e>(how: InText, text: &'e str) -> Option<FieldScalar<'e>> {
    let flag = |is: bool| Some(FieldScalar::Number(u64::from(is)));
    match how {
        InText::Behind(words, mask) => {
            let mut words = words.iter();
            let found = words.find_map(|(word, radix)| behind(text, word, *radix))?;
            Some(match found {
                FieldScalar::Number(number) => FieldScalar::Number(number & mask),
                text => text,
            })
        }
        InText::Has(words) => flag(text.contains(words)),
        InText::EndsIn(word, field) => {
            flag(text.trim_end().ends_with(word) || text.contains(field))
        }
        InText::Mode => mode(text).map(FieldScalar::Number),
        InText::Device => device(text).map(FieldScalar::Number),
        InText::Before(word) => {
            let (before, _) = text.split_once(&format!(" {word} "))?;
            let number = before.rsplit(' ').next()?.parse().ok()?;
            Some(FieldScalar::Number(number))
        }
        InText::Places(names) => places_in_text(text, names),
    }
}

/// Reads `MAJOR,MINOR` as the kernel numbers devices in its records: 12 bits and 20 (`include/linux/kdev_t.h`).
fn device(text: &str) -> Option<u64> {
    let (major, minor) = text.split_whitespace().next()?.split_once(',')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(u64::from(major) << 20 | u64::from(minor))
}

/// Puts numbers together as decimal places of 100 each.
fn places<'e>(mut numbers: impl Iterator<Item = Option<u64>>) -> Option<FieldScalar<'e>> {
    numbers
        .try_fold(0u64, |sum, number| Some(sum * 100 + (number? & 0xff)))
        .map(FieldScalar::Number)
}

fn places_in_text<'e>(text: &str, names: &[&str; 5]) -> Option<FieldScalar<'e>> {
    // libtraceevent prints all fields by name where it cannot parse the event's print format.
    let [first, ..] = names;
    if text.contains(&format!("{first}=")) {
        return places(
            names
                .iter()
                .map(|name| match behind(text, name, NumberBase::Any)? {
                    FieldScalar::Number(number) => Some(number),
                    FieldScalar::Text(_) => None,
                }),
        );
    }
    let inside = text.split_once('(')?.1.split_once(')')?.0;
    let numbers = inside.split(',').map(|number| number.trim().parse().ok());
    if numbers.clone().count() != 5 {
        return None;
    }
    places(numbers)
}

/// Returns what stands behind a word: `name=value`, `name value` or `name: value`; a number, or the text up to the next
/// separator.
fn behind<'e>(text: &'e str, label: &str, radix: NumberBase) -> Option<FieldScalar<'e>> {
    let bytes = text.as_bytes();
    let wordy = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut from = 0;
    loop {
        let at = from + find(bytes.get(from..)?, label.as_bytes())?;
        let end = at + label.len();
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied();
        let after = bytes.get(end).copied();
        let ended = label.ends_with([':', '=']);
        let fits = before.is_none_or(|b| !wordy(b))
            && (ended || after.is_some_and(|b| matches!(b, b' ' | b'=' | b':')));
        if fits {
            let rest = text[end..].trim_start_matches([' ', '=', ':']);
            return Some(read(rest, radix));
        }
        from = end;
        if from >= text.len() || !text.is_char_boundary(from) {
            return None;
        }
    }
}

fn read(rest: &str, radix: NumberBase) -> FieldScalar<'_> {
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | '('))
        .unwrap_or(rest.len());
    let word = &rest[..end];
    let hex = word.strip_prefix("0x");
    let number = match (hex, radix) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok(),
        (None, NumberBase::Hex) => u64::from_str_radix(word, 16).ok(),
        (None, NumberBase::Any) => word
            .parse()
            .ok()
            .or_else(|| word.parse::<i64>().ok().map(i64::cast_unsigned)),
    };
    match number {
        Some(number) => FieldScalar::Number(number),
        // A name may have spaces in it: the next field ends it.
        None => FieldScalar::Text(name_before_field(rest).into()),
    }
}

/// Returns the text up to the next ` word=`.
fn name_before_field(rest: &str) -> &str {
    let Some(equals) = rest.find('=') else {
        return rest.split([',', ')']).next().unwrap_or(rest).trim_end();
    };
    match rest[..equals].rfind(' ') {
        Some(space) => rest[..space].trim_end(),
        None => rest[..equals].trim_end(),
    }
}

/// Delivery modes as they are printed (`arch/x86/kvm/trace.h`, `kvm_deliver_mode`).
fn mode(text: &str) -> Option<u64> {
    const MODES: [&str; 8] = [
        "Fixed", "LowPrio", "SMI", "Res3", "NMI", "INIT", "SIPI", "ExtINT",
    ];
    let word = text.split_once('(')?.1.split(['|', ')']).next()?;
    MODES
        .iter()
        .position(|mode| *mode == word)
        .and_then(|at| u64::try_from(at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_all_printed_styles() {
        let number = |text, label, radix| match behind(text, label, radix) {
            Some(FieldScalar::Number(number)) => Some(number),
            _ => None,
        };
        let accept = "apicid 1a vec 36 (Fixed|edge)";
        assert_eq!(number(accept, "apicid", NumberBase::Hex), Some(0x1a));
        assert_eq!(number(accept, "vec", NumberBase::Any), Some(36));
        assert_eq!(mode(accept), Some(0));
        assert_eq!(number("IRQ 0x24", "IRQ", NumberBase::Hex), Some(0x24));
        let vgic = "VCPU: 0, IRQ 77, level: 1";
        assert_eq!(number(vgic, "IRQ", NumberBase::Any), Some(77));
        assert_eq!(number(vgic, "level:", NumberBase::Any), Some(1));
        let probe = "(ffffffffc057ad40) skb=0xffff888102f8f800 len=98";
        assert_eq!(number(probe, "len", NumberBase::Any), Some(98));
        assert_eq!(number(probe, "en", NumberBase::Any), None);
        let line = "Inject VGIC SPI interrupt (1), vcpu->idx: 0, num: 77, level: 1";
        assert_eq!(number(line, "num:", NumberBase::Any), Some(77));
        let sysreg = |text| places_in_text(text, &["Op0", "Op1", "CRn", "CRm", "Op2"]);
        let sys = "PC: ffffb72f0d5fca40 ffffac60ee3efe10 (3,0,12,11,5) write";
        assert_eq!(sysreg(sys), Some(FieldScalar::Number(300_121_105)));
        let unparsed = "[FAILED TO PARSE] vcpu_pc=0xff is_write=1 Op0=3 Op1=0 CRn=12 CRm=11 Op2=5";
        assert_eq!(sysreg(unparsed), Some(FieldScalar::Number(300_121_105)));
        assert_eq!(
            behind("comm=CPU 0/KVM pid=7 prio=120", "comm", NumberBase::Any),
            Some(FieldScalar::Text("CPU 0/KVM".into()))
        );
    }
}
