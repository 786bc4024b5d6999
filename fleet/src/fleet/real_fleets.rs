//! Fleets made of what real recordings of healthy hosts say again and again (`real_runs.tsv`, which `fleet/real-runs`
//! makes of the corpus): hosts with unequal loads, recorded at any hour of a day with a rhythm, some days not at all.
//!
//! The thresholds come from made-up distributions (`statistics.rs`). What is tested here has none of them.

use std::collections::BTreeMap;

use super::PeerGroups;
use super::data::FleetData;
use super::day_values::DayValues;
use super::metrics::{news, outliers, shifts};
use super::names::SharedNames;
use crate::made_numbers::MadeNumbers;
use crate::statistics::spread;

/// Days of a fleet; the last is the one in question.
const DAYS: usize = 7;
/// Of how many days a host misses one.
const MISSED: f64 = 0.1;
/// How hosts of one load differ.
#[derive(Clone, Copy)]
struct LoadSpread {
    /// What hosts differ by on all days, as a standard deviation of logarithms.
    unequal: f64,
    /// How far load goes up and down within a day, as a logarithm.
    rhythm: f64,
}

/// A third more or less on all days; two thirds more, two fifths less by the hour.
const UNEQUAL: LoadSpread = LoadSpread {
    unequal: 0.3,
    rhythm: 0.5,
};
/// Hosts that do the same at all hours.
const EQUAL: LoadSpread = LoadSpread {
    unequal: 0.0,
    rhythm: 0.0,
};

/// By load and metric the logarithms of what its windows had.
type RealRuns = BTreeMap<&'static str, BTreeMap<&'static str, BTreeMap<u32, f64>>>;

fn real_runs() -> RealRuns {
    let mut out = RealRuns::new();
    for line in include_str!("real_runs.tsv").lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [load, window, metric, value] = words[..] else {
            panic!("{line}");
        };
        let value: f64 = value.parse().expect("a number");
        let metrics = out.entry(load).or_default().entry(metric).or_default();
        metrics.insert(window.parse().expect("a number"), value.ln());
    }
    out
}

/// A metric of a host that is this many times what it would be, from a day on.
struct PlantedFault {
    host: usize,
    metric: &'static str,
    ratio: f64,
    from_day: usize,
}

/// Makes a fleet of hosts with one load, as [`FleetData`] has it.
fn fleet(
    numbers: &mut MadeNumbers,
    runs: &RealRuns,
    load: &str,
    hosts: usize,
    spread_of_load: LoadSpread,
    fault: Option<&PlantedFault>,
) -> (FleetData, PeerGroups) {
    let names: Vec<String> = (0..hosts).map(|host| format!("host{host:03}")).collect();
    let days: Vec<String> = (1..=DAYS).map(|day| format!("2026-11-{day:02}")).collect();
    let windows = &runs[load];
    let numbers_of: Vec<u32> = windows["exits a second"].keys().copied().collect();
    let mut metrics: BTreeMap<String, DayValues> = BTreeMap::new();
    for (host, name) in names.iter().enumerate() {
        let own = numbers.normal(spread_of_load.unequal);
        for at in 0..days.len() {
            if numbers.uniform() < MISSED {
                continue;
            }
            let hour = numbers.uniform();
            let rhythm = spread_of_load.rhythm * (std::f64::consts::TAU * hour).sin();
            let window = numbers.of(&numbers_of);
            for (metric, values) in windows {
                let Some(value) = values.get(&window) else {
                    continue;
                };
                let all: Vec<f64> = values.values().copied().collect();
                let jitter = numbers.normal(spread(&all).unwrap_or(0.0) / 2.0);
                // Latency does not follow load as times and rates do.
                let load = match metric.starts_with("p99") {
                    true => (own + rhythm) / 2.0,
                    false => own + rhythm,
                };
                let planted = fault
                    .filter(|one| one.host == host && one.metric == *metric && at >= one.from_day);
                let planted = planted.map_or(0.0, |one| one.ratio.ln());
                let of_metric = metrics.entry((*metric).to_owned()).or_default();
                of_metric.set(name, (at, days.len()), value + jitter + load + planted);
            }
        }
    }
    let (day, before) = days.split_last().expect("days");
    let data = FleetData {
        day: day.clone(),
        before: before.to_vec(),
        all_days: days.clone(),
        runs: Vec::new(),
        findings: Vec::new(),
        metrics,
        waits: BTreeMap::new(),
        names: SharedNames::default(),
    };
    (data, PeerGroups::from([(load.to_owned(), names)]))
}

