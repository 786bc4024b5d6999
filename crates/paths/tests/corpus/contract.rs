//! Documents of paths have the contract's fields and add up, and filters choose instances.

use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, case, cases};
use paths::InstanceReport;
use serde_json::Value;

/// Fields of the contract, and what stands behind them.
const PATH: [&str; 12] = [
    "path",
    "count",
    "total",
    "ledger",
    "recording_ns",
    "clears",
    "stages",
    "slow",
    "by",
    "groups",
    "dropped",
    "doubts",
];
const TOTAL: [&str; 7] = [
    "p50_ns", "p90_ns", "p99_ns", "max_ns", "min_ns", "mean_ns", "total_ns",
];
const STAGE: [&str; 14] = [
    "name",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
    "min_ns",
    "mean_ns",
    "total_ns",
    "count",
    "chain",
    "holder",
    "slow_mean_ns",
    "fast_mean_ns",
    "saving_estimate_ns",
];
const SLOW: [&str; 7] = [
    "threshold_ns",
    "count",
    "because",
    "found",
    "mean_ns",
    "fast_mean_ns",
    "slowest",
];
const BECAUSE: [&str; 7] = [
    "feature",
    "slow_share",
    "fast_share",
    "text",
    "gain",
    "slow_instances",
    "fast_instances",
];
const NAMES: [&str; 6] = ["halt-wake", "irqfd", "ipi", "timer", "kick", "user-exit"];

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object();
    object
        .map(|o| o.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

#[test]
fn documents_have_the_contracts_fields_and_add_up() {
    let mut failures = Failures::default();
    let mut reasons = 0;
    for case in cases() {
        let Ok(document) = FixtureQuestion::new().paths_document(&case.path) else {
            continue;
        };
        let what = &case.name;
        let all = keys(&document).split_off(5);
        failures.equal(what, &all, &vec!["paths"]);
        let paths = document["paths"].as_array().unwrap();
        let names: Vec<&str> = paths
            .iter()
            .filter_map(|path| path["path"].as_str())
            .collect();
        failures.equal(what, &names, &NAMES.to_vec());
        for path in paths {
            let what = format!("{what}, {}", path["path"]);
            failures.equal(&what, &keys(path), &PATH.to_vec());
            failures.equal(&what, &keys(&path["total"]), &TOTAL.to_vec());
            let mut sum = 0;
            for stage in path["stages"].as_array().unwrap() {
                failures.equal(&what, &keys(stage), &STAGE.to_vec());
                sum += number(stage, "total_ns");
            }
            // Stages are what totals are made of.
            failures.equal(&what, &sum, &number(&path["total"], "total_ns"));
            let groups = path["groups"].as_array().unwrap();
            let grouped: u64 = groups.iter().map(|group| number(group, "count")).sum();
            let counts = [0, number(path, "count")];
            failures.check(
                counts.contains(&grouped) || path["by"] == "back end",
                || format!("{what}: groups have {grouped} of {}", counts[1]),
            );
            let slow = &path["slow"];
            if slow.is_null() {
                continue;
            }
            failures.equal(&what, &keys(slow), &SLOW.to_vec());
            failures.check(number(slow, "count") <= counts[1], || {
                format!("{what}: {slow}")
            });
            for one in slow["because"].as_array().unwrap() {
                reasons += 1;
                failures.equal(&what, &keys(one), &BECAUSE.to_vec());
                let share =
                    |name: &str| one[name].as_f64().is_some_and(|s| (0.0..=1.0).contains(&s));
                failures.check(share("slow_share") && share("fast_share"), || {
                    format!("{what}: {one}")
                });
                let text = one["text"].as_str().unwrap_or_default();
                failures.check(text.ends_with('.'), || format!("{what}: {text}"));
            }
        }
    }
    failures.check(reasons > 20, || format!("only {reasons} reasons"));
    failures.finish(1000);
}

/// Filters choose instances by the vCPU they are about and by their beginning, and never tear one apart.
#[test]
fn filters_choose_instances() {
    let mut failures = Failures::default();
    let path = case("arm64/vhost-mmio/boot1/trace.dat.zst").path;
    // Numbers change with what is chosen.
    let instances = |asked: FixtureQuestion| {
        let mut found = asked.instances(&path).expect("instances");
        found.iter_mut().for_each(|one| one.number = 0);
        found
    };
    let begins = |one: &InstanceReport| one.steps[0].time;
    let all = instances(FixtureQuestion::new());
    let info = FixtureQuestion::new().info_document(&path).expect("info");
    let mut by_vcpu = 0;
    for vcpu in info["vms"][0]["vcpus"].as_array().expect("vCPUs") {
        let id = u32::try_from(number(vcpu, "id")).expect("a number");
        let chosen = instances(FixtureQuestion::new().vcpu(id));
        let is_of = |one: &&InstanceReport| one.vcpu_tid.map(i64::from) == vcpu["tid"].as_i64();
        let wanted: Vec<InstanceReport> = all.iter().filter(is_of).cloned().collect();
        by_vcpu += chosen.len();
        failures.check(chosen == wanted, || {
            format!("vCPU {id}: {} of {}", chosen.len(), wanted.len())
        });
    }
    failures.equal("all vCPUs", &by_vcpu, &all.len());
    let middle = begins(&all[all.len() / 2]);
    let seconds = format!("{}.{:09},", middle / 1_000_000_000, middle % 1_000_000_000);
    let late = instances(FixtureQuestion::new().time(&seconds));
    let wanted = all.iter().filter(|one| begins(one) >= middle);
    let wanted: Vec<InstanceReport> = wanted.cloned().collect();
    failures.check(late == wanted, || {
        format!("from {seconds} {} of {}", late.len(), wanted.len())
    });
    failures.finish(4);
}

#[test]
fn any_pair_of_events_is_a_path() {
    let mut failures = Failures::default();
    let path = case("arm64/vhost-mmio/boot1/trace.dat.zst").path;
    let pair = |from: &str, to: &str, join: &str| {
        let document = FixtureQuestion::new()
            .pair(from, to, join)
            .paths_document(&path);
        document.expect("a path")["paths"][0].clone()
    };
    // An exit and the entry after it are what exits counts.
    let exits = FixtureQuestion::new().exits_document(&path).expect("exits");
    let ours = pair("kvm_exit", "kvm_entry", "vcpu");
    failures.equal(
        "exits",
        &number(&ours, "count"),
        &number(&exits, "total_count"),
    );
    failures.equal(
        "exits",
        &number(&ours["total"], "total_ns"),
        &number(&exits, "total_ns"),
    );
    let rows = exits["rows"].as_array().unwrap();
    for row in rows {
        let key = row["key"].as_str().unwrap();
        let ours = pair(&format!("kvm_exit[reason=={key}]"), "kvm_entry", "thread");
        failures.equal(key, &number(&ours, "count"), &number(row, "count"));
    }
    // What is not there is not found, and that is no failure.
    let none = pair("kvm_nothing", "kvm_entry", "any");
    failures.equal("nothing", &number(&none, "count"), &0);
    failures.finish(rows.len() + 3);
}
