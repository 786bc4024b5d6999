//! What went through a VM's virtqueues, by device and queue.

use std::fmt::Write;

use analysis::{VirtqueueRow, VirtqueueTraffic, VirtqueuesReport};
use doubts::Doubts;
use model::Vm;
use rules::RecordNeeds;
use serde::Serialize;
use serde_json::Value;

use crate::row_doubts::{RowScope, with_doubts};
use crate::table::{Table, Unit, UnknownColumn, Views, more, reorder};
use crate::{ClockUnit, Layout, quality, shape, vms};

/// A row, how its VM is called, and how long was recorded.
#[derive(Clone, Copy)]
pub(crate) struct Row<'r> {
    row: &'r VirtqueueRow,
    label: &'r str,
    pid: Option<i32>,
    /// `None` where the clock's unit is not known.
    span_ns: Option<u64>,
}

/// Columns that a terminal shows whether all were asked for or not.
const BOTH: Views = Views::TERMINAL.and(Views::WIDE);

/// What stands below the table where there are bytes.
const BYTES: &str = "Bytes are those of frames and of requests, as the kernel's events have them; the rings also \
                     carry virtio's headers. A frame may be one of up to 64 KiB that is cut up later (GSO), or some \
                     that were put together (GRO).";

/// Returns how many there are in a second.
fn rate(count: Option<u64>, span_ns: Option<u64>) -> Option<f64> {
    let span_ns = span_ns.filter(|span| *span > 0)?;
    Some(count? as f64 * 1e9 / span_ns as f64)
}

fn count(traffic: Option<VirtqueueTraffic>) -> Option<u64> {
    traffic.map(|traffic| traffic.count)
}

fn bytes(traffic: Option<VirtqueueTraffic>) -> Option<u64> {
    traffic.and_then(|traffic| traffic.bytes)
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Name, Number, Text};
    let table = Table::new()
        .column("vm", Name, |r: &Row<'_>| r.label)
        .heading("VM", vms::WIDTH)
        .page("VM")
        .show(|r, _| vms::cell(r.label, r.pid))
        .views(BOTH)
        .column("vm_pid", Number, |r| r.pid)
        .column("seen", Text, |r| match r.row.inside {
            true => "guest",
            false => "host",
        })
        .left("seen", 5)
        .gap(" ")
        .views(Views::WIDE)
        .page("seen in")
        .column("source", Text, |r| r.row.source.name())
        .left("by", 13)
        .gap(" ")
        .views(BOTH)
        .page("by")
        .column("device", Name, |r| r.row.device.clone())
        .left("device", 0)
        .gap("  ")
        .views(Views::WIDE)
        .after("span_ns")
        .page("device")
        .column("queue", Name, |r| r.row.queue.clone())
        .heading("queue", 8)
        .views(Views::WIDE)
        .page("queue")
        .show(|r, _| queue(r.row.queue.as_deref()));
    counted(table)
        .column("sent", Count, |r| count(r.row.sent))
        .heading("sent", 8)
        .views(Views::WIDE)
        .page("sent")
        .column("sent_bytes", Count, |r| bytes(r.row.sent))
        .heading("sent B", 12)
        .views(BOTH)
        .page("bytes sent")
        .column("sent_bytes_per_second", Unit::Value, |r| {
            rate(bytes(r.row.sent), r.span_ns)
        })
        .column("received", Count, |r| count(r.row.received))
        .heading("received", 8)
        .views(Views::WIDE)
        .page("received")
        .column("received_bytes", Count, |r| bytes(r.row.received))
        .heading("received B", 12)
        .views(BOTH)
        .page("bytes received")
        .column("received_bytes_per_second", Unit::Value, |r| {
            rate(bytes(r.row.received), r.span_ns)
        })
        .column("span_ns", Unit::Nanoseconds, |r| r.row.span)
        .heading("within", 7)
        .views(Views::WIDE)
        .page("within")
}

/// Adds the columns of what queues counted.
fn counted<'r>(table: Table<'r, Row<'r>>) -> Table<'r, Row<'r>> {
    use Unit::Count;
    table
        .column("added", Count, |r| r.row.added)
        .heading("added", 8)
        .views(BOTH)
        .page("added")
        .column("used", Count, |r| r.row.used)
        .heading("used", 8)
        .views(BOTH)
        .page("used")
        .column("notifications", Count, |r| r.row.notifications)
        .heading("notified", 9)
        .views(BOTH)
        .page("notifications")
        .column("notifications_per_second", Unit::Value, |r| {
            rate(r.row.notifications, r.span_ns)
        })
        .column("added_per_notification", Unit::Value, |r| {
            r.row.added_per_notification()
        })
        .heading("each", 5)
        .views(Views::WIDE)
        .page("added per notification")
        .show(|r, _| ratio(r.row.added_per_notification()))
        .column("interrupts", Count, |r| r.row.interrupts)
        .heading("irqs", 8)
        .views(BOTH)
        .page("interrupts")
        .column("interrupts_per_second", Unit::Value, |r| {
            rate(r.row.interrupts, r.span_ns)
        })
}

/// Returns a queue's name as far as there is room: of an address its last digits.
fn queue(name: Option<&str>) -> String {
    let name = crate::clean(name.unwrap_or("-"));
    let all = name.chars().count();
    match all > 8 {
        true => "~".chars().chain(name.chars().skip(all - 7)).collect(),
        false => name,
    }
}

