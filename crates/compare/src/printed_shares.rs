//! Shares of samples that `perf report` and `perf top` printed: by task, by function, and by where the CPUs were, of
//! the host and of guests. They are shares of the machine's time; where functions stand in a table, also without those
//! in which CPUs are idle.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{ModeShares, Picture, PrintedShares};
use words::share;

use crate::chance;
use crate::change::{ChangeUnit, SideChange};
use crate::names::stack_group;
use crate::side::{Pair, SPENT, push, value};

/// Shares that differ by less are not compared: perf rounds to 0.0001, and few samples make a share of some per cent.
const LEAST: f64 = 0.005;
/// Rows of functions that are compared, those that weigh most.
const MOST: usize = 40;

/// Where CPUs were: its name, the name in words, and its share.
type ModePart = (&'static str, &'static str, fn(&ModeShares) -> f64);

/// A share of one side, with the part of it in which CPUs were not idle.
#[derive(Debug, Clone, Copy, Default)]
struct SideShare {
    share: f64,
    /// `None` where functions were not printed.
    busy: Option<f64>,
}

/// Shares of one side by name, on average over its tables.
struct SideShares<'a> {
    tables: Vec<&'a PrintedShares>,
}

impl<'a> SideShares<'a> {
    fn of(pictures: &'a [Picture]) -> SideShares<'a> {
        SideShares {
            tables: pictures
                .iter()
                .filter_map(|picture| picture.shares.as_ref())
                .collect(),
        }
    }

    /// Returns how many samples there are at least; `None` where a table does not say.
    fn samples(&self) -> Option<u64> {
        let mut tables = self.tables.iter();
        tables.try_fold(0u64, |sum, table| {
            Some(sum.saturating_add(table.samples()?))
        })
    }

    fn events(&self) -> BTreeSet<&str> {
        self.tables
            .iter()
            .filter_map(|table| table.event())
            .collect()
    }

    fn tasks(&self) -> BTreeMap<String, SideShare> {
        let mut out: BTreeMap<String, SideShare> = BTreeMap::new();
        for line in self.tables.iter().flat_map(|table| table.tasks()) {
            let name = stack_group(line.comm.as_deref().unwrap_or_default());
            let new = !out.contains_key(&name);
            let sum = out.entry(name).or_default();
            sum.share += line.share;
            sum.busy = match (new, sum.busy, line.busy) {
                (true, _, busy) => busy,
                (false, Some(sum), Some(busy)) => Some(sum + busy),
                _ => None,
            };
        }
        self.mean(out)
    }

    fn functions(&self) -> BTreeMap<String, SideShare> {
        let mut out: BTreeMap<String, SideShare> = BTreeMap::new();
        for line in self.tables.iter().flat_map(|table| table.functions()) {
            let Some(function) = line.function.or(line.object) else {
                continue;
            };
            let name = match line.comm {
                Some(comm) => format!("{function} in {}", stack_group(&comm)),
                None => function,
            };
            out.entry(name).or_default().share += line.share;
        }
        self.mean(out)
    }

    fn mean(&self, mut shares: BTreeMap<String, SideShare>) -> BTreeMap<String, SideShare> {
        let tables = self.tables.len().max(1) as f64;
        for one in shares.values_mut() {
            one.share /= tables;
            one.busy = one.busy.map(|busy| busy / tables);
        }
        shares
    }

    fn modes(&self) -> Option<ModeShares> {
        let each = self.tables.iter().map(|table| table.modes());
        let each: Vec<ModeShares> = each.collect::<Option<_>>()?;
        let mean = |of: fn(&ModeShares) -> f64| {
            each.iter().map(of).sum::<f64>() / each.len().max(1) as f64
        };
        Some(ModeShares {
            sys: mean(|one| one.sys),
            usr: mean(|one| one.usr),
            guest_sys: mean(|one| one.guest_sys),
            guest_usr: mean(|one| one.guest_usr),
        })
    }

    /// Returns the share in which CPUs were idle, where all functions are listed.
    fn idle(&self) -> Option<f64> {
        let all = self.tables.iter().all(|table| table.has_all_functions());
        let sum: f64 = self.tables.iter().map(|table| table.idle()).sum();
        all.then(|| sum / self.tables.len().max(1) as f64)
    }
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let sides = pair.sides.map(SideShares::of);
    if sides.iter().any(|side| side.tables.is_empty()) {
        return;
    }
    let [events_a, events_b] = sides.each_ref().map(SideShares::events);
    if !events_a.is_empty() && !events_b.is_empty() && events_a.is_disjoint(&events_b) {
        let list = |events: &BTreeSet<&str>| events.iter().copied().collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "Printed shares are not compared: A is of {} and B of {}.",
            list(&events_a),
            list(&events_b)
        ));
        return;
    }
    let compared = ComparedShares {
        samples: [sides[0].samples(), sides[1].samples()],
        idle: [sides[0].idle(), sides[1].idle()],
    };
    compared.modes(&sides, out);
    let whole = |of: fn(&PrintedShares) -> bool| {
        sides
            .each_ref()
            .map(|side| side.tables.iter().all(|table| of(table)))
    };
    let tasks = sides.each_ref().map(SideShares::tasks);
    compared.rows("task", &tasks, whole(PrintedShares::has_all_of_tasks), out);
    let functions = sides.each_ref().map(SideShares::functions);
    compared.rows(
        "function",
        &functions,
        whole(PrintedShares::has_all_functions),
        out,
    );
    if compared.samples.contains(&None) {
        notes.push(
            "A table of shares does not say of how many samples it is, so nobody can say which of their changes are \
             noise."
                .to_owned(),
        );
    }
}

