//! A text as a whole: lines, and JSON between them.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use pasted::{clean, unquoted};

use crate::reader::FactsReader;
use crate::{Facts, json, kernel_log};

/// JSON that cannot be read is tried at so many lines: each try may read far.
const MAX_JSON_FAILURES: usize = 16;

/// Reads a text. What was not understood is noted with line numbers, everything else was taken.
pub fn read(text: &[u8]) -> (Facts, Vec<String>) {
    let (facts, notes, _) = read_lines(text);
    (facts, notes)
}

/// As [`read`], and returns which lines, counted from 1, are nothing known, as prose between others is.
pub fn read_lines(text: &[u8]) -> (Facts, Vec<String>, Vec<RangeInclusive<usize>>) {
    let text = String::from_utf8_lossy(text);
    let text = as_written(&text);
    let mut reader = FactsReader::new();
    take(text.strip_prefix('\u{feff}').unwrap_or(&text), &mut reader);
    reader.end();
    let (facts, left_out) = reader.gather.finish();
    let (mut notes, unknown) = reader.notes.finish();
    notes.extend(left_out);
    (facts, notes, unknown)
}

/// Returns a text without a mailer's marks before its lines, and with line feeds at their ends.
fn as_written(text: &str) -> Cow<'_, str> {
    let text = match text.contains('\r') && !text.contains('\n') {
        true => Cow::Owned(text.replace('\r', "\n")),
        false => Cow::Borrowed(text),
    };
    if text.lines().all(|line| unquoted(line).is_none()) {
        return text;
    }
    let lines = text.lines().map(|line| unquoted(line).unwrap_or(line));
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Takes a text, line by line, with the JSON that stands between the lines.
fn take(text: &str, reader: &mut FactsReader) {
    let mut json_failures = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(['{', '['])
            && !kernel_log::is_stamped(head(rest))
            && json_failures < MAX_JSON_FAILURES
        {
            if let Some(used) = json::read(rest, reader) {
                reader.number += lines_in(&rest[..used]);
                at += used;
                continue;
            }
            json_failures += 1;
        }
        // Blanks before JSON are no part of it; the columns of other lines count from the line's begin.
        let text = rest.trim_start_matches([' ', '\t']);
        let is_json = text.starts_with(['{', '[']) && !kernel_log::is_stamped(head(text));
        if text.len() < rest.len() && is_json {
            at += rest.len() - text.len();
            continue;
        }
        let line = first_line(rest);
        reader.line(&clean(line));
        at += line.len() + 1;
        reader.number += 1;
    }
}

/// Returns as much of the first line as has what stands before a log's message: lines of JSON are looked at once for
/// each value in them.
fn head(text: &str) -> &str {
    first_line(&text[..text.floor_char_boundary(1 << 10)])
}

fn first_line(text: &str) -> &str {
    text.split('\n').next().unwrap_or_default()
}

fn lines_in(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}
