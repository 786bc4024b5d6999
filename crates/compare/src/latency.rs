//! Latency paths, their stages, and the back ends behind them.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Picture, SliceMeasure};
use stats::{Longest, Stats};

use crate::basis::{Basis, NumbersOrigin, kind, slices};
use crate::chance;
use crate::change::{ChangeUnit, Level, SideAmount, SideChange, SideName, TailBounds};
use crate::differs::{steps_apart, unrecorded_of_path};
use crate::side::{Pair, SPENT, value};
use crate::tails::{Tail, TailSample, tail};
use words::{change, counted, duration, rose, share};

/// Fewer instances on both sides together are not said to have come or gone.
const FEW: u64 = 5;

/// What the time of a path's instances counts in the ranking. Somebody waits for an interrupt or an answer of a device;
/// a timer's is mostly the guest's own tick, wake-ups are of all of these once more, and an exit to the VMM is time
/// that is spent.
fn weight(path: &str) -> f64 {
    match path {
        "timer" | "halt-wake" | "user-exit" => SPENT,
        _ => 1.0,
    }
}

/// One path over a side.
#[derive(Debug, Clone, Default)]
struct PathOfSide {
    total: Stats,
    stages: BTreeMap<String, Stats>,
    /// With which steps its instances begin.
    begins: BTreeSet<String>,
    /// With which they end.
    ends: BTreeSet<String>,
    /// The longest of each recording: with their number, and how long it is.
    longest: Vec<(Longest, u64, u64)>,
    by: Option<&'static str>,
    groups: BTreeMap<String, Stats>,
    /// The variance of its quantiles, as a multiple of that of independent instances.
    design: f64,
}

/// The two steps of a stage.
fn steps(stage: &str) -> (&str, &str) {
    stage.split_once(" → ").unwrap_or((stage, ""))
}

