//! Distinguishes texts of traces from everything else.

use std::ops::ControlFlow;

use event::{Event, EventType, Sink};

use crate::reader::TraceTextReader;
use crate::scan;
use crate::summary::TextProducer;

/// Wants nothing.
struct SilentSink;

impl Sink for SilentSink {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        false
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Says what printed a text, from its beginning; `None` when it is no text of a trace.
///
/// Some 64 KiB are enough. A few lines of events behind a page of prose suffice, and a single one in a short
/// text. Printed tables are recognized so that their user learns what is missing.
pub fn sniff(head: &[u8]) -> Option<TextProducer> {
    if memchr::memchr(0, head).is_some() {
        return None;
    }
    // A piece of a longer text may have an empty line for each before it.
    let head = scan::trim(head);
    let mut reader = TraceTextReader::new();
    reader.feed(head, true, &mut SilentSink);
    let found = reader.found();
    let enough = if found.lines <= 100 { 1 } else { 3 };
    let certain = found.certain >= enough;
    // Without CPU and subsystem a line could be another program's; many of a kind could not.
    let lines = found.lines.saturating_sub(found.beside);
    let many = found.events >= 5 && found.events * 2 > lines;
    if certain || many {
        return found.style.or(Some(TextProducer::TraceCmd));
    }
    if found.untimed_graph >= enough && found.untimed_graph > found.events {
        return Some(TextProducer::FunctionGraph);
    }
    if let Some(table) = table(head) {
        return Some(table);
    }
    // The header of an empty buffer or recording.
    let bare = found.style_reported && found.events == 0 && found.lines <= 40 && is_header(head);
    bare.then_some(found.style).flatten()
}

/// Returns how many lines of a text are events that can be read. None of them is decoded.
pub fn count_events(text: &[u8]) -> u64 {
    crate::walk(text, &mut SilentSink).events
}

/// Returns whether a text begins as the kernel's file or trace-cmd's report does.
fn is_header(head: &[u8]) -> bool {
    let text = scan::trim(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head));
    [&b"# tracer: "[..], b"cpus=", b"version = "]
        .iter()
        .any(|start| text.starts_with(start))
}

/// Recognizes the headings of perf's tables.
fn table(head: &[u8]) -> Option<TextProducer> {
    head.split(|b| *b == b'\n').find_map(|line| {
        // Programs that print or read such headings quote them.
        let has = |word: &[u8]| scan::contains(line, word);
        if has(b"\"") {
            None
        } else if has(b"Samples%") && has(b"Time%") {
            Some(TextProducer::PerfKvmStatTable)
        } else if has(b"Runtime ms") && has(b"Switches") && has(b"|") {
            Some(TextProducer::PerfSchedTable)
        } else {
            None
        }
    })
}
