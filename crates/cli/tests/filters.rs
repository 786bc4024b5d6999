//! Filters choose vCPUs and what belongs to them: nothing is lost by them, and times are understood on every clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Failures, case, cases, json, number, read, run};
use serde_json::Value;

/// Ids of the findings of a diagnosis.
fn findings(path: &Path, filter: &[&str]) -> Result<BTreeSet<String>, String> {
    let args: Vec<&str> = ["diagnose"]
        .into_iter()
        .chain(filter.iter().copied())
        .collect();
    let document = json(&args, path)?;
    let list = document["findings"].as_array().expect("findings");
    let ids = list
        .iter()
        .map(|one| one["id"].as_str().expect("an id").to_owned());
    Ok(ids.collect())
}

/// Threads of each VM.
fn vms(path: &Path) -> Vec<(Value, Vec<u64>)> {
    let Ok(info) = json(&["info"], path) else {
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
    let all = findings(&path, &[]).expect("a diagnosis");
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
        let found = findings(&path, &filter).expect("a diagnosis");
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
        let Ok(mut all) = findings(&case.path, &[]) else {
            continue;
        };
        all.remove(SUMS);
        let mut each = BTreeSet::new();
        for (_, tids) in &vms {
            let first = tids[0].to_string();
            let found = findings(&case.path, &["--vm", &first]);
            each.extend(found.unwrap_or_else(|error| panic!("{}: {error}", case.name)));
        }
        failures.check(all.is_subset(&each), || {
            format!("{}: {all:?} of all, {each:?} of each VM", case.name)
        });
    }
    failures.finish(1);
}

/// A report through a filter has the rows of what was asked for, in every part.
#[test]
fn every_part_of_a_report_is_chosen() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let whole = json(&["report"], &path).expect("a report");
    let chosen = json(&["report", "--vm", "1691"], &path).expect("a report");
    let part = |report: &Value| report["recordings"][0].clone();
    let (whole, chosen) = (part(&whole), part(&chosen));
    let rows = |part: &Value, of: &str| part[of]["rows"].as_array().cloned().unwrap_or_default();
    let tids = |rows: &[Value], name: &str| -> BTreeSet<u64> {
        rows.iter().map(|row| number(row, name)).collect()
    };
    let wanted = BTreeSet::from([1704, 1705]);
    failures.equal("vCPUs", &tids(&rows(&chosen, "vcpus"), "tid"), &wanted);
    // What a vCPU did does not depend on who else is looked at.
    for row in rows(&chosen, "vcpus") {
        let all = rows(&whole, "vcpus");
        let same = all.iter().find(|other| other["tid"] == row["tid"]);
        failures.equal("a vCPU", &Some(&row), &same);
    }
    for (table, of) in ["vmexit", "ioport"].into_iter().zip(0usize..) {
        let alone = json(&["exits", "--event", table, "--vm", "1691"], &path).expect("exits");
        // A report has them by their time.
        let sorted = |table: &Value| {
            let mut rows = table["rows"].as_array().cloned().unwrap_or_default();
            rows.sort_by_key(|row| row["key"].to_string());
            rows
        };
        failures.equal(table, &sorted(&chosen["exits"][of]), &sorted(&alone));
    }
    let sched = json(&["sched", "--vm", "1691"], &path).expect("a table");
    failures.equal("tasks", &tids(&rows(&chosen, "sched"), "pid"), &wanted);
    failures.equal(
        "sched",
        &tids(sched["rows"].as_array().expect("rows"), "pid"),
        &wanted,
    );
    let ids = |part: &Value| -> Vec<Value> {
        let list = part["findings"].as_array().expect("findings");
        list.iter().map(|one| one["id"].clone()).collect()
    };
    failures.equal("findings", &ids(&chosen), &ids(&whole));
    failures.finish(8);
}

/// A process of which no vCPU is known is no reason for an all-clear.
#[test]
fn a_process_without_vcpus_is_refused() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let path = path.display().to_string();
    for args in [["diagnose", "--pid", "1"], ["report", "--pid", "1"]] {
        let run = run(args.into_iter().chain([path.as_str()]));
        failures.equal(&args.join(" "), &run.status, &1);
        failures.check(
            run.stderr.contains("no vCPU of process 1") && run.stderr.contains("process 1689"),
            || run.stderr.clone(),
        );
    }
    let unknown = run(["exits", "--vm", "b", &path]);
    let words = [
        "called b",
        "VMs known",
        "process 1689",
        "process 1691",
        "--facts",
    ];
    failures.check(
        words.iter().all(|word| unknown.stderr.contains(word)),
        || unknown.stderr.clone(),
    );
    failures.finish(5);
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

