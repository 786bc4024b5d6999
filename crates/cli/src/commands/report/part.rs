//! What one input told, ready to be shown.

use analysis::Picture;
use anyhow::Result;
use render::info;
use report::Invocation;
use rules::Diagnosis;
use session::{Flame, Input, PictureOptions, Session, Taken};

use crate::commands::diagnosed::{diagnosed, warn_without_exits};
use crate::commands::info::head;

/// What one recording told.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) head: info::Head,
    pub(super) picture: Picture,
    pub(super) diagnosis: Diagnosis,
    /// Its stacks, where they were asked for.
    pub(super) flames: Vec<Flame>,
    /// How it was given.
    pub(super) invocation: Invocation,
}

/// Reads a recording.
pub(super) fn read(
    input: &Input<'_>,
    options: &PictureOptions,
    session: &Session,
    invocation: Invocation,
) -> Result<Part> {
    let Taken {
        mut picture,
        header,
        flames,
    } = input.picture(options)?;
    warn_without_exits(&mut picture);
    let mut part = part(
        input.name().to_owned(),
        head(&header),
        picture,
        session,
        invocation,
    );
    part.flames = flames;
    // Findings say which times the timeline shows whole.
    input.details(&mut part.picture, &part.diagnosis.findings)?;
    Ok(part)
}

/// Returns what printed tables told.
pub(super) fn of_tables(picture: Picture, session: &Session, invocation: Invocation) -> Part {
    let head = info::Head {
        format: format!(
            "printed by {}: {}",
            session::describe(&picture),
            picture.places.join(", ")
        ),
        nanoseconds: true,
        ..info::Head::default()
    };
    let mut picture = picture;
    session.host_facts().warn(&mut picture.quality);
    let name = picture.names.join(", ");
    part(name, head, picture, session, invocation)
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
        name,
        head,
        picture,
        diagnosis,
        flames: Vec::new(),
        invocation,
    }
}
