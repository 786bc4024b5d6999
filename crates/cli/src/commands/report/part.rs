//! What was found of one input, ready to be shown.

use std::path::Path;

use analysis::Picture;
use anyhow::Result;
use render::ClockUnit;
use render::info::{self, GuestRow};
use report::Invocation;
use rules::Diagnosis;
use session::{HostInput, PictureOptions, RecordingPicture, RecordingStacks, Session, TicketFile};

use crate::commands::diagnosed::{diagnosed, warn_without_exits};
use crate::commands::info::{head, row};

/// What was found of one recording.
pub(super) struct Part {
    pub(super) name: String,
    /// What distinguishes it from others: its name, and where in the file it stands if there are others in it.
    pub(super) title: String,
    pub(super) head: info::Head,
    pub(super) picture: Picture,
    pub(super) diagnosis: Diagnosis,
    /// Its stacks, where they were asked for.
    pub(super) flames: Vec<RecordingStacks>,
    /// How the recordings of its guests join it.
    pub(super) guests: Vec<GuestRow>,
    /// How it was given.
    pub(super) invocation: Invocation,
}

impl Part {
    /// Returns what the times of its recording count.
    pub(super) fn clock(&self) -> ClockUnit {
        ClockUnit::of(self.head.nanoseconds)
    }

    /// Whether it is a part of a text in which several things stand.
    pub(super) fn is_of(&self, file: &TicketFile) -> bool {
        self.picture
            .names
            .iter()
            .any(|name| is_of(name, file.path()))
    }

    /// Returns the names of all files that it comes from.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.picture.names.iter().chain(&self.picture.guests)
    }
}

/// Whether a name is that of a file, or of a part of it.
pub(super) fn is_of(name: &str, path: &Path) -> bool {
    let file = path.display().to_string();
    name.strip_prefix(&file)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// Reads a recording, and those of its guests.
pub(super) fn read(
    host: &HostInput<'_>,
    options: &PictureOptions,
    session: &Session,
    invocation: Invocation,
) -> Result<Part> {
    let RecordingPicture {
        mut picture,
        header,
        flames,
        guests,
        formats_missing,
    } = host.picture(options)?;
    let input = host.input();
    let guests = guests.iter().map(|(guest, inside)| row(guest, inside));
    let guests: Vec<GuestRow> = guests.collect();
    warn_without_exits(&mut picture, formats_missing, session);
    let mut part = part(
        input.name().to_owned(),
        head(&header),
        picture,
        session,
        invocation,
    );
    part.flames = flames;
    part.guests = guests;
    // Findings say which times the timeline shows whole.
    input.details(&mut part.picture, &part.diagnosis.findings)?;
    Ok(part)
}

/// Returns what was found of printed tables. Where other tables of the same file are of another situation, its title
/// says which these are.
pub(super) fn of_tables(
    picture: Picture,
    shared: bool,
    session: &Session,
    invocation: Invocation,
) -> Part {
    let places = picture.places.join(", ");
    let head = info::Head {
        format: format!("printed by {}: {places}", session::describe(&picture)),
        nanoseconds: true,
        ..info::Head::default()
    };
    let name = picture.names.join(", ");
    let mut part = part(name, head, picture, session, invocation);
    if shared {
        part.title = format!("{}, {places}", part.name);
    }
    part
}

/// Returns what was found of facts alone.
pub(super) fn of_facts(picture: Picture, session: &Session, invocation: Invocation) -> Part {
    let head = info::Head {
        format: format!("facts of a host: {}", picture.places.join(", ")),
        nanoseconds: true,
        ..info::Head::default()
    };
    part(picture.names.join(", "), head, picture, session, invocation)
}

fn part(
    name: String,
    head: info::Head,
    picture: Picture,
    session: &Session,
    invocation: Invocation,
) -> Part {
    let mut picture = picture;
    let diagnosis = diagnosed(&mut picture, session);
    Part {
        title: name.clone(),
        name,
        head,
        picture,
        diagnosis,
        flames: Vec::new(),
        guests: Vec::new(),
        invocation,
    }
}
