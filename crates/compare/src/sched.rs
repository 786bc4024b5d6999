//! Tasks and their switches, kworkers by function.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Amount, Picture, SliceMeasure, TaskRow};
use stats::Stats;

use crate::basis::{Basis, SumDivisor};
use crate::chance;
use crate::change::{ChangeUnit, SideChange, SideName};
use crate::names::group;
use crate::rows::{Lead, RowPieces};
use crate::side::{Pair, SPENT, count, push, value};
use words::{change, duration, number, share};

/// Tasks with fewer switches on either side are not compared.
const ENOUGH: u64 = 20;

/// What the time of vCPUs' threads counts in the ranking: what they did is in their states.
const VCPUS: f64 = 0.1;

/// What tasks of a name did.
#[derive(Debug, Clone, Default)]
struct TaskSums {
    delays: Stats,
    ran_ns: u64,
    /// Whether they are vCPUs.
    vcpus: bool,
}

impl TaskSums {
    fn add(&mut self, row: &TaskRow) {
        self.delays.merge(&row.delays);
        let ran = row.runtime_ns.max(row.on_cpu_ns);
        self.ran_ns = self.ran_ns.saturating_add(ran);
    }
}

fn tasks(pictures: &[&Picture]) -> BTreeMap<String, TaskSums> {
    let mut out: BTreeMap<String, TaskSums> = BTreeMap::new();
    for picture in pictures {
        let vcpus = picture.vcpus.iter().flat_map(|report| &report.rows);
        let vcpus: BTreeSet<i32> = vcpus.map(|row| row.tid).collect();
        for row in picture.sched.iter().flat_map(|report| &report.rows) {
            // What the recorder does is no change of what was recorded.
            if picture.recorder.has(row.tid, &row.comm) {
                continue;
            }
            let task = out.entry(group(&row.comm)).or_default();
            task.add(row);
            task.vcpus |= vcpus.contains(&row.tid);
        }
    }
    out
}

/// What the tasks of each name did in one picture, and what counts them by slice.
struct TaskIndex<'a> {
    tasks: BTreeMap<String, TaskSums>,
    measured: BTreeMap<String, Vec<&'a SliceMeasure>>,
}

impl<'a> TaskIndex<'a> {
    fn of(picture: &'a Picture) -> TaskIndex<'a> {
        let mut measured: BTreeMap<String, Vec<&SliceMeasure>> = BTreeMap::new();
        for one in picture.series.of.keys() {
            if let SliceMeasure::Delays(comm) | SliceMeasure::Ran(comm) = one {
                measured.entry(group(comm)).or_default().push(one);
            }
        }
        TaskIndex {
            tasks: tasks(&[picture]),
            measured,
        }
    }

    fn slices(&self, name: &str, ran: bool) -> Vec<SliceMeasure> {
        let all = self.measured.get(name).into_iter().flatten();
        all.filter(|one| matches!(one, SliceMeasure::Ran(_)) == ran)
            .map(|one| (*one).clone())
            .collect()
    }
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
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
        SumDivisor::Second => {}
        SumDivisor::Table => notes.push(
            "Tables of perf sched latency do not say how much time they cover: switches and times are compared as they \
             are."
                .to_owned(),
        ),
        SumDivisor::All => notes.push(
            "The duration of a side is unknown, so tasks are compared by their share of all switches."
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
    let none = TaskSums::default();
    let mut names: Vec<&String> = tasks_a.keys().chain(tasks_b.keys()).collect();
    names.sort();
    names.dedup();
    let index = [0, 1].map(|side: usize| -> Vec<TaskIndex<'_>> {
        let each = basis.sides[side].iter();
        each.map(|picture| TaskIndex::of(picture)).collect()
    });
    let whole = [0, 1].map(|side: usize| is_whole(&basis.sides[side]));
    if whole != [true, true] {
        notes.push(
            "A table of tasks has no row of totals and none of a task that hardly waits, so it was cut: tasks that \
             only the other side has are not compared."
                .to_owned(),
        );
    }
    if basis.per == SumDivisor::Table {
        longest_wait([&tasks_a, &tasks_b], out);
    }
    for name in names {
        let cut = |side: usize, tasks: &BTreeMap<String, TaskSums>| {
            !whole[side] && !tasks.contains_key(name.as_str())
        };
        if cut(0, &tasks_a) || cut(1, &tasks_b) {
            continue;
        }
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
                SumDivisor::All => by_share(&basis, name, sides, all),
                SumDivisor::Second | SumDivisor::Table => {
                    by_rate(pair, &basis, name, sides, &index)
                }
            },
        );
    }
    maximum_first(out);
    if basis.per != SumDivisor::All {
        work(&basis, out);
    }
}

