//! What one input told, ready to be shown.

use std::cmp::Reverse;

use analysis::Picture;
use anyhow::Result;
use render::info;
use report::Invocation;
use rules::{Case, Diagnosis};
use session::{Flame, Input, PictureOptions, Session, Taken};

use crate::args::Sort;
use crate::commands::exits::sort;
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
    if !picture.info.has_exits {
        picture.quality.warn(
            "There are no kvm_exit events, so nothing can be said about exits; record on the host with \
             'perf kvm stat record' or 'trace-cmd record -e kvm -e sched'.",
        );
    }
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
    let diagnosis = rules::diagnose(&[Case {
        picture: &picture,
        facts: Some(session.facts()),
        domain: None,
    }]);
    // Causes may be tasks that nobody asked for.
    picture.only_asked();
    for report in &mut picture.exits {
        sort(&mut report.rows, Sort::Time);
    }
    if let Some(report) = &mut picture.sched {
        report.rows.sort_by_key(|row| Reverse(row.delays.max()));
    }
    Part {
        name,
        head,
        picture,
        diagnosis,
        flames: Vec::new(),
        invocation,
    }
}
