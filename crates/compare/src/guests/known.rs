//! What guests' recordings say on both sides, and what it is divided by.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{ContextKind, ContextName, GuestTasksReport, Picture, SliceAmounts, SliceMeasure};
use model::{State, Times};

use crate::basis::{Basis, even};
use crate::chance::{COVERED, ENOUGH, SampledSum};
use crate::names::group;

/// Tasks of these names in a guest are its recorder's: of guests the names of tasks are compared alone.
const RECORDERS: [&str; 3] = ["perf", "perf-exec", "trace-cmd"];

/// What guests did, by a name that two recordings have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GuestActivity {
    pub(super) kind: ContextKind,
    name: String,
}

impl GuestActivity {
    /// Returns the name of what guests did; `None` where it is not known.
    pub(super) fn of(did: &ContextName) -> Option<GuestActivity> {
        let name = match (did.kind, &did.name) {
            (ContextKind::Unknown, _) => return None,
            (ContextKind::Idle, _) => String::new(),
            (ContextKind::Task, Some(comm)) => group(comm),
            (ContextKind::Task, None) => "without a name".to_owned(),
            (_, Some(name)) => name.clone(),
            (_, None) => "?".to_owned(),
        };
        Some(GuestActivity {
            kind: did.kind,
            name,
        })
    }

    /// Returns what it is called in [`crate::SideChange::what`].
    pub(super) fn what(&self) -> String {
        match self.kind {
            ContextKind::Task => format!("task {}", self.name),
            ContextKind::Interrupt => format!("interrupt {}", self.name),
            ContextKind::Softirq => format!("softirq {}", self.name),
            ContextKind::Idle => "idle".to_owned(),
            ContextKind::Unknown => "unknown".to_owned(),
        }
    }

    /// Returns it as a part of a sentence.
    pub(super) fn words(&self) -> String {
        match self.kind {
            ContextKind::Idle => "the idle task".to_owned(),
            _ => self.what(),
        }
    }
}

/// A sum of time, and when it was spent.
#[derive(Debug, Clone, Default)]
pub(super) struct GuestSum {
    pub(super) ns: f64,
    /// Stretches of time of which it is the sum.
    pub(super) pieces: f64,
    /// The part that is in slices.
    sliced_ns: f64,
    slices: Vec<f64>,
}

impl GuestSum {
    fn add(&mut self, list: &SliceAmounts, slices: usize) {
        self.slices.resize(slices, 0.0);
        list.add_to(&mut self.slices, |one| one.ns);
        for (_, one) in list.iter() {
            self.sliced_ns += one.ns as f64;
            self.pieces += one.count as f64;
        }
    }

    /// Returns it as a sum of one recording, divided by what has such slices.
    pub(super) fn run(&self, of: &RecordedGuests<'_>, per: &GuestDivisor<'_>) -> SampledSum {
        SampledSum {
            sum: self.ns,
            // Stretches of unknown lengths: this is the least that their squares add up to.
            squares: self.ns * self.ns / self.pieces.max(1.0),
            exposure: per.exposure,
            slices: match self.sliced_ns >= COVERED * self.ns {
                true => of.apart(&self.slices, per.slices),
                false => Vec::new(),
            },
        }
    }
}

/// What sums of one recording are divided by, and what of that is in each slice of time.
pub(super) struct GuestDivisor<'o> {
    exposure: f64,
    slices: &'o [f64],
}

impl GuestDivisor<'_> {
    /// Returns a sum of nothing: there was none in any slice.
    pub(super) fn nothing(&self, of: &RecordedGuests<'_>) -> SampledSum {
        SampledSum {
            exposure: self.exposure,
            slices: of.apart(&vec![0.0; self.slices.len()], self.slices),
            ..SampledSum::default()
        }
    }

    /// Returns a sum of one recording and of the squares of what it is made of.
    pub(super) fn run(
        &self,
        of: &RecordedGuests<'_>,
        (sum, squares): (f64, f64),
        slices: &[f64],
    ) -> SampledSum {
        SampledSum {
            sum,
            squares,
            exposure: self.exposure,
            slices: match slices.iter().sum::<f64>() >= COVERED * sum {
                true => of.apart(slices, self.slices),
                false => Vec::new(),
            },
        }
    }
}

