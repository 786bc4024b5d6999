//! A host's recording with those of its guests, as the command line names them.

use std::path::Path;

use anyhow::Result;
use event::Quality;
use session::{Guest, GuestInput, Input, Session};
use source::Outcome;

use crate::args::GuestArgs;

/// A host's recording and those of its guests, opened.
#[derive(Debug)]
pub(crate) struct Joined<'s> {
    /// The host's.
    pub host: Input<'s>,
    guests: Vec<(Input<'s>, Option<String>)>,
}

/// Returns all paths that are read, for what looks at them before.
pub(crate) fn paths<'a>(recording: &'a Path, guests: &'a GuestArgs) -> Vec<&'a Path> {
    let guests = guests.all().map(|(path, _)| path);
    std::iter::once(recording).chain(guests).collect()
}

impl<'s> Joined<'s> {
    /// Opens them. Where the files say that another one is the first one's host, that is the host.
    ///
    /// # Errors
    ///
    /// Fails when one cannot be read.
    pub(crate) fn open(
        session: &'s Session,
        recording: &Path,
        args: &GuestArgs,
    ) -> Result<Joined<'s>> {
        let mut host = session.input(recording)?;
        let mut guests = Vec::new();
        for (path, told) in args.all() {
            let mut input = session.input(path)?;
            if told.is_none() && host.is_guest_of(&input) {
                std::mem::swap(&mut host, &mut input);
            }
            guests.push((input, told.map(str::to_owned)));
        }
        Ok(Joined { host, guests })
    }

    /// Reads what stands around the events of the guests' recordings.
    ///
    /// # Errors
    ///
    /// Fails when one is no recording.
    pub(crate) fn inputs(&self) -> Result<Vec<GuestInput<'_>>> {
        let all = self.guests.iter();
        all.map(|(input, told)| Ok(input.guest(told.as_deref())?))
            .collect()
    }

    /// Returns the names of all, the host's first.
    pub(crate) fn names(&self) -> Vec<String> {
        let guests = self.guests.iter().map(|(input, _)| input.name());
        std::iter::once(self.host.name())
            .chain(guests)
            .map(str::to_owned)
            .collect()
    }
}

/// Returns what recordings lack that were walked together. What is said of a guest's names it.
pub(crate) fn quality(outcomes: Vec<Outcome>, guests: &[Guest<'_>]) -> Quality {
    let mut outcomes = outcomes.into_iter();
    let mut all = outcomes.next().unwrap_or_default().quality;
    for (outcome, guest) in outcomes.zip(guests) {
        let mut own = outcome.quality;
        // Where parts of the guest's recording end does not bound what the host's says.
        own.uneven_from = None;
        for warning in &mut own.warnings {
            *warning = format!("{}: {warning}", guest.name());
        }
        if own.lost_events > 0 {
            own.warn(format!(
                "{}: {} lost while the guest was recorded.",
                guest.name(),
                words::plural(own.lost_events, "event")
            ));
        }
        all.merge(own);
    }
    all
}
