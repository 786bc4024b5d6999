//! Lines of events that were read from text: the columns set anew, the event's own text as it stood.

use std::fmt::Write;

use event::{Body, Event, NONE};
use tracefmt::FormatText;

/// Whose columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    /// `perf script`: `comm tid [cpu] time: system:event: text`.
    Perf,
    /// `trace-cmd report`: `comm-tid [cpu] time: event: text`.
    TraceCmd,
}

/// Appends one event as a line, its end included.
///
/// `seconds` says whether times are nanoseconds printed as seconds, `digits` with how many decimals; other
/// times are plain numbers.
pub fn text_line(
    out: &mut FormatText,
    event: &Event<'_>,
    style: TextStyle,
    seconds: bool,
    digits: usize,
) {
    let comm = event.comm.unwrap_or("<...>");
    // Writing into memory cannot fail.
    let _ = match style {
        TextStyle::Perf => write!(out, "{comm:>16} {:>5} ", event.tid),
        TextStyle::TraceCmd => write!(out, "{comm:>16}-{:<5} ", event.tid),
    };
    if event.cpu != NONE {
        let _ = write!(out, "[{:03}] ", event.cpu);
    }
    let time = event.time;
    let _ = if seconds {
        let (whole, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        let rest = format!("{rest:09}");
        write!(out, "{whole:>5}.{}: ", &rest[..digits.min(9)])
    } else {
        write!(out, "{time}: ")
    };
    let text = match event.body {
        Body::Text { text, .. } => text,
        _ => "",
    };
    let _ = match style {
        TextStyle::Perf => writeln!(out, "{}: {text}", event.ty.label),
        TextStyle::TraceCmd => writeln!(out, "{:<21} {text}", format!("{}:", event.ty.name)),
    };
}
