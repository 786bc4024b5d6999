//! What comparisons of two sides and of many have in common.

use analysis::Picture;
use compare::Options;
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
