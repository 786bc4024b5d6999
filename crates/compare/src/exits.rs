//! Exits by reason and device.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Amount, ExitTable, Picture, SliceMeasure};
use event::Isa;

use crate::basis::{Basis, NumbersOrigin, SumDivisor, kind};
use crate::change::{ChangeUnit, Level, SideChange, SideName};
use crate::rows::{Lead, RowPieces};
use crate::side::{Pair, SPENT, SideRow, count, durations, push, rows, value};
use crate::{burst, chance, contradictions};
use words::{change, duration, number, share, went};

/// What waiting counts in the ranking: it is mostly somebody else's time.
pub(crate) const WAITING: f64 = 0.1;

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    for table in ExitTable::ALL {
        if let Some(side) = of_exits_alone(pair.sides, table) {
            notes.push(format!(
                "{} are not compared: {} was not recorded in {}, and the exits' own are timed otherwise.",
                of(table, "Accesses"),
                event_of(table),
                ["A", "B"][side]
            ));
            continue;
        }
        let basis = match Basis::of(pair.sides, &|picture| amount(picture, table)) {
            Ok(basis) => basis,
            Err([true, true]) => continue,
            // A table of devices that one side was not asked for is no change.
            Err(missing) if table != ExitTable::Vmexit => {
                let event = event_of(table);
                let (here, missing) = if missing[0] { (1, "A") } else { (0, "B") };
                let mut here = pair.sides[here].iter();
                let mut all = pair.sides.iter().flat_map(|side| side.iter());
                // Of what a tool printed nobody knows what else it could have printed.
                let printed = all.any(|picture| kind(picture) == NumbersOrigin::Printed);
                if !printed && here.any(|picture| picture.events(event) > Some(0)) {
                    notes.push(format!(
                        "{} are not compared: {event} was not recorded in {missing}.",
                        of(table, "Accesses")
                    ));
                }
                continue;
            }
            Err(missing) => {
                notes.push(format!(
                    "Exits are not compared: {} has none.",
                    if missing[0] { "A" } else { "B" }
                ));
                continue;
            }
        };
        let apart = contradictions::keys(&basis.sides, table);
        if !apart.is_empty() {
            let sums = contradictions::reach_sums(&basis.sides, table);
            notes.push(contradictions::note(&apart, sums));
            if sums {
                continue;
            }
        }
        if table == ExitTable::Vmexit {
            notes.extend(note(&basis));
            if reversed(&basis) {
                notes.push(
                    "On arm64 perf kvm stat measures how long the guest ran before each exit, not how long the exit \
                     was handled: its tables have those times."
                        .to_owned(),
                );
            }
            whole(pair, &basis, out);
            if let Some((a, b)) = pair.apart() {
                notes.push(format!(
                    "A is of {}, B of {}: their exit reasons differ, so exits are only compared as a whole.",
                    a.name(),
                    b.name()
                ));
                continue;
            }
        }
        each(pair, &basis, table, &apart, out);
    }
}

/// Returns the side (0 or 1) whose table is of the exits themselves, where that of the other is of events of the
/// accesses: these are timed from other moments.
pub(crate) fn of_exits_alone(sides: [&[Picture]; 2], table: ExitTable) -> Option<usize> {
    let has = |side: usize, from_exits: bool| {
        let tables = sides[side].iter().filter_map(|one| one.table(table));
        let mut counted = tables.filter(|report| report.total_count > 0);
        counted.any(|report| report.from_exits == from_exits)
    };
    (0..2).find(|side| has(*side, true) && (has(0, false) || has(1, false)))
}

/// Returns how many a picture has; `None` if it would not have any.
pub(crate) fn amount(picture: &Picture, table: ExitTable) -> Option<u64> {
    let report = picture.table(table)?;
    let event = event_of(table);
    let asked = picture.info.events.is_empty() || picture.recorded(event) == Some(true);
    (report.total_count > 0 || asked).then_some(report.total_count)
}

/// The event that a table is made of.
fn event_of(table: ExitTable) -> &'static str {
    match table {
        ExitTable::Vmexit => "kvm_exit",
        ExitTable::Ioport => "kvm_pio",
        ExitTable::Mmio => "kvm_mmio",
        ExitTable::Msr => "kvm_msr",
    }
}

