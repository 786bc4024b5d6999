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

# Writing another rule

A rule is named by the id of its file: a `static RULE: Rule`, which `trapline rules ID` and [`mod@reference`] print, and
a function `look(&Case) -> Verdict`. Add a line for the module in `rules/mod.rs`, and one in `ALL`. [`Rule`]
documents the fields. In short:

- Numbers that the code uses are `limits`, and stand in the texts as `{name}`. A path that the rule looks at stands in
  [`PATHS`]. `measures` names what a comparison calls the changes of what the rule measures (`vmexit HLT`): a finding
  that comes or goes while these stay is no change.
- Evidence is written with `says!("{exits} exits took {time}.", exits = count, time = Ns(ns))`: sentence and data are
  made of the same parts, so a page can link to them.
- Report a finding with the numbers as evidence, and a cost where there is one; *clear* only if the events that would
  show the cause are there and do not; else what to record. State confidence by what *else* would look the same. A
  change of the definition is a `domain::Change`.
- `tests/by_hand/<id>/` has a recording in which it has to be found (`positive*.txt`), the near miss, the same situation
  in health, in which it must not (`negative*.txt`), and `unknown*.txt` where it has to say what to record. They are
  texts as the tools print them; `tests/corpus/by_hand.rs` says how they are written.
*/
#![forbid(unsafe_code)]

mod account;
mod apic;
mod caps;
mod case;
mod chains;
mod common;
mod counted;
mod definition;
mod describe;
mod diagnosis;
mod domstats;
mod evidence;
mod finding;
mod groups;
mod guests;
mod kernel_log;
mod listed;
mod names;
mod parameters;
mod progress;
mod qemu;
mod record_line;
mod rule;
mod rules;
mod sampled;
mod stall;
mod unchecked;
mod versions;

pub use account::{
    AccountPart, AccountRow, ExplainedTime, OPEN_SHARE, TimeAccount, TimeAccounts, VcpuAccount,
};
pub use apic::ApicExits;
pub use case::{Case, RowSum};
pub use chains::{CauseChain, chains};
pub use definition::{
    DefinitionRemark, RemarkKind, RemarkMeasure, measure, remark_kinds, remarked_changes, remarks,
};
pub use diagnosis::{Diagnosis, all, diagnose, diagnose_with, rule};
pub use evidence::{Evidence, EvidenceNumber, PathInstance, SentenceNumber, TableRow, TimeWindow};
pub use finding::{Base, CaseAdvice, Finding, FindingCost, Precedence, RestsOn, Severity};
pub use parameters::{ParameterValues, TuningParameter, parameters, places};
pub use progress::{ProgressState, ProgressVerdict};
pub use record_line::{RecordNeeds, opened_events, record_command};
pub use rule::{Remedy, Rule, RuleLook, Verdict};
pub use unchecked::UncheckedRule;

#[doc = include_str!("../RULES.md")]
pub mod reference {}

/// The built-in paths that rules look at.
pub const PATHS: [&str; 4] = ["irqfd", "kick", "ipi", "device-irq"];