/// Puts the longest wait before the means of tasks, which hide it.
fn maximum_first(out: &mut [SideChange]) {
    let of_tasks = out
        .iter()
        .filter(|change| change.what.starts_with("sched "));
    let most = of_tasks
        .map(|change| change.effect_ns.abs())
        .fold(0.0, f64::max);
    let mut longest = out.iter_mut().filter(|change| change.what == LONGEST_WAIT);
    if let Some(longest) = longest.next() {
        longest.effect_ns = (most + 1.0).copysign(longest.effect_ns);
    }
}

/// Whether all tasks of a side have rows.
fn is_whole(pictures: &[&Picture]) -> bool {
    let mut reports = pictures.iter().filter_map(|picture| picture.sched.as_ref());
    reports.all(|report| report.is_whole)
}

/// A longest wait that is so many times the other side's, and so long, is a change of its own: means hide it.
const LONGEST_WAIT: &str = "sched longest wait";
const LONGEST_TIMES: u64 = 5;
const LONGEST_NS: u64 = 10_000_000;
/// How sure that is where several tasks waited so long on one side and none on the other; of a single wait nobody can
/// tell it from chance.
const OF_SEVERAL: f64 = 0.99;
const OF_ONE: f64 = 0.5;

/// Compares the longest wait for a CPU of all tasks.
fn longest_wait(sides: [&BTreeMap<String, TaskSums>; 2], out: &mut Vec<SideChange>) {
    let longest = sides.map(|tasks| {
        let waits = tasks.iter().map(|(name, task)| (task.delays.max(), name));
        waits.max()
    });
    let [Some((a, name_a)), Some((b, name_b))] = longest else {
        return;
    };
    let (most, least) = (a.max(b), a.min(b));
    if most < LONGEST_NS || most < least.saturating_mul(LONGEST_TIMES) {
        return;
    }
    let worse = SideName::more(a as f64, b as f64);
    let long = |tasks: &BTreeMap<String, TaskSums>| {
        let tasks = tasks.values();
        tasks.filter(|task| task.delays.max() >= LONGEST_NS).count()
    };
    let [long_a, long_b] = sides.map(long);
    let several = long_a.max(long_b) >= 3 && long_a.min(long_b) == 0;
    push(
        out,
        SideChange {
            what: LONGEST_WAIT.to_owned(),
            unit: ChangeUnit::Nanoseconds,
            a: value(a as f64, true),
            b: value(b as f64, true),
            confidence: Some(if several { OF_SEVERAL } else { OF_ONE }),
            effect_ns: b as f64 - a as f64,
            burst: !several,
            worse,
            text: format!(
                "The longest wait for a CPU: {} ({name_a}) to {} ({name_b}).",
                duration::of_f64(a as f64),
                duration::of_f64(b as f64)
            ),
            ..SideChange::default()
        },
    );
}

/// What tasks of one name did on both sides, by a basis.
struct Rates<'a> {
    name: &'a str,
    sides: [&'a TaskSums; 2],
    /// On which sides they were.
    there: [bool; 2],
    switches: [f64; 2],
    ran_ns: [f64; 2],
    waited_ns: [f64; 2],
}

