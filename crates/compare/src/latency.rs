//! Latency paths, their stages, and the back ends behind them.

use std::collections::BTreeMap;

use analysis::{Measured, Picture};
use stats::Stats;

use crate::basis::{Basis, Kind, kind, slices};
use crate::side::{Pair, value};
use crate::words::{change, of_them, percent, time};
use crate::{Change, Unit, Value, chance};

/// Fewer instances on both sides together are not told to have come or gone.
const FEW: u64 = 5;

/// One path over a side.
#[derive(Debug, Clone, Default)]
struct Path {
    total: Stats,
    stages: BTreeMap<String, Stats>,
    by: Option<&'static str>,
    groups: BTreeMap<String, Stats>,
    /// The variance of its quantiles, as a multiple of that of independent instances.
    design: f64,
}

fn paths(pictures: &[&Picture]) -> BTreeMap<String, Path> {
    let mut out: BTreeMap<String, Path> = BTreeMap::new();
    let all = pictures.iter().flat_map(|picture| &picture.paths);
    for report in all.filter(|report| report.count > 0) {
        let path = out.entry(report.name.clone()).or_default();
        path.total.merge(&report.total);
        path.by = report.by;
        for stage in &report.stages {
            let stats = path.stages.entry(stage.name.clone()).or_default();
            stats.merge(&stage.stats);
        }
        for group in &report.groups {
            let stats = path.groups.entry(group.label.clone()).or_default();
            stats.merge(&group.stats);
        }
    }
    for (name, path) in &mut out {
        let measured = Measured::Path(name.clone());
        let runs: Vec<_> = pictures
            .iter()
            .map(|picture| {
                (
                    slices(picture, &|one| *one == measured, &|one| one.count),
                    slices(picture, &|one| *one == measured, &|one| one.ns),
                )
            })
            .collect();
        path.design = chance::design(&runs, &path.total);
    }
    out
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<Change>) {
    // Ticks of unknown rate are no durations.
    let durations = |picture: &Picture| {
        let known = kind(picture) == Kind::Recording;
        known.then(|| picture.paths.iter().map(|path| path.count).sum())
    };
    let Ok(basis) = Basis::of(pair.sides, &durations) else {
        return;
    };
    let [paths_a, paths_b] = [0, 1].map(|side: usize| paths(&basis.sides[side]));
    for (name, path_a) in &paths_a {
        let Some(path_b) = paths_b.get(name) else {
            continue;
        };
        let design = path_a.design.max(path_b.design);
        let compared = |a, b, what: &str, words: &str, share| Quantile {
            what: format!("path {name}{what}"),
            words: words.to_owned(),
            share,
            stats: [a, b],
            design,
        };
        let whole = format!("The path {name}");
        for share in [0.5, 0.99] {
            let whole = compared(&path_a.total, &path_b.total, "", &whole, share);
            out.push(whole.change(&basis, name));
        }
        for (stage, stats_a) in &path_a.stages {
            let Some(stats_b) = path_b.stages.get(stage) else {
                continue;
            };
            let words = format!("{name}, '{stage}'");
            let stage = compared(stats_a, stats_b, &format!(", {stage}"), &words, 0.5);
            out.push(stage.change(&basis, name));
        }
        groups(&basis, name, [path_a, path_b], design, out);
    }
    let names = paths_a.keys().filter(|name| !paths_b.contains_key(*name));
    for name in names.chain(paths_b.keys().filter(|name| !paths_a.contains_key(*name))) {
        let counts = [paths_a.get(name), paths_b.get(name)];
        alone(&basis, name, counts, out);
    }
}

/// A path that one side does not have.
fn alone(basis: &Basis<'_>, name: &str, sides: [Option<&Path>; 2], out: &mut Vec<Change>) {
    let Some(here) = sides[0].or(sides[1]) else {
        return;
    };
    let measured = Measured::Path(name.to_owned());
    let sum = |picture: &Picture| {
        let count = picture.path(name).map_or(0, |path| path.count) as f64;
        (count, count)
    };
    let [a, b] =
        [0, 1].map(|side| basis.runs(side, &sum, &|one| *one == measured, &|one| one.count));
    let count = here.total.count();
    let confidence = if count < FEW {
        0.0
    } else {
        1.0 - chance::rates(&a, &b)
    };
    let p50 = here.total.percentile(0.5) as f64;
    let there = sides.map(|side| side.is_some());
    let side = if there[0] { 0 } else { 1 };
    let ns = here.total.total() as f64 / basis.exposure(side);
    out.push(Change {
        what: format!("path {name}"),
        unit: Unit::Nanoseconds,
        a: value(p50, there[0]),
        b: value(p50, there[1]),
        confidence: Some(confidence),
        // Whether the time was lost, or is that of something new that is done, is not known.
        effect_ns: 0.1 * if there[0] { -ns } else { ns },
        per_work: Vec::new(),
        text: format!(
            "The path {name} is in {} alone: {}, half of them within {}.",
            ["A", "B"][side],
            of_them(count, "instance", "instances"),
            time(p50)
        ),
    });
}

