//! What is kept of a recording that was made whole, and what is lost.

use ::salvage::{SalvageAccount, SalvagedCpu};
use serde::Serialize;
use serde_json::Value;
use words::{counted, duration, plural};

use crate::quality::wrap;
use crate::table::{Table, Unit, Views};
use crate::{Layout, shape};

/// A CPU of a buffer, and what is kept of it.
#[derive(Debug, Clone)]
pub(crate) struct SalvagedRow {
    buffer: String,
    cpu: Option<u32>,
    kept: SalvagedCpu,
}

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, SalvagedRow> {
    use Unit::{Count, Name, Nanoseconds, Number};
    Table::new()
        .column("buffer", Name, |r: &SalvagedRow| r.buffer.clone())
        .column("cpu", Number, |r| r.cpu)
        .heading("CPU", 5)
        .column("events", Count, |r| r.kept.events)
        .heading("events kept", 13)
        .column("first_ns", Nanoseconds, |r| r.kept.times.map(|t| t.0))
        .column("last_ns", Nanoseconds, |r| r.kept.times.map(|t| t.1))
        .column("places", Count, |r| r.kept.places)
        .heading("gaps", 8)
        .column("lost_bytes", Count, |r| r.kept.lost_bytes)
        .heading("bytes lost", 14)
}

fn rows(account: &SalvageAccount) -> Vec<SalvagedRow> {
    let rows = account
        .cpus
        .iter()
        .map(|((buffer, cpu), kept)| SalvagedRow {
            buffer: buffer.clone(),
            cpu: u32::try_from(*cpu).ok(),
            kept: *kept,
        });
    rows.collect()
}

/// Returns the answer for a terminal: `output` is the file that was written.
pub fn text(account: &SalvageAccount, output: &str, layout: Layout) -> String {
    let mut out = String::new();
    let bytes = |count: u64| counted(count, "byte", "bytes");
    let events = counted(account.events, "event", "events");
    let span = account.times().map_or_else(String::new, |(first, last)| {
        let length = duration::of(last.saturating_sub(first), layout.nanoseconds);
        format!(" in {length}")
    });
    if account.whole {
        let size = bytes(account.output_bytes);
        let all = format!(
            "nothing is missing, so the file has the bytes of the recording, {size}: {events}{span}."
        );
        wrap(&mut out, &format!("{output}: "), &all, layout.width);
        return out;
    }
    let others = counted(account.other_records, "other record", "other records");
    let kept = match account.other_records {
        0 => format!("{events}{span}, {}.", bytes(account.output_bytes)),
        _ => format!(
            "{events}{span} and {others}, {}.",
            bytes(account.output_bytes)
        ),
    };
    wrap(&mut out, "kept: ", &kept, layout.width);
    let missing = match account.missing_bytes {
        Some(0) => String::new(),
        Some(count) => format!("{} behind the end of the file; ", bytes(count)),
        None => "an unknown number of bytes behind the end of the file; ".to_owned(),
    };
    let left_out = bytes(account.left_out_bytes);
    let gaps = plural(account.places, "place");
    let places = match account.places {
        0 => "no event is known to be missing".to_owned(),
        _ => format!(
            "events are missing in {gaps}, each of which stands in the new file as lost events, one at least"
        ),
    };
    let lost = format!("{missing}{left_out} of it that are part of no whole record; {places}.");
    wrap(&mut out, "lost: ", &lost, layout.width);
    for note in &account.notes {
        wrap(&mut out, "- ", note, layout.width);
    }
    out.push('\n');
    out.push_str(&columns().view(Views::TERMINAL).text(rows(account), layout));
    wrap(&mut out, "\nwritten: ", output, layout.width);
    out
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct SalvageDocument<'d> {
    output: &'d str,
    whole: bool,
    input_bytes: u64,
    output_bytes: u64,
    events: u64,
    other_records: u64,
    left_out_bytes: u64,
    missing_bytes: Option<u64>,
    places: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    notes: &'d [String],
    cpus: Value,
}

shape!(SalvageDocument<'_> {
    output, whole, input_bytes, output_bytes, events, other_records, left_out_bytes, missing_bytes, places, first_ns,
    last_ns, notes, cpus: columns().shape().list()
});

/// Returns the fields of a document.
pub fn document<'d>(account: &'d SalvageAccount, output: &'d str) -> SalvageDocument<'d> {
    let times = account.times();
    SalvageDocument {
        output,
        whole: account.whole,
        input_bytes: account.input_bytes,
        output_bytes: account.output_bytes,
        events: account.events,
        other_records: account.other_records,
        left_out_bytes: account.left_out_bytes,
        missing_bytes: account.missing_bytes,
        places: account.places,
        first_ns: times.map(|times| times.0),
        last_ns: times.map(|times| times.1),
        notes: &account.notes,
        cpus: columns().json(rows(account)),
    }
}

/// Returns the CPUs as CSV; `clock` is what times count.
pub fn csv(account: &SalvageAccount, clock: crate::ClockUnit) -> String {
    columns().counted_in(clock).csv(rows(account))
}
