//! Comparisons of whole recordings: made-up ones in which one thing changed, those of the corpus, and printed tables. A
//! file is a module: `cargo test -p compare --test corpus -- noise::` runs the tests of one.

mod contract;
mod each;
mod functions;
mod guest_modes;
mod guests;
mod news;
mod noise;
mod off_cpu;
mod once;
mod printed;
mod results;
mod stacks;
mod tables;

use std::path::{Path, PathBuf};

use analysis::Picture;
use compare::{CompareOptions, ComparedSide, Comparison, EachSide};
use fixtures::json::{list, text};
use render::clock_unit::ClockedDocument;
use render::{ClockUnit, Layout};
use rules::{Case, Diagnosis};
use serde_json::Value;
use session::{Error, HostInput, NamedGuest, PictureOptions, Session, SessionOptions};

/// What is compared with what.
#[derive(Default)]
struct ComparedFiles<'f> {
    a: Vec<&'f Path>,
    /// Where it is empty, the second host of the other list stands on this side.
    b: Vec<&'f Path>,
    /// Guests of the only host on the first side, and of that on the second.
    guests: [Option<&'f Path>; 2],
    work: Option<&'f str>,
    options: CompareOptions,
}

/// A comparison, and the names of both sides.
struct ComparisonOfFiles {
    comparison: Comparison,
    names: [Vec<String>; 2],
    clock: ClockUnit,
}

impl ComparisonOfFiles {
    /// Returns it as a document.
    fn document(&self) -> Value {
        let [a, b] = &self.names;
        let part = render::compare::document(&self.comparison, a, b);
        let clock = self.clock;
        serde_json::to_value(ClockedDocument { clock, part }).expect("a document")
    }

    /// Returns it as text; with `all` what may be noise too.
    fn text(&self, all: bool) -> String {
        let layout = Layout {
            width: 80,
            limit: usize::MAX,
            nanoseconds: self.clock.is_nanoseconds(),
        };
        let [a, b] = &self.names;
        render::compare::text(&self.comparison, a, b, all, layout)
    }
}

fn owned(paths: &[&Path]) -> Vec<PathBuf> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn names(hosts: &[HostInput<'_>]) -> Vec<String> {
    hosts.iter().flat_map(HostInput::names).collect()
}

fn diagnosis(pictures: &[Picture]) -> Diagnosis {
    let cases = pictures.iter().map(|picture| Case {
        picture,
        facts: None,
        domain: None,
    });
    rules::diagnose(&cases.collect::<Vec<Case<'_>>>())
}

fn clock<'p>(pictures: impl IntoIterator<Item = &'p Picture>) -> ClockUnit {
    let mut pictures = pictures.into_iter();
    ClockUnit::of(pictures.all(|one| !one.about.in_ticks))
}

impl ComparedFiles<'_> {
    /// Compares them.
    ///
    /// # Errors
    ///
    /// A sentence, where an input cannot be used or the work is not counted.
    fn compare(&self) -> Result<ComparisonOfFiles, String> {
        let session = Session::open(SessionOptions::default()).expect("it needs nothing");
        let inputs = self.a.len() + self.b.len();
        let hosts = |side: &[&Path], guest: Option<&Path>| -> Result<Vec<HostInput<'_>>, Error> {
            let mut hosts = session.hosts_among(&owned(side), inputs)?;
            let guests = guest.map(|path| NamedGuest {
                path: path.to_owned(),
                vm: None,
            });
            session.add_guests(&mut hosts, guests.as_slice())?;
            Ok(hosts)
        };
        let mut first = hosts(&self.a, self.guests[0]).map_err(|error| error.to_string())?;
        let second = match self.b.is_empty() {
            true => first.split_off(1),
            false => hosts(&self.b, self.guests[1]).map_err(|error| error.to_string())?,
        };
        let pictures = session.sides(&[&first, &second], &PictureOptions::to_compare());
        let pictures = pictures.map_err(|error| error.to_string())?;
        let [a, b] = pictures.as_slice() else {
            panic!("{} sides", pictures.len());
        };
        let found = [diagnosis(a), diagnosis(b)];
        let side = |pictures, diagnosis| ComparedSide {
            pictures,
            diagnosis,
        };
        let (a_side, b_side) = (side(a, &found[0]), side(b, &found[1]));
        Ok(ComparisonOfFiles {
            comparison: compare::compare(a_side, b_side, self.work, self.options)?,
            names: [names(&first), names(&second)],
            clock: clock(a.iter().chain(b)),
        })
    }
}

/// Compares two files.
fn compared(a: &Path, b: &Path) -> ComparisonOfFiles {
    let files = ComparedFiles {
        a: vec![a],
        b: vec![b],
        ..ComparedFiles::default()
    };
    let found = files.compare();
    found.unwrap_or_else(|error| panic!("{}, {}: {error}", a.display(), b.display()))
}

/// Compares two files, and returns the document.
fn document(a: &Path, b: &Path) -> Value {
    compared(a, b).document()
}

/// Compares two groups of files, and returns the document.
fn groups(a: &[PathBuf], b: &[PathBuf]) -> Value {
    let files = ComparedFiles {
        a: a.iter().map(PathBuf::as_path).collect(),
        b: b.iter().map(PathBuf::as_path).collect(),
        ..ComparedFiles::default()
    };
    let found = files.compare();
    found
        .unwrap_or_else(|error| panic!("{a:?}, {b:?}: {error}"))
        .document()
}

/// Compares each of several hosts with the first, and returns the comparison and what the sides are called.
fn compared_each(paths: &[&Path]) -> (EachSide, Vec<Vec<String>>) {
    let session = Session::open(SessionOptions::default()).expect("it needs nothing");
    let hosts = session
        .hosts_among(&owned(paths), paths.len())
        .expect("hosts");
    let sides: Vec<&[HostInput<'_>]> = hosts.iter().map(std::slice::from_ref).collect();
    let pictures = session
        .sides(&sides, &PictureOptions::to_compare())
        .expect("pictures");
    let found: Vec<Diagnosis> = pictures.iter().map(|side| diagnosis(side)).collect();
    let compared: Vec<ComparedSide<'_>> = pictures
        .iter()
        .zip(&found)
        .map(|(pictures, diagnosis)| ComparedSide {
            pictures,
            diagnosis,
        })
        .collect();
    let each = compare::each(&compared, None, CompareOptions::default()).expect("a comparison");
    (each, sides.iter().map(|side| names(side)).collect())
}

/// Returns a comparison of several sides as a document.
fn each_document(paths: &[&Path]) -> Value {
    let (each, names) = compared_each(paths);
    serde_json::to_value(render::compare_each::document(&each, &names, &[])).expect("a document")
}

/// Returns the sentences of what changed, or is in another list of a document.
fn said(document: &Value, list_of: &str) -> Vec<String> {
    let changes = list(&document[list_of]).iter();
    changes.map(|change| text(&change["text"])).collect()
}

/// Returns the notes of a document, a line each.
fn notes(document: &Value) -> String {
    let notes = list(&document["notes"]).iter();
    notes.map(text).collect::<Vec<_>>().join("\n")
}

/// Returns the change that is called so, of a list of them.
fn find<'a>(changes: &'a Value, what: &str) -> &'a Value {
    let mut all = list(changes).iter();
    let found = all.find(|change| change["what"] == what);
    found.unwrap_or_else(|| panic!("no change of {what} in {changes:#}"))
}
