//! Instances are as many as the events that each of them has one of, over every recording of the corpus: what does not
//! complete is counted, and nothing is made up.

use std::collections::BTreeMap;

use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, case, cases, note};
use serde_json::Value;

/// Returns how many events of a name a recording has.
fn events(info: &Value, name: &str) -> u64 {
    let all = info["events"].as_array().map_or(&[][..], Vec::as_slice);
    let named = |event: &&Value| {
        let full = event["name"].as_str().unwrap_or_default();
        full.rsplit(':').next() == Some(name)
    };
    all.iter()
        .filter(named)
        .map(|event| number(event, "count"))
        .sum()
}

#[test]
fn instances_are_as_many_as_the_events_that_each_has_one_of() {
    let mut failures = Failures::default();
    let mut compared: BTreeMap<&str, u64> = BTreeMap::new();
    for case in cases() {
        let Ok(info) = FixtureQuestion::new().info_document(&case.path) else {
            continue;
        };
        let exits = events(&info, "kvm_exit") > 0 && events(&info, "kvm_entry") > 0;
        // A text's events may be damaged, and a recording cut short.
        if !exits || case.kind == "text" || info["quality"]["truncated"] == true {
            continue;
        }
        let lost = number(&info["quality"], "lost_events");
        let vms = info["vms"].as_array().map_or(&[][..], Vec::as_slice);
        let vcpus: u64 = vms
            .iter()
            .map(|vm| vm["vcpus"].as_array().map_or(0, |all| all.len() as u64))
            .sum();
        // The guest of vmx/ has its timer in other modes than the one whose lateness KVM records.
        let tsc_deadline =
            events(&info, "kvm_hv_timer_state") > 0 && !case.name.starts_with("vmx/");
        for (path, event, comparable) in [
            ("user-exit", "kvm_userspace_exit", true),
            ("ipi", "kvm_apic_ipi", true),
            ("irqfd", "irqfd_wakeup", true),
            // KVM records how late its timer was, just after it has entered the guest with it (kvm_wait_lapic_expire,
            // arch/x86/kvm/lapic.c).
            ("timer", "kvm_wait_lapic_expire", tsc_deadline),
        ] {
            let there = events(&info, event);
            if there == 0 || !comparable {
                continue;
            }
            let (reports, _) = FixtureQuestion::new().path(path).paths(&case.path).unwrap();
            let report = &reports[0];
            let dropped = report.dropped.iter().map(|(_, count)| *count);
            let all = report.count + dropped.sum::<u64>();
            // Of each vCPU one may have been under way when the recording began or ended; and of what was lost, any.
            failures.check(there.abs_diff(all) <= vcpus + lost, || {
                format!("{}: {path}: {all} instances, {there} {event}", case.name)
            });
            if lost == 0 {
                *compared.entry(path).or_default() += all;
            }
        }
    }
    for (path, instances) in &compared {
        note(&format!("{path}: {instances} instances compared"));
    }
    for (path, at_least) in [("user-exit", 10_000), ("ipi", 40), ("timer", 10)] {
        let all = compared.get(path).copied().unwrap_or(0);
        failures.check(all >= at_least, || format!("{path}: only {all} instances"));
    }
    failures.finish(15);
}

/// What is said of a path does not depend on what else is followed: here instances of `kick` do not end for long, and
/// they watch the vCPU whose wake-ups `halt-wake` follows.
#[test]
fn a_path_is_the_same_alone_and_among_others() {
    let recording = case("vmx/tiny-irqchip/perf.data.zst").path;
    let all = FixtureQuestion::new().paths_document(&recording).unwrap();
    let all = all["paths"].as_array().unwrap();
    assert!(all.iter().any(|one| one["path"] == "kick"));
    for one in all {
        let name = one["path"].as_str().unwrap();
        let alone = FixtureQuestion::new()
            .path(name)
            .paths_document(&recording)
            .unwrap();
        assert_eq!(&alone["paths"][0], one, "{name}");
    }
}
