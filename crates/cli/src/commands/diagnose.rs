//! `trapline diagnose`: why it is slow, and what to change.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use doubts::DoubtKind;
use event::Quality;
use render::{ClockUnit, diagnose};
use rules::{Case, Diagnosis};
use session::{DomainFile, PictureOptions};

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::values::NameParser;
use crate::options::{Common, GuestOptions};
use crate::output;

/// `trapline diagnose`.
#[derive(Debug, Args)]
#[command(after_help = DIAGNOSE_HELP)]
pub(crate) struct DiagnoseArgs {
    /// Recordings of one situation, or the printed output of perf kvm stat report or perf sched latency; - is
    /// standard input.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,

    /// Read the guest's definition, the output of 'virsh dumpxml', and check it too.
    #[arg(long, value_name = "FILE")]
    pub domain: Option<PathBuf>,

    /// Print only the change of the definition that the findings ask for, as a unified diff.
    #[arg(long, requires = "domain")]
    pub patch: bool,

    /// Name kernel functions with FILE, a copy of the host's /proc/kallsyms made by root, where the recording has no
    /// symbols itself.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// Name functions of guests' kernels in samples with FILE, a copy of a guest's /proc/kallsyms made by root.
    #[arg(long, value_name = "FILE")]
    pub guest_kallsyms: Option<PathBuf>,

    /// Only check this rule. May be repeated.
    #[arg(long, value_name = "ID", hide_possible_values = true, value_parser = NameParser::rule())]
    pub rule: Vec<String>,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub guests: GuestOptions,

    #[command(flatten)]
    pub common: Common,
}

const DIAGNOSE_HELP: &str = "Findings are ranked by the time they cost. Below them are the rules that could not be \
checked, with the events that they need, and the rules that found nothing. 'trapline rules ID' explains a rule.

Record with 'trace-cmd record -e kvm -e sched -e irq' or with 'perf record -a -e \"kvm:*\" -e \"sched:*\"', so that \
most rules can be checked, and add the host's settings: 'trapline facts --format json > facts.json'.

Examples:
  trapline diagnose perf.data.guest
  trapline diagnose --facts facts.json --domain dom.xml trace.dat
  trapline diagnose host.dat guest-a.dat        and which of the guest's tasks it was
  trapline diagnose vmexit.txt ioport.txt       two tables that perf printed
  trapline diagnose --domain w.xml --patch vmexit.txt ioport.txt | patch w.xml
  virsh dumpxml web | trapline diagnose --domain - --format json trace.dat";

/// Runs the command.
pub(crate) fn run(args: &DiagnoseArgs) -> Result<()> {
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
    let definition = args.domain.as_deref().map(DomainFile::open).transpose()?;
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
            let written = writeln!(
                io::stderr(),
                "trapline: no finding asks for a change of the definition"
            );
            return Ok(written?);
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
            let beside = definition.as_ref().map(|_| diagnose::Definition {
                domain_remarks: &remarks,
                patch: &patch,
            });
            diagnose::document(&diagnosis, beside)
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
    diagnosis.not_of_machine.retain(|rule| wanted(rule.id));
    for lack in &mut diagnosis.unchecked {
        // Who asks for it by its name wants to know, however little it is.
        lack.could_explain = None;
    }
}

/// Returns the diff that findings ask for.
fn patch(definition: &DomainFile, diagnosis: &Diagnosis, quality: &mut Quality) -> Result<String> {
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
