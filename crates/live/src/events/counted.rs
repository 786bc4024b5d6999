//! What of the events is counted.

use std::ops::ControlFlow;

use analysis::Study;
use event::{Event, EventOrder, EventType, Side, Sink};

/// Hands a study what happened behind a time.
pub(super) struct CountedEvents<'s> {
    study: &'s mut Study,
    from: u64,
    newest: u64,
}

impl<'s> CountedEvents<'s> {
    pub(super) fn new(study: &'s mut Study, from: u64) -> CountedEvents<'s> {
        CountedEvents {
            study,
            from,
            newest: 0,
        }
    }

    /// Returns the newest time that there was.
    #[cfg(test)]
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }
}

impl Sink for CountedEvents<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.newest = self.newest.max(event.time);
        if event.time > self.from {
            return self.study.event(event);
        }
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        // What has no time stands before the events.
        let time = time(side);
        self.newest = self.newest.max(time);
        if time == 0 || time > self.from {
            self.study.side(side);
        }
    }
}

fn time(side: &Side<'_>) -> u64 {
    match *side {
        Side::Comm { time, .. }
        | Side::Fork { time, .. }
        | Side::Exit { time, .. }
        | Side::Mmap { time, .. }
        | Side::Ksymbol { time, .. }
        | Side::DeferredStack { time, .. }
        | Side::Lost { time, .. } => time,
        _ => 0,
    }
}
