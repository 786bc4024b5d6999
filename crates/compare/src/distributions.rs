//! Values by size, as bcc's tools and `bpftrace` print them: of a percentile it is known between which bounds it lies.
//! It changed where both sides' bounds have no value in common, and nobody knows by how much but for those bounds.
//!
//! The texts do not say what was measured: `usecs` is the heading of waits (`runqlat`) and of time on CPUs (`cpudist`)
//! alike. So no side is worse by a distribution.

use std::collections::BTreeMap;

use analysis::{DistributionBucket, Picture, PrintedDistribution};
use words::{duration, number, plural};

use crate::chance;
use crate::change::{ChangeUnit, SideChange};
use crate::side::{Pair, push, value};

/// What is compared of each distribution.
const PERCENTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")];

/// Distributions of one name on a side, added up.
type SideDistributions = BTreeMap<String, PrintedDistribution>;

fn of(pictures: &[Picture]) -> SideDistributions {
    let mut out = SideDistributions::new();
    for one in pictures.iter().flat_map(|picture| &picture.distributions) {
        match out.get_mut(&one.name) {
            Some(sum) => sum.add(one),
            None => {
                out.insert(one.name.clone(), one.clone());
            }
        }
    }
    out
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let [a, b] = pair.sides.map(of);
    if a.is_empty() || b.is_empty() {
        return;
    }
    let mut apart: Vec<&String> = a.keys().filter(|name| !b.contains_key(*name)).collect();
    apart.extend(b.keys().filter(|name| !a.contains_key(*name)));
    if !apart.is_empty() {
        notes.push(format!(
            "{} on one side alone, and not compared.",
            match apart.as_slice() {
                [one] => format!("The distribution {one} is"),
                many => format!("{} distributions are", many.len()),
            }
        ));
    }
    for (name, one) in &a {
        if let Some(other) = b.get(name) {
            for percentile in PERCENTILES {
                if let Some(change) = of_percentile(name, [one, other], percentile) {
                    push(out, change);
                }
            }
        }
    }
}

/// Compares the bounds of one percentile; `None` where a side has no value.
fn of_percentile(
    name: &str,
    both: [&PrintedDistribution; 2],
    (share, called): (f64, &str),
) -> Option<SideChange> {
    let [a, b] = [both[0].bucket_of(share)?, both[1].bucket_of(share)?];
    let unit_ns = both[0].unit_ns();
    let scale = unit_ns.unwrap_or(1) as f64;
    let confidence = match (before(a, b), before(b, a)) {
        (false, false) => 0.0,
        (true, _) => 1.0 - chance_of(both[0], a, both[1], b, share),
        (_, true) => 1.0 - chance_of(both[1], b, both[0], a, share),
    };
    let bound = |bucket: DistributionBucket| bucket.below.unwrap_or(bucket.from) as f64 * scale;
    let amount = |value: u64| match unit_ns {
        Some(_) => duration::of_f64(value as f64 * scale),
        None => number(value as f64),
    };
    let words = |bucket: DistributionBucket| match bucket.below {
        Some(below) => format!("between {} and {}", amount(bucket.from), amount(below)),
        None => format!("{} or more", amount(bucket.from)),
    };
    Some(SideChange {
        what: format!("distribution {name} {called}"),
        unit: match unit_ns {
            Some(_) => ChangeUnit::Nanoseconds,
            None => ChangeUnit::Number,
        },
        a: value(bound(a), true),
        b: value(bound(b), true),
        confidence: Some(confidence),
        text: format!(
            "{name}: the {called} lies {} and then {}, of {} and {}.",
            words(a),
            words(b),
            number(both[0].count() as f64),
            plural(both[1].count(), "value"),
        ),
        ..SideChange::default()
    })
}

/// Whether all of one range lies before all of another.
fn before(a: DistributionBucket, b: DistributionBucket) -> bool {
    a.below.is_some_and(|below| below <= b.from)
}

/// Returns the probability that a percentile lies in a range before another's by chance, by the shares of values that
/// lie between.
fn chance_of(
    less: &PrintedDistribution,
    of_less: DistributionBucket,
    more: &PrintedDistribution,
    of_more: DistributionBucket,
    share: f64,
) -> f64 {
    // How far the one's percentile is from the same rank of the other.
    let above = less.share_below(of_more.from) - share;
    let below = share - more.share_below(of_less.below.unwrap_or(u64::MAX));
    let counts = [less.count() as f64, more.count() as f64];
    chance::ranks(above.min(below), share, counts, chance::BURST)
}
