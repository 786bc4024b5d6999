//! Filters let through what they say: counts with a filter equal those made from the events that pass it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, ListedEvent, case, listed_events};

/// Counts events by name.
fn counted<'e>(events: impl Iterator<Item = &'e ListedEvent>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for event in events {
        *counts.entry(event.name.clone()).or_default() += 1;
    }
    counts
}

/// Returns a question about what a filter takes: an option and its value, or nothing.
fn question(filter: &[&str]) -> FixtureQuestion {
    match filter {
        [option, value] => FixtureQuestion::new().filter(option, value),
        _ => FixtureQuestion::new(),
    }
}

fn info_counts(path: &Path, filter: &[&str]) -> BTreeMap<String, u64> {
    let info = question(filter).info_document(path).expect("info");
    let events = info["events"].as_array().expect("events").iter();
    let events = events.filter(|e| number(e, "count") > 0);
    events
        .map(|e| {
            (
                e["name"].as_str().expect("a name").to_owned(),
                number(e, "count"),
            )
        })
        .collect()
}

/// Times exits from the events let through: from each `kvm_exit` to the next `kvm_entry` of its thread; on x86,
/// as in perf, once the thread was seen entering. Returns how many, and their time.
fn exits_of<'e>(events: impl Iterator<Item = &'e ListedEvent>, x86: bool) -> (u64, u64) {
    let mut entered = BTreeSet::new();
    let mut open = BTreeMap::new();
    let (mut count, mut total) = (0, 0);
    for event in events {
        let Some(tid) = event.tid else { continue };
        match event.name.rsplit(':').next() {
            Some("kvm_exit") if !x86 || entered.contains(&tid) => {
                open.insert(tid, event.time);
            }
            Some("kvm_entry") => {
                entered.insert(tid);
                if let Some(begin) = open.remove(&tid) {
                    count += 1;
                    total += event.time - begin;
                }
            }
            _ => {}
        }
    }
    (count, total)
}

fn exits_counts(path: &Path, filter: &[&str]) -> (u64, u64) {
    let exits = question(filter).exits_document(path);
    let exits = exits.unwrap_or_else(|e| panic!("{filter:?}: {e}"));
    (number(&exits, "total_count"), number(&exits, "total_ns"))
}

/// Writes nanoseconds as the filter takes them: seconds.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[test]
fn filters_let_through_what_they_say() {
    let mut failures = Failures::default();
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "vmx/tiny-irqchip/trace.dat",
        "arm64/two-guests-mmio/perf.data.guest.zst",
        "x86/format-variants/v6.dat.zst",
    ] {
        let path = case(name).path;
        let x86 = case(name).arch == "x86";
        let events = listed_events(&path, Default::default()).expect("events");
        let all = exits_of(events.iter(), x86);
        failures.equal(
            &format!("{name}: no filter"),
            &exits_counts(&path, &[]),
            &all,
        );
        failures.equal(name, &info_counts(&path, &[]), &counted(events.iter()));

        let mut check = |filter: &[&str], lets: &dyn Fn(&ListedEvent) -> bool, exits: bool| {
            let what = format!("{name} {filter:?}");
            let through = || events.iter().filter(|e| lets(e));
            failures.equal(&what, &info_counts(&path, filter), &counted(through()));
            if exits {
                let expected = exits_of(through(), x86);
                failures.check(expected.0 > 0, || format!("{what}: nothing to compare"));
                failures.equal(&what, &exits_counts(&path, filter), &expected);
            }
        };

        let (first, last) = (events[0].time, events[events.len() - 1].time);
        let third = (last - first) / 3;
        let (from, to) = (first + third, last - third);
        let range = format!("{},{}", seconds(from), seconds(to));
        check(
            &["--time", &range],
            &|e| (from..=to).contains(&e.time),
            true,
        );
        check(
            &["--time", &format!("{},", seconds(from))],
            &|e| e.time >= from,
            true,
        );
        check(
            &["--time", &format!(",{}", seconds(to))],
            &|e| e.time <= to,
            true,
        );

        check(&["--cpu", "1"], &|e| e.cpu == Some(1), false);
        check(
            &["--cpu", "0,2-3"],
            &|e| e.cpu.is_some_and(|c| c != 1 && c < 4),
            false,
        );

        let info = FixtureQuestion::new().info_document(&path).expect("info");
        let vms = info["vms"].as_array().expect("VMs");
        for vm in vms {
            let vcpus = vm["vcpus"].as_array().expect("vCPUs");
            let tids: Vec<i32> = vcpus.iter().map(|v| number(v, "tid") as i32).collect();
            for tid in &tids {
                let is = |e: &ListedEvent| e.tid == Some(*tid);
                check(&["--pid", &tid.to_string()], &is, true);
            }
            let Some(pid) = vm["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()) else {
                continue;
            };
            check(
                &["--vm", &pid.to_string()],
                &|e| e.tid.is_some_and(|t| tids.contains(&t)),
                true,
            );
            check(
                &["--pid", &pid.to_string()],
                &|e| e.pid == Some(pid) || e.tid == Some(pid),
                e_has_process(&events, pid),
            );
            if let Some(name) = vm["name"].as_str() {
                let called = vms.iter().filter(|vm| vm["name"].as_str() == Some(name));
                let tids: Vec<i32> = called
                    .flat_map(|vm| vm["vcpus"].as_array().expect("vCPUs"))
                    .map(|v| number(v, "tid") as i32)
                    .collect();
                check(
                    &["--vm", name],
                    &|e| e.tid.is_some_and(|t| tids.contains(&t)),
                    true,
                );
            }
        }
        for id in [0u64, 1] {
            let vcpus = vms
                .iter()
                .flat_map(|vm| vm["vcpus"].as_array().expect("vCPUs"));
            let vcpus = vcpus.filter(|v| v["id"].as_u64() == Some(id));
            let tids: Vec<i32> = vcpus.map(|v| number(v, "tid") as i32).collect();
            check(
                &["--vcpu", &id.to_string()],
                &|e| e.tid.is_some_and(|t| tids.contains(&t)),
                true,
            );
        }
    }
    failures.finish(80);
}

/// Whether the recording knows the process of its vCPU threads.
fn e_has_process(events: &[ListedEvent], pid: i32) -> bool {
    let exits = || events.iter().filter(|e| e.name.ends_with("kvm_exit"));
    exits().count() > 0 && exits().any(|e| e.pid == Some(pid))
}
