//! What comparisons of two sides and of many have in common.

use std::path::PathBuf;

use analysis::Picture;
use anyhow::Result;
use compare::{Comparison, Options, Side};
use rules::{Case, Diagnosis};
use session::{PictureOptions, Session};

/// What recordings are read and compared with.
pub(crate) struct Ready<'a> {
    pub session: &'a Session,
    pub pictures: PictureOptions,
    pub options: Options,
}

/// Returns what rules find in a side.
pub(crate) fn diagnose(pictures: &[Picture], session: &Session) -> Diagnosis {
    let cases: Vec<Case<'_>> = pictures
        .iter()
        .map(|picture| Case {
            picture,
            facts: Some(session.facts()),
            domain: None,
        })
        .collect();
    rules::diagnose(&cases)
}

/// Two sides that were compared.
pub(crate) struct Compared {
    pub comparison: Comparison,
    pub a: Vec<Picture>,
    pub b: Vec<Picture>,
}

/// Reads two sides, and compares them.
pub(crate) fn compared(
    ready: &Ready<'_>,
    first: &[PathBuf],
    second: &[PathBuf],
    work: Option<&str>,
) -> Result<Compared> {
    let session = ready.session;
    let mut found = session
        .sides(&[first, second], &ready.pictures)?
        .into_iter();
    let (a, b) = (
        found.next().unwrap_or_default(),
        found.next().unwrap_or_default(),
    );
    let (of_a, of_b) = (diagnose(&a, session), diagnose(&b, session));
    let side = |pictures, diagnosis| Side {
        pictures,
        diagnosis,
    };
    let comparison = compare::compare(side(&a, &of_a), side(&b, &of_b), work, ready.options);
    let comparison = comparison.map_err(anyhow::Error::msg)?;
    Ok(Compared { comparison, a, b })
}

/// Returns what recordings are called.
pub(crate) fn names(paths: &[PathBuf]) -> Vec<String> {
    let paths = paths.iter();
    paths.map(|path| path.display().to_string()).collect()
}
