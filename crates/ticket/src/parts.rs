//! A text in its parts.

use std::ops::Range;

use facts::Facts;
use perftables::{PerfTable, PlacedTable};
use results::Score;
use tracetext::event_line;

use crate::coverage::{UnreadLines, unread};
use crate::definitions::{PlacedDefinition, TextDefinitions, definitions};
use crate::lines::TicketLines;
use crate::names::{NamedGuests, name_before};
use crate::ticket_part::{PartKind, TicketPart};
use crate::traces::traces;

/// A trace and where it stands in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedTrace {
    /// Its lines, with as many empty ones before them as there are lines before it in the whole text, so that lines
    /// keep their numbers.
    pub text: Vec<u8>,
    /// Its first line, counted from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// Lines of it that are events, and could be read.
    pub events_read: u64,
    /// Lines of it that look like events, and could not.
    pub events_unread: u64,
}

/// A text in its parts.
#[derive(Debug, Default)]
pub struct Ticket {
    /// The parts, in the order of the text.
    pub parts: Vec<TicketPart>,
    /// Its tables.
    pub tables: Vec<PlacedTable>,
    /// A text of what traces, definitions and facts leave, in its place: its tables, with what stands around them.
    pub tables_text: Vec<u8>,
    /// Its traces.
    pub traces: Vec<PlacedTrace>,
    /// Its definitions of guests.
    pub definitions: Vec<PlacedDefinition>,
    /// What its facts say together.
    pub facts: Facts,
    /// Results of benchmarks.
    pub scores: Vec<Score>,
    /// Lines inside the parts with facts that say none, such as prose in the same paragraph.
    pub lines_of_no_fact: u64,
    /// What looks like a tool's output and is in no part; with what could not be read in traces:
    /// [`Ticket::lines_unread`].
    pub unread: UnreadLines,
    /// The line from which on the parts stand there a second time, as pages have them that are copied twice. They are
    /// taken once.
    pub repeated_from: Option<u64>,
}

impl Ticket {
    /// Returns how many lines could be read: those of parts, of traces the events.
    pub fn lines_read(&self) -> u64 {
        let is_trace = |part: &&TicketPart| matches!(part.kind, PartKind::Trace(_));
        let others = self.parts.iter().filter(|part| !is_trace(part));
        // Several tables may have been pasted as one line.
        let mut counted = 0;
        let lines = others.map(|part| {
            let before = counted.max(part.first_line - 1);
            counted = counted.max(part.last_line);
            counted - before.min(counted)
        });
        let events = self.traces.iter().map(|trace| trace.events_read);
        let all: u64 = lines.chain(events).fold(0, u64::saturating_add);
        all.saturating_sub(self.lines_of_no_fact)
    }

    /// Returns how many lines look like a tool's output and could not be read, in parts and outside, and the first of
    /// those outside.
    pub fn lines_unread(&self) -> UnreadLines {
        let events = self.traces.iter().map(|trace| trace.events_unread);
        let lines = self
            .unread
            .lines
            .saturating_add(events.fold(0, u64::saturating_add));
        let in_trace = self.traces.iter().filter(|trace| trace.events_unread > 0);
        let first = in_trace
            .map(|trace| trace.first_line)
            .chain(Some(self.unread.first));
        UnreadLines {
            lines,
            first: first.filter(|line| *line > 0).min().unwrap_or(0),
        }
    }

    /// Returns whether the text is more than one recording, or tables alone: what every command reads anyhow.
    pub fn has_several(&self) -> bool {
        let is_table = |part: &TicketPart| matches!(part.kind, PartKind::Table { .. });
        let tables = self.parts.iter().all(is_table);
        self.parts.len() > 1 && !tables
    }
}

impl Ticket {
    /// Returns the results of benchmarks that belong to the part that begins at a line: those that stand before it,
    /// with no other trace or table between, and are not of another guest.
    pub fn scores_before(&self, line: u64) -> Vec<&Score> {
        let picture =
            |part: &&TicketPart| matches!(part.kind, PartKind::Trace(_) | PartKind::Table { .. });
        let before = self.parts.iter().filter(|part| part.last_line < line);
        let from = before
            .clone()
            .filter(picture)
            .map(|part| part.last_line)
            .max();
        let own = self.parts.iter().find(|part| part.first_line == line);
        let guest = own.and_then(|part| part.definition);
        let mut runs = before.filter(|part| {
            let of_other = part.definition.is_some() && guest.is_some() && part.definition != guest;
            matches!(part.kind, PartKind::Score(_))
                && part.first_line > from.unwrap_or(0)
                && !of_other
        });
        let Some(run) = runs.next_back() else {
            return Vec::new();
        };
        let lines = run.first_line..=run.last_line;
        self.scores
            .iter()
            .filter(|score| lines.contains(&score.line))
            .collect()
    }
}

