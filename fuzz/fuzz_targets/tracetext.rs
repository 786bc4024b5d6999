//! Text: whole, and in pieces, which must give the same.
#![no_main]

use std::ops::ControlFlow;

use event::{Body, Event, EventType, Side, Sink};
use libfuzzer_sys::fuzz_target;
use tracetext::TraceTextReader;

/// Notes what comes, as text.
#[derive(Default, PartialEq)]
struct Notes {
    events: Vec<String>,
}

impl Sink for Notes {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let body = match event.body {
            Body::Text { text, data } => format!("{text} {data:?}"),
            Body::Raw(_) | Body::None => String::new(),
        };
        self.events.push(format!(
            "{} {} {} {} {:?} {} {body}",
            event.time, event.cpu, event.tid, event.pid, event.comm, event.ty.label
        ));
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.events.push(format!("{side:?}"));
    }
}

fuzz_target!(|data: &[u8]| {
    // The first byte says how long the pieces are.
    let Some((&step, text)) = data.split_first() else {
        return;
    };
    let _ = tracetext::sniff(text);
    for line in text.split(|byte| *byte == b'\n') {
        let _ = tracetext::event_line(line);
    }
    let mut whole = Notes::default();
    let summary = tracetext::walk(text, &mut whole);
    let mut pieces = Notes::default();
    let mut reader = TraceTextReader::new();
    let (mut start, mut end) = (0, 0);
    loop {
        end = (end + 1 + usize::from(step) * 16).min(text.len());
        let last = end == text.len();
        let fed = reader.feed(&text[start..end], last, &mut pieces);
        assert!(fed.consumed <= end - start);
        assert!(fed.flow.is_continue());
        start += fed.consumed;
        if last {
            break;
        }
    }
    let again = reader.finish(&mut pieces);
    assert!(whole.events == pieces.events);
    assert_eq!(summary.quality, again.quality);
});
