//! Findings.

use rules::{Advice, Diagnosis, Finding};
use serde_json::{Map, Value, json};
use words::{duration, share};

use crate::quality::wrap;
use crate::table::{Table, Unit};

/// Returns findings as text, most time first.
pub fn text(diagnosis: &Diagnosis, width: usize) -> String {
    let mut out = String::new();
    if diagnosis.findings.is_empty() {
        wrap(&mut out, "", "No finding.", width);
    }
    for (at, finding) in diagnosis.findings.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(&one(at + 1, finding, width));
    }
    if !diagnosis.lacks.is_empty() {
        out.push_str("\ncould not check:\n");
        for lack in &diagnosis.lacks {
            wrap(
                &mut out,
                &format!("  {}: ", lack.rule.id),
                &lack.what,
                width,
            );
        }
    }
    if !diagnosis.clear.is_empty() {
        let ids: Vec<&str> = diagnosis.clear.iter().map(|rule| rule.id).collect();
        out.push('\n');
        wrap(
            &mut out,
            "looked for and not found: ",
            &ids.join(", "),
            width,
        );
    }
    out
}

/// Returns remarks on a guest's definition.
pub fn remarks(remarks: &[String], width: usize) -> String {
    let mut out = String::from("the definition, of which nothing is measured:\n");
    for remark in remarks {
        wrap(&mut out, "  - ", remark, width);
    }
    out
}

/// Returns a line or two for each of the first findings, and how many more there are.
pub fn summary(diagnosis: &Diagnosis, most: usize, width: usize) -> String {
    let mut out = String::from("findings: 'trapline diagnose' says why, and what to change\n");
    for finding in diagnosis.findings.iter().take(most) {
        let label = format!("  {:6}  ", finding.severity().name());
        let text = format!("{}: {}", finding.rule.id, finding.title);
        wrap(&mut out, &label, &text, width);
    }
    let more = diagnosis.findings.len().saturating_sub(most);
    if more > 0 {
        out.push_str(&format!("          and {more} more\n"));
    }
    out
}

/// Returns a finding's first line: how severe, and what it costs.
pub fn head(finding: &Finding) -> String {
    let mut out = format!("{}, {}", finding.rule.id, finding.severity().name());
    if let Some(cost) = finding.cost {
        out.push_str(&format!(", {}", duration::human(cost.ns)));
        if cost.share > 0.0 {
            out.push_str(&format!(
                ": {} % {}",
                share::cell(cost.share),
                cost.base.words()
            ));
        }
    }
    out
}

fn one(number: usize, finding: &Finding, width: usize) -> String {
    let mut out = String::new();
    wrap(&mut out, &format!("{number}. "), &head(finding), width);
    wrap(&mut out, "   ", &finding.title, width);
    wrap(
        &mut out,
        "   ",
        &format!("confidence {:.2}", finding.confidence),
        width,
    );
    for name in &finding.inputs {
        wrap(&mut out, "   in ", name, width);
    }
    for evidence in &finding.evidence {
        wrap(&mut out, "   - ", &evidence.text, width);
    }
    wrap(&mut out, "   cause: ", &finding.cause, width);
    for (at, advice) in finding.remedies.iter().enumerate() {
        let label = format!("   remedy {}: ", at + 1);
        wrap(&mut out, &label, advice.remedy.what, width);
        wrap(&mut out, "     price: ", advice.remedy.price, width);
        wrap(&mut out, "     unless: ", advice.remedy.unless, width);
        wrap(&mut out, "     check: ", advice.remedy.check, width);
        if let Some(note) = &advice.note {
            wrap(&mut out, "     here: ", note, width);
        }
        if !advice.changes.is_empty() {
            let text = "the definition can be changed for it; --patch prints how.";
            wrap(&mut out, "     patch: ", text, width);
        }
    }
    out
}

/// Appends the contract's fields, and fields beyond them, to a JSON document.
pub fn json(document: &mut Map<String, Value>, diagnosis: &Diagnosis) {
    let findings = findings_json(&diagnosis.findings);
    document.insert("findings".to_owned(), findings);
    let lacks = diagnosis
        .lacks
        .iter()
        .map(|lack| json!({"id": lack.rule.id, "needs": lack.what}));
    document.insert("unknown".to_owned(), lacks.collect());
    let clear = diagnosis.clear.iter().map(|rule| json!(rule.id));
    document.insert("not_found".to_owned(), clear.collect());
}

fn advice_json(advice: &Advice) -> Value {
    json!({
        "do": advice.remedy.what,
        "price": advice.remedy.price,
        "check": advice.remedy.check,
        "unless": advice.remedy.unless,
        "note": advice.note,
        "patches_domain": !advice.changes.is_empty(),
    })
}

/// Columns of findings.
pub(crate) fn columns() -> Table<'static, Finding> {
    use Unit::{Nanoseconds, Nested, Share, Text};
    Table::new()
        .column("id", Text, |finding: &Finding| finding.rule.id)
        .column("severity", Text, |finding| finding.severity().name())
        .column("confidence", Share, |finding| finding.confidence)
        .csv_form(|finding| format!("{:.2}", finding.confidence))
        .column("title", Text, |finding| finding.title.clone())
        .column("evidence", Nested, |finding| {
            let evidence = finding.evidence.iter();
            evidence.map(|one| one.text.clone()).collect::<Value>()
        })
        .column("cause", Text, |finding| finding.cause.clone())
        .column("remedy", Nested, |finding| {
            let remedies = finding.remedies.iter();
            remedies.map(advice_json).collect::<Value>()
        })
        .column("cost_ns", Nanoseconds, |finding| {
            finding.cost.map(|cost| cost.ns)
        })
        .column("cost_share", Share, |finding| {
            finding.cost.map(|cost| cost.share)
        })
        .csv_form(|finding| {
            let share = finding.cost.map(|cost| format!("{:.6}", cost.share));
            share.unwrap_or_default()
        })
        .column("cost_of", Text, |finding| {
            finding.cost.map(|cost| cost.base.name())
        })
        .column("inputs", Nested, |finding| finding.inputs.clone())
        .csv_order(&[
            "id",
            "severity",
            "confidence",
            "cost_ns",
            "cost_share",
            "cost_of",
            "title",
        ])
}

/// Returns findings as the contract has them.
pub fn findings_json(findings: &[Finding]) -> Value {
    columns().json(findings)
}

/// Returns findings as comma separated values, a line each.
pub fn csv(diagnosis: &Diagnosis) -> String {
    columns().csv(&diagnosis.findings)
}
