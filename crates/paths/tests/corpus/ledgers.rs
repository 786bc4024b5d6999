//! What everybody had of a path's time adds up to it, over every recording of the corpus.

use analysis::Study;
use fixtures::{Failures, cases};
use paths::{PathLedger, PathReport, Paths};
use source::{ReaderOptions, RecordingBytes};

fn reports(path: &std::path::Path) -> Option<Vec<PathReport>> {
    let recording = RecordingBytes::open(path).ok()?;
    let reader = recording.reader(ReaderOptions::default()).ok()?;
    let mut all = paths::all_builtin();
    let on_request = paths::ON_REQUEST.iter();
    all.extend(on_request.filter_map(|(name, _)| paths::builtin(name)));
    all.extend(paths::with_guests());
    let mut study = Study::default();
    let paths = study.share(Paths::new(all));
    let _ = reader.walk(&mut study);
    study.finish();
    let machine = study.walked().machine;
    let reports = paths.get().report(machine, &|_| None);
    Some(reports)
}

#[test]
fn ledgers_add_up() {
    let mut failures = Failures::default();
    let (mut checked, mut shown) = (0, 0);
    for case in cases() {
        // Millions of events of the same kinds as others.
        if case.name.starts_with("large/") {
            continue;
        }
        for report in reports(&case.path).into_iter().flatten() {
            let whole = [(&report.ledger, &report.total)];
            let stages = report.stages.iter();
            let stages = stages.map(|stage| (&stage.ledger, &stage.stats));
            for (ledger, stats) in whole.into_iter().chain(stages) {
                let sum = |of: fn(&paths::LedgerTerm) -> u64| ledger.terms.iter().map(of).sum();
                let (total, mean): (u64, u64) =
                    (sum(|term| term.total_ns), sum(|term| term.mean_ns));
                failures.check(total == stats.total() && mean == stats.mean(), || {
                    format!("{} {}: {ledger:?}, {total} {mean}", case.name, report.name)
                });
                checked += 1;
                shown += usize::from(is_shown(ledger));
            }
        }
    }
    assert!(checked > 100, "{checked} stages and totals");
    // The recordings show of most stages who had them.
    assert!(shown * 2 > checked, "{shown} of {checked}");
    failures.finish(100);
}

/// Whether a recording shows who had most of the time.
fn is_shown(ledger: &PathLedger) -> bool {
    let most = ledger.most().map(|term| term.holder);
    most != Some(paths::LedgerHolder::NotRecorded)
}
