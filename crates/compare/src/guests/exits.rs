//! Exits by what guests did when they left.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Amount, ExitTable, SliceAmounts, SliceMeasure};
use stats::Stats;
use words::{change, duration, number};

use super::known::{GuestActivity, KnownGuests, RecordedGuests};
use crate::basis::even;
use crate::chance::{self, SampledSum};
use crate::change::{ChangeUnit, SideChange};
use crate::exits::{WAITING, amount, of_exits_alone};
use crate::rows::{Lead, RowPieces};
use crate::side::{Pair, SPENT, count, durations, push, value};

/// What the time of these rows counts in the ranking: behind the rows of hosts, which are of the same exits.
const BEHIND: f64 = 0.9;

/// A row's key, and what guests did.
type GuestExitKey = (String, GuestActivity);

/// One row of one recording.
#[derive(Debug, Clone, Default)]
struct GuestExitRow {
    stats: Stats,
    waiting: bool,
    /// What is known of the device behind it.
    name: Option<String>,
    slices: SliceAmounts,
}

pub(super) fn changes(pair: &Pair<'_>, known: &KnownGuests<'_>, out: &mut Vec<SideChange>) {
    // Reasons of other instruction sets are others.
    if pair.apart().is_some() {
        return;
    }
    for table in ExitTable::ALL {
        // What one side did not record is no change, and hosts' rows say so.
        let sides = known.basis.sides.each_ref().map(|side| {
            let has = |picture: &&analysis::Picture| amount(picture, table).is_some();
            side.iter().all(has)
        });
        if sides == [true, true] && of_exits_alone(pair.sides, table).is_none() {
            of_table(pair, known, table, out);
        }
    }
}

fn of_table(pair: &Pair<'_>, known: &KnownGuests<'_>, table: ExitTable, out: &mut Vec<SideChange>) {
    let sides = known.sides.each_ref().map(|side| -> Vec<_> {
        let each = side.iter();
        each.map(|of| rows(of, known, table)).collect()
    });
    let keys: BTreeSet<&GuestExitKey> = sides.iter().flatten().flat_map(BTreeMap::keys).collect();
    for key in keys {
        let row = ComparedGuestRow {
            known,
            table,
            key,
            sides: sides.each_ref().map(|side| -> Vec<Option<&GuestExitRow>> {
                side.iter().map(|rows| rows.get(key)).collect()
            }),
        };
        push(out, row.change(pair));
    }
}

/// Returns the rows of a table of one recording, by what they have in common with those of another one.
fn rows(
    of: &RecordedGuests<'_>,
    known: &KnownGuests<'_>,
    table: ExitTable,
) -> BTreeMap<GuestExitKey, GuestExitRow> {
    let mut out: BTreeMap<GuestExitKey, GuestExitRow> = BTreeMap::new();
    for row in of.picture.guest_rows(table) {
        let name = row
            .task
            .as_ref()
            .and_then(|task| GuestActivity::of(&task.did()));
        let Some(name) = name.filter(|name| known.is_compared(name)) else {
            continue;
        };
        let sum = out.entry((row.key.clone(), name)).or_default();
        sum.stats.merge(&row.stats);
        sum.waiting |= row.waiting;
        if sum.name.is_none() {
            sum.name.clone_from(&row.name);
        }
    }
    for (measured, list) in &of.picture.series.of {
        let SliceMeasure::GuestExits(of_table, key, did) = measured else {
            continue;
        };
        let name = GuestActivity::of(did).filter(|_| *of_table == table);
        let Some(row) = name.and_then(|name| out.get_mut(&(key.clone(), name))) else {
            continue;
        };
        row.slices.merge(list);
    }
    out
}

/// A row on both sides, by recording.
struct ComparedGuestRow<'k> {
    known: &'k KnownGuests<'k>,
    table: ExitTable,
    key: &'k GuestExitKey,
    sides: [Vec<Option<&'k GuestExitRow>>; 2],
}

