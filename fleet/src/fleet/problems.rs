//! Causes that were found in a fleet, and what the hosts that have them share.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::data::{FleetData, FleetRun};
use crate::statistics::{alarms, share_bounds, shared_by_chance};

/// Hosts that have a problem at least before it is asked what they share.
const LEAST_SICK: usize = 3;

/// A cause that was found on hosts of the day.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    pub(crate) id: String,
    /// The worst severity of all hosts'.
    pub(crate) severity: String,
    /// Hosts that have it, of those whose recordings could tell.
    pub(crate) hosts: u64,
    pub(crate) could_tell: u64,
    /// Within which bounds the share of all such hosts lies (95 %).
    pub(crate) share_low: f64,
    pub(crate) share_high: f64,
    /// What it costs on all hosts together.
    pub(crate) cost_ns: f64,
    pub(crate) worst_share: f64,
    pub(crate) worst_host: String,
    /// Hosts on which it came, and from which it went, since the last day before, of those that could tell on both.
    pub(crate) came: u64,
    pub(crate) went: u64,
    #[serde(skip)]
    pub(crate) sick: BTreeSet<String>,
    #[serde(skip)]
    pub(crate) recorded: BTreeSet<String>,
}

/// Something that hosts with a problem have and others do not.
#[derive(Debug, Serialize)]
pub(crate) struct SharedFact {
    pub(crate) problem: String,
    pub(crate) fact: String,
    pub(crate) value: String,
    pub(crate) sick_with: u64,
    pub(crate) sick: u64,
    pub(crate) others_with: u64,
    pub(crate) others: u64,
    pub(crate) p_value: f64,
}

fn rank(severity: &str) -> u8 {
    match severity {
        "high" => 3,
        "medium" => 2,
        "low" => 1,
        _ => 0,
    }
}

/// Returns the hosts of a day whose recordings could tell whether a cause is there, and those that have it.
fn recorded_hosts(data: &FleetData, day: &str, id: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let runs = data
        .runs
        .iter()
        .filter(|run| run.day == day && run.can_tell.contains(id));
    let recorded = runs.map(|run| run.host.clone()).collect();
    let sick = data
        .findings
        .iter()
        .filter(|one| one.day == day && one.id == id);
    (recorded, sick.map(|one| one.host.clone()).collect())
}

/// Returns what was found, most hosts times cost first.
pub(crate) fn of(data: &FleetData) -> Vec<Problem> {
    let mut ids: BTreeSet<&str> = data.findings.iter().map(|one| one.id.as_str()).collect();
    let mut out = Vec::new();
    while let Some(id) = ids.pop_first() {
        let (mut could_tell, sick) = recorded_hosts(data, &data.day, id);
        could_tell.extend(sick.iter().cloned());
        let (came, went) = match data.before.last() {
            Some(before) => {
                let (mut recorded_before, sick_before) = recorded_hosts(data, before, id);
                recorded_before.extend(sick_before.iter().cloned());
                let both: BTreeSet<&String> = recorded_before.intersection(&could_tell).collect();
                let came = both
                    .iter()
                    .filter(|host| sick.contains(**host) && !sick_before.contains(**host));
                let went = both
                    .iter()
                    .filter(|host| !sick.contains(**host) && sick_before.contains(**host));
                (came.count() as u64, went.count() as u64)
            }
            None => (0, 0),
        };
        let of_day = || {
            data.findings
                .iter()
                .filter(|one| one.day == data.day && one.id == id)
        };
        let worst = of_day().max_by(|one, other| one.cost_share.total_cmp(&other.cost_share));
        let severest = of_day().max_by_key(|one| rank(&one.severity));
        if sick.is_empty() && went == 0 {
            continue;
        }
        let (share_low, share_high) = share_bounds(sick.len() as u64, could_tell.len() as u64);
        out.push(Problem {
            id: id.to_owned(),
            severity: severest.map_or_else(|| "gone".to_owned(), |one| one.severity.clone()),
            hosts: sick.len() as u64,
            could_tell: could_tell.len() as u64,
            share_low,
            share_high,
            cost_ns: of_day().map(|one| one.cost_ns).sum(),
            worst_share: worst.map_or(0.0, |one| one.cost_share),
            worst_host: worst.map_or_else(String::new, |one| one.host.clone()),
            came,
            went,
            sick,
            recorded: could_tell,
        });
    }
    let weight = |one: &Problem| one.hosts as f64 * (one.cost_ns + 1.0);
    out.sort_by(|one, other| {
        let severity = rank(&other.severity).cmp(&rank(&one.severity));
        severity
            .then(weight(other).total_cmp(&weight(one)))
            .then(one.id.cmp(&other.id))
    });
    out
}

/// Returns what hosts with a problem share, and those without it do not.
pub(crate) fn shared(data: &FleetData, problems: &[Problem]) -> Vec<SharedFact> {
    let mut by_host: BTreeMap<&str, &FleetRun> = BTreeMap::new();
    for run in data.of_day() {
        by_host.insert(&run.host, run);
    }
    let mut all = Vec::new();
    for problem in problems.iter().filter(|one| one.sick.len() >= LEAST_SICK) {
        let mut values: BTreeSet<(&String, &String)> = BTreeSet::new();
        for host in &problem.sick {
            if let Some(run) = by_host.get(host.as_str()) {
                values.extend(run.facts.iter());
            }
        }
        for (fact, value) in values {
            let has = |host: &&String| {
                let run = by_host.get(host.as_str());
                run.and_then(|run| run.facts.get(fact)) == Some(value)
            };
            // A host of which the fact is not known says nothing.
            let knows = |host: &&String| {
                let run = by_host.get(host.as_str());
                run.is_some_and(|run| run.facts.contains_key(fact))
            };
            let sick = problem.sick.iter().filter(knows).count() as u64;
            let healthy: Vec<&String> = problem
                .recorded
                .difference(&problem.sick)
                .filter(knows)
                .collect();
            let others = healthy.len() as u64;
            let sick_with = problem.sick.iter().filter(has).count() as u64;
            let others_with = healthy.iter().filter(|host| has(host)).count() as u64;
            // What few sick hosts have (their machine's id) could not be shown to be shared, and would only make what is
            // tested more.
            if others == 0 || others_with == others || sick_with < LEAST_SICK as u64 {
                continue;
            }
            all.push(SharedFact {
                problem: problem.id.clone(),
                fact: fact.clone(),
                value: value.clone(),
                sick_with,
                sick,
                others_with,
                others,
                p_value: shared_by_chance(sick_with, sick, sick_with + others_with, sick + others),
            });
        }
    }
    let p_values: Vec<f64> = all.iter().map(|one| one.p_value).collect();
    let alarms = alarms(&p_values);
    let all = all.into_iter().zip(alarms);
    let mut found: Vec<SharedFact> = all
        .filter(|(_, alarm)| *alarm)
        .map(|(one, _)| one)
        .collect();
    found.sort_by(|one, other| one.p_value.total_cmp(&other.p_value));
    found
}
