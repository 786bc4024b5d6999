//! Files about the recording as a whole: a summary, and one document.

use std::ffi::OsString;

use analysis::Picture;
use anyhow::Result;
use event::Quality;
use export::markdown::MarkdownSummary;
use render::ClockUnit;
use render::info::GuestRow;
use render::{diagnose, exits_document, info, parts, paths as render_paths, sched, vcpus};
use report::quoted;
use rules::Diagnosis;
use serde::Serialize;
use serde_json::{Map, Value};
use session::{HostInput, PictureOptions, RecordingPicture, Session};

use crate::answer::Answer;
use crate::commands::diagnosed::{diagnosed, warn_without_exits};
use crate::commands::export::args::Kind;
use crate::commands::info::{head, row};
use crate::options::Format;

use super::WantedPaths;

/// A file's text, and the doubts about the recording.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) quality: Quality,
}

/// The fields of a document, behind those of `info`: what the other commands have, each under its name.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    info: info::InfoDocument<'a>,
    exits: Vec<exits_document::OneTable<'a>>,
    /// The same by what guests did, where their recordings were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    guest_exits: Vec<exits_document::OneTable<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vcpus: Option<vcpus::VcpusDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sched: Option<sched::SchedDocument<'a>>,
    /// What else was recorded.
    #[serde(flatten)]
    parts: Map<String, Value>,
    #[serde(flatten)]
    paths: render_paths::PathsDocument<'a>,
    findings: Value,
}

#[cfg(test)]
render::shape!(Document<'static> {
    ..info, exits, guest_exits?, vcpus?, sched?, ..parts: parts::shape(), ..paths, findings: diagnose::findings_shape()
});

/// Returns what the document has.
#[cfg(test)]
pub(crate) fn shape() -> render::schema::Shape {
    <Document<'static> as render::schema::HasShape>::shape()
}

/// Returns the text of a kind of file.
///
/// # Errors
/// The input is no recording, or does not have what filters ask for.
pub(super) fn text(
    kind: Kind,
    session: &Session,
    host: &HostInput<'_>,
    wanted: WantedPaths,
) -> Result<Text> {
    let mut options = match wanted.named {
        true => PictureOptions::default(),
        false => PictureOptions::default().through_guests(),
    };
    // Rules look at paths that nobody may have asked for.
    let asked: Vec<String> = wanted.paths.iter().map(|path| path.name.clone()).collect();
    options.paths.retain(|path| !asked.contains(&path.name));
    options.paths.extend(wanted.paths);
    let RecordingPicture {
        mut picture,
        header,
        formats_missing,
        guests,
        ..
    } = host.picture(&options)?;
    let guests = guests.iter().map(|(guest, inside)| row(guest, inside));
    let guests: Vec<GuestRow> = guests.collect();
    warn_without_exits(&mut picture, formats_missing, session);
    let diagnosis = diagnosed(&mut picture, session);
    // Causes may be paths that nobody asked for.
    picture.paths.retain(|path| asked.contains(&path.name));
    let position = |name: &String| asked.iter().position(|asked| asked == name);
    picture.paths.sort_by_key(|path| position(&path.name));
    let head = head(&header);
    let text = match kind {
        Kind::Json => document(&host.names(), (&head, &guests), &picture, &diagnosis),
        _ => MarkdownSummary {
            name: host.input().name(),
            head: &head,
            guests: &guests,
            picture: &picture,
            diagnosis: &diagnosis,
            command: &command(),
            commands: &["diagnose", "vcpus", "exits", "paths"]
                .map(|one| format!("trapline {one} {}", given(host))),
            version: env!("CARGO_PKG_VERSION"),
        }
        .markdown(),
    };
    Ok(Text {
        text,
        quality: picture.quality,
    })
}

/// Returns the recordings as a shell takes them, those of guests by their option.
fn given(host: &HostInput<'_>) -> String {
    let guests = host.guests().map(|(path, vm)| {
        let path = path.as_os_str();
        match vm {
            Some(vm) => {
                let mut value = OsString::from(vm);
                value.push("=");
                value.push(path);
                format!(" --guest={}", quoted(&value))
            }
            None => format!(" --guest={}", quoted(path)),
        }
    });
    let guests: String = guests.collect();
    format!("{}{guests}", quoted(host.path().as_os_str()))
}

fn document(
    inputs: &[String],
    (head, guests): (&info::Head, &[GuestRow]),
    picture: &Picture,
    diagnosis: &Diagnosis,
) -> String {
    let answer = Answer {
        format: Format::Json,
        command: "export",
        inputs,
        quality: &picture.quality,
        clock: ClockUnit::of(head.nanoseconds),
    };
    let doubts = picture.quality.all_doubts();
    answer.document(Document {
        info: info::document(head, &picture.info, guests),
        exits: exits_document::tables(picture.isa, &picture.exits, &doubts),
        guest_exits: exits_document::tables(picture.isa, &picture.guest_exits, &doubts),
        vcpus: picture
            .vcpus
            .as_ref()
            .map(|one| vcpus::document(one, &doubts)),
        sched: picture
            .sched
            .as_ref()
            .map(|one| sched::document(one, &doubts)),
        parts: parts::members(picture),
        paths: render_paths::document(picture.all_paths(), &doubts),
        findings: diagnose::findings(&diagnosis.findings),
    })
}

/// Returns the command line as a shell takes it.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word));
    let all: Vec<String> = std::iter::once("trapline".to_owned())
        .chain(words)
        .collect();
    all.join(" ")
}
