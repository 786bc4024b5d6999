//! A walk for what a recording lacks alone.

use std::ops::ControlFlow;

use event::{Event, EventType, Quality, Sink};
use session::{FilterScope, HostFacts, Opened};

/// Wants no event: what is left is what the recording lacks.
struct NoEvents;

impl Sink for NoEvents {
    fn wants(&mut self, _ty: &EventType<'_>) -> bool {
        false
    }

    fn event(&mut self, _event: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Returns what a recording lacks, for a document in which that stands first: a walk of its own, since otherwise it is
/// known last.
pub(super) fn quality(recording: &Opened<'_>, facts: &HostFacts) -> Quality {
    let mut quality = recording.walk_filtered(&mut NoEvents, FilterScope::Events);
    quality.quality.doubts.extend(facts.doubts());
    quality.quality
}
