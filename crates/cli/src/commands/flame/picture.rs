//! What a picture of one recording says beside its boxes.

use std::path::Path;

use analysis::ProfileReport;
use anyhow::Result;
use event::Quality;
use export::PprofProfile;
use render::firefox::FirefoxProfile;
use render::flame_picture::{FlamePicture, Graph};
use render::{Layout, flame};

use super::write::{Content, Form, write};

/// Writes what was sampled to a file, and returns what the file leaves out.
pub(super) fn write_one(
    file: &Path,
    form: Form,
    report: &ProfileReport,
    name: &str,
    quality: &Quality,
) -> Result<Vec<String>> {
    let notes = notes(report, quality);
    let content = Content {
        folded: &|most, line| stacks::folded(&report.stacks, most, line),
        speedscope: &|| Ok(flame::speedscope(report, name)?),
        pprof: &|| {
            let profile = PprofProfile {
                stacks: &report.stacks,
                event: flame::event(report),
                nanoseconds: flame::is_time(report),
                comments: &notes,
            };
            Ok(profile.encode())
        },
        firefox: &|| {
            let profile = FirefoxProfile {
                stacks: &report.stacks,
                event: flame::event(report),
                nanoseconds: flame::is_time(report),
                name,
                comments: &notes,
            };
            Ok(profile.encode()?)
        },
        picture: FlamePicture {
            title: name,
            notes: &notes,
            graph: Graph::Stacks(&report.stacks),
            nanoseconds: flame::is_time(report),
        },
    };
    write(file, form, &content)
}

/// Says what is shown and what is not.
fn notes(report: &ProfileReport, quality: &Quality) -> Vec<String> {
    let layout = Layout {
        width: 80,
        limit: 0,
        nanoseconds: flame::is_time(report),
    };
    let mut notes = flame::headline(report, layout);
    notes.extend(doubt_notes("", quality));
    notes
}

/// Returns the doubts about a recording as notes. `side` says which of two it is.
pub(super) fn doubt_notes(side: &str, quality: &Quality) -> Vec<String> {
    let mut notes = Vec::new();
    let doubts = quality.all_doubts();
    notes.extend(doubts.iter().map(|doubt| format!("{side}{}", doubt.text())));
    notes
}
