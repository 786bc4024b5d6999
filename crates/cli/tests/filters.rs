//! Filters of commands: each part of what they print is chosen. What is found through filters is in
//! `crates/session/tests/corpus/filters.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{Failures, case, cases, json, number, run};
use serde_json::Value;

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

/// A time with a decimal point is refused on a clock that counts ticks.
#[test]
fn times_of_another_clock_are_refused() {
    let mut failures = Failures::default();
    let tsc = case("x86/format-variants/x86-tsc.dat.zst").path;
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
    failures.finish(16);
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