fn paths(pictures: &[&Picture]) -> BTreeMap<String, PathOfSide> {
    let mut out: BTreeMap<String, PathOfSide> = BTreeMap::new();
    let all = pictures.iter().flat_map(|picture| {
        let paths = picture.paths.iter().filter(|report| report.count > 0);
        paths.map(|report| (report, picture.span_ns.unwrap_or(0)))
    });
    for (report, span_ns) in all {
        let path = out.entry(report.name.clone()).or_default();
        path.total.merge(&report.total);
        let longest = (report.longest.clone(), report.count, span_ns);
        path.longest.push(longest);
        let mut chains = BTreeSet::new();
        for stage in &report.stages {
            // The first stage of a chain begins where its instances can.
            if chains.insert(stage.chain.as_deref()) {
                path.begins.insert(steps(&stage.name).0.to_owned());
            }
        }
        let from: BTreeSet<&str> = report
            .stages
            .iter()
            .map(|stage| steps(&stage.name).0)
            .collect();
        let to = report.stages.iter().map(|stage| steps(&stage.name).1);
        path.ends
            .extend(to.filter(|to| !from.contains(to)).map(str::to_owned));
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
        let measured = SliceMeasure::Path(name.clone());
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

pub(crate) fn changes(
    pair: &Pair<'_>,
    bounds: &TailBounds,
    out: &mut Vec<SideChange>,
    notes: &mut Vec<String>,
) {
    // Ticks of unknown rate are no durations.
    let durations = |picture: &Picture| {
        let known = kind(picture) == NumbersOrigin::Recording;
        known.then(|| {
            picture
                .paths
                .iter()
                .map(|path| path.count)
                .fold(0, u64::saturating_add)
        })
    };
    let Ok(basis) = Basis::of(pair.sides, &durations) else {
        return;
    };
    let [mut paths_a, mut paths_b] = [0, 1].map(|side: usize| paths(&basis.sides[side]));
    let names: BTreeSet<String> = paths_a.keys().chain(paths_b.keys()).cloned().collect();
    for name in names {
        if let Some(why) = apart(&basis, &name, [paths_a.get(&name), paths_b.get(&name)]) {
            notes.push(format!("The path {name} is not compared: {why}."));
            paths_a.remove(&name);
            paths_b.remove(&name);
        }
    }
    for (name, path_a) in &paths_a {
        let Some(path_b) = paths_b.get(name) else {
            continue;
        };
        let design = path_a.design.max(path_b.design);
        let compared = |a, b, what: &str, words: &str, level| Quantile {
            what: format!("path {name}{what}"),
            words: words.to_owned(),
            level,
            alone: path_a.total.count() == 1 && path_b.total.count() == 1,
            stats: [a, b],
            design,
        };
        let words = format!("The path {name}");
        let whole = compared(&path_a.total, &path_b.total, "", &words, Level::Whole);
        out.push(whole.change(&basis, name));
        out.extend(slow(
            &basis,
            name,
            [path_a, path_b],
            bounds.get(name).copied(),
        ));
        let other = steps_apart([&basis.sides[0], &basis.sides[1]], name);
        if !other.is_empty() {
            let each: Vec<String> = other
                .iter()
                .map(|(step, why)| format!("'{step}' ({why})"))
                .collect();
            notes.push(format!(
                "Stages of the path {name} that begin or end with {} are not compared.",
                each.join(" or ")
            ));
        }
        for (stage, stats_a) in &path_a.stages {
            let (from, to) = steps(stage);
            if other.contains_key(from) || other.contains_key(to) {
                continue;
            }
            let Some(stats_b) = path_b.stages.get(stage) else {
                continue;
            };
            let words = format!("{name}, '{stage}'");
            let what = format!(", {stage}");
            let stage = compared(stats_a, stats_b, &what, &words, Level::Stage);
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
fn alone(
    basis: &Basis<'_>,
    name: &str,
    sides: [Option<&PathOfSide>; 2],
    out: &mut Vec<SideChange>,
) {
    let Some(here) = sides[0].or(sides[1]) else {
        return;
    };
    let measured = SliceMeasure::Path(name.to_owned());
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
    out.push(SideChange {
        what: format!("path {name}"),
        unit: ChangeUnit::Nanoseconds,
        a: value(p50, there[0]),
        b: value(p50, there[1]),
        confidence: Some(confidence),
        // Whether the time was lost, or is that of something new that is done, is not known.
        effect_ns: 0.1 * if there[0] { -ns } else { ns },
        level: Level::Whole,
        few: count < FEW,
        also: Some((
            format!("path {name} p50"),
            ChangeUnit::Nanoseconds,
            value(p50, there[0]),
            value(p50, there[1]),
        )),
        text: format!(
            "The path {name} is in {} alone: {}, half of them within {}.",
            ["A", "B"][side],
            counted(count, "instance", "instances"),
            duration::of_f64(p50)
        ),
        ..SideChange::default()
    });
}

/// Returns why a path of the two sides is not of the same, as a part of a sentence.
fn apart(basis: &Basis<'_>, name: &str, sides: [Option<&PathOfSide>; 2]) -> Option<String> {
    if let [Some(a), Some(b)] = sides {
        let other = steps_apart([&basis.sides[0], &basis.sides[1]], name);
        let mut bounds = a
            .begins
            .iter()
            .chain(&b.begins)
            .chain(&a.ends)
            .chain(&b.ends);
        if let Some(why) = bounds.find_map(|step| other.get(step)) {
            return Some(why.clone());
        }
        if !a.begins.is_disjoint(&b.begins) || a.begins.is_empty() {
            return None;
        }
        let of = |path: &PathOfSide| {
            let steps: Vec<String> = path.begins.iter().map(|one| format!("'{one}'")).collect();
            steps.join(" or ")
        };
        let missing = unrecorded_of_path([&basis.sides[0], &basis.sides[1]], name);
        return Some(
            missing.unwrap_or_else(|| format!("it begins with {} in A, and {} in B", of(a), of(b))),
        );
    }
    unrecorded_of_path([&basis.sides[0], &basis.sides[1]], name)
}

/// What the instances of a path are to those who wait for them.
fn instances(name: &str) -> String {
    match name {
        "irqfd" => "Interrupts of back ends (irqfd)".to_owned(),
        "kick" => "Notifications of devices (kick)".to_owned(),
        "ipi" => "Interrupts between vCPUs (ipi)".to_owned(),
        "timer" => "Timer interrupts (timer)".to_owned(),
        "halt-wake" => "Wake-ups of halted vCPUs (halt-wake)".to_owned(),
        "user-exit" => "Exits to the VMM (user-exit)".to_owned(),
        other => format!("Instances of the path {other}"),
    }
}

/// The slow ones of a path.
fn slow(
    basis: &Basis<'_>,
    name: &str,
    sides: [&PathOfSide; 2],
    bound: Option<u64>,
) -> Option<SideChange> {
    let samples = sides.map(|path| -> Vec<TailSample<'_>> {
        let each = path.longest.iter();
        each.map(|(longest, count, span_ns)| TailSample {
            longest,
            count: *count,
            span_ns: *span_ns,
        })
        .collect()
    });
    let Tail {
        bound_ns,
        slow,
        of,
        ns,
        chance,
    } = tail([&samples[0], &samples[1]], bound)?;
    // What differs from run to run is the share of the slow ones in each.
    let between = chance::runs([0, 1].map(|side: usize| {
        let each = samples[side].iter();
        each.filter_map(|one| {
            Some(one.longest.reaching(bound_ns)?.len() as f64 / one.count.max(1) as f64)
        })
        .collect()
    }));
    let shares = [0, 1].map(|side: usize| slow[side] as f64 / of[side].max(1) as f64);
    let [p99_a, p99_b] = sides.map(|path| duration::of_f64(path.total.percentile(0.99) as f64));
    let fell = if shares[0] == shares[1] {
        "were as many:"
    } else {
        rose(shares[0], shares[1])
    };
    Some(SideChange {
        what: format!("path {name} tail"),
        unit: ChangeUnit::Share,
        a: SideAmount::Number(shares[0]),
        b: SideAmount::Number(shares[1]),
        confidence: Some(1.0 - chance.max(between)),
        effect_ns: (ns[1] / basis.exposure(1) - ns[0] / basis.exposure(0)) * weight(name),
        worse: SideName::more(shares[0], shares[1]),
        text: format!(
            "{} that took {} or longer {fell} {} of {} to {} of {} (p99 {p99_a} to {p99_b}).",
            instances(name),
            duration::round(bound_ns),
            from(slow[0], shares[0] == shares[1]),
            of[0],
            slow[1],
            of[1],
        ),
        bound_ns: Some(bound_ns),
        level: Level::Whole,
        ..SideChange::default()
    })
}

fn from(count: u64, same: bool) -> String {
    if same {
        count.to_string()
    } else {
        format!("from {count}")
    }
}

/// The median of a duration.
struct Quantile<'a> {
    what: String,
    words: String,
    level: Level,
    /// Whether the path has one instance on each side.
    alone: bool,
    stats: [&'a Stats; 2],
    design: f64,
}

/// What share of durations a median exceeds.
const MEDIAN: f64 = 0.5;

impl Quantile<'_> {
    fn change(&self, basis: &Basis<'_>, path: &str) -> SideChange {
        let [a, b] = self.stats;
        let [at_a, at_b] = self.stats.map(|stats| stats.percentile(MEDIAN) as f64);
        // Single instances can be reported, and not trusted.
        let single = self.alone && a.count() == 1 && b.count() == 1;
        let confidence = (!single).then(|| {
            let within = chance::quantiles(a, b, MEDIAN, self.design);
            1.0 - within.max(self.between(basis, path))
        });
        let rate = |side: usize| self.stats[side].count() as f64 / basis.exposure(side);
        let often = rate(0).min(rate(1));
        let note = if single {
            "; one instance on each side"
        } else {
            ""
        };
        SideChange {
            what: format!("{} p50", self.what),
            unit: ChangeUnit::Nanoseconds,
            a: SideAmount::Number(at_a),
            b: SideAmount::Number(at_b),
            confidence,
            effect_ns: (at_b - at_a) * often * weight(path),
            worse: SideName::more(at_a, at_b),
            text: format!(
                "{} went from {} to {} (p50, {}{note}).",
                self.words,
                duration::of_f64(at_a),
                duration::of_f64(at_b),
                change(at_a, at_b)
            ),
            level: self.level,
            few: !single && a.count().min(b.count()) < FEW,
            ..SideChange::default()
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
            .map(|stats| stats.percentile(MEDIAN) as f64)
            .collect()
        }))
    }
}

/// By what kind of thread instances were.
fn groups(
    basis: &Basis<'_>,
    name: &str,
    sides: [&PathOfSide; 2],
    design: f64,
    out: &mut Vec<SideChange>,
) {
    let Some(by) = sides[0].by.or(sides[1].by) else {
        return;
    };
    let most = |path: &PathOfSide| {
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
    let all = sides.map(|path| {
        path.groups
            .values()
            .map(Stats::count)
            .fold(0u64, u64::saturating_add)
    });
    let of = |side: usize, label: &str| {
        let count = sides[side].groups.get(label).map_or(0, Stats::count);
        (count as f64, all[side] as f64)
    };
    let shares = [of(0, &label_a), of(1, &label_b)].map(|(part, whole)| part / whole.max(1.0));
    // Where neither side has the other's kind, it is no matter of chance.
    let mixed = of(0, &label_b).0 > 0.0 || of(1, &label_a).0 > 0.0;
    let confidence = mixed.then(|| 1.0 - chance::shares(of(0, &label_a), of(1, &label_a), design));
    let [a, b] = [0, 1].map(|side: usize| counted(all[side], "instance", "instances"));
    let close = (p50_b as f64 - p50_a as f64).abs() < 0.1 * p50_a.max(p50_b) as f64;
    // All of it goes another way now: that is more than by how much the median changed.
    let whole = [0, 1].map(|side: usize| {
        let groups = sides[side].groups.values();
        groups.map(|stats| stats.total() as f64).sum::<f64>() / basis.exposure(side)
    });
    let sign = if p50_b < p50_a { -1.0 } else { 1.0 };
    out.push(SideChange {
        what: format!("path {name} {by}"),
        unit: ChangeUnit::Word,
        a: SideAmount::Word(label_a.clone()),
        b: SideAmount::Word(label_b.clone()),
        confidence,
        effect_ns: sign * whole[0].min(whole[1]),
        worse: SideName::more(p50_a as f64, p50_b as f64).filter(|_| !close),
        level: Level::Whole,
        text: format!(
            "The {by} moved from a {label_a} ({} of {a}) to a {label_b} ({} of {b}), and the loop went from {} to {} \
             (p50).",
            share::rough(shares[0]),
            share::rough(shares[1]),
            duration::of_f64(p50_a as f64),
            duration::of_f64(p50_b as f64)
        ),
        ..SideChange::default()
    });
}
