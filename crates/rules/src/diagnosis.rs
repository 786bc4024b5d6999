//! What all rules say of a situation.

use domain::DomainChange;

use crate::evidence::says;
use crate::{Case, Finding, RecordNeeds, Rule, Verdict, caps, guests, rules};

/// Findings with less confidence are no reason to change a definition.
const SURE: f64 = 0.6;

/// A rule that cannot tell.
#[derive(Debug, Clone)]
pub struct UncheckedRule {
    /// Which.
    pub rule: &'static Rule,
    /// What to record to know.
    pub what: String,
}

/// What all rules say.
#[derive(Debug, Clone, Default)]
pub struct Diagnosis {
    /// What was found, most time first.
    pub findings: Vec<Finding>,
    /// Rules that cannot tell, and what they lack.
    pub unchecked: Vec<UncheckedRule>,
    /// Rules that found nothing.
    pub clear: Vec<&'static Rule>,
}

impl Diagnosis {
    /// Returns the command that records what the rules lack that cannot tell; `None` where there are none, or a
    /// recording cannot help.
    pub fn to_record(&self) -> Option<String> {
        let unchecked = self.unchecked.iter();
        RecordNeeds::command(unchecked.flat_map(|lack| lack.rule.record).copied())
    }

    /// Returns all changes of the guest's definition that remedies ask for, each once: of every finding those of the
    /// first remedy that has any.
    pub fn changes(&self) -> Vec<DomainChange> {
        let mut out: Vec<DomainChange> = Vec::new();
        // A definition is not changed on a guess.
        let sure = self
            .findings
            .iter()
            .filter(|finding| finding.confidence >= SURE);
        for finding in sure {
            let first = finding
                .remedies
                .iter()
                .find(|advice| !advice.changes.is_empty());
            for change in first.iter().flat_map(|advice| &advice.changes) {
                if !out.contains(change) {
                    out.push(change.clone());
                }
            }
        }
        out
    }
}

/// Returns all rules.
pub fn all() -> &'static [&'static Rule] {
    rules::ALL
}

/// Returns the rule with a name.
pub fn rule(id: &str) -> Option<&'static Rule> {
    rules::ALL.iter().copied().find(|rule| rule.id == id)
}

/// Asks all rules of several cases, which are views of one situation, and ranks what they find.
pub fn diagnose(cases: &[Case<'_>]) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for &rule in rules::ALL {
        let mut best: Option<Finding> = None;
        let mut unchecked = None;
        let mut clear = false;
        for case in cases {
            match (rule.look)(case) {
                Verdict::Found(mut finding) => {
                    caps::apply(case, &mut finding);
                    guests::tell(case, &mut finding);
                    if case.counts_ticks() {
                        finding.count_ticks();
                    }
                    if cases.len() > 1 {
                        finding.inputs.clone_from(&case.picture.names);
                    }
                    // The recording that shows it best is quoted, and comes first among those that do.
                    best = Some(match best {
                        None => *finding,
                        Some(known) => {
                            let (mut first, second) = match finding.weighs_more(&known) {
                                true => (*finding, known),
                                false => (known, *finding),
                            };
                            for name in second.inputs {
                                if !first.inputs.contains(&name) {
                                    first.inputs.push(name);
                                }
                            }
                            first
                        }
                    });
                }
                Verdict::Clear => clear = true,
                Verdict::Unknown(what) => unchecked = Some(what),
            }
        }
        match (best, unchecked) {
            (Some(finding), _) => diagnosis.findings.push(finding),
            (None, Some(what)) if !clear => diagnosis.unchecked.push(UncheckedRule { rule, what }),
            _ => diagnosis.clear.push(rule),
        }
    }
    diagnosis.findings.sort_by(Finding::rank);
    disturbed(&mut diagnosis.findings);
    diagnosis
}

/// Says of findings that may be the doing of one that stands above them.
fn disturbed(findings: &mut [Finding]) {
    let Some((first, others)) = findings.split_first_mut() else {
        return;
    };
    if !first.foremost {
        return;
    }
    for other in others {
        // What has no cost is no matter of time.
        let same = other.inputs.iter().any(|name| first.inputs.contains(name));
        if other.cost.is_some() && (same || first.inputs.is_empty()) {
            other.evidence.push(says!(
                "Recording itself cost time ({rule}, above) and may have caused part of this.",
                rule = first.rule.id
            ));
        }
    }
}
