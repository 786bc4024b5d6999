//! Tasks and their switches, kworkers by function.

use std::collections::BTreeMap;

use analysis::{Measured, Picture, TaskRow};
use stats::Stats;

use crate::basis::{Basis, Per};
use crate::rows::{Lead, Pieces};
use crate::side::{Pair, count, push, value};
use crate::words::{change, number, percent, time};
use crate::{Change, Unit, chance};

/// Tasks with fewer switches on either side are not compared.
const ENOUGH: u64 = 20;

/// What tasks of a name did.
#[derive(Debug, Clone, Default)]
struct Task {
    delays: Stats,
    ran_ns: u64,
}

impl Task {
    fn add(&mut self, row: &TaskRow) {
        self.delays.merge(&row.delays);
        let ran = row.runtime_ns.max(row.on_cpu_ns);
        self.ran_ns = self.ran_ns.saturating_add(ran);
    }
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

fn tasks(pictures: &[&Picture]) -> BTreeMap<String, Task> {
    let mut out: BTreeMap<String, Task> = BTreeMap::new();
    let rows = pictures.iter().filter_map(|picture| picture.sched.as_ref());
    for row in rows.flat_map(|report| &report.rows) {
        out.entry(group(&row.comm)).or_default().add(row);
    }
    out
}

/// Returns what the tasks of a name did in one picture.
fn task(picture: &Picture, name: &str) -> Task {
    let mut out = Task::default();
    let rows = picture.sched.iter().flat_map(|report| &report.rows);
    for row in rows.filter(|row| group(&row.comm) == name) {
        out.add(row);
    }
    out
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<Change>, notes: &mut Vec<String>) {
    let amount = |picture: &Picture| Some(picture.sched.as_ref()?.delays.count());
    let basis = match Basis::of(pair.sides, &amount) {
        Ok(basis) => basis,
        Err([true, true]) => return,
        Err([a, _]) => {
            let side = if a { "A" } else { "B" };
            notes.push(format!(
                "Tasks are not compared: {side} has no scheduling events."
            ));
            return;
        }
    };
    match basis.per {
        Per::Second => {}
        Per::Table => notes.push(
            "Tables of perf sched latency do not say how long they are of: switches and times are compared as they stand."
                .to_owned(),
        ),
        Per::All => notes.push(
            "The two sides do not both say how long they are of: of tasks, shares of all switches are compared."
                .to_owned(),
        ),
    }
    let [tasks_a, tasks_b] = [0, 1].map(|side: usize| tasks(&basis.sides[side]));
    let all = [&tasks_a, &tasks_b].map(|tasks| {
        let each = tasks.values();
        each.fold((0.0, 0.0), |sum, task| {
            (
                sum.0 + task.delays.count() as f64,
                sum.1 + task.ran_ns as f64,
            )
        })
    });
    let none = Task::default();
    let mut names: Vec<&String> = tasks_a.keys().chain(tasks_b.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let sides = [
            tasks_a.get(name).unwrap_or(&none),
            tasks_b.get(name).unwrap_or(&none),
        ];
        if sides.iter().all(|task| task.delays.count() < ENOUGH) {
            continue;
        }
        push(
            out,
            match basis.per {
                Per::All => by_share(&basis, name, sides, all),
                Per::Second | Per::Table => by_rate(pair, &basis, name, sides),
            },
        );
    }
    if basis.per != Per::All {
        work(&basis, out);
    }
}

fn by_rate(pair: &Pair<'_>, basis: &Basis<'_>, name: &str, sides: [&Task; 2]) -> Change {
    let is = |comm: &String| group(comm) == name;
    let delays = |one: &Measured| matches!(one, Measured::Delays(comm) if is(comm));
    let ran = |one: &Measured| matches!(one, Measured::Ran(comm) if is(comm));
    let [counts_a, counts_b] = [0, 1].map(|side| {
        let sum = |picture: &Picture| count(&task(picture, name).delays);
        basis.runs(side, &sum, &delays, &|one| one.count)
    });
    let [ran_a, ran_b] = [0, 1].map(|side| {
        let sum = |picture: &Picture| {
            let task = task(picture, name);
            let ran = task.ran_ns as f64;
            // Stretches of unknown lengths, taken to be one for each switch.
            (ran, ran * ran / task.delays.count().max(1) as f64)
        };
        basis.runs(side, &sum, &ran, &|one| one.ns)
    });
    let rates = [0, 1].map(|side: usize| sides[side].delays.count() as f64 / basis.exposure(side));
    let times = [0, 1].map(|side: usize| sides[side].ran_ns as f64 / basis.exposure(side));
    let waited = [0, 1].map(|side: usize| sides[side].delays.total() as f64 / basis.exposure(side));
    let pieces = Pieces {
        count: (chance::rates(&counts_a, &counts_b), rates),
        time: (chance::rates(&ran_a, &ran_b), times),
        few: sides.iter().map(|task| task.delays.count()).sum(),
    };
    let (lead, confidence) = pieces.lead();
    let there = sides.map(|task| task.delays.count() > 0);
    let by_time = lead == Lead::Time && there == [true, true];
    let each = basis.each();
    let switches = format!(
        "{} to {} switches{each} ({})",
        number(rates[0]),
        number(rates[1]),
        change(rates[0], rates[1])
    );
    let delays = format!(
        "it waited {} and {} for a CPU each time",
        time(sides[0].delays.mean_f64()),
        time(sides[1].delays.mean_f64())
    );
    let text = match there {
        [_, false] => format!(
            "{name} gone: it had {} switches{each} and ran for {}{each}.",
            number(rates[0]),
            time(times[0])
        ),
        [false, _] => format!(
            "{name} is new: {} switches{each}, and it ran for {}{each}.",
            number(rates[1]),
            time(times[1])
        ),
        _ if by_time => format!(
            "{name} ran for {} and then {}{each} ({}); {switches}, {}; {delays}.",
            time(times[0]),
            time(times[1]),
            change(times[0], times[1]),
            pieces.often()
        ),
        _ => format!(
            "{name}: {switches}; it ran for {} and {}{each}, and {delays}.",
            time(times[0]),
            time(times[1]),
        ),
    };
    let [a, b] = if by_time { times } else { rates };
    let work = sides.map(|task| {
        if by_time {
            task.ran_ns as f64
        } else {
            task.delays.count() as f64
        }
    });
    Change {
        what: format!("sched {name}{}", if by_time { " time" } else { "" }),
        unit: if by_time {
            Unit::Nanoseconds
        } else {
            basis.unit()
        },
        a: value(a, there[0]),
        b: value(b, there[1]),
        confidence: Some(confidence),
        effect_ns: (times[1] - times[0]) * 0.5 + (waited[1] - waited[0]) * 0.5,
        per_work: pair.per_work(basis, work[0], work[1]),
        text,
    }
}

/// Where counts are not of the same time; `all` has all switches, and all time that tasks ran, of each side.
fn by_share(basis: &Basis<'_>, name: &str, sides: [&Task; 2], all: [(f64, f64); 2]) -> Change {
    let counts = [0, 1].map(|side: usize| (sides[side].delays.count() as f64, all[side].0));
    let shares = counts.map(|(part, whole)| part / whole.max(1.0));
    let ran = [0, 1].map(|side: usize| sides[side].ran_ns as f64 / all[side].1.max(1.0));
    let there = sides.map(|task| task.delays.count() > 0);
    let mut text = match there {
        [_, false] => format!("{name} gone: it had {} of all switches", percent(shares[0])),
        [false, _] => format!(
            "{name} is new: it has {} of all switches",
            percent(shares[1])
        ),
        _ => format!(
            "{name}: {} to {} of all switches, and {} to {} of the time that tasks ran",
            percent(shares[0]),
            percent(shares[1]),
            percent(ran[0]),
            percent(ran[1])
        ),
    };
    if basis.timed && there == [true, true] {
        let [a, b] = sides.map(|task| time(task.delays.mean_f64()));
        text.push_str(&format!("; it waited {a} and {b} for a CPU each time"));
    }
    text.push('.');
    Change {
        what: format!("sched {name}"),
        unit: Unit::Share,
        a: value(shares[0], there[0]),
        b: value(shares[1], there[1]),
        confidence: Some(1.0 - chance::shares(counts[0], counts[1], chance::BURST)),
        effect_ns: (ran[1] - ran[0]) * 0.5 * all[0].1.min(all[1].1),
        per_work: Vec::new(),
        text,
    }
}

/// Functions of kworkers.
fn work(basis: &Basis<'_>, out: &mut Vec<Change>) {
    let has = |side: usize| {
        let mut each = basis.sides[side].iter();
        each.any(|picture| {
            picture
                .sched
                .as_ref()
                .is_some_and(|sched| !sched.work.is_empty())
        })
    };
    // Without workqueue events nobody knows what kworkers ran.
    if !has(0) || !has(1) {
        return;
    }
    let of = |picture: &Picture, function: &str| {
        let mut stats = Stats::default();
        let rows = picture.sched.iter().flat_map(|report| &report.work);
        rows.filter(|row| row.function == function)
            .for_each(|row| stats.merge(&row.stats));
        stats
    };
    let rows = basis.sides.iter().flatten();
    let mut names: Vec<&String> = rows
        .flat_map(|picture| &picture.sched)
        .flat_map(|report| &report.work)
        .map(|row| &row.function)
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        let sides = [0, 1].map(|side: usize| {
            let mut stats = Stats::default();
            let each = basis.sides[side].iter();
            each.for_each(|picture| stats.merge(&of(picture, name)));
            stats
        });
        if sides.iter().all(|stats| stats.count() < ENOUGH) {
            continue;
        }
        let sum = |picture: &Picture| count(&of(picture, name));
        let [runs_a, runs_b] =
            [0, 1].map(|side| basis.runs(side, &sum, &|_| false, &|one| one.count));
        // Nothing is known of when they ran.
        let [runs_a, runs_b] = [runs_a, runs_b].map(|mut runs| {
            runs.iter_mut().for_each(|run| run.slices.clear());
            runs
        });
        let rates = [0, 1].map(|side: usize| sides[side].count() as f64 / basis.exposure(side));
        let times = [0, 1].map(|side: usize| sides[side].total() as f64 / basis.exposure(side));
        let each = basis.each();
        push(
            out,
            Change {
                what: format!("kworker function {name}"),
                unit: basis.unit(),
                a: value(rates[0], sides[0].count() > 0),
                b: value(rates[1], sides[1].count() > 0),
                confidence: Some(1.0 - chance::rates(&runs_a, &runs_b)),
                effect_ns: (times[1] - times[0]) * 0.5,
                per_work: Vec::new(),
                text: format!(
                    "kworkers ran {name} {} and then {} times{each}, for {} and {}{each}.",
                    number(rates[0]),
                    number(rates[1]),
                    time(times[0]),
                    time(times[1])
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
