//! Time by state, as columns.

use analysis::{Unknowable, known_amount};
use model::{State, Times};

use crate::amounts;
use crate::table::{Table, Unit, Views};

/// A column: states that are added up.
struct StateColumn {
    /// Its duration, and what unknowable times call it.
    duration: &'static str,
    /// Its share.
    share: &'static str,
    heading: &'static str,
    /// Its heading on a page.
    page: &'static str,
    states: &'static [State],
    /// Width of the column where it holds a share.
    width: usize,
}

const fn state_column(
    duration: &'static str,
    share: &'static str,
    heading: &'static str,
    page: &'static str,
    states: &'static [State],
    width: usize,
) -> StateColumn {
    StateColumn {
        duration,
        share,
        heading,
        page,
        states,
        width,
    }
}

/// The columns; they add up to the whole.
const STATE_COLUMNS: [StateColumn; 7] = [
    state_column(
        "guest_ns",
        "guest_share",
        "guest",
        "in the guest",
        &[State::Guest],
        6,
    ),
    state_column(
        "kernel_ns",
        "kernel_share",
        "kernel",
        "in KVM",
        &[State::Kernel, State::KernelBlocked],
        7,
    ),
    state_column(
        "user_ns",
        "user_share",
        "user",
        "in the VMM",
        &[State::User, State::UserBlocked],
        6,
    ),
    state_column(
        "poll_ns",
        "poll_share",
        "poll",
        "polling",
        &[State::Poll],
        6,
    ),
    state_column(
        "halted_ns",
        "halted_share",
        "halted",
        "halted",
        &[State::Halted],
        7,
    ),
    state_column(
        "runnable_ns",
        "runnable_share",
        "runnable",
        "runnable",
        &[State::Runnable],
        9,
    ),
    state_column(
        "unknown_ns",
        "unknown_share",
        "unknown",
        "unknown",
        &[State::Unknown],
        8,
    ),
];

/// Width of columns that hold durations.
const WIDE: usize = 10;

/// A row's time by state, and how much of it cannot be known.
pub(crate) type Split<'r> = (Times, &'r [Unknowable]);

impl StateColumn {
    fn ns(&self, times: &Times) -> u64 {
        let of = self.states.iter().map(|state| times.get(*state));
        of.fold(0, u64::saturating_add)
    }

    /// Returns the time; `None` where nothing can be known of it.
    fn known(&self, (times, unknowable): Split<'_>) -> Option<u64> {
        known_amount(unknowable, self.duration, self.ns(&times))
    }
}

/// Returns the time in each column's states, by its heading; `None` where nothing can be known of it.
pub(crate) fn known(split: Split<'_>) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    STATE_COLUMNS
        .iter()
        .map(move |column| (column.heading, column.known(split)))
}

/// The views that columns of time by state stand in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimesViews {
    pub(crate) durations: Views,
    pub(crate) shares: Views,
    /// Whether people see the time in the guest: no time of an exit is in it.
    pub(crate) guest: bool,
}

impl TimesViews {
    /// Documents and pages alone.
    pub(crate) const NONE: TimesViews = TimesViews {
        durations: Views::NONE,
        shares: Views::NONE,
        guest: false,
    };

    /// Returns those of a column.
    fn of(self, states: &[State]) -> TimesViews {
        match states {
            [State::Guest] if !self.guest => TimesViews::NONE,
            _ => TimesViews {
                guest: true,
                ..self
            },
        }
    }
}

/// Adds columns of time by state. The first seven add up to the whole; the others are parts of them.
pub(crate) fn columns<'t, R: 't>(
    mut table: Table<'t, R>,
    views: TimesViews,
    of: fn(&R) -> Split<'_>,
) -> Table<'t, R> {
    for column in &STATE_COLUMNS {
        let views = views.of(column.states);
        table = table
            .column(column.duration, Unit::Nanoseconds, move |row| {
                column.known(of(row))
            })
            .heading(column.heading, WIDE)
            .views(views.durations)
            .page_if(views.guest, column.page)
            .column(column.share, Unit::Share, move |row| {
                let (times, _) = of(row);
                column
                    .known(of(row))
                    .and_then(|ns| amounts::share(ns, times.total()))
            })
            .text_only()
            .heading(column.heading, column.width)
            .views(views.shares);
    }
    for (name, page, state) in [
        ("kernel_blocked_ns", "asleep in KVM", State::KernelBlocked),
        ("user_blocked_ns", "asleep in the VMM", State::UserBlocked),
    ] {
        table = table
            .column(name, Unit::Nanoseconds, move |row| {
                let (times, unknowable) = of(row);
                known_amount(unknowable, name, times.get(state))
            })
            .page(page);
    }
    table
}
