//! Polls are those that KVM made: `kvm_halt_poll_ns` says after every halt that outlasted its poll for how long it was
//! set to poll, and a host with `halt_poll_ns=0` (`ipi-default`, whose debugfs counts 0 attempts) has none.

use std::collections::HashMap;

use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, cases, events_text};

/// Halts by thread, read from the text of the events.
#[derive(Default)]
struct Halts {
    slept_after_a_poll: u64,
    slept: u64,
    over_while_polling: u64,
    length_ns: HashMap<String, u64>,
}

fn number_behind(line: &str, word: &str) -> Option<u64> {
    let rest = &line[line.find(word)? + word.len()..];
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl Halts {
    fn of(text: &str) -> Halts {
        let mut halts = Halts::default();
        let mut set: HashMap<String, u64> = HashMap::new();
        for line in text.lines() {
            let Some((head, _)) = line.split_once('[') else {
                continue;
            };
            let thread = head.trim().to_owned();
            if line.contains("kvm_halt_poll_ns:") {
                let old = number_behind(line, "(grow ").or_else(|| number_behind(line, "(shrink "));
                set.insert(thread.clone(), old.unwrap());
                halts
                    .length_ns
                    .insert(thread, number_behind(line, "halt_poll_ns ").unwrap());
            } else if line.contains("kvm_vcpu_wakeup:") {
                let known = halts.length_ns.get(&thread).copied();
                let length = set.remove(&thread).or(known).unwrap_or(0);
                if line.contains("wait time") {
                    halts.slept += 1;
                    halts.slept_after_a_poll += u64::from(length > 0);
                } else {
                    halts.over_while_polling += u64::from(length > 0);
                }
            }
        }
        halts
    }
}

#[test]
fn polls_are_those_that_kvm_made() {
    let mut failures = Failures::default();
    for case in cases() {
        let name = &case.name;
        if name.contains("large") || name.contains("format-variants") {
            continue;
        }
        let events = events_text(&case.path).unwrap_or_default();
        let events = String::from_utf8_lossy(&events);
        let halts = Halts::of(&events);
        if halts.slept < 10 || !events.contains("sched_switch:") {
            continue;
        }
        let vcpus = FixtureQuestion::new()
            .vcpus_document(&case.path)
            .expect("vcpus");
        let rows = vcpus["rows"].as_array().cloned().unwrap_or_default();
        let sum = |of: &str| {
            rows.iter()
                .map(|row| number(&row["polls"], of))
                .sum::<u64>()
        };
        let (failed, succeeded) = (sum("failed"), sum("succeeded"));
        // Some are shorter than the shortest poll, or their way to sleep is not in the recording whole.
        let most = halts.slept_after_a_poll;
        failures.check(failed <= most && (failed + 3) * 100 >= most * 95, || {
            format!(
                "{name}: {failed} polls failed, {most} of {} halts were polled",
                halts.slept
            )
        });
        let hits = halts.over_while_polling;
        failures.check(succeeded >= hits && succeeded <= hits + 10, || {
            format!("{name}: {succeeded} polls succeeded, KVM has {hits}")
        });
    }
    failures.finish(6);
}
