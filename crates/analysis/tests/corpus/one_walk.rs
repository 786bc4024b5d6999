//! A walk is the same with any number of threads, and finds the same in time order as in as little order as is asked
//! for: over every recording of the corpus. Random recordings are asked the same in `crates/perfdata/tests`, random
//! streams of events in `crates/paths/tests/anything/order.rs`.

#[path = "../../../paths/tests/common/found.rs"]
mod found;

use std::hash::{DefaultHasher, Hasher};
use std::ops::ControlFlow;

use event::{Body, Event, EventOrder, EventType, Side, Sink};
use fixtures::{Failures, cases, note};
use source::{ReaderOptions, RecordingBytes};

/// In which order events are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// All in time order, whatever is needed.
    Time,
    /// As is needed.
    Needed,
}

/// Hands events on, and takes down which came when.
struct Heard<S> {
    sink: S,
    asks: Asks,
    heard: DefaultHasher,
    events: u64,
}

impl<S> Heard<S> {
    fn new(sink: S, asks: Asks) -> Heard<S> {
        Heard {
            sink,
            asks,
            heard: DefaultHasher::new(),
            events: 0,
        }
    }
}

impl<S: Sink> Sink for Heard<S> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.sink.wants(ty)
    }

    fn order(&self, ty: &EventType<'_>) -> EventOrder {
        match self.asks {
            Asks::Time => EventOrder::Time,
            Asks::Needed => self.sink.order(ty),
        }
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.events += 1;
        self.heard.write_u64(event.time);
        self.heard.write_i32(event.cpu);
        self.heard.write_i32(event.tid);
        self.heard.write_u32(event.ty.index);
        match event.body {
            Body::Raw(record) => self.heard.write(record),
            Body::Text { text, .. } => self.heard.write(text.as_bytes()),
            Body::None => {}
        }
        self.sink.event(event)
    }

    fn side(&mut self, side: &Side<'_>) {
        self.heard.write(format!("{side:?}").as_bytes());
        self.sink.side(side);
    }
}

/// Wants everything.
struct All;

impl Sink for All {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Walks a recording. Returns the sink, and what was heard and is lacking.
fn walk<S: Sink>(recording: &RecordingBytes, threads: usize, asks: Asks, sink: S) -> (S, String) {
    let options = ReaderOptions {
        threads,
        ..ReaderOptions::default()
    };
    let mut heard = Heard::new(sink, asks);
    let quality = match recording.reader(options) {
        Ok(reader) => format!("{:?}", reader.walk(&mut heard).quality),
        Err(error) => error.to_string(),
    };
    let summary = format!(
        "{} events {:x} {quality}",
        heard.events,
        heard.heard.finish()
    );
    (heard.sink, summary)
}

#[test]
fn threads_change_nothing() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok(recording) = RecordingBytes::open(&case.path) else {
            continue;
        };
        let (_, expected) = walk(&recording, 1, Asks::Time, All);
        for threads in [2, 3] {
            let (_, walked) = walk(&recording, threads, Asks::Time, All);
            failures.equal(
                &format!("{}, {threads} threads", case.name),
                &walked,
                &expected,
            );
        }
        for (one, two) in found::studies().into_iter().zip(found::studies()) {
            let (_, expected) = walk(&recording, 1, Asks::Needed, one);
            let (_, walked) = walk(&recording, 2, Asks::Needed, two);
            failures.equal(&case.name, &walked, &expected);
        }
        note(&format!("{}: {expected}", case.name));
    }
    failures.finish(300);
}

#[test]
fn order_that_nobody_needs_changes_nothing() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok(recording) = RecordingBytes::open(&case.path) else {
            continue;
        };
        for (merged, other) in found::studies().into_iter().zip(found::studies()) {
            let finish = |(mut study, _): (found::AskedStudy, String)| {
                study.finish();
                found::found(&study)
            };
            let merged = finish(walk(&recording, 1, Asks::Time, merged));
            let other = finish(walk(&recording, 2, Asks::Needed, other));
            failures.equal(&case.name, &other, &merged);
        }
    }
    failures.finish(200);
}
