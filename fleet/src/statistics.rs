//! Statistics of many hosts: which of them are not like the others, without an alarm for every healthy one.
//!
//! Hosts' values have heavy tails, so that a mean with its standard deviation, or a normal distribution about a
//! median, calls hundreds of five hundred healthy hosts sick. What is used here was measured on made-up fleets
//! (`docs/fleet.md`, and the tests below): a scale that is shrunk towards that of all metrics, a null distribution
//! whose tails the fleet itself shows, and a bound for the share of false alarms (Benjamini and Hochberg, 1995).

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Hypergeometric, StudentsT};

/// The share of alarms that may be false.
pub(crate) const FALSE_SHARE: f64 = 0.01;
/// A value that differs by less matters to nobody, however sure that is.
pub(crate) const LEAST_EFFECT: f64 = 1.5;
/// Hosts that a group has at least before it says what is usual.
pub(crate) const LEAST_PEERS: usize = 8;
/// Values of days before that a group has at least before it is held against them alone.
const LEAST_PAST: usize = 100;
/// The median absolute deviation of a normal distribution, as a standard deviation.
const MAD_OF_NORMAL: f64 = 1.4826;
/// As many normal values would give a standard deviation as exact as this share of them gives (Rousseeuw and Croux,
/// 1993).
const MAD_EFFICIENCY: f64 = 0.37;
/// As many hosts as the scale of all metrics counts for.
const SHRINK: f64 = 10.0;
/// Degrees of freedom that are tried for the null distribution: from heavy tails to nearly normal ones.
const FREEDOM: [f64; 14] = [
    2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0,
];
/// Where the null distribution's tails are looked at.
const QUANTILES: [f64; 3] = [0.80, 0.90, 0.95];

/// Returns the middle of some values; `None` of none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the value below which this share of all lies, between neighbours in proportion.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut all: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    let at = share * all.len().checked_sub(1)? as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    if low >= all.len() {
        return None;
    }
    let (_, below, rest) = all.select_nth_unstable_by(low, f64::total_cmp);
    let above = rest.iter().copied().min_by(f64::total_cmp);
    Some(*below + part * (above.unwrap_or(*below) - *below))
}

/// Returns how far values lie from their middle, as a standard deviation would say of normal ones.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(MAD_OF_NORMAL * median(&distances)?)
}

/// Returns the scale of each of some groups of values. One with few values leans on those of all others; `None` of one
/// that has none, or where no group has a spread.
pub(crate) fn shrunk_scales(groups: &[Vec<f64>]) -> Vec<Option<f64>> {
    let own: Vec<Option<f64>> = groups
        .iter()
        .map(|values| spread(values).filter(|scale| *scale > 0.0))
        .collect();
    let logs: Vec<f64> = own.iter().flatten().map(|scale| scale.ln()).collect();
    let pooled = median(&logs);
    let scales = groups.iter().zip(own);
    scales
        .map(|(values, own)| {
            let pooled = pooled?;
            let count = values.len() as f64;
            let weight = count / (count + SHRINK);
            // A group all of whose values are alike has the scale of the others.
            let own = own.map_or(pooled, f64::ln);
            (!values.is_empty()).then(|| (weight * own + (1.0 - weight) * pooled).exp())
        })
        .collect()
}

/// What scores are where nothing is wrong: Student's distribution, as wide as the bulk of the scores says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NullDistribution {
    freedom: f64,
    /// The middle of all scores' sizes.
    middle: f64,
}

impl NullDistribution {
    /// Learns it from all scores: the bulk of them is healthy. `None` where there are too few.
    pub(crate) fn of(scores: &[f64]) -> Option<NullDistribution> {
        let sizes: Vec<f64> = scores.iter().map(|score| score.abs()).collect();
        let middle = median(&sizes).filter(|middle| *middle > 0.0)?;
        let mut seen = [0.0; QUANTILES.len()];
        for (seen, share) in seen.iter_mut().zip(QUANTILES) {
            *seen = quantile(&sizes, share)? / middle;
        }
        let mut best: Option<(f64, f64)> = None;
        for freedom in FREEDOM {
            let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
            let of = |share: f64| student.inverse_cdf(0.5 + share / 2.0);
            let mut distance = 0.0;
            for (seen, share) in seen.iter().zip(QUANTILES) {
                distance += (seen / (of(share) / of(0.5))).ln().powi(2);
            }
            if best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, freedom));
            }
        }
        let (_, freedom) = best?;
        Some(NullDistribution { freedom, middle })
    }

    /// Returns how often a score of a group of so many hosts is as far from zero as each of these, or farther, where
    /// nothing is wrong. The group's scale is an estimate itself, which makes the tails heavier than the bulk shows.
    pub(crate) fn p_values<'s>(
        &self,
        hosts: usize,
        scores: impl Iterator<Item = f64> + 's,
    ) -> impl Iterator<Item = f64> + 's {
        let of_scale = MAD_EFFICIENCY * (hosts as f64 + SHRINK);
        let student = StudentsT::new(0.0, 1.0, self.freedom.min(of_scale)).ok();
        let student = student.map(|one| (one, self.middle / one.inverse_cdf(0.75)));
        scores.map(move |score| match student {
            Some((student, width)) => 2.0 * student.sf(score.abs() / width),
            None => 1.0,
        })
    }
}

