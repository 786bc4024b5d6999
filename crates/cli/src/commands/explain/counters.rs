//! Readings that a number of counters is made of.

use analysis::{CounterColumn, Counters};
use anyhow::{Result, bail};
use event::NONE;
use session::{CellPart, GuestPairing, OpenRecording};

use crate::commands::explain::cell::{CellName, FoundCell, PartEvents, column};
use crate::usage::Usage;

/// The column that is a time.
const CPU_TIME: &str = "cpu";

/// Columns that are explained, as documents call them, and what they are amounts of.
const COLUMNS: [(&str, &str); 11] = [
    ("guest_cycles", "cycles"),
    ("guest_instructions", "instructions"),
    ("guest_cache_misses", "cache misses"),
    ("host_cycles", "cycles"),
    ("host_instructions", "instructions"),
    ("host_cache_misses", "cache misses"),
    ("both_cycles", "cycles"),
    ("both_instructions", "instructions"),
    ("both_cache_misses", "cache misses"),
    (CPU_TIME, "ns"),
    ("page_faults", "page faults"),
];

/// Finds the readings of a thread's counter.
pub(super) fn counters(recording: &OpenRecording<'_>, cell: CellName<'_>) -> Result<FoundCell> {
    let Ok(tid) = cell.row.parse::<i32>() else {
        return Err(Usage::error(format!(
            "'{}' is no thread id; 'trapline counters' prints them in column 'thread'",
            cell.row
        )));
    };
    let rows = recording.counters()?.report.rows;
    let Some(row) = rows.iter().find(|row| row.tid == tid) else {
        bail!(
            "{}: no row of counters is of thread {tid}; 'trapline counters' prints all",
            recording.name()
        );
    };
    let counted = COLUMNS.iter().filter_map(|(name, unit)| {
        let of = CounterColumn::of(name)?;
        Some((*name, *unit, of, of.sum(row)?))
    });
    let counted: Vec<_> = counted.collect();
    if counted.is_empty() {
        bail!("{}: nothing was counted of thread {tid}", recording.name());
    }
    let names: Vec<&str> = counted.iter().map(|(name, ..)| *name).collect();
    let named = column(cell.column, &names, "counters")?;
    let at = names.iter().position(|name| *name == named).unwrap_or(0);
    let (_, unit, asked, sum) = counted[at];
    let paired = GuestPairing::default();
    let mut question = recording.question(&paired);
    let mut counters = Counters::new(recording.window());
    counters.list(tid, asked);
    let shared = question.share(counters);
    let (answers, parts) = question.walk_parts(|_, _, parts| {
        for time in shared.get_mut().take_listed() {
            parts.push(CellPart {
                start: time,
                end: time,
                begin_tid: NONE,
                tid,
            });
        }
    });
    let mut rule = vec![
        "Each reading says what was counted since the one before: PERF_RECORD_READ, or the values of a group that a \
         sample has."
            .to_owned(),
    ];
    if let Some(share) = sum.share().filter(|share| *share < 1.0) {
        rule.push(format!(
            "The event was counted in {} of the time in which it was enabled: the sum of the values is scaled up by \
             that.",
            words::share::whole(share)
        ));
    }
    let value = sum.scaled();
    Ok(FoundCell {
        row: match &row.comm {
            Some(comm) => format!("{comm}:{tid}"),
            None => tid.to_string(),
        },
        column: named.to_owned(),
        value_ns: value.filter(|_| named == CPU_TIME),
        amount: value
            .filter(|_| named != CPU_TIME)
            .map(|value| (value, unit)),
        nouns: ("reading", "readings"),
        rule,
        elsewhere: None,
        without_events: 0,
        parts,
        events: PartEvents::Readings(tid, asked),
        quality: answers.quality,
    })
}
