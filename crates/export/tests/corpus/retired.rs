//! vCPUs of which no more is kept: what was found of them is in the files all the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use fixtures::csv::csv_rows;
use fixtures::json::{list, number};
use fixtures::{FileForm, FixtureQuestion, write_text};
use model::StateLimits;

use crate::traced;

/// Fewer than there are.
const FEW: StateLimits = StateLimits {
    threads: 300,
    vcpus: 256,
};

/// How many vCPUs there are.
const VCPUS: u64 = 2000;

/// vCPUs that come one after the other, exit twice and end.
fn text() -> String {
    let mut text = String::new();
    let mut at_us = 1_000_000_000;
    for number in 0..VCPUS {
        let (pid, vcpu) = (10_000 + 8 * (number / 4), number % 4);
        let tid = pid + 1 + vcpu;
        let mut event = |after_us: u64, what: &str| {
            at_us += after_us;
            let (s, us) = (at_us / 1_000_000, at_us % 1_000_000);
            let _ = writeln!(
                text,
                " CPU {vcpu}/KVM {pid}/{tid} [002] {s}.{us:06}: {what}"
            );
        };
        let entry = format!("kvm:kvm_entry: vcpu {vcpu}, rip 0x1");
        for after_us in [3, 40] {
            event(
                after_us,
                &format!(
                    "kvm:kvm_exit: vcpu {vcpu} reason IO_INSTRUCTION rip 0x1 info1 0x0 info2 0x0"
                ),
            );
            event(5, &entry);
        }
        event(
            20,
            &format!("sched:sched_process_exit: comm=CPU {vcpu}/KVM pid={tid} prio=120"),
        );
    }
    text
}

#[test]
fn what_vcpus_did_that_are_not_kept_apart_is_in_traces_and_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_text(folder.path(), "vcpus.txt", &text());
    let all = FixtureQuestion::new();
    let few = FixtureQuestion::new().beside(|options| options.limits = FEW);
    let (of_all, of_few) = (traced(&path, &all), traced(&path, &few));
    for category in ["state", "exit"] {
        let sums = |trace: &fixtures::perfetto::ReadTrace| {
            trace.sums(category, |slice| slice.name.clone())
        };
        assert_eq!(sums(&of_few), sums(&of_all), "{category}");
    }
    let exits = of_few.of("exit").count() as u64;
    // The first of each has no entry before it, and is not timed.
    assert_eq!(exits, VCPUS);
    let counted = |trace: &fixtures::perfetto::ReadTrace| -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (track, _, value) in &trace.counters {
            *sums.entry(trace.tracks[track].name.clone()).or_default() += value;
        }
        sums
    };
    assert_eq!(counted(&of_few), counted(&of_all));
    let guest_ns = |asked: &FixtureQuestion| {
        let document = asked.vcpus_document(&path).expect("vCPUs");
        let rows = list(&document["rows"]);
        rows.iter().map(|row| number(row, "guest_ns")).sum::<u64>()
    };
    assert_eq!([guest_ns(&few), guest_ns(&all)], [60_000 * VCPUS; 2]);
    for (form, wanted) in [(FileForm::Spans, 3), (FileForm::Exits, 1)] {
        let rows = |asked: &FixtureQuestion, path: &Path| {
            let text = asked.exported(path, form).expect("a table");
            let rows = csv_rows(&String::from_utf8(text).expect("a text"));
            let times = rows.iter().map(|row| {
                let columns = ["tid", "start_ns", "end_ns", "reason"];
                columns.map(|column| row.get(column).cloned())
            });
            let mut times: Vec<_> = times.collect();
            // The last spans of vCPUs come when these are retired, or at the end.
            times.sort();
            times
        };
        let (of_few, of_all) = (rows(&few, &path), rows(&all, &path));
        assert!(of_few == of_all, "{form:?}");
        assert!(of_all.len() as u64 >= wanted * VCPUS);
    }
}
