//! What a page is made of.

use analysis::{Origin, PathExamples, Picture, ProfileReport};
use render::Layout;
use render::info::{GuestRow, Head};
use rules::{Diagnosis, Evidence};

use crate::Invocation;

/// Rows of a table in a page: what is beyond is counted, and the command prints it.
pub(crate) const ROWS: usize = 300;

/// Stacks that flame graphs show.
#[derive(Debug, Clone)]
pub struct Flame<'r> {
    /// What was collected.
    pub report: &'r ProfileReport,
    /// What is left out or not certain, in sentences.
    pub notes: Vec<String>,
    /// The recordings of guests whose own stacks stand in the place of what the host knows of them.
    pub guests: &'r [String],
}

/// All that was found of one recording, or of tables that a tool printed.
#[derive(Debug, Clone)]
pub struct Recording<'r> {
    /// What it is called.
    pub name: &'r str,
    /// What it says of itself.
    pub head: &'r Head,
    /// What was found.
    pub picture: &'r Picture,
    /// What causes were found.
    pub diagnosis: &'r Diagnosis,
    /// How the recordings of its guests join it.
    pub guests: &'r [GuestRow],
    /// Stacks, where it has any.
    pub flames: Vec<Flame<'r>>,
    /// The data of its timeline, as JSON.
    pub timeline: Option<String>,
    /// Instances of paths to look at.
    pub examples: &'r [PathExamples],
    /// How it was given to trapline.
    pub invocation: Invocation,
    /// The sentence that counts most.
    pub headline: String,
}

impl Recording<'_> {
    /// Returns whether it is a table that a tool printed.
    pub(crate) fn is_printed(&self) -> bool {
        self.picture.origin == Origin::Printed
    }

    /// Returns whether filters left out some of its events.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.invocation.filters().is_empty()
    }

    /// Returns whether a finding rests on rows of a table of exits.
    pub(crate) fn rests_on_exits(&self, table: &str) -> bool {
        let mut rows = self.evidence().flat_map(|one| &one.rows);
        rows.any(|row| row.table == table)
    }

    /// Returns whether a finding rests on instances of a path.
    pub(crate) fn rests_on_path(&self, path: &str) -> bool {
        let mut instances = self.evidence().flat_map(|one| &one.instances);
        instances.any(|one| one.path == path)
    }

    /// Returns the evidence of all findings.
    pub(crate) fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        let findings = self.diagnosis.findings.iter();
        findings.flat_map(|finding| &finding.evidence)
    }

    /// Returns how its tables are laid out.
    pub(crate) fn layout(&self) -> Layout {
        Layout {
            width: 100,
            limit: ROWS,
            nanoseconds: self.head.nanoseconds,
        }
    }
}
