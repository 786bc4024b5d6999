//! Kinds of events: which fields they have, and the bytes of those of one event.

use event::{Body, Event};
use model::Threads;
use rustc_hash::FxHashMap;
use tracefmt::{Endian, EventFormat, FieldKind, FormatField, index_of};

/// Bytes of one number that the format knows how to describe.
const MAX_NUMBER: u32 = 8;
/// Bytes of an array that every event has whole: larger than any record. Of what claims to be larger each event has
/// what its record has.
const MAX_ARRAY: u32 = 1 << 16;

/// How a field stands in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldShape {
    /// A number of so many bytes.
    Number { bytes: u32, signed: bool, hex: bool },
    /// Text and a zero byte.
    Text,
    /// So many numbers of so many bytes.
    Array {
        bytes: u32,
        count: u32,
        signed: bool,
    },
    /// How many numbers there are, in 4 bytes, and the numbers.
    Sequence { bytes: u32, signed: bool },
}

/// What a field is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldSource {
    /// The kind's field with this number.
    Record(usize),
    /// The line's text.
    Line,
    /// The whole record, of which no format is known.
    Bytes,
    Ip,
    Period,
}

/// A field of a kind of events.
#[derive(Debug)]
pub(super) struct ClassField {
    /// A name that the format allows.
    pub name: String,
    pub shape: FieldShape,
    source: FieldSource,
}

/// A kind of events.
#[derive(Debug)]
pub(super) struct EventClass {
    pub number: u32,
    pub name: String,
    pub fields: Vec<ClassField>,
    /// Whether there are events of it with a CPU, and without one.
    pub streams: [bool; 2],
}

impl EventClass {
    /// Returns the kind of an event, with the fields that this one has.
    pub(super) fn of(event: &Event<'_>) -> EventClass {
        let ty = event.ty;
        let name = match ty.system.is_empty() {
            true => ty.label.to_owned(),
            false => format!("{}:{}", ty.system, ty.name),
        };
        let mut fields = Vec::new();
        let mut names = FieldNames::default();
        match (event.body, ty.format) {
            (Body::Raw(_), Some(format)) => {
                for (number, field) in format.fields.iter().enumerate().skip(format.common) {
                    fields.push(ClassField {
                        name: names.name(&field.name),
                        shape: shape(field),
                        source: FieldSource::Record(number),
                    });
                }
            }
            (Body::Raw(_), None) => fields.push(ClassField {
                name: names.name("record"),
                shape: FieldShape::Sequence {
                    bytes: 1,
                    signed: false,
                },
                source: FieldSource::Bytes,
            }),
            (Body::Text { .. }, _) => fields.push(ClassField {
                name: names.name("text"),
                shape: FieldShape::Text,
                source: FieldSource::Line,
            }),
            (Body::None, _) => {
                let sample = event.sample.copied().unwrap_or_default();
                for (is_there, name, hex, source) in [
                    (sample.ip.is_some(), "ip", true, FieldSource::Ip),
                    (
                        sample.period.is_some(),
                        "period",
                        false,
                        FieldSource::Period,
                    ),
                ] {
                    if is_there {
                        fields.push(ClassField {
                            name: names.name(name),
                            shape: FieldShape::Number {
                                bytes: 8,
                                signed: false,
                                hex,
                            },
                            source,
                        });
                    }
                }
            }
        }
        EventClass {
            number: ty.index,
            name,
            fields,
            streams: [false; 2],
        }
    }

    /// Takes note that a stream has an event of it.
    pub(super) fn note_stream(&mut self, unknown_cpu: bool) {
        self.streams[usize::from(unknown_cpu)] = true;
    }
}

/// The names of a kind's fields: those that the format allows, each of one field.
#[derive(Default)]
struct FieldNames {
    /// By name, how many fields wanted it.
    wanted: FxHashMap<String, u32>,
}

impl FieldNames {
    /// Returns a field's name, with the `_` that keeps it from being a keyword, and a number where another has it.
    fn name(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = std::iter::once('_')
            .chain(name.chars().map(plain))
            .collect();
        let before = self.wanted.get(&name).copied().unwrap_or_default();
        let mut made = name.clone();
        let mut number = before;
        while number > 0 && self.wanted.contains_key(&made) {
            number += 1;
            made = format!("{name}_{number}");
        }
        self.wanted.insert(name, number.max(1));
        self.wanted.entry(made.clone()).or_insert(1);
        made
    }
}

