/*!
What makes a VM slow, and what to change.

A rule is one file in `rules/`: what it looks at, what it needs, the cause it tells, remedies each with its price, when
not to use it, how to check afterwards, and where the knowledge is from. It looks at a [`Case`], which is what a
recording tells ([`analysis::Picture`]) with what is known of the host and of the guest's definition, and says one of
three things: a finding with its evidence, nothing, or what has to be recorded to know.

Findings are ranked by the time they cost. Without evidence there is no finding.
*/
#![forbid(unsafe_code)]

mod case;
mod definition;
mod describe;
mod doubt;
mod evidence;
mod finding;
mod names;
mod rules;
mod torn;

pub use case::Case;
pub use definition::remarks;
pub use evidence::{Evidence, Number, PathInstance, TableRow, Value, Window};
pub use finding::{Advice, Base, Cost, Diagnosis, Finding, Lack, Severity};

/// The built-in paths that rules look at.
pub const PATHS: [&str; 4] = ["irqfd", "kick", "ipi", "device-irq"];

/// What to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    /// What to do.
    pub what: &'static str,
    /// What that costs.
    pub price: &'static str,
    /// When not to.
    pub unless: &'static str,
    /// How to see afterwards that it helped.
    pub check: &'static str,
}

/// What a rule says of a case.
#[derive(Debug)]
pub enum Verdict {
    /// It is so.
    Found(Box<Finding>),
    /// It is not so.
    Clear,
    /// The recording lacks what would tell: what to record, a full sentence.
    Lacks(String),
}

/// One cause that is looked for.
#[derive(Debug)]
pub struct Rule {
    /// Its name in documents and scripts.
    pub id: &'static str,
    /// What it finds, in one line.
    pub title: &'static str,
    /// What it looks at.
    pub looks_at: &'static str,
    /// The events, tables or facts it needs.
    pub needs: &'static str,
    /// What a comparison calls the changes of what it measures, as they begin: a finding is no news while these are
    /// not. Empty where it measures several things.
    pub measures: &'static [&'static str],
    /// Why that makes a VM slow.
    pub cause: &'static str,
    /// When it finds, how sure it is then and how severe, what does not count: paragraphs of Markdown, in which `{name}` is one
    /// of [`Rule::limits`]. A table is a paragraph of its own.
    pub found: &'static [&'static str],
    /// The limits that its code goes by, with their names in texts.
    pub limits: &'static [(&'static str, Value)],
    /// With which recipe of `docs/diagnose.md` to record, and when it cannot tell; Markdown.
    pub unknown: &'static str,
    /// How remedies are chosen; Markdown. Empty where all are offered.
    pub advice: &'static str,
    /// What else looks like it, and how to tell them apart; Markdown.
    pub looks_alike: &'static str,
    /// What to change, best first.
    pub remedies: &'static [Remedy],
    /// Where the knowledge is from.
    pub sources: &'static [&'static str],
    /// Looks at a case.
    pub look: fn(&Case<'_>) -> Verdict,
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
        let mut lacks = None;
        let mut clear = false;
        for case in cases {
            match (rule.look)(case) {
                Verdict::Found(mut finding) => {
                    torn::lower(case, &mut finding);
                    if cases.len() > 1 {
                        finding.inputs.clone_from(&case.picture.names);
                    }
                    // The recording that shows it best tells of it, and comes first among those that do.
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
                Verdict::Lacks(what) => lacks = Some(what),
            }
        }
        match (best, lacks) {
            (Some(finding), _) => diagnosis.findings.push(finding),
            (None, Some(what)) if !clear => diagnosis.lacks.push(Lack { rule, what }),
            _ => diagnosis.clear.push(rule),
        }
    }
    diagnosis.findings.sort_by(Finding::rank);
    finding::disturbed(&mut diagnosis.findings);
    diagnosis
}
