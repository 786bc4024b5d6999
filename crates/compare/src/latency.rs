//! Latency paths, their stages, and the back ends behind them.

use std::collections::BTreeMap;

use analysis::Picture;
use stats::Stats;

use crate::side::Pair;
use crate::words::{change, percent, time};
use crate::{Change, Unit, Value, chance};

/// One path over a side.
#[derive(Debug, Clone, Default)]
struct Path {
    total: Stats,
    stages: BTreeMap<String, Stats>,
    by: Option<&'static str>,
    groups: BTreeMap<String, Stats>,
}

fn paths(pictures: &[Picture]) -> BTreeMap<String, Path> {
    let mut out: BTreeMap<String, Path> = BTreeMap::new();
    let all = pictures.iter().flat_map(|picture| &picture.paths);
    for report in all.filter(|report| report.count > 0) {
        let path = out.entry(report.name.clone()).or_default();
        path.total.merge(&report.total);
        path.by = report.by;
        for stage in &report.stages {
            path.stages
                .entry(stage.name.clone())
                .or_default()
                .merge(&stage.stats);
        }
        for group in &report.groups {
            path.groups
                .entry(group.label.clone())
                .or_default()
                .merge(&group.stats);
        }
    }
    out
}

pub(crate) fn changes(pair: &Pair, a: &[Picture], b: &[Picture], out: &mut Vec<Change>) {
    let (paths_a, paths_b) = (paths(a), paths(b));
    for (name, path_a) in &paths_a {
        let Some(path_b) = paths_b.get(name) else {
            continue;
        };
        quantile(
            pair,
            &format!("path {name}"),
            &format!("The path {name}"),
            0.5,
            path_a,
            path_b,
            out,
        );
        quantile(
            pair,
            &format!("path {name}"),
            &format!("The path {name}"),
            0.99,
            path_a,
            path_b,
            out,
        );
        for (stage, stats_a) in &path_a.stages {
            let Some(stats_b) = path_b.stages.get(stage) else {
                continue;
            };
            let of = |stats: &Stats| Path {
                total: stats.clone(),
                ..Path::default()
            };
            let what = format!("path {name}, {stage}");
            let words = format!("{name}, '{stage}'");
            quantile(pair, &what, &words, 0.5, &of(stats_a), &of(stats_b), out);
        }
        groups(name, path_a, path_b, out);
    }
    for (name, here, a, b) in paths_a
        .iter()
        .filter(|(name, _)| !paths_b.contains_key(*name))
        .map(|(name, path)| (name, path, true, false))
        .chain(
            paths_b
                .iter()
                .filter(|(name, _)| !paths_a.contains_key(*name))
                .map(|(name, path)| (name, path, false, true)),
        )
    {
        let p50 = here.total.percentile(0.5) as f64;
        let there = |there: bool| {
            if there {
                Value::Number(p50)
            } else {
                Value::Absent
            }
        };
        let side = if a { "first" } else { "second" };
        out.push(Change {
            what: format!("path {name}"),
            unit: Unit::Nanoseconds,
            a: there(a),
            b: there(b),
            confidence: None,
            effect_ns: 0.0,
            per_work: Vec::new(),
            text: format!(
                "The path {name} is only in the {side}: {} of it, half of them within {}.",
                here.total.count(),
                time(p50)
            ),
        });
    }
}

/// One quantile of a duration.
fn quantile(
    pair: &Pair,
    what: &str,
    words: &str,
    share: f64,
    a: &Path,
    b: &Path,
    out: &mut Vec<Change>,
) {
    let (at_a, at_b) = (
        a.total.percentile(share) as f64,
        b.total.percentile(share) as f64,
    );
    let errors =
        chance::quantile_error(&a.total, share).zip(chance::quantile_error(&b.total, share));
    let label = if share == 0.5 { "p50" } else { "p99" };
    // Single instances can be told, and not trusted.
    let confidence = match errors {
        Some((error_a, error_b)) => Some(chance::confidence(at_b - at_a, error_a, error_b)),
        None if share == 0.5 && a.total.count() == 1 && b.total.count() == 1 => None,
        None => Some(0.0),
    };
    let rate = |path: &Path, per: f64| path.total.count() as f64 / per;
    let often = rate(a, pair.per_a()).min(rate(b, pair.per_b()));
    let single = if confidence.is_none() {
        " (one instance on each side)"
    } else {
        ""
    };
    // The 99th percentile is one in a hundred.
    let weight = if share == 0.5 { 1.0 } else { 0.02 };
    out.push(Change {
        what: format!("{what} {label}"),
        unit: Unit::Nanoseconds,
        a: Value::Number(at_a),
        b: Value::Number(at_b),
        confidence,
        effect_ns: (at_b - at_a) * often * weight,
        per_work: Vec::new(),
        text: format!(
            "{words} went from {} to {} ({label}, {}){single}.",
            time(at_a),
            time(at_b),
            change(at_a, at_b)
        ),
    });
}

/// By what kind of thread, or for what, instances were.
fn groups(name: &str, a: &Path, b: &Path, out: &mut Vec<Change>) {
    let Some(by) = a.by.or(b.by) else { return };
    let most = |path: &Path| {
        let groups = path.groups.iter().max_by_key(|(_, stats)| stats.count());
        let all: u64 = path.groups.values().map(Stats::count).sum();
        groups.map(|(label, stats)| {
            (
                label.clone(),
                stats.count() as f64 / all.max(1) as f64,
                stats.percentile(0.5),
            )
        })
    };
    let (Some((label_a, share_a, p50_a)), Some((label_b, share_b, p50_b))) = (most(a), most(b))
    else {
        return;
    };
    // Which access the exits were for mostly changes with the load, and the tables of exits tell of it.
    if label_a == label_b || by != "back end" {
        return;
    }
    out.push(Change {
        what: format!("path {name} {by}"),
        unit: Unit::Word,
        a: Value::Word(label_a.clone()),
        b: Value::Word(label_b.clone()),
        confidence: None,
        effect_ns: (p50_b as f64 - p50_a as f64) * a.total.count().min(b.total.count()) as f64,
        per_work: Vec::new(),
        text: format!(
            "The {by} moved from a {label_a} ({} of {} instances) to a {label_b} ({} of {}), and the loop went from {} to {}.",
            percent(share_a),
            a.total.count(),
            percent(share_b),
            b.total.count(),
            time(p50_a as f64),
            time(p50_b as f64)
        ),
    });
}
