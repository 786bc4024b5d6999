//! `trapline diagnose`: why it is slow, and what to change.

mod alone;
pub(crate) mod args;
mod patches;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use analysis::Picture;
use anyhow::Result;
use domain::{DefinitionForm, Domain};
use event::Quality;
use render::diagnose::CauseList;
use render::tickets::{TicketDocument, list};
use render::{ClockUnit, definition, diagnose};
use rules::{Case, Diagnosis};
use session::{DomainFile, PictureOptions, Session, TicketFile};

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

use args::DiagnoseArgs;

/// Runs the command.
pub(crate) fn run(args: &DiagnoseArgs) -> Result<()> {
    // A definition alone is an input, too.
    if args.recordings.is_empty() && !args.domain.is_empty() {
        return alone::run(args);
    }
    let args = &DiagnoseArgs {
        recordings: args.recordings.or_newest()?,
        ..args.clone()
    };
    let path = one_domain(args)?;
    let session = open(args)?;
    let given = definitions(args, &session, path)?;
    let (pictures, names) = session.pictures_with(
        &args.recordings,
        &args.guests.named,
        &PictureOptions {
            parts: false,
            ..PictureOptions::default()
        },
    )?;
    if pictures.is_empty() && !given.is_empty() {
        return alone::of_definitions(args, &session, &given, &names);
    }
    let cases: Vec<Case<'_>> = pictures
        .iter()
        .map(|picture| Case {
            picture,
            facts: Some(session.facts()),
            domain: match (path, given.as_slice()) {
                (Some(_), [one]) => Some(&one.domain),
                _ => session.domain_of(picture),
            },
        })
        .collect();
    let mut diagnosis = rules::diagnose(&cases);
    if !args.rule.is_empty() {
        diagnosis.keep(&args.rule);
    }
    let mut quality = output::merged(&pictures);
    let mut patch = String::new();
    for definition in &given {
        let own = match path {
            Some(_) => diagnosis.clone(),
            None => found_of(&definition.domain, &diagnosis, &pictures, &session),
        };
        patch.push_str(&patch_of(definition, &own, &mut quality)?);
    }
    let other = given
        .iter()
        .find(|one| one.domain.form != DefinitionForm::Libvirt);
    let form = other.map(|one| one.domain.form).unwrap_or_default();
    if other.is_some() {
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
            let mut text = lists(&session);
            text.push_str(&diagnose::text(&diagnosis, causes(args), output::width()));
            if !remarks.is_empty() {
                text.push('\n');
                text.push_str(&definition::list(&remarks, output::width()));
            }
            text.push_str(&output::qualities(&pictures));
            text
        },
        || {
            let beside = domains.first();
            let beside = beside.map(|_| definition::Definition::of(&remarks, &patch));
            diagnose::document(&diagnosis, beside, tickets(&session))
        },
        |_| diagnose::csv(&diagnosis),
    )
}

/// Returns how causes that are no findings are listed: who asks for a rule wants to know of that.
fn causes(args: &DiagnoseArgs) -> CauseList {
    match args.full || !args.rule.is_empty() {
        true => CauseList::Named,
        false => CauseList::Counted,
    }
}

/// Opens what stands beside the recordings, and the recordings that may be tickets.
fn open(args: &DiagnoseArgs) -> Result<Session> {
    let beside = AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        empty: true,
        recordings: Some(args.recordings.len()),
        tickets: true,
        ..AccompanyingFiles::default()
    };
    let inputs = args.recordings.iter().chain(&args.domain);
    let inputs = inputs.map(PathBuf::as_path).chain(args.guests.paths());
    let inputs: Vec<&Path> = inputs.collect();
    Ok(opening::session(&args.common, &beside, &inputs)?)
}

/// Leaves what was found of one guest: of several definitions in the inputs each is changed by what is of its own.
fn found_of(
    domain: &Domain,
    diagnosis: &Diagnosis,
    pictures: &[Picture],
    session: &Session,
) -> Diagnosis {
    let own = |picture: &&Picture| session.domain_of(picture) == Some(domain);
    let of_guest: Vec<&Picture> = pictures.iter().filter(own).collect();
    let mut found = diagnosis.clone();
    found.findings.retain(|one| {
        let names = of_guest.iter().flat_map(|picture| &picture.names);
        // A finding of one picture alone does not name it.
        match one.inputs.is_empty() {
            true => !of_guest.is_empty(),
            false => names.into_iter().any(|name| one.inputs.contains(name)),
        }
    });
    found
}

/// Returns the file of the definition that is given with recordings.
fn one_domain(args: &DiagnoseArgs) -> Result<Option<&PathBuf>> {
    match args.domain.as_slice() {
        [] => Ok(None),
        [path] => Ok(Some(path)),
        _ => Err(Usage::error(
            "with a recording --domain is given once: it is of one guest",
        )),
    }
}

/// Returns the definition that is given, else those that stand in the inputs.
fn definitions(
    args: &DiagnoseArgs,
    session: &Session,
    path: Option<&PathBuf>,
) -> Result<Vec<DomainFile>> {
    let vm = args.common.filter.vm.as_deref();
    let own = session.tickets().iter().flat_map(TicketFile::definitions);
    let given: Vec<DomainFile> = match path {
        Some(path) => vec![DomainFile::open(path, vm)?],
        None => own.cloned().collect(),
    };
    if args.patch && given.is_empty() {
        return Err(Usage::error(
            "--patch changes a definition of a guest, and there is none: name its file with --domain",
        ));
    }
    Ok(given)
}

/// Prints what definitions say by themselves.
pub(crate) fn print_definitions(definitions: &[DomainFile], session: &Session) -> Result<()> {
    alone::print_text(definitions, session)
}

/// Returns the inputs in which several things stand, as documents have them.
fn tickets(session: &Session) -> Vec<TicketDocument<'_>> {
    let files = session
        .tickets()
        .iter()
        .filter(|one| one.ticket().parts.len() > 1);
    files
        .map(|one| TicketDocument::of(one.name(), one.ticket()))
        .collect()
}

/// Lists the parts of the inputs in which several things stand.
fn lists(session: &Session) -> String {
    let files = session
        .tickets()
        .iter()
        .filter(|one| one.ticket().parts.len() > 1);
    files
        .map(|one| list(one.name(), one.ticket(), output::width()) + "\n")
        .collect()
}

/// Returns the diff that findings ask for; empty for what no patch can change.
fn patch_of(
    definition: &DomainFile,
    diagnosis: &Diagnosis,
    quality: &mut Quality,
) -> Result<String> {
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
