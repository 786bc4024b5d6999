//! Results of benchmarks beside both sides: what the sides were measured by, and how much work they did.

use std::collections::BTreeMap;

use results::{Score, ScoreUnit};
use words::change;

use crate::chance;
use crate::change::{ChangeUnit, SideAmount, SideChange, SideName};
use crate::side::WorkUnits;

/// One thing that was measured on a side, several times perhaps.
#[derive(Debug)]
struct ScoredSide<'s> {
    first: &'s Score,
    values: Vec<f64>,
}

impl ScoredSide<'_> {
    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }
}

/// What was measured on a side, in the order of its texts.
fn by_title(scores: &[Score]) -> Vec<(String, ScoredSide<'_>)> {
    let mut out: Vec<(String, ScoredSide<'_>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for score in scores {
        let title = score.title();
        let at = *places.entry(title.clone()).or_insert(out.len());
        match out.get_mut(at) {
            Some((_, known)) if known.first.unit == score.unit => known.values.push(score.value),
            // The same name in another unit is another thing.
            Some(_) => {}
            None => out.push((
                title,
                ScoredSide {
                    first: score,
                    values: vec![score.value],
                },
            )),
        }
    }
    out
}

/// Returns what was measured on both sides, in the first side's order.
fn on_both<'s>(sides: [&'s [Score]; 2]) -> Vec<(String, [ScoredSide<'s>; 2])> {
    let [a, b] = sides.map(by_title);
    let mut of_b: BTreeMap<String, ScoredSide<'s>> = b.into_iter().collect();
    let each = a.into_iter();
    each.filter_map(|(title, a)| {
        let b = of_b.remove(&title)?;
        (a.first.unit == b.first.unit).then_some((title, [a, b]))
    })
    .collect()
}

/// Returns how much work both sides did in a second, by the first score that is of work.
pub(crate) fn work(sides: [&[Score]; 2]) -> Option<WorkUnits> {
    on_both(sides).into_iter().find_map(|(_, [a, b])| {
        let of = |side: &ScoredSide<'_>| {
            let value = side.mean();
            Score {
                value,
                ..side.first.clone()
            }
            .work()
        };
        let ((a, one), (b, _)) = (of(&a)?, of(&b)?);
        Some(WorkUnits { of: one, a, b })
    })
}

pub(crate) fn changes(sides: [&[Score]; 2], out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    if sides.iter().all(|side| side.is_empty()) {
        return;
    }
    let both = on_both(sides);
    if both.is_empty() {
        notes.push(match sides.map(named) {
            [a, b] if a.is_empty() => format!("A has no score to compare with those of B ({b})."),
            [a, b] if b.is_empty() => format!("B has no score to compare with those of A ({a})."),
            [a, b] => format!("No score is of both sides: A has {a}, B {b}."),
        });
        return;
    }
    for (title, sides) in both {
        out.push(one(&title, &sides));
    }
    if out.iter().any(|change| change.confidence.is_none()) {
        notes.push(
            "A score that was measured once on a side does not show how much it varies from run to run.".to_owned(),
        );
    }
}

/// Names that are listed of a side's scores.
const LISTED: usize = 4;

fn named(scores: &[Score]) -> String {
    let mut titles: Vec<String> = by_title(scores)
        .into_iter()
        .map(|(title, _)| title)
        .collect();
    let more = titles.len().saturating_sub(LISTED);
    titles.truncate(LISTED);
    if more > 0 {
        titles.push(format!("{more} more"));
    }
    titles.join(", ")
}

