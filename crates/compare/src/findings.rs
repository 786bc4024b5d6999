//! Findings that came and went.

use rules::{Diagnosis, Finding, Precedence};

use crate::change::{ChangeUnit, Comparison, SideAmount, SideChange, SideName};
use crate::side::{Pair, SPENT};
use words::share;

/// What a finding's time counts in the ranking: behind the row that mentions the same time.
const BEHIND: f64 = 0.95 * SPENT;
/// What of a finding's time has to be seen in a change, for the finding to be news where its rule does not say what it
/// measures.
const SEEN: f64 = 0.25;
/// A finding that is less sure is no news.
const HALF: f64 = 0.5;

/// Returns whether a finding's coming or going is more than that a rule has a threshold: what the rule measures
/// changed, or else something by a good part of the time that the finding is of.
pub(crate) fn is_news(finding: &SideChange, comparison: &Comparison) -> bool {
    let rule = rules::rule(finding.what.trim_start_matches("finding "));
    let measures = rule.map_or(&[][..], |rule| rule.measures);
    let Comparison {
        changes,
        likely,
        unreported,
        ..
    } = comparison;
    let reported = || changes.iter().chain(likely);
    let own = |change: &SideChange| measures.iter().any(|what| change.what.starts_with(what));
    if reported().any(own) {
        return true;
    }
    // It was looked at, and is what it was.
    if unreported.iter().any(own) {
        return false;
    }
    let measured = reported()
        .chain(unreported)
        .any(|change| change.confidence.is_some());
    let least = finding.effect_ns.abs() * SEEN;
    !measured || reported().any(|change| change.effect_ns.abs() >= least)
}

/// Returns whether a finding that came or went is of what happened once.
pub(crate) fn happened_once(finding: &SideChange, comparison: &Comparison) -> bool {
    let least = finding.effect_ns.abs() * SEEN;
    let bursts = comparison.once.iter();
    least > 0.0
        && bursts
            .filter(|burst| burst.effect_ns * finding.effect_ns > 0.0)
            .any(|burst| burst.effect_ns.abs() >= least)
}

pub(crate) fn changes(pair: &Pair<'_>, a: &Diagnosis, b: &Diagnosis, out: &mut Vec<SideChange>) {
    // What is less than half sure may be there on one side as well as on the other.
    let find = |diagnosis: &'_ Diagnosis, id: &str| -> Option<Finding> {
        diagnosis
            .findings
            .iter()
            .find(|finding| finding.rule.id == id && finding.confidence >= HALF)
            .cloned()
    };
    let unknown =
        |diagnosis: &Diagnosis, id: &str| diagnosis.unchecked.iter().any(|lack| lack.rule.id == id);
    let unsure = |diagnosis: &Diagnosis, id: &str| {
        let mut found = diagnosis.findings.iter();
        found.any(|finding| finding.rule.id == id)
    };
    for rule in rules::all() {
        let (in_a, in_b) = (find(a, rule.id), find(b, rule.id));
        let leftover = |one: &Option<Finding>| {
            one.as_ref()
                .is_some_and(|finding| finding.precedence == Precedence::Leftover)
        };
        if leftover(&in_a) || leftover(&in_b) {
            // What all others leave is no cause that came or went: it grows where something else gets less.
            continue;
        }
        let (gone, finding, per) = match (&in_a, &in_b) {
            // What one side cannot know has not gone.
            (Some(finding), None) if !unknown(b, rule.id) && !unsure(b, rule.id) => {
                (true, finding, pair.length(0))
            }
            (None, Some(finding)) if !unknown(a, rule.id) && !unsure(a, rule.id) => {
                (false, finding, pair.length(1))
            }
            _ => continue,
        };
        // Rows that changed tell of the same time, and more exactly.
        let cost = finding.cost.map_or(0.0, |cost| cost.ns as f64) / per * BEHIND;
        let share = finding.cost.filter(|cost| cost.share > 0.0);
        let costs =
            share.map(|cost| format!(" ({} {})", share::rough(cost.share), cost.base.words()));
        let there = |there: bool| {
            if there {
                SideAmount::Word(finding.severity().name().to_owned())
            } else {
                SideAmount::Absent
            }
        };
        let words = if gone { "gone" } else { "new" };
        out.push(SideChange {
            what: format!("finding {}", rule.id),
            unit: ChangeUnit::Word,
            a: there(gone),
            b: there(!gone),
            worse: Some(if gone { SideName::A } else { SideName::B }),
            confidence: None,
            effect_ns: if gone { -cost } else { cost },
            text: format!(
                "Finding {words}: {}: {}{}.",
                rule.id,
                finding.title,
                costs.unwrap_or_default()
            ),
            ..SideChange::default()
        });
    }
}
