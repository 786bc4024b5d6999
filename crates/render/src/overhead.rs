//! What recording an event costs, by CPU.

use serde::Serialize;
use serde_json::Value;

use crate::Layout;
use crate::shape;
use crate::table::{Table, Unit, Views};

/// What an event costs the thread that makes it on a CPU, ns. What could not be measured is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverheadRow {
    /// The CPU.
    pub cpu: u32,
    /// A tracepoint whose record goes to the ring.
    pub event_ns: u64,
    /// One with the kernel's call chain.
    pub chain_ns: Option<u64>,
    /// One that a filter leaves out.
    pub filtered_ns: Option<u64>,
    /// One of which a program in the kernel keeps each thread's last.
    pub kept_ns: Option<u64>,
    /// A probe of a kernel function (kprobe).
    pub probe_ns: Option<u64>,
    /// A probe of a program's function (uprobe).
    pub uprobe_ns: Option<u64>,
}

impl OverheadRow {
    /// Returns how many events a second take a hundredth of the CPU; `None` where no cost was found.
    fn per_cent(&self) -> Option<u64> {
        10_000_000u64.checked_div(self.event_ns)
    }

    /// Returns whether a cost was lost in what else went on: no event is free.
    pub fn is_in_noise(&self) -> bool {
        let others = [
            self.chain_ns,
            self.filtered_ns,
            self.kept_ns,
            self.probe_ns,
            self.uprobe_ns,
        ];
        self.event_ns == 0 || others.contains(&Some(0))
    }
}

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, OverheadRow> {
    use Unit::{Count, Nanoseconds, Number};
    Table::new()
        .column("cpu", Number, |r: &OverheadRow| r.cpu)
        .heading("CPU", 5)
        .column("event_ns", Nanoseconds, |r| r.event_ns)
        .heading("event", 10)
        .column("chain_ns", Nanoseconds, |r| r.chain_ns)
        .heading("call chain", 12)
        .column("filtered_ns", Nanoseconds, |r| r.filtered_ns)
        .heading("filtered", 10)
        .column("kept_ns", Nanoseconds, |r| r.kept_ns)
        .heading("kept", 8)
        .column("probe_ns", Nanoseconds, |r| r.probe_ns)
        .heading("kprobe", 10)
        .column("uprobe_ns", Nanoseconds, |r| r.uprobe_ns)
        .heading("uprobe", 10)
        .column("per_cent", Count, OverheadRow::per_cent)
        .heading("events/s for 1 %", 18)
}

/// Returns the table for a terminal.
pub fn table(rows: &[OverheadRow], layout: Layout) -> String {
    let table = columns().view(Views::TERMINAL).text(rows.to_vec(), layout);
    format!("overhead: what recording an event costs the thread that makes it\n{table}")
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct OverheadDocument {
    rows: Value,
}

shape!(OverheadDocument {
    rows: columns().shape().list()
});

/// Returns the fields of a document.
pub fn document(rows: &[OverheadRow]) -> OverheadDocument {
    OverheadDocument {
        rows: columns().json(rows.to_vec()),
    }
}

/// Returns the rows as CSV.
pub fn csv(rows: &[OverheadRow]) -> String {
    columns().csv(rows.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_is_made_of_a_cost_that_was_not_found() {
        let row = |event_ns| OverheadRow {
            cpu: 0,
            event_ns,
            chain_ns: None,
            filtered_ns: None,
            kept_ns: None,
            probe_ns: None,
            uprobe_ns: None,
        };
        assert_eq!(row(500).per_cent(), Some(20_000));
        assert_eq!(row(0).per_cent(), None);
        assert!(row(0).is_in_noise() && !row(500).is_in_noise());
        let filtered = OverheadRow {
            filtered_ns: Some(0),
            ..row(500)
        };
        assert!(filtered.is_in_noise());
    }
}
