//! Metrics of hosts that changed, and of hosts that are unlike their peers.

use std::collections::BTreeMap;

use serde::Serialize;

use super::PeerGroups;
use super::data::FleetData;
use super::day_values::DayValues;
use crate::statistics::{
    FALSE_SHARE, LEAST_EFFECT, LEAST_PEERS, Outstanding, TestedValue, alarms, median, outstanding,
    sign_test, spread,
};

/// Days on which a host is unlike its peers before it is called an outlier.
const LASTING_DAYS: usize = 3;
/// A host that is as many spreads of its peers away on each of them is of another kind, be it sick or not.
const AWAY: f64 = 5.0;
/// Where more of a group are away than this, it is made of two kinds of hosts, and none of them is an outlier.
const MOST_AWAY: f64 = 0.2;
/// By how much a group's middle shifts at least before it is said.
const LEAST_SHIFT: f64 = 1.2;

/// A host of which a metric changed, beyond what it did for its peers.
#[derive(Debug, Serialize)]
pub(crate) struct ChangedHost {
    pub(crate) host: String,
    pub(crate) metric: String,
    pub(crate) peers: String,
    /// How many times its own middle of the days before, over the same of its peers.
    pub(crate) ratio: f64,
    pub(crate) p_value: f64,
}

/// A group of which a metric changed.
#[derive(Debug, Serialize)]
pub(crate) struct ShiftedGroup {
    pub(crate) peers: String,
    pub(crate) metric: String,
    /// The middle of the hosts' own ratios.
    pub(crate) ratio: f64,
    /// Hosts of which it grew, of how many.
    pub(crate) ups: u64,
    pub(crate) hosts: u64,
    pub(crate) p_value: f64,
}

/// A host that is unlike its peers on all of several days.
#[derive(Debug, Serialize)]
pub(crate) struct LastingOutlier {
    pub(crate) host: String,
    pub(crate) metric: String,
    pub(crate) peers: String,
    /// How many times the peers' middle it is: the middle of all days.
    pub(crate) ratio: f64,
    pub(crate) days: usize,
}

/// Returns how a host's value differs from its own middle of the days before, as a logarithm.
fn change(values: &DayValues, host: &str) -> Option<f64> {
    let (before, now) = values.of(host);
    let before: Vec<f64> = before.iter().copied().flatten().collect();
    Some(now? - median(&before)?)
}

/// A change of a metric that is often nearly as far away, by this share of its logarithm, is none.
const NEARLY: f64 = 0.7;

/// Returns whether peers changed as far the other way on the same day, half as many or more as this way: then the metric
/// is one that goes up and down.
fn goes_back(of_day: &[TestedValue], found: &Outstanding) -> bool {
    let logs: Vec<f64> = of_day.iter().map(|one| one.log).collect();
    let Some(middle) = median(&logs) else {
        return false;
    };
    let least = NEARLY * found.ratio.ln().abs();
    let far = logs.iter().filter(|log| (**log - middle).abs() >= least);
    let (ups, downs): (Vec<f64>, Vec<f64>) = far.partition(|log| **log > middle);
    let (same, other) = match found.ratio > 1.0 {
        true => (ups.len(), downs.len()),
        false => (downs.len(), ups.len()),
    };
    other > 0 && 2 * other >= same
}

/// Returns whether the metric has been nearly as far away on days before, of peers, and not just once in a hundred: some
/// are far away now and then on any healthy host (the 99th percentile of a path that has two ways).
fn is_usual(past: &[(usize, f64)], found: &Outstanding) -> bool {
    let least = NEARLY * found.ratio.ln().abs();
    let of_peers = || past.iter().filter(|(host, _)| *host != found.host);
    let far = of_peers().filter(|(_, log)| log.abs() >= least).count();
    far as f64 > FALSE_SHARE * of_peers().count() as f64
}

