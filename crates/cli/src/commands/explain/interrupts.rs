//! Interrupts of a row, one event each.

use std::collections::BTreeSet;

use analysis::{IrqColumn, IrqPlace, IrqRow, Irqs};
use anyhow::{Result, bail};
use event::NONE;
use session::{CellPart, GuestPairing, OpenRecording};

use crate::commands::explain::cell::{CellName, FoundCell, PartEvents, column};
use crate::commands::explain::single::{SingleEvent, WantedNumber};
use crate::usage::Usage;

/// Columns that are explained.
const COLUMNS: [(&str, IrqColumn); 6] = [
    ("accepted", IrqColumn::Accepted),
    ("posted", IrqColumn::Posted),
    ("injected", IrqColumn::Injected),
    ("repeated", IrqColumn::Repeated),
    ("raised", IrqColumn::Raised),
    ("lowered", IrqColumn::Lowered),
];

/// Returns what a row has in a column; `None` where that is not recorded, or not known of whose vCPU.
fn amount(row: &IrqRow, column: IrqColumn) -> Option<u64> {
    match column {
        IrqColumn::Accepted => row.accepted,
        IrqColumn::Posted => row.posted,
        IrqColumn::Injected => row.injected,
        IrqColumn::Repeated => row.repeated,
        IrqColumn::Raised => row.gic.map(|gic| gic.raised),
        IrqColumn::Lowered => row.gic.map(|gic| gic.lowered),
    }
}

/// Returns a row's vector or INTID.
fn number(row: &IrqRow) -> Option<u32> {
    let intid = row.gic.map(|gic| gic.intid);
    intid.or(row.vector.map(u32::from))
}

/// Returns which event is counted in a column, and a sentence on it.
fn event_of(column: IrqColumn, number: u32) -> (SingleEvent, &'static str) {
    let wanted = |field, number| {
        Some(WantedNumber {
            field,
            number: u64::from(number),
        })
    };
    let (names, fields, rule) = match column {
        IrqColumn::Accepted => (
            &["kvm_apic_accept_irq"][..],
            [wanted("vector", number), None],
            "Each kvm_apic_accept_irq of fixed or lowest priority with this vector is one, of the vCPU that it names.",
        ),
        IrqColumn::Posted => (
            &["kvm_apicv_accept_irq"][..],
            [wanted("vector", number), None],
            "Each kvm_apicv_accept_irq is one, of the kvm_apic_accept_irq of the same thread before it.",
        ),
        IrqColumn::Injected => (
            &["kvm_inj_virq"][..],
            [wanted("vector", number), wanted("reinjected", 0)],
            "Each kvm_inj_virq of the vCPU's thread with this vector is one, but for what repeats another.",
        ),
        IrqColumn::Repeated => (
            &["kvm_inj_virq"][..],
            [wanted("vector", number), wanted("reinjected", 1)],
            "Each kvm_inj_virq of the vCPU's thread with this vector that says that it is repeated is one.",
        ),
        IrqColumn::Raised => (
            &["vgic_update_irq_pending"][..],
            [wanted("irq", number), wanted("level", 1)],
            "Each vgic_update_irq_pending with this INTID and level 1 is one.",
        ),
        IrqColumn::Lowered => (
            &["vgic_update_irq_pending"][..],
            [wanted("irq", number), wanted("level", 0)],
            "Each vgic_update_irq_pending with this INTID and level 0 is one.",
        ),
    };
    (SingleEvent { names, fields }, rule)
}

/// Finds the interrupts of a vector or an INTID, on all vCPUs that filters leave.
pub(super) fn irqs(recording: &OpenRecording<'_>, cell: CellName<'_>) -> Result<FoundCell> {
    let digits = cell.row.strip_prefix("0x");
    let wanted = match digits {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => cell.row.parse(),
    };
    let Ok(wanted) = wanted else {
        return Err(Usage::error(format!(
            "'{}' is no vector (0xec) and no INTID (27); 'trapline irqs' prints them",
            cell.row
        )));
    };
    let paired = GuestPairing::default();
    let found = recording.interrupts(&paired)?;
    let rows = found.report.rows.iter();
    let rows: Vec<&IrqRow> = rows.filter(|row| number(row) == Some(wanted)).collect();
    let Some(first) = rows.first() else {
        bail!(
            "{}: no row of irqs has the number {}; 'trapline irqs' prints all",
            recording.name(),
            cell.row
        );
    };
    let names: Vec<&str> = COLUMNS
        .iter()
        .filter(|(_, column)| rows.iter().any(|row| amount(row, *column).is_some()))
        .map(|(name, _)| *name)
        .collect();
    let named = column(cell.column, &names, "irqs")?;
    let asked = COLUMNS.iter().find(|(name, _)| *name == named);
    let asked = asked.map_or(IrqColumn::Accepted, |(_, column)| *column);
    // Rows that do not have the number are not among what it is made of.
    let places: BTreeSet<(i32, Option<usize>)> = rows
        .iter()
        .filter(|row| amount(row, asked).is_some())
        .map(|row| (row.tid, row.gic.and(row.vm)))
        .collect();
    let mut question = recording.question(&paired);
    let shared = question.share(Irqs::new());
    let (answers, parts) = question.walk_parts(|_, event, found_parts| {
        let counted = shared.get_mut().take_counted(&found.vms);
        let is_it = |(column, place): &(IrqColumn, IrqPlace)| {
            *column == asked && place.number == wanted && places.contains(&(place.tid, place.vm))
        };
        if let Some(event) = event.filter(|_| counted.as_ref().is_some_and(is_it)) {
            found_parts.push(CellPart {
                start: event.time,
                end: event.time,
                begin_tid: NONE,
                tid: event.tid,
            });
        }
    });
    let (single, rule) = event_of(asked, wanted);
    let in_rows: u64 = rows
        .iter()
        .filter_map(|row| amount(row, asked))
        .fold(0, u64::saturating_add);
    Ok(FoundCell {
        row: match first.gic {
            Some(gic) => format!("INTID {}", gic.intid),
            None => format!("{wanted:#x}"),
        },
        column: named.to_owned(),
        value_ns: None,
        amount: None,
        nouns: ("interrupt", "interrupts"),
        rule: vec![rule.to_owned()],
        elsewhere: None,
        without_events: in_rows.saturating_sub(parts.sum.count),
        parts,
        events: PartEvents::Single(single),
        quality: answers.quality,
    })
}