/// What guests spent on one thing.
#[derive(Debug, Clone, Default)]
pub(super) struct SpentTime {
    /// In the guest.
    pub(super) guest: GuestSum,
    /// Waiting, while the vCPU had no CPU.
    pub(super) stolen: GuestSum,
}

/// The guests of one recording.
#[derive(Debug)]
pub(super) struct RecordedGuests<'a> {
    pub(super) picture: &'a Picture,
    pub(super) spent: BTreeMap<GuestActivity, SpentTime>,
    /// Time in the guest of which it is known what it was spent on, and when that was.
    pub(super) guest_ns: f64,
    guest_slices: Vec<f64>,
    /// When it is known what guests did.
    known_slices: Vec<f64>,
    /// Seconds of the recording, as far as it is known what guests did.
    pub(super) seconds: f64,
}

impl<'a> RecordedGuests<'a> {
    fn new(picture: &'a Picture, seconds: f64) -> RecordedGuests<'a> {
        let mut spent: BTreeMap<GuestActivity, SpentTime> = BTreeMap::new();
        for (did, times) in times(picture) {
            if let Some(name) = GuestActivity::of(&did) {
                let one = spent.entry(name).or_default();
                one.guest.ns += times.get(State::Guest) as f64;
                one.stolen.ns += times.get(State::Runnable) as f64;
            }
        }
        let mut guest_slices = vec![0.0; picture.series.slice_ns.len()];
        for (measured, list) in &picture.series.of {
            let (did, stolen) = match measured {
                SliceMeasure::GuestTime(did) => (did, false),
                SliceMeasure::GuestSteal(did) => (did, true),
                _ => continue,
            };
            let Some(one) = GuestActivity::of(did).and_then(|name| spent.get_mut(&name)) else {
                continue;
            };
            match stolen {
                true => one.stolen.add(list, guest_slices.len()),
                false => {
                    one.guest.add(list, guest_slices.len());
                    list.add_to(&mut guest_slices, |amount| amount.ns);
                }
            }
        }
        even(picture, &mut guest_slices);
        let mut known_slices = vec![0.0; guest_slices.len()];
        if let Some(known) = picture.series.of.get(&SliceMeasure::GuestKnown) {
            known.add_to(&mut known_slices, |amount| amount.ns);
        }
        even(picture, &mut known_slices);
        for sum in spent
            .values_mut()
            .flat_map(|one| [&mut one.guest, &mut one.stolen])
        {
            sum.slices.resize(guest_slices.len(), 0.0);
            even(picture, &mut sum.slices);
        }
        RecordedGuests {
            picture,
            guest_ns: spent.values().map(|one| one.guest.ns).sum(),
            spent,
            guest_slices,
            known_slices,
            seconds: seconds * (1.0 - unknown(picture)),
        }
    }

    /// Shares of the time that guests ran.
    pub(super) fn of_guest_time(&self) -> GuestDivisor<'_> {
        GuestDivisor {
            exposure: self.guest_ns,
            slices: &self.guest_slices,
        }
    }

    /// Rates for each second of which it is known what guests did.
    pub(super) fn of_seconds(&self) -> GuestDivisor<'_> {
        GuestDivisor {
            exposure: self.seconds,
            slices: &self.known_slices,
        }
    }

    /// Returns by how much each slice differs from what it would have at the same rate as all others. How long guests
    /// ran at all varies, and so does how much of a slice their recordings tell of: neither is news of what they did
    /// then. Slices of which they tell nothing say nothing.
    fn apart(&self, slices: &[f64], per: &[f64]) -> Vec<f64> {
        let sum = |list: &[f64]| list.iter().sum::<f64>();
        let all = sum(per);
        let rate = if all > 0.0 { sum(slices) / all } else { 0.0 };
        let each = slices.iter().zip(per).zip(&self.known_slices);
        each.filter(|(_, known)| **known > 0.0)
            .map(|((one, per), _)| one - rate * per)
            .collect()
    }

    /// Returns whether slices of time are enough to tell how much varies.
    fn is_sliced(&self) -> bool {
        let known = self.known_slices.iter().filter(|known| **known > 0.0);
        known.count() >= ENOUGH
    }
}

/// Returns what the guest of each vCPU did, as far as there is a recording of it.
pub(super) fn reports(picture: &Picture) -> impl Iterator<Item = &GuestTasksReport> {
    let rows = picture.vcpus.iter().flat_map(|report| &report.rows);
    rows.filter_map(|row| row.guest.as_ref())
}

