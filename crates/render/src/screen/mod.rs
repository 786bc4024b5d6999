/*!
What `report` prints on a terminal: one screen that stands alone in a ticket. The sentence comes first that an engineer
would say, then what it rests on, and what else there is to know; the last line says where the rest is.

Whatever a recording holds, a screen of 80 columns has [`LINES`] lines at most, and [`brief`] has [`BRIEF_LINES`]. The
last line, a command, is as long as it is.
*/

mod exits;
mod guests;
mod headline;
mod input;
mod line;
mod path;
mod rest;
mod states;
mod ticket;

pub use input::ScreenInput;
pub use line::{Line, StyledText, Tone};
pub use ticket::{gravity, ticket};

use line::wrapped;

/// Lines of a screen of 80 columns at most.
pub const LINES: usize = 40;
/// Lines of a brief text at most.
pub const BRIEF_LINES: usize = 10;
/// Columns of a brief text at most: what a ticket or a mail shows without breaking lines.
pub const BRIEF_WIDTH: usize = 72;
/// A screen has no fewer columns, however narrow the terminal is: tables would tell nothing.
const NARROWEST: usize = 80;

/// Findings that are listed below the first one.
const FINDINGS: usize = 3;
/// Lines of the first sentence, and of what is missing in a recording, at most.
const SENTENCE_LINES: usize = 4;
const WARNING_LINES: usize = 3;

/// Returns the screen about an input.
pub fn screen(input: &ScreenInput<'_>, width: usize) -> Vec<Line> {
    let width = width.max(NARROWEST);
    let (tone, sentence) = headline::sentence(input);
    let mut out = wrapped((Tone::Plain, ""), (tone, &sentence), width, SENTENCE_LINES);
    out.extend(findings(input));
    out.push(Line::default());
    out.extend(rest::about(input, width));
    // The end is what says how far the rest can be trusted, and where more is.
    let mut end = vec![Line::default()];
    end.extend(rest::quality(input, width, WARNING_LINES));
    let most = LINES - end.len() - 1;
    let mut put = |part: Vec<Line>| {
        if !part.is_empty() {
            out.push(Line::default());
            out.extend(part);
            out.truncate(most);
        }
        most.saturating_sub(out.len() + 1)
    };
    put(states::lines(input, width));
    put(guests::lines(input, width));
    let room = put(exit_lines(input));
    put(path::lines(input, width, room));
    put(rest::lines(input, width));
    out.extend(end);
    let lines = out.into_iter().map(|line| line.cut(width));
    lines.chain([rest::more(input)]).collect()
}

/// Returns the sentence that a screen begins with.
pub fn headline(input: &ScreenInput<'_>) -> String {
    headline::sentence(input).1
}

/// Returns the lines that stand above a screen among several, with an empty one.
pub fn title(title: &str, width: usize) -> Vec<Line> {
    let width = width.max(NARROWEST);
    let mut lines = wrapped((Tone::Strong, "=== "), (Tone::Strong, title), width, 3);
    lines.push(Line::default());
    lines
}

/// Returns the same in ten lines of plain text without tables.
pub fn brief(input: &ScreenInput<'_>) -> String {
    let (_, mut sentence) = headline::sentence(input);
    if let Some(first) = headline::first(input) {
        let severity = first.severity().name();
        sentence.push_str(&format!(" [{}, {severity}]", first.rule.id));
    }
    let mut out = wrapped(
        (Tone::Plain, ""),
        (Tone::Plain, &sentence),
        BRIEF_WIDTH,
        SENTENCE_LINES,
    );
    let about = rest::about_in_one_line(input, BRIEF_WIDTH);
    let other = headline::others(input).first().map(|one| also(one));
    let lines = [
        Some(about),
        other,
        states::short(input, BRIEF_WIDTH),
        guests::short(input, BRIEF_WIDTH),
        exits::short(input, BRIEF_WIDTH),
        path::short(input),
        rest::short(input),
    ];
    let lines = lines.iter().flatten();
    out.extend(lines.map(|text| Line::new(Tone::Plain, text)));
    let room = (BRIEF_LINES - 1).saturating_sub(out.len()).max(1);
    out.truncate(BRIEF_LINES - 2);
    out.extend(rest::quality(input, BRIEF_WIDTH, room));
    let lines = out.into_iter().map(|line| line.cut(BRIEF_WIDTH));
    let out: Vec<Line> = lines.chain([rest::more(input)]).collect();
    plain(&out)
}

/// Returns a screen as plain text.
pub fn plain(lines: &[Line]) -> String {
    let lines = lines.iter();
    lines
        .map(|line| line.text().trim_end().to_owned() + "\n")
        .collect()
}

/// Returns what a finding below the first one says.
fn also(finding: &rules::Finding) -> String {
    format!(
        "also found ({}): {}",
        finding.severity().name(),
        finding.title
    )
}

/// Returns a line about the first finding, and one for each of those after it.
fn findings(input: &ScreenInput<'_>) -> Vec<Line> {
    let mut out = Vec::new();
    if let Some(first) = headline::first(input) {
        let severity = first.severity();
        let line = Line::new(headline::tone(severity), severity.name());
        let text = format!(
            ", {}: 'trapline diagnose' says what to change",
            first.rule.id
        );
        out.push(line.then(Tone::Plain, &text));
    }
    let others = headline::others(input);
    for finding in others.iter().take(FINDINGS) {
        let severity = finding.severity();
        let (also, end) = match out.is_empty() {
            true => ("", ""),
            false => ("also found (", ")"),
        };
        let line = Line::new(Tone::Plain, also)
            .then(headline::tone(severity), severity.name())
            .then(Tone::Plain, &format!("{end}: {}", finding.title));
        out.push(line);
    }
    if others.len() > FINDINGS {
        let more = others.len() - FINDINGS;
        out.push(Line::new(Tone::Plain, &format!("and {more} more")));
    }
    out
}

/// Returns the heaviest exits.
fn exit_lines(input: &ScreenInput<'_>) -> Vec<Line> {
    let mut lines = exits::lines(input);
    if !lines.is_empty() {
        lines.insert(1, exits::columns());
    }
    lines
}
