//! What of two sides is compared with each other, and what sums are divided by.
//!
//! Recordings say how long they are of, printed tables do not, and a clock that counts ticks does not say it in
//! seconds. What says it on both sides is compared by rates; tables are compared by their counts; and where one side
//! has the one and the other the other, only shares and means are the same on both.

use analysis::{Amount, Origin, Picture, SliceMeasure};

use crate::chance::{COVERED, SampledSum};
use crate::change::ChangeUnit;

/// What sums are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SumDivisor {
    /// Seconds recorded.
    Second,
    /// Printed tables: counts as they stand, on average.
    Table,
    /// All of the side: shares.
    All,
}

/// Where a picture's numbers come from, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumbersOrigin {
    Recording,
    /// A recording whose length is unknown.
    Untimed,
    Printed,
}

pub(crate) fn kind(picture: &Picture) -> NumbersOrigin {
    match picture.origin {
        Origin::Printed => NumbersOrigin::Printed,
        Origin::Recording if picture.span_ns.is_some_and(|ns| ns > 0) => NumbersOrigin::Recording,
        Origin::Recording => NumbersOrigin::Untimed,
    }
}

/// What is compared.
#[derive(Debug, Clone)]
pub(crate) struct Basis<'a> {
    pub sides: [Vec<&'a Picture>; 2],
    pub per: SumDivisor,
    /// Whether durations are in nanoseconds on both sides.
    pub timed: bool,
}

impl<'a> Basis<'a> {
    /// Chooses among pictures. `amount` says how much of it a picture has; `None` if it was not recorded.
    ///
    /// # Errors
    /// Which of the sides have none of it.
    pub(crate) fn of(
        sides: [&'a [Picture]; 2],
        amount: &dyn Fn(&Picture) -> Option<u64>,
    ) -> Result<Basis<'a>, [bool; 2]> {
        let having = sides.map(|side| -> Vec<(&Picture, NumbersOrigin, u64)> {
            let each = side.iter();
            each.filter_map(|picture| Some((picture, kind(picture), amount(picture)?)))
                .collect()
        });
        if having.iter().any(Vec::is_empty) {
            return Err([having[0].is_empty(), having[1].is_empty()]);
        }
        let only = |kind: NumbersOrigin| {
            [0, 1].map(|side: usize| -> Vec<(&'a Picture, NumbersOrigin, u64)> {
                let each = having[side].iter();
                each.filter(|one| one.1 == kind).copied().collect()
            })
        };
        // What holds more on its poorer side, if it is on both.
        let held = |of: &[Vec<(&Picture, NumbersOrigin, u64)>; 2]| {
            let [a, b] = [0, 1].map(|side: usize| {
                let sum = of[side]
                    .iter()
                    .map(|one| one.2)
                    .fold(0, u64::saturating_add);
                (!of[side].is_empty()).then_some(sum)
            });
            Some(a?.min(b?))
        };
        let (recorded, printed) = (only(NumbersOrigin::Recording), only(NumbersOrigin::Printed));
        let (chosen, per) = match (held(&recorded), held(&printed)) {
            (Some(more), Some(less)) if more >= less => (recorded, SumDivisor::Second),
            (_, Some(_)) => (printed, SumDivisor::Table),
            (Some(_), None) => (recorded, SumDivisor::Second),
            (None, None) => (having, SumDivisor::All),
        };
        let timed = chosen
            .iter()
            .flatten()
            .all(|(picture, kind, _)| *kind != NumbersOrigin::Untimed || picture.span_ns.is_some());
        Ok(Basis {
            sides: chosen.map(|side| side.into_iter().map(|one| one.0).collect()),
            per,
            timed,
        })
    }

    /// Returns what a sum of one picture is divided by.
    pub(crate) fn exposure_of(&self, picture: &Picture) -> f64 {
        match self.per {
            SumDivisor::Second => picture.span_ns.unwrap_or(0) as f64 / 1e9,
            SumDivisor::Table | SumDivisor::All => 1.0,
        }
    }

    /// Returns what a sum of a side is divided by, for a rate or a mean count.
    pub(crate) fn exposure(&self, side: usize) -> f64 {
        match self.per {
            SumDivisor::All => 1.0,
            SumDivisor::Second | SumDivisor::Table => {
                let each = self.sides[side].iter();
                each.map(|picture| self.exposure_of(picture)).sum()
            }
        }
    }

    /// Returns the unit of what is counted.
    pub(crate) fn unit(&self) -> ChangeUnit {
        match self.per {
            SumDivisor::Second => ChangeUnit::PerSecond,
            SumDivisor::Table => ChangeUnit::Count,
            SumDivisor::All => ChangeUnit::Share,
        }
    }

