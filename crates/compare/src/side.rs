//! Both sides as a whole: what they were done for, and the sums of their rows.

use std::collections::BTreeMap;

use analysis::{ExitTable, Origin, Picture};
use event::Isa;
use model::State;
use stats::Stats;

use crate::basis::{Basis, NumbersOrigin, SumDivisor, kind};
use crate::change::{PerWork, SideAmount, SideChange, SideName};
use words::{counted, duration, number};

/// What time that is spent counts in the ranking, beside time that is waited: an exit that is handled takes a vCPU's
/// time, a request that waits or a vCPU without a CPU misses it.
pub(crate) const SPENT: f64 = 0.5;

/// How units of work are counted on both sides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorkUnits {
    pub of: String,
    pub a: f64,
    pub b: f64,
}

/// Both sides.
#[derive(Debug, Clone)]
pub(crate) struct Pair<'a> {
    pub sides: [&'a [Picture]; 2],
    pub work: Vec<WorkUnits>,
    /// Work that a benchmark did in each second, where both sides have its result.
    pub rate: Option<WorkUnits>,
}

impl<'a> Pair<'a> {
    /// Counts work by what a benchmark did in each second of the recordings too: before what is counted otherwise,
    /// unless an event was `asked` for.
    pub(crate) fn count_by(&mut self, rate: Option<WorkUnits>, asked: bool) {
        self.rate = rate;
        let Some(rate) = &self.rate else { return };
        let recorded = |side: &[Picture]| {
            let kinds = side.iter().map(kind);
            !side.is_empty() && kinds.clone().all(|kind| kind == NumbersOrigin::Recording)
        };
        if self.sides.iter().all(|side| recorded(side)) {
            let work = WorkUnits {
                of: rate.of.clone(),
                a: rate.a * self.length(0),
                b: rate.b * self.length(1),
            };
            let at = usize::from(asked).min(self.work.len());
            self.work.insert(at, work);
        }
    }

    /// Returns sums for each unit of work; nothing where not all that work was counted in is compared.
    pub(crate) fn per_work(&self, basis: &Basis<'_>, a: f64, b: f64) -> Vec<PerWork> {
        let all = basis.sides[0].len() == self.sides[0].len()
            && basis.sides[1].len() == self.sides[1].len();
        if basis.per != SumDivisor::Second || !all {
            return Vec::new();
        }
        let each = self.work.iter().map(|work| PerWork {
            of: work.of.clone(),
            a: a / work.a,
            b: b / work.b,
        });
        each.collect()
    }

    /// Returns the side that has more of something of which less is better; `None` where it is the other way round for
    /// each event that is a unit of work.
    pub(crate) fn worse(&self, rates: [f64; 2], sums: [f64; 2]) -> Option<SideName> {
        let worse = SideName::more(rates[0], rates[1]);
        let mut events = self.work.iter().filter(|work| work.of != GUEST_TIME);
        match events.next() {
            Some(work) if SideName::more(sums[0] / work.a, sums[1] / work.b) != worse => None,
            _ => worse,
        }
    }

    /// Returns seconds of all recordings of a side, or how many tables it has if it has no recordings.
    pub(crate) fn length(&self, side: usize) -> f64 {
        let recordings = self.sides[side]
            .iter()
            .filter_map(|picture| picture.span_ns);
        let ns = recordings.fold(0u64, u64::saturating_add);
        if ns > 0 { ns as f64 / 1e9 } else { 1.0 }
    }

    /// Returns a full sentence each of how long the sides are, and of what they are of.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        let of = |side: usize, which: NumbersOrigin| {
            let each = self.sides[side].iter();
            each.filter(|picture| kind(picture) == which).count()
        };
        let recordings = [
            of(0, NumbersOrigin::Recording),
            of(1, NumbersOrigin::Recording),
        ];
        if recordings.iter().all(|count| *count > 0) {
            let [a, b] = [0, 1].map(|side| {
                format!(
                    "{} in {}",
                    duration::of_f64(self.length(side) * 1e9),
                    counted(recordings[side] as u64, "recording", "recordings")
                )
            });
            out.push(format!("A is {a}, B {b}; rates are for each second."));
            if recordings == [1, 1] {
                out.push(
                    "One recording on each side shows what varies within it, not what differs from run to run."
                        .to_owned(),
                );
            }
        }
        for (side, name) in ["A", "B"].iter().enumerate() {
            let untimed = self.sides[side]
                .iter()
                .filter(|picture| kind(picture) == NumbersOrigin::Untimed);
            for picture in untimed {
                let names = picture.names.join(", ");
                out.push(match picture.span_ns {
                    Some(_) => format!(
                        "{names} ({name}) has no duration, because all its events have one time: only shares can be \
                         compared."
                    ),
                    None => format!(
                        "The clock of {names} ({name}) counts ticks of unknown rate: shares of its exits, tasks and \
                         times can be compared, durations cannot."
                    ),
                });
            }
        }
        let work: Vec<String> = self
            .work
            .iter()
            .map(|work| format!("{} ({} and {})", work.of, number(work.a), number(work.b)))
            .collect();
        if !work.is_empty() {
            out.push(format!(
                "Work, for each unit of which values are given too: {}.",
                work.join(", ")
            ));
        }
        out
    }

    /// Returns the instruction sets of both sides where no set is on both.
    pub(crate) fn apart(&self) -> Option<(Isa, Isa)> {
        let of = |side: usize| -> Vec<Isa> {
            let each = self.sides[side].iter();
            each.filter_map(|picture| picture.isa).collect()
        };
        let (a, b) = (of(0), of(1));
        let shared = a.iter().any(|isa| b.contains(isa));
        (!shared).then_some((*a.first()?, *b.first()?))
    }
}

