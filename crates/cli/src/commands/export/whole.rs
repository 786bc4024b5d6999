//! Files of what the recording tells as a whole: a summary, and one document.

use analysis::Picture;
use anyhow::Result;
use event::Quality;
use export::markdown::Summary;
use paths::lang;
use render::{diagnose, exits, info, paths as render_paths, sched, vcpus};
use report::quoted;
use rules::Diagnosis;
use serde::Serialize;
use serde_json::Value;
use session::{Input, PictureOptions, Session, Taken};

use crate::answer::Answer;
use crate::args::{Format, Kind};
use crate::commands::diagnosed::{diagnosed, warn_without_exits};
use crate::commands::info::head;

/// A file's text, and what the recording lacks.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) quality: Quality,
}

/// The fields of a document, behind those of `info`: what the other commands have, each under its name.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    info: info::Document<'a>,
    exits: Vec<exits::OneTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vcpus: Option<vcpus::Document>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sched: Option<sched::Document<'a>>,
    #[serde(flatten)]
    paths: render_paths::Document<'a>,
    findings: Value,
}

/// Returns the text of a kind of file.
///
/// # Errors
/// The input is no recording, or does not have what filters ask for.
pub(super) fn text(
    kind: Kind,
    session: &Session,
    input: &Input<'_>,
    wanted: Vec<lang::Path>,
) -> Result<Text> {
    let mut options = PictureOptions::default();
    // Rules look at paths that nobody may have asked for.
    let asked: Vec<String> = wanted.iter().map(|path| path.name.clone()).collect();
    options.paths.retain(|path| !asked.contains(&path.name));
    options.paths.extend(wanted);
    let Taken {
        mut picture,
        header,
        lacks_formats,
        ..
    } = input.picture(&options)?;
    warn_without_exits(&mut picture, lacks_formats, session);
    let diagnosis = diagnosed(&mut picture, session);
    // Causes may be paths that nobody asked for.
    picture.paths.retain(|path| asked.contains(&path.name));
    let position = |name: &String| asked.iter().position(|asked| asked == name);
    picture.paths.sort_by_key(|path| position(&path.name));
    let head = head(&header);
    let text = match kind {
        Kind::Json => document(input.name(), &head, &picture, &diagnosis),
        _ => Summary {
            name: input.name(),
            head: &head,
            picture: &picture,
            diagnosis: &diagnosis,
            command: &command(),
            commands: &["diagnose", "vcpus", "exits", "paths"]
                .map(|one| format!("trapline {one} {}", quoted(input.name().as_ref()))),
            version: env!("CARGO_PKG_VERSION"),
        }
        .markdown(),
    };
    Ok(Text {
        text,
        quality: picture.quality,
    })
}

fn document(name: &str, head: &info::Head, picture: &Picture, diagnosis: &Diagnosis) -> String {
    let inputs = [name.to_owned()];
    let answer = Answer {
        format: Format::Json,
        command: "export",
        inputs: &inputs,
        quality: &picture.quality,
    };
    answer.document(Document {
        info: info::document(head, &picture.info, &[]),
        exits: exits::tables(picture.isa, &picture.exits),
        vcpus: picture.vcpus.as_ref().map(vcpus::document),
        sched: picture.sched.as_ref().map(sched::document),
        paths: render_paths::document(&picture.paths),
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
