//! Off CPU: every wait is in it, to the nanosecond, as the events of the scheduler say, and as `sched` and `vcpus`
//! do.

use std::collections::{BTreeMap, BTreeSet};

use std::path::Path;

use analysis::{ProfileOf, ProfileOptions};
use fixtures::events::events_text_in_style;
use fixtures::json::{list, number};
use fixtures::{Failures, FixtureQuestion, cases};
use serde_json::Value;

use super::with_idle;

/// What one thread did without a CPU: from, to, whether it could have run.
type Waits = BTreeMap<i64, Vec<(u64, u64, bool)>>;

/// Sums of a field by thread.
fn by_thread(document: &Value, tid: &str, field: &str) -> BTreeMap<i64, u64> {
    let mut sums = BTreeMap::new();
    for row in list(&document["rows"]) {
        *sums.entry(row[tid].as_i64().unwrap()).or_default() += number(row, field);
    }
    sums
}

fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let at = line.find(&format!(" {name}="))? + name.len() + 2;
    line[at..].split_whitespace().next()
}

/// A line of the scheduler's: its time, its name, and the rest.
fn line(text: &str) -> Option<(u64, &str, &str)> {
    let at = text.find(": ")?;
    let time = text[..at].rsplit(' ').next()?;
    let (seconds, fraction) = time.split_once('.')?;
    let time = seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().ok()?;
    let (name, rest) = text[at + 2..].trim_start().split_once(':')?;
    let (name, rest) = match rest.split_once(": ") {
        Some((event, rest)) if name == "sched" => (event, rest),
        _ => (name, rest),
    };
    // Fields are known by the blank before them.
    Some((time, name, &text[text.len() - rest.len() - 1..]))
}

/// The waits of all threads, out of the printed events, whose go on when they end, and when that is.
fn waits(path: &Path) -> (Waits, BTreeSet<i64>, u64) {
    let printed = events_text_in_style(path, true).expect("events");
    let printed = String::from_utf8_lossy(&printed);
    let of_scheduler = |line: &&str| line.contains(" sched:sched_") || line.contains(" sched_");
    let lines = printed.lines().filter(of_scheduler);
    let wakeups = printed.contains("sched_wakeup:");
    let mut waits = Waits::new();
    // By thread: since when it is away, whether it could run, and since when it is woken.
    let mut away: BTreeMap<i64, (Option<u64>, bool, Option<u64>)> = BTreeMap::new();
    let mut running: BTreeMap<i64, bool> = BTreeMap::new();
    let mut end = 0;
    let mut over = |tid: i64, time: u64, state: (Option<u64>, bool, Option<u64>)| {
        let list = waits.entry(tid).or_default();
        let (left, runnable, woken) = state;
        match (left, woken) {
            (Some(left), _) if runnable => list.push((left, time, true)),
            (Some(left), Some(woken)) => {
                list.push((left, woken, false));
                list.push((woken, time, true));
            }
            (Some(left), None) => list.push((left, time, false)),
            (None, Some(woken)) => list.push((woken, time, true)),
            (None, None) => {}
        }
    };
    for (time, name, rest) in lines.filter_map(line) {
        end = end.max(time);
        let pid = |name: &str| field(rest, name).and_then(|pid| pid.parse::<i64>().ok());
        match name {
            "sched_switch" => {
                let (prev, next) = (pid("prev_pid").unwrap(), pid("next_pid").unwrap());
                if let Some(state) = away.remove(&next) {
                    over(next, time, state);
                }
                running.insert(next, true);
                running.insert(prev, false);
                let state = field(rest, "prev_state").unwrap();
                let runnable = state.starts_with('R') || state.contains('+');
                let dead = state.starts_with(['X', 'Z']) && !runnable;
                away.insert(prev, ((!dead).then_some(time), runnable, None));
            }
            "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => {
                if name == "sched_waking" && wakeups {
                    continue;
                }
                let tid = pid("pid").unwrap();
                let state = away.entry(tid).or_insert((None, false, None));
                if running.get(&tid).copied().unwrap_or(false) || state.1 {
                    continue;
                }
                // Only a task that has gone to sleep is woken: it ran since it was woken before, on a CPU whose events
                // perf had not turned on yet.
                if name == "sched_waking" {
                    state.2 = Some(time);
                }
                state.2.get_or_insert(time);
            }
            _ => {}
        }
    }
    let waits_on = |state: &(Option<u64>, bool, Option<u64>)| state.0.or(state.2).is_some();
    let still = away.iter().filter(|(_, state)| waits_on(state));
    let still: BTreeSet<i64> = still.map(|(tid, _)| *tid).collect();
    for (tid, state) in away {
        over(tid, end, state);
    }
    waits.remove(&0);
    (waits, still, end)
}

