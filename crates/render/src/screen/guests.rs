//! What guests did, where their own recordings say so.

use textwrap::core::display_width;
use words::share;

use super::input::ScreenInput;
use super::line::{Line, Tone};
use crate::guest_tasks::{summed, summed_text, unknown};

/// Rows of a screen.
const ROWS: usize = 4;

/// Returns what guests did most, idle time left out.
pub(crate) fn lines(input: &ScreenInput<'_>, width: usize) -> Vec<Line> {
    let Some(report) = &input.picture.vcpus else {
        return Vec::new();
    };
    let tasks = summed(report);
    if tasks.is_empty() {
        return Vec::new();
    }
    let shown = tasks.get(..ROWS).unwrap_or(&tasks);
    let title = match tasks.len() - shown.len() {
        0 => "what the guest did, without idle time".to_owned(),
        more => format!(
            "what the guest did, without idle time: most of it ('trapline vcpus' has {more} more)"
        ),
    };
    let table = summed_text(shown, &report.unknowable(), input.layout(width, usize::MAX));
    let rows = table.lines().map(|row| Line::new(Tone::Plain, row));
    let title = Line::new(Tone::Strong, &title);
    // What is left of the vCPUs' time is not theirs alone.
    let (unknown, all) = unknown(report);
    let unknown_line = (unknown > 0).then(|| {
        let text = format!(
            "  For {} ({}) the guest's recording does not say what it did.",
            input.time(unknown),
            share::tenths(unknown as f64 / all.max(1) as f64)
        );
        Line::new(Tone::Plain, &text)
    });
    std::iter::once(title)
        .chain(rows)
        .chain(unknown_line)
        .collect()
}

/// Returns the same in one line: shares of all vCPUs' time.
pub(crate) fn short(input: &ScreenInput<'_>, width: usize) -> Option<String> {
    let report = input.picture.vcpus.as_ref()?;
    let tasks = summed(report);
    let whole = input.picture.observed_ns().max(1);
    let mut out = String::new();
    for one in tasks.iter().take(ROWS) {
        let part = share::cell(one.task.times.total() as f64 / whole as f64);
        let begin = match out.as_str() {
            "" => "guest (%): ",
            _ => ", ",
        };
        let more = format!("{begin}{} {part}", crate::clean(&one.called()));
        if display_width(&out) + display_width(&more) > width {
            break;
        }
        out.push_str(&more);
    }
    (!out.is_empty()).then_some(out)
}
