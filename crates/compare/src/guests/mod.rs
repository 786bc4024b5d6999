//! What guests did, where their own recordings say it: time by task, interrupt and softirq, exits, and waiting for a
//! CPU.
//!
//! It stands beside what is compared of hosts and changes nothing of it: what is found of hosts is the same with guests
//! and without.

mod exits;
mod known;
mod time;

use analysis::Picture;
use words::share;

use crate::basis::{Basis, SumDivisor};
use crate::change::SideChange;
use crate::side::Pair;
use known::{KnownGuests, known_ns};

/// Less of their time in which nobody knows what guests did is not worth a word.
const UNKNOWN: f64 = 0.01;

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let basis = match Basis::of(pair.sides, &known_ns) {
        Ok(basis) => basis,
        Err([true, true]) => return,
        Err([a, _]) => {
            notes.push(missing(pair, if a { 0 } else { 1 }));
            return;
        }
    };
    let known = KnownGuests::new(basis);
    said(&known, notes);
    time::changes(&known, out);
    if known.basis.per == SumDivisor::Second {
        exits::changes(pair, &known, out);
    } else {
        notes.push(
            "The duration of a side is unknown, so what guests did is compared by its share of their time only."
                .to_owned(),
        );
    }
}

/// Says of a side that it has no guests to compare.
fn missing(pair: &Pair<'_>, side: usize) -> String {
    let name = ["A", "B"][side];
    let given = |picture: &Picture| !picture.guests.is_empty();
    match pair.sides[side].iter().any(given) {
        true => {
            format!("What guests did is not compared: their recordings in {name} do not show it.")
        }
        false => {
            format!("{name} has no guest's recording: what guests did is not compared.")
        }
    }
}

/// Says what of guests is not known, or not compared.
fn said(known: &KnownGuests<'_>, notes: &mut Vec<String>) {
    let [a, b] = [0, 1].map(|side| known.unknown(side));
    if a.max(b) >= UNKNOWN {
        notes.push(format!(
            "Guests' recordings do not say what guests did for {} of their vCPUs' time in A and {} in B: only the rest \
             of the time is compared.",
            share::rough(a),
            share::rough(b)
        ));
    }
    if !known.are_sliced() {
        notes.push(
            "Guests' recordings have too few slices of time to show how much varies: what guests did is taken to come \
             in bursts of ten, as for printed counts."
                .to_owned(),
        );
    }
    let interrupts = known.side_without(|report| report.interrupts);
    let softirqs = known.side_without(|report| report.softirqs);
    for (what, without) in [("interrupts", interrupts), ("softirqs", softirqs)] {
        if let Some(side) = without {
            notes.push(format!(
                "Guests' {what} are not compared: guests' recordings in {side} have none, so their time there is in \
                 what they interrupted."
            ));
        }
    }
}