    /// Returns the words behind a sum.
    pub(crate) fn each(&self) -> &'static str {
        let several = self.sides.iter().any(|side| side.len() > 1);
        match self.per {
            SumDivisor::Second => " in a second",
            SumDivisor::Table if several => " on average",
            SumDivisor::Table | SumDivisor::All => "",
        }
    }

    /// Returns sums by picture, and by slices of time where there are any. `sum` returns a sum and the sum of the
    /// squares of what it is made of.
    pub(crate) fn runs(
        &self,
        side: usize,
        sum: &dyn Fn(&Picture) -> (f64, f64),
        pick: &dyn Fn(&SliceMeasure) -> bool,
        amount: &dyn Fn(&Amount) -> u64,
    ) -> Vec<SampledSum> {
        let each = self.sides[side].iter();
        each.map(|picture| {
            let (sum, squares) = sum(picture);
            SampledSum {
                sum,
                squares,
                exposure: self.exposure_of(picture),
                slices: slices(picture, pick, amount),
            }
        })
        .collect()
    }

    /// Returns what [`Basis::runs`] does, of things whose names are known: without a look at all the others.
    pub(crate) fn runs_of(
        &self,
        side: usize,
        sums: &[(f64, f64)],
        of: &dyn Fn(usize) -> Vec<SliceMeasure>,
        amount: fn(&Amount) -> u64,
    ) -> Vec<SampledSum> {
        let each = self.sides[side].iter().zip(sums).enumerate();
        each.map(|(at, (picture, (sum, squares)))| SampledSum {
            sum: *sum,
            squares: *squares,
            exposure: self.exposure_of(picture),
            slices: slices_of(picture, &of(at), amount, *sum),
        })
        .collect()
    }
}

/// Returns what is counted of things by slice; nothing where that is not most of their sum, as where threads by the
/// hundred thousand are counted together.
fn slices_of(
    picture: &Picture,
    of: &[SliceMeasure],
    amount: fn(&Amount) -> u64,
    sum: f64,
) -> Vec<f64> {
    let mut out = vec![0.0; picture.series.slice_ns.len()];
    for list in of.iter().filter_map(|what| picture.series.of.get(what)) {
        list.add_to(&mut out, amount);
    }
    if out.iter().sum::<f64>() < COVERED * sum {
        return Vec::new();
    }
    even(picture, &mut out);
    out
}

/// Returns what is counted of something by slice, each brought to the length of the others.
pub(crate) fn slices(
    picture: &Picture,
    pick: &dyn Fn(&SliceMeasure) -> bool,
    amount: &dyn Fn(&Amount) -> u64,
) -> Vec<f64> {
    let mut out = vec![0.0; picture.series.slice_ns.len()];
    for (_, list) in picture.series.of.iter().filter(|(what, _)| pick(what)) {
        list.add_to(&mut out, amount);
    }
    even(picture, &mut out);
    out
}

/// Brings the last slice to the length of the others: it is half of it to one and a half.
pub(crate) fn even(picture: &Picture, out: &mut [f64]) {
    if let [first, .., last] = picture.series.slice_ns.as_slice()
        && let Some(end) = out.last_mut()
        && *last > 0
    {
        *end *= *first as f64 / *last as f64;
    }
}

#[cfg(test)]
mod tests {
    use analysis::SliceAmounts;

    use super::*;

    fn picture(origin: Origin, span_ns: Option<u64>, switches: u64) -> Picture {
        Picture {
            origin,
            span_ns,
            counts: vec![("context-switches".to_owned(), switches)],
            ..Picture::default()
        }
    }

    fn held(picture: &Picture) -> Option<u64> {
        let (_, count) = picture.counts.first()?;
        (*count > 0).then_some(*count)
    }

    #[test]
    fn what_both_sides_have_is_compared() {
        let recording = |count| picture(Origin::Recording, Some(2_000_000_000), count);
        let table = |count| picture(Origin::Printed, None, count);
        let ticks = |count| picture(Origin::Recording, None, count);
        let moment = |count| picture(Origin::Recording, Some(0), count);
        for (a, b, per, timed) in [
            (
                vec![recording(9)],
                vec![recording(5)],
                SumDivisor::Second,
                true,
            ),
            (vec![table(9)], vec![table(5)], SumDivisor::Table, true),
            (vec![recording(9)], vec![table(5)], SumDivisor::All, true),
            (vec![recording(9)], vec![ticks(5)], SumDivisor::All, false),
            (vec![recording(9)], vec![moment(5)], SumDivisor::All, true),
            // A fragment beside a table of much more.
            (
                vec![recording(2), table(900)],
                vec![table(800), recording(3)],
                SumDivisor::Table,
                true,
            ),
            (
                vec![recording(950), table(900)],
                vec![table(800), recording(800)],
                SumDivisor::Second,
                true,
            ),
        ] {
            let basis = Basis::of([&a, &b], &held).expect("both have it");
            assert_eq!((basis.per, basis.timed), (per, timed), "{a:?} {b:?}");
            assert!(basis.sides.iter().all(|side| side.len() == 1));
            let exposure = if per == SumDivisor::Second { 2.0 } else { 1.0 };
            assert_eq!(basis.exposure(0), exposure);
        }
        let (some, none) = ([recording(9)], [recording(0)]);
        let nothing = Basis::of([&some, &none], &held);
        assert_eq!(nothing.err(), Some([false, true]));
    }

    #[test]
    fn the_last_slice_counts_as_if_it_were_as_long_as_the_others() {
        let mut one = picture(Origin::Recording, Some(25), 1);
        one.series.slice_ns = vec![10, 10, 5];
        let mut amounts = SliceAmounts::default();
        for (slice, count) in [(2, 2), (0, 4), (1, 5), (1, 1)] {
            amounts.add(slice, Amount { count, ns: 0 });
        }
        one.series.of.insert(SliceMeasure::State(0), amounts);
        let of = |pick: &dyn Fn(&SliceMeasure) -> bool| slices(&one, pick, &|amount| amount.count);
        assert_eq!(of(&|what| *what == SliceMeasure::State(0)), [4.0, 6.0, 4.0]);
        assert_eq!(of(&|_| false), [0.0, 0.0, 0.0]);
    }
}
