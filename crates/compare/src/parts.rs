//! What parts of pictures count, such as interrupts by vector: a part that says what it counts is compared, whatever it
//! is.
//!
//! It stands beside what else is compared and changes nothing of it, since how much was compared of parts is taken into
//! account by itself.

use std::collections::BTreeSet;

use analysis::{PartCounts, Picture, SliceMeasure};
use words::{change, number, share};

use crate::basis::{Basis, SumDivisor};
use crate::chance;
use crate::change::SideChange;
use crate::rows::RowPieces;
use crate::side::{Pair, push, value};

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let pictures = pair.sides.iter().flat_map(|side| side.iter());
    let all: Vec<PartCounts> = pictures.flat_map(Picture::part_counts).collect();
    let parts: BTreeSet<&str> = all.iter().map(|counts| counts.part).collect();
    for part in parts {
        let kinds = all.iter().filter(|counts| counts.part == part);
        let kinds: BTreeSet<&str> = kinds.map(|counts| counts.of).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        match kinds[..] {
            [of] => of_part(pair, part, of, out, notes),
            _ => notes.push(format!(
                "Of {part} nothing is compared: not all recordings count the same, but {}.",
                kinds.join(" or ")
            )),
        }
    }
}

/// Returns what a part counts in a picture.
fn counted(picture: &Picture, part: &str) -> Option<PartCounts> {
    let mut parts = picture.part_counts().into_iter();
    parts.find(|counts| counts.part == part)
}

/// Compares all names of a part.
fn of_part(
    pair: &Pair<'_>,
    part: &str,
    of: &str,
    out: &mut Vec<SideChange>,
    notes: &mut Vec<String>,
) {
    let sum = |picture: &Picture| {
        Some(
            counted(picture, part)?
                .counts
                .values()
                .copied()
                .fold(0, u64::saturating_add),
        )
    };
    let basis = match Basis::of(pair.sides, &sum) {
        Ok(basis) => basis,
        Err([a, _]) => {
            let side = if a { "A" } else { "B" };
            notes.push(format!(
                "There are no {of} to compare: {side} recorded none."
            ));
            return;
        }
    };
    let counts = [0, 1].map(|side: usize| -> Vec<PartCounts> {
        let each = basis.sides[side].iter();
        each.filter_map(|picture| counted(picture, part)).collect()
    });
    let names = counts.iter().flatten().flat_map(|run| run.counts.keys());
    let names: BTreeSet<&String> = names.collect();
    let all = counts.each_ref().map(|runs| -> u64 {
        runs.iter()
            .flat_map(|run| run.counts.values())
            .copied()
            .fold(0, u64::saturating_add)
    });
    for name in names {
        let each = counts.each_ref().map(|runs| -> Vec<u64> {
            let runs = runs.iter();
            runs.map(|run| run.counts.get(name).copied().unwrap_or(0))
                .collect()
        });
        let sums = each
            .each_ref()
            .map(|runs| runs.iter().copied().fold(0u64, u64::saturating_add));
        if sums.iter().copied().fold(0u64, u64::saturating_add) < RowPieces::FEW {
            continue;
        }
        push(out, of_name(&basis, (part, of, name), &each, sums, all));
    }
}

/// Compares one name of a part. `each` has what every recording counts of it, `all` what each side counts of all names.
fn of_name(
    basis: &Basis<'_>,
    (part, of, name): (&str, &str, &str),
    each: &[Vec<u64>; 2],
    sums: [u64; 2],
    all: [u64; 2],
) -> SideChange {
    let measured = |what: &SliceMeasure| matches!(what, SliceMeasure::Part(one, of) if *one == part && of == name);
    let there = sums.map(|sum| sum > 0);
    let (chance, rates, text) = match basis.per {
        SumDivisor::All => {
            let shares = [0, 1].map(|side: usize| sums[side] as f64 / all[side].max(1) as f64);
            let counts = [0, 1].map(|side: usize| (sums[side] as f64, all[side] as f64));
            let text = format!(
                "{} to {} of all {of} are {name}.",
                share::rough(shares[0]),
                share::rough(shares[1])
            );
            (
                chance::shares(counts[0], counts[1], chance::BURST),
                shares,
                text,
            )
        }
        SumDivisor::Second | SumDivisor::Table => {
            let runs = [0, 1].map(|side: usize| {
                let mut counts = each[side].iter();
                let mut runs = basis.runs(side, &|_| (0.0, 0.0), &measured, &|amount| amount.count);
                for (run, count) in runs.iter_mut().zip(&mut counts) {
                    (run.sum, run.squares) = (*count as f64, *count as f64);
                }
                runs
            });
            let rates = [0, 1].map(|side: usize| sums[side] as f64 / basis.exposure(side));
            let text = format!(
                "{of} {name}: {} to {}{} ({}).",
                number(rates[0]),
                number(rates[1]),
                basis.each(),
                change(rates[0], rates[1])
            );
            (chance::rates(&runs[0], &runs[1]), rates, text)
        }
    };
    SideChange {
        what: format!("{part} {name}"),
        unit: basis.unit(),
        a: value(rates[0], there[0]),
        b: value(rates[1], there[1]),
        confidence: Some(1.0 - chance),
        text,
        ..SideChange::default()
    }
}
