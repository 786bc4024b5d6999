//! One side as a whole: for how long it is, and what it was done for.

use std::collections::BTreeMap;

use analysis::{Amount, ExitTable, Measured, Origin, Picture};
use model::State;
use stats::Stats;

use crate::chance::{self, Slice};
use crate::words::number;
use crate::{Change, PerWork, Value};

/// Sums of one side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    /// Seconds recorded; `None` if any part is a printed table, which does not say.
    pub seconds: Option<f64>,
    /// How many recordings or tables.
    pub parts: usize,
}

impl Totals {
    pub fn of(pictures: &[Picture]) -> Totals {
        let spans = pictures.iter().map(|picture| match picture.origin {
            Origin::Recording => picture.span_ns.filter(|ns| *ns > 0),
            Origin::Printed => None,
        });
        let ns: Option<u64> = spans.sum();
        Totals {
            seconds: ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9),
            parts: pictures.len(),
        }
    }
}

/// How units of work are counted on both sides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Work {
    pub of: String,
    pub a: f64,
    pub b: f64,
}

/// Both sides.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub a: Totals,
    pub b: Totals,
    /// Whether both sides say for how long they are.
    pub rates: bool,
    pub work: Vec<Work>,
}

impl Pair {
    /// Returns what a sum of the first side is divided by.
    pub fn per_a(&self) -> f64 {
        self.a.seconds.filter(|_| self.rates).unwrap_or(1.0)
    }

    /// The same of the second.
    pub fn per_b(&self) -> f64 {
        self.b.seconds.filter(|_| self.rates).unwrap_or(1.0)
    }

    /// Returns sums for each unit of work.
    pub fn per_work(&self, a: f64, b: f64) -> Vec<PerWork> {
        let each = self.work.iter().map(|work| PerWork {
            of: work.of.clone(),
            a: a / work.a,
            b: b / work.b,
        });
        each.collect()
    }

    /// Returns the words for a rate, or for a count.
    pub fn in_a_second(&self) -> &'static str {
        if self.rates { " in a second" } else { "" }
    }

    pub fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        match (self.a.seconds, self.b.seconds) {
            (Some(a), Some(b)) => out.push(format!(
                "A is {a:.3} s in {}, B {b:.3} s in {}; rates are for each second.",
                parts(self.a.parts),
                parts(self.b.parts)
            )),
            _ => out.push(
                "Printed tables do not say how long they are of: counts and times are compared as they stand, which is right \
                 if both took as long."
                    .to_owned(),
            ),
        }
        for work in &self.work {
            out.push(format!(
                "Work: {} and {} of {}.",
                number(work.a),
                number(work.b),
                work.of
            ));
        }
        out
    }
}

fn parts(count: usize) -> String {
    if count == 1 {
        "1 recording".to_owned()
    } else {
        format!("{count} recordings")
    }
}

/// Events that are one unit of work each, by a part of their name: packets, then I/Os.
const WORK: [&str; 8] = [
    "tun_get_user",
    "tun_put_user",
    "net_dev_xmit",
    "netif_receive_skb",
    "block_rq_complete",
    "block_rq_issue",
    "virtio_queue_notify",
    "handle_tx",
];

/// Returns what counts work on both sides.
pub(crate) fn work(a: &[Picture], b: &[Picture], asked: Option<&str>) -> Vec<Work> {
    let count = |pictures: &[Picture], name: &str| -> u64 {
        pictures
            .iter()
            .map(|picture| picture.events_about(name))
            .sum()
    };
    // What tables count and what recordings count are not of the same time.
    let printed = |pictures: &[Picture]| {
        pictures
            .iter()
            .any(|picture| picture.origin == Origin::Printed)
    };
    if printed(a) || printed(b) {
        return Vec::new();
    }
    let names: Vec<&str> = match asked {
        Some(name) => vec![name],
        None => WORK.to_vec(),
    };
    let of_events = names.into_iter().find_map(|name| {
        let (a, b) = (count(a, name), count(b, name));
        (a > 0 && b > 0).then(|| Work {
            of: name.to_owned(),
            a: a as f64,
            b: b as f64,
        })
    });
    let guest = |pictures: &[Picture]| -> u64 {
        pictures
            .iter()
            .map(|picture| picture.state_ns(State::Guest))
            .fold(0, u64::saturating_add)
    };
    let (ga, gb) = (guest(a), guest(b));
    let guest = (ga > 0 && gb > 0).then(|| Work {
        of: "second of guest time".to_owned(),
        a: ga as f64 / 1e9,
        b: gb as f64 / 1e9,
    });
    of_events.into_iter().chain(guest).collect()
}