impl<'a> Rates<'a> {
    fn of(basis: &Basis<'_>, name: &'a str, sides: [&'a TaskSums; 2]) -> Rates<'a> {
        let rate = |of: fn(&TaskSums) -> u64| {
            [0, 1].map(|side: usize| of(sides[side]) as f64 / basis.exposure(side))
        };
        Rates {
            name,
            sides,
            there: sides.map(|task| task.delays.count() > 0),
            switches: rate(|task| task.delays.count()),
            ran_ns: rate(|task| task.ran_ns),
            waited_ns: rate(|task| task.delays.total()),
        }
    }

    /// Sets what chance says of switches beside what it says of run time.
    fn pieces(&self, basis: &Basis<'_>, index: &[Vec<TaskIndex<'_>>; 2]) -> RowPieces {
        let runs =
            |side: usize, ran: bool, sum: fn(&TaskSums) -> (f64, f64), of: fn(&Amount) -> u64| {
                let sums: Vec<(f64, f64)> = index[side]
                    .iter()
                    .map(|one| one.tasks.get(self.name).map_or((0.0, 0.0), sum))
                    .collect();
                let slices = |at: usize| {
                    let index = index[side].get(at);
                    index.map_or_else(Vec::new, |one| one.slices(self.name, ran))
                };
                basis.runs_of(side, &sums, &slices, of)
            };
        let switches = |task: &TaskSums| count(&task.delays);
        let times = |task: &TaskSums| {
            let ran = task.ran_ns as f64;
            // Stretches of unknown lengths, taken to be one for each switch.
            (ran, ran * ran / task.delays.count().max(1) as f64)
        };
        let [counts_a, counts_b] = [0, 1].map(|side| runs(side, false, switches, |one| one.count));
        let [ran_a, ran_b] = [0, 1].map(|side| runs(side, true, times, |one| one.ns));
        RowPieces {
            count: (chance::rates(&counts_a, &counts_b), self.switches),
            time: (chance::rates(&ran_a, &ran_b), self.ran_ns),
            few: self
                .sides
                .iter()
                .map(|task| task.delays.count())
                .fold(0, u64::saturating_add),
        }
    }

    /// Says it in one sentence, what leads first.
    fn text(&self, each: &str, by_time: bool, often: &str) -> String {
        let (name, rates, times) = (self.name, self.switches, self.ran_ns);
        let switches = format!(
            "{} to {} switches{each} ({})",
            number(rates[0]),
            number(rates[1]),
            change(rates[0], rates[1])
        );
        let delays = format!(
            "it waited {} and {} for a CPU each time",
            duration::of_f64(self.sides[0].delays.mean_f64()),
            duration::of_f64(self.sides[1].delays.mean_f64())
        );
        match self.there {
            [_, false] => format!(
                "{name} gone: it had {} switches{each} and ran for {}{each}.",
                number(rates[0]),
                duration::of_f64(times[0])
            ),
            [false, _] => format!(
                "{name} is new: {} switches{each}, and it ran for {}{each}.",
                number(rates[1]),
                duration::of_f64(times[1])
            ),
            _ if by_time => format!(
                "{name} ran for {} and then {}{each} ({}); {switches}, {often}; {delays}.",
                duration::of_f64(times[0]),
                duration::of_f64(times[1]),
                change(times[0], times[1]),
            ),
            _ => format!(
                "{name}: {switches}; it ran for {} and {}{each}, and {delays}.",
                duration::of_f64(times[0]),
                duration::of_f64(times[1]),
            ),
        }
    }
}

fn by_rate(
    pair: &Pair<'_>,
    basis: &Basis<'_>,
    name: &str,
    sides: [&TaskSums; 2],
    index: &[Vec<TaskIndex<'_>>; 2],
) -> SideChange {
    let rates = Rates::of(basis, name, sides);
    let pieces = rates.pieces(basis, index);
    let (lead, confidence) = pieces.lead();
    let there = rates.there;
    let by_time = lead == Lead::Time && there == [true, true];
    let of = |by_time: bool| {
        let ([a, b], ending, unit) = if by_time {
            (rates.ran_ns, " time", ChangeUnit::Nanoseconds)
        } else {
            (rates.switches, "", basis.unit())
        };
        let what = format!("sched {name}{ending}");
        (what, unit, value(a, there[0]), value(b, there[1]))
    };
    let work = sides.map(|task| {
        if by_time {
            task.ran_ns as f64
        } else {
            task.delays.count() as f64
        }
    });
    let (what, unit, a, b) = of(by_time);
    let more = |of: [f64; 2]| of[1] - of[0];
    SideChange {
        what,
        unit,
        a,
        b,
        confidence: Some(confidence),
        effect_ns: more(rates.ran_ns) * weight(sides) + more(rates.waited_ns) * 0.5,
        per_work: pair.per_work(basis, work[0], work[1]),
        worse: worse(sides, rates.waited_ns),
        text: rates.text(basis.each(), by_time, pieces.often()),
        also: Some(of(!by_time)),
        ..SideChange::default()
    }
}

/// Waits that are longer by less say nothing.
const LONGER: f64 = 1.5;

/// Returns the side on which tasks wait for a CPU longer each time, and more in all. To run is what a task is for.
fn worse(sides: [&TaskSums; 2], waited: [f64; 2]) -> Option<SideName> {
    let [a, b] = sides.map(|task| task.delays.mean_f64());
    let longer = a.max(b) >= LONGER * a.min(b) && a.min(b) > 0.0;
    let each = SideName::more(a, b).filter(|_| longer);
    each.filter(|_| each == SideName::more(waited[0], waited[1]))
}

/// What the run time of tasks counts in the ranking.
fn weight(sides: [&TaskSums; 2]) -> f64 {
    if sides.iter().any(|task| task.vcpus) {
        VCPUS * SPENT
    } else {
        0.5 * SPENT
    }
}

/// Where counts are not of the same time; `all` has all switches, and all time that tasks ran, of each side.
fn by_share(
    basis: &Basis<'_>,
    name: &str,
    sides: [&TaskSums; 2],
    all: [(f64, f64); 2],
) -> SideChange {
    let counts = [0, 1].map(|side: usize| (sides[side].delays.count() as f64, all[side].0));
    let shares = counts.map(|(part, whole)| part / whole.max(1.0));
    let ran = [0, 1].map(|side: usize| sides[side].ran_ns as f64 / all[side].1.max(1.0));
    let there = sides.map(|task| task.delays.count() > 0);
    let mut text = match there {
        [_, false] => format!(
            "{name} gone: it had {} of all switches",
            share::rough(shares[0])
        ),
        [false, _] => format!(
            "{name} is new: it has {} of all switches",
            share::rough(shares[1])
        ),
        _ => format!(
            "{name}: {} to {} of all switches, and {} to {} of the time that tasks ran",
            share::rough(shares[0]),
            share::rough(shares[1]),
            share::rough(ran[0]),
            share::rough(ran[1])
        ),
    };
    if basis.timed && there == [true, true] {
        let [a, b] = sides.map(|task| duration::of_f64(task.delays.mean_f64()));
        text.push_str(&format!("; it waited {a} and {b} for a CPU each time"));
    }
    text.push('.');
    SideChange {
        what: format!("sched {name}"),
        unit: ChangeUnit::Share,
        a: value(shares[0], there[0]),
        b: value(shares[1], there[1]),
        confidence: Some(1.0 - chance::shares(counts[0], counts[1], chance::BURST)),
        effect_ns: (ran[1] - ran[0]) * weight(sides) * all[0].1.min(all[1].1),
        text,
        ..SideChange::default()
    }
}

/// Functions of kworkers.
fn work(basis: &Basis<'_>, out: &mut Vec<SideChange>) {
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
    let of = |picture: &Picture| {
        let mut out: BTreeMap<String, Stats> = BTreeMap::new();
        for row in picture.sched.iter().flat_map(|report| &report.work) {
            let stats = out.entry(row.function.clone()).or_default();
            stats.merge(&row.stats);
        }
        out
    };
    let each = [0, 1].map(|side: usize| -> Vec<BTreeMap<String, Stats>> {
        let pictures = basis.sides[side].iter();
        pictures.map(|picture| of(picture)).collect()
    });
    let names = each.iter().flatten().flat_map(|one| one.keys());
    let names: BTreeSet<&String> = names.collect();
    for name in names {
        let sides = [0, 1].map(|side: usize| {
            let mut stats = Stats::default();
            let all = each[side].iter().filter_map(|one| one.get(name));
            all.for_each(|one| stats.merge(one));
            stats
        });
        if sides.iter().all(|stats| stats.count() < ENOUGH) {
            continue;
        }
        // Nothing is known of when they ran.
        let [runs_a, runs_b] = [0, 1].map(|side: usize| {
            let sums: Vec<(f64, f64)> = each[side]
                .iter()
                .map(|one| one.get(name).map_or((0.0, 0.0), count))
                .collect();
            let mut runs = basis.runs_of(side, &sums, &|_| Vec::new(), |one| one.count);
            runs.iter_mut().for_each(|run| run.slices.clear());
            runs
        });
        let rates = [0, 1].map(|side: usize| sides[side].count() as f64 / basis.exposure(side));
        let times = [0, 1].map(|side: usize| sides[side].total() as f64 / basis.exposure(side));
        let each = basis.each();
        let took = match basis.timed {
            true => format!(
                ", for {} and {}{each}",
                duration::of_f64(times[0]),
                duration::of_f64(times[1])
            ),
            false => String::new(),
        };
        push(
            out,
            SideChange {
                what: format!("kworker function {name}"),
                unit: basis.unit(),
                a: value(rates[0], sides[0].count() > 0),
                b: value(rates[1], sides[1].count() > 0),
                confidence: Some(1.0 - chance::rates(&runs_a, &runs_b)),
                effect_ns: (times[1] - times[0]) * 0.5 * SPENT,
                text: format!(
                    "kworkers ran {name} {} and then {} times{each}{took}.",
                    number(rates[0]),
                    number(rates[1])
                ),
                ..SideChange::default()
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use stats::Stats;

    use super::{TaskSums, worse};
    use crate::change::SideName;

    #[test]
    fn tasks_are_worse_off_where_they_wait() {
        let task = |count: u64, ns: u64| {
            let mut delays = Stats::default();
            (0..count).for_each(|_| delays.add(ns));
            TaskSums {
                delays,
                ..TaskSums::default()
            }
        };
        for (a, b, side) in [
            ((30, 141_000), (151, 12_000_000), Some(SideName::B)),
            // As long each time, and more often: it does more.
            ((100, 20_000), (300, 21_000), None),
            // Longer each time, and hardly ever.
            ((720, 18_000), (3, 211_000), None),
            ((0, 0), (50, 20_000), None),
        ] {
            let (a, b) = (task(a.0, a.1), task(b.0, b.1));
            let waited = [&a, &b].map(|task| task.delays.total() as f64);
            assert_eq!(worse([&a, &b], waited), side, "{a:?} {b:?}");
        }
    }
}
