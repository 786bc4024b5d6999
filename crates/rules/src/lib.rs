/*!
What makes a VM slow, and what to change.

A rule is one file in `rules/`: what it looks at, what it needs, the cause it explains, remedies each with its price,
when not to use it, how to check afterwards, and where the knowledge is from. It looks at a [`Case`], which is what a
recording says ([`analysis::Picture`]) with what is known of the host and of the guest's definition, and says one of
three things: a finding with its evidence, nothing, or what has to be recorded to know.

Findings are ranked by the time they cost. Without evidence there is no finding.

```
use analysis::Picture;
use rules::Case;

// A picture comes of a recording or of a printed table (`session`); this one is of nothing.
let picture = Picture::default();
let diagnosis = rules::diagnose(&[Case { picture: &picture, facts: None, domain: None }]);
assert!(diagnosis.findings.is_empty());
// What nobody recorded is not called healthy.
assert!(diagnosis.unchecked.iter().any(|lack| lack.rule.id == "timer-port-exits"));
```
*/
#![forbid(unsafe_code)]

mod caps;
mod case;
mod common;
mod definition;
mod describe;
mod diagnosis;
mod evidence;
mod finding;
mod guests;
mod names;
mod rule;
mod rules;
mod sampled;

pub use case::Case;
pub use definition::remarks;
pub use diagnosis::{Diagnosis, UncheckedRule, all, diagnose, rule};
pub use evidence::{Evidence, EvidenceNumber, PathInstance, SentenceNumber, TableRow, TimeWindow};
pub use finding::{Base, CaseAdvice, Finding, FindingCost, RestsOn, Severity};
pub use rule::{RecordNeeds, Remedy, Rule, Verdict};

/// The built-in paths that rules look at.
pub const PATHS: [&str; 4] = ["irqfd", "kick", "ipi", "device-irq"];
