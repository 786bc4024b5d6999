//! What `perf stat` counted.

use std::collections::BTreeMap;

use analysis::Picture;

use crate::basis::Basis;
use crate::chance;
use crate::change::{ChangeUnit, SideChange, SideName};
use crate::side::{Pair, push, value};
use words::{change, number};

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let amount = |picture: &Picture| (!picture.counts.is_empty()).then_some(1);
    let Ok(basis) = Basis::of(pair.sides, &amount) else {
        return;
    };
    let all = basis.sides.iter().flatten();
    // perf stat says how long it counted, but people do not paste all of it.
    let timed = all.clone().all(|picture| picture.counted_ns > Some(0));
    let long = |picture: &Picture| match picture.counted_ns {
        Some(ns) if timed => ns as f64 / 1e9,
        _ => 1.0,
    };
    if timed {
        notes.push("Counts of perf stat are for each second that it counted.".to_owned());
    } else {
        notes.push(
            "Not every block of perf stat says how long it counted: counts are compared as they are."
                .to_owned(),
        );
    }
    let of = |picture: &Picture| -> BTreeMap<String, f64> {
        let mut out = BTreeMap::new();
        for (event, count) in &picture.counts {
            *out.entry(event.clone()).or_default() += *count as f64;
        }
        out
    };
    let counts = [0, 1].map(|side: usize| -> Vec<(BTreeMap<String, f64>, f64)> {
        let each = basis.sides[side].iter();
        each.map(|picture| (of(picture), long(picture))).collect()
    });
    let has =
        |side: usize, event: &String| counts[side].iter().all(|run| run.0.contains_key(event));
    let events: Vec<String> = counts[0]
        .first()
        .map(|run| run.0.keys().cloned().collect())
        .unwrap_or_default();
    for event in events.iter().filter(|event| has(0, event) && has(1, event)) {
        let runs = [0, 1].map(|side: usize| -> Vec<chance::SampledSum> {
            let each = counts[side].iter();
            each.map(|(counts, long)| {
                let count = counts.get(event).copied().unwrap_or(0.0);
                chance::SampledSum {
                    sum: count,
                    squares: count,
                    exposure: *long,
                    slices: Vec::new(),
                }
            })
            .collect()
        });
        let [a, b] = [0, 1].map(|side: usize| {
            let sum: f64 = runs[side].iter().map(|run| run.sum).sum();
            sum / runs[side].iter().map(|run| run.exposure).sum::<f64>()
        });
        let each = if timed { " in a second" } else { "" };
        push(
            out,
            SideChange {
                what: format!("counter {event}"),
                unit: if timed {
                    ChangeUnit::PerSecond
                } else {
                    ChangeUnit::Count
                },
                a: value(a, true),
                b: value(b, true),
                confidence: Some(1.0 - chance::rates(&runs[0], &runs[1])),
                worse: SideName::more(a, b).filter(|_| costs(event)),
                text: format!(
                    "{event}: {} to {}{each} ({}).",
                    number(a),
                    number(b),
                    change(a, b)
                ),
                ..SideChange::default()
            },
        );
    }
}

/// Whether less of an event is better, whatever is done: misses, faults, stalls, and switches between tasks. Cycles and
/// instructions are also what the work is.
fn costs(event: &str) -> bool {
    let what = ["miss", "fault", "stall", "switch", "migration"];
    what.iter().any(|part| event.contains(part))
}
