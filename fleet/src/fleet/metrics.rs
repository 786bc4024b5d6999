//! Metrics of hosts that changed, and of hosts that are unlike their peers.

use std::collections::BTreeMap;

use serde::Serialize;

use super::PeerGroups;
use super::data::FleetData;
use crate::statistics::{
    LEAST_EFFECT, LEAST_PEERS, TestedValue, alarms, median, outstanding, sign_test, spread,
};

/// Days on which a host is unlike its peers before it is called an outlier.
const LASTING_DAYS: usize = 3;
/// As many spreads of its peers it is away then, on each of them.
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

type DayValues = BTreeMap<(String, String), f64>;

/// Returns how a host's value differs from its own middle of the days before, as a logarithm.
fn change(data: &FleetData, values: &DayValues, host: &str) -> Option<f64> {
    let now = values.get(&(host.to_owned(), data.day.clone()))?;
    let before = data.before.iter();
    let before: Vec<f64> = before
        .filter_map(|day| values.get(&(host.to_owned(), day.clone())).copied())
        .collect();
    Some(now - median(&before)?)
}

/// Returns the hosts that changed.
pub(crate) fn news(data: &FleetData, groups: &PeerGroups) -> Vec<ChangedHost> {
    let mut named = Vec::new();
    let mut tested = Vec::new();
    for (metric, values) in &data.metrics {
        for (peers, hosts) in groups {
            let changes = hosts.iter().enumerate();
            let changes = changes.filter_map(|(host, name)| {
                let log = change(data, values, name)?;
                Some(TestedValue { host, log })
            });
            tested.push(changes.collect());
            named.push((metric, peers, hosts));
        }
    }
    let found = outstanding(&tested).into_iter();
    found
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
                .filter_map(|host| change(data, values, host))
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

/// Returns the hosts that are unlike their peers on all days, three at least, and what is to be said of groups that are
/// no groups.
pub(crate) fn outliers(
    data: &FleetData,
    groups: &PeerGroups,
) -> (Vec<LastingOutlier>, Vec<String>) {
    let mut apart = Vec::new();
    let days: Vec<&String> = data.before.iter().chain([&data.day]).collect();
    let mut found = Vec::new();
    for (metric, values) in &data.metrics {
        for (peers, hosts) in groups
            .iter()
            .filter(|(_, hosts)| hosts.len() >= LEAST_PEERS)
        {
            let mut away: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
            let mut inside: Vec<&String> = Vec::new();
            for day in &days {
                let of_day: Vec<(&String, f64)> = hosts
                    .iter()
                    .filter_map(|host| {
                        let value = values.get(&(host.clone(), (*day).clone()))?;
                        Some((host, *value))
                    })
                    .collect();
                let logs: Vec<f64> = of_day.iter().map(|(_, log)| *log).collect();
                let (Some(middle), Some(spread)) = (median(&logs), spread(&logs)) else {
                    continue;
                };
                for (host, log) in of_day {
                    let distance = log - middle;
                    let far = distance.abs() > AWAY * spread && distance.abs() >= LEAST_EFFECT.ln();
                    match far && logs.len() >= LEAST_PEERS {
                        true => away.entry(host).or_default().push(distance),
                        false => inside.push(host),
                    }
                }
            }
            let lasting = away.into_iter().filter(|(host, distances)| {
                let one_way = distances.iter().all(|one| *one > 0.0)
                    || distances.iter().all(|one| *one < 0.0);
                distances.len() >= LASTING_DAYS && one_way && !inside.contains(host)
            });
            let lasting: Vec<LastingOutlier> = lasting
                .map(|(host, distances)| LastingOutlier {
                    host: host.clone(),
                    metric: metric.clone(),
                    peers: peers.clone(),
                    ratio: median(&distances).unwrap_or(0.0).exp(),
                    days: distances.len(),
                })
                .collect();
            if lasting.len() as f64 > MOST_AWAY * hosts.len() as f64 {
                apart.push(format!(
                    "{peers}: of {} hosts {} have another '{metric}' than the others, day by day: --peers may \
                     separate them.",
                    hosts.len(),
                    lasting.len()
                ));
                continue;
            }
            found.extend(lasting);
        }
    }
    found.sort_by(|one, other| other.ratio.ln().abs().total_cmp(&one.ratio.ln().abs()));
    (found, apart)
}
