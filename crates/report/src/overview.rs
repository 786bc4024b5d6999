//! What one wants to know first: what is wrong, whose time it took, and whether that is all.

use std::fmt::Write;

use render::diagnose;
use render::html::escape;

use crate::against::ReportComparison;
use crate::out::PageWriter;
use crate::{Recording, bars, vcpus};

/// Findings that are named, and vCPUs that are drawn, at most: it is to be seen without scrolling.
const FINDINGS: usize = 6;
const VCPUS: usize = 4;
/// Changes that are named at most.
const CHANGES: usize = 3;

/// Writes what there is of a recording.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    let _ = writeln!(
        out.html,
        "<p class=\"headline\">{}</p>",
        escape(&recording.headline)
    );
    let findings = &recording.diagnosis.findings;
    if !findings.is_empty() {
        out.markup("<ol class=\"first-findings\">\n");
        for (at, finding) in findings.iter().enumerate().take(FINDINGS) {
            let id = out.id(&format!("finding-{}", at + 1));
            let headline = finding.headline.as_ref().unwrap_or(&finding.title);
            let severity = finding.severity().name();
            let _ = writeln!(
                out.html,
                "<li><span class=\"severity {severity}\">{severity}</span> <a href=\"#{id}\">{}</a></li>",
                escape(headline)
            );
        }
        out.markup("</ol>\n");
    }
    let more = findings.len().saturating_sub(FINDINGS);
    if more > 0 {
        let more = words::plural(more as u64, "more finding");
        let _ = writeln!(out.html, "<p><a href=\"#findings\">{more}</a></p>");
    }
    for sentence in diagnose::account_sentences(&recording.diagnosis.accounts) {
        let rest = sentence.strip_prefix("account").unwrap_or(&sentence);
        out.paragraph(&format!("Account{rest}"));
    }
    let rows = recording.picture.vcpus.as_ref();
    let rows = rows.map_or(&[][..], |report| &report.rows);
    let worst = vcpus::worst(rows, VCPUS);
    if !worst.is_empty() {
        let caption = match rows.len() > worst.len() {
            true => format!(
                "Time by state of the {} vCPUs that had most of it outside of the guest and not halted, of {}.",
                worst.len(),
                rows.len()
            ),
            false => "Time of each vCPU by state.".to_owned(),
        };
        out.markup(&bars::figure(&caption, &worst));
    }
}

/// Writes what changed most.
pub(crate) fn changes(against: &ReportComparison<'_>, out: &mut PageWriter) {
    let changes = &against.comparison.changes;
    if changes.is_empty() {
        return;
    }
    let names = escape(&against.a.join(", "));
    let _ = writeln!(
        out.html,
        "<p>What changed most from {names} (<a href=\"#compare\">all changes</a>):</p>"
    );
    let labels = against.labels();
    let largest = changes.iter().take(CHANGES);
    let largest: Vec<String> = largest.map(|one| labels.sentence(one)).collect();
    out.list(largest.iter().map(String::as_str));
}
