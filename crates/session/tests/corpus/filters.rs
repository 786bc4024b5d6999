//! Filters choose vCPUs and what belongs to them: nothing is lost by them, and times are understood on every clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fixtures::json::{list, number};
use fixtures::{Failures, FixtureQuestion, case, cases, listed_events, read};
use serde_json::Value;
use session::{Error, Filters};

/// Ids of the findings of a diagnosis.
fn findings(path: &Path, asked: &FixtureQuestion) -> Result<BTreeSet<&'static str>, Error> {
    let (diagnosis, _) = asked.diagnosis(&[path.to_owned()])?;
    let found = diagnosis.findings.iter();
    Ok(found.map(|finding| finding.rule.id).collect())
}

/// Threads of each VM.
fn vms(path: &Path) -> Vec<(Value, Vec<u64>)> {
    let Ok(info) = FixtureQuestion::new().info_document(path) else {
        return Vec::new();
    };
    let vms = info["vms"].as_array().cloned().unwrap_or_default();
    let tids = |vm: &Value| -> Vec<u64> {
        let vcpus = vm["vcpus"].as_array().expect("vCPUs");
        vcpus.iter().map(|vcpu| number(vcpu, "tid")).collect()
    };
    vms.into_iter()
        .map(|vm| {
            let tids = tids(&vm);
            (vm, tids)
        })
        .collect()
}

/// The recording of case 1: vCPU 1 of the second VM prints on its console, and its interrupts wait.
#[test]
fn a_cause_is_found_through_filters_of_its_vm_alone() {
    const CAUSE: &str = "console-on-irq-vcpu";
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let all = findings(&path, &FixtureQuestion::new()).expect("a diagnosis");
    failures.check(all.contains(CAUSE), || format!("{all:?}"));
    for (filter, sick) in [
        (["--pid", "1691"], true),
        (["--vm", "1691"], true),
        (["--vm", "1704"], true),
        (["--pid", "1689"], false),
        (["--vm", "1689"], false),
        (["--vcpu", "1"], true),
        (["--vcpu", "0"], false),
        (["--pid", "1705"], true),
    ] {
        let found = findings(&path, &FixtureQuestion::new().filter(filter[0], filter[1]))
            .expect("a diagnosis");
        let what = filter.join(" ");
        failures.check(found.contains(CAUSE) == sick, || {
            format!("{what}: {found:?}")
        });
        if sick && filter[0] != "--vcpu" {
            failures.equal(&what, &found, &all);
        }
    }
    failures.finish(10);
}

/// Whatever is found of all VMs is found of one of them, but for what takes the events of several to be enough: rules
/// need so many interrupts before they say a word.
#[test]
fn no_finding_is_lost_by_looking_at_each_vm() {
    const SUMS: &str = "halted-target-ipi";
    let mut failures = Failures::default();
    for case in cases() {
        let vms = vms(&case.path);
        if vms.len() < 2 {
            continue;
        }
        let Ok(mut all) = findings(&case.path, &FixtureQuestion::new()) else {
            continue;
        };
        all.remove(SUMS);
        let mut each = BTreeSet::new();
        for (_, tids) in &vms {
            let first = tids[0].to_string();
            let found = findings(&case.path, &FixtureQuestion::new().vm(&first));
            each.extend(found.unwrap_or_else(|error| panic!("{}: {error}", case.name)));
        }
        failures.check(all.is_subset(&each), || {
            format!("{}: {all:?} of all, {each:?} of each VM", case.name)
        });
    }
    failures.finish(1);
}

/// VMs that are found by who wakes whom are those of the process ids, where a perf.data of the same VMs has them.
#[test]
fn vms_of_a_trace_dat_are_those_of_the_perf_data_beside_it() {
    let mut failures = Failures::default();
    let mut known: BTreeMap<PathBuf, Vec<BTreeSet<u64>>> = BTreeMap::new();
    let folder = |path: &Path| path.parent().expect("a folder").to_path_buf();
    let cases = cases();
    for case in cases.iter().filter(|case| case.kind == "perf.data") {
        let of = known.entry(folder(&case.path)).or_default();
        of.extend(
            vms(&case.path)
                .into_iter()
                .map(|(_, tids)| tids.into_iter().collect()),
        );
    }
    for case in cases.iter().filter(|case| case.kind == "trace.dat") {
        let Some(known) = known.get(&folder(&case.path)) else {
            continue;
        };
        for (vm, tids) in vms(&case.path) {
            let tids: BTreeSet<u64> = tids.into_iter().collect();
            let same = || known.iter().any(|vm| vm.is_superset(&tids));
            let theirs = known.iter().any(|vm| !vm.is_disjoint(&tids));
            // A guess may be wrong, and says so. Another run's threads are others.
            let right = vm["guessed"] == true || !theirs || same();
            failures.check(right, || format!("{}: {vm}", case.name));
        }
    }
    failures.finish(5);
}

/// On clocks that print no decimal point --time used to let everything through.
#[test]
fn times_are_those_that_are_printed_on_every_clock() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let tsc = case("x86/format-variants/x86-tsc.dat.zst").path;
    let local = case("x86/format-variants/v6.dat.zst").path;
    // The same recording by the clock boot, which is nanoseconds as well and printed plainly.
    let boot = folder.path().join("boot.dat");
    let mut bytes = read(&local);
    // The list of clocks, and behind it the one that was taken.
    for (from, to) in [
        ("[local] global", "local global"),
        (" boot tai ", " [boot] tai "),
        ("[local]", "[boot] "),
    ] {
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes());
        let at = at.expect("a clock");
        bytes.splice(at..at + from.len(), to.bytes());
    }
    fs::write(&boot, bytes).expect("a written file");

    for (name, path, seconds) in [("x86-tsc", &tsc, false), ("boot", &boot, true)] {
        let all = listed_events(path, Filters::default()).expect("events");
        let (from, to) = (all[all.len() / 3].time, all[all.len() / 2].time);
        let inside = all
            .iter()
            .filter(|one| (from..=to).contains(&one.time))
            .count();
        failures.check(inside > 10 && inside < all.len() / 2, || {
            format!("{name}: {inside}")
        });
        let plain = format!("{from},{to}");
        let mut ranges = vec![plain];
        if seconds {
            let decimal = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            ranges.push(format!("{},{}", decimal(from), decimal(to)));
            ranges.push(format!("{},{to}", decimal(from)));
        }
        for range in &ranges {
            let what = format!("{name} --time {range}");
            let filters = Filters {
                time: Some(range.parse().expect("a range of time")),
                ..Filters::default()
            };
            let chosen = listed_events(path, filters).expect("events");
            failures.equal(&what, &chosen.len(), &inside);
            let info = FixtureQuestion::new().time(range).info_document(path);
            let info = info.expect("info");
            let counts = list(&info["events"]).iter();
            let sum: u64 = counts.map(|one| number(one, "count")).sum();
            failures.equal(&what, &sum, &(inside as u64));
        }
    }
    failures.finish(9);
}