/// One quantile of a duration.
struct Quantile<'a> {
    what: String,
    words: String,
    share: f64,
    stats: [&'a Stats; 2],
    design: f64,
}

impl Quantile<'_> {
    fn change(&self, basis: &Basis<'_>, path: &str) -> Change {
        let [a, b] = self.stats;
        let [at_a, at_b] = self.stats.map(|stats| stats.percentile(self.share) as f64);
        let label = if self.share == 0.5 { "p50" } else { "p99" };
        // Single instances can be told, and not trusted.
        let single = a.count() == 1 && b.count() == 1;
        let confidence = match single {
            true if self.share == 0.5 => None,
            true => Some(0.0),
            false => {
                let within = chance::quantiles(a, b, self.share, self.design);
                Some(1.0 - within.max(self.between(basis, path)))
            }
        };
        let rate = |side: usize| self.stats[side].count() as f64 / basis.exposure(side);
        let often = rate(0).min(rate(1));
        // The 99th percentile is one in a hundred.
        let weight = if self.share == 0.5 { 1.0 } else { 0.02 };
        let note = if single {
            "; one instance on each side"
        } else {
            ""
        };
        Change {
            what: format!("{} {label}", self.what),
            unit: Unit::Nanoseconds,
            a: Value::Number(at_a),
            b: Value::Number(at_b),
            confidence,
            effect_ns: (at_b - at_a) * often * weight,
            per_work: Vec::new(),
            text: format!(
                "{} went from {} to {} ({label}, {}{note}).",
                self.words,
                time(at_a),
                time(at_b),
                change(at_a, at_b)
            ),
        }
    }

    /// Returns the probability of the difference by what differs from run to run; 0 where there are no several runs.
    fn between(&self, basis: &Basis<'_>, path: &str) -> f64 {
        let stage = self.what.strip_prefix(&format!("path {path}, "));
        chance::runs([0, 1].map(|side: usize| {
            let each = basis.sides[side]
                .iter()
                .filter_map(|picture| picture.path(path));
            each.filter_map(|report| match stage {
                None => Some(&report.total),
                Some(name) => {
                    let mut stages = report.stages.iter();
                    stages.find(|stage| stage.name == name).map(|s| &s.stats)
                }
            })
            .filter(|stats| stats.count() > 0)
            .map(|stats| stats.percentile(self.share) as f64)
            .collect()
        }))
    }
}

/// By what kind of thread instances were.
fn groups(basis: &Basis<'_>, name: &str, sides: [&Path; 2], design: f64, out: &mut Vec<Change>) {
    let Some(by) = sides[0].by.or(sides[1].by) else {
        return;
    };
    let most = |path: &Path| {
        let groups = path.groups.iter().max_by_key(|(_, stats)| stats.count());
        groups.map(|(label, stats)| (label.clone(), stats.percentile(0.5)))
    };
    let (Some((label_a, p50_a)), Some((label_b, p50_b))) = (most(sides[0]), most(sides[1])) else {
        return;
    };
    // Which access the exits were for mostly changes with the load, and the tables of exits tell of it.
    if label_a == label_b || by != "back end" {
        return;
    }
    let all = sides.map(|path| path.groups.values().map(Stats::count).sum::<u64>());
    let of = |side: usize, label: &str| {
        let count = sides[side].groups.get(label).map_or(0, Stats::count);
        (count as f64, all[side] as f64)
    };
    let shares = [of(0, &label_a), of(1, &label_b)].map(|(part, whole)| part / whole.max(1.0));
    // Where neither side has the other's kind, it is no matter of chance.
    let mixed = of(0, &label_b).0 > 0.0 || of(1, &label_a).0 > 0.0;
    let confidence = mixed.then(|| 1.0 - chance::shares(of(0, &label_a), of(1, &label_a), design));
    let often = (0..2)
        .map(|side: usize| all[side] as f64 / basis.exposure(side))
        .fold(f64::INFINITY, f64::min);
    let [a, b] = [0, 1].map(|side: usize| of_them(all[side], "instance", "instances"));
    out.push(Change {
        what: format!("path {name} {by}"),
        unit: Unit::Word,
        a: Value::Word(label_a.clone()),
        b: Value::Word(label_b.clone()),
        confidence,
        effect_ns: (p50_b as f64 - p50_a as f64) * often,
        per_work: Vec::new(),
        text: format!(
            "The {by} moved from a {label_a} ({} of {a}) to a {label_b} ({} of {b}), and the loop went from {} to {} (p50).",
            percent(shares[0]),
            percent(shares[1]),
            time(p50_a as f64),
            time(p50_b as f64)
        ),
    });
}
