//! What rules find in whole recordings: those made by hand, those of the corpus, and what is left of them where events
//! are missing. A file is a module: `cargo test -p rules --test corpus -- by_hand::` runs the tests of one.

mod accounts;
mod by_hand;
mod cases;
mod cost;
mod expected;
mod machines;
mod thinned;

use std::path::PathBuf;

use rules::{Case, Diagnosis};
use session::{DomainFile, Error, PictureOptions, Session, SessionOptions};

/// What stands beside recordings.
#[derive(Default)]
struct CaseFiles {
    facts: Option<PathBuf>,
    domain: Option<PathBuf>,
    kallsyms: Option<PathBuf>,
    guest_kallsyms: Option<PathBuf>,
}

/// What rules find in files.
struct DiagnosedFiles {
    diagnosis: Diagnosis,
    /// The diff of the guest's definition that findings ask for.
    patch: String,
}

impl DiagnosedFiles {
    /// Returns the rules that found something, the heaviest first.
    fn ids(&self) -> Vec<&'static str> {
        let findings = self.diagnosis.findings.iter();
        findings.map(|finding| finding.rule.id).collect()
    }
}

/// Diagnoses files together.
fn diagnosed(files: &[PathBuf], beside: CaseFiles) -> Result<DiagnosedFiles, Error> {
    let session = Session::open(SessionOptions {
        facts: beside.facts.into_iter().collect(),
        kallsyms: beside.kallsyms,
        guest_kallsyms: beside.guest_kallsyms,
        empty: true,
        ..SessionOptions::default()
    })?;
    let definition = beside
        .domain
        .as_deref()
        .map(|path| DomainFile::open(path, None))
        .transpose()?;
    let pictures = session.pictures(files, &PictureOptions::default())?;
    let cases = pictures.iter().map(|picture| Case {
        picture,
        facts: Some(session.facts()),
        domain: definition.as_ref().map(|one| &one.domain),
    });
    let diagnosis = rules::diagnose(&cases.collect::<Vec<Case<'_>>>());
    let changes = diagnosis.changes();
    let patch = definition.filter(|_| !changes.is_empty()).map(|one| {
        let (after, _) = domain::apply(&one.text, &changes).expect("a definition to be changed");
        domain::diff(&one.name, &one.text, &after)
    });
    Ok(DiagnosedFiles {
        diagnosis,
        patch: patch.unwrap_or_default(),
    })
}
