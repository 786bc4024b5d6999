//! `trapline diagnose`: why it is slow, and what to change.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use doubts::DoubtKind;
use event::Quality;
use render::ClockUnit;
use render::diagnose;
use rules::{Case, Diagnosis};
use session::{Definition, PictureOptions};

use crate::answer::Answer;
use crate::args::DiagnoseArgs;
use crate::opening::{self, Beside};
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &DiagnoseArgs) -> Result<()> {
    let beside = Beside {
        mtree: args.mtree.as_deref(),
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        empty: true,
        recordings: Some(args.recordings.len()),
        ..Beside::default()
    };
    let inputs = args.recordings.iter().chain(&args.domain);
    let inputs = inputs.map(PathBuf::as_path).chain(args.guests.paths());
    let inputs: Vec<&Path> = inputs.collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let definition = args.domain.as_deref().map(Definition::open).transpose()?;
    let (pictures, names) = session.pictures_with(
        &args.recordings,
        &args.guests.all(),
        &PictureOptions::default(),
    )?;
    let cases: Vec<Case<'_>> = pictures
        .iter()
        .map(|picture| Case {
            picture,
            facts: Some(session.facts()),
            domain: definition.as_ref().map(|one| &one.domain),
        })
        .collect();
    let mut diagnosis = rules::diagnose(&cases);
    if !args.rule.is_empty() {
        keep(&mut diagnosis, &args.rule);
    }
    let mut quality = output::merged(&pictures);
    let patch = match &definition {
        Some(definition) => patch(definition, &diagnosis, &mut quality)?,
        None => String::new(),
    };
    let host = session.facts().host.as_ref();
    let remarks = definition
        .as_ref()
        .map(|one| rules::remarks(&one.domain, host))
        .unwrap_or_default();
    if args.patch {
        if patch.is_empty() {
            let told = writeln!(
                io::stderr(),
                "trapline: no finding asks for a change of the definition"
            );
            return Ok(told?);
        }
        return output::print_exact(&patch);
    }
    let answer = Answer {
        format: args.common.format,
        command: "diagnose",
        inputs: &names,
        quality: &quality,
        // Each finding says it of its own recording.
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let mut text = diagnose::text(&diagnosis, output::width());
            if !remarks.is_empty() {
                text.push('\n');
                text.push_str(&diagnose::remarks(&remarks, output::width()));
            }
            text.push_str(&output::qualities(&pictures));
            text
        },
        || {
            let told = definition.as_ref().map(|_| diagnose::Definition {
                domain_remarks: &remarks,
                patch: &patch,
            });
            diagnose::document(&diagnosis, told)
        },
        |_| diagnose::csv(&diagnosis),
    )
}

/// Leaves only what some rules say.
fn keep(diagnosis: &mut Diagnosis, ids: &[String]) {
    let wanted = |id: &str| ids.iter().any(|one| one == id);
    diagnosis.findings.retain(|finding| wanted(finding.rule.id));
    diagnosis.unchecked.retain(|lack| wanted(lack.rule.id));
    diagnosis.clear.retain(|rule| wanted(rule.id));
}

/// Returns the diff that findings ask for.
fn patch(definition: &Definition, diagnosis: &Diagnosis, quality: &mut Quality) -> Result<String> {
    for note in &definition.notes {
        let note = note.clone();
        quality.raise(DoubtKind::DefinitionNote { note });
    }
    let changes = diagnosis.changes();
    if changes.is_empty() {
        return Ok(String::new());
    }
    let (after, notes) = domain::apply(&definition.text, &changes)
        .with_context(|| format!("{}: cannot be changed", definition.name))?;
    for note in notes {
        let note = format!("{}: {note}", definition.name);
        quality.raise(DoubtKind::DefinitionNote { note });
    }
    Ok(domain::diff(&definition.name, &definition.text, &after))
}
