//! `trapline diagnose`: why it is slow, and what to change.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use domain::Domain;
use event::Quality;
use render::{diagnose, json};
use rules::{Case, Diagnosis};

use crate::args::{DiagnoseArgs, Format};
use crate::commands::VERSION;
use crate::picture::{Camera, paths_of_rules};
use crate::{input, output};

/// Definitions are not read beyond this many bytes; real ones have some ten thousand.
const MAX_DOMAIN: u64 = 16 << 20;

/// Runs the command.
pub(crate) fn run(args: &DiagnoseArgs) -> Result<()> {
    one_standard_input(args)?;
    let definition = args.domain.as_deref().map(Definition::open).transpose()?;
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let devices = input::Devices::open(args.mtree.as_deref(), &facts)?;
    let kallsyms = input::kallsyms(args.kallsyms.as_deref())?;
    let camera = Camera {
        kallsyms: kallsyms.as_ref(),
        common: &args.common,
        lender: &lender,
        facts: &facts,
        devices: &devices,
        paths: paths_of_rules(),
        comparing: false,
    };
    let pictures = camera.take(&args.recordings)?;
    let cases: Vec<Case<'_>> = pictures
        .iter()
        .map(|picture| Case {
            picture,
            facts: Some(facts.all()),
            domain: definition.as_ref().map(|one| &one.domain),
        })
        .collect();
    let mut diagnosis = rules::diagnose(&cases);
    if !args.rule.is_empty() {
        keep(&mut diagnosis, &args.rule);
    }
    let mut quality = Quality::default();
    for picture in &pictures {
        quality.merge(picture.quality.clone());
    }
    let patch = match &definition {
        Some(definition) => definition.patch(&diagnosis, &mut quality)?,
        None => String::new(),
    };
    let host = facts.all().host.as_ref();
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
    let names: Vec<String> = args
        .recordings
        .iter()
        .map(|path| input::name(path))
        .collect();
    match args.common.format {
        Format::Table => {
            let mut text = diagnose::text(&diagnosis, output::width());
            if !remarks.is_empty() {
                text.push('\n');
                text.push_str(&diagnose::remarks(&remarks, output::width()));
            }
            for picture in &pictures {
                let names = picture.names.join(", ");
                text.push('\n');
                text.push_str(&render::quality::lines(
                    &names,
                    &picture.quality,
                    output::width(),
                ));
            }
            output::print(&text)
        }
        Format::Json => {
            let mut document = json::envelope(VERSION, "diagnose", &names, &quality);
            diagnose::json(&mut document, &diagnosis);
            if definition.is_some() {
                document.insert("domain_remarks".to_owned(), remarks.into());
                document.insert("patch".to_owned(), patch.into());
            }
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&diagnose::csv(&diagnosis)),
    }
}

/// Refuses standard input in two places: the second would find it empty.
fn one_standard_input(args: &DiagnoseArgs) -> Result<()> {
    let options = [&args.domain, &args.mtree, &args.kallsyms];
    let files = args.recordings.iter().chain(&args.common.facts);
    let all = files.chain(options.into_iter().flatten());
    if all.filter(|path| path.as_os_str() == "-").count() > 1 {
        bail!("standard input (-) is named more than once, and can be read once");
    }
    Ok(())
}

/// Leaves only what some rules say.
fn keep(diagnosis: &mut Diagnosis, ids: &[String]) {
    let wanted = |id: &str| ids.iter().any(|one| one == id);
    diagnosis.findings.retain(|finding| wanted(finding.rule.id));
    diagnosis.lacks.retain(|lack| wanted(lack.rule.id));
    diagnosis.clear.retain(|rule| wanted(rule.id));
}

/// A guest's definition.
struct Definition {
    name: String,
    text: String,
    domain: Domain,
    notes: Vec<String>,
}

impl Definition {
    fn open(path: &Path) -> Result<Definition> {
        let mut bytes = Vec::new();
        let name = if path.as_os_str() == "-" {
            let stdin = io::stdin().lock();
            stdin.take(MAX_DOMAIN).read_to_end(&mut bytes)?;
            "domain.xml".to_owned()
        } else {
            let read =
                File::open(path).and_then(|file| file.take(MAX_DOMAIN).read_to_end(&mut bytes));
            if let Err(error) = read {
                bail!(
                    "--domain {}: {}; expected a domain's XML, as virsh dumpxml prints it",
                    path.display(),
                    input::why(&error)
                );
            }
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().into_owned()
        };
        let what = || format!("--domain {}", path.display());
        let text = domain::decode(&bytes).with_context(what)?;
        let (domain, notes) = domain::parse(text).with_context(what)?;
        let notes = notes
            .iter()
            .map(|note| format!("{}: {note}", path.display()));
        Ok(Definition {
            notes: notes.collect(),
            text: text.to_owned(),
            name,
            domain,
        })
    }

    /// Returns the diff that findings ask for.
    fn patch(&self, diagnosis: &Diagnosis, quality: &mut Quality) -> Result<String> {
        for note in &self.notes {
            quality.warn(note.clone());
        }
        let changes = diagnosis.changes();
        if changes.is_empty() {
            return Ok(String::new());
        }
        let (after, notes) = domain::apply(&self.text, &changes)
            .with_context(|| format!("{}: cannot be changed", self.name))?;
        for note in notes {
            quality.warn(format!("{}: {note}", self.name));
        }
        Ok(domain::diff(&self.name, &self.text, &after))
    }
}
