//! Events that count by themselves.

use event::{Event, FieldReader};

/// A number that a field of an event has.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedNumber {
    pub field: &'static str,
    pub number: u64,
}

/// An event that is counted: by what its name begins with, and by numbers in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleEvent {
    pub names: &'static [&'static str],
    pub fields: [Option<WantedNumber>; 2],
}

impl SingleEvent {
    /// Returns whether an event is such a one. A field that it does not have says nothing against it.
    pub(super) fn is(&self, event: &Event<'_>) -> bool {
        let agrees = |wanted: &WantedNumber| {
            let reader = FieldReader::of(event.ty, wanted.field);
            let number = reader.number(event, &event.data());
            number.is_none_or(|number| number == wanted.number)
        };
        let name = event.ty.name.strip_prefix("kp_").unwrap_or(event.ty.name);
        let is_named = self.names.iter().any(|begin| name.starts_with(begin));
        is_named && self.fields.iter().flatten().all(agrees)
    }
}
