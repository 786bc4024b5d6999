//! Samples in guests' kernels apart from those in guests' user space (`perf kvm --guest record`, `-e cycles:G`): what
//! guests' programs do is their work, and what their kernels do may be what they pay for it. Where a guest's kernel is
//! idle it does nothing; that is known where its functions have names.

use analysis::{Picture, ProfileSums, ProfileThread, SampleUnit};
use stacks::Weight;
use words::{change, number, share};

use crate::basis::{Basis, SumDivisor};
use crate::chance::{self, SampledSum};
use crate::change::{ChangeUnit, SideChange};
use crate::side::{Pair, SPENT, push, value};

/// Fewer samples in guests on both sides together are not compared.
const ENOUGH: u64 = 20;

/// A part of guests' time: its name, the name in words, and what was sampled of it.
type GuestPart = (&'static str, &'static str, fn(&ProfileThread) -> Weight);

/// What is compared.
const PARTS: [GuestPart; 2] = [
    ("kernel", "Guests' kernels", in_kernel),
    ("user", "Guests' user space", |thread| thread.guest_user),
];

/// Returns what was sampled in the kernel of a thread's guest while it was not idle.
fn in_kernel(thread: &ProfileThread) -> Weight {
    let less = |of: fn(Weight) -> u64| {
        let rest = of(thread.guest).saturating_sub(of(thread.guest_user));
        rest.saturating_sub(of(thread.guest_idle))
    };
    Weight {
        samples: less(|weight| weight.samples),
        amount: less(|weight| weight.amount),
    }
}

fn sum(profile: &ProfileSums, of: fn(&ProfileThread) -> Weight) -> Weight {
    let mut sum = Weight::default();
    profile
        .threads
        .iter()
        .for_each(|thread| sum.add(of(thread)));
    sum
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, _: &mut Vec<String>) {
    let amount = |picture: &Picture| {
        let samples = sum(picture.profile.as_ref()?, |thread| thread.guest).samples;
        (samples > 0).then_some(samples)
    };
    let Ok(basis) = Basis::of(pair.sides, &amount) else {
        return;
    };
    let profiles = || {
        basis
            .sides
            .iter()
            .flatten()
            .filter_map(|picture| picture.profile.as_ref())
    };
    let all: u64 = profiles()
        .map(|profile| sum(profile, |one| one.guest).samples)
        .fold(0, u64::saturating_add);
    if all < ENOUGH {
        return;
    }
    let unit = |unit: SampleUnit| profiles().all(|profile| profile.unit == unit);
    let unit = match basis.per {
        SumDivisor::Second if unit(SampleUnit::Nanoseconds) => ChangeUnit::Nanoseconds,
        SumDivisor::Second if unit(SampleUnit::Cycles) => ChangeUnit::PerSecond,
        _ => ChangeUnit::Share,
    };
    for part in PARTS {
        push(out, of_part(pair, &basis, unit, part));
    }
}

fn of_part(
    pair: &Pair<'_>,
    basis: &Basis<'_>,
    unit: ChangeUnit,
    (name, called, of): GuestPart,
) -> SideChange {
    let mut samples = [0u64; 2];
    let runs = [0, 1].map(|side: usize| -> Vec<SampledSum> {
        let each = basis.sides[side].iter();
        each.filter_map(|picture| {
            let profile = picture.profile.as_ref()?;
            let weight = sum(profile, of);
            samples[side] = samples[side].saturating_add(weight.samples);
            let amount = weight.amount as f64;
            Some(SampledSum {
                sum: amount,
                // As if each sample stood for as much.
                squares: amount * amount / weight.samples.max(1) as f64,
                exposure: match unit {
                    ChangeUnit::Share => profile.busy().amount as f64,
                    _ => basis.exposure_of(picture),
                },
                slices: Vec::new(),
            })
        })
        .collect()
    });
    let total = |side: usize, of: fn(&SampledSum) -> f64| runs[side].iter().map(of).sum::<f64>();
    let [a, b] = [0, 1].map(|side: usize| {
        total(side, |run| run.sum) / total(side, |run| run.exposure).max(f64::MIN_POSITIVE)
    });
    let took = match unit {
        ChangeUnit::Nanoseconds => {
            format!(
                "{} and then {} of a CPU",
                share::rough(a / 1e9),
                share::rough(b / 1e9)
            )
        }
        ChangeUnit::Share => {
            format!(
                "{} and then {} of what was not idle",
                share::rough(a),
                share::rough(b)
            )
        }
        _ => format!(
            "{} and then {} million cycles a second",
            number(a / 1e6),
            number(b / 1e6)
        ),
    };
    SideChange {
        what: format!("cpu guest {name}"),
        unit,
        a: value(a, samples[0] > 0),
        b: value(b, samples[1] > 0),
        confidence: Some(1.0 - chance::rates(&runs[0], &runs[1])),
        effect_ns: match unit {
            ChangeUnit::Nanoseconds => (b - a) * 0.5 * SPENT,
            ChangeUnit::Share => (b - a) * 1e9 * 0.5 * SPENT,
            _ => 0.0,
        },
        per_work: match unit {
            ChangeUnit::Share => Vec::new(),
            _ => pair.per_work(basis, total(0, |run| run.sum), total(1, |run| run.sum)),
        },
        // What guests do is for them to say.
        worse: None,
        text: format!(
            "{called} took {took} ({}), by {} and {}.",
            change(a, b),
            samples[0],
            words::plural(samples[1], "sample")
        ),
        ..SideChange::default()
    }
}
