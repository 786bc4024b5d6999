//! Rows of tables are bounded, and what is beyond is counted.

use super::rows::CountedRow;
use super::*;
use model::Times;

fn access(address: u64) -> Key {
    Key::Access {
        address,
        write: false,
    }
}

#[test]
fn what_is_beyond_the_most_rows_is_counted_as_others() {
    let mut exits = Exits::default();
    let rows = &mut exits.tables[MSR];
    rows.most = 100;
    for n in 0..100_000u64 {
        let row = rows.row(access(n % 5000), 0);
        rows.add(row, 10, (&Times::default(), &Times::default()), false);
    }
    assert_eq!(rows.rows.len(), 101, "state is bounded by the most rows");
    let reports = exits.reports(&Machine::new());
    let report = reports.iter().find(|r| r.table == ExitTable::Msr).unwrap();
    assert_eq!((report.total_count, report.total_ns), (100_000, 1_000_000));
    assert_eq!(report.rows.len(), 101);
    let others = report.rows.iter().find(|row| row.is_others()).unwrap();
    assert_eq!(others.stats.count(), 100_000 - 100 * 20);
    assert_eq!(others.key, OTHERS);
    // Those that have a row keep it.
    let first = report.rows.iter().find(|row| row.address == Some(7));
    assert_eq!(first.map(|row| row.stats.count()), Some(20));
}

#[test]
fn a_row_is_small() {
    assert!(
        size_of::<CountedRow>() <= 208,
        "{}",
        size_of::<CountedRow>()
    );
}
