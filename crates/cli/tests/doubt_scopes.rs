//! A report and a table say what one CPU lost of that CPU alone. Doubts of other answers are in
//! `crates/session/tests/corpus/doubt_scopes.rs`.

use crate::common::{Failures, case, json, number, run};

/// All 512 events that this recording lost were lost by CPU 1.
#[test]
fn what_one_cpu_lost_is_said_of_that_cpu_alone() {
    let path = case("x86/format-variants/mono.perf.data.zst").path;
    let mut failures = Failures::default();
    for (cpus, expected) in [("1", 512), ("0-1", 512), ("2", 0), ("2,3", 0)] {
        let report = json(&["report", "--cpu", cpus], &path);
        let lost = report.map(|report| number(&report["quality"], "lost_events"));
        failures.check(lost.as_ref().map_or(true, |lost| *lost == expected), || {
            format!("{cpus}: {lost:?}")
        });
    }
    let text = |cpu: &str| {
        let run = run(["exits", "--cpu", cpu, path.to_str().expect("a plain path")]);
        // Lines are broken at the terminal's width.
        run.text().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    failures.check(text("1").contains("512 events lost"), || text("1"));
    failures.check(text("2").contains("no events lost"), || text("2"));
    failures.finish(6);
}