/// Events that are one unit of work each, by a part of their name: packets, then I/Os.
pub(crate) const WORK: [&str; 8] = [
    "tun_get_user",
    "tun_put_user",
    "net_dev_xmit",
    "netif_receive_skb",
    "block_rq_complete",
    "block_rq_issue",
    "virtio_queue_notify",
    "handle_tx",
];

/// What guest time is called where it is the unit of work.
pub(crate) const GUEST_TIME: &str = "second of guest time";

/// Returns what counts work on both sides.
///
/// # Errors
/// A sentence, if events that were asked for are not on both sides.
pub(crate) fn work(sides: [&[Picture]; 2], asked: Option<&str>) -> Result<Vec<WorkUnits>, String> {
    let count = |side: usize, name: &str| -> u64 {
        let each = sides[side].iter();
        each.map(|picture| picture.events_about(name))
            .fold(0, u64::saturating_add)
    };
    // What tables count and what recordings count are not of the same time.
    let mut all = sides.iter().flat_map(|side| side.iter());
    if all.any(|picture| picture.origin == Origin::Printed) {
        return match asked {
            Some(name) => Err(format!(
                "work cannot be counted by '{name}' where printed tables are compared: they have no events"
            )),
            None => Ok(Vec::new()),
        };
    }
    if let Some(name) = asked {
        for (side, of) in ["A", "B"].iter().enumerate() {
            if count(side, name) == 0 {
                return Err(format!(
                    "no event with '{name}' in its name is in {of}, so it cannot count work; 'trapline info' lists the \
                     events of a recording"
                ));
            }
        }
    }
    let names: Vec<&str> = match asked {
        Some(name) => vec![name],
        None => WORK.to_vec(),
    };
    let of_events = names.into_iter().find_map(|name| {
        let (a, b) = (count(0, name), count(1, name));
        (a > 0 && b > 0).then(|| WorkUnits {
            of: name.to_owned(),
            a: a as f64,
            b: b as f64,
        })
    });
    let ticks = |picture: &Picture| picture.span_ns.is_none();
    let guest = |side: usize| -> u64 {
        let each = sides[side].iter();
        each.map(|picture| picture.state_ns(State::Guest))
            .fold(0, u64::saturating_add)
    };
    let (ga, gb) = (guest(0), guest(1));
    let known = !sides.iter().any(|side| side.iter().any(ticks));
    // Less than a millisecond is no second to speak of.
    let guest = (known && ga.min(gb) >= 1_000_000).then(|| WorkUnits {
        of: GUEST_TIME.to_owned(),
        a: ga as f64 / 1e9,
        b: gb as f64 / 1e9,
    });
    Ok(of_events.into_iter().chain(guest).collect())
}

/// Count and time of one row over a side.
#[derive(Debug, Clone, Default)]
pub(crate) struct SideRow {
    pub stats: Stats,
    pub waiting: bool,
    pub name: Option<String>,
}

/// Returns the rows of a table of exits over a side.
pub(crate) fn rows(pictures: &[&Picture], table: ExitTable) -> BTreeMap<String, SideRow> {
    let mut out: BTreeMap<String, SideRow> = BTreeMap::new();
    for row in pictures.iter().flat_map(|picture| picture.rows(table)) {
        let sum = out.entry(row.key.clone()).or_default();
        sum.stats.merge(&row.stats);
        sum.waiting |= row.waiting;
        if sum.name.is_none() {
            sum.name.clone_from(&row.name);
        }
    }
    out
}

/// Returns the sum of durations, and the sum of their squares.
pub(crate) fn durations(stats: &Stats) -> (f64, f64) {
    let (count, mean) = (stats.count() as f64, stats.mean_f64());
    let error = stats.relative_error() * mean;
    (
        stats.total() as f64,
        count * (mean * mean + error * error * count),
    )
}

/// Returns a count, and the sum of the squares of its ones.
pub(crate) fn count(stats: &Stats) -> (f64, f64) {
    (stats.count() as f64, stats.count() as f64)
}

/// Returns a number that is there, or absence.
pub(crate) fn value(number: f64, there: bool) -> SideAmount {
    if there {
        SideAmount::Number(number)
    } else {
        SideAmount::Absent
    }
}

/// Adds a change if either side has it.
pub(crate) fn push(out: &mut Vec<SideChange>, change: SideChange) {
    if change.a != SideAmount::Absent || change.b != SideAmount::Absent {
        out.push(change);
    }
}
