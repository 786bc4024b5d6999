//! What a number of a table is made of.

use std::fmt::Write;

use rules::Finding;
use serde::Serialize;
use serde_json::Value;

use crate::quality::wrap;
use crate::table::Unit::{Nanoseconds, Nested, Number, Text};
use crate::table::{CsvRows, Table};
use crate::{ClockUnit, Layout, shape};

/// A number of a table, and what it counts.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedCell {
    /// The command that prints it.
    pub of: &'static str,
    /// The row, as the command calls it.
    pub row: String,
    /// The column, in the same way.
    pub column: String,
    /// What the command prints, where that is a time.
    pub value_ns: Option<u64>,
    /// What the command prints, where that is neither a time nor how many things there are.
    pub amount: Option<u64>,
    /// What that is an amount of: `bytes`, `cycles`.
    pub unit: Option<&'static str>,
    /// What one and several of the things that it counts are called.
    #[serde(skip)]
    pub nouns: (&'static str, &'static str),
    /// How many things it counts.
    pub count: u64,
    /// Their time together, in the recording's unit.
    pub total_ns: u64,
    /// Things that the table has counted, and that have no events of their own here.
    pub without_events: u64,
    /// What is counted, and between which events it is timed.
    pub rule: Vec<String>,
    /// The command of another tool that counts the same.
    pub elsewhere: Option<String>,
}

/// The fields of a document. What is counted comes last, while it is found.
#[derive(Debug, Serialize)]
pub struct ExplainDocument<'a> {
    explained: &'a ExplainedCell,
    parts: Value,
}

shape!(ExplainedCell {
    of,
    row,
    column,
    value_ns,
    amount,
    unit,
    count,
    total_ns,
    without_events,
    rule,
    elsewhere
});
shape!(ExplainDocument<'static> { explained, parts: parts().shape().list() });

impl ExplainedCell {
    /// Returns the lines above the events; each begins with `#`, as no event does.
    pub fn text(&self, layout: Layout) -> String {
        let mut out = String::new();
        let things = words::counted(self.count, self.nouns.0, self.nouns.1);
        let value = match (self.value_ns, self.amount) {
            (Some(ns), _) => format!("{}, of {things}", layout.time(ns)),
            (None, Some(amount)) => {
                format!("{amount} {}, of {things}", self.unit.unwrap_or_default())
            }
            (None, None) => things,
        };
        let time = match self.total_ns {
            0 => String::new(),
            ns if self.value_ns == Some(ns) => String::new(),
            ns => format!(", {} together", layout.time(ns)),
        };
        let head = format!("{} {}, {}: {value}{time}", self.of, self.row, self.column);
        remark(&mut out, &head, layout.width);
        for sentence in &self.rule {
            remark(&mut out, sentence, layout.width);
        }
        if self.without_events > 0 {
            let text = format!(
                "{} more in the table have no events here.",
                words::counted(self.without_events, "is", "are")
            );
            remark(&mut out, &text, layout.width);
        }
        match &self.elsewhere {
            Some(command) => {
                let _ = writeln!(out, "# the same number: {}", crate::clean(command));
            }
            None => out.push_str("# No other tool is known to print this number.\n"),
        }
        out
    }
}

/// Appends text of which each line begins with `#`.
fn remark(out: &mut String, text: &str, width: usize) {
    let mut lines = String::new();
    wrap(&mut lines, "", text, width.saturating_sub(2));
    for line in lines.lines() {
        let _ = writeln!(out, "# {line}");
    }
}

/// One thing that a number counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedPart {
    /// Its place, from 1, in the order in which they ended.
    pub number: u64,
    /// From when, on the recording's clock.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// The thread, where one is known.
    pub tid: Option<i32>,
    /// The event that begins it, as a line; empty where it is not in the recording.
    pub begin_event: String,
    /// The event that ends it, in the same way.
    pub end_event: String,
}

/// Columns of what a number counts.
pub(crate) fn parts() -> Table<'static, ExplainedPart> {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Table::new()
        .column("number", Number, |one: &ExplainedPart| one.number)
        .column("start_ns", Nanoseconds, |one| one.start)
        .column("end_ns", Nanoseconds, |one| one.end)
        .column("duration_ns", Nanoseconds, |one| {
            one.end.saturating_sub(one.start)
        })
        .column("tid", Number, |one| one.tid)
        .column("begin_event", Text, move |one| known(&one.begin_event))
        .column("end_event", Text, move |one| known(&one.end_event))
}

/// What a number counts as rows of JSON and CSV.
#[derive(Debug)]
pub struct ExplainedParts(CsvRows<'static, ExplainedPart>);

impl ExplainedParts {
    /// Returns rows whose times count this.
    pub fn new(clock: ClockUnit) -> ExplainedParts {
        ExplainedParts(parts().counted_in(clock).csv_rows())
    }

    /// Returns the names of CSV's columns as a line.
    pub fn csv_head(&self) -> String {
        self.0.head()
    }

    /// Appends a row of CSV.
    pub fn csv_row(&self, part: &ExplainedPart, out: &mut String) {
        self.0.put(part, out);
    }

    /// Returns one as an object of a document.
    pub fn object(part: &ExplainedPart) -> Value {
        parts().object(part).into()
    }
}

/// A finding, and the commands that show what it rests on.
#[derive(Debug, Serialize)]
pub struct ExplainFindingDocument {
    findings: Value,
    evidence: Value,
}

shape!(ExplainFindingDocument {
    findings: crate::diagnose::findings_shape(),
    evidence: commands().shape().list()
});

/// A sentence of a finding, and the commands that show the events behind its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedEvidence {
    /// The finding.
    pub finding: &'static str,
    /// The sentence.
    pub text: String,
    /// Commands, as they can be typed.
    pub commands: Vec<String>,
}

/// Columns of a finding's evidence.
pub(crate) fn commands() -> Table<'static, ExplainedEvidence> {
    Table::new()
        .column("finding", Text, |one: &ExplainedEvidence| one.finding)
        .column("evidence", Text, |one| one.text.clone())
        .column("commands", Nested, |one| one.commands.clone())
        .csv_form(|one| one.commands.join("; "))
}

/// Returns the document of findings.
pub fn finding_document(
    findings: &[Finding],
    evidence: &[ExplainedEvidence],
) -> ExplainFindingDocument {
    ExplainFindingDocument {
        findings: crate::diagnose::findings(findings),
        evidence: commands().json(evidence),
    }
}

/// Returns evidence and commands as CSV.
pub fn finding_csv(evidence: &[ExplainedEvidence]) -> String {
    commands().csv(evidence)
}

/// Returns the same as text.
pub fn finding_text(evidence: &[ExplainedEvidence], width: usize) -> String {
    let mut out = String::new();
    for one in evidence {
        wrap(&mut out, "- ", &one.text, width);
        for command in &one.commands {
            let _ = writeln!(out, "    {}", crate::clean(command));
        }
        if one.commands.is_empty() {
            out.push_str("    No command prints single events of this.\n");
        }
    }
    out
}