fn shape(field: &FormatField) -> FieldShape {
    let signed = field.signed;
    // Numbers are of a size that the format describes; whatever else is bytes.
    let number = |bytes: u32| match bytes {
        1 | 2 | 4 | 8 => bytes,
        _ => 1,
    };
    match field.kind {
        FieldKind::Scalar if (1..=MAX_NUMBER).contains(&field.size) => FieldShape::Number {
            bytes: field.size,
            signed,
            hex: field.ctype.contains('*'),
        },
        _ if field.is_string => FieldShape::Text,
        FieldKind::DataLoc { element } | FieldKind::RelLoc { element } => FieldShape::Sequence {
            bytes: number(element),
            signed,
        },
        FieldKind::Array { element } if field.size == 0 || field.size > MAX_ARRAY => {
            FieldShape::Sequence {
                bytes: number(element),
                signed,
            }
        }
        FieldKind::Array { element } => {
            let bytes = number(element);
            let bytes = if field.size.is_multiple_of(bytes) {
                bytes
            } else {
                1
            };
            FieldShape::Array {
                bytes,
                count: field.size / bytes,
                signed,
            }
        }
        FieldKind::Scalar if field.size > MAX_ARRAY => FieldShape::Sequence {
            bytes: 1,
            signed: false,
        },
        FieldKind::Scalar => FieldShape::Array {
            bytes: 1,
            count: field.size,
            signed: false,
        },
    }
}

/// The bytes of events, one after the other: what stands behind number and time.
#[derive(Debug)]
pub(super) struct EventPayload {
    endian: Endian,
    /// Those of the event that was taken last.
    pub bytes: Vec<u8>,
    /// Events with a field that is not whole in its record.
    pub incomplete: u64,
}

impl EventPayload {
    pub(super) fn new(endian: Endian) -> EventPayload {
        EventPayload {
            endian,
            bytes: Vec::new(),
            incomplete: 0,
        }
    }

    /// Makes the bytes of an event.
    pub(super) fn take(&mut self, class: &EventClass, event: &Event<'_>, threads: &Threads) {
        self.bytes.clear();
        let thread = threads.get(event.tid);
        let pid = thread
            .and_then(|thread| thread.pid)
            .filter(|_| event.pid < 0);
        for number in [pid.unwrap_or(event.pid), event.tid] {
            let bytes = self.endian.u32_bytes(number.cast_unsigned());
            self.bytes.extend_from_slice(&bytes);
        }
        let comm = thread.and_then(|thread| thread.comm.as_deref());
        self.text(event.comm.or(comm).unwrap_or_default().as_bytes());
        let mut whole = true;
        for field in &class.fields {
            whole &= self.field(field, event, event.ty.format);
        }
        self.incomplete += u64::from(!whole);
    }

    /// Appends a field. Returns whether it is there.
    fn field(
        &mut self,
        field: &ClassField,
        event: &Event<'_>,
        format: Option<&EventFormat>,
    ) -> bool {
        let sample = event.sample;
        let number = |number: Option<u64>| number.map(|number| self.endian.u64_bytes(number));
        let (ip, period);
        let bytes: Option<&[u8]> = match (&field.source, event.body) {
            (FieldSource::Record(number), Body::Raw(record)) => format.and_then(|format| {
                let field = format.fields.get(*number)?;
                field.bytes(record, format.abi)
            }),
            (FieldSource::Bytes, Body::Raw(record)) => Some(record),
            (FieldSource::Line, Body::Text { text, .. }) => Some(text.trim_end().as_bytes()),
            (FieldSource::Ip, _) => {
                ip = number(sample.and_then(|sample| sample.ip));
                ip.as_ref().map(<[u8; 8]>::as_slice)
            }
            (FieldSource::Period, _) => {
                period = number(sample.and_then(|sample| sample.period));
                period.as_ref().map(<[u8; 8]>::as_slice)
            }
            _ => None,
        };
        let there = bytes.unwrap_or_default();
        let fixed = |size: usize, out: &mut Vec<u8>| {
            let end = out.len().saturating_add(size);
            out.extend(there.iter().take(size));
            out.resize(end, 0);
        };
        match field.shape {
            FieldShape::Number { bytes, .. } => fixed(index_of(bytes), &mut self.bytes),
            FieldShape::Array { bytes, count, .. } => {
                fixed(
                    index_of(bytes).saturating_mul(index_of(count)),
                    &mut self.bytes,
                );
            }
            FieldShape::Text => self.text(there),
            FieldShape::Sequence { bytes, .. } => {
                let count = there.len() / index_of(bytes).max(1);
                let length = u32::try_from(count).unwrap_or(u32::MAX);
                self.bytes.extend_from_slice(&self.endian.u32_bytes(length));
                let end = index_of(length) * index_of(bytes);
                self.bytes
                    .extend_from_slice(there.get(..end).unwrap_or_default());
            }
        }
        bytes.is_some()
    }

    /// Appends text up to its first zero byte.
    fn text(&mut self, text: &[u8]) {
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
    }
}