/// Count and time of one row over a side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub stats: Stats,
    pub waiting: bool,
    pub name: Option<String>,
}

/// Returns the rows of a table of exits over a side.
pub(crate) fn rows(pictures: &[Picture], table: ExitTable) -> BTreeMap<String, Row> {
    let mut out: BTreeMap<String, Row> = BTreeMap::new();
    for row in pictures.iter().flat_map(|picture| picture.rows(table)) {
        let sum = out.entry(row.key.clone()).or_default();
        sum.stats.merge(&row.stats);
        sum.waiting = row.waiting;
        if sum.name.is_none() {
            sum.name.clone_from(&row.name);
        }
    }
    out
}

/// Returns what is counted of something by slice, of each recording of a side.
fn series(
    pictures: &[Picture],
    pick: &dyn Fn(&Measured) -> bool,
    amount: &dyn Fn(&Amount) -> u64,
) -> Vec<Vec<Slice>> {
    let recordings = pictures
        .iter()
        .filter(|picture| !picture.series.slice_ns.is_empty());
    recordings
        .map(|picture| {
            let picked = picture.series.of.iter().filter(|(what, _)| pick(what));
            let lists: Vec<&Vec<Amount>> = picked.map(|(_, list)| list).collect();
            let slices = picture.series.slice_ns.iter().enumerate();
            slices
                .map(|(at, ns)| Slice {
                    amount: (lists.iter().filter_map(|list| list.get(at)))
                        .map(|one| amount(one) as f64)
                        .sum(),
                    ns: *ns as f64,
                })
                .collect()
        })
        .collect()
}

/// Returns the confidence that sums differ: by slices of time where both sides have them, else by the counts alone.
pub(crate) fn sure(
    pair: &Pair,
    sides: [&[Picture]; 2],
    pick: &dyn Fn(&Measured) -> bool,
    amount: &dyn Fn(&Amount) -> u64,
    sums: [f64; 2],
    counts: [f64; 2],
) -> f64 {
    if pair.rates {
        let errors = sides.map(|pictures| chance::rate_error(&series(pictures, pick, amount)));
        if let [Some(error_a), Some(error_b)] = errors {
            let (a, b) = (sums[0] / pair.per_a(), sums[1] / pair.per_b());
            // A rate is never known better than its own count allows.
            let least = |sum: f64, count: f64, per: f64| sum / count.max(1.0).sqrt() / per;
            let error_a = (error_a * 1e9).max(least(sums[0], counts[0], pair.per_a()));
            let error_b = (error_b * 1e9).max(least(sums[1], counts[1], pair.per_b()));
            return chance::confidence(b - a, error_a, error_b);
        }
    }
    let error = |count: f64, per: f64| chance::count_error(count) / per;
    let (a, b) = (counts[0] / pair.per_a(), counts[1] / pair.per_b());
    chance::confidence(
        b - a,
        error(counts[0], pair.per_a()),
        error(counts[1], pair.per_b()),
    )
}

/// Returns a number that is there, or absence.
pub(crate) fn value(number: f64, there: bool) -> Value {
    if there {
        Value::Number(number)
    } else {
        Value::Absent
    }
}

/// Adds a change if either side has it.
pub(crate) fn push(out: &mut Vec<Change>, change: Change) {
    if change.a != Value::Absent || change.b != Value::Absent {
        out.push(change);
    }
}
