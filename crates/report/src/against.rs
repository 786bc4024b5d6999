//! The comparison with another recording.

use std::fmt::Write;

use compare::{Comparison, SideChange};
use render::compare as table;
use render::compare_sides::SideLabels;
use render::html::{Frame, escape};

use crate::out::PageWriter;
use crate::{Invocation, Recording};

/// What the recordings of a page were compared with, and what came of it.
#[derive(Debug, Clone)]
pub struct ReportComparison<'r> {
    /// What changed.
    pub comparison: &'r Comparison,
    /// The recordings that these are compared with: side A.
    pub a: &'r [String],
    /// Those of the page: side B.
    pub b: &'r [String],
    /// How those of side A were given to trapline.
    pub invocations: Vec<Invocation>,
}

impl ReportComparison<'_> {
    /// Returns what the sides are called.
    pub(crate) fn labels(&self) -> SideLabels {
        SideLabels::of(self.a, self.b)
    }
}

/// Writes the section.
pub(crate) fn section(
    recordings: &[Recording<'_>],
    against: Option<&ReportComparison<'_>>,
    out: &mut PageWriter,
) {
    let (Some(against), Some(first)) = (against, recordings.first()) else {
        out.nothing(
            "There is nothing to compare with. 'trapline report REC -o FILE --against OTHER' puts here what changed \
             from OTHER to REC.",
        );
        return;
    };
    let comparison = against.comparison;
    let labels = against.labels();
    out.markup("<dl class=\"facts\">\n");
    for (name, names) in [("A", against.a), ("B", against.b)] {
        let _ = writeln!(
            out.html,
            "<dt>{name}</dt><dd>{}</dd>",
            escape(&names.join(", "))
        );
    }
    out.markup("</dl>\n");
    out.paragraph("B is this page's recording; A is what it is compared with.");
    let differs = comparison.differs.iter();
    let differs = differs.map(|one| one.text.as_str());
    out.list(differs.chain(comparison.notes.iter().map(String::as_str)));
    if let Some(words) = table::no_changes(comparison) {
        out.paragraph(&words);
    }
    let mut given = Vec::new();
    for recording in recordings {
        let command = recording.invocation.command("", "");
        if !given.iter().any(|(known, _)| *known == command) {
            given.push((command, &recording.invocation));
        }
    }
    let given: Vec<&Invocation> = given.into_iter().map(|(_, one)| one).collect();
    let command = first.invocation.compared(&against.invocations, &given);
    // What is the same on both sides is no change.
    let unreported = comparison.unreported.iter();
    let unreported: Vec<SideChange> = unreported.filter(|one| !one.is_none()).cloned().collect();
    for (name, caption, changes) in [
        (
            "compare-changes",
            "what changed, most time first",
            &comparison.changes,
        ),
        (
            "compare-likely",
            "what is likely, and not certain",
            &comparison.likely,
        ),
        (
            "compare-once",
            "what happened once, which cannot be distinguished from chance",
            &comparison.once,
        ),
        (
            "compare-noise",
            "what is small, or may be noise",
            &unreported,
        ),
    ] {
        changed(name, caption, changes, (&command, &labels), first, out);
    }
    out.command("what changed from A to B", &command);
}

fn changed(
    name: &str,
    caption: &str,
    changes: &[SideChange],
    (command, labels): (&str, &SideLabels),
    first: &Recording<'_>,
    out: &mut PageWriter,
) {
    if changes.is_empty() {
        return;
    }
    let html = table::html(
        changes,
        labels,
        &Frame {
            name,
            command,
            caption,
            rows: false,
            events: None,
            layout: first.layout(),
        },
    );
    // What may be noise is there for who asks.
    if name == "compare-noise" {
        let count = words::counted(changes.len(), "change", "changes");
        let _ = writeln!(
            out.html,
            "<details><summary>{count}: {caption}</summary>\n{html}</details>"
        );
        return;
    }
    out.markup(&html);
}