/// Whatever is said of a host or a group, in words.
fn alarms(data: &FleetData, groups: &PeerGroups) -> Vec<String> {
    let news = news(data, groups).into_iter();
    let news = news.map(|one| format!("news {} {} {:.1}", one.host, one.metric, one.ratio));
    let shifts = shifts(data, groups).into_iter();
    let shifts = shifts.map(|one| format!("shift {} {:.1}", one.metric, one.ratio));
    let (outliers, apart) = outliers(data, groups);
    let outliers = outliers.into_iter();
    let outliers =
        outliers.map(|one| format!("outlier {} {} {:.1}", one.host, one.metric, one.ratio));
    news.chain(shifts).chain(outliers).chain(apart).collect()
}

/// Loads of which there are windows enough to make hosts of.
fn loads(runs: &RealRuns) -> Vec<&'static str> {
    let many = runs
        .iter()
        .filter(|(_, metrics)| metrics["exits a second"].len() >= 6);
    many.map(|(load, _)| *load).collect()
}

#[test]
fn sixty_healthy_fleets_have_one_alarm_at_most() {
    let runs = real_runs();
    let loads = loads(&runs);
    assert!(loads.len() >= 10, "{loads:?}");
    for seed in 1..=3 {
        let mut numbers = MadeNumbers(seed);
        let mut all = Vec::new();
        for number in 0..60 {
            let load = loads[number % loads.len()];
            let hosts = [12, 40, 100][number % 3];
            let (data, groups) = fleet(&mut numbers, &runs, load, hosts, UNEQUAL, None);
            let of_fleet = alarms(&data, &groups).into_iter();
            all.extend(of_fleet.map(|one| format!("{hosts} hosts of {load}: {one}")));
        }
        assert!(all.len() <= 1, "seed {seed}: {all:#?}");
    }
}

/// Of sixty fleets of forty hosts with a fault each, in how many it is found, and what is said besides.
fn faults_found(
    hosts: usize,
    spread_of_load: LoadSpread,
    ratio: f64,
    from_day: usize,
) -> (usize, usize) {
    let runs = real_runs();
    let loads = loads(&runs);
    let mut numbers = MadeNumbers(7);
    let (mut found, mut besides) = (0, 0);
    for number in 0..24 {
        let load = loads[number % loads.len()];
        let fault = PlantedFault {
            host: number % 40,
            metric: ["exits a second", "vCPU time in KVM"][number % 2],
            ratio,
            from_day,
        };
        let (data, groups) = fleet(
            &mut numbers,
            &runs,
            load,
            hosts,
            spread_of_load,
            Some(&fault),
        );
        let name = format!("host{:03} {}", fault.host, fault.metric);
        let said = alarms(&data, &groups);
        let of_it = said.iter().filter(|one| one.contains(&name)).count();
        found += usize::from(of_it > 0);
        besides += said.len() - of_it;
    }
    (found, besides)
}

/// One recording finds what is far beyond the tails that real ones have; several days find less.
#[test]
fn planted_faults_are_found() {
    let last = DAYS - 1;
    let mut besides = 0;
    for (spread_of_load, ratio, from_day, least) in [
        (EQUAL, 3.0, 0, 5),
        (EQUAL, 10.0, last, 7),
        (UNEQUAL, 10.0, 0, 6),
        (UNEQUAL, 10.0, last, 5),
        (UNEQUAL, 100.0, last, 14),
    ] {
        let (found, more) = faults_found(40, spread_of_load, ratio, from_day);
        let days = DAYS - from_day;
        assert!(
            found >= least,
            "{ratio} times on {days} days: {found} of 24"
        );
        besides += more;
    }
    assert!(besides <= 1, "{besides} false alarms in 120 fleets");
}
