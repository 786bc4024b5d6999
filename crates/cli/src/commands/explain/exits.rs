//! Exits and accesses of a row of exits.

use analysis::{
    ExitCell, ExitOptions, ExitRow, ExitTable, Exits, ExitsReport, GuestContext, RowSplit, Study,
};
use anyhow::{Result, bail};
use event::{Isa, Kind};
use session::{GuestPairing, OpenRecording};

use crate::commands::explain::cell::{CellName, FoundCell, PartEvents, amount, choose, column};
use crate::usage::Usage;

/// What the tables of exits are timed between, and what perf calls the table.
fn exit_events(table: ExitTable, key: &str, from_exits: bool) -> (PartEvents, &'static str) {
    const ENTRY: &[Kind] = &[Kind::KvmEntry];
    let read = key.ends_with(":R");
    let (begin, end, what): (&[Kind], &[Kind], &str) = match (table, from_exits) {
        (ExitTable::Vmexit, _) | (_, true) => (
            &[Kind::KvmExit],
            ENTRY,
            "kvm_exit to the next kvm_entry of the same thread",
        ),
        (ExitTable::Ioport, _) => (
            &[Kind::KvmPio],
            ENTRY,
            "kvm_pio to the next kvm_entry of the same thread",
        ),
        (ExitTable::Mmio, _) if read => (
            &[Kind::KvmExit],
            &[Kind::KvmMmio],
            "kvm_exit to the kvm_mmio with the value that was read",
        ),
        (ExitTable::Mmio, _) => (
            &[Kind::KvmMmio],
            ENTRY,
            "kvm_mmio to the next kvm_entry of the same thread",
        ),
        (ExitTable::Msr, _) => (
            &[Kind::KvmMsr, Kind::KvmSysAccess],
            ENTRY,
            "the access (kvm_msr, on arm64 kvm_sys_access) to the next kvm_entry of the same thread",
        ),
    };
    (PartEvents::Exits { begin, end }, what)
}

/// A row of a table of exits.
struct ChosenRow {
    table: ExitTable,
    key: String,
    from_exits: bool,
    task: Option<ChosenTask>,
}

/// What the guest did in a row.
struct ChosenTask {
    doing: GuestContext,
    /// What tables call it.
    name: String,
    /// The vCPU threads of the row, where they are known.
    tids: Vec<i32>,
}

impl ChosenTask {
    fn is_of(&self, row: &ExitRow) -> bool {
        let doing = row.task.as_ref().map(|task| task.doing);
        doing == Some(self.doing) && row.tids == self.tids
    }
}

/// Returns what separates rows. Tasks of several guests may have the same number.
fn split(paired: &GuestPairing<'_>, cell: CellName<'_>) -> RowSplit {
    let task = cell.task.is_some();
    RowSplit {
        vm: task && paired.guests.len() > 1,
        task,
        ..RowSplit::default()
    }
}

/// Returns the row that is meant.
fn chosen(
    recording: &OpenRecording<'_>,
    paired: &GuestPairing<'_>,
    cell: CellName<'_>,
) -> Result<ChosenRow> {
    let mut question = recording.question(paired);
    let exits = question.add(Exits::new(ExitOptions {
        by: split(paired, cell),
        ..ExitOptions::default()
    }));
    let answers = question.walk();
    let exits = answers.take(exits);
    recording.require_exits(exits.saw_exits())?;
    let reports = exits.reports(answers.walked().machine);
    for report in &reports {
        let rows = report.rows.iter();
        let rows: Vec<&ExitRow> = rows
            .filter(|one| one.key.eq_ignore_ascii_case(cell.row))
            .collect();
        let Some(first) = rows.first() else {
            continue;
        };
        let name = recording.name();
        let task = cell.task.map(|task| of_task(name, &rows, task));
        return Ok(ChosenRow {
            table: report.table,
            key: first.key.clone(),
            from_exits: report.from_exits,
            task: task.transpose()?,
        });
    }
    bail!(no_row(recording.name(), &reports, cell.row))
}

fn no_row(recording: &str, reports: &[ExitsReport], row: &str) -> String {
    let rows = reports.iter().flat_map(|report| &report.rows);
    let near = words::did_you_mean(row, rows.map(|row| row.key.as_str()));
    format!(
        "{recording}: no table of exits has a row '{row}'{near}; 'trapline exits --event vmexit,ioport,mmio,msr' \
         prints all"
    )
}

