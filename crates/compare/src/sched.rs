//! Tasks and their switches, kworkers by function.

use std::collections::BTreeMap;

use analysis::{Amount, Measured, Picture};
use stats::Stats;

use crate::side::{Pair, push, sure, value};
use crate::words::{change, number, time};
use crate::{Change, Unit};

/// Tasks with fewer switches on either side are not compared.
const ENOUGH: u64 = 20;

#[derive(Debug, Clone, Default)]
struct Task {
    delays: Stats,
    ran_ns: u64,
}

/// Returns the name that tasks are compared by: which of the kworkers of a CPU does the work changes all the time.
fn group(comm: &str) -> String {
    match comm.strip_prefix("kworker/") {
        Some(rest) if rest.starts_with('u') => "kworker (unbound)".to_owned(),
        Some(_) => "kworker (of a CPU)".to_owned(),
        None if comm.starts_with("vhost-") => "vhost".to_owned(),
        None => {
            // One thread of the kernel for each CPU: migration/3, ksoftirqd/1.
            let end = comm.rfind('/').filter(|at| {
                let cpu = &comm[at + 1..];
                !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit())
            });
            end.map_or_else(|| comm.to_owned(), |at| comm[..at].to_owned())
        }
    }
}

fn tasks(pictures: &[Picture]) -> BTreeMap<String, Task> {
    let mut out: BTreeMap<String, Task> = BTreeMap::new();
    let rows = pictures.iter().filter_map(|picture| picture.sched.as_ref());
    for row in rows.flat_map(|report| &report.rows) {
        let task = out.entry(group(&row.comm)).or_default();
        task.delays.merge(&row.delays);
        task.ran_ns = task
            .ran_ns
            .saturating_add(row.runtime_ns.max(row.on_cpu_ns));
    }
    out
}

pub(crate) fn changes(pair: &Pair, a: &[Picture], b: &[Picture], out: &mut Vec<Change>) {
    let has = |pictures: &[Picture]| pictures.iter().any(|picture| picture.sched.is_some());
    if !has(a) || !has(b) {
        return counters(pair, a, b, out);
    }
    let (tasks_a, tasks_b) = (tasks(a), tasks(b));
    let unit = if pair.rates {
        Unit::PerSecond
    } else {
        Unit::Count
    };
    let none = Task::default();
    let mut names: Vec<&String> = tasks_a.keys().chain(tasks_b.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let (task_a, task_b) = (
            tasks_a.get(name).unwrap_or(&none),
            tasks_b.get(name).unwrap_or(&none),
        );
        let counts = [task_a.delays.count() as f64, task_b.delays.count() as f64];
        if task_a.delays.count().max(task_b.delays.count()) < ENOUGH {
            continue;
        }
        let (rate_a, rate_b) = (counts[0] / pair.per_a(), counts[1] / pair.per_b());
        let (ran_a, ran_b) = (
            task_a.ran_ns as f64 / pair.per_a(),
            task_b.ran_ns as f64 / pair.per_b(),
        );
        let pick = |one: &Measured| matches!(one, Measured::Delays(comm) if group(comm) == *name);
        let confidence = sure(
            pair,
            [a, b],
            &pick,
            &|one: &Amount| one.count,
            counts,
            counts,
        );
        let waited = |task: &Task, per: f64| task.delays.total() as f64 / per;
        let (waited_a, waited_b) = (waited(task_a, pair.per_a()), waited(task_b, pair.per_b()));
        let second = pair.in_a_second();
        let text = if task_b.delays.count() == 0 {
            format!(
                "{name} gone: it had {} switches{second} and ran for {}{second}.",
                number(rate_a),
                time(ran_a)
            )
        } else if task_a.delays.count() == 0 {
            format!(
                "{name} is new: {} switches{second}, and it ran for {}{second}.",
                number(rate_b),
                time(ran_b)
            )
        } else {
            format!(
                "{name}: {} to {} switches{second} ({}); it ran for {} and {}{second}, and waited {} and {} each for a CPU.",
                number(rate_a),
                number(rate_b),
                change(rate_a, rate_b),
                time(ran_a),
                time(ran_b),
                time(task_a.delays.mean_f64()),
                time(task_b.delays.mean_f64())
            )
        };
        push(
            out,
            Change {
                what: format!("sched {name}"),
                unit,
                a: value(rate_a, task_a.delays.count() > 0),
                b: value(rate_b, task_b.delays.count() > 0),
                confidence: Some(confidence),
                effect_ns: (ran_b - ran_a) * 0.5 + (waited_b - waited_a) * 0.5,
                per_work: pair.per_work(counts[0], counts[1]),
                text,
            },
        );
    }
    work(pair, a, b, out);
    counters(pair, a, b, out);
}

