//! Parts of an event's line that are looked at once its head is known.

use crate::head::EventHead;
use crate::lines::TextLine;
use crate::scan;

/// What stands between the time and the name: perf prints the period there, of an event that is no tracepoint. `None`
/// where there are only blanks.
#[inline]
pub(crate) fn before_name<'l>(line: &'l TextLine<'_>, head: &EventHead) -> Option<&'l [u8]> {
    // A name is known at once only where it follows the time.
    if head.ty.is_some() {
        return None;
    }
    let start = usize::from(head.colon) + 1;
    let end = scan::back_over_blanks(&line.bytes, usize::from(head.name.start));
    let between = line.bytes.get(start..end)?;
    (!between.is_empty()).then(|| between.trim_ascii())
}

/// Returns whether this is a thread's name, and no placeholder for an unknown one (`<...>`, perf's `:123`).
#[inline]
pub(crate) fn is_name(comm: &str, tid: i32) -> bool {
    let unknown = |number: &str| scan::id(number.as_bytes()) == Some(tid);
    !comm.is_empty() && comm != "<...>" && !comm.strip_prefix(':').is_some_and(unknown)
}

/// Drops what tables and HTML leave at the end of a line.
#[inline]
pub(crate) fn without_tail<'t>(text: &'t str, line: &[u8]) -> &'t str {
    match text.as_bytes().last() {
        Some(b'>') => ["<br>", "<br/>", "<br />", "</p>", "</td>", "</code>"]
            .iter()
            .find_map(|tag| text.strip_suffix(tag))
            .unwrap_or(text)
            .trim_ascii_end(),
        // The line stands in a table's cell when it begins with one too.
        Some(b'|') if line.trim_ascii_start().starts_with(b"|") => {
            text[..text.len() - 1].trim_ascii_end()
        }
        _ => text,
    }
}
