//! What the processor counted of vCPUs: cycles, instructions per cycle and cache misses, of guest and host.

use analysis::{CounterSum, CountersReport, CountersRow, ModeCounts, Picture};
use doubts::Doubts;
use model::Vm;
use serde::Serialize;
use serde_json::Value;

use crate::html::Frame;
use crate::part::PicturePart;
use crate::row_doubts::{RowScope, with_doubts};
use crate::schema::HasShape;
use crate::table::{Table, Unit, UnknownColumn, Views, reorder};
use crate::{ClockUnit, Layout, quality, shape, vms};

/// A row, and how its VM is called.
#[derive(Clone, Copy)]
pub(crate) struct Row<'r> {
    row: &'r CountersRow,
    label: &'r str,
    pid: Option<i32>,
}

/// What stands below the table where the processor counted nothing.
const NO_PROCESSOR: &str = "Cycles, instructions and cache misses are not counted (-): they were not asked for, or the \
                            machine has no PMU, as most virtual machines.";
/// And where events took turns.
const SCALED: &str = "Counters took turns: values are scaled up by the share of the time in which they were counted \
                      (column 'counted').";

/// What the columns of a mode are called: in documents, on terminals and on pages.
pub(crate) struct ModeNames {
    mode: &'static str,
    cycles: &'static str,
    page: [&'static str; 5],
}

/// What columns of a guest are called.
pub(crate) const GUEST_NAMES: ModeNames = ModeNames {
    mode: "guest",
    cycles: "guest Mc",
    page: [
        "guest cycles",
        "guest instructions",
        "guest cache misses",
        "guest IPC",
        "guest misses per 1,000 instructions",
    ],
};
/// And of the host.
pub(crate) const HOST_NAMES: ModeNames = ModeNames {
    mode: "host",
    cycles: "host Mc",
    page: [
        "host cycles",
        "host instructions",
        "host cache misses",
        "host IPC",
        "host misses per 1,000 instructions",
    ],
};
/// And of events that count both.
pub(crate) const BOTH_NAMES: ModeNames = ModeNames {
    mode: "both",
    cycles: "both Mc",
    page: [
        "cycles",
        "instructions",
        "cache misses",
        "IPC",
        "misses per 1,000 instructions",
    ],
};

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

pub(crate) fn scaled(count: Option<CounterSum>) -> Option<u64> {
    count.and_then(|count| count.scaled())
}

/// Returns millions of cycles with a tenth.
fn millions(count: Option<u64>) -> String {
    count.map_or_else(
        || "-".to_owned(),
        |count| format!("{:.1}", count as f64 / 1e6),
    )
}

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Name, Nanoseconds, Number, Share};
    let mut table = Table::new()
        .column("vm", Name, |r: &Row<'_>| r.label)
        .heading("VM", vms::WIDTH)
        .page("VM")
        .show(|r, _| vms::cell(r.label, r.pid))
        .column("vm_pid", Number, |r| r.pid)
        .column("vcpu", Number, |r| r.row.vcpu)
        .heading("vCPU", 5)
        .page("vCPU")
        .column("tid", Number, |r| r.row.tid)
        .heading("thread", 8)
        .page("thread")
        .column("comm", Name, |r| r.row.comm.clone())
        .column("cpu_ns", Nanoseconds, |r| r.row.cpu_ns())
        .heading("CPU time", 9)
        .page("CPU time");
    table = of_mode(table, &GUEST_NAMES, |r: &Row<'_>| &r.row.guest);
    table = of_mode(table, &HOST_NAMES, |r: &Row<'_>| &r.row.host);
    table = of_mode(table, &BOTH_NAMES, |r: &Row<'_>| &r.row.both);
    table
        .column("page_faults", Count, |r| r.row.page_faults())
        .page("page faults")
        .column("counted_share", Share, |r| r.row.share())
        .heading("counted", 8)
        .page("counted")
}

/// Adds the columns of a mode.
pub(crate) fn of_mode<'t, R: 't>(
    table: Table<'t, R>,
    names: &ModeNames,
    of: fn(&R) -> &ModeCounts,
) -> Table<'t, R> {
    use Unit::{Count, Value};
    let mode = names.mode;
    let name = |what: &str| format!("{mode}_{what}");
    let [cycles, instructions, misses, ipc, per_1000] = names.page;
    table
        .column(name("cycles"), Count, move |r: &R| scaled(of(r).cycles))
        .heading(names.cycles, 10)
        .show(move |r, _| millions(scaled(of(r).cycles)))
        .where_known_if(mode == "both")
        .page(cycles)
        .column(name("instructions"), Count, move |r| {
            scaled(of(r).instructions)
        })
        .page(instructions)
        .column(name("cache_misses"), Count, move |r| {
            scaled(of(r).cache_misses)
        })
        .page(misses)
        .column(name("ipc"), Value, move |r| of(r).ipc())
        .heading("IPC", 6)
        .show(move |r, _| ratio(of(r).ipc()))
        .where_known_if(mode == "both")
        .page(ipc)
        .column(name("misses_per_1000"), Value, move |r| {
            of(r).misses_per_1000()
        })
        .heading("miss/1k", 8)
        .show(move |r, _| ratio(of(r).misses_per_1000()))
        .where_known_if(mode == "both")
        .page(per_1000)
}

/// Returns the rows with the names of their VMs.
fn rows<'r>(report: &'r CountersReport, vms: &[Vm], labels: &'r [String]) -> Vec<Row<'r>> {
    let row = |row: &'r CountersRow| {
        let (label, pid) = vms::of_row(row.vm, vms, labels);
        Row { row, label, pid }
    };
    report.rows.iter().map(row).collect()
}

/// Sorts the rows by a column: largest first, names in alphabetical order, what is not known last.
///
/// # Errors
///
/// There is no such column.
pub fn sort(report: &mut CountersReport, vms: &[Vm], column: &str) -> Result<(), UnknownColumn> {
    let labels = model::vm_names(vms);
    let places = columns().order(&rows(report, vms, &labels), column)?;
    reorder(&mut report.rows, &places);
    Ok(())
}

/// Returns the table for a terminal.
pub fn table(report: &CountersReport, vms: &[Vm], layout: Layout) -> String {
    let labels = model::vm_names(vms);
    let rows = rows(report, vms, &labels);
    let columns = columns();
    let view = columns.view(Views::TERMINAL).known_of(&rows);
    let mut out = format!(
        "counters: what the processor counted of each vCPU, in its guest and in the host (Mc: million cycles)\n{}",
        view.text(&rows, layout)
    );
    if !report.rows.iter().any(CountersRow::has_processor) {
        quality::wrap(&mut out, "", NO_PROCESSOR, layout.width);
    }
    let mut shares = report.rows.iter().filter_map(CountersRow::share);
    if shares.any(|share| share < 1.0) {
        quality::wrap(&mut out, "", SCALED, layout.width);
    }
    if report.beyond > 0 {
        let beyond = words::plural(report.beyond, "reading");
        let text = format!("{beyond} of more threads than are kept are in no row.");
        quality::wrap(&mut out, "", &text, layout.width);
    }
    out
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct CountersDocument {
    rows: Value,
    /// Readings that are in no row: of more threads than are kept.
    beyond: u64,
}

shape!(CountersDocument {
    rows: with_doubts(columns(), &Doubts::default(), |_| RowScope::default())
        .shape()
        .list(),
    beyond
});

/// Returns the fields of a document. Rows have the ids of those of the doubts that are about them.
pub fn document(report: &CountersReport, vms: &[Vm], doubts: &Doubts) -> CountersDocument {
    let labels = model::vm_names(vms);
    CountersDocument {
        rows: with_doubts(columns(), doubts, |r: &Row<'_>| {
            RowScope::of_thread(r.row.tid)
        })
        .json(rows(report, vms, &labels)),
        beyond: report.beyond,
    }
}

/// Returns the rows as CSV.
pub fn csv(report: &CountersReport, vms: &[Vm], clock: ClockUnit) -> String {
    let labels = model::vm_names(vms);
    columns().counted_in(clock).csv(rows(report, vms, &labels))
}

/// Counters as a part of a report, where the recording has them.
pub(crate) const PART: PicturePart = PicturePart {
    name: "counters",
    heading: "Cycles, instructions and cache misses",
    caption: "what the processor counted of each vCPU, in its guest and in the host",
    nothing: "",
    document: |picture| {
        let doubts = picture.quality.all_doubts();
        let document = document(&picture.counters, &picture.info.vms, &doubts);
        let document = serde_json::to_value(document).unwrap_or_default();
        (!picture.counters.rows.is_empty()).then_some(document)
    },
    shape: CountersDocument::shape,
    html,
    text: |picture, layout| match picture.counters.rows.is_empty() {
        true => String::new(),
        false => table(&picture.counters, &picture.info.vms, layout),
    },
};

fn html(picture: &Picture, frame: &Frame<'_>) -> String {
    let vms = &picture.info.vms;
    let labels = model::vm_names(vms);
    columns().html(rows(&picture.counters, vms, &labels), frame)
}
