//! What was found in tickets, mails and pages: which parts in which lines, and how much of them was read.

use serde::Serialize;
use ticket::{PartKind, Ticket, TicketPart};

use crate::neutral;
use crate::quality::wrap;
use crate::shape;

/// Columns of a name of a part that are printed.
const NAME: usize = 36;

/// A text in which several things stand.
#[derive(Debug, Serialize)]
pub struct TicketDocument<'a> {
    /// The input.
    input: &'a str,
    /// Lines that are in parts.
    lines_read: u64,
    /// Lines that look like a tool's output and are in none.
    lines_unread: u64,
    /// The first of them, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_unread: Option<u64>,
    /// The line from which on the same stands there again.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated_from: Option<u64>,
    /// The parts, in the order of the text.
    parts: Vec<TicketPartDocument<'a>>,
}

/// A part of such a text.
#[derive(Debug, Serialize)]
struct TicketPartDocument<'a> {
    /// Its first line, counted from 1.
    first_line: u64,
    /// Its last line.
    last_line: u64,
    /// `trace`, `table`, `definition`, `facts` or `score`.
    kind: &'static str,
    /// What it is, in words.
    what: String,
    /// The heading or sentence before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// The guest that it is of, of those that the text has definitions of.
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<&'a str>,
}

shape!(TicketDocument<'static> { input, lines_read, lines_unread, first_unread?, repeated_from?, parts });
shape!(TicketPartDocument<'static> { first_line, last_line, kind, what, name?, guest? });

impl<'a> TicketDocument<'a> {
    /// Returns the document of an input.
    pub fn of(input: &'a str, ticket: &'a Ticket) -> TicketDocument<'a> {
        let unread = ticket.lines_unread();
        let parts = ticket.parts.iter().map(|part| TicketPartDocument {
            first_line: part.first_line,
            last_line: part.last_line,
            kind: kind(part),
            what: what(part),
            name: part.name.as_deref(),
            guest: guest(ticket, part),
        });
        TicketDocument {
            input,
            lines_read: ticket.lines_read(),
            lines_unread: unread.lines,
            first_unread: (unread.lines > 0).then_some(unread.first),
            repeated_from: ticket.repeated_from,
            parts: parts.collect(),
        }
    }
}

fn kind(part: &TicketPart) -> &'static str {
    match part.kind {
        PartKind::Trace(_) => "trace",
        PartKind::Table { .. } => "table",
        PartKind::Definition(_) => "definition",
        PartKind::Facts(_) => "facts",
        PartKind::Score(_) => "score",
        _ => "other",
    }
}

/// Says what a part is.
fn what(part: &TicketPart) -> String {
    match &part.kind {
        PartKind::Trace(tool) => format!("trace, as {tool} prints it"),
        PartKind::Table {
            printer,
            of: Some(of),
        } => format!("{printer} ({of})"),
        PartKind::Table { printer, of: None } => (*printer).to_owned(),
        PartKind::Definition(name) => format!("definition of {name}"),
        PartKind::Facts(of) => format!("facts: {of}"),
        PartKind::Score(what) => format!("result: {what}"),
        _ => String::new(),
    }
}

fn guest<'a>(ticket: &'a Ticket, part: &TicketPart) -> Option<&'a str> {
    if matches!(part.kind, PartKind::Definition(_)) {
        return None;
    }
    let definition = ticket.definitions.get(part.definition?)?;
    Some(&definition.definition.domain.name)
}

/// Says how much of a text was read, in a sentence.
pub fn coverage(name: &str, ticket: &Ticket) -> String {
    let (read, unread) = (ticket.lines_read(), ticket.lines_unread());
    let parts = words::plural(ticket.parts.len() as u64, "part");
    if unread.lines == 0 {
        return format!(
            "{name}: {parts} in {}, and nothing else that looks like a tool's output.",
            words::plural(read, "line")
        );
    }
    let all = read.saturating_add(unread.lines);
    format!(
        "{name}: {read} of {all} lines that look like a tool's output were read ({}), in {parts}; look from \
         line {} on for what was not.",
        words::share::of(read, all),
        unread.first
    )
}

/// Says how much of a text was read, and lists its parts below.
pub fn list(name: &str, ticket: &Ticket, width: usize) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &coverage(name, ticket), width);
    out + &parts(ticket, width)
}

/// Lists the parts of a text, each with its lines.
pub(crate) fn parts(ticket: &Ticket, width: usize) -> String {
    let mut out = String::new();
    let lines = ticket
        .parts
        .iter()
        .map(|part| words::lines(part.first_line, part.last_line));
    let lines: Vec<String> = lines.collect();
    let widest = lines.iter().map(String::len).max().unwrap_or(0);
    for (part, lines) in ticket.parts.iter().zip(&lines) {
        let mut text = what(part);
        if let Some(guest) = guest(ticket, part) {
            text.push_str(&format!(", of {guest}"));
        }
        if let Some(name) = &part.name {
            text.push_str(&format!(": {}", short(name)));
        }
        wrap(
            &mut out,
            &format!("  {lines:widest$}  "),
            &neutral::name(&text),
            width,
        );
    }
    if let Some(line) = ticket.repeated_from {
        let text = format!("From line {line} on the same stands there again; it is used once.");
        wrap(&mut out, "  ", &text, width);
    }
    out
}

/// Returns a name that is not too long for a list.
fn short(name: &str) -> String {
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 3).collect::<String>() + "...",
        false => name.to_owned(),
    }
}
