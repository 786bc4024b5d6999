//! The states of every vCPU of every recording add up to the time it was observed, to the nanosecond, and say
//! the same as exits, filters and the recording itself do.

use std::collections::BTreeMap;

use analysis::RowSplit;
use fixtures::json::{STATE_FIELDS, number};
use fixtures::{Failures, FixtureQuestion, ListedEvent, case, cases, listed_events};
use serde_json::Value;

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().map_or(&[], Vec::as_slice)
}

fn sum(row: &Value) -> u64 {
    STATE_FIELDS.iter().map(|state| number(row, state)).sum()
}

fn list(row: &Value, name: &str, field: &str) -> u64 {
    let items = row[name].as_array().into_iter().flatten();
    items.map(|item| number(item, field)).sum()
}

#[test]
fn states_add_up_to_the_observed_time() {
    let mut failures = Failures::default();
    let mut checked = 0;
    for case in cases() {
        let name = &case.name;
        let Ok(vcpus) = FixtureQuestion::new().vcpus_document(&case.path) else {
            continue;
        };
        let info = FixtureQuestion::new()
            .info_document(&case.path)
            .expect("info");
        let start = number(&info, "start_ns");
        let end = start + number(&info, "duration_ns");
        let mut observed = Vec::new();
        for row in rows(&vcpus) {
            checked += 1;
            let what = format!("{name}: vCPU {} thread {}", row["vcpu"], row["tid"]);
            let (from, to) = (number(row, "from_ns"), number(row, "to_ns"));
            failures.equal(&what, &sum(row), &(to - from));
            failures.equal(&what, &number(row, "observed_ns"), &(to - from));
            // Clocks that count ticks have no start in nanoseconds.
            let known = info["start_ns"].is_u64();
            failures.check(!known || start <= from && to <= end, || {
                format!("{what}: observed from {from} to {to} in {start} to {end}")
            });
            // What the lists under a row say is all of it.
            let (runnable, user) = (number(row, "runnable_ns"), number(row, "user_ns"));
            failures.equal(&what, &list(row, "behind", "ran_ns"), &runnable);
            failures.equal(&what, &list(row, "user", "user_ns"), &user);
            let polls = number(&row["polls"], "succeeded_ns") + number(&row["polls"], "failed_ns");
            failures.equal(&what, &polls, &number(row, "poll_ns"));
            observed.push(row["tid"].as_u64());
        }
        let vms = info["vms"].as_array().into_iter().flatten();
        let known = vms.flat_map(|vm| vm["vcpus"].as_array().into_iter().flatten());
        let mut tids: Vec<Option<u64>> = known.map(|vcpu| vcpu["tid"].as_u64()).collect();
        tids.sort_unstable();
        observed.sort_unstable();
        failures.equal(&format!("{name}: vCPUs"), &observed, &tids);

        // Without events of KVM there are no exits.
        if rows(&vcpus).iter().any(|row| row["presumed"] == true) {
            continue;
        }
        // Time out of the guest is what the exits took, but for what came before the first exit that counts
        // and behind the last, and unless events are missing.
        let by = RowSplit {
            vcpu: true,
            ..RowSplit::default()
        };
        let exits = FixtureQuestion::new().by(by).exits_document(&case.path);
        let exits = exits.expect("exits");
        let mut out: BTreeMap<(Option<u64>, u64), BTreeMap<&str, u64>> = BTreeMap::new();
        for row in rows(&exits) {
            let of = out
                .entry((row["vm_pid"].as_u64(), number(row, "vcpu")))
                .or_default();
            for state in STATE_FIELDS {
                *of.entry(state).or_default() += number(row, state);
            }
        }
        let mut inside: BTreeMap<(Option<u64>, u64), BTreeMap<&str, u64>> = BTreeMap::new();
        for row in rows(&vcpus) {
            let of = inside
                .entry((row["vm_pid"].as_u64(), number(row, "vcpu")))
                .or_default();
            for state in STATE_FIELDS {
                *of.entry(state).or_default() += number(row, state);
            }
        }
        for (of, states) in &out {
            for state in STATE_FIELDS {
                let whole = inside.get(of).and_then(|s| s.get(state)).copied();
                let (part, whole) = (states[state], whole.unwrap_or(0));
                failures.check(part <= whole, || {
                    format!("{name}: {of:?}: exits have {part} of {whole} {state}")
                });
            }
        }
    }
    failures.check(checked >= 30, || format!("{checked} vCPUs only"));
    failures.finish(200);
}

