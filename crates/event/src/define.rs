//! How an event with a typed view is declared: [`event!`].

use std::fmt::Debug;

use tracefmt::EventFormat;

use crate::text_reasons::TextReasons;

/// A field that conditions may ask for by name.
pub(crate) struct NamedCondition<T: 'static> {
    /// Its names: those in records, and others.
    pub names: &'static [&'static str],
    /// Whether it reads as a number in records and texts alike.
    pub number: bool,
    /// Reads it.
    pub get: fn(&T) -> Option<u64>,
}

/// What was read from an event's text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParsedText<T> {
    pub event: T,
    /// Whether nothing that the event always says is missing.
    pub complete: bool,
    /// How many of its numbers were found.
    pub found: u8,
}

/// How an event's text is read.
pub(crate) enum TextForm<T> {
    /// It is not: nothing is missed without.
    No,
    /// From a whole line.
    Whole(fn(&[u8]) -> Option<T>),
    /// Also from a part of a line, to find out which parts belong together.
    Parts(fn(&[u8], &mut TextReasons) -> Option<ParsedText<T>>),
}

/// An event with a typed view.
pub(crate) trait TypedKind: Copy + 'static {
    /// Where its fields are in a record.
    type Places: Copy + Debug;

    /// What conditions may ask for by name.
    const NAMED: &'static [NamedCondition<Self>];

    /// How its text is read.
    const TEXT: TextForm<Self>;

    /// Finds out where the fields are; `None` when the format misses one without which the event means nothing.
    fn bind(format: &EventFormat) -> Option<Self::Places>;

    /// Reads a record; `None` when it is too short.
    fn read(places: &Self::Places, record: &[u8]) -> Option<Self>;
}

/// Declares an event with a typed view: a struct, where its fields are in records, and what conditions call them.
///
/// A field has a type ([`crate::record::FieldType`]) and names. Records are searched for each name in turn, and path
/// conditions may use any of them. Without a field the event means nothing, unless there is a value to take instead
/// (`or`). `text` says how the event's text is read; `from_fields` reads `name=value`, as `trace-cmd report -R` prints.
/// `also` gives a name to something else that conditions may compare.
macro_rules! event {
    (
        $(#[$doc:meta])*
        $name:ident at $places:ident {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $($in_record:literal)|+ $(or $default:expr)?,)+
        }
        text: $text:expr
        $(, also $other:literal = $read:expr)* $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        /// Where the fields are in a record.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $places {
            $($field: Option<<$type as $crate::record::FieldType>::Place>,)+
        }

        impl $name {
            /// Reads the fields of a text that prints them as `name=value`; `None` when one is missing that the event
            /// needs.
            #[allow(dead_code, reason = "not every event is printed so")]
            fn from_fields(text: &[u8]) -> Option<$name> {
                Some($name {
                    $($field: {
                        let number = [$($in_record),+]
                            .iter()
                            .find_map(|name| $crate::text::field_number(text, name));
                        let value = number.and_then(<$type as $crate::record::FieldType>::printed);
                        event!(@or value $(, $default)?)
                    },)+
                })
            }
        }

        impl $crate::define::TypedKind for $name {
            type Places = $places;

            const NAMED: &'static [$crate::define::NamedCondition<$name>] = &[
                $($crate::define::NamedCondition {
                    names: &[$($in_record),+],
                    number: <$type as $crate::record::FieldType>::NUMBER,
                    get: |event| $crate::record::FieldType::number(event.$field),
                },)+
                $($crate::define::NamedCondition {
                    names: &[$other],
                    number: true,
                    get: $read,
                },)*
            ];

            const TEXT: $crate::define::TextForm<$name> = $text;

            fn bind(format: &tracefmt::EventFormat) -> Option<$places> {
                $(
                    let $field = [$($in_record),+].iter().find_map(|name| {
                        let field = format.field(name)?;
                        <$type as $crate::record::FieldType>::place(field, format.abi.endian)
                    });
                    event!(@need $field $(, $default)?);
                )+
                Some($places { $($field,)+ })
            }

            #[inline]
            fn read(places: &$places, record: &[u8]) -> Option<$name> {
                Some($name {
                    $($field: {
                        let place = places.$field;
                        let value = place.and_then(|place| {
                            <$type as $crate::record::FieldType>::read(place, record)
                        });
                        event!(@or value $(, $default)?)
                    },)+
                })
            }
        }
    };
    (@need $place:ident) => {
        $place?;
    };
    (@need $place:ident, $default:expr) => {};
    (@or $value:ident) => {
        $value?
    };
    (@or $value:ident, $default:expr) => {
        $value.unwrap_or($default)
    };
}

pub(crate) use event;
