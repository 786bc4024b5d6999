//! A kind of events that outlives its recording's reader.

use tracefmt::EventFormat;

use crate::sink::EventType;
use crate::vocabulary::{Decoder, Kind};

/// A kind of events with all that it says of itself, for those who look at its events on another thread than the one
/// that reads them.
#[derive(Debug, Clone)]
pub struct OwnedType {
    index: u32,
    machine: u16,
    system: String,
    name: String,
    label: String,
    kind: Kind,
    format: Option<EventFormat>,
    decoder: Decoder,
    recorded: bool,
}

impl OwnedType {
    /// Copies a kind of events.
    pub fn of(ty: &EventType<'_>) -> OwnedType {
        OwnedType {
            index: ty.index,
            machine: ty.machine,
            system: ty.system.to_owned(),
            name: ty.name.to_owned(),
            label: ty.label.to_owned(),
            kind: ty.kind,
            format: ty.format.cloned(),
            decoder: ty.decoder,
            recorded: ty.recorded,
        }
    }

    /// Returns the same kind as one of another machine, with another index: where several recordings are walked
    /// together, both count through all of them.
    pub fn with(self, machine: u16, index: u32) -> OwnedType {
        OwnedType {
            index,
            machine,
            ..self
        }
    }

    /// Returns it as sinks are shown it.
    pub fn ty(&self) -> EventType<'_> {
        EventType {
            index: self.index,
            machine: self.machine,
            system: &self.system,
            name: &self.name,
            label: &self.label,
            kind: self.kind,
            format: self.format.as_ref(),
            decoder: self.decoder,
            recorded: self.recorded,
        }
    }
}
