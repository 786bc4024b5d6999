//! Interrupts of guests, by vCPU and vector or INTID, and what guests did with them.

use std::fmt::Write;

use analysis::{GicIrq, IpisReport, IrqGuest, IrqHandler, IrqRow, IrqsReport, Picture, Stats};
use doubts::Doubts;
use model::Vm;
use serde::Serialize;
use serde_json::Value;

use crate::amounts::of_any;
use crate::html::Frame;
use crate::ipis::{self, IpisDocument};
use crate::part::PicturePart;
use crate::row_doubts::{RowScope, with_doubts};
use crate::schema::HasShape;
use crate::shape;
use crate::table::{Table, Unit, UnknownColumn, Views, reorder};
use crate::{ClockUnit, Layout, neutral, vms};

/// A row, and how its VM is called.
#[derive(Clone, Copy)]
pub(crate) struct Row<'r> {
    row: &'r IrqRow,
    label: &'r str,
    pid: Option<i32>,
}

impl<'r> Row<'r> {
    fn guest(&self) -> Option<&'r IrqGuest> {
        self.row.guest.as_ref()
    }

    fn handlers(&self) -> &'r [IrqHandler] {
        self.guest().map_or(&[], |guest| &guest.handlers)
    }

    /// Returns the sum of something over the handlers; `None` where there are none.
    fn sum(&self, of: fn(&IrqHandler) -> u64) -> Option<u64> {
        let all = self.handlers().iter().map(of);
        (!self.handlers().is_empty()).then(|| all.fold(0, u64::saturating_add))
    }

    /// Returns something of how long all handlers ran.
    fn ran(&self, of: fn(&Stats) -> u64) -> Option<u64> {
        let mut all = Stats::default();
        for handler in self.handlers() {
            all.merge(&handler.times);
        }
        of_any(&all, of)
    }
}

/// A handler of a row.
pub(crate) struct Handler<'r> {
    row: Row<'r>,
    handler: &'r IrqHandler,
}

fn p50(times: &Stats) -> u64 {
    times.percentile(0.5)
}

fn p99(times: &Stats) -> u64 {
    times.percentile(0.99)
}

/// The table of what became of injections.
const DELAYS: Views = Views::own(0);
/// The table of arm64's interrupts.
const GIC: Views = Views::own(1);

/// Columns of the table where there are no guests' recordings.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Name, Number, Vector};
    let both = Views::TERMINAL | DELAYS;
    let all = both | GIC;
    let gic = |of: fn(&GicIrq) -> u64| move |r: &Row<'_>| r.row.gic.as_ref().map(of);
    Table::new()
        .column("vm", Name, |r: &Row<'_>| r.label)
        .heading("VM", vms::WIDTH)
        .views(all)
        .page("VM")
        .show(|r, _| vms::cell(r.label, r.pid))
        .column("vm_pid", Number, |r| r.pid)
        .page("VM's process")
        .column("vcpu", Number, |r| r.row.vcpu)
        .heading("vCPU", 5)
        .views(all)
        .page("vCPU")
        .column("tid", Number, |r| (r.row.tid >= 0).then_some(r.row.tid))
        .page("thread")
        .column("vector", Vector, |r| r.row.vector)
        .heading("vector", 8)
        .views(both)
        .page("vector")
        .column("accepted", Count, |r| r.row.accepted)
        .heading("accepted", 10)
        .page("accepted")
        .column("posted", Count, |r| r.row.posted)
        .heading("posted", 10)
        .page("posted")
        .column("injected", Count, |r| r.row.injected)
        .heading("injected", 10)
        .page("injected")
        .column("repeated", Count, |r| r.row.repeated)
        .heading("repeated", 10)
        .page("repeated")
        .column("intid", Number, gic(|one| one.intid.into()))
        .heading("INTID", 8)
        .views(GIC)
        .page("INTID")
        .column("raised", Count, gic(|one| one.raised))
        .heading("raised", 10)
        .views(GIC)
        .page("raised")
        .column("lowered", Count, gic(|one| one.lowered))
        .heading("lowered", 10)
        .views(GIC)
        .page("lowered")
}

/// Columns of the table where there are guests' recordings: those of the host, and behind them those of the guest.
pub(crate) fn columns_with_guests<'r>() -> Table<'r, Row<'r>> {
    columns().only_if(|r| r.row.guest.is_some(), of_guest)
}

