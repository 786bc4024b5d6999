//! Interrupts of machines, as `/proc/interrupts` counts them: how many of each, and how many of them one CPU gets.
//!
//! A reading is a sum since boot, and two are what came between, of which the text does not say how long it was.
//! So counts are rates only where the user says how long, and make no side worse: who does more has more interrupts.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Picture, PrintedInterrupts};
use words::{change, number, share};

use crate::chance::{self, SampledSum};
use crate::change::{ChangeUnit, SideChange};
use crate::side::{Pair, push, value};

/// Interrupts with fewer on both sides together are not compared, and neither is where fewer than this went.
const FEW: u64 = 100;

/// Interrupts of one name on a side.
#[derive(Debug, Clone, Default)]
struct NamedInterrupts {
    count: u64,
    /// By number of the CPU.
    cpus: BTreeMap<u32, u64>,
}

impl NamedInterrupts {
    /// Returns the share of the CPU that got most, and which it is.
    fn most(&self) -> Option<(f64, u32)> {
        let most = self.cpus.iter().max_by_key(|(_, count)| **count)?;
        Some((*most.1 as f64 / self.count.max(1) as f64, *most.0))
    }
}

/// Interrupts of a side.
struct SideInterrupts {
    names: BTreeMap<String, NamedInterrupts>,
    /// Seconds, where they are known, else how many tables there are.
    exposure: f64,
    cpus: usize,
}

/// What counts are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountedSpan {
    Boot,
    Readings,
    Seconds,
}

fn span_of(interrupts: &PrintedInterrupts, picture: &Picture) -> CountedSpan {
    match (interrupts.is_difference(), picture.span_ns) {
        (false, _) => CountedSpan::Boot,
        (true, Some(ns)) if ns > 0 => CountedSpan::Seconds,
        (true, _) => CountedSpan::Readings,
    }
}

/// Returns what a line is called on any machine: numbers of interrupts differ from one to the next.
fn called(irq: &str, name: &str) -> String {
    let numbered = irq.bytes().all(|byte| byte.is_ascii_digit());
    match numbered && !name.is_empty() {
        true => name.to_owned(),
        false => irq.to_owned(),
    }
}

fn side(pictures: &[(&Picture, &PrintedInterrupts)], span: CountedSpan) -> SideInterrupts {
    let mut out = SideInterrupts {
        names: BTreeMap::new(),
        exposure: 0.0,
        cpus: 0,
    };
    for (picture, interrupts) in pictures {
        out.exposure += match span {
            CountedSpan::Seconds => picture.span_ns.unwrap_or(0) as f64 / 1e9,
            CountedSpan::Boot | CountedSpan::Readings => 1.0,
        };
        out.cpus = out.cpus.max(interrupts.cpus().len());
        for line in interrupts.lines() {
            let sum = out.names.entry(called(&line.irq, &line.name)).or_default();
            sum.count = sum.count.saturating_add(line.count);
            for (cpu, count) in interrupts.cpus().iter().zip(&line.counts) {
                let of_cpu = sum.cpus.entry(*cpu).or_default();
                *of_cpu = of_cpu.saturating_add(*count);
            }
        }
    }
    out
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let tables = pair
        .sides
        .map(|side| -> Vec<(&Picture, &PrintedInterrupts)> {
            let each = side.iter();
            each.filter_map(|picture| Some((picture, picture.interrupts.as_ref()?)))
                .collect()
        });
    if tables.iter().any(Vec::is_empty) {
        return;
    }
    let spans = tables.iter().flatten();
    let spans: Vec<CountedSpan> = spans.map(|(picture, one)| span_of(one, picture)).collect();
    let Some(first) = spans.first().copied() else {
        return;
    };
    let like = spans.iter().all(|span| *span == first);
    let sides = tables.each_ref().map(|tables| side(tables, first));
    if like {
        notes.push(match first {
            CountedSpan::Seconds => "Interrupts are compared for each second.".to_owned(),
            CountedSpan::Readings => {
                "Two readings of /proc/interrupts do not say how long is between them: their \
                                      counts are given as they are, and no side is worse by them."
                    .to_owned()
            }
            CountedSpan::Boot => {
                "Interrupts are sums since each machine's boot: they are given as they are, and no \
                                  side is worse by them."
                    .to_owned()
            }
        });
    } else {
        notes.push(
            "Counts of interrupts are not compared, since not all are of the same: a difference of two readings, sums \
             since boot, or rates. Where they went is."
                .to_owned(),
        );
    }
    let names: BTreeSet<&String> = sides.iter().flat_map(|side| side.names.keys()).collect();
    let none = NamedInterrupts::default();
    for name in names {
        let both = sides
            .each_ref()
            .map(|side| side.names.get(name).unwrap_or(&none));
        if like && both[0].count.saturating_add(both[1].count) >= FEW {
            push(out, by_count(name, both, &sides, first));
        }
        if both.iter().all(|one| one.count >= FEW) && sides.iter().all(|side| side.cpus > 1) {
            push(out, by_cpu(name, both));
        }
    }
}

/// Compares how many there were.
fn by_count(
    name: &str,
    both: [&NamedInterrupts; 2],
    sides: &[SideInterrupts; 2],
    span: CountedSpan,
) -> SideChange {
    let rates = [0, 1].map(|side: usize| both[side].count as f64 / sides[side].exposure.max(1e-9));
    let run = |side: usize| SampledSum {
        sum: both[side].count as f64,
        squares: both[side].count as f64,
        exposure: sides[side].exposure,
        slices: Vec::new(),
    };
    let (unit, each) = match span {
        CountedSpan::Seconds => (ChangeUnit::PerSecond, " in a second"),
        CountedSpan::Boot => (ChangeUnit::Count, " since boot"),
        CountedSpan::Readings => (ChangeUnit::Count, ", as counted"),
    };
    let there = both.map(|one| one.count > 0);
    SideChange {
        what: format!("interrupts {name}"),
        unit,
        a: value(rates[0], there[0]),
        b: value(rates[1], there[1]),
        // Of sums of unknown length nobody can say whether they differ by chance.
        confidence: match span {
            CountedSpan::Seconds => Some(1.0 - chance::rates(&[run(0)], &[run(1)])),
            CountedSpan::Boot | CountedSpan::Readings => None,
        },
        text: format!(
            "Interrupts {name}: {} to {}{each} ({}).",
            number(rates[0]),
            number(rates[1]),
            change(rates[0], rates[1])
        ),
        ..SideChange::default()
    }
}

/// Compares how many of them the CPU got that got most.
fn by_cpu(name: &str, both: [&NamedInterrupts; 2]) -> SideChange {
    let most = both.map(|one| one.most().unwrap_or_default());
    let counts = [0, 1].map(|side: usize| {
        let all = both[side].count as f64;
        (most[side].0 * all, all)
    });
    SideChange {
        what: format!("interrupts {name} on one CPU"),
        unit: ChangeUnit::Share,
        a: value(most[0].0, true),
        b: value(most[1].0, true),
        confidence: Some(1.0 - chance::shares(counts[0], counts[1], chance::BURST)),
        text: format!(
            "Of interrupts {name}, CPU {} got {}, and then CPU {} {}.",
            most[0].1,
            share::rough(most[0].0),
            most[1].1,
            share::rough(most[1].0)
        ),
        ..SideChange::default()
    }
}
