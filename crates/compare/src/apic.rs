//! APIC virtualization (Intel's APICv, AMD's AVIC) that came into use, or went out of it: one change, of which the
//! rows of exits that come and go with it are parts.

use analysis::{ExitTable, Picture};
use event::ExitReason;
use rules::{ApicExits, RowSum};

use crate::basis::{Basis, SumDivisor};
use crate::change::{ChangeUnit, Level, SideAmount, SideChange, SideName};
use crate::exits::amount;
use crate::side::{Pair, SPENT, push};
use words::{counted, duration};

/// So many exits that only happen with it show that it is in use.
const IN_USE: u64 = 100;
/// By so many times the exits that it makes unnecessary are fewer where it is in use.
const FEWER: f64 = 5.0;

/// What the local APIC costs on one side.
#[derive(Debug, Clone, Copy, Default)]
struct ApicSide {
    /// Exits that would not be with it: the APIC's own where they are known, and else all writes of registers.
    emulated: RowSum,
    /// Exits that are only with it.
    virtualized: RowSum,
    exposure: f64,
}

impl ApicSide {
    fn of(pictures: &[&Picture], by_register: bool, exposure: f64) -> ApicSide {
        let mut out = ApicSide {
            exposure,
            ..ApicSide::default()
        };
        for picture in pictures {
            let exits = ApicExits::of(picture);
            let mut emulated = exits.emulated();
            if !by_register {
                emulated = emulated.plus(RowSum::of(picture.exits_that(ExitReason::may_write_msr)));
            }
            out.emulated = out.emulated.plus(emulated);
            out.virtualized = out.virtualized.plus(exits.virtualized);
        }
        out
    }

    fn rate(&self) -> f64 {
        self.emulated.count as f64 / self.exposure
    }

    /// Whether it is in use here and was not there.
    fn came_after(&self, other: &ApicSide) -> bool {
        self.virtualized.count >= IN_USE
            && other.virtualized.count == 0
            && other.emulated.count >= IN_USE
            && self.rate() * FEWER <= other.rate()
    }
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>) {
    let Ok(basis) = Basis::of(pair.sides, &|picture| amount(picture, ExitTable::Vmexit)) else {
        return;
    };
    if basis.per == SumDivisor::All || pair.apart().is_some() {
        return;
    }
    let has_registers = |picture: &&Picture| !picture.rows(ExitTable::Msr).is_empty();
    let by_register = basis
        .sides
        .iter()
        .all(|side| side.iter().any(has_registers));
    let [a, b] = [0, 1]
        .map(|side: usize| ApicSide::of(&basis.sides[side], by_register, basis.exposure(side)));
    let came = b.came_after(&a);
    if !came && !a.came_after(&b) {
        return;
    }
    let word =
        |there: bool| SideAmount::Word(if there { "in use" } else { "not in use" }.to_owned());
    let what = match by_register {
        true => "exits for the local APIC",
        false => "exits for the local APIC and writes of registers",
    };
    let (words, with) = match came {
        true => ("came into use", b.virtualized),
        false => ("is no longer in use", a.virtualized),
    };
    let each = basis.each();
    let ns = |side: &ApicSide| {
        let sum = side.emulated.ns.saturating_add(side.virtualized.ns);
        sum as f64 / side.exposure
    };
    let emulated_ns = |side: &ApicSide| side.emulated.ns as f64 / side.exposure;
    let text = format!(
        "APIC virtualization (APICv or AVIC) {words}: {what} {} to {}{each}, their time {} to {}{each}; {} with it \
         only (EOI_INDUCED, APIC_WRITE, AVIC_INCOMPLETE_IPI).",
        words::number(a.rate()),
        words::number(b.rate()),
        duration::of_f64(ns(&a)),
        duration::of_f64(ns(&b)),
        counted(with.count, "exit happens", "exits happen"),
    );
    push(
        out,
        SideChange {
            what: "apic virtualization".to_owned(),
            unit: ChangeUnit::Word,
            a: word(!came),
            b: word(came),
            confidence: None,
            // As much as the largest of its parts, before which it stands: they have the same time.
            effect_ns: (emulated_ns(&b) - emulated_ns(&a)) * SPENT,
            worse: SideName::more(ns(&a), ns(&b)),
            level: Level::Whole,
            text,
            ..SideChange::default()
        },
    );
}
