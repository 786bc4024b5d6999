//! A walk for the doubts about a recording alone.

use std::ops::ControlFlow;

use event::{Event, EventType, Quality, Sink};
use session::{FilterScope, HostFacts, OpenRecording};

/// Wants no event: what is left are the doubts about the recording.
struct NoEvents;

impl Sink for NoEvents {
    fn wants(&mut self, _ty: &EventType<'_>) -> bool {
        false
    }

    fn event(&mut self, _event: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Returns the doubts about a recording, for a document in which that stands first: a walk of its own, since otherwise
/// it is known last.
pub(super) fn quality(recording: &OpenRecording<'_>, facts: &HostFacts) -> Quality {
    let mut quality = recording.walk_filtered(&mut NoEvents, FilterScope::Events);
    quality.quality.doubts.extend(facts.doubts());
    quality.quality
}
