//! Printed tables in any text: what was read fits into it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perftables::PerfTable;

fn rows(tables: &[PerfTable]) -> usize {
    let rows = tables.iter().map(|table| match table {
        PerfTable::KvmStat(table) => table.rows.len(),
        PerfTable::SchedLatency(table) => table.rows.len(),
        PerfTable::PerfStat(table) => table.counts.len(),
        _ => 0,
    });
    rows.sum()
}

fuzz_target!(|data: &[u8]| {
    let (tables, notes) = perftables::read(data);
    let lines = 1 + data.iter().filter(|b| matches!(**b, b'\n' | b'\r')).count();
    assert!(notes.len() <= 100);
    assert!(rows(&tables) <= lines);
    assert!(tables.iter().all(|table| (1..=lines as u64).contains(&table.line())));
    let _ = perftables::looks_like(data);
});