/// Returns which of these may be called alarms, so that of all that are called so no more than [`FALSE_SHARE`] are
/// false.
pub(crate) fn alarms(p_values: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    let p = |at: &usize| p_values.get(*at).copied().unwrap_or(1.0);
    order.sort_by(|one, other| p(one).total_cmp(&p(other)));
    let count = order.len() as f64;
    let below = |rank: usize, at: &usize| p(at) <= FALSE_SHARE * (rank + 1) as f64 / count;
    let last = order
        .iter()
        .enumerate()
        .filter(|(rank, at)| below(*rank, at))
        .map(|(rank, _)| rank)
        .max();
    let mut out = vec![false; p_values.len()];
    for at in order.iter().take(last.map_or(0, |last| last + 1)) {
        if let Some(flag) = out.get_mut(*at) {
            *flag = true;
        }
    }
    out
}

/// Returns how likely so many of some coins, or more, fall to one side, whichever.
pub(crate) fn sign_test(ups: u64, all: u64) -> f64 {
    let most = ups.max(all.saturating_sub(ups));
    match (Binomial::new(0.5, all), most.checked_sub(1)) {
        (Ok(coins), Some(less)) => (2.0 * coins.sf(less)).min(1.0),
        _ => 1.0,
    }
}

/// Returns how likely it is that so many of the sick or more have something that so many of all have, if being sick had
/// nothing to do with it (Fisher's exact test, one side).
pub(crate) fn shared_by_chance(sick_with: u64, sick: u64, with: u64, all: u64) -> f64 {
    match (
        Hypergeometric::new(all, with, sick),
        sick_with.checked_sub(1),
    ) {
        (Ok(draws), Some(less)) => draws.sf(less).min(1.0),
        _ => 1.0,
    }
}

/// Returns the bounds within which a share lies that was so often seen, with 95 % confidence (Wilson, 1927).
pub(crate) fn share_bounds(seen: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, z) = (all as f64, 1.959_964);
    let share = seen as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// One value of a host that is held against those of its peers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestedValue {
    /// The host's place in the list.
    pub(crate) host: usize,
    /// The logarithm of the value, or of the ratio of two.
    pub(crate) log: f64,
}

/// A value that stands out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outstanding {
    /// Which group of values.
    pub(crate) group: usize,
    /// Whose.
    pub(crate) host: usize,
    /// How many times the peers' middle it is.
    pub(crate) ratio: f64,
    /// How often that comes by chance.
    pub(crate) p_value: f64,
}

