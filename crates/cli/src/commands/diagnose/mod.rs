//! `trapline diagnose`: why it is slow, and what to change.

mod alone;
pub(crate) mod args;
mod patches;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use domain::DefinitionForm;
use event::Quality;
use render::{ClockUnit, definition, diagnose};
use rules::{Case, Diagnosis};
use session::{DomainFile, PictureOptions};

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

use args::DiagnoseArgs;

/// Runs the command.
pub(crate) fn run(args: &DiagnoseArgs) -> Result<()> {
    if args.recordings.is_empty() {
        return alone::run(args);
    }
    let path = match args.domain.as_slice() {
        [] => None,
        [path] => Some(path),
        _ => {
            return Err(Usage::error(
                "with a recording --domain is given once: it is of one guest",
            ));
        }
    };
    let beside = AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        empty: true,
        recordings: Some(args.recordings.len()),
        ..AccompanyingFiles::default()
    };
    let inputs = args.recordings.iter().chain(&args.domain);
    let inputs = inputs.map(PathBuf::as_path).chain(args.guests.paths());
    let inputs: Vec<&Path> = inputs.collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let vm = args.common.filter.vm.as_deref();
    let given = path.map(|path| DomainFile::open(path, vm)).transpose()?;
    let (pictures, names) = session.pictures_with(
        &args.recordings,
        &args.guests.named,
        &PictureOptions {
            parts: false,
            ..PictureOptions::default()
        },
    )?;
    let cases: Vec<Case<'_>> = pictures
        .iter()
        .map(|picture| Case {
            picture,
            facts: Some(session.facts()),
            domain: given.as_ref().map(|one| &one.domain),
        })
        .collect();
    let mut diagnosis = rules::diagnose(&cases);
    if !args.rule.is_empty() {
        diagnosis.keep(&args.rule);
    }
    let mut quality = output::merged(&pictures);
    let patch = match &given {
        Some(definition) => patch(definition, &diagnosis, &mut quality)?,
        None => String::new(),
    };
    let form = given
        .as_ref()
        .map(|one| one.domain.form)
        .unwrap_or_default();
    if form != DefinitionForm::Libvirt {
        // There is no patch that a finding could announce.
        let remedies = diagnosis
            .findings
            .iter_mut()
            .flat_map(|one| &mut one.remedies);
        remedies.for_each(|advice| advice.changes.clear());
    }
    let domains: Vec<_> = given.iter().map(|one| &one.domain).collect();
    let mut remarks = rules::remarks(&domains, Some(session.facts()));
    rules::measure(&mut remarks, &diagnosis);
    if args.patch {
        return print_patch(&patch, form);
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
                text.push_str(&definition::list(&remarks, output::width()));
            }
            text.push_str(&output::qualities(&pictures));
            text
        },
        || {
            let beside = path.map(|_| definition::Definition::of(&remarks, &patch));
            diagnose::document(&diagnosis, beside)
        },
        |_| diagnose::csv(&diagnosis),
    )
}

/// Returns the diff that findings ask for; empty for what no patch can change.
fn patch(definition: &DomainFile, diagnosis: &Diagnosis, quality: &mut Quality) -> Result<String> {
    patches::note(definition, quality);
    patches::changed(definition, &diagnosis.changes(), quality)
}

/// Prints the diff, or says why there is none.
fn print_patch(patch: &str, form: DefinitionForm) -> Result<()> {
    if !patch.is_empty() {
        return output::print_exact(patch);
    }
    let why = match form {
        DefinitionForm::Libvirt => "no finding asks for a change of the definition".to_owned(),
        other => format!(
            "there is no patch for {}: remedies say what to change",
            other.words()
        ),
    };
    writeln!(io::stderr(), "trapline: {why}")?;
    Ok(())
}