fn times(picture: &Picture) -> impl Iterator<Item = (ContextName, &Times)> {
    let tasks = reports(picture).flat_map(|report| &report.tasks);
    tasks.map(|task| (task.who.did(), &task.times))
}

/// Returns of which share of their time it is not known what guests did.
fn unknown(picture: &Picture) -> f64 {
    let (mut unknown, mut all) = (0.0, 0.0);
    for (did, times) in times(picture) {
        let ns = times.total() as f64;
        all += ns;
        unknown += match did.kind {
            ContextKind::Unknown => ns,
            _ => 0.0,
        };
    }
    if all > 0.0 { unknown / all } else { 1.0 }
}

/// Returns for how long guests ran of which it is known what they did; `None` where nothing is.
pub(super) fn known_ns(picture: &Picture) -> Option<u64> {
    let known = times(picture).filter(|(did, _)| did.kind != ContextKind::Unknown);
    let ns = known.map(|(_, times)| times.get(State::Guest));
    Some(ns.fold(0, u64::saturating_add)).filter(|ns| *ns > 0)
}

/// What guests did on both sides.
#[derive(Debug)]
pub(crate) struct KnownGuests<'a> {
    pub(super) basis: Basis<'a>,
    pub(super) sides: [Vec<RecordedGuests<'a>>; 2],
}

impl<'a> KnownGuests<'a> {
    pub(super) fn new(basis: Basis<'a>) -> KnownGuests<'a> {
        let sides = [0, 1].map(|side: usize| -> Vec<RecordedGuests<'a>> {
            let each = basis.sides[side].iter();
            each.map(|picture| RecordedGuests::new(picture, basis.exposure_of(picture)))
                .collect()
        });
        KnownGuests { basis, sides }
    }

    /// Returns everything that guests did on either side, but for recorders.
    pub(super) fn names(&self) -> BTreeSet<&GuestActivity> {
        let all = self.sides.iter().flatten().flat_map(|of| of.spent.keys());
        all.filter(|name| self.is_compared(name)).collect()
    }

    /// Returns whether something that guests did is compared: no recorders, whose doing is no change of what they
    /// recorded, and interrupts only where both sides have them.
    pub(super) fn is_compared(&self, name: &GuestActivity) -> bool {
        match name.kind {
            ContextKind::Task => !RECORDERS.contains(&name.name.as_str()),
            ContextKind::Interrupt => self.side_without(|report| report.interrupts).is_none(),
            ContextKind::Softirq => self.side_without(|report| report.softirqs).is_none(),
            ContextKind::Idle => true,
            ContextKind::Unknown => false,
        }
    }

    /// Returns the side without what the other one has.
    pub(super) fn side_without(&self, has: fn(&GuestTasksReport) -> bool) -> Option<&'static str> {
        let [a, b] = self
            .basis
            .sides
            .each_ref()
            .map(|side| side.iter().all(|picture| reports(picture).any(has)));
        match (a, b) {
            (true, false) => Some("B"),
            (false, true) => Some("A"),
            _ => None,
        }
    }

    /// Returns a sum of all recordings of a side.
    pub(super) fn sum(&self, side: usize, of: impl Fn(&RecordedGuests<'_>) -> f64) -> f64 {
        self.sides[side].iter().map(of).sum()
    }

    /// Returns the seconds of a side, as far as it is known what guests did.
    pub(super) fn seconds(&self, side: usize) -> f64 {
        self.sum(side, |of| of.seconds)
    }

    /// Returns whether how much varies is known of all guests by slices of time.
    pub(super) fn are_sliced(&self) -> bool {
        self.sides.iter().flatten().all(RecordedGuests::is_sliced)
    }

    /// Returns of which share of their time it is not known what guests of a side did.
    pub(super) fn unknown(&self, side: usize) -> f64 {
        let all = self.basis.exposure(side);
        if all > 0.0 {
            1.0 - self.seconds(side) / all
        } else {
            0.0
        }
    }

    /// Returns whether a side has something that guests did.
    pub(super) fn has(&self, side: usize, name: &GuestActivity) -> bool {
        let mut each = self.sides[side].iter();
        each.any(|of| of.spent.contains_key(name))
    }
}
