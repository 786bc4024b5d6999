//! What stands above the screens of the parts of a ticket: how much of it was read, what is wrong most of all, and
//! which parts there are.

use rules::Severity;
use ticket::Ticket;

use super::input::ScreenInput;
use super::line::{Line, Tone, wrapped};
use super::{NARROWEST, SENTENCE_LINES, findings, headline};
use crate::tickets;

/// Returns how grave what was found of a part is: how severe it is, and the time that it costs. None where nothing was
/// found.
pub fn gravity(input: &ScreenInput<'_>) -> Option<(Severity, u64)> {
    let first = headline::first(input)?;
    Some((
        first.severity(),
        first.cost.as_ref().map_or(0, |cost| cost.ns),
    ))
}

/// Returns the lines above the screens of a text's parts. `gravest` is the part whose
/// finding matters most.
pub fn ticket(
    name: &str,
    ticket: &Ticket,
    gravest: Option<&ScreenInput<'_>>,
    width: usize,
) -> Vec<Line> {
    let width = width.max(NARROWEST);
    let plain = |text: &str| {
        wrapped(
            (Tone::Plain, ""),
            (Tone::Plain, text),
            width,
            SENTENCE_LINES,
        )
    };
    let mut out = plain(&tickets::coverage(name, ticket));
    if let Some(input) = gravest {
        out.push(Line::default());
        let (tone, sentence) = headline::sentence(input);
        let place = input
            .picture
            .first_line
            .map(|line| format!("line {line}: "));
        let sentence = format!("{}{sentence}", place.unwrap_or_default());
        out.extend(wrapped(
            (Tone::Plain, ""),
            (tone, &sentence),
            width,
            SENTENCE_LINES,
        ));
        out.extend(findings(input).into_iter().take(1));
    }
    out.push(Line::default());
    let parts = tickets::parts(ticket, width);
    out.extend(parts.lines().map(|line| Line::new(Tone::Plain, line)));
    out
}
