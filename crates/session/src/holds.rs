//! What a recording holds, and does not.

use std::ops::ControlFlow;

use analysis::{EventCount, RecordingContents, Study};
use event::{Event, EventOrder, EventType, Kind, Sink};
use source::RecordingReader;

/// Kinds of events that a message names.
const KINDS: usize = 4;

/// Returns a recording's kinds of events with how many there are, most frequent first, and the names of those of which
/// it is certain that they were recorded.
pub(crate) fn held(reader: &RecordingReader<'_>) -> (Vec<EventCount>, Vec<String>) {
    let mut study = Study::default();
    let info = study.add(RecordingContents::new());
    reader.walk(&mut study);
    let answers = study.finish();
    let report = answers.take(info).report(&study.walked());
    (report.events, report.recorded)
}

/// Names the most frequent kinds of events.
pub(crate) fn named(events: &[EventCount]) -> String {
    let happened = events.iter().filter(|event| event.count > 0);
    let mut names: Vec<String> = happened
        .clone()
        .take(KINDS)
        .map(|event| format!("{} {}", event.count, words::on_one_line(&event.name)))
        .collect();
    let more = happened.count().saturating_sub(KINDS);
    if more > 0 {
        names.push(words::plural(more, "more kind"));
    }
    if names.is_empty() {
        "it holds no events at all".to_owned()
    } else {
        format!("it holds {}", names.join(", "))
    }
}

/// Looks for an event by which a vCPU leaves or enters its guest, and ends the walk with the first.
#[derive(Debug, Default)]
pub(crate) struct GuestSwitches {
    /// Whether there is one.
    pub found: bool,
}

impl Sink for GuestSwitches {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        matches!(ty.kind, Kind::KvmExit | Kind::KvmEntry | Kind::KvmInnerExit)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Any
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        self.found = true;
        ControlFlow::Break(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_called_several_lines_is_named_in_one() {
        let event = |name: &str, count| EventCount {
            name: name.to_owned(),
            count,
        };
        let events = [event("kvm:kvm_exit", 3), event("name: x\nID: 319", 2)];
        assert_eq!(
            named(&events),
            "it holds 3 kvm:kvm_exit, 2 name: x\\nID: 319"
        );
    }
}