/// Returns what the same question would have found on each of so many days before: by host, how far the value was from
/// the middle of the host's other days, beyond what it was for its peers.
fn past_changes(days: usize, values: &DayValues, hosts: &[String]) -> Vec<(usize, f64)> {
    let all: Vec<&[Option<f64>]> = hosts.iter().map(|host| values.of(host).0).collect();
    let mut out = Vec::new();
    let mut others = Vec::new();
    for day in 0..days {
        let begin = out.len();
        for (host, days) in all.iter().enumerate() {
            others.clear();
            let days_of = days.iter().enumerate();
            others.extend(
                days_of
                    .filter(|(at, _)| *at != day)
                    .filter_map(|(_, one)| *one),
            );
            if let (Some(Some(value)), Some(middle)) = (days.get(day), median(&others)) {
                out.push((host, value - middle));
            }
        }
        let of_day = out.get_mut(begin..).unwrap_or_default();
        let logs: Vec<f64> = of_day.iter().map(|(_, log)| *log).collect();
        let middle = median(&logs).unwrap_or(0.0);
        for (_, log) in of_day {
            *log -= middle;
        }
    }
    out
}

/// Returns the hosts that changed.
pub(crate) fn news(data: &FleetData, groups: &PeerGroups) -> Vec<ChangedHost> {
    let (mut named, mut tested, mut past) = (Vec::new(), Vec::new(), Vec::new());
    for (metric, values) in &data.metrics {
        for (peers, hosts) in groups {
            let changes = hosts.iter().enumerate();
            let changes = changes.filter_map(|(host, name)| {
                let log = change(values, name)?;
                Some(TestedValue { host, log })
            });
            tested.push(changes.collect());
            named.push((metric, peers, hosts));
            past.push(past_changes(data.before.len(), values, hosts));
        }
    }
    let logs = |of_group: &Vec<(usize, f64)>| of_group.iter().map(|(_, log)| *log).collect();
    let past_logs: Vec<Vec<f64>> = past.iter().map(logs).collect();
    let found = outstanding(&tested, &past_logs).into_iter();
    found
        .filter(|one| {
            let of_day = tested.get(one.group).map_or(&[][..], Vec::as_slice);
            let before = past.get(one.group).map_or(&[][..], Vec::as_slice);
            !goes_back(of_day, one) && !is_usual(before, one)
        })
        .filter_map(|one| {
            let (metric, peers, hosts) = named.get(one.group)?;
            Some(ChangedHost {
                host: hosts.get(one.host)?.clone(),
                metric: (*metric).clone(),
                peers: (*peers).clone(),
                ratio: one.ratio,
                p_value: one.p_value,
            })
        })
        .collect()
}

/// Returns the groups that changed as a whole.
pub(crate) fn shifts(data: &FleetData, groups: &PeerGroups) -> Vec<ShiftedGroup> {
    let mut all = Vec::new();
    for (metric, values) in &data.metrics {
        for (peers, hosts) in groups {
            let changes: Vec<f64> = hosts
                .iter()
                .filter_map(|host| change(values, host))
                .filter(|change| *change != 0.0)
                .collect();
            if changes.len() < LEAST_PEERS {
                continue;
            }
            let ups = changes.iter().filter(|change| **change > 0.0).count() as u64;
            all.push(ShiftedGroup {
                peers: peers.clone(),
                metric: metric.clone(),
                ratio: median(&changes).unwrap_or(0.0).exp(),
                ups,
                hosts: changes.len() as u64,
                p_value: sign_test(ups, changes.len() as u64),
            });
        }
    }
    let p_values: Vec<f64> = all.iter().map(|one| one.p_value).collect();
    let alarms = alarms(&p_values);
    let all = all.into_iter().zip(alarms);
    let mut found: Vec<ShiftedGroup> = all
        .filter(|(one, alarm)| *alarm && one.ratio.ln().abs() >= LEAST_SHIFT.ln())
        .map(|(one, _)| one)
        .collect();
    found.sort_by(|one, other| other.ratio.ln().abs().total_cmp(&one.ratio.ln().abs()));
    found
}