fn note(basis: &Basis<'_>) -> Option<String> {
    match basis.per {
        SumDivisor::Second => None,
        SumDivisor::Table => Some(
            "Printed tables do not say how much time they cover: counts and times of exits are compared as they are, \
             which is right if both cover the same time."
                .to_owned(),
        ),
        SumDivisor::All if basis.timed && !reversed(basis) => Some(
            "The duration of a side is unknown, so exits are compared by shares and mean times, not by counts."
                .to_owned(),
        ),
        SumDivisor::All => {
            Some("Exits are compared by shares only, not by counts or times.".to_owned())
        }
    }
}

/// Whether times are of tables that pair exits with the entry before, as upstream perf does on arm64: it has
/// `kvm_entry` begin and `kvm_exit` end an interval there (tools/perf/arch/arm64/util/kvm-stat.c).
fn reversed(basis: &Basis<'_>) -> bool {
    let mut all = basis.sides.iter().flatten();
    all.any(|picture| kind(picture) == NumbersOrigin::Printed && picture.isa == Some(Isa::Arm64))
}

fn of(table: ExitTable, accesses: &str) -> String {
    match table {
        ExitTable::Vmexit => "all exits".to_owned(),
        ExitTable::Ioport => format!("{accesses} of ports"),
        ExitTable::Mmio => format!("{accesses} of emulated memory"),
        ExitTable::Msr => format!("{accesses} of registers"),
    }
}

/// Sums of a table over a side.
#[derive(Debug, Clone, Copy, Default)]
struct TableSums {
    count: f64,
    handling_ns: f64,
    waiting_ns: f64,
}

impl TableSums {
    fn ns(self) -> f64 {
        self.handling_ns + self.waiting_ns
    }

    /// Returns what a row's time is a share of, and in words: where exits mostly wait, of the others' time.
    fn base(self, table: ExitTable, waiting: bool) -> (f64, String) {
        if table == ExitTable::Vmexit && !waiting && self.waiting_ns > self.handling_ns {
            (self.handling_ns, "exits without waiting".to_owned())
        } else {
            (self.ns(), of(table, "all accesses"))
        }
    }

    fn of(pictures: &[&Picture], table: ExitTable) -> TableSums {
        let tables = pictures.iter().filter_map(|picture| picture.table(table));
        tables.fold(TableSums::default(), |sum, report| {
            let waiting = report.total_ns.saturating_sub(report.handling_ns);
            TableSums {
                count: sum.count + report.total_count as f64,
                handling_ns: sum.handling_ns + report.handling_ns as f64,
                waiting_ns: sum.waiting_ns + waiting as f64,
            }
        })
    }
}

/// Row by row.
fn each(
    pair: &Pair<'_>,
    basis: &Basis<'_>,
    table: ExitTable,
    apart: &BTreeSet<&str>,
    out: &mut Vec<SideChange>,
) {
    let (rows_a, rows_b) = (rows(&basis.sides[0], table), rows(&basis.sides[1], table));
    let all = [0, 1].map(|side: usize| TableSums::of(&basis.sides[side], table));
    let mut keys: Vec<&String> = rows_a.keys().chain(rows_b.keys()).collect();
    keys.retain(|key| !apart.contains(key.as_str()));
    keys.sort();
    keys.dedup();
    let none = SideRow::default();
    let index = [0, 1].map(|side: usize| ExitIndex::of(&basis.sides[side], table));
    for key in keys {
        let row = [
            rows_a.get(key).unwrap_or(&none),
            rows_b.get(key).unwrap_or(&none),
        ];
        let name = row[0].name.as_ref().or(row[1].name.as_ref());
        let waiting = row[0].waiting || row[1].waiting;
        let kind = if waiting { " (waiting)" } else { "" };
        let called = name.map_or_else(|| key.clone(), |name| format!("{key} ({name})"));
        // Devices' accesses are within exits: they say which, and are not time on top.
        let weight = match (waiting, table) {
            (true, _) => WAITING,
            (false, ExitTable::Vmexit) => 1.0,
            (false, _) => 0.5,
        };
        let row = ComparedRow {
            key,
            called: format!("{called}{kind}"),
            stats: [&row[0].stats, &row[1].stats],
            all,
            weight: weight * SPENT,
            waiting,
            table,
        };
        push(
            out,
            match basis.per {
                SumDivisor::All => row.by_share(basis),
                SumDivisor::Second | SumDivisor::Table => row.by_rate(pair, basis, &index),
            },
        );
    }
}

