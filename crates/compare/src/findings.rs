//! Findings that came and went.

use rules::{Diagnosis, Finding};

use crate::side::Pair;
use crate::words::percent;
use crate::{Change, Unit, Value};

/// What a finding's time counts in the ranking.
const BEHIND: f64 = 0.95;

/// Returns whether a finding's coming or going is more than that a rule has a threshold: where what the rule measures
/// was compared it changed, else something did.
pub(crate) fn is_news(finding: &Change, told: &[Change], untold: &[Change]) -> bool {
    let rule = rules::rule(finding.what.trim_start_matches("finding "));
    let measures = rule.map_or(&[][..], |rule| rule.measures);
    let own = |list: &[Change]| {
        list.iter().any(|change| {
            let mut measures = measures.iter();
            measures.any(|what| change.what.starts_with(what))
        })
    };
    let measured = told
        .iter()
        .chain(untold)
        .any(|change| change.confidence.is_some());
    own(told) || !own(untold) && (!measured || !told.is_empty())
}

pub(crate) fn changes(pair: &Pair<'_>, a: &Diagnosis, b: &Diagnosis, out: &mut Vec<Change>) {
    let find = |diagnosis: &'_ Diagnosis, id: &str| -> Option<Finding> {
        diagnosis
            .findings
            .iter()
            .find(|finding| finding.rule.id == id)
            .cloned()
    };
    let unknown =
        |diagnosis: &Diagnosis, id: &str| diagnosis.lacks.iter().any(|lack| lack.rule.id == id);
    for rule in rules::all() {
        let (in_a, in_b) = (find(a, rule.id), find(b, rule.id));
        let (gone, finding, per) = match (&in_a, &in_b) {
            // What one side cannot know has not gone.
            (Some(finding), None) if !unknown(b, rule.id) => (true, finding, pair.length(0)),
            (None, Some(finding)) if !unknown(a, rule.id) => (false, finding, pair.length(1)),
            _ => continue,
        };
        // Rows that changed tell of the same time, and more exactly.
        let cost = finding.cost.map_or(0.0, |cost| cost.ns as f64) / per * BEHIND;
        let share = finding.cost.filter(|cost| cost.share > 0.0);
        let costs = share.map(|cost| format!(" ({} {})", percent(cost.share), cost.base.words()));
        let there = |there: bool| {
            if there {
                Value::Word(finding.severity().name().to_owned())
            } else {
                Value::Absent
            }
        };
        let words = if gone { "gone" } else { "new" };
        out.push(Change {
            what: format!("finding {}", rule.id),
            unit: Unit::Word,
            a: there(gone),
            b: there(!gone),
            confidence: None,
            effect_ns: if gone { -cost } else { cost },
            per_work: Vec::new(),
            text: format!(
                "Finding {words}: {}: {}{}.",
                rule.id,
                finding.title,
                costs.unwrap_or_default()
            ),
        });
    }
}