/// How much of a thread's waits lies within a time: for a CPU, and for anything else.
fn within(waits: &[(u64, u64, bool)], for_cpu: bool, from: u64, to: u64) -> u64 {
    let these = waits.iter().filter(|wait| wait.2 == for_cpu);
    let parts = these.map(|(start, end, _)| (*end).min(to).saturating_sub((*start).max(from)));
    parts.sum()
}

#[test]
fn waits_are_those_of_the_events_and_of_sched_and_of_vcpus() {
    let mut failures = Failures::default();
    let mut checked = 0;
    for case in cases() {
        // Clocks that count ticks print no seconds; where events were lost nobody knows who had a CPU.
        let asked = FixtureQuestion::new();
        let off_cpu = ProfileOptions {
            of: ProfileOf::OffCpu,
            ..with_idle()
        };
        let Ok(flame) = asked.stacks_document(&case.path, off_cpu) else {
            continue;
        };
        let info = asked.info_document(&case.path).expect("info");
        if !info["start_ns"].is_u64() || number(&info["quality"], "lost_events") > 0 {
            continue;
        }
        let name = &case.name;
        let sched = asked.sched_document(&case.path).expect("sched");
        let flame_sums = by_thread(&flame, "tid", "off_cpu_ns");
        let woken = by_thread(&sched, "pid", "woken_wait_ns");
        let preempted = by_thread(&sched, "pid", "preempted_wait_ns");
        let runnable = by_thread(&flame, "tid", "runnable_ns");
        let none = 0;
        for (tid, off_cpu_ns) in by_thread(&sched, "pid", "off_cpu_ns") {
            let what = format!("{name}: thread {tid} in sched");
            failures.equal(&what, flame_sums.get(&tid).unwrap_or(&none), &off_cpu_ns);
            checked += 1;
        }
        // Texts print switches in several ways.
        if !["perf.data", "trace.dat"].contains(&case.kind.as_str()) {
            continue;
        }
        let (events, still, end) = waits(&case.path);
        for (tid, list) in &events {
            let what = format!("{name}: thread {tid} in events");
            let all: u64 = list.iter().map(|(from, to, _)| to - from).sum();
            failures.equal(&what, flame_sums.get(tid).unwrap_or(&none), &all);
            let waited = within(list, true, 0, u64::MAX);
            failures.equal(&what, runnable.get(tid).unwrap_or(&none), &waited);
            // What goes on when the recording ends is no wait yet in sched.
            let goes_on = list.last().filter(|wait| still.contains(tid) && wait.2);
            let over = waited - goes_on.map_or(0, |(from, to, _)| to - from);
            if let (Some(woken), Some(preempted)) = (woken.get(tid), preempted.get(tid)) {
                failures.equal(&what, &(woken + preempted), &over);
            }
        }
        let vcpus = asked.vcpus_document(&case.path);
        for row in vcpus.iter().flat_map(|vcpus| list(&vcpus["rows"])) {
            if number(row, "unknown_ns") > 0 {
                continue;
            }
            let tid = row["tid"].as_i64().unwrap();
            let (from, to) = (number(row, "from_ns"), number(row, "to_ns"));
            let mut list = events.get(&tid).cloned().unwrap_or_default();
            // The recording goes on after the last event of the scheduler.
            if let Some(last) = list.last_mut().filter(|_| still.contains(&tid)) {
                last.1 = to.max(end);
            }
            let what = format!("{name}: vCPU thread {tid}");
            let waited = within(&list, true, from, to);
            failures.equal(&what, &number(row, "runnable_ns"), &waited);
            let states = ["halted_ns", "kernel_blocked_ns", "user_blocked_ns"];
            let asleep: u64 = states.iter().map(|state| number(row, state)).sum();
            let slept = within(&list, false, from, to);
            failures.equal(&format!("{what} asleep"), &asleep, &slept);
        }
    }
    failures.check(checked > 100, || format!("{checked} threads"));
    failures.finish(100);
}