/// Number and time of the rows of each picture, with their squares, by key.
struct ExitIndex<'a>(Vec<BTreeMap<&'a str, [(f64, f64); 2]>>);

impl<'a> ExitIndex<'a> {
    fn of(pictures: &[&'a Picture], table: ExitTable) -> ExitIndex<'a> {
        let each = pictures.iter().map(|picture| {
            let mut rows: BTreeMap<&str, [(f64, f64); 2]> = BTreeMap::new();
            for row in picture.rows(table) {
                let sums = rows.entry(&row.key).or_default();
                for (sum, more) in sums
                    .iter_mut()
                    .zip([count(&row.stats), durations(&row.stats)])
                {
                    *sum = (sum.0 + more.0, sum.1 + more.1);
                }
            }
            rows
        });
        ExitIndex(each.collect())
    }

    /// Returns the sums of a row in each picture: of its number (0) or its time (1).
    fn sums(&self, key: &str, which: usize) -> Vec<(f64, f64)> {
        let each = self.0.iter();
        each.map(|rows| rows.get(key).map_or((0.0, 0.0), |sums| sums[which]))
            .collect()
    }
}

/// One row on both sides.
struct ComparedRow<'a> {
    key: &'a str,
    called: String,
    stats: [&'a stats::Stats; 2],
    all: [TableSums; 2],
    weight: f64,
    waiting: bool,
    table: ExitTable,
}

impl ComparedRow<'_> {
    fn by_rate(
        &self,
        pair: &Pair<'_>,
        basis: &Basis<'_>,
        index: &[ExitIndex<'_>; 2],
    ) -> SideChange {
        let measured = SliceMeasure::Exits(self.table, self.key.to_owned());
        let of = |_: usize| vec![measured.clone()];
        let few = self.stats[0].count().saturating_add(self.stats[1].count());
        let chance = |which: usize, amount: fn(&Amount) -> u64| {
            let [a, b] = [0, 1].map(|side: usize| {
                basis.runs_of(side, &index[side].sums(self.key, which), &of, amount)
            });
            let chance = if few < RowPieces::FEW {
                1.0
            } else {
                chance::rates(&a, &b)
            };
            (chance, burst::is_one(&a, &b))
        };
        let [counts, times] = [count, durations]
            .map(|sum| [0, 1].map(|side: usize| sum(self.stats[side]).0 / basis.exposure(side)));
        let there = [0, 1].map(|side: usize| self.stats[side].count() > 0);
        let (of_count, _) = chance(0, |one| one.count);
        let (of_time, burst) = chance(1, |one| one.ns);
        let pieces = RowPieces {
            count: (of_count, counts),
            time: (of_time, times),
            few,
        };
        let (lead, confidence) = pieces.lead();
        // Of a few nothing is tested; the burst that one of them is is one of time.
        let of_burst = burst && few < RowPieces::FEW;
        let by_time = (lead == Lead::Time || of_burst) && there[0] && there[1];
        let name = |by_time: bool| {
            let time = if by_time { " time" } else { "" };
            format!("{} {}{time}", self.table.name(), self.key)
        };
        let unit = |by_time: bool| {
            if by_time {
                ChangeUnit::Nanoseconds
            } else {
                basis.unit()
            }
        };
        let values = |by_time: bool| {
            let [a, b] = if by_time { times } else { counts };
            (value(a, there[0]), value(b, there[1]))
        };
        let sums =
            |sum: fn(&stats::Stats) -> (f64, f64)| [0, 1].map(|at: usize| sum(self.stats[at]).0);
        let work = sums(if by_time { durations } else { count });
        let ((a, b), (other_a, other_b)) = (values(by_time), values(!by_time));
        SideChange {
            what: name(by_time),
            unit: unit(by_time),
            a,
            b,
            confidence: Some(confidence),
            effect_ns: (times[1] - times[0]) * self.weight,
            per_work: pair.per_work(basis, work[0], work[1]),
            worse: pair
                .worse(times, sums(durations))
                .filter(|_| !self.waiting && !reversed(basis)),
            text: self.text(basis, counts, times, by_time.then(|| pieces.often())),
            few: few < RowPieces::FEW,
            burst,
            also: Some((name(!by_time), unit(!by_time), other_a, other_b)),
            ..SideChange::default()
        }
    }

    /// One sentence; `often` has the words for how often, if it is the time that is the news.
    fn text(
        &self,
        basis: &Basis<'_>,
        counts: [f64; 2],
        times: [f64; 2],
        often: Option<&'static str>,
    ) -> String {
        let ComparedRow { called, stats, .. } = self;
        let each = basis.each();
        let only = |side: usize, words: &str| {
            let (base, of) = self.all[side].base(self.table, self.waiting);
            format!(
                "{called} {words}{} of the time of {of} ({} of them{each}, {}{each}).",
                share::rough(times[side] * basis.exposure(side) / base.max(1.0)),
                number(counts[side]),
                duration::of_f64(times[side])
            )
        };
        let means = [
            duration::of_f64(stats[0].mean_f64()),
            duration::of_f64(stats[1].mean_f64()),
        ];
        if stats[1].count() == 0 {
            return only(0, "gone: it was ");
        }
        if stats[0].count() == 0 {
            return only(1, "is new: it is ");
        }
        match often {
            Some(often) => format!(
                "{called} took {} to {} each ({}), {} to {}{each} together; {often} ({} and {}{each}).",
                means[0],
                means[1],
                change(stats[0].mean_f64(), stats[1].mean_f64()),
                duration::of_f64(times[0]),
                duration::of_f64(times[1]),
                number(counts[0]),
                number(counts[1]),
            ),
            None => format!(
                "{called}: {} to {}{each} ({}); their time {} to {}{each}, {} to {} each.",
                number(counts[0]),
                number(counts[1]),
                change(counts[0], counts[1]),
                duration::of_f64(times[0]),
                duration::of_f64(times[1]),
                means[0],
                means[1],
            ),
        }
    }

    /// Where counts are not of the same time: by shares and means.
    fn by_share(&self, basis: &Basis<'_>) -> SideChange {
        let share = |side: usize| self.stats[side].count() as f64 / self.all[side].count.max(1.0);
        let of_time = |side: usize| self.stats[side].total() as f64 / self.all[side].ns().max(1.0);
        let parts =
            [0, 1].map(|side: usize| (self.stats[side].count() as f64, self.all[side].count));
        let timed = basis.timed && !reversed(basis);
        let by_mean = if timed {
            chance::means(self.stats[0], self.stats[1])
        } else {
            1.0
        };
        let means = [0, 1].map(|side: usize| self.stats[side].mean_f64());
        let pieces = RowPieces {
            count: (
                chance::shares(parts[0], parts[1], chance::BURST),
                [share(0), share(1)],
            ),
            time: (by_mean, means),
            few: self.stats[0].count().saturating_add(self.stats[1].count()),
        };
        let (lead, confidence) = pieces.lead();
        let there = [0, 1].map(|side: usize| self.stats[side].count() > 0);
        let by_time = timed && lead == Lead::Time && there[0] && there[1];
        let shares = format!(
            "{} to {} of {}",
            share::rough(share(0)),
            share::rough(share(1)),
            of(self.table, "all accesses")
        );
        let called = &self.called;
        let text = match there {
            [_, false] => format!(
                "{called} gone: it was {} of {}.",
                share::rough(share(0)),
                of(self.table, "all accesses")
            ),
            [false, _] => format!(
                "{called} is new: it is {} of {}.",
                share::rough(share(1)),
                of(self.table, "all accesses")
            ),
            _ if !timed => format!("{called}: {shares}."),
            _ => format!(
                "{called}: {shares}; {} to {} each on average ({}).",
                duration::of_f64(means[0]),
                duration::of_f64(means[1]),
                change(means[0], means[1])
            ),
        };
        // Shares of the time that the shorter side has: what the row would have cost there.
        let scale = self.all[0].ns().min(self.all[1].ns());
        let [a, b] = if by_time { means } else { [share(0), share(1)] };
        SideChange {
            what: format!(
                "{} {}{}",
                self.table.name(),
                self.key,
                if by_time { " mean time" } else { "" }
            ),
            unit: if by_time {
                ChangeUnit::Nanoseconds
            } else {
                ChangeUnit::Share
            },
            a: value(a, there[0]),
            b: value(b, there[1]),
            confidence: Some(confidence),
            effect_ns: (of_time(1) - of_time(0)) * scale * self.weight,
            worse: SideName::more(of_time(0), of_time(1)).filter(|_| timed && !self.waiting),
            text,
            few: self.stats[0].count().saturating_add(self.stats[1].count()) < RowPieces::FEW,
            ..SideChange::default()
        }
    }
}

/// All exits together, handling apart from waiting.
fn whole(pair: &Pair<'_>, basis: &Basis<'_>, out: &mut Vec<SideChange>) {
    if basis.per == SumDivisor::All {
        return;
    }
    let sums = [0, 1].map(|side: usize| TableSums::of(&basis.sides[side], ExitTable::Vmexit));
    push(out, all_exits(pair, basis, sums));
    for waiting in [false, true] {
        if let Some(change) = time_of_exits(pair, basis, sums, waiting) {
            push(out, change);
        }
    }
}

/// Returns how sure it is that exits changed: how many they are (`None`), or how long those take that are waiting
/// (`Some(true)`) or are not (`Some(false)`).
fn sure(basis: &Basis<'_>, waiting: Option<bool>) -> f64 {
    let idle: Vec<String> = (0..2)
        .flat_map(|side| rows(&basis.sides[side], ExitTable::Vmexit))
        .filter(|(_, row)| row.waiting)
        .map(|(key, _)| key)
        .collect();
    let taken = |key: &String| waiting.is_none_or(|waiting| idle.contains(key) == waiting);
    let pick = |one: &SliceMeasure| matches!(one, SliceMeasure::Exits(ExitTable::Vmexit, key) if taken(key));
    let amount = |one: &Amount| if waiting.is_none() { one.count } else { one.ns };
    let sum = |picture: &Picture| {
        let rows = picture.rows(ExitTable::Vmexit).iter();
        rows.filter(|row| taken(&row.key))
            .fold((0.0, 0.0), |sum, row| {
                let (one, squares) = match waiting {
                    None => count(&row.stats),
                    Some(_) => durations(&row.stats),
                };
                (sum.0 + one, sum.1 + squares)
            })
    };
    let [a, b] = [0, 1].map(|side| basis.runs(side, &sum, &pick, &amount));
    1.0 - chance::rates(&a, &b)
}

/// How many exits there are.
fn all_exits(pair: &Pair<'_>, basis: &Basis<'_>, sums: [TableSums; 2]) -> SideChange {
    let each = basis.each();
    let [rate_a, rate_b] = [0, 1].map(|side: usize| sums[side].count / basis.exposure(side));
    SideChange {
        what: "exits".to_owned(),
        unit: basis.unit(),
        a: value(rate_a, sums[0].count > 0.0),
        b: value(rate_b, sums[1].count > 0.0),
        confidence: Some(sure(basis, None)),
        effect_ns: 0.0,
        per_work: pair.per_work(basis, sums[0].count, sums[1].count),
        // Fewer of them that take longer are no relief.
        worse: pair
            .worse([rate_a, rate_b], sums.map(|sum| sum.count))
            .filter(|more| {
                let ns = |side: usize| sums[side].handling_ns / basis.exposure(side);
                !reversed(basis) && SideName::more(ns(0), ns(1)) == Some(*more)
            }),
        level: Level::Whole,
        text: format!("Exits {}.", went(rate_a, rate_b, number, each)),
        ..SideChange::default()
    }
}

/// How long exits take that are waiting, or those that are not.
fn time_of_exits(
    pair: &Pair<'_>,
    basis: &Basis<'_>,
    sums: [TableSums; 2],
    waiting: bool,
) -> Option<SideChange> {
    let (name, words, of, weight) = if waiting {
        (
            "waiting",
            "Waiting (halted)",
            sums.map(|sum| sum.waiting_ns),
            WAITING,
        )
    } else {
        (
            "handling",
            "The time of exits without waiting",
            sums.map(|sum| sum.handling_ns),
            1.0,
        )
    };
    let [ns_a, ns_b] = [0, 1].map(|side: usize| of[side] / basis.exposure(side));
    if ns_a == 0.0 && ns_b == 0.0 {
        return None;
    }
    let each = basis.each();
    Some(SideChange {
        what: format!("exits {name}"),
        unit: ChangeUnit::Nanoseconds,
        a: value(ns_a, true),
        b: value(ns_b, true),
        confidence: Some(sure(basis, Some(waiting))),
        effect_ns: (ns_b - ns_a) * weight * SPENT,
        per_work: pair.per_work(basis, of[0], of[1]),
        worse: pair
            .worse([ns_a, ns_b], of)
            .filter(|_| !waiting && !reversed(basis)),
        level: Level::Whole,
        text: format!("{words} {}.", went(ns_a, ns_b, duration::of_f64, each)),
        ..SideChange::default()
    })
}
