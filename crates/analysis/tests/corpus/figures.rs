//! Figures in sentences are what they are said to be: shares of what is named, times of the window that was asked for,
//! delays whose beginning and end were both looked at.

use std::collections::BTreeMap;
use std::path::Path;

use fixtures::json::{list, number, text};
use fixtures::{Failures, FixtureQuestion, case, cases};

/// Returns `N` and `M` of each "N of M ... (X %)" in a sentence, with X; nothing stands between but words.
fn shares(sentence: &str) -> Vec<(f64, f64, f64)> {
    let mut found = Vec::new();
    let words: Vec<&str> = sentence.split(' ').collect();
    for (at, three) in words.windows(3).enumerate() {
        let (Ok(part), "of", Ok(whole)) = (three[0].parse(), three[1], three[2].parse()) else {
            continue;
        };
        let behind = words[at + 3..].iter();
        let mut rest = behind.skip_while(|word| word.chars().all(char::is_alphabetic));
        let share = rest.next().and_then(|word| word.strip_prefix('('));
        let per_cent = rest.next().is_some_and(|word| word.starts_with("%)"));
        if let Some(share) = share.filter(|_| per_cent).and_then(|it| it.parse().ok()) {
            found.push((part, whole, share));
        }
    }
    found
}

#[test]
fn a_share_is_of_what_stands_before_it() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok((diagnosis, _)) = FixtureQuestion::new().diagnosis(std::slice::from_ref(&case.path))
        else {
            continue;
        };
        for finding in &diagnosis.findings {
            for sentence in finding.evidence.iter().map(|one| &one.text) {
                failures.check(!sentence.contains(" of them ("), || {
                    format!("{}: of whom? {sentence}", case.name)
                });
                for (part, whole, share) in shares(sentence) {
                    let ours = 100.0 * part / whole;
                    failures.check((ours - share).abs() <= 0.051, || {
                        format!("{}: {sentence}: {ours:.2}", case.name)
                    });
                }
            }
        }
    }
    failures.finish(100);
}

#[test]
fn the_recorders_time_is_that_of_the_window() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let sched = FixtureQuestion::new().sched_document(&path).expect("tasks");
    let recorders = list(&sched["rows"])
        .iter()
        .filter(|row| row["comm"] == "perf");
    let whole: u64 = recorders.map(|row| number(row, "on_cpu_ns")).sum();
    let cost = |from: u64, ns: u64| -> u64 {
        let decimal = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let time = format!("{},{}", decimal(from), decimal(from + ns));
        let found = FixtureQuestion::new()
            .time(&time)
            .diagnosis(std::slice::from_ref(&path));
        let (diagnosis, _) = found.expect("a diagnosis");
        let mut findings = diagnosis.findings.iter();
        let own = findings.find(|one| one.rule.id == "tracing-disturbs");
        own.and_then(|one| one.cost).map_or(0, |cost| cost.ns)
    };
    let windows = (0..40u64).map(|n| cost(444_000_000_000 + n * 500_000_000, 500_000_000));
    let sum: u64 = windows.sum();
    failures.check(sum <= whole, || format!("{sum} in windows, {whole} in all"));
    failures.finish(1);
}

/// Delays of tasks by thread and name: how many, and the longest.
fn delays(path: &Path, asked: &FixtureQuestion) -> Option<BTreeMap<(u64, String), (u64, u64)>> {
    let document = asked.sched_document(path).ok()?;
    let rows = list(&document["rows"])
        .iter()
        .filter(|row| row["pid"].is_u64());
    let rows = rows.map(|row| {
        let key = (number(row, "pid"), text(&row["comm"]));
        (
            key,
            (number(row, "delay_max_ns"), number(row, "preempted_max_ns")),
        )
    });
    Some(rows.collect())
}

#[test]
fn a_filter_by_cpu_makes_no_delay_longer() {
    let mut failures = Failures::default();
    let sick = case("x86/console-sick/perf.data.zst");
    for case in cases().into_iter().chain([sick]) {
        let Some(all) = delays(&case.path, &FixtureQuestion::new()) else {
            continue;
        };
        for cpu in ["0", "1", "2"] {
            let Some(some) = delays(&case.path, &FixtureQuestion::new().cpu(cpu)) else {
                continue;
            };
            for (task, ours) in some {
                let Some(whole) = all.get(&task) else {
                    continue;
                };
                failures.check(ours.0 <= whole.0 && ours.1 <= whole.1, || {
                    format!("{} --cpu {cpu}: {task:?} {ours:?} of {whole:?}", case.name)
                });
            }
        }
    }
    failures.finish(100);
}

/// The host of `ipi-default` does not poll (`halt_poll_ns` is 0).
#[test]
fn a_vcpu_polls_in_a_halt_only_if_the_halt_ended_by_that() {
    let mut failures = Failures::default();
    for (name, polls) in [
        ("x86/ipi-default/trace-cmd.pingpong.txt.gz", false),
        ("x86/ipi-haltpoll/trace-cmd.pingpong.txt.gz", true),
    ] {
        let path = case(name).path;
        let each = FixtureQuestion::new()
            .path("ipi")
            .instances(&path)
            .expect("instances");
        let each: Vec<String> = each.iter().map(|one| format!("{one:?}")).collect();
        let polling = each.iter().filter(|one| one.contains("polling in a halt"));
        let (hits, others): (Vec<&String>, Vec<&String>) =
            polling.partition(|one| one.contains("halt polling hit"));
        failures.check(others.is_empty() && hits.is_empty() != polls, || {
            format!("{name}: {others:#?}, {} hits", hits.len())
        });
        // Who was woken on the way had to be woken.
        let woken = |one: &&String| one.contains("name: \"woken\"") && one.contains("vCPU was");
        let woken = each.iter().filter(woken);
        let elsewhere = ["halted", "in a halt", "runnable", "asleep", "unknown"];
        for line in woken {
            let was = elsewhere
                .iter()
                .any(|was| line.contains(&format!("vCPU was {was}")));
            failures.check(was, || format!("{name}: {line}"));
        }
    }
    let path = case("x86/ipi-default/trace-cmd.pingpong.txt.gz").path;
    let found = FixtureQuestion::new().diagnosis(std::slice::from_ref(&path));
    let (diagnosis, _) = found.expect("a diagnosis");
    let paths = FixtureQuestion::new()
        .path("ipi")
        .paths_document(&path)
        .expect("paths");
    let title = diagnosis.findings[0].title.clone();
    let stages = list(&paths["paths"])
        .iter()
        .flat_map(|path| list(&path["stages"]));
    let mut woken = stages.filter(|stage| stage["name"] == "woken → on CPU");
    let count = woken.next().map(|stage| number(stage, "count"));
    let first = title.split(' ').next().and_then(|word| word.parse().ok());
    failures.equal(&title, &first, &count);
    failures.finish(200);
}
