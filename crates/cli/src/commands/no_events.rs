//! A walk for what a recording lacks alone.

use std::ops::ControlFlow;

use event::{Event, EventType, Sink};

/// Wants no event: what is left is what the recording lacks.
pub(crate) struct NoEvents;

impl Sink for NoEvents {
    fn wants(&mut self, _ty: &EventType<'_>) -> bool {
        false
    }

    fn event(&mut self, _event: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