/// How far a host's value is from the middle of its peers' on a day.
#[derive(Clone, Copy)]
struct DayDistance {
    /// As a logarithm.
    log: f64,
    /// Whether that is far for this day: many spreads of all peers.
    is_far: bool,
}

/// Returns how far each host's values are from the middle of its peers', day by day: those of hosts of which there are
/// days enough.
fn distances<'h>(
    days: usize,
    values: &DayValues,
    hosts: &'h [String],
) -> Vec<(&'h String, Vec<DayDistance>)> {
    let mut out: BTreeMap<&String, Vec<DayDistance>> = BTreeMap::new();
    for day in 0..days {
        let value = |host: &String| {
            let (before, now) = values.of(host);
            before.get(day).copied().unwrap_or(now)
        };
        let of_day: Vec<(&String, f64)> = hosts
            .iter()
            .filter_map(|host| Some((host, value(host)?)))
            .collect();
        let logs: Vec<f64> = of_day.iter().map(|(_, log)| *log).collect();
        let (Some(middle), Some(spread)) = (median(&logs), spread(&logs)) else {
            continue;
        };
        if logs.len() < LEAST_PEERS {
            continue;
        }
        for (host, log) in of_day {
            let log = log - middle;
            let is_far = log.abs() > AWAY * spread && log.abs() >= LEAST_EFFECT.ln();
            out.entry(host)
                .or_default()
                .push(DayDistance { log, is_far });
        }
    }
    out.retain(|_, of_host| of_host.len() >= LASTING_DAYS);
    out.into_iter().collect()
}

/// Returns whether a host was on one side of its peers on all days.
fn is_one_way(days: &[DayDistance], least: f64) -> bool {
    days.iter().all(|day| day.log >= least) || days.iter().all(|day| day.log <= -least)
}

/// Returns the hosts that are unlike their peers on all days, three at least, and what is to be said of groups that are
/// no groups. Of a single day heavy tails and the hour say more than the host; the middle of several says what lasts.
pub(crate) fn outliers(
    data: &FleetData,
    groups: &PeerGroups,
) -> (Vec<LastingOutlier>, Vec<String>) {
    let days = data.before.len() + 1;
    let (mut named, mut tested, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for (metric, values) in &data.metrics {
        for (peers, hosts) in groups {
            let of_hosts = distances(days, values, hosts);
            let far = of_hosts
                .iter()
                .filter(|(_, days)| days.iter().all(|day| day.is_far) && is_one_way(days, 0.0));
            let far = far.count();
            if far as f64 > MOST_AWAY * hosts.len() as f64 {
                apart.push(format!(
                    "{peers}: of {} hosts {far} have another '{metric}' than the others, day by day: --peers may \
                     separate them.",
                    hosts.len(),
                ));
                continue;
            }
            let middles = of_hosts.iter().enumerate().filter_map(|(host, (_, days))| {
                let logs: Vec<f64> = days.iter().map(|day| day.log).collect();
                let log = median(&logs)?;
                Some(TestedValue { host, log })
            });
            tested.push(middles.collect());
            named.push((metric, peers, of_hosts));
        }
    }
    let mut found = Vec::new();
    for one in outstanding(&tested, &[]) {
        let Some((metric, peers, of_hosts)) = named.get(one.group) else {
            continue;
        };
        let Some((host, days)) = of_hosts.get(one.host) else {
            continue;
        };
        if is_one_way(days, LEAST_EFFECT.ln()) {
            found.push(LastingOutlier {
                host: (*host).clone(),
                metric: (*metric).clone(),
                peers: (*peers).clone(),
                ratio: one.ratio,
                days: days.len(),
            });
        }
    }
    found.sort_by(|one, other| other.ratio.ln().abs().total_cmp(&one.ratio.ln().abs()));
    (found, apart)
}