fn of_guest<'r>(table: Table<'r, Row<'r>>) -> Table<'r, Row<'r>> {
    use Unit::{Count, Nanoseconds, Nested};
    let delay = |of: fn(&Stats) -> u64| {
        move |r: &Row<'_>| r.guest().and_then(|guest| of_any(&guest.delay, of))
    };
    table
        .column("handled", Count, |r| r.guest().and_then(|one| one.handled))
        .json_at("guest.handled")
        .heading("handled", 9)
        .views(DELAYS)
        .column("unseen", Count, |r| r.guest().and_then(|one| one.unseen))
        .json_at("guest.unseen")
        .heading("unseen", 8)
        .views(DELAYS)
        .column("uncovered", Count, |r| {
            r.guest().and_then(|one| one.uncovered)
        })
        .json_at("guest.uncovered")
        .heading("uncovered", 10)
        .views(DELAYS)
        .column("delay_p50_ns", Nanoseconds, delay(p50))
        .json_at("guest.delay_p50_ns")
        .heading("p50", 9)
        .views(DELAYS)
        .column("delay_p99_ns", Nanoseconds, delay(p99))
        .json_at("guest.delay_p99_ns")
        .heading("p99", 9)
        .views(DELAYS)
        .column("delay_max_ns", Nanoseconds, delay(Stats::max))
        .json_at("guest.delay_max_ns")
        .heading("max", 9)
        .views(DELAYS)
        .column("handlers", Nested, |r| {
            let handlers = r.handlers().iter();
            handler_columns().json(handlers.map(|handler| Handler { row: *r, handler }))
        })
        .within(handler_columns().shape().list())
        .json_at("guest.handlers")
        .csv_form(|r| {
            let names: Vec<String> = r.handlers().iter().map(called).collect();
            names.join("; ")
        })
        .column("runs", Count, |r| r.sum(|one| one.runs))
        .csv_only()
        .column("run_total_ns", Nanoseconds, |r| r.ran(Stats::total))
        .csv_only()
        .column("run_out_ns", Nanoseconds, |r| r.sum(|one| one.out_ns))
        .csv_only()
        .column("run_p50_ns", Nanoseconds, |r| r.ran(p50))
        .csv_only()
        .column("run_p99_ns", Nanoseconds, |r| r.ran(p99))
        .csv_only()
        .column("run_max_ns", Nanoseconds, |r| r.ran(Stats::max))
        .csv_only()
}

/// Columns of handlers.
pub(crate) fn handler_columns<'r>() -> Table<'r, Handler<'r>> {
    use Unit::{Count, Name, Nanoseconds, Number, Vector};
    let ran = |of: fn(&Stats) -> u64| move |h: &Handler<'_>| of_any(&h.handler.times, of);
    Table::new()
        .column("vm", Name, |h: &Handler<'_>| h.row.label)
        .text_only()
        .heading("VM", vms::WIDTH)
        .show(|h, _| vms::cell(h.row.label, h.row.pid))
        .column("vcpu", Number, |h| h.row.row.vcpu)
        .text_only()
        .heading("vCPU", 5)
        .column("vector", Vector, |h| h.row.row.vector)
        .text_only()
        .heading("vector", 7)
        .column("irq", Number, |h| h.handler.irq)
        .json_only()
        .column("name", Name, |h| h.handler.name.as_str())
        .json_only()
        .column("runs", Count, |h| h.handler.runs)
        .json_only()
        .heading("runs", 6)
        .column("timed", Count, |h| h.handler.times.count())
        .json_only()
        .column("total_ns", Nanoseconds, ran(Stats::total))
        .json_only()
        .heading("total", 8)
        .column("out_ns", Nanoseconds, |h| {
            of_any(&h.handler.times, |_| h.handler.out_ns)
        })
        .json_only()
        .heading("out", 8)
        .column("p50_ns", Nanoseconds, ran(p50))
        .json_only()
        .column("p99_ns", Nanoseconds, ran(p99))
        .json_only()
        .heading("p99", 8)
        .column("max_ns", Nanoseconds, ran(Stats::max))
        .json_only()
        .heading("max", 8)
        .column("called", Name, |h| called(h.handler))
        .text_only()
        .left("handler", 0)
        .gap(" ")
}

/// Returns what a handler is called: its number among the guest's interrupts, if it has one, and its name.
fn called(handler: &IrqHandler) -> String {
    // A guest's drivers may call their interrupts anything, line breaks included.
    let name = neutral::name(&handler.name);
    match handler.irq {
        Some(irq) if name.is_empty() => irq.to_string(),
        Some(irq) => format!("{irq} {name}"),
        None => name.into(),
    }
}

