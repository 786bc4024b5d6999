//! What comparisons of two sides and of many have in common.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use analysis::Picture;
use anyhow::Result;
use compare::{CompareOptions, ComparedSide, Comparison};
use domain::Domain;
use rules::{Case, Diagnosis};
use session::{HostInput, PictureOptions, Session};

use crate::commands::compare::beside::BothSides;

/// What recordings are read and compared with.
pub(crate) struct Ready<'a> {
    pub session: &'a Session,
    pub pictures: PictureOptions,
    pub options: CompareOptions,
}

/// Returns what rules find in a side.
pub(crate) fn diagnose(
    pictures: &[Picture],
    session: &Session,
    domain: Option<&Domain>,
) -> Diagnosis {
    let cases: Vec<Case<'_>> = pictures
        .iter()
        .map(|picture| Case {
            picture,
            facts: Some(session.facts()),
            domain,
        })
        .collect();
    rules::diagnose(&cases)
}

/// Two sides that were compared.
pub(crate) struct ComparedSides {
    pub comparison: Comparison,
    pub a: Vec<Picture>,
    pub b: Vec<Picture>,
    /// What was read of each side.
    pub names: [Vec<String>; 2],
}

/// Reads two sides, and compares them.
pub(crate) fn compared(
    ready: &Ready<'_>,
    first: &[HostInput<'_>],
    second: &[HostInput<'_>],
    work: Option<&str>,
) -> Result<ComparedSides> {
    compared_beside(ready, None, &BothSides::default(), [first, second], work)
}

/// Reads two sides that have something beside them each, and compares them. `other` is what the second is read with,
/// if that is not what the first is.
pub(crate) fn compared_beside(
    ready: &Ready<'_>,
    other: Option<&Session>,
    beside: &BothSides,
    [first, second]: [&[HostInput<'_>]; 2],
    work: Option<&str>,
) -> Result<ComparedSides> {
    let session = ready.session;
    let mut found = match other {
        None => session.sides(&[first, second], &ready.pictures)?,
        Some(other) => {
            let mut both = session.sides(&[first], &ready.pictures)?;
            both.append(&mut other.sides(&[second], &ready.pictures)?);
            both
        }
    }
    .into_iter();
    let (a, b) = (
        found.next().unwrap_or_default(),
        found.next().unwrap_or_default(),
    );
    let [domain_a, domain_b] = beside
        .domains
        .each_ref()
        .map(|one| Some(&one.as_ref()?.domain));
    let of_a = diagnose(&a, session, domain_a);
    let of_b = diagnose(&b, other.unwrap_or(session), domain_b);
    let side = |pictures, diagnosis| ComparedSide {
        pictures,
        diagnosis,
    };
    let comparison = compare::compare_scored(
        side(&a, &of_a),
        side(&b, &of_b),
        beside.scores.each_ref().map(Vec::as_slice),
        work,
        ready.options,
    );
    let mut comparison = comparison.map_err(anyhow::Error::msg)?;
    if let (Some(a), Some(b)) = (domain_a, domain_b) {
        let apart = compare::definitions(a, b);
        comparison.differs.splice(0..0, apart);
    }
    let notes = beside.domains.iter().flatten().flat_map(|one| &one.notes);
    comparison.notes.extend(notes.cloned());
    let [given_a, given_b] = [first, second].map(given);
    comparison
        .notes
        .splice(0..0, on_both_sides(&given_a, &given_b));
    Ok(ComparedSides {
        comparison,
        a,
        b,
        names: [first, second].map(names),
    })
}

/// Says which files are on both sides: those have nothing to differ in.
fn on_both_sides(first: &[&Path], second: &[&Path]) -> Vec<String> {
    let has = |side: &[&Path], one: &Path| side.iter().any(|other| is_same(one, other));
    let both: Vec<&&Path> = second.iter().filter(|one| has(first, one)).collect();
    if both.len() == second.len() && first.iter().all(|one| has(second, one)) {
        return vec![match second {
            [_] => "A and B are the same file: nothing can differ.".to_owned(),
            _ => "A and B are the same files: nothing can differ.".to_owned(),
        }];
    }
    let both = both.into_iter();
    both.map(|one| format!("{} is on both sides.", one.display()))
        .collect()
}

/// Returns whether two paths lead to one file, or to two that hold the same. What is no file, or cannot be read, is not
/// looked at.
fn is_same(one: &Path, other: &Path) -> bool {
    let found = |path: &Path| path.canonicalize().ok().zip(path.metadata().ok());
    let (Some((one, about_one)), Some((other, about_other))) = (found(one), found(other)) else {
        return false;
    };
    if !about_one.is_file() || !about_other.is_file() || about_one.len() != about_other.len() {
        return false;
    }
    one == other || has_same(&one, &other).unwrap_or(false)
}

/// Returns whether two files hold the same.
fn has_same(one: &Path, other: &Path) -> io::Result<bool> {
    let open = |path: &Path| File::open(path).map(|file| BufReader::with_capacity(1 << 20, file));
    let (mut one, mut other) = (open(one)?, open(other)?);
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let len = left.len().min(right.len());
        if left[..len] != right[..len] || len == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(len);
        other.consume(len);
    }
}

/// Returns the paths of a side as they were given.
fn given<'h>(hosts: &'h [HostInput<'_>]) -> Vec<&'h Path> {
    hosts.iter().flat_map(HostInput::given).collect()
}

/// Returns what the recordings of a side are called.
pub(crate) fn names(hosts: &[HostInput<'_>]) -> Vec<String> {
    hosts.iter().flat_map(HostInput::names).collect()
}
