//! Results of benchmarks side by side: the same rows of each, and what each is of the first.

use std::collections::BTreeMap;

use results::{Bench, BenchResults, BenchRow, Stat};

/// Results of one benchmark, side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Which.
    pub bench: Bench,
    /// What each side is called: its label, or its letter.
    pub names: Vec<String>,
    /// What the sides differ by beside their durations.
    pub differs: Vec<Fact>,
    /// Rows, in the order of the first side, and behind them those that it does not have.
    pub rows: Vec<ResultRow>,
}

/// Something that is not the same on all sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// What it is on each side; `None` where it is not known.
    pub values: Vec<Option<String>>,
}

/// A value of a row on each side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    /// What was measured.
    pub what: String,
    /// What the target did.
    pub target: Option<String>,
    /// The CPUs, where rows differ by nothing else.
    pub cpus: Option<(Option<u64>, Option<String>)>,
    /// Which value.
    pub stat: Stat,
    /// The value on each side, ns; `None` where it was not measured.
    pub values: Vec<Option<u64>>,
}

impl ResultRow {
    /// Returns how many times the first side's value another's is; `None` where one of them is missing, and where the
    /// first is 0.
    pub fn ratio(&self, side: usize) -> Option<f64> {
        let first = (*self.values.first()?)?;
        let value = (*self.values.get(side)?)?;
        (first > 0).then(|| value as f64 / first as f64)
    }
}

/// What makes two rows the same.
type ResultKey<'a> = (
    &'a str,
    Option<&'a str>,
    Option<(Option<u64>, Option<&'a str>)>,
);

/// Returns results side by side.
///
/// # Errors
///
/// They are of different benchmarks, or there are fewer than two.
pub fn results(sides: &[BenchResults]) -> Result<Results, String> {
    let (Some(first), true) = (sides.first(), sides.len() > 1) else {
        return Err(
            "one result of 'trapline bench': those to compare it with are missing".to_owned(),
        );
    };
    let bench = first.head.bench;
    let other = sides.iter().position(|side| side.head.bench != bench);
    if let Some(at) = other {
        return Err(format!(
            "A is a result of 'trapline bench {bench}', and {} of 'trapline bench {}': results of one benchmark can be \
             compared",
            crate::letter(at),
            sides[at].head.bench
        ));
    }
    let by_cpu = sides.iter().any(needs_cpus);
    let maps: Vec<BTreeMap<ResultKey<'_>, &BenchRow>> = sides
        .iter()
        .map(|side| {
            let rows = side.rows.iter().rev();
            rows.map(|row| (key(row, by_cpu), row)).collect()
        })
        .collect();
    let mut keys: Vec<ResultKey<'_>> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for row in sides.iter().flat_map(|side| &side.rows) {
        let key = key(row, by_cpu);
        if known.insert(key) {
            keys.push(key);
        }
    }
    let mut rows = Vec::new();
    for key in keys {
        for stat in bench.stats() {
            let values = maps.iter().map(|rows| rows.get(&key)?.value(*stat));
            let values: Vec<Option<u64>> = values.collect();
            // Where no side has it there is nothing to say.
            if values.iter().all(Option::is_none) {
                continue;
            }
            let (what, target, cpus) = key;
            rows.push(ResultRow {
                what: what.to_owned(),
                target: target.map(str::to_owned),
                cpus: cpus.map(|(from, to)| (from, to.map(str::to_owned))),
                stat: *stat,
                values,
            });
        }
    }
    Ok(Results {
        bench,
        names: names(sides),
        differs: differs(sides),
        rows,
    })
}

/// Whether a side has two rows that differ by their CPUs alone.
fn needs_cpus(side: &BenchResults) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    !side.rows.iter().all(|row| seen.insert(key(row, false)))
}

fn key(row: &BenchRow, by_cpu: bool) -> ResultKey<'_> {
    let cpus = by_cpu.then_some((row.from, row.to.as_deref()));
    (row.what.as_str(), row.target.as_deref(), cpus)
}

/// Returns what sides are called: their labels where all have one and no two have the same, their letters before them
/// otherwise.
fn names(sides: &[BenchResults]) -> Vec<String> {
    let label = |side: &BenchResults| side.head.label.clone().filter(|label| !label.is_empty());
    let mut labels: Vec<Option<String>> = sides.iter().map(label).collect();
    let all = labels.clone();
    for (at, label) in labels.iter_mut().enumerate() {
        let twice = all
            .iter()
            .enumerate()
            .any(|(other, one)| other != at && one.is_some() && one == label);
        if twice && let Some(label) = label {
            *label = format!("{label} {}", crate::letter(at));
        }
    }
    let named = labels.into_iter().enumerate();
    named
        .map(|(at, label)| label.unwrap_or_else(|| crate::letter(at)))
        .collect()
}

