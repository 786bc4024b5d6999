//! Exits by reason and device.

use analysis::{Amount, ExitTable, Measured, Picture};

use crate::side::{Pair, Row, push, rows, sure, value};
use crate::words::{change, number, percent, time};
use crate::{Change, Unit};

/// What waiting counts in the ranking: it is mostly somebody else's time.
const WAITING: f64 = 0.1;

pub(crate) fn changes(pair: &Pair, a: &[Picture], b: &[Picture], out: &mut Vec<Change>) {
    let unit = if pair.rates {
        Unit::PerSecond
    } else {
        Unit::Count
    };
    for table in ExitTable::ALL {
        let (rows_a, rows_b) = (rows(a, table), rows(b, table));
        let has = |pictures: &[Picture]| {
            pictures
                .iter()
                .any(|picture| picture.table(table).is_some())
        };
        // A table that one side was not asked for is no change.
        if !has(a) || !has(b) || rows_a.is_empty() && rows_b.is_empty() {
            continue;
        }
        if table != ExitTable::Vmexit
            && rows_a.is_empty() != rows_b.is_empty()
            && !recorded(a, b, table)
        {
            continue;
        }
        if table == ExitTable::Vmexit {
            whole(pair, a, b, out);
        }
        let total = |pictures: &[Picture]| -> f64 {
            let tables = pictures.iter().filter_map(|picture| picture.table(table));
            tables.map(|report| report.total_ns as f64).sum::<f64>()
        };
        let (total_a, total_b) = (total(a), total(b));
        let mut keys: Vec<&String> = rows_a.keys().chain(rows_b.keys()).collect();
        keys.sort();
        keys.dedup();
        let none = Row::default();
        for key in keys {
            let (row_a, row_b) = (
                rows_a.get(key).unwrap_or(&none),
                rows_b.get(key).unwrap_or(&none),
            );
            let (count_a, count_b) = (row_a.stats.count() as f64, row_b.stats.count() as f64);
            let (ns_a, ns_b) = (row_a.stats.total() as f64, row_b.stats.total() as f64);
            let (rate_a, rate_b) = (count_a / pair.per_a(), count_b / pair.per_b());
            let (time_a, time_b) = (ns_a / pair.per_a(), ns_b / pair.per_b());
            let measured = Measured::Exits(table, key.clone());
            let counts = [count_a, count_b];
            let by_count = sure(
                pair,
                [a, b],
                &|one| *one == measured,
                &|one| one.count,
                counts,
                counts,
            );
            let waiting = row_a.waiting || row_b.waiting;
            let name = row_a.name.as_ref().or(row_b.name.as_ref());
            let called = name.map_or_else(|| key.clone(), |name| format!("{key} ({name})"));
            let second = pair.in_a_second();
            let kind = if waiting { " (waiting)" } else { "" };
            let text = if row_b.stats.count() == 0 {
                format!(
                    "{called} gone{kind}: it was {} of the time of {} ({} of them{second}, {}{second}).",
                    percent(ns_a / total_a.max(1.0)),
                    of(table),
                    number(rate_a),
                    time(time_a)
                )
            } else if row_a.stats.count() == 0 {
                format!(
                    "{called} is new{kind}: {} of the time of {} ({} of them{second}, {}{second}).",
                    percent(ns_b / total_b.max(1.0)),
                    of(table),
                    number(rate_b),
                    time(time_b)
                )
            } else {
                format!(
                    "{called}{kind}: {} to {}{second} ({}); their time {} to {}{second}, {} to {} each.",
                    number(rate_a),
                    number(rate_b),
                    change(rate_a, rate_b),
                    time(time_a),
                    time(time_b),
                    time(row_a.stats.mean_f64()),
                    time(row_b.stats.mean_f64()),
                )
            };
            // Devices' accesses are within exits: they say which, and are not time on top.
            let weight = match (waiting, table) {
                (true, _) => WAITING,
                (false, ExitTable::Vmexit) => 1.0,
                (false, _) => 0.5,
            };
            push(
                out,
                Change {
                    what: format!("{} {key}", table.name()),
                    unit,
                    a: value(rate_a, row_a.stats.count() > 0),
                    b: value(rate_b, row_b.stats.count() > 0),
                    confidence: Some(by_count),
                    effect_ns: (time_b - time_a) * weight,
                    per_work: pair.per_work(count_a, count_b),
                    text,
                },
            );
        }
    }
}

