//! A doubt about one CPU, VM or span does not stand in the answer about another, and stands in that of its own.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::RowSplit;
use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, case, cases};
use serde_json::Value;
use session::Error;

/// Questions that show what a recording has.
const COMMANDS: [&str; 6] = ["info", "exits", "vcpus", "sched", "paths", "diagnose"];

fn ids(document: &Value) -> Vec<&str> {
    let doubts = document["quality"]["doubts"]
        .as_array()
        .into_iter()
        .flatten();
    doubts.filter_map(|doubt| doubt["id"].as_str()).collect()
}

fn document(command: &str, asked: FixtureQuestion, path: &Path) -> Result<Value, Error> {
    match command {
        "info" => asked.info_document(path),
        "exits" => asked.exits_document(path),
        "vcpus" => asked.vcpus_document(path),
        "sched" => asked.sched_document(path),
        "paths" => asked.paths_document(path),
        _ => asked.diagnosis_document(path),
    }
}

/// Returns how many events an answer says were lost, with some filters; `None` where it has nothing to show.
fn lost(command: &str, asked: FixtureQuestion, path: &Path) -> Option<u64> {
    let what = format!("{command} {asked:?}");
    let document = document(command, asked, path).ok()?;
    let lost = number(&document["quality"], "lost_events");
    // The number and the doubt say the same.
    assert_eq!(lost > 0, ids(&document).contains(&"events-lost"), "{what}");
    Some(lost)
}

/// All 512 events that this recording lost were lost by CPU 1.
#[test]
fn what_one_cpu_lost_is_said_of_that_cpu_alone() {
    let path = case("x86/format-variants/mono.perf.data.zst").path;
    let mut failures = Failures::default();
    for command in COMMANDS {
        for (filter, expected) in [("1", 512), ("0-1", 512), ("2", 0), ("2,3", 0)] {
            let lost = lost(command, FixtureQuestion::new().cpu(filter), &path);
            failures.check(lost.is_none_or(|lost| lost == expected), || {
                format!("{command} --cpu {filter}: {lost:?}")
            });
        }
        failures.equal(
            command,
            &lost(command, FixtureQuestion::new(), &path),
            &Some(512),
        );
    }
    failures.finish(25);
}

/// What was lost before a time touches the windows before it, and none behind.
#[test]
fn what_was_lost_is_said_of_its_time_alone() {
    let path = case("x86/format-variants/mono.perf.data.zst").path;
    let info = FixtureQuestion::new().info_document(&path).expect("info");
    let (start, length) = (number(&info, "start_ns"), number(&info, "duration_ns"));
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    // A tenth of the recording behind another: each says so many lost.
    let tenth = |at: u64| {
        let (from, to) = (start + length * at / 10, start + length * (at + 1) / 10);
        let range = format!("{},{}", seconds(from), seconds(to));
        lost("info", FixtureQuestion::new().time(&range), &path).unwrap_or_default()
    };
    let tenths: Vec<u64> = (0..10).map(tenth).collect();
    let touched = tenths.iter().filter(|lost| **lost > 0).count();
    assert!((1..10).contains(&touched), "{tenths:?}");
    let behind = tenths
        .iter()
        .rposition(|lost| *lost > 0)
        .expect("one is touched");
    assert!(
        tenths[behind + 1..].iter().all(|lost| *lost == 0),
        "{tenths:?}"
    );
}

/// The CPUs' losses together are all: none is said of no CPU, and none of two.
#[test]
fn the_losses_of_cpus_add_up() {
    let mut failures = Failures::default();
    for case in cases() {
        let Some(all) = lost("info", FixtureQuestion::new(), &case.path).filter(|lost| *lost > 0)
        else {
            continue;
        };
        let info = FixtureQuestion::new()
            .info_document(&case.path)
            .expect("info");
        let mut by_cpu: BTreeMap<u64, u64> = BTreeMap::new();
        for cpu in 0..number(&info, "cpus") {
            let lost = lost(
                "info",
                FixtureQuestion::new().cpu(&cpu.to_string()),
                &case.path,
            );
            by_cpu.extend(lost.map(|lost| (cpu, lost)));
        }
        // What is of no CPU is said of each, so that the sum may be more and never less.
        let sum: u64 = by_cpu.values().sum();
        failures.check(by_cpu.is_empty() || sum >= all, || {
            format!("{}: {by_cpu:?} of {all}", case.name)
        });
        failures.check(by_cpu.values().all(|lost| *lost <= all), || {
            format!("{}: {by_cpu:?} of {all}", case.name)
        });
    }
    failures.finish(4);
}

/// Returns whether a row has the doubt that its VM was guessed.
fn is_guess(row: &Value) -> bool {
    let ids = row["doubts"].as_array().expect("rows have doubts");
    ids.iter().any(|id| id == "vms-guessed")
}

/// Doubts that name threads stand in the output of the VM that has them, and in the rows of its vCPUs alone.
#[test]
fn a_guess_about_a_vm_is_said_of_that_vm() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok(vcpus) = FixtureQuestion::new().vcpus_document(&case.path) else {
            continue;
        };
        let mut guesses: BTreeMap<&str, bool> = BTreeMap::new();
        let rows = vcpus["rows"].as_array().into_iter().flatten();
        for row in rows.filter(|row| row["vm_name"].is_string()) {
            let name = row["vm_name"].as_str().unwrap_or_default();
            let guessed = row["guessed"] == true;
            failures.equal(
                &format!("{}: vCPU {}", case.name, row["tid"]),
                &is_guess(row),
                &guessed,
            );
            *guesses.entry(name).or_default() |= guessed;
        }
        for (name, guessed) in &guesses {
            let Ok(one) = FixtureQuestion::new().vm(name).vcpus_document(&case.path) else {
                continue;
            };
            failures.equal(
                &format!("{}: --vm {name}", case.name),
                &ids(&one).contains(&"vms-guessed"),
                guessed,
            );
        }
        let by_vm = FixtureQuestion::new().by(RowSplit {
            vm: true,
            ..RowSplit::default()
        });
        let exits = by_vm.exits_document(&case.path).unwrap_or_default();
        for row in exits["rows"].as_array().into_iter().flatten() {
            let vm = row["vm"].as_str().or(row["vm_name"].as_str());
            let guessed = vm.and_then(|name| guesses.get(name)).copied();
            failures.equal(
                &format!("{}: exits of {vm:?}", case.name),
                &is_guess(row),
                &guessed.unwrap_or_default(),
            );
        }
        let any = guesses.values().any(|guessed| *guessed);
        let paths = FixtureQuestion::new()
            .paths_document(&case.path)
            .unwrap_or_default();
        for path in paths["paths"].as_array().into_iter().flatten() {
            failures.check(any || !is_guess(path), || {
                format!("{}: {}", case.name, path["path"])
            });
        }
    }
    failures.finish(5);
}