/// Returns the rows with the names of their VMs.
fn rows<'r>(
    report: &'r VirtqueuesReport,
    vms: &[Vm],
    labels: &'r [String],
    clock: ClockUnit,
) -> Vec<Row<'r>> {
    let row = |row: &'r VirtqueueRow| {
        let (label, pid) = vms::of_row(row.vm, vms, labels);
        Row {
            row,
            label,
            pid,
            span_ns: (clock == ClockUnit::Nanoseconds).then_some(row.span),
        }
    };
    report.rows.iter().map(row).collect()
}

/// Sorts the rows by a column: largest first, names in alphabetical order, what is not known last.
///
/// # Errors
///
/// There is no such column.
pub fn sort(report: &mut VirtqueuesReport, vms: &[Vm], column: &str) -> Result<(), UnknownColumn> {
    let labels = model::vm_names(vms);
    let places = columns().order(&rows(report, vms, &labels, ClockUnit::Nanoseconds), column)?;
    reorder(&mut report.rows, &places);
    Ok(())
}

/// Returns the table for a terminal; `wide` has all columns, however wide that is. Otherwise each row's device and
/// queue stand on a line of their own.
pub fn table(report: &VirtqueuesReport, vms: &[Vm], wide: bool, layout: Layout) -> String {
    let labels = model::vm_names(vms);
    let rows = rows(report, vms, &labels, ClockUnit::Ticks);
    let columns = columns();
    let mut out = String::from("virtqueues: what guests and their devices gave each other\n");
    if wide {
        let view = columns.view(Views::WIDE).known_of(&rows);
        out.push_str(&view.text(&rows, layout));
    } else {
        let view = columns.view(Views::TERMINAL).known_of(&rows);
        let indent = " ".repeat(view.indent("source"));
        out.push_str(&view.head());
        out.push('\n');
        for row in rows.iter().take(layout.limit) {
            let seen = if row.row.inside { "guest" } else { "host" };
            let queue = row
                .row
                .queue
                .as_deref()
                .map(|queue| format!(", queue {queue}"));
            let place = format!(
                "{} in the {seen}{}",
                row.row.device,
                queue.unwrap_or_default()
            );
            out.push_str(&view.line(row, layout));
            let _ = writeln!(out, "\n{indent}  {}", crate::clean(&place));
        }
        out.push_str(&more(rows.len().saturating_sub(layout.limit)));
    }
    let has_bytes = |row: &VirtqueueRow| bytes(row.sent).or(bytes(row.received)).is_some();
    if report.rows.iter().any(has_bytes) {
        quality::wrap(&mut out, "", BYTES, layout.width);
    }
    for remark in remarks(report) {
        quality::wrap(&mut out, "", &remark, layout.width);
    }
    out
}

/// Returns what is in no row.
fn remarks(report: &VirtqueuesReport) -> Vec<String> {
    let mut remarks = Vec::new();
    let missing = report.missing.iter().map(|one| one.name());
    let missing: Vec<&str> = missing.collect();
    if let Some(record) = RecordNeeds::command([RecordNeeds::Virtqueues])
        && !missing.is_empty()
    {
        remarks.push(format!(
            "The recording has no events of: {}. '{record}' records them.",
            missing.join(", ")
        ));
    }
    if report.beyond > 0 {
        let events = words::plural(report.beyond, "event");
        remarks.push(format!(
            "{events} of more devices and queues than are kept are in no row."
        ));
    }
    if report.unpaired > 0 {
        let returns = words::plural(report.unpaired, "return");
        remarks.push(format!(
            "{returns} of the driver's functions are in no row, since the call was not recorded."
        ));
    }
    if report.other_interfaces > 0 {
        let others = words::plural(report.other_interfaces, "interface");
        remarks.push(format!(
            "{others} of the host are not shown: by its name none is a VM's tap device."
        ));
    }
    remarks
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct VirtqueuesDocument {
    rows: Value,
    /// Events that are in no row: of more devices and queues than are kept.
    beyond: u64,
    /// Returns of the driver's functions whose calls were not recorded.
    unpaired: u64,
    /// Interfaces of the host that are no tap device.
    other_interfaces: u64,
}

shape!(VirtqueuesDocument {
    rows: with_doubts(columns(), &Doubts::default(), |_| RowScope::default())
        .shape()
        .list(),
    beyond,
    unpaired,
    other_interfaces,
});

/// Returns the fields of a document. Rows have the ids of those of the doubts that are about them.
pub fn document(
    report: &VirtqueuesReport,
    vms: &[Vm],
    clock: ClockUnit,
    doubts: &Doubts,
) -> VirtqueuesDocument {
    let labels = model::vm_names(vms);
    let rows = rows(report, vms, &labels, clock);
    VirtqueuesDocument {
        rows: with_doubts(columns(), doubts, |_: &Row<'_>| RowScope::default()).json(rows),
        beyond: report.beyond,
        unpaired: report.unpaired,
        other_interfaces: report.other_interfaces,
    }
}

/// Returns the rows as CSV.
pub fn csv(report: &VirtqueuesReport, vms: &[Vm], clock: ClockUnit) -> String {
    let labels = model::vm_names(vms);
    let rows = rows(report, vms, &labels, clock);
    columns().counted_in(clock).csv(rows)
}
