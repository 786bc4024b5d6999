//! `trapline explain`: what a number of a table, or a finding, is made of.

pub(crate) mod args;
mod cell;
mod counters;
mod events;
mod exits;
mod finding;
mod interrupts;
mod queues;
mod single;

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use render::ClockUnit;
use render::explain::{ExplainedCell, ExplainedParts};
#[cfg(test)]
use render::schema::{HasShape, Shape};
use session::{CellPart, GuestPairing, HostInput, OpenRecording, Session};
use tracefmt::FormatCatalog;

use crate::answer::Answer;
use crate::commands::explain::args::ExplainArgs;
use crate::commands::explain::cell::{CellName, FoundCell, PartEvents};
use crate::commands::explain::events::PartLines;
use crate::opening::{self, AccompanyingFiles};
use crate::options::Format;
use crate::output;
use crate::stream::Stream;
use crate::usage::Usage;

/// The commands whose numbers are explained.
const COMMANDS: [&str; 7] = [
    "exits",
    "vcpus",
    "sched",
    "paths",
    "irqs",
    "virtqueues",
    "counters",
];

/// Returns what documents have.
#[cfg(test)]
pub(crate) fn shape() -> Shape {
    Shape::OneOf(vec![
        render::explain::ExplainDocument::<'static>::shape(),
        render::explain::ExplainFindingDocument::shape(),
    ])
}

/// Runs the command.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let rule = rules::rule(&args.what);
    if rule.is_none() && !COMMANDS.contains(&args.what.as_str()) {
        let rules = rules::all().iter().map(|rule| rule.id);
        let near = words::did_you_mean(&args.what, COMMANDS.into_iter().chain(rules));
        return Err(Usage::error(format!(
            "'{}' is no command whose numbers are explained ({}), and no finding{near}; 'trapline rules' lists those",
            args.what,
            COMMANDS.join(", ")
        )));
    }
    if args.task.is_some() && args.what != "exits" {
        return Err(Usage::error(format!(
            "--task chooses exits, and {} is asked for",
            args.what
        )));
    }
    let beside = AccompanyingFiles {
        with_guests: true,
        ..AccompanyingFiles::default()
    };
    let inputs: Vec<&Path> = std::iter::once(args.recording.as_path())
        .chain(args.guests.paths())
        .collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    match rule {
        Some(rule) => match &args.row {
            Some(row) => Err(Usage::error(format!(
                "'{row}': a finding has no rows; give its id alone"
            ))),
            None => finding::run(args, rule, &session),
        },
        None => number(args, &session),
    }
}

/// Returns the name of a file as other tools open it, which read nothing that is compressed.
fn unpacked(name: &str) -> String {
    let bare = name
        .strip_suffix(".zst")
        .or_else(|| name.strip_suffix(".gz"));
    report::quoted(bare.unwrap_or(name).as_ref())
}

/// Explains a number of a table.
fn number(args: &ExplainArgs, session: &Session) -> Result<()> {
    let Some(row) = &args.row else {
        return Err(Usage::error(format!(
            "name the row behind {0}, as 'trapline {0}' prints it",
            args.what
        )));
    };
    let host = session.host(&args.recording, &args.guests.named)?;
    let recording = host.input().recording_with_symbols()?;
    let name = CellName {
        row,
        column: args.column.as_deref(),
        task: args.task.as_deref(),
        filtered: args.common.filter.any(),
    };
    let (of, found) = found(&args.what, &host, &recording, name)?;
    print(args, &recording, of, found)
}

/// Finds the number that a command prints. Returns what the command is called, too.
fn found(
    command: &str,
    host: &HostInput<'_>,
    recording: &OpenRecording<'_>,
    name: CellName<'_>,
) -> Result<(&'static str, FoundCell)> {
    Ok(match command {
        "vcpus" => ("vcpus", cell::vcpus(recording, name)?),
        "sched" => ("sched", cell::sched(recording, name)?),
        "paths" => ("paths", cell::paths(recording, name)?),
        "irqs" => ("irqs", interrupts::irqs(recording, name)?),
        "virtqueues" => ("virtqueues", queues::virtqueues(recording, name)?),
        "counters" => ("counters", counters::counters(recording, name)?),
        _ => {
            let paired = match name.task {
                Some(_) => host.paired(recording)?,
                None => GuestPairing::default(),
            };
            ("exits", exits::exits(recording, &paired, name)?)
        }
    })
}

/// Prints a number and what it is made of.
fn print(
    args: &ExplainArgs,
    recording: &OpenRecording<'_>,
    of: &'static str,
    found: FoundCell,
) -> Result<()> {
    let FoundCell {
        row,
        column,
        value_ns,
        amount,
        nouns,
        rule,
        elsewhere,
        mut parts,
        without_events,
        events,
        quality,
    } = found;
    let shown = args.limit.unwrap_or(usize::MAX).min(parts.parts.len());
    let left_out = parts.more + (parts.parts.len() - shown) as u64;
    parts.parts.truncate(shown);
    let explained = ExplainedCell {
        of,
        row,
        column,
        value_ns,
        amount: amount.map(|(amount, _)| amount),
        unit: amount.map(|(_, unit)| unit),
        nouns,
        count: parts.sum.count,
        total_ns: parts.sum.total_ns,
        without_events,
        rule,
        elsewhere,
    };
    let names = [recording.name().to_owned()];
    let clock = ClockUnit::of(recording.nanoseconds());
    let answer = Answer {
        format: args.common.format,
        command: "explain",
        inputs: &names,
        quality: &quality,
        clock,
    };
    let rows = ExplainedParts::new(clock);
    let start = match answer.format {
        Format::Table => explained.text(answer.layout(usize::MAX)),
        Format::Csv => rows.csv_head(),
        Format::Json => answer.up_to_in(
            ExplainHead {
                explained: &explained,
            },
            "parts",
        ),
    };
    let begun = Stream::new(&start);
    let (mut stream, unseen) = print_events(recording, events, &parts.parts, begun, answer);
    match answer.format {
        Format::Table if left_out > 0 => stream.text(&format!("# ... and {left_out} more\n")),
        Format::Json => stream.text("\n  ]\n}\n"),
        _ => {}
    }
    stream.end()?;
    output::note_doubts(&quality);
    if unseen > 0 {
        let text = format!(
            "{}: of {} an event is not in the recording",
            names[0],
            words::counted(unseen, nouns.0, nouns.1)
        );
        writeln!(std::io::stderr(), "{}", render::neutral::name(&text))?;
    }
    match answer.format {
        Format::Table | Format::Csv => output::say_doubts(&names[0], &quality),
        Format::Json => Ok(()),
    }
}

/// Walks the recording once more, and prints each part with its events. Returns of how many parts an event was not
/// found.
fn print_events(
    recording: &OpenRecording<'_>,
    events: PartEvents,
    parts: &[CellPart],
    stream: Stream<'static>,
    answer: Answer<'_>,
) -> (Stream<'static>, u64) {
    let reader = recording.reader();
    let none = FormatCatalog::default();
    let formats = reader.formats().unwrap_or(&none);
    let printer = session::event_printer(reader, Some(recording), formats, reader.is_perf(), true);
    let mut lines = PartLines::new(printer, events, parts, stream, answer.format, answer.clock);
    recording.hand_saved_names(&mut lines);
    reader.walk(&mut lines);
    lines.finish()
}

/// What a document has before its list.
#[derive(Debug, serde::Serialize)]
struct ExplainHead<'a> {
    explained: &'a ExplainedCell,
}