/// Cuts a text into its parts. Never fails: a text without any is prose.
pub fn read(text: &[u8]) -> Ticket {
    let mut lines = TicketLines::new(text);
    let TextDefinitions {
        guests: definitions,
        pins,
    } = definitions(&mut lines);
    let traces = traces(&mut lines);
    let (tables, _) = perftables::read_placed(&lines.free_text());
    let others = lines.taken();
    let of_table = |lines: &TicketLines<'_>, table: &PlacedTable| {
        let range = range(table.table.line(), table.last_line);
        // Something else may stand inside: the part ends there.
        let other = range.clone().find(|at| others.get(*at) == Some(&true));
        range.start..other.unwrap_or(range.end).min(lines.len())
    };
    let ranges: Vec<Range<usize>> = tables.iter().map(|table| of_table(&lines, table)).collect();
    for range in &ranges {
        lines.take(range.clone());
    }
    let HostFacts {
        facts,
        mut parts,
        prose,
    } = facts_of(&mut lines);
    let mut others = others;
    for part in &parts {
        let range = range(part.first_line, part.last_line);
        if let Some(others) = others.get_mut(range) {
            others.fill(true);
        }
    }
    for one in definitions.iter().chain(&pins) {
        let range = range(one.first_line, one.last_line);
        // A list of processes is one part, with the command lines in it.
        if !one.is_command || range.clone().all(|at| lines.is_free(at)) {
            let kind = PartKind::Definition(one.definition.domain.name.clone());
            parts.push(part(&lines, kind, &range));
            lines.take(range);
        }
    }
    let scores = results::scores(&lines.free_text());
    for (range, what) in scored(&lines, &scores) {
        parts.push(part(&lines, PartKind::Score(what), &range));
        lines.take(range);
    }
    for trace in &traces {
        let producer = tracetext::sniff(&text_of(&lines, trace));
        let kind = PartKind::Trace(producer.map_or_else(String::new, |one| one.name().to_owned()));
        parts.push(part(&lines, kind, trace));
    }
    for (table, range) in tables.iter().zip(&ranges) {
        let kind = PartKind::Table {
            printer: table.table.printer(),
            of: match &table.table {
                PerfTable::KvmStat(stat) => stat.event.option(),
                _ => None,
            },
        };
        let mut part = part(&lines, kind, range);
        part.name = table.table.label().map(str::to_owned);
        parts.push(part);
    }
    parts.sort_by_key(|part| part.first_line);
    let repeated_from = take_once(&lines, &mut parts);
    let unread = unread(&lines, &prose, repeated_from);
    let once = |line: u64| repeated_from.is_none_or(|from| line < from);
    let mut ticket = Ticket {
        traces: traces.iter().map(|trace| traced(&lines, trace)).collect(),
        tables_text: lines.text_of(|at| {
            others.get(at) == Some(&false)
                && repeated_from.is_none_or(|from| (at as u64) < from - 1)
        }),
        tables,
        definitions,
        facts,
        lines_of_no_fact: prose.iter().filter(|at| once(**at as u64 + 1)).count() as u64,
        scores,
        unread,
        repeated_from,
        parts,
    };
    ticket.traces.retain(|trace| once(trace.first_line));
    ticket.tables.retain(|table| once(table.table.line()));
    ticket.definitions.retain(|one| once(one.first_line));
    ticket.scores.retain(|score| once(score.line));
    let guests = NamedGuests::new(&ticket.definitions);
    guests.assign(&lines, &ticket.definitions, &mut ticket.parts);
    ticket
}

/// Leaves one of what stands in a text twice as a whole, and returns the line where it begins again. Single parts that
/// are equal may be of different moments.
fn take_once(lines: &TicketLines<'_>, parts: &mut Vec<TicketPart>) -> Option<u64> {
    let half = parts.len() / 2;
    if half < 2 || !parts.len().is_multiple_of(2) {
        return None;
    }
    let content = |part: &TicketPart| text_of(lines, &range(part.first_line, part.last_line));
    let (first, second) = parts.split_at(half);
    let mut pairs = first.iter().zip(second);
    let same = pairs.all(|(one, other)| one.kind == other.kind && content(one) == content(other));
    let from = second.first().filter(|_| same)?.first_line;
    parts.truncate(half);
    Some(from)
}