/// How shares of both sides are compared.
struct ComparedShares {
    samples: [Option<u64>; 2],
    idle: [Option<f64>; 2],
}

impl ComparedShares {
    /// Compares rows of one kind. What a side does not list is none where `whole` says that it lists all.
    fn rows(
        &self,
        kind: &str,
        sides: &[BTreeMap<String, SideShare>; 2],
        whole: [bool; 2],
        out: &mut Vec<SideChange>,
    ) {
        let names: BTreeSet<&String> = sides.iter().flat_map(BTreeMap::keys).collect();
        let mut changes: Vec<(f64, SideChange)> = Vec::new();
        for name in names {
            let rows = [0, 1].map(|side: usize| {
                let row = sides[side].get(name).copied();
                row.or_else(|| {
                    whole[side].then_some(SideShare {
                        share: 0.0,
                        busy: Some(0.0),
                    })
                })
            });
            let [Some(a), Some(b)] = rows else { continue };
            let there = [0, 1].map(|side: usize| sides[side].contains_key(name));
            changes.push((a.share + b.share, self.of_row(kind, name, [a, b], there)));
        }
        changes.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.what.cmp(&b.1.what)));
        for (_, change) in changes.into_iter().take(MOST) {
            push(out, change);
        }
    }

    fn of_row(&self, kind: &str, name: &str, rows: [SideShare; 2], there: [bool; 2]) -> SideChange {
        let shares = rows.map(|row| row.share);
        let busy = match rows.map(|row| row.busy) {
            [Some(a), Some(b)] => Some([a, b]),
            _ => None,
        };
        // Of a task, what it did; of a function, idle ones are left out.
        let compared = busy.unwrap_or(shares);
        let of_tasks = kind == "task";
        let called = match of_tasks {
            true => format!("{name} had "),
            false => format!("{name} took "),
        };
        let text = match busy.filter(|_| of_tasks) {
            Some(busy) if busy != shares => format!(
                "{called}{} of all samples, of them {} not idle",
                points(shares),
                points(busy)
            ),
            _ => format!("{called}{} of all samples", points(shares)),
        };
        let what = format!("share {kind} {name}");
        self.change(what, compared, there, &text)
    }

    /// Compares where the CPUs were: in guests apart from the host, kernels apart from programs.
    fn modes(&self, sides: &[SideShares<'_>; 2], out: &mut Vec<SideChange>) {
        let [Some(a), Some(b)] = sides.each_ref().map(SideShares::modes) else {
            return;
        };
        let parts: [ModePart; 4] = [
            ("host kernel", "The host's kernel", |one| one.sys),
            ("host user", "User space of the host", |one| one.usr),
            ("guest kernel", "Guests' kernels", |one| one.guest_sys),
            ("guest user", "User space of guests", |one| one.guest_usr),
        ];
        for (name, called, of) in parts {
            let shares = [of(&a), of(&b)];
            let there = shares.map(|share| share > 0.0);
            let text = format!("{called} had {} of all samples", points(shares));
            push(
                out,
                self.change(format!("share {name}"), shares, there, &text),
            );
        }
    }

    fn change(&self, what: String, shares: [f64; 2], there: [bool; 2], text: &str) -> SideChange {
        let [a, b] = shares;
        let small = (b - a).abs() < LEAST;
        let confidence = match self.samples {
            _ if small => Some(0.0),
            [Some(of_a), Some(of_b)] => {
                let counts = |share: f64, of: u64| (share * of as f64, of as f64);
                let chance = chance::shares(counts(a, of_a), counts(b, of_b), chance::BURST);
                Some(1.0 - chance)
            }
            _ => None,
        };
        let after_idle = match self.idle {
            [Some(idle_a), Some(idle_b)] if idle_a.max(idle_b) > 0.0 => {
                let of = |share: f64, idle: f64| share / (1.0 - idle).max(f64::MIN_POSITIVE);
                let busy = [of(a, idle_a), of(b, idle_b)];
                // What CPUs did when they were idle is in shares of where they were.
                match what.starts_with("share task") || what.starts_with("share function") {
                    true => format!("; {} of what was not idle", points(busy)),
                    false => String::new(),
                }
            }
            _ => String::new(),
        };
        SideChange {
            what,
            unit: ChangeUnit::Share,
            a: value(a, there[0]),
            b: value(b, there[1]),
            confidence,
            few: small,
            effect_ns: (b - a) * 1e9 * 0.5 * SPENT,
            // To run is what tasks are for, and shares change whenever anything else does.
            worse: None,
            text: format!("{text}{after_idle}."),
            ..SideChange::default()
        }
    }
}

/// Returns two shares and the difference in points.
fn points([a, b]: [f64; 2]) -> String {
    let points = (b - a) * 100.0;
    format!(
        "{} to {} ({points:+.2} points)",
        share::rough(a),
        share::rough(b)
    )
}