/// A guest's map in a trace.dat names it and its vCPUs.
#[test]
fn a_guest_that_was_recorded_too_is_known_by_its_map() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok(all) = json(&["exits"], &case.path) else {
            continue;
        };
        let text = run(["info", &case.path.display().to_string()]).text();
        let map = text
            .lines()
            .find_map(|line| line.strip_prefix("guest     "));
        let Some((name, _)) = map.and_then(|map| map.split_once(" (vCPU=thread 0=")) else {
            continue;
        };
        let vms = vms(&case.path);
        let vm = &vms[0].0;
        failures.equal(
            "name",
            &vm["name"].as_str(),
            &Some(&*format!("guest {name}")),
        );
        failures.check(vm.get("guessed").is_none(), || vm.to_string());
        for name in [name, &format!("guest {name}")] {
            let chosen = json(&["exits", "--vm", name], &case.path).expect("exits");
            failures.equal(name, &chosen["rows"], &all["rows"]);
        }
    }
    // None of those that are shipped has exits beside such a map.
    failures.finish(0);
}

/// Counts of events by name.
fn counts(path: &Path, filter: &[&str]) -> Result<BTreeMap<String, u64>, String> {
    let args: Vec<&str> = ["info"].into_iter().chain(filter.iter().copied()).collect();
    let info = json(&args, path)?;
    let list = info["events"].as_array().cloned().unwrap_or_default();
    let counts = list.iter().map(|one| {
        let name = one["name"].as_str().unwrap_or_default().to_owned();
        (name, number(one, "count"))
    });
    Ok(counts.filter(|(_, count)| *count > 0).collect())
}

/// Events from one time to another, as `events` prints them.
fn printed(path: &Path, filter: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = ["events"]
        .into_iter()
        .chain(filter.iter().copied())
        .collect();
    let document = json(&args, path).expect("events");
    document["events"].as_array().cloned().unwrap_or_default()
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
        let all = printed(path, &[]);
        let time = |event: &Value| number(event, "time_ns");
        let (from, to) = (time(&all[all.len() / 3]), time(&all[all.len() / 2]));
        let inside = all
            .iter()
            .filter(|one| (from..=to).contains(&time(one)))
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
            failures.equal(&what, &printed(path, &["--time", range]).len(), &inside);
            let sum = counts(path, &["--time", range]).expect("info");
            failures.equal(&what, &sum.values().sum::<u64>(), &(inside as u64));
        }
    }
    for command in [
        "info", "events", "exits", "vcpus", "sched", "paths", "diagnose", "report",
    ] {
        let refused = run([command, "--time", "858.5,858.6", &tsc.display().to_string()]);
        failures.equal(command, &refused.status, &1);
        let words = ["x86-tsc", "whole numbers", "trapline info"];
        failures.check(
            words.iter().all(|word| refused.stderr.contains(word)),
            || format!("{command}: {}", refused.stderr),
        );
    }
    failures.finish(25);
}

#[test]
fn events_are_chosen_by_name() {
    let mut failures = Failures::default();
    let path = case("vmx/tiny-irqchip/perf.data.zst").path;
    let all = counts(&path, &[]).expect("info");
    for (glob, lets) in [
        ("kvm_exit", (|n| n == "kvm:kvm_exit") as fn(&str) -> bool),
        ("kvm:kvm_e*", |n| n.starts_with("kvm:kvm_e")),
        ("sched_*", |n| n.starts_with("sched:sched_")),
        ("*", |_| true),
        ("kvm_pi?", |n| n == "kvm:kvm_pio"),
    ] {
        let found = printed(&path, &["--event", glob]).len() as u64;
        let expected = all
            .iter()
            .filter(|(name, _)| lets(name))
            .map(|(_, count)| count)
            .sum();
        failures.equal(glob, &found, &expected);
        failures.check(found > 0, || format!("{glob}: none"));
    }
    failures.finish(10);
}