fn one(title: &str, sides: &[ScoredSide<'_>; 2]) -> SideChange {
    let [a, b] = [sides[0].mean(), sides[1].mean()];
    let score = sides[0].first;
    let less = SideName::more(b, a);
    let several = sides.iter().all(|side| side.values.len() > 1);
    let runs = match sides.each_ref().map(|side| side.values.len()) {
        [1, 1] => String::new(),
        [a, b] => format!(", means of {a} and {b} runs"),
    };
    SideChange {
        what: format!("score {title}"),
        unit: unit(score.unit),
        a: SideAmount::Number(a),
        b: SideAmount::Number(b),
        confidence: several
            .then(|| 1.0 - chance::runs(sides.each_ref().map(|side| side.values.clone()))),
        worse: match score.higher_is_better {
            true => less,
            false => SideName::more(a, b),
        },
        text: format!(
            "{title}: {} to {} ({}{runs}).",
            score.unit.amount(a),
            score.unit.amount(b),
            change(a, b)
        ),
        ..SideChange::default()
    }
}

fn unit(unit: ScoreUnit) -> ChangeUnit {
    match unit {
        ScoreUnit::PerSecond => ChangeUnit::PerSecond,
        ScoreUnit::BitsPerSecond => ChangeUnit::BitsPerSecond,
        ScoreUnit::BytesPerSecond => ChangeUnit::BytesPerSecond,
        ScoreUnit::Nanoseconds => ChangeUnit::Nanoseconds,
        ScoreUnit::Share => ChangeUnit::Share,
        ScoreUnit::Number => ChangeUnit::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Score> {
        results::scores(text.as_bytes())
    }

    fn compared(a: &str, b: &str) -> (Vec<SideChange>, String) {
        let (a, b) = (of(a), of(b));
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        changes([&a, &b], &mut out, &mut notes);
        (out, notes.join(" "))
    }

    const PING: &str = "rtt min/avg/max/mdev = 0.100/0.200/0.300/0.010 ms\n";

    #[test]
    fn more_is_better_of_rates_and_less_of_times() {
        let (changes, notes) = compared(
            "    events per second:   280.83\n",
            "    events per second:   287.60\n",
        );
        let change = &changes[0];
        assert_eq!(change.what, "score sysbench events per second");
        assert_eq!(
            change.text,
            "sysbench events per second: 280.83 to 287.60 (+2 %)."
        );
        assert_eq!((change.worse, change.confidence), (Some(SideName::A), None));
        assert!(notes.contains("once on a side"), "{notes}");
        let slower = PING.replace("0.200", "1.300");
        let (changes, _) = compared(PING, &slower);
        let mean = changes.iter().find(|one| one.what == "score ping rtt avg");
        let mean = mean.expect("the mean");
        assert_eq!(
            (mean.worse, mean.unit),
            (Some(SideName::B), ChangeUnit::Nanoseconds)
        );
        let same = changes.iter().find(|one| one.what == "score ping rtt min");
        assert_eq!(same.expect("the shortest").worse, None);
    }

    #[test]
    fn several_runs_say_how_sure_it_is() {
        let runs = |rates: [f64; 3]| -> String {
            let each = rates
                .iter()
                .map(|rate| format!("events per second: {rate}\n"));
            each.collect()
        };
        let (changes, notes) = compared(&runs([280.0, 281.0, 280.5]), &runs([287.0, 287.6, 287.2]));
        assert!(
            changes[0].confidence.expect("several runs") > 0.99,
            "{changes:?}"
        );
        assert!(
            changes[0].text.contains("means of 3 and 3 runs"),
            "{changes:?}"
        );
        assert!(notes.is_empty(), "{notes}");
        let (changes, _) = compared(&runs([270.0, 290.0, 280.0]), &runs([287.0, 277.0, 283.0]));
        assert!(
            changes[0].confidence.expect("several runs") < 0.8,
            "{changes:?}"
        );
    }

    #[test]
    fn what_one_side_alone_has_is_said() {
        let (changes, notes) = compared("events per second: 5\n", PING);
        assert!(changes.is_empty());
        assert!(
            notes.contains("A has sysbench events per second, B ping rtt min"),
            "{notes}"
        );
        let (_, notes) = compared("", PING);
        assert!(notes.contains("A has no score"), "{notes}");
        assert_eq!(compared("", "").1, "");
    }

    #[test]
    fn rates_count_work() {
        let (a, b) = (
            of("events per second: 100\n"),
            of("events per second: 300\n"),
        );
        let found = work([&a, &b]).expect("work");
        assert_eq!(
            (found.of.as_str(), found.a, found.b),
            ("request of sysbench", 100.0, 300.0)
        );
        let trips = of(PING);
        assert_eq!(work([&trips, &trips]), None);
    }
}