/// Returns what is not the same on all sides: of the machine, and of what was asked for.
fn differs(sides: &[BenchResults]) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    let mut add = |name: &str, values: Vec<Option<String>>| {
        if values.iter().any(|value| *value != values[0]) {
            facts.push(Fact {
                name: name.to_owned(),
                values,
            });
        }
    };
    let machines: Vec<_> = sides.iter().map(|side| side.head.machine.facts()).collect();
    for (at, (name, _)) in machines[0].iter().enumerate() {
        let values = machines.iter().map(|facts| facts[at].1.clone());
        add(name, values.collect());
    }
    let plans = || sides.iter().map(|side| &side.head.plan);
    add(
        "iterations",
        plans()
            .map(|plan| Some(plan.iterations.to_string()))
            .collect(),
    );
    add(
        "CPUs used",
        plans().map(|plan| Some(plan.cpus.clone())).collect(),
    );
    let names: std::collections::BTreeSet<&String> =
        plans().flat_map(|plan| plan.settings.keys()).collect();
    for name in names {
        let values = plans().map(|plan| plan.settings.get(name).cloned());
        add(&format!("--{name}"), values.collect());
    }
    facts
}

#[cfg(test)]
mod tests {
    use results::{BenchMachine, BenchPlan, ClockReadings, Noise, RESULT_VERSION, ResultsHead};

    use super::*;

    fn side(label: Option<&str>, clocksource: &str, rows: Vec<BenchRow>) -> BenchResults {
        BenchResults {
            head: ResultsHead {
                result_version: RESULT_VERSION,
                bench: Bench::Ipi,
                label: label.map(str::to_owned),
                interrupted: false,
                machine: BenchMachine {
                    clocksource: Some(clocksource.to_owned()),
                    ..BenchMachine::default()
                },
                plan: BenchPlan::default(),
                started: ClockReadings::default(),
                ended: ClockReadings::default(),
                noise: Noise::default(),
            },
            rows,
        }
    }

    fn row(what: &str, to: u32, p50: u64) -> BenchRow {
        BenchRow {
            count: 1,
            p50_ns: Some(p50),
            ..BenchRow::new(what).target("idle").from(0).to(to)
        }
    }

    #[test]
    fn rows_are_found_by_what_they_measure() {
        let sides = [
            side(Some("default"), "tsc", vec![row("same node", 1, 2000)]),
            side(
                Some("idle=poll"),
                "tsc",
                vec![row("other node", 9, 70), row("same node", 2, 500)],
            ),
            side(None, "hpet", vec![row("same node", 1, 3000)]),
        ];
        let found = results(&sides).unwrap();
        assert_eq!(found.names, ["default", "idle=poll", "C"]);
        let first = &found.rows[0];
        assert_eq!((first.what.as_str(), first.stat), ("same node", Stat::P50));
        assert_eq!(first.values, [Some(2000), Some(500), Some(3000)]);
        assert_eq!((first.ratio(1), first.ratio(2)), (Some(0.25), Some(1.5)));
        assert_eq!(found.rows[1].values, [None, Some(70), None]);
        assert_eq!(found.rows[1].ratio(1), None);
        assert_eq!(found.rows.len(), 2);
        let differs: Vec<&str> = found
            .differs
            .iter()
            .map(|fact| fact.name.as_str())
            .collect();
        assert_eq!(differs, ["clock source"]);
    }

    #[test]
    fn pairs_are_distinguished_by_their_cpus() {
        let rows = |p50: u64| vec![row("pair", 1, p50), row("pair", 2, 2 * p50)];
        let sides = [side(None, "tsc", rows(10)), side(None, "tsc", rows(30))];
        let found = results(&sides).unwrap();
        assert_eq!(found.rows.len(), 2);
        assert_eq!(found.rows[1].values, [Some(20), Some(60)]);
        assert_eq!(found.rows[1].cpus, Some((Some(0), Some("2".to_owned()))));
    }

    #[test]
    fn other_benchmarks_and_single_results_are_refused() {
        let mut other = side(None, "tsc", Vec::new());
        other.head.bench = Bench::Wake;
        let one = side(None, "tsc", Vec::new());
        let error = results(&[one.clone(), one.clone(), other]).unwrap_err();
        assert!(
            error.contains("A is a result of 'trapline bench ipi', and C of 'trapline bench wake'"),
            "{error}"
        );
        assert!(results(&[one]).is_err());
        assert!(results(&[]).is_err());
    }

    #[test]
    fn equal_labels_have_letters_behind_them() {
        let labelled = |label| side(Some(label), "tsc", Vec::new());
        let sides = [labelled("x"), labelled("x"), labelled("")];
        assert_eq!(results(&sides).unwrap().names, ["x A", "x B", "C"]);
    }
}
