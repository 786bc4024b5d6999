//! Printed tables where a command takes a recording.

use std::path::Path;

use analysis::{ExitTable, Origin, Picture};
use anyhow::{Result, bail};
use event::Isa;
use perftables::Table;
use source::Recording;

use crate::input;

/// Returns the tool that printed a table.
pub(crate) fn printer(table: &Table) -> &'static str {
    match table {
        Table::KvmStat(_) => "perf kvm stat report",
        Table::SchedLatency(_) => "perf sched latency",
        Table::PerfStat(_) => "perf stat",
        _ => "perf",
    }
}

/// Returns the pictures that the printed tables of a file make; `None` where it is a recording, or holds no tables. Notes of
/// what was not understood are among the warnings of the first.
///
/// # Errors
/// Filters were asked for: tables are sums, of which nothing can be left out.
pub(crate) fn only(
    recording: &Recording,
    path: &Path,
    lender: &input::Lender,
    devices: &input::Devices,
    filtered: bool,
) -> Result<Option<Vec<Picture>>> {
    if !perftables::looks_like(recording.bytes()) || recording.reader(lender.options(false)).is_ok()
    {
        return Ok(None);
    }
    if filtered {
        let name = input::name(path);
        bail!("{name}: printed tables cannot be filtered: they hold sums");
    }
    Ok(Some(pictures(recording, path, devices)))
}

/// Returns the pictures that printed tables make which stand in one text with a recording, as in a ticket.
pub(crate) fn beside(recording: &Recording, path: &Path, devices: &input::Devices) -> Vec<Picture> {
    match perftables::looks_like(recording.bytes()) {
        true => pictures(recording, path, devices),
        false => Vec::new(),
    }
}

fn pictures(recording: &Recording, path: &Path, devices: &input::Devices) -> Vec<Picture> {
    let name = input::name(path);
    let (tables, notes) = perftables::read(recording.bytes());
    let named = tables.into_iter().map(|table| (name.clone(), table));
    let mut pictures = analysis::of_tables(named.collect());
    for picture in &mut pictures {
        // Only x86 has ports and MSRs; whose vendor's they are makes no difference to their names.
        let x86 = [ExitTable::Ioport, ExitTable::Msr];
        let is_x86 = x86.iter().any(|table| picture.table(*table).is_some());
        let isa = picture.isa.or_else(|| is_x86.then_some(Isa::Vmx));
        devices.name(isa, &mut picture.exits, &mut picture.quality);
    }
    if let Some(first) = pictures.first_mut() {
        for note in notes {
            first.quality.warn(note.to_string());
        }
    }
    pictures
}

/// Says which tables a picture is of, as `perf kvm stat (vmexit, ioport), perf stat`.
pub(crate) fn describe(picture: &Picture) -> String {
    debug_assert_eq!(picture.origin, Origin::Printed);
    let mut out = Vec::new();
    let exits: Vec<&str> = ExitTable::ALL
        .into_iter()
        .filter(|table| picture.table(*table).is_some())
        .map(ExitTable::name)
        .collect();
    if !exits.is_empty() {
        out.push(format!("perf kvm stat report ({})", exits.join(", ")));
    }
    if picture.sched.is_some() {
        out.push("perf sched latency".to_owned());
    }
    if !picture.counts.is_empty() {
        out.push("perf stat".to_owned());
    }
    out.join(", ")
}
