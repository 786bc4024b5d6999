//! Interrupts of guests, by vCPU and vector.

use analysis::{IrqRow, IrqsReport};
use model::Vm;
use serde::Serialize;
use serde_json::Value;

use crate::table::{Table, Unit};
use crate::{Layout, vms};

/// A row, and how its VM is called.
pub(crate) struct Row<'r> {
    row: &'r IrqRow,
    label: &'r str,
    pid: Option<i32>,
}

/// Columns on a terminal.
pub(crate) const SHOWN: [&str; 7] = [
    "vm", "vcpu", "vector", "accepted", "posted", "injected", "repeated",
];

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Number, Text};
    Table::new()
        .column("vm", Text, |r: &Row<'_>| r.label)
        .heading("VM", vms::WIDTH)
        .show(|r, _| vms::cell(r.label, r.pid))
        .column("vm_pid", Number, |r| r.pid)
        .column("vcpu", Number, |r| r.row.vcpu)
        .heading("vCPU", 5)
        .column("tid", Number, |r| r.row.tid)
        .column("vector", Number, |r| r.row.vector)
        .heading("vector", 8)
        .show(|r, _| format!("{:#x}", r.row.vector))
        .column("accepted", Count, |r| r.row.accepted)
        .heading("accepted", 10)
        .column("posted", Count, |r| r.row.posted)
        .heading("posted", 10)
        .column("injected", Count, |r| r.row.injected)
        .heading("injected", 10)
        .column("repeated", Count, |r| r.row.repeated)
        .heading("repeated", 10)
}

/// Returns the rows with the names of their VMs.
fn rows<'r>(report: &'r IrqsReport, vms: &[Vm], labels: &'r [String]) -> Vec<Row<'r>> {
    let row = |row: &'r IrqRow| Row {
        row,
        label: row
            .vm
            .and_then(|at| labels.get(at))
            .map_or("", String::as_str),
        pid: row.vm.and_then(|at| vms.get(at)?.pid),
    };
    report.rows.iter().map(row).collect()
}

/// Returns the table for a terminal.
pub fn table(report: &IrqsReport, vms: &[Vm], layout: Layout) -> String {
    let labels = model::vm_names(vms);
    let rows = rows(report, vms, &labels);
    let table = columns().view(SHOWN).text(rows, layout);
    format!("irqs: interrupts of each vCPU by vector\n{table}")
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct Document {
    rows: Value,
    /// Interrupts that are in no row: it is not known whose vCPU they were for.
    unresolved: u64,
}

/// Returns the fields of a document.
pub fn document(report: &IrqsReport, vms: &[Vm]) -> Document {
    let labels = model::vm_names(vms);
    Document {
        rows: columns().json(rows(report, vms, &labels)),
        unresolved: report.unresolved,
    }
}

/// Returns the rows as CSV.
pub fn csv(report: &IrqsReport, vms: &[Vm]) -> String {
    let labels = model::vm_names(vms);
    columns().csv(rows(report, vms, &labels))
}