#[test]
fn a_window_is_a_part_of_the_whole() {
    let mut failures = Failures::default();
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "vmx/tiny-irqchip/trace.dat",
    ] {
        let path = case(name).path;
        let whole = FixtureQuestion::new().vcpus_document(&path).expect("vcpus");
        let from = rows(&whole)
            .iter()
            .map(|r| number(r, "from_ns"))
            .min()
            .expect("a row");
        let to = rows(&whole)
            .iter()
            .map(|r| number(r, "to_ns"))
            .max()
            .expect("a row");
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let middle = from + (to - from) / 3;
        let part = |from: u64, to: u64| {
            let range = format!("{},{}", seconds(from), seconds(to));
            FixtureQuestion::new()
                .time(&range)
                .vcpus_document(&path)
                .expect("vcpus")
        };
        let (early, late) = (part(from, middle), part(middle, to));
        for row in rows(&whole) {
            let of = |document: &Value, field: &str| {
                let same = rows(document).iter().filter(|r| r["tid"] == row["tid"]);
                same.map(|r| number(r, field)).sum::<u64>()
            };
            for field in STATE_FIELDS.iter().chain(&["exits"]) {
                let sum = of(&early, field) + of(&late, field);
                failures.equal(&format!("{name}: {field}"), &sum, &number(row, field));
            }
            let sum = of(&early, "observed_ns") + of(&late, "observed_ns");
            failures.equal(name, &sum, &number(row, "observed_ns"));
            let vcpu = number(row, "vcpu") as u32;
            let one = FixtureQuestion::new()
                .vcpu(vcpu)
                .vcpus_document(&path)
                .expect("vcpus");
            failures.equal(name, &rows(&one), &&[row.clone()][..]);
        }
    }
    failures.finish(20);
}

/// A thread as `sched_switch` and `sched_wakeup` alone say of it: whether it runs, waits for a CPU or sleeps
/// since when, and how long it did each.
#[derive(Debug, Default)]
struct Thread {
    since: u64,
    /// 0 it runs, 1 it waits, 2 it sleeps.
    now: usize,
    ns: [u64; 3],
}

impl Thread {
    fn becomes(&mut self, now: usize, time: u64) {
        self.ns[self.now] += time - self.since;
        (self.since, self.now) = (time, now);
    }
}

/// Returns the number behind a name in an event's text.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// What a vCPU's thread has its CPU for, waits for one and sleeps is what the scheduler's events say, counted
/// here from their texts and nothing else.
#[test]
fn the_scheduler_says_the_same() {
    let mut failures = Failures::default();
    let mut checked = 0;
    for case in cases() {
        let name = &case.name;
        let Ok(mut events) = listed_events(&case.path, Default::default()) else {
            continue;
        };
        events.retain(|event| {
            [
                "sched_switch",
                "sched_wakeup",
                "sched_waking",
                "sched_wakeup_new",
            ]
            .iter()
            .any(|name| event.is(name))
        });
        // trace-cmd's plugin says the same in other words; records lost make anything possible.
        if !events.iter().any(|event| event.text.contains("prev_pid=")) {
            continue;
        }
        let is = ListedEvent::is;
        // A woken thread is on its run queue from sched_wakeup on; some recordings have sched_waking alone.
        let wakeups = events.iter().any(|e| is(e, "sched_wakeup"));
        let wakes = if wakeups {
            "sched_wakeup"
        } else {
            "sched_waking"
        };
        let Ok(vcpus) = FixtureQuestion::new().vcpus_document(&case.path) else {
            continue;
        };
        if number(&vcpus["quality"], "lost_events") > 0 || case.cut_from.is_some() {
            continue;
        }
        for row in rows(&vcpus) {
            let tid = row["tid"].as_u64();
            let (from, to) = (number(row, "from_ns"), number(row, "to_ns"));
            let mut thread = Thread {
                since: from,
                ..Thread::default()
            };
            let mut missed = false;
            for event in &events {
                let time = event.time;
                if time < from || time > to {
                    continue;
                }
                let text = &event.text;
                if is(event, wakes) && field(text, " pid=") == tid && thread.now == 2 {
                    thread.becomes(1, time);
                }
                if !is(event, "sched_switch") {
                    continue;
                }
                if field(text, "prev_pid=") == tid {
                    let state = text.split("prev_state=").nth(1).unwrap_or_default();
                    let state = state.split(' ').next().unwrap_or_default();
                    let runnable = state.starts_with('R') || state.ends_with('+');
                    thread.becomes(if runnable { 1 } else { 2 }, time);
                }
                if field(text, "next_pid=") == tid {
                    // perf begins to record one kind of event after the other: it may have left before.
                    missed |= thread.now == 0;
                    thread.becomes(0, time);
                }
            }
            thread.becomes(0, to);
            if missed {
                failures.check(number(row, "unknown_ns") > 0, || {
                    format!("{name}: thread {} left its CPU unseen", row["tid"])
                });
                continue;
            }
            let of = |fields: &[&str]| fields.iter().map(|f| number(row, f)).sum::<u64>();
            let blocked = of(&["kernel_blocked_ns", "user_blocked_ns"]);
            let ran = of(&["guest_ns", "kernel_ns", "user_ns", "poll_ns"]) - blocked;
            let ours = [ran, of(&["runnable_ns"]), of(&["halted_ns"]) + blocked];
            failures.equal(&format!("{name}: thread {}", row["tid"]), &ours, &thread.ns);
            failures.equal(name, &number(row, "unknown_ns"), &0);
            checked += 1;
        }
    }
    failures.check(checked >= 6, || format!("{checked} vCPUs only"));
    failures.finish(12);
}
