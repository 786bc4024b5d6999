//! Definitions of guests in a text: libvirt's XML, as it is or with HTML's entities, and QEMU's command lines.

use std::ops::Range;

use domain::GuestDefinition;

use crate::lines::{TicketLines, unquoted};

/// Definitions that are kept.
const MAX_DEFINITIONS: usize = 64;
/// Lines that a command line goes on in at most.
const MAX_COMMAND: usize = 256;
/// Options that a command line of QEMU has at least two of, where it is a definition; a mere name of the program is
/// none.
const OPTIONS: [&[u8]; 7] = [
    b" -m ",
    b" -smp ",
    b" -machine ",
    b" -M ",
    b" -cpu ",
    b" -name ",
    b" -drive ",
];

/// A definition and where it stands in its text.
#[derive(Debug)]
pub struct PlacedDefinition {
    /// The definition, which knows its own text.
    pub definition: GuestDefinition,
    /// Its first line, counted from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// Whether it is a command line, which may stand in a list of processes.
    pub(crate) is_command: bool,
}

/// Finds definitions. Takes the lines of XML; those of commands may say of threads too whose they are.
pub(crate) fn definitions(lines: &mut TicketLines<'_>) -> Vec<PlacedDefinition> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() && found.len() < MAX_DEFINITIONS {
        let of_xml = xml(lines, at);
        let is_xml = of_xml.is_some();
        let Some(range) = of_xml.or_else(|| command(lines, at)) else {
            at += 1;
            continue;
        };
        let text = text(lines, &range);
        at = range.end;
        if !is_xml && !has_options(&text) {
            continue;
        }
        let read = domain::definitions(&text).unwrap_or_default();
        let Ok([definition]) = <[GuestDefinition; 1]>::try_from(read) else {
            continue;
        };
        found.push(PlacedDefinition {
            definition,
            first_line: range.start as u64 + 1,
            last_line: range.end as u64,
            is_command: !is_xml,
        });
        if is_xml {
            lines.take(range);
        }
    }
    found
}

/// Returns the lines of a domain's XML that begins at a line.
fn xml(lines: &TicketLines<'_>, at: usize) -> Option<Range<usize>> {
    let begins = |line: &[u8]| {
        let starts: [&[u8]; 4] = [b"<domain ", b"<domain>", b"&lt;domain ", b"&lt;domain&gt;"];
        let bare = unquoted(line).trim_ascii_start();
        starts.iter().any(|start| bare.starts_with(start))
    };
    if !begins(lines.free(at)) {
        return None;
    }
    let ends = |line: &[u8]| {
        let ends: [&[u8]; 2] = [b"</domain>", b"&lt;/domain&gt;"];
        ends.iter()
            .any(|end| memchr::memmem::find(line, end).is_some())
    };
    // Another one that begins first means that the end of this one was not pasted.
    let last = (at..lines.len()).find(|line| {
        let text = lines.free(*line);
        ends(text) || *line > at && begins(text)
    })?;
    ends(lines.free(last)).then_some(at..last + 1)
}

/// Returns the lines of a command line of QEMU that begins at a line, with the lines that it goes on in.
fn command(lines: &TicketLines<'_>, at: usize) -> Option<Range<usize>> {
    let has = |line: &[u8], what: &[u8]| memchr::memmem::find(line, what).is_some();
    let first = lines.free(at);
    if !has(first, b"qemu-system-") && !has(first, b"qemu-kvm") {
        return None;
    }
    let goes_on = |at: &usize| lines.line(*at).trim_ascii_end().ends_with(b"\\");
    let broken = (at..lines.len().saturating_sub(1)).take(MAX_COMMAND);
    let end = at + 1 + broken.take_while(goes_on).count();
    Some(at..end)
}

/// Whether a text has as many of QEMU's options as a definition.
fn has_options(text: &[u8]) -> bool {
    let has = |option: &&&[u8]| memchr::memmem::find(text, option).is_some();
    OPTIONS.iter().filter(has).count() > 1
}

/// Returns lines as one text. Entities are XML's own, unless its tags have some.
fn text(lines: &TicketLines<'_>, range: &Range<usize>) -> Vec<u8> {
    let first = lines.line(range.start);
    let is_escaped = memchr::memmem::find(first, b"&lt;").is_some();
    let text: String = range
        .clone()
        .map(|at| match is_escaped {
            true => {
                let line = String::from_utf8_lossy(lines.line(at));
                let line = pasted::clean(&line);
                pasted::unquoted(&line).unwrap_or(&line).to_owned() + "\n"
            }
            false => {
                String::from_utf8_lossy(unquoted(lines.line(at))).replace('\u{a0}', " ") + "\n"
            }
        })
        .collect();
    text.into_bytes()
}