/// Whether both sides would have the accesses of a table if there were any.
fn recorded(a: &[Picture], b: &[Picture], table: ExitTable) -> bool {
    let event = match table {
        ExitTable::Ioport => "kvm_pio",
        ExitTable::Mmio => "kvm_mmio",
        ExitTable::Msr => "kvm_msr",
        ExitTable::Vmexit => "kvm_exit",
    };
    let has = |pictures: &[Picture]| {
        pictures
            .iter()
            .any(|picture| picture.events(event).is_some() || !picture.rows(table).is_empty())
            || pictures
                .iter()
                .any(|picture| picture.info.events.is_empty() && picture.table(table).is_some())
    };
    has(a) && has(b)
}

fn of(table: ExitTable) -> &'static str {
    match table {
        ExitTable::Vmexit => "all exits",
        ExitTable::Ioport => "all port accesses",
        ExitTable::Mmio => "all accesses of emulated memory",
        ExitTable::Msr => "all accesses of registers",
    }
}

/// All exits together, handling apart from waiting.
fn whole(pair: &Pair, a: &[Picture], b: &[Picture], out: &mut Vec<Change>) {
    let sums = |pictures: &[Picture]| {
        let tables = pictures
            .iter()
            .filter_map(|picture| picture.table(ExitTable::Vmexit));
        tables.fold((0.0, 0.0, 0.0), |sum, report| {
            let waiting = report.total_ns.saturating_sub(report.handling_ns);
            (
                sum.0 + report.total_count as f64,
                sum.1 + report.handling_ns as f64,
                sum.2 + waiting as f64,
            )
        })
    };
    let (sum_a, sum_b) = (sums(a), sums(b));
    let second = pair.in_a_second();
    let unit = if pair.rates {
        Unit::PerSecond
    } else {
        Unit::Count
    };
    let idle: Vec<String> = [a, b]
        .iter()
        .flat_map(|pictures| rows(pictures, ExitTable::Vmexit))
        .filter(|(_, row)| row.waiting)
        .map(|(key, _)| key)
        .collect();
    let counts = [sum_a.0, sum_b.0];
    // `None` picks all exits, else those that are waiting, or those that are not.
    let confidence = |waiting: Option<bool>, sums: [f64; 2]| {
        let pick = |one: &Measured| match one {
            Measured::Exits(ExitTable::Vmexit, key) => {
                waiting.is_none_or(|waiting| idle.contains(key) == waiting)
            }
            _ => false,
        };
        let amount = |one: &Amount| if waiting.is_none() { one.count } else { one.ns };
        sure(pair, [a, b], &pick, &amount, sums, counts)
    };
    let (rate_a, rate_b) = (sum_a.0 / pair.per_a(), sum_b.0 / pair.per_b());
    push(
        out,
        Change {
            what: "exits".to_owned(),
            unit,
            a: value(rate_a, sum_a.0 > 0.0),
            b: value(rate_b, sum_b.0 > 0.0),
            confidence: Some(confidence(None, counts)),
            effect_ns: 0.0,
            per_work: pair.per_work(sum_a.0, sum_b.0),
            text: format!(
                "Exits {}: {} to {}{second} ({}).",
                if rate_b > rate_a { "rose" } else { "fell" },
                number(rate_a),
                number(rate_b),
                change(rate_a, rate_b)
            ),
        },
    );
    for (name, words, of_a, of_b, weight) in [
        (
            "handling",
            "The time of exits without waiting",
            sum_a.1,
            sum_b.1,
            1.0,
        ),
        ("waiting", "Waiting (halted)", sum_a.2, sum_b.2, WAITING),
    ] {
        let waiting = name == "waiting";
        let (ns_a, ns_b) = (of_a / pair.per_a(), of_b / pair.per_b());
        if of_a == 0.0 && of_b == 0.0 {
            continue;
        }
        push(
            out,
            Change {
                what: format!("exits {name}"),
                unit: Unit::Nanoseconds,
                a: value(ns_a, true),
                b: value(ns_b, true),
                confidence: Some(confidence(Some(waiting), [of_a, of_b])),
                effect_ns: (ns_b - ns_a) * weight,
                per_work: pair.per_work(of_a, of_b),
                text: format!(
                    "{words} {}: {} to {}{second} ({}).",
                    if ns_b > ns_a { "rose" } else { "fell" },
                    time(ns_a),
                    time(ns_b),
                    change(ns_a, ns_b)
                ),
            },
        );
    }
}