/// Returns what the guest did of which a row is called so.
fn of_task(recording: &str, rows: &[&ExitRow], asked: &str) -> Result<ChosenTask> {
    let named = rows.iter().filter_map(|row| {
        let task = row.task.as_ref()?;
        Some((row, task.doing, render::guest_tasks::called(task)))
    });
    let named: Vec<_> = named.collect();
    let meant: Vec<_> = named.iter().filter(|(.., name)| name == asked).collect();
    match meant[..] {
        [(row, doing, name)] => Ok(ChosenTask {
            doing: *doing,
            name: name.clone(),
            tids: row.tids.clone(),
        }),
        [] => {
            let near = words::did_you_mean(asked, named.iter().map(|(.., name)| name.as_str()));
            bail!(
                "{recording}: no such exits were made by '{asked}'{near}; 'trapline exits --by task' with the guest's \
                 recording prints all"
            )
        }
        _ => Err(Usage::error(format!(
            "{} rows are called '{asked}'; where they are of several VMs, --vm chooses one",
            meant.len()
        ))),
    }
}

/// Finds the exits or accesses of a row.
pub(super) fn exits(
    recording: &OpenRecording<'_>,
    paired: &GuestPairing<'_>,
    cell: CellName<'_>,
) -> Result<FoundCell> {
    let columns = [
        "count", "time", "total", "mean", "min", "max", "p50", "p90", "p99",
    ];
    let column = column(cell.column, &columns, "exits")?;
    let none = GuestPairing::default();
    let paired = match cell.task {
        Some(_) if paired.guests.is_empty() => {
            return Err(Usage::error(
                "--task takes the guest's recording (--guest): which task made an exit stands there"
                    .to_owned(),
            ));
        }
        Some(_) => paired,
        None => &none,
    };
    let ChosenRow {
        table,
        key,
        from_exits,
        task,
    } = chosen(recording, paired, cell)?;
    let mut question = recording.question(paired);
    let shared = question.share(Exits::new(ExitOptions {
        tables: vec![table],
        by: split(paired, cell),
        ..ExitOptions::default()
    }));
    let mut row = ExitCell::new(table, &key);
    if let Some(task) = &task {
        row = row.of_task(task.doing, task.tids.clone());
    }
    let looked_at = shared.clone();
    let (answers, mut parts) = question.walk_cell(|_: &Study| row.sum(&looked_at.get()));
    let reports = shared.get().reports(answers.walked().machine);
    let mut rows = reports.into_iter().flat_map(|report| report.rows);
    let found = rows.find(|one| {
        let of_task = task.as_ref().is_none_or(|task| task.is_of(one));
        of_task && one.key == key
    });
    let counted = found.as_ref().map_or(0, ExitRow::count);
    let value_ns = found.and_then(|row| amount(&row.stats, column));
    let without_events = counted.saturating_sub(parts.sum.count);
    choose(&mut parts, column);
    let (events, what) = exit_events(table, &key, from_exits);
    // perf prints neither sums of a row nor percentiles, on arm64 it times the guest and not the exit, and of accesses
    // it takes nothing from the exits themselves.
    let of_perf = match column {
        "count" => true,
        "mean" | "min" | "max" => shared.get().isa() != Some(Isa::Arm64),
        _ => false,
    };
    let whole = !cell.filtered && !from_exits && task.is_none();
    let perf = recording.reader().is_perf() && whole && of_perf;
    let mut rule = vec![format!("One is timed from {what}.")];
    rule.extend(task.as_ref().map(|ChosenTask { name, .. }| {
        format!("What the guest did when it began was {name}, as the guest's own recording says.")
    }));
    Ok(FoundCell {
        row: match task {
            Some(ChosenTask { name, .. }) => format!("{key} of {name}"),
            None => key,
        },
        column: column.to_owned(),
        value_ns,
        amount: None,
        nouns: match table {
            ExitTable::Vmexit => ("exit", "exits"),
            _ => ("access", "accesses"),
        },
        rule,
        elsewhere: perf.then(|| {
            let file = super::unpacked(recording.name());
            let event = match table {
                ExitTable::Vmexit => String::new(),
                table => format!(" --event={}", table.name()),
            };
            format!("perf kvm -i {file} stat report{event}")
        }),
        parts,
        without_events,
        events,
        quality: answers.quality,
    })
}
