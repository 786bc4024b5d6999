//! Traces in a text: where one ends and another begins.

use std::ops::Range;

use tracetext::{EventLineForm, event_line};

use crate::lines::{TicketLines, unquoted};

/// Events of a trace at least: one alone may be quoted in a sentence.
const MIN_EVENTS: usize = 2;
/// Traces that are kept apart; what follows belongs to the last.
const MAX_TRACES: usize = 256;
/// A recording's time goes on by less than this across a remark of its author.
const JUMP_NS: u64 = 10_000_000_000;
/// Lines of several CPUs may be so far out of order.
const BACK_NS: u64 = 1_000_000;
/// Lines of other text that are no remark any more, but what stands between two recordings.
const PROSE: usize = 3;
/// Lines of a header or a stack that are looked at around a trace.
const AROUND: usize = 128;

/// A trace under way.
struct OpenTrace {
    lines: Range<usize>,
    events: usize,
    form: EventLineForm,
    time_ns: Option<u64>,
    /// Since its last event: lines of other text.
    prose: usize,
    /// Since then a block of code ended, or another began.
    fence: bool,
}

/// Finds traces. Takes their lines.
pub(crate) fn traces(lines: &mut TicketLines<'_>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open: Option<OpenTrace> = None;
    for at in 0..lines.len() {
        if !lines.is_free(at) {
            // Something else stands between.
            found.extend(open.take().and_then(OpenTrace::range));
            continue;
        }
        let line = lines.line(at);
        let Some(event) = event_line(line) else {
            if let Some(open) = &mut open {
                open.prose += usize::from(is_prose(line));
                open.fence |= perftables::is_fence(&String::from_utf8_lossy(line.trim_ascii()));
            }
            continue;
        };
        let last = found.len() + 1 >= MAX_TRACES;
        if let Some(done) =
            open.take_if(|open| !last && open.ends_before(event.form, event.time_ns))
        {
            found.extend(done.range());
        }
        let open = open.get_or_insert(OpenTrace {
            lines: at..at,
            events: 0,
            form: event.form,
            time_ns: None,
            prose: 0,
            fence: false,
        });
        open.lines.end = at + 1;
        open.events += 1;
        (open.prose, open.fence) = (0, false);
        open.time_ns = event.time_ns.or(open.time_ns);
        if event.form != EventLineForm::Nameless {
            open.form = event.form;
        }
    }
    found.extend(open.and_then(OpenTrace::range));
    let found = found.into_iter().map(|trace| widened(lines, trace));
    let found: Vec<Range<usize>> = found.filter(|trace| is_trace(lines, trace)).collect();
    for trace in &found {
        lines.take(trace.clone());
    }
    found
}

impl OpenTrace {
    /// Whether an event of this form and time begins another trace. Without other text between, a text is one trace,
    /// whatever its times are.
    fn ends_before(&self, form: EventLineForm, time_ns: Option<u64>) -> bool {
        if self.prose == 0 && !self.fence {
            return false;
        }
        let nameless = EventLineForm::Nameless;
        if form != self.form && form != nameless && self.form != nameless {
            return true;
        }
        let (Some(last), Some(next)) = (self.time_ns, time_ns) else {
            return false;
        };
        let apart = self.prose >= PROSE || self.fence;
        last > next.saturating_add(BACK_NS) || apart && next > last.saturating_add(JUMP_NS)
    }

    fn range(self) -> Option<Range<usize>> {
        (self.events >= MIN_EVENTS).then_some(self.lines)
    }
}

/// Whether a line is other text: what is indented or begins with a sign may belong to the event before it.
fn is_prose(line: &[u8]) -> bool {
    let line = unquoted(line);
    let first = line.first();
    first.is_some_and(|byte| !byte.is_ascii_whitespace() && !b"#=".contains(byte))
}

/// Returns a trace with the header before it and the stack behind it.
fn widened(lines: &TicketLines<'_>, trace: Range<usize>) -> Range<usize> {
    let is_header = |at: &usize| {
        let line = unquoted(lines.free(*at)).trim_ascii();
        line.starts_with(b"# ")
            || line == b"#"
            || line.starts_with(b"cpus=")
            || line.starts_with(b"version = ")
    };
    // A heading of Markdown begins as a comment does: only headers that say so are taken.
    let before = (trace.start.saturating_sub(AROUND)..trace.start).rev();
    let header: Vec<usize> = before.take_while(is_header).collect();
    let known = header.iter().rev().position(|at| {
        let line = unquoted(lines.free(*at)).trim_ascii();
        [&b"# tracer:"[..], b"cpus=", b"version = ", b"# ========"]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let start = match known {
        Some(after) => trace.start - header.len() + after,
        None => trace.start,
    };
    let is_stack = |at: &usize| {
        let line = lines.free(*at);
        let bare = unquoted(line).trim_ascii_start();
        let address = bare
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        bare.starts_with(b"=>")
            || bare.starts_with(b"<stack trace>")
            || (address >= 8 && bare.len() < line.len())
    };
    let behind = (trace.end..lines.len()).take(AROUND).take_while(is_stack);
    start..trace.end + behind.count()
}

/// Whether the reader of traces takes them for one.
fn is_trace(lines: &TicketLines<'_>, trace: &Range<usize>) -> bool {
    let mut text = Vec::new();
    for at in trace.clone() {
        text.extend_from_slice(lines.line(at));
        text.push(b'\n');
    }
    tracetext::sniff(&text).is_some_and(|producer| !producer.is_table())
}
