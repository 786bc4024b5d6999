//! Where the vCPUs' time went.

use analysis::{Amount, Picture, SliceMeasure};
use model::State;

use crate::basis::{Basis, SumDivisor};
use crate::change::{ChangeUnit, Level, PerWork, SideChange, SideName};
use crate::differs::unrecorded;
use crate::side::{GUEST_TIME, Pair, SPENT, push, value};
use crate::{burst, chance};
use words::{duration, share};

/// Spans of a state in a slice of time, at a guess.
const PIECES: usize = 100;

/// What a state is called, and what its time counts in the ranking: being in the guest, or halted, is what vCPUs are
/// for. Time in an unknown state is the recording's, and no change.
fn words(state: State) -> (&'static str, f64) {
    match state {
        State::Guest => ("in the guest", 0.1 * SPENT),
        State::Kernel => ("in KVM", 0.9 * SPENT),
        State::KernelBlocked => ("asleep in KVM", 0.9 * SPENT),
        State::User => ("in the VMM", 0.9 * SPENT),
        State::UserBlocked => ("asleep in the VMM", 0.9 * SPENT),
        State::Poll => ("polling in halts", 0.9 * SPENT),
        State::Halted => ("halted", 0.1 * SPENT),
        State::Runnable => ("waiting for a CPU", 1.0),
        State::Unknown => ("in an unknown state", 0.0),
    }
}

/// What has to be recorded for a state to be distinguished from the others.
fn needs(state: State) -> &'static [&'static str] {
    match state {
        State::Guest => &["kvm_entry", "kvm_exit"],
        State::Kernel | State::User => &["kvm_userspace_exit", "sched_switch"],
        State::Poll | State::Halted => &["kvm_vcpu_wakeup", "sched_switch"],
        State::KernelBlocked | State::UserBlocked | State::Runnable => &["sched_switch"],
        State::Unknown => &[],
    }
}

/// Returns what a time adds up to on each side.
fn sums(basis: &Basis<'_>, of: impl Fn(&Picture) -> u64) -> [f64; 2] {
    [0, 1].map(|side: usize| {
        let each = basis.sides[side].iter();
        each.map(|picture| of(picture) as f64).sum::<f64>()
    })
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let observed = |picture: &Picture| Some(picture.observed_ns()).filter(|ns| *ns > 0);
    let Ok(basis) = Basis::of(pair.sides, &observed) else {
        return;
    };
    let all = sums(&basis, Picture::observed_ns);
    let mut unreported: Vec<String> = Vec::new();
    for state in State::ALL {
        let missing = needs(state)
            .iter()
            .find_map(|event| unrecorded([&basis.sides[0], &basis.sides[1]], event));
        if let Some(missing) = missing {
            if !unreported.contains(&missing) {
                unreported.push(missing);
            }
            continue;
        }
        let sums = sums(&basis, |picture| picture.state_ns(state));
        if sums == [0.0, 0.0] {
            continue;
        }
        if state == State::Unknown {
            let [a, b] = [sums[0] / all[0], sums[1] / all[1]];
            if a.max(b) >= 0.01 {
                notes.push(format!(
                    "What vCPUs did is unknown for {} of their time in A and {} in B: this is not counted as a change.",
                    share::rough(a),
                    share::rough(b)
                ));
            }
            continue;
        }
        push(out, of_state(pair, &basis, state, sums, all));
    }
    if !unreported.is_empty() {
        notes.push(format!(
            "Some vCPU states are not compared: {}.",
            unreported.join(", ")
        ));
    }
}

/// Returns how likely it is that shares of a state differ by chance alone, and whether what one side has more was one
/// burst.
fn chance_of(basis: &Basis<'_>, state: State) -> (f64, bool) {
    let measured = SliceMeasure::State(state as u8);
    // Spans of time are not counted: that a share is made of at least so many is all that is known.
    let sum = |picture: &Picture| {
        let ns = picture.state_ns(state) as f64;
        // A moment, which has no slices to speak of, says nothing of any share.
        let slices = picture.series.slice_ns.len();
        let pieces = if slices < chance::ENOUGH {
            1
        } else {
            slices * PIECES
        };
        (ns, ns * ns / pieces as f64)
    };
    // Shares of the time that vCPUs were observed: more vCPUs are not more of everything.
    let [runs_a, runs_b] = [0, 1].map(|side| {
        let mut runs = basis.runs(side, &sum, &|one| *one == measured, &|one: &Amount| one.ns);
        for (run, picture) in runs.iter_mut().zip(&basis.sides[side]) {
            run.exposure = picture.observed_ns() as f64;
        }
        runs
    });
    let burst = burst::is_one(&runs_a, &runs_b);
    (chance::rates(&runs_a, &runs_b), burst)
}

/// Compares the time in one state; `all` is the time that vCPUs were observed.
fn of_state(
    pair: &Pair<'_>,
    basis: &Basis<'_>,
    state: State,
    sums: [f64; 2],
    all: [f64; 2],
) -> SideChange {
    let [share_a, share_b] = [sums[0] / all[0], sums[1] / all[1]];
    let (words, weight) = words(state);
    let [ns_a, ns_b] = match basis.per {
        SumDivisor::Second | SumDivisor::Table => {
            [0, 1].map(|side: usize| sums[side] / basis.exposure(side))
        }
        SumDivisor::All => [share_a, share_b].map(|share| share * all[0].min(all[1])),
    };
    let each = basis.each();
    let times = if basis.per == SumDivisor::Second {
        format!(
            " ({} to {}{each}, all together)",
            duration::of_f64(ns_a),
            duration::of_f64(ns_b)
        )
    } else {
        String::new()
    };
    let (chance, burst) = chance_of(basis, state);
    SideChange {
        what: format!("vcpus {}", name(state)),
        unit: ChangeUnit::Share,
        a: value(share_a, true),
        b: value(share_b, true),
        confidence: Some(1.0 - chance),
        burst,
        effect_ns: (ns_b - ns_a) * weight,
        per_work: per_work(pair, basis, state, sums),
        // How much there is to do, or to wait for, is the guest's.
        worse: SideName::more(share_a, share_b)
            .filter(|_| !matches!(state, State::Guest | State::Halted)),
        level: Level::Whole,
        text: format!(
            "vCPUs were {words} {} of their time, then {}{times}.",
            share::rough(share_a),
            share::rough(share_b),
        ),
        ..SideChange::default()
    }
}

/// What guests ran for each second that guests ran is one second.
fn per_work(pair: &Pair<'_>, basis: &Basis<'_>, state: State, sums: [f64; 2]) -> Vec<PerWork> {
    let mut out = pair.per_work(basis, sums[0], sums[1]);
    out.retain(|work| state != State::Guest || work.of != GUEST_TIME);
    out
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
