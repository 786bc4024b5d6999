//! Time by state, as columns.

use analysis::Unknowable;
use model::{State, Times};

use crate::table::{Table, Unit};

/// A column: states that are added up.
struct Told {
    /// Its duration, and what unknowable times call it.
    duration: &'static str,
    /// Its share.
    share: &'static str,
    heading: &'static str,
    states: &'static [State],
    /// Width of the column where it holds a share.
    width: usize,
}

const fn told(
    duration: &'static str,
    share: &'static str,
    heading: &'static str,
    states: &'static [State],
    width: usize,
) -> Told {
    Told {
        duration,
        share,
        heading,
        states,
        width,
    }
}

/// The columns; they add up to the whole.
const TOLD: [Told; 7] = [
    told("guest_ns", "guest_share", "guest", &[State::Guest], 6),
    told(
        "kernel_ns",
        "kernel_share",
        "kernel",
        &[State::Kernel, State::KernelBlocked],
        7,
    ),
    told(
        "user_ns",
        "user_share",
        "user",
        &[State::User, State::UserBlocked],
        6,
    ),
    told("poll_ns", "poll_share", "poll", &[State::Poll], 6),
    told("halted_ns", "halted_share", "halted", &[State::Halted], 7),
    told(
        "runnable_ns",
        "runnable_share",
        "runnable",
        &[State::Runnable],
        9,
    ),
    told(
        "unknown_ns",
        "unknown_share",
        "unknown",
        &[State::Unknown],
        8,
    ),
];

/// Width of columns that hold durations.
const WIDE: usize = 10;

/// A row's time by state, and what of it cannot be known.
pub(crate) type Split<'r> = (Times, &'r [Unknowable]);

impl Told {
    fn ns(&self, times: &Times) -> u64 {
        let of = self.states.iter().map(|state| times.get(*state));
        of.fold(0, u64::saturating_add)
    }

    /// Returns the time; `None` where nothing can be known of it.
    fn known(&self, (times, unknowable): Split<'_>) -> Option<u64> {
        let hidden = |item: &Unknowable| item.fields.contains(&self.duration);
        let ns = self.ns(&times);
        (ns > 0 || !unknowable.iter().any(hidden)).then_some(ns)
    }
}

/// Returns the time in each column's states, by its heading; `None` where nothing can be known of it.
pub(crate) fn known(split: Split<'_>) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    TOLD.iter()
        .map(move |told| (told.heading, told.known(split)))
}

/// Returns the names of the columns that views show: durations, or shares in per cent.
pub(crate) fn names(durations: bool) -> impl Iterator<Item = &'static str> {
    TOLD.iter().map(move |told| match durations {
        true => told.duration,
        false => told.share,
    })
}

/// Adds columns of time by state. The first seven add up to the whole; the others are parts of them.
pub(crate) fn columns<'t, R: 't>(mut table: Table<'t, R>, of: fn(&R) -> Split<'_>) -> Table<'t, R> {
    for told in &TOLD {
        table = table
            .column(told.duration, Unit::Nanoseconds, move |row| {
                told.ns(&of(row).0)
            })
            .heading(told.heading, WIDE)
            .show(move |row, layout| {
                let known = told.known(of(row)).map(|ns| layout.time(ns));
                known.unwrap_or_else(|| "-".to_owned())
            })
            .column(told.share, Unit::Share, move |row| {
                let (times, _) = of(row);
                let known = told.known(of(row));
                known.map(|ns| ns as f64 / times.total().max(1) as f64)
            })
            .text_only()
            .heading(told.heading, told.width);
    }
    for (name, state) in [
        ("kernel_blocked_ns", State::KernelBlocked),
        ("user_blocked_ns", State::UserBlocked),
    ] {
        table = table.column(name, Unit::Nanoseconds, move |row| of(row).0.get(state));
    }
    table
}
