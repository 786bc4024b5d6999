//! Tables that perf printed, beside the recordings that they are of.

use analysis::ExitTable;
use fixtures::{Failures, FixtureQuestion, cases, read_text};
use session::{Session, SessionOptions};

/// Every table of perf kvm stat in the corpus, as perf printed it of a recording that is there too.
#[test]
fn exits_of_a_printed_table_are_those_of_its_recording() {
    let mut failures = Failures::default();
    let session = Session::open(SessionOptions::default()).expect("it needs nothing");
    for case in cases() {
        for (event, wanted) in [
            ("vmexit", ExitTable::Vmexit),
            ("ioport", ExitTable::Ioport),
            ("mmio", ExitTable::Mmio),
            ("msr", ExitTable::Msr),
        ] {
            let Some(table) = case.references.get(&format!("kvm-stat-{event}")) else {
                continue;
            };
            let what = format!("{} {event}", case.name);
            let text = read_text(table);
            if !text.contains("Samples") || text.contains("Total Samples:0,") {
                continue;
            }
            let pictures = session.input(table).and_then(|input| input.tables());
            let Ok(Some(pictures)) = pictures else {
                failures.check(false, || format!("{what}: refused"));
                continue;
            };
            let asked = FixtureQuestion::new().like_perf().table(wanted);
            let Ok((_, of_recording, _)) = asked.exits(&case.path) else {
                continue;
            };
            let of_table: Vec<_> = pictures.iter().flat_map(|picture| &picture.exits).collect();
            let [of_table] = of_table.as_slice() else {
                panic!("{what}: {} tables", of_table.len());
            };
            failures.equal(&format!("{what}: event"), &of_table.table, &wanted);
            let count = of_recording[0].total_count;
            failures.equal(&format!("{what}: count"), &of_table.total_count, &count);
            for row in &of_table.rows {
                // perf does not print them.
                let without = !row.stats.has_percentiles() && row.stats.count() > 0;
                failures.check(without, || format!("{what}: {row:?}"));
            }
        }
    }
    failures.finish(40);
}