/// Functions of kworkers.
fn work(pair: &Pair, a: &[Picture], b: &[Picture], out: &mut Vec<Change>) {
    let functions = |pictures: &[Picture]| {
        let mut out: BTreeMap<String, Stats> = BTreeMap::new();
        let rows = pictures.iter().filter_map(|picture| picture.sched.as_ref());
        for row in rows.flat_map(|report| &report.work) {
            out.entry(row.function.clone())
                .or_default()
                .merge(&row.stats);
        }
        out
    };
    let (of_a, of_b) = (functions(a), functions(b));
    if of_a.is_empty() || of_b.is_empty() {
        return;
    }
    let none = Stats::default();
    for name in of_a
        .keys()
        .chain(of_b.keys().filter(|name| !of_a.contains_key(*name)))
    {
        let (stats_a, stats_b) = (
            of_a.get(name).unwrap_or(&none),
            of_b.get(name).unwrap_or(&none),
        );
        if stats_a.count().max(stats_b.count()) < ENOUGH {
            continue;
        }
        let counts = [stats_a.count() as f64, stats_b.count() as f64];
        let (rate_a, rate_b) = (counts[0] / pair.per_a(), counts[1] / pair.per_b());
        let confidence = sure(
            pair,
            [&[], &[]],
            &|_| false,
            &|one: &Amount| one.count,
            counts,
            counts,
        );
        let (ns_a, ns_b) = (
            stats_a.total() as f64 / pair.per_a(),
            stats_b.total() as f64 / pair.per_b(),
        );
        let second = pair.in_a_second();
        push(
            out,
            Change {
                what: format!("kworker function {name}"),
                unit: if pair.rates {
                    Unit::PerSecond
                } else {
                    Unit::Count
                },
                a: value(rate_a, stats_a.count() > 0),
                b: value(rate_b, stats_b.count() > 0),
                confidence: Some(confidence),
                effect_ns: (ns_b - ns_a) * 0.5,
                per_work: Vec::new(),
                text: format!(
                    "kworkers ran {name} {} and then {} times{second}, for {} and {}{second}.",
                    number(rate_a),
                    number(rate_b),
                    time(ns_a),
                    time(ns_b)
                ),
            },
        );
    }
}

/// What perf stat counted.
fn counters(pair: &Pair, a: &[Picture], b: &[Picture], out: &mut Vec<Change>) {
    let sums = |pictures: &[Picture]| {
        let mut out: BTreeMap<String, f64> = BTreeMap::new();
        for (event, count) in pictures.iter().flat_map(|picture| &picture.counts) {
            *out.entry(event.clone()).or_default() += *count as f64;
        }
        out
    };
    let (of_a, of_b) = (sums(a), sums(b));
    for (event, count_a) in &of_a {
        let Some(count_b) = of_b.get(event) else {
            continue;
        };
        let confidence = sure(
            pair,
            [&[], &[]],
            &|_| false,
            &|one: &Amount| one.count,
            [*count_a, *count_b],
            [*count_a, *count_b],
        );
        push(
            out,
            Change {
                what: format!("counter {event}"),
                unit: Unit::Count,
                a: value(*count_a, true),
                b: value(*count_b, true),
                confidence: Some(confidence),
                effect_ns: 0.0,
                per_work: Vec::new(),
                text: format!(
                    "{event}: {} to {} ({}).",
                    number(*count_a),
                    number(*count_b),
                    change(*count_a, *count_b)
                ),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::group;

    #[test]
    fn tasks_are_compared_by_what_they_are() {
        for (comm, name) in [
            ("kworker/9:1-eve", "kworker (of a CPU)"),
            ("kworker/u449:3-", "kworker (unbound)"),
            ("migration/11", "migration"),
            ("vhost-1781", "vhost"),
            ("CPU 0/KVM", "CPU 0/KVM"),
            ("iperf", "iperf"),
            ("a/", "a/"),
        ] {
            assert_eq!(group(comm), name);
        }
    }
}