/// What blocks of lines say of a host or its VMs.
struct HostFacts {
    facts: Facts,
    parts: Vec<TicketPart>,
    /// Lines inside the parts that say nothing of either.
    prose: Vec<usize>,
}

/// Reads what blocks of lines say of a host or its VMs. Takes their lines, from the first that does to the last.
fn facts_of(lines: &mut TicketLines<'_>) -> HostFacts {
    let mut parts = Vec::new();
    let mut prose = Vec::new();
    let mut all = Vec::new();
    for block in lines.free_blocks() {
        let mut text = text_of(lines, &block);
        let (facts, _, unknown) = facts::read_lines(&text);
        if facts.is_empty() {
            continue;
        }
        all.append(&mut text);
        // Blocks stay apart, as they stood in the text.
        all.push(b'\n');
        // Lines are counted from the block's first.
        let mut known = vec![true; block.len()];
        for range in unknown {
            let range = range.start().saturating_sub(1)..(*range.end()).min(known.len());
            if let Some(known) = known.get_mut(range) {
                known.fill(false);
            }
        }
        let first = known.iter().position(|known| *known);
        let last = known.iter().rposition(|known| *known);
        let (Some(first), Some(last)) = (first, last) else {
            continue;
        };
        let own = block.start + first..block.start + last + 1;
        let inside = own.clone().zip(known.iter().skip(first));
        prose.extend(inside.filter(|(_, known)| !**known).map(|(at, _)| at));
        parts.push(part(lines, PartKind::Facts(facts.summary()), &own));
    }
    for part in &parts {
        lines.take(range(part.first_line, part.last_line));
    }
    HostFacts {
        facts: facts::read(&all).0,
        parts,
        prose,
    }
}

/// Lines between the results of one run at most.
const RUN: u64 = 12;

/// Returns where the results of each run of a benchmark stand, and what its first one is.
fn scored(lines: &TicketLines<'_>, scores: &[Score]) -> Vec<(Range<usize>, String)> {
    // Nothing else stands between.
    let alone = |from: u64, to: u64| range(from, to).all(|at| lines.is_free(at));
    let mut runs: Vec<(u64, &Score)> = Vec::new();
    for score in scores {
        match runs.last_mut() {
            Some((last, first))
                if first.printed_by == score.printed_by
                    && first.name != score.name
                    && score.line <= last.saturating_add(RUN)
                    && alone(*last, score.line) =>
            {
                *last = score.line;
            }
            _ => runs.push((score.line, score)),
        }
    }
    let runs = runs.into_iter().map(|(last, first)| {
        let what = format!("{} {}", first.title(), first.unit.amount(first.value));
        (range(first.line, last), what)
    });
    runs.collect()
}

/// Returns lines as a text of their own.
fn text_of(lines: &TicketLines<'_>, range: &Range<usize>) -> Vec<u8> {
    let mut text = Vec::new();
    for at in range.clone() {
        text.extend_from_slice(lines.line(at));
        text.push(b'\n');
    }
    text
}

/// Returns a trace with as many empty lines before it as there are lines before it in the text.
fn traced(lines: &TicketLines<'_>, range: &Range<usize>) -> PlacedTrace {
    let alike = range
        .clone()
        .filter(|at| event_line(lines.line(*at)).is_some());
    let alike = alike.count() as u64;
    let own = text_of(lines, range);
    let events_read = tracetext::count_events(&own);
    let mut text = vec![b'\n'; range.start];
    text.extend_from_slice(&own);
    PlacedTrace {
        text,
        first_line: range.start as u64 + 1,
        last_line: range.end as u64,
        events_read,
        events_unread: alike.saturating_sub(events_read),
    }
}

fn part(lines: &TicketLines<'_>, kind: PartKind, range: &Range<usize>) -> TicketPart {
    TicketPart {
        kind,
        first_line: range.start as u64 + 1,
        last_line: range.end as u64,
        name: name_before(lines, range.start),
        definition: None,
    }
}

/// Returns the lines from one to another, counted from 1, as they are counted here.
fn range(first: u64, last: u64) -> Range<usize> {
    let at = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
    at(first).saturating_sub(1)..at(last)
}
