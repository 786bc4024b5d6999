//! Which instances are slow, and what sets them apart.

use serde::Serialize;

use crate::tally::{PathTally, TotalBucket};
use crate::traits::InstanceTrait;

/// The slow ones are no fewer than this, or nothing is said of them.
const MIN_SLOW: u64 = 5;
/// Of fewer instances only a gap shows slow ones.
const FEW: u64 = 20;
/// By the 95th percentile at most one instance in so many is slow.
const MOST_SLOW: u64 = 10;
/// At most so many reasons are given.
const MAX_REASONS: usize = 6;
/// A reason has to explain this share of what there is to explain.
const MIN_GAIN: f64 = 0.05;
/// How probable it may be that a reason is one by chance, among all that were tried.
const MAX_CHANCE: f64 = 0.01;

/// How the threshold was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThresholdOrigin {
    /// It was given.
    Given,
    /// The widest gap in the distribution of totals.
    Gap,
    /// The 95th percentile: there is no gap.
    P95,
}

/// Slow instances against the others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SlowSplit {
    pub found: ThresholdOrigin,
    pub threshold_ns: u64,
    pub slow: TotalBucket,
    pub fast: TotalBucket,
}

/// Something that slow instances have more, or less, often than the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlowReason {
    pub number: u32,
    pub what: InstanceTrait,
    /// How many slow ones have it, and how many of the others.
    pub slow: u64,
    pub fast: u64,
    pub gain: f64,
    /// Whether slow ones have it more often.
    pub more: bool,
}

/// Parts slow instances from fast ones.
pub(crate) fn split(tally: &PathTally) -> Option<SlowSplit> {
    let (found, threshold_ns) = match tally.slow_from {
        Some(ns) => (ThresholdOrigin::Given, ns),
        None => match gap(tally) {
            Some(ns) => (ThresholdOrigin::Gap, ns),
            None => (ThresholdOrigin::P95, p95(tally)?),
        },
    };
    let mut split = SlowSplit {
        found,
        threshold_ns,
        slow: TotalBucket::default(),
        fast: TotalBucket::default(),
    };
    for bucket in tally.buckets() {
        // A bucket is of one side: thresholds lie between them.
        if bucket.min_ns >= threshold_ns {
            split.slow.merge(bucket);
        } else {
            split.fast.merge(bucket);
        }
    }
    Some(split)
}

/// Finds the widest gap, as a ratio, among totals above the median, that leaves neither too few slow ones nor too
/// many to be called so.
fn gap(tally: &PathTally) -> Option<u64> {
    let least = match tally.count {
        count if count < FEW => 1,
        count => MIN_SLOW.max(count / 100),
    };
    let mut above = tally.count;
    let mut before: Option<u64> = None;
    let mut best: Option<(f64, u64)> = None;
    for bucket in tally.buckets() {
        if let Some(max_ns) = before
            && above >= least
            && above * 3 <= tally.count
        {
            let ratio = bucket.min_ns as f64 / max_ns.max(1) as f64;
            if ratio >= 2.0 && best.is_none_or(|(widest, _)| ratio > widest) {
                best = Some((ratio, bucket.min_ns));
            }
        }
        above -= bucket.count;
        before = Some(bucket.max_ns);
    }
    best.map(|(_, ns)| ns)
}

/// The lowest total of the bucket that holds the 95th percentile; of the next one above it, where that bucket holds
/// more than are to be called slow: what most instances take is not slow, however alike they are.
fn p95(tally: &PathTally) -> Option<u64> {
    if tally.count < FEW {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a count, rounded, is a count"
    )]
    let least = (tally.count as f64 * 0.05).ceil() as u64;
    let mut above = 0;
    let mut slower = None;
    for bucket in tally.buckets().rev() {
        above += bucket.count;
        if above * MOST_SLOW > tally.count {
            return slower;
        }
        slower = Some(bucket.min_ns).filter(|_| above >= MIN_SLOW.min(least));
        if above >= least {
            return slower;
        }
    }
    None
}