impl ComparedGuestRow<'_> {
    fn stats(&self, side: usize) -> Stats {
        let mut sum = Stats::default();
        for row in self.sides[side].iter().flatten() {
            sum.merge(&row.stats);
        }
        sum
    }

    /// Returns the sums of a side's recordings, and when they were.
    fn runs(
        &self,
        side: usize,
        sum: fn(&Stats) -> (f64, f64),
        amount: fn(&Amount) -> u64,
    ) -> Vec<SampledSum> {
        let each = self.sides[side].iter().zip(&self.known.sides[side]);
        each.map(|(row, of)| {
            let per = of.of_seconds();
            let Some(row) = row else {
                return per.nothing(of);
            };
            let mut slices = vec![0.0; of.picture.series.slice_ns.len()];
            row.slices.add_to(&mut slices, amount);
            even(of.picture, &mut slices);
            per.run(of, sum(&row.stats), &slices)
        })
        .collect()
    }

    fn change(&self, pair: &Pair<'_>) -> SideChange {
        let stats = [0, 1].map(|side| self.stats(side));
        let all = || self.sides.iter().flatten().flatten();
        let waiting = all().any(|row| row.waiting);
        let few = stats[0].count().saturating_add(stats[1].count());
        let chance = |sum: fn(&Stats) -> (f64, f64), amount: fn(&Amount) -> u64| {
            if few < RowPieces::FEW {
                return 1.0;
            }
            let [a, b] = [0, 1].map(|side| self.runs(side, sum, amount));
            chance::rates(&a, &b)
        };
        let rates = |sum: fn(&Stats) -> (f64, f64)| {
            [0, 1].map(|side: usize| sum(&stats[side]).0 / self.known.seconds(side))
        };
        let (counts, times) = (rates(count), rates(durations));
        let there = [0, 1].map(|side: usize| stats[side].count() > 0);
        let pieces = RowPieces {
            count: (chance(count, |one| one.count), counts),
            time: (chance(durations, |one| one.ns), times),
            few,
        };
        let (lead, confidence) = pieces.lead();
        let by_time = lead == Lead::Time && there == [true, true];
        let of = |by_time: bool| {
            let ([a, b], words, unit) = match by_time {
                true => (times, " time", ChangeUnit::Nanoseconds),
                false => (counts, "", ChangeUnit::PerSecond),
            };
            let (key, name) = self.key;
            let what = format!(
                "guest {} {key}{words} in {}",
                self.table.name(),
                name.what()
            );
            (what, unit, value(a, there[0]), value(b, there[1]))
        };
        let (what, unit, a, b) = of(by_time);
        // As hosts' rows of the same exits.
        let weight = match (waiting, self.table) {
            (true, _) => WAITING,
            (false, ExitTable::Vmexit) => 1.0,
            (false, _) => 0.5,
        };
        let ns = [0, 1].map(|side: usize| times[side] * pair.length(side));
        let often = by_time.then(|| pieces.often());
        SideChange {
            what,
            unit,
            a,
            b,
            confidence: Some(confidence),
            effect_ns: (times[1] - times[0]) * weight * SPENT * BEHIND,
            worse: pair.worse(times, ns).filter(|_| !waiting),
            text: self.text(waiting, &stats, counts, times, often),
            few: few < RowPieces::FEW,
            also: Some(of(!by_time)),
            ..SideChange::default()
        }
    }

    /// One sentence; `often` has the words for how often, if it is the time that is the news.
    fn text(
        &self,
        waiting: bool,
        stats: &[Stats; 2],
        counts: [f64; 2],
        times: [f64; 2],
        often: Option<&'static str>,
    ) -> String {
        let (key, name) = self.key;
        let device = self.sides.iter().flatten().flatten();
        let device = device
            .filter_map(|row| row.name.as_deref())
            .next()
            .map(|device| format!(" ({device})"));
        let called = format!(
            "{key}{}{} in {}",
            device.unwrap_or_default(),
            if waiting { " (waiting)" } else { "" },
            name.words()
        );
        let [count_a, count_b] = counts.map(number);
        let [time_a, time_b] = times.map(duration::of_f64);
        let means = [0, 1].map(|side: usize| stats[side].mean_f64());
        let [mean_a, mean_b] = means.map(duration::of_f64);
        if stats[1].count() == 0 {
            return format!("{called} gone: it was {count_a} in a second, {time_a} together.");
        }
        if stats[0].count() == 0 {
            return format!("{called} is new: it is {count_b} in a second, {time_b} together.");
        }
        match often {
            Some(often) => format!(
                "{called} took {mean_a} to {mean_b} each ({}), {time_a} to {time_b} in a second together; {often} \
                 ({count_a} and {count_b} in a second).",
                change(means[0], means[1])
            ),
            None => format!(
                "{called}: {count_a} to {count_b} in a second ({}); their time {time_a} to {time_b} in a second, \
                 {mean_a} to {mean_b} each.",
                change(counts[0], counts[1])
            ),
        }
    }
}