/// Returns the rows with the names of their VMs.
fn rows<'r>(report: &'r IrqsReport, vms: &[Vm], labels: &'r [String]) -> Vec<Row<'r>> {
    let row = |row: &'r IrqRow| {
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
pub fn sort(report: &mut IrqsReport, vms: &[Vm], column: &str) -> Result<(), UnknownColumn> {
    let labels = model::vm_names(vms);
    let mut places = columns_with_guests().order(&rows(report, vms, &labels), column)?;
    // Those that only a guest's recording shows stay behind the others.
    places.sort_by_key(|place| *place >= report.of_host);
    reorder(&mut report.rows, &places);
    Ok(())
}

/// Returns the tables for a terminal.
pub fn table(report: &IrqsReport, vms: &[Vm], layout: Layout) -> String {
    let labels = model::vm_names(vms);
    let rows = rows(report, vms, &labels);
    let of_host = rows.get(..report.of_host).unwrap_or(&rows);
    let mut out = String::new();
    let (gic, of_host): (Vec<&Row<'_>>, Vec<&Row<'_>>) =
        of_host.iter().partition(|row| row.row.gic.is_some());
    if !gic.is_empty() {
        let table = columns().view(GIC).text(gic.iter().copied(), layout);
        let _ = write!(
            out,
            "irqs: interrupts by INTID; those from 32 on are shared by the vCPUs of a VM\n{table}"
        );
    }
    if gic.is_empty() && (report.unplaced.is_none() || !of_host.is_empty()) {
        let table = columns().view(Views::TERMINAL).text(of_host, layout);
        let _ = write!(out, "irqs: interrupts of each vCPU by vector\n{table}");
    }
    if report.unplaced.is_some() {
        guest_tables(&mut out, &rows, layout);
    }
    if let Some(runs) = report.outside.filter(|runs| *runs > 0) {
        let _ = writeln!(
            out,
            "before or after the host's recording: {} of handlers",
            words::plural(runs, "run")
        );
    }
    out
}

/// Writes what guests did with their interrupts.
fn guest_tables(out: &mut String, rows: &[Row<'_>], layout: Layout) {
    let known = |row: &&Row<'_>| row.guest().is_some_and(|one| one.uncovered.is_some());
    if !out.is_empty() {
        out.push('\n');
    }
    if rows.iter().any(|row| known(&row)) {
        let columns = columns_with_guests();
        let table = columns.view(DELAYS);
        let table = table.text(rows.iter().filter(known), layout);
        let _ = writeln!(
            out,
            "injections: from KVM's injection to the guest's handler\n{table}"
        );
    }
    let handlers = rows.iter().flat_map(|row| {
        let handlers = row.handlers().iter();
        handlers.map(|handler| Handler { row: *row, handler })
    });
    let handlers: Vec<Handler<'_>> = handlers.collect();
    let table = handler_columns()
        .view(Views::TERMINAL)
        .text(handlers, layout);
    let _ = write!(
        out,
        "handlers: how long guests' handlers ran, and how long of that their vCPU was out of the guest\n{table}"
    );
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct IrqsDocument {
    rows: Value,
    /// Interrupts that are in no row: it is not known whose vCPU they were for.
    unresolved: u64,
    /// Runs of guests' handlers that are in no row.
    #[serde(skip_serializing_if = "Option::is_none")]
    guest_unplaced: Option<u64>,
    /// Those before and behind what the host's recording shows of their vCPUs, which are in no row either.
    #[serde(skip_serializing_if = "Option::is_none")]
    guest_outside: Option<u64>,
    /// Those that vCPUs send each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    ipis: Option<IpisDocument>,
}

impl IrqsDocument {
    /// Adds those that vCPUs send each other, by how far their CPUs are apart.
    #[must_use]
    pub fn with_ipis(mut self, report: &IpisReport) -> IrqsDocument {
        self.ipis = ipis::document(report);
        self
    }
}

shape!(IrqsDocument {
    rows: with_doubts(columns_with_guests(), &Doubts::default(), |_| RowScope::default()).shape().list(),
    unresolved, guest_unplaced?, guest_outside?, ipis?
});

/// Returns the columns that a report has.
fn columns_of<'r>(report: &IrqsReport) -> Table<'r, Row<'r>> {
    match report.unplaced {
        Some(_) => columns_with_guests(),
        None => columns(),
    }
}

/// Returns the fields of a document. Rows have the ids of those of the doubts that are about them.
pub fn document(report: &IrqsReport, vms: &[Vm], doubts: &Doubts) -> IrqsDocument {
    let labels = model::vm_names(vms);
    IrqsDocument {
        rows: with_doubts(columns_of(report), doubts, |r| {
            RowScope::of_thread(r.row.tid)
        })
        .json(rows(report, vms, &labels)),
        unresolved: report.unresolved,
        guest_unplaced: report.unplaced,
        guest_outside: report.outside,
        ipis: None,
    }
}

/// Interrupts as a part of a report, where the host's recording has them.
pub(crate) const PART: PicturePart = PicturePart {
    name: "irqs",
    heading: "Interrupts",
    caption: "interrupts of each vCPU by vector (x86) or INTID (arm64)",
    nothing: "There are no kvm_apic_accept_irq and no kvm_inj_virq events (x86) and no vgic_update_irq_pending events \
              (arm64), so nothing can be said about interrupts. 'trapline record --for paths' records them.",
    document: |picture| {
        let doubts = picture.quality.all_doubts();
        let document = document(&picture.irqs, &picture.info.vms, &doubts);
        let document = document.with_ipis(&picture.ipis);
        picture
            .irqs
            .recorded
            .then(|| serde_json::to_value(document).unwrap_or_default())
    },
    shape: IrqsDocument::shape,
    html,
    text: |picture, layout| {
        let text = table(&picture.irqs, &picture.info.vms, layout);
        let ipis = ipis::table(&picture.ipis, layout);
        match ipis.is_empty() {
            true => text,
            false => format!("{text}\n{ipis}"),
        }
    },
};

fn html(picture: &Picture, frame: &Frame<'_>) -> String {
    let vms = &picture.info.vms;
    let labels = model::vm_names(vms);
    let table = columns().html(rows(&picture.irqs, vms, &labels), frame);
    table + &ipis::html(&picture.ipis, frame)
}

/// Returns the rows as CSV.
pub fn csv(report: &IrqsReport, vms: &[Vm], clock: ClockUnit) -> String {
    let labels = model::vm_names(vms);
    columns_of(report)
        .counted_in(clock)
        .csv(rows(report, vms, &labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(irq: Option<u32>, name: &str) -> IrqHandler {
        IrqHandler {
            irq,
            name: name.to_owned(),
            runs: 1,
            times: Stats::default(),
            out_ns: 0,
        }
    }

    #[test]
    fn names_break_no_line() {
        let name = called(&handler(Some(25), "a\nb\u{1b}[2J"));
        assert!(name.starts_with("25 a") && !name.contains(char::is_control));
        assert_eq!(called(&handler(Some(25), "")), "25");
        assert_eq!(called(&handler(None, "local_timer")), "local_timer");
    }

    #[test]
    fn what_only_a_guest_says_is_in_no_table_of_the_host() {
        let host = IrqRow {
            vcpu: Some(0),
            vector: Some(0x24),
            accepted: Some(7),
            ..IrqRow::default()
        };
        // With APICv nothing is injected, so no handler has a vector.
        let guest = IrqGuest {
            handlers: vec![handler(Some(25), "virtio0-input.0")],
            ..IrqGuest::default()
        };
        let alone = IrqRow {
            vcpu: Some(0),
            guest: Some(guest),
            ..IrqRow::default()
        };
        let with = |row: IrqRow| IrqRow {
            guest: Some(IrqGuest::default()),
            ..row
        };
        let report = IrqsReport {
            rows: vec![with(host.clone()), alone],
            of_host: 1,
            unplaced: Some(0),
            outside: Some(3),
            ..IrqsReport::default()
        };
        let layout = Layout {
            width: 80,
            limit: usize::MAX,
            nanoseconds: true,
        };
        let text = table(&report, &[], layout);
        let lines = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        assert_eq!(
            (lines("0x24"), lines("25 virtio0-input.0")),
            (1, 1),
            "{text}"
        );
        assert_eq!((lines("injections:"), lines("3 runs")), (0, 1), "{text}");
        let document = document(&report, &[], &Doubts::default()).rows;
        assert_eq!(document[0]["guest"]["handled"], Value::Null);
        assert_eq!(document[1]["guest"]["handlers"][0]["irq"], 25);
        // Without guests there is no member.
        let report = IrqsReport {
            rows: vec![host],
            of_host: 1,
            ..IrqsReport::default()
        };
        let document = super::document(&report, &[], &Doubts::default());
        assert!(document.rows[0].get("guest").is_none());
        assert_eq!(document.guest_outside, None);
    }
}
