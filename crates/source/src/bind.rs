//! Binds the formats of a recording to the event vocabulary.

use event::{Decoder, EventType, Kind};
use tracefmt::Format;

/// Returns the event type of a tracepoint's format.
pub(crate) fn tracepoint<'f>(index: u32, format: &'f Format, label: &'f str) -> EventType<'f> {
    let kind = Kind::of(&format.system, &format.name);
    EventType {
        index,
        machine: 0,
        system: &format.system,
        name: &format.name,
        label,
        kind,
        format: Some(format),
        decoder: Decoder::bind(kind, format),
        recorded: false,
    }
}

/// Returns the event type of something that has no format: a hardware event, or a tracepoint whose format
/// was lost. `label` is `system:name`, a bare name, or either with modifiers behind another colon.
pub(crate) fn bare(index: u32, label: &str, tracepoint: bool) -> EventType<'_> {
    let (system, name) = match label.split_once(':') {
        Some((system, name)) if tracepoint => (system, name),
        _ => ("", label),
    };
    EventType {
        index,
        machine: 0,
        system,
        name,
        label,
        kind: Kind::of(system, name),
        format: None,
        decoder: Decoder::default(),
        recorded: false,
    }
}

/// Returns kinds of events in the order in which sinks are asked for them.
pub(crate) fn by_kind<'t, 'f>(types: &'t [EventType<'f>]) -> Vec<&'t EventType<'f>> {
    let mut sorted: Vec<&EventType<'_>> = types.iter().collect();
    sorted.sort_by_key(|ty| ty.kind);
    sorted
}
