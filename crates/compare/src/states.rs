//! Where the vCPUs' time went.

use analysis::{Amount, Measured, Picture};
use model::State;

use crate::side::{Pair, push, sure, value};
use crate::words::{percent, time};
use crate::{Change, Unit};

/// What a state is called, and what its time counts in the ranking: being in the guest, or halted, is what vCPUs are
/// for.
fn words(state: State) -> (&'static str, f64) {
    match state {
        State::Guest => ("in the guest", 0.1),
        State::Kernel => ("in KVM", 0.9),
        State::KernelBlocked => ("asleep in KVM", 0.9),
        State::User => ("in the VMM", 0.9),
        State::UserBlocked => ("asleep in the VMM", 0.9),
        State::Poll => ("polling in halts", 0.9),
        State::Halted => ("halted", 0.1),
        State::Runnable => ("waiting for a CPU", 1.0),
        State::Unknown => ("in what is not known", 0.0),
    }
}

pub(crate) fn changes(pair: &Pair, a: &[Picture], b: &[Picture], out: &mut Vec<Change>) {
    let observed = |pictures: &[Picture]| {
        pictures
            .iter()
            .map(Picture::observed_ns)
            .fold(0u64, u64::saturating_add) as f64
    };
    let (all_a, all_b) = (observed(a), observed(b));
    if all_a == 0.0 || all_b == 0.0 {
        return;
    }
    for state in State::ALL {
        let sum = |pictures: &[Picture]| {
            let times = pictures.iter().map(|picture| picture.state_ns(state));
            times.fold(0u64, u64::saturating_add) as f64
        };
        let (ns_a, ns_b) = (sum(a), sum(b));
        if ns_a == 0.0 && ns_b == 0.0 {
            continue;
        }
        let (share_a, share_b) = (ns_a / all_a, ns_b / all_b);
        let measured = Measured::State(state as u8);
        // Spans of time are not counted; that a share is made of at least so many slices is all that is known.
        let slices = |pictures: &[Picture]| {
            pictures
                .iter()
                .map(|p| p.series.slice_ns.len())
                .sum::<usize>() as f64
        };
        let confidence = sure(
            pair,
            [a, b],
            &|one| *one == measured,
            &|one: &Amount| one.ns,
            [ns_a, ns_b],
            [slices(a) * 100.0, slices(b) * 100.0],
        );
        let (words, weight) = words(state);
        let second = pair.in_a_second();
        push(
            out,
            Change {
                what: format!("vcpus {}", name(state)),
                unit: Unit::Share,
                a: value(share_a, true),
                b: value(share_b, true),
                confidence: Some(confidence),
                effect_ns: (ns_b / pair.per_b() - ns_a / pair.per_a()) * weight,
                per_work: pair.per_work(ns_a, ns_b),
                text: format!(
                    "vCPUs were {words} {} of their time, then {} ({} to {}{second}, all together).",
                    percent(share_a),
                    percent(share_b),
                    time(ns_a / pair.per_a()),
                    time(ns_b / pair.per_b())
                ),
            },
        );
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Guest => "guest",
        State::Kernel => "kernel",
        State::KernelBlocked => "kernel asleep",
        State::User => "user",
        State::UserBlocked => "user asleep",
        State::Poll => "poll",
        State::Halted => "halted",
        State::Runnable => "runnable",
        State::Unknown => "unknown",
    }
}
