//! `trapline diagnose --domain FILE` without a recording: what the definition says by itself.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use domain::{DefinitionForm, Domain};
use event::Quality;
use render::{ClockUnit, definition, diagnose};
use rules::{DefinitionRemark, Diagnosis};
use session::{DomainFile, Session};

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

use super::args::DiagnoseArgs;
use super::patches;

/// Runs the command where no recording was given.
pub(super) fn run(args: &DiagnoseArgs) -> Result<()> {
    refuse(args)?;
    let beside = AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        recordings: Some(0),
        ..AccompanyingFiles::default()
    };
    let inputs: Vec<&Path> = args.domain.iter().map(PathBuf::as_path).collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let names = inputs.iter().map(|path| path.display().to_string());
    of_definitions(
        args,
        &session,
        &definitions(args)?,
        &names.collect::<Vec<_>>(),
    )
}

/// Says what definitions say by themselves.
pub(super) fn of_definitions(
    args: &DiagnoseArgs,
    session: &Session,
    definitions: &[DomainFile],
    names: &[String],
) -> Result<()> {
    let domains: Vec<&Domain> = definitions.iter().map(|one| &one.domain).collect();
    let remarks = rules::remarks(&domains, Some(session.facts()));
    let mut quality = Quality::default();
    let mut patch = String::new();
    for one in definitions {
        patches::note(one, &mut quality);
        let changes = rules::remarked_changes(&remarks, &one.domain);
        patch.push_str(&patches::changed(one, &changes, &mut quality)?);
    }
    if args.patch {
        return print_patch(definitions, &remarks, &patch);
    }
    let mut diagnosis = Diagnosis::of_nothing();
    if !args.rule.is_empty() {
        diagnosis.keep(&args.rule);
    }
    let answer = Answer {
        format: args.common.format,
        command: "diagnose",
        inputs: names,
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || text(&domains, &remarks, &quality),
        || {
            diagnose::document(
                &diagnosis,
                Some(definition::Definition::of(&remarks, &patch)),
                super::tickets(session),
            )
        },
        |_| definition::csv(&remarks),
    )
}

/// Prints what definitions say by themselves, as text.
pub(super) fn print_text(definitions: &[DomainFile], session: &Session) -> Result<()> {
    let domains: Vec<&Domain> = definitions.iter().map(|one| &one.domain).collect();
    let remarks = rules::remarks(&domains, Some(session.facts()));
    let mut quality = Quality::default();
    for one in definitions {
        patches::note(one, &mut quality);
    }
    output::table(&text(&domains, &remarks, &quality))
}

fn text(domains: &[&Domain], remarks: &[DefinitionRemark], quality: &Quality) -> String {
    let width = output::width();
    definition::alone(domains, remarks, width) + &render::quality::doubts(quality, width)
}

/// Refuses what is about a recording.
fn refuse(args: &DiagnoseArgs) -> Result<()> {
    let filter = &args.common.filter;
    let given = [
        ("--pid", filter.pid.is_some()),
        ("--vcpu", filter.vcpu.is_some()),
        ("--cpu", filter.cpu.is_some()),
        ("--time", filter.time.is_some()),
        ("--guest", args.guests.paths().next().is_some()),
        ("--kallsyms", args.kallsyms.is_some()),
        ("--guest-kallsyms", args.guest_kallsyms.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Usage::error(format!(
            "{option} is about a recording, and none was given: name one beside --domain, or leave {option} out"
        ))),
        None => Ok(()),
    }
}

/// Reads the definitions, of which `--vm` leaves one.
fn definitions(args: &DiagnoseArgs) -> Result<Vec<DomainFile>> {
    let mut all = Vec::new();
    for path in &args.domain {
        all.extend(DomainFile::open_all(path)?);
    }
    let Some(vm) = args.common.filter.vm.as_deref() else {
        return Ok(all);
    };
    let names: Vec<String> = all.iter().map(|one| one.domain.name.clone()).collect();
    all.retain(|one| one.domain.name == vm || one.domain.uuid.as_deref() == Some(vm));
    if all.is_empty() {
        anyhow::bail!(
            "--vm {vm}: no definition is of this VM; there are {}",
            names.join(", ")
        );
    }
    Ok(all)
}

/// Prints the diff, or says why there is none.
fn print_patch(
    definitions: &[DomainFile],
    remarks: &[DefinitionRemark],
    patch: &str,
) -> Result<()> {
    if !patch.is_empty() {
        return output::print_exact(patch);
    }
    let other = definitions
        .iter()
        .find(|one| one.domain.form != DefinitionForm::Libvirt);
    let why = match other {
        Some(one) if !remarks.is_empty() => format!(
            "{} is {}, for which there is no patch: without --patch each remark says what to change",
            one.name,
            one.domain.form.words()
        ),
        _ => "no remark asks for a change that the guest starts with as it is".to_owned(),
    };
    writeln!(io::stderr(), "trapline: {why}")?;
    Ok(())
}