/// Finds what sets the slow ones apart, most telling first.
pub(crate) fn reasons(tally: &PathTally, split: &SlowSplit) -> Vec<SlowReason> {
    let (slow, fast) = (split.slow.count, split.fast.count);
    if slow < MIN_SLOW || fast < MIN_SLOW {
        return Vec::new();
    }
    let whole = entropy(slow, fast);
    let tried = tally.traits.len().max(1) as f64;
    let mut best: Vec<SlowReason> = Vec::new();
    for (what, number) in tally.traits.iter().zip(0u32..) {
        let (a, b) = (split.slow.with(number), split.fast.with(number));
        let with = a + b;
        let without = slow + fast - with;
        if with == 0 || without == 0 {
            continue;
        }
        let n = (slow + fast) as f64;
        let gain = whole
            - with as f64 / n * entropy(a, b)
            - without as f64 / n * entropy(slow - a, fast - b);
        let share = |part: u64, all: u64| part as f64 / all as f64;
        let apart = (share(a, slow) - share(b, fast)).abs();
        if gain < whole * MIN_GAIN || apart < 0.2 || chance(a, b, slow, fast) * tried > MAX_CHANCE {
            continue;
        }
        let reason = SlowReason {
            number,
            what: *what,
            slow: a,
            fast: b,
            gain,
            more: share(a, slow) > share(b, fast),
        };
        // Of those that say nearly the same, the one that says it best.
        match best
            .iter_mut()
            .find(|known| family(&known.what) == family(what))
        {
            Some(known) if better(&reason, known) => *known = reason,
            Some(_) => {}
            None => best.push(reason),
        }
    }
    if best.iter().any(|reason| reason.more) {
        best.retain(|reason| reason.more);
    }
    // An exit's reason says less than the access that made it.
    let gain_of = |best: &[SlowReason], is: fn(&InstanceTrait) -> bool| {
        let all = best.iter().filter(|reason| is(&reason.what));
        all.map(|reason| reason.gain).fold(0.0, f64::max)
    };
    let accesses = gain_of(&best, |what| matches!(what, InstanceTrait::Accesses(..)));
    best.retain(|reason| {
        !matches!(reason.what, InstanceTrait::Exits(..)) || reason.gain > accesses * 1.1
    });
    best.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.number.cmp(&b.number)));
    best.truncate(MAX_REASONS);
    best
}

/// What slow instances have comes before what they do not have.
fn better(a: &SlowReason, b: &SlowReason) -> bool {
    match (a.more, b.more) {
        (true, false) => true,
        (false, true) => false,
        _ => a.gain > b.gain,
    }
}

/// Traits of one family exclude or imply each other.
fn family(what: &InstanceTrait) -> (u8, u64) {
    use std::hash::{Hash, Hasher};
    let of = |value: &dyn Fn(&mut rustc_hash::FxHasher)| {
        let mut hasher = rustc_hash::FxHasher::default();
        value(&mut hasher);
        hasher.finish()
    };
    match what {
        InstanceTrait::Chain(_) | InstanceTrait::Others => (0, 0),
        InstanceTrait::Reached(..) => (1, 0),
        InstanceTrait::Longest(..) => (2, 0),
        InstanceTrait::Coalesced => (3, 0),
        InstanceTrait::Vector(_) => (4, 0),
        InstanceTrait::Address(_) => (5, 0),
        InstanceTrait::Vcpu(_) | InstanceTrait::Cpu(_) => (6, 0),
        InstanceTrait::For(..) => (7, 0),
        InstanceTrait::Was(_) => (8, 0),
        InstanceTrait::Busy => (19, 0),
        InstanceTrait::BusyWith(_) => (18, 0),
        InstanceTrait::Exits(..) => (9, 0),
        InstanceTrait::Accesses(..) => (10, 0),
        InstanceTrait::Beside(slot) => (11, of(&|h| slot.hash(h))),
        InstanceTrait::HostIrq(..) => (12, 0),
        InstanceTrait::Migrated => (13, 0),
        InstanceTrait::Polled(_) => (14, 0),
        InstanceTrait::Behind(slot) => (11, of(&|h| slot.hash(h))),
        InstanceTrait::Waker(_) => (15, 0),
        InstanceTrait::BackEnd(_) => (16, 0),
        InstanceTrait::BackEndWas(_) => (17, 0),
        InstanceTrait::BackEndThread(_) => (16, 0),
        InstanceTrait::NodeDistance(_) => (20, 0),
        InstanceTrait::Raiser(..) => (4, 0),
    }
}