/// Returns the values that stand out among their peers, each group being one metric of one group of peers. Groups that
/// are too small say nothing. `past` has for each group what such values were where nothing was asked, about their
/// middle: where there are enough of them, they are what the group is held against, and elsewhere all groups' values.
pub(crate) fn outstanding(groups: &[Vec<TestedValue>], past: &[Vec<f64>]) -> Vec<Outstanding> {
    let logs: Vec<Vec<f64>> = groups
        .iter()
        .map(|group| match group.len() >= LEAST_PEERS {
            true => group.iter().map(|one| one.log).collect(),
            false => Vec::new(),
        })
        .collect();
    let mut scales = shrunk_scales(&logs);
    let mut own: Vec<Option<NullDistribution>> = vec![None; groups.len()];
    for ((past, scale), own) in past.iter().zip(&mut scales).zip(&mut own) {
        let enough = past.len() >= LEAST_PAST && scale.is_some();
        if let Some(of_past) = spread(past).filter(|of_past| enough && *of_past > 0.0) {
            // Of many values it is exact, and a group of today that is alike by chance is not believed.
            let scores: Vec<f64> = past.iter().map(|log| log / of_past).collect();
            *own = NullDistribution::of(&scores);
            *scale = own.map_or(*scale, |_| Some(of_past));
        }
    }
    let mut tested: Vec<(Outstanding, f64)> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let middle = logs.get(number).and_then(|logs| median(logs));
        let scale = scales.get(number).copied().flatten();
        let (Some(middle), Some(scale)) = (middle, scale) else {
            continue;
        };
        for value in group {
            let away = value.log - middle;
            let one = Outstanding {
                group: number,
                host: value.host,
                ratio: away.exp(),
                p_value: 1.0,
            };
            tested.push((one, away / scale));
        }
    }
    let scores: Vec<f64> = tested.iter().map(|(_, score)| *score).collect();
    let Some(null) = NullDistribution::of(&scores) else {
        return Vec::new();
    };
    for of_group in tested.chunk_by_mut(|(one, _), (other, _)| one.group == other.group) {
        let hosts = of_group.len();
        let group = of_group.first().map_or(0, |(one, _)| one.group);
        let own = own.get(group).copied().flatten();
        let values = match own {
            Some(_) => past.get(group).map_or(hosts, Vec::len),
            None => hosts,
        };
        let scores: Vec<f64> = of_group.iter().map(|(_, score)| *score).collect();
        let p_values = own.unwrap_or(null).p_values(values, scores.into_iter());
        for ((one, _), p_value) in of_group.iter_mut().zip(p_values) {
            one.p_value = p_value;
        }
    }
    let p_values: Vec<f64> = tested.iter().map(|(one, _)| one.p_value).collect();
    let alarms = alarms(&p_values);
    let tested = tested.into_iter().zip(alarms);
    let mut out: Vec<Outstanding> = tested
        .filter(|((one, _), alarm)| *alarm && one.ratio.ln().abs() >= LEAST_EFFECT.ln())
        .map(|((one, _), _)| one)
        .collect();
    out.sort_by(|one, other| one.p_value.total_cmp(&other.p_value));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_numbers::MadeNumbers;

    /// A fleet of so many hosts with 20 metrics, whose tails are heavy; some values are planted.
    fn fleet(
        numbers: &mut MadeNumbers,
        hosts: usize,
        freedom: f64,
        planted: &[(usize, usize)],
        ratio: f64,
    ) -> Vec<Vec<TestedValue>> {
        (0..20)
            .map(|metric| {
                (0..hosts)
                    .map(|host| {
                        let is_planted = planted.contains(&(metric, host));
                        let more = if is_planted { ratio.ln() } else { 0.0 };
                        TestedValue {
                            host,
                            log: 0.2 * numbers.student(freedom) + more,
                        }
                    })
                    .collect()
            })
            .collect()
    }

    /// Sixty healthy fleets have one alarm at most, those with normal tails and those with heavy ones.
    #[test]
    fn healthy_fleets_are_left_alone() {
        for seed in 1..=3 {
            let mut numbers = MadeNumbers(seed);
            let mut alarms = Vec::new();
            for number in 0..60 {
                let hosts = [12, 40, 100][number % 3];
                let freedom = [4.0, 100.0][number % 2];
                let found = outstanding(&fleet(&mut numbers, hosts, freedom, &[], 1.0), &[]);
                alarms.extend(
                    found
                        .iter()
                        .map(|one| (hosts, freedom, one.ratio, one.p_value)),
                );
            }
            assert!(
                alarms.len() <= 1,
                "seed {seed}, in 60 healthy fleets: {alarms:?}"
            );
        }
    }

    /// What is sick is found where hosts are alike, and next to nothing besides.
    #[test]
    fn sick_hosts_are_found() {
        let mut numbers = MadeNumbers(2);
        let planted = [(0, 3), (7, 11), (19, 29)];
        let mut wrong = 0;
        for _ in 0..10 {
            let found = outstanding(&fleet(&mut numbers, 100, 100.0, &planted, 6.0), &[]);
            for place in planted {
                let one = found.iter().find(|one| (one.group, one.host) == place);
                let ratio = one.expect("it is found").ratio;
                assert!((3.0..12.0).contains(&ratio), "{ratio}");
            }
            wrong += found.len() - planted.len();
        }
        // Of 33 alarms one may be false by what is promised, as of any hundred.
        assert!(wrong <= 1, "{wrong} false alarms beside 30 that are right");
        // Few peers say nothing.
        assert!(
            outstanding(
                &fleet(&mut numbers, LEAST_PEERS - 1, 100.0, &[(0, 0)], 100.0),
                &[]
            )
            .is_empty()
        );
    }

    /// By R 4: `phyper(3, 5, 15, 6, lower = FALSE)`, `2 * pbinom(1, 10, 0.5)`, `prop.test(3, 20, correct =
    /// FALSE)$conf.int`.
    #[test]
    fn tests_are_those_of_the_books() {
        let close = |ours: f64, theirs: f64| {
            assert!((ours - theirs).abs() < 5e-4, "{ours} is not {theirs}")
        };
        close(shared_by_chance(4, 6, 5, 20), 0.013_93);
        close(sign_test(9, 10), 0.021_48);
        close(sign_test(1, 10), 0.021_48);
        let (low, high) = share_bounds(3, 20);
        close(low, 0.052_4);
        close(high, 0.360_4);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(alarms(&[0.001, 0.5, 0.02]), [true, false, false]);
    }
}
