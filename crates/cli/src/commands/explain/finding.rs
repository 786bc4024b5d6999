//! A finding, and the commands that print the events behind its evidence.

use std::ffi::OsStr;

use anyhow::Result;
use render::diagnose::CauseList;
use render::explain::{self, ExplainedEvidence};
use render::{ClockUnit, diagnose};
use report::quoted;
use rules::{Case, Evidence, Rule};
use session::{PictureOptions, Session};

use crate::answer::Answer;
use crate::commands::explain::args::ExplainArgs;
use crate::output;

/// Explains a finding of a rule.
pub(super) fn run(args: &ExplainArgs, rule: &'static Rule, session: &Session) -> Result<()> {
    let (pictures, names) = session.pictures_with(
        std::slice::from_ref(&args.recording),
        &[],
        &PictureOptions {
            parts: false,
            ..PictureOptions::default()
        },
    )?;
    let cases = pictures.iter().map(|picture| Case {
        picture,
        facts: Some(session.facts()),
        domain: session.domain_of(picture),
    });
    let cases: Vec<Case<'_>> = cases.collect();
    let mut diagnosis = rules::diagnose(&cases);
    diagnosis.keep(&[rule.id.to_owned()]);
    let quality = output::merged(&pictures);
    let file = quoted(args.recording.as_os_str());
    let findings = diagnosis.findings.iter();
    let evidence: Vec<ExplainedEvidence> = findings
        .flat_map(|finding| {
            finding.evidence.iter().map(|one| ExplainedEvidence {
                finding: finding.rule.id,
                text: one.text.clone(),
                commands: commands(one, &file, finding.in_ticks),
            })
        })
        .collect();
    let answer = Answer {
        format: args.common.format,
        command: "explain",
        inputs: &names,
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let width = output::width();
            let mut text = diagnose::text(&diagnosis, CauseList::Named, width);
            if !evidence.is_empty() {
                text.push_str("\nevents behind the evidence:\n");
                text.push_str(&explain::finding_text(&evidence, width));
            }
            text.push_str("\nthe rule:\n");
            text.push_str(&render::rules::explained(&[rule], width));
            text.push('\n');
            text.push_str(&output::qualities(&pictures));
            text
        },
        || explain::finding_document(&diagnosis.findings, &evidence),
        |_| explain::finding_csv(&evidence),
    )
}

/// Returns the commands that print the events that a piece of evidence is made of.
fn commands(evidence: &Evidence, file: &str, in_ticks: bool) -> Vec<String> {
    let mut out = Vec::new();
    for row in &evidence.rows {
        let row = quoted(OsStr::new(&row.key));
        out.push(format!("trapline explain {file} exits {row}"));
    }
    let mut paths: Vec<&str> = Vec::new();
    for one in &evidence.instances {
        if !paths.contains(&one.path.as_str()) {
            paths.push(&one.path);
        }
    }
    out.extend(paths.iter().map(|path| {
        format!(
            "trapline explain {file} paths {} max",
            quoted(OsStr::new(path))
        )
    }));
    out.extend(evidence.windows.iter().map(|window| {
        let time = window.argument(in_ticks);
        format!("trapline events --time {time} {file}")
    }));
    out
}
