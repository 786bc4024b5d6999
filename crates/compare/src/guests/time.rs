//! Where guests' time went, and what waited while vCPUs had no CPU.

use words::{duration, number, share};

use super::known::{GuestActivity, GuestSum, KnownGuests, RecordedGuests, SpentTime};
use crate::basis::SumDivisor;
use crate::chance::{self, SampledSum};
use crate::change::{ChangeUnit, Level, SideChange, SideName};
use crate::differs::unrecorded;
use crate::rows::RowPieces;
use crate::side::{SPENT, push, value};

/// What time in the guest counts in the ranking: it is what vCPUs are for, as in the states of vCPUs.
const RAN: f64 = 0.1 * SPENT;
/// What waiting for a CPU counts: behind the state of vCPUs, which is of the same time.
const WAITED: f64 = 0.9;

pub(super) fn changes(known: &KnownGuests<'_>, out: &mut Vec<SideChange>) {
    for name in known.names() {
        push(out, in_guest(known, name));
    }
    let sides = known.basis.sides.each_ref().map(Vec::as_slice);
    // Waiting for a CPU is known by switches alone.
    if known.basis.per != SumDivisor::Second || unrecorded(sides, "sched_switch").is_some() {
        return;
    }
    for name in known.names() {
        if sums(known, name, |one| &one.stolen).0 != [0.0, 0.0] {
            push(out, stolen(known, name));
        }
    }
}

/// Returns a sum of one thing over a side, and of how many stretches it is.
fn sums(
    known: &KnownGuests<'_>,
    name: &GuestActivity,
    of: fn(&SpentTime) -> &GuestSum,
) -> ([f64; 2], u64) {
    let sum = |side: usize, field: fn(&GuestSum) -> f64| {
        known.sum(side, |recording| {
            recording.spent.get(name).map_or(0.0, |one| field(of(one)))
        })
    };
    let pieces = sum(0, |one| one.pieces) + sum(1, |one| one.pieces);
    ([0, 1].map(|side| sum(side, |one| one.ns)), pieces as u64)
}

/// Returns the confidence that two sides differ by more than chance.
fn sure(
    known: &KnownGuests<'_>,
    pieces: u64,
    run: impl Fn(&RecordedGuests<'_>) -> SampledSum,
) -> f64 {
    if pieces < RowPieces::FEW {
        return 0.0;
    }
    let [a, b] = known
        .sides
        .each_ref()
        .map(|side| -> Vec<SampledSum> { side.iter().map(&run).collect() });
    1.0 - chance::rates(&a, &b)
}

/// Compares which share of guests' time one thing had.
fn in_guest(known: &KnownGuests<'_>, name: &GuestActivity) -> SideChange {
    let (ns, pieces) = sums(known, name, |one| &one.guest);
    let shares = [0, 1].map(|side: usize| ns[side] / known.sum(side, |of| of.guest_ns));
    let there = [0, 1].map(|side| known.has(side, name));
    let run = |recording: &RecordedGuests<'_>| {
        let per = recording.of_guest_time();
        match recording.spent.get(name) {
            Some(one) => one.guest.run(recording, &per),
            None => per.nothing(recording),
        }
    };
    let times = [0, 1].map(|side: usize| match known.basis.per {
        SumDivisor::Second => ns[side] / known.seconds(side),
        SumDivisor::Table | SumDivisor::All => shares[side],
    });
    let rates = match known.basis.per {
        SumDivisor::Second => format!(
            " ({} to {} in a second)",
            duration::of_f64(times[0]),
            duration::of_f64(times[1])
        ),
        SumDivisor::Table | SumDivisor::All => String::new(),
    };
    let words = name.words();
    let [a, b] = shares.map(share::rough);
    let text = match there {
        [_, false] => format!("In guests, {words} gone: it had {a} of their time{rates}."),
        [false, _] => format!("In guests, {words} is new: it has {b} of their time{rates}."),
        _ => format!("In guests, {words} had {a} of their time, then {b}{rates}."),
    };
    SideChange {
        what: format!("guest {}", name.what()),
        unit: ChangeUnit::Share,
        a: value(shares[0], there[0]),
        b: value(shares[1], there[1]),
        confidence: Some(sure(known, pieces, run)),
        effect_ns: match known.basis.per {
            SumDivisor::Second => (times[1] - times[0]) * RAN,
            SumDivisor::Table | SumDivisor::All => 0.0,
        },
        // To run is what a task is for.
        worse: None,
        level: Level::Whole,
        few: pieces < RowPieces::FEW,
        text,
        ..SideChange::default()
    }
}

/// Compares how long one thing waited while its vCPU had no CPU.
fn stolen(known: &KnownGuests<'_>, name: &GuestActivity) -> SideChange {
    let (ns, pieces) = sums(known, name, |one| &one.stolen);
    let rates = [0, 1].map(|side: usize| ns[side] / known.seconds(side));
    let there = [0, 1].map(|side| known.has(side, name));
    let run = |recording: &RecordedGuests<'_>| {
        let per = recording.of_seconds();
        match recording.spent.get(name) {
            Some(one) => one.stolen.run(recording, &per),
            None => per.nothing(recording),
        }
    };
    let waits = [0, 1].map(|side: usize| {
        let waits = known.sum(side, |of| {
            of.spent.get(name).map_or(0.0, |one| one.stolen.pieces)
        });
        number(waits / known.seconds(side))
    });
    let words = name.words();
    SideChange {
        what: format!("guest steal {}", name.what()),
        unit: ChangeUnit::Nanoseconds,
        a: value(rates[0], there[0]),
        b: value(rates[1], there[1]),
        confidence: Some(sure(known, pieces, run)),
        effect_ns: (rates[1] - rates[0]) * WAITED,
        worse: SideName::more(rates[0], rates[1]),
        level: Level::Whole,
        few: pieces < RowPieces::FEW,
        text: format!(
            "In guests, {words} waited {} and then {} in a second while its vCPU had no CPU ({} and {} times in a \
             second).",
            duration::of_f64(rates[0]),
            duration::of_f64(rates[1]),
            waits[0],
            waits[1]
        ),
        ..SideChange::default()
    }
}