/// Entropy of two counts, in bits.
fn entropy(a: u64, b: u64) -> f64 {
    let n = (a + b) as f64;
    [a, b]
        .into_iter()
        .filter(|&part| part > 0)
        .map(|part| {
            let p = part as f64 / n;
            -p * p.log2()
        })
        .sum()
}

/// How probable shares that differ so much are by chance: Fisher's exact test, both tails as twice the nearer.
fn chance(a: u64, b: u64, slow: u64, fast: u64) -> f64 {
    let with = a + b;
    let all = slow + fast;
    let total = ln_choose(all, with);
    let p = |k: u64| (ln_choose(slow, k) + ln_choose(fast, with - k) - total).exp();
    let least = with.saturating_sub(fast);
    let most = with.min(slow);
    // The tail that holds `a`: terms fall fast, so few count.
    let expected = with as f64 * slow as f64 / all as f64;
    let mut sum = 0.0;
    if a as f64 >= expected {
        for k in a..=most {
            let term = p(k);
            sum += term;
            if term <= sum * 1e-12 {
                break;
            }
        }
    } else {
        for k in (least..=a).rev() {
            let term = p(k);
            sum += term;
            if term <= sum * 1e-12 {
                break;
            }
        }
    }
    (2.0 * sum).min(1.0)
}

fn ln_choose(n: u64, k: u64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Stirling's series, exact to eight digits from 10 on.
fn ln_factorial(n: u64) -> f64 {
    if n < 10 {
        return (2..=n).map(|i| (i as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x.powi(3))
        + 1.0 / (1260.0 * x.powi(5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReachedStep;

    /// Returns the path of instances that took so long.
    fn tally(totals: impl IntoIterator<Item = u64>) -> PathTally {
        let mut tally = PathTally::new(&crate::builtin("kick").expect("a path"));
        let step = |step: u8, time: u64| ReachedStep {
            step,
            machine: 0,
            time,
            cpu: 0,
            thread: 0,
            task: None,
            switch: false,
        };
        for total_ns in totals {
            tally.add(0, &[step(0, 1000), step(1, 1000 + total_ns)], 0, &[], &[]);
        }
        tally
    }

    #[test]
    fn what_most_instances_take_is_not_slow() {
        // A poll loop: most of them within one bucket of totals, none apart from the others.
        for spread in [1, 3, 100, 400, 5000] {
            let tally = tally((0..1000u64).map(|at| 7000 + at * 7919 % spread));
            if let Some(split) = split(&tally) {
                assert!(
                    split.slow.count * MOST_SLOW <= tally.count,
                    "{spread}: {split:?}"
                );
                assert!(split.slow.min_ns > tally.total.percentile(0.5), "{spread}");
            }
        }
        // All alike but the last ones, which are a tail of less than a twentieth.
        let with_tail = tally((0..1000u64).map(|at| if at < 970 { 7000 } else { 9000 + at }));
        let parted = split(&with_tail).expect("a tail");
        assert_eq!(
            (parted.found, parted.slow.count),
            (ThresholdOrigin::P95, 30)
        );
        assert!(split(&tally((0..1000).map(|_| 7000))).is_none());
    }

    #[test]
    fn chance_is_fishers() {
        // R: fisher.test(matrix(c(8,2,1,9),2), alternative="greater") is 0.002739; twice that here.
        assert!((chance(8, 1, 10, 10) - 2.0 * 0.002_739).abs() < 1e-5);
        assert!(chance(5, 50, 10, 100) > 0.99);
        assert!(chance(10, 0, 10, 10_000) < 1e-20);
        // Large counts neither overflow nor cost much.
        assert!(chance(500_000, 500_000, 1_000_000, 1_000_000) > 0.99);
        // Even where each term is too small for a number: a sum over all of them would not end.
        assert!(chance(1 << 40, 1, 1 << 50, 1 << 50) < 1e-20);
    }
}
