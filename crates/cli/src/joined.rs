//! A host's recording with those of its guests, as the command line names them.

use std::path::Path;

use anyhow::Result;
use session::{GuestInput, Input, Session};

use crate::args::GuestArgs;

pub(crate) use session::quality_with as quality;

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
