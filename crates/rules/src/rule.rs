//! What a rule is.

use serde::Serialize;

use crate::account::{ExplainedTime, TimeAccounts};
use crate::{Case, EvidenceNumber, Finding, RecordNeeds, TuningParameter, parameters};

/// What to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What to do.
    #[serde(rename = "do")]
    pub what: &'static str,
    /// What that costs.
    pub price: &'static str,
    /// How to see afterwards that it helped.
    pub check: &'static str,
    /// When not to.
    pub unless: &'static str,
}

impl Remedy {
    /// Returns what it changes, as far as that has a name: parameters of modules, kernels, QEMU and definitions.
    pub fn parameters(&self) -> impl Iterator<Item = &'static TuningParameter> {
        parameters::named_in(self.what)
    }

    /// Returns whether it changes what only x86 has, and does not say what does the same on arm64.
    pub fn is_of_x86(&self) -> bool {
        self.parameters().any(TuningParameter::is_of_x86) && !self.what.contains("arm64")
    }

    /// Returns from which releases on it works: `kvm.pi_inject_timer Linux 5.3, -overcommit cpu-pm QEMU 3.0`; empty
    /// where it changes nothing that has not been there always.
    pub fn since(&self) -> String {
        let parameters = self.parameters().filter(|one| !one.since.is_empty());
        let since = parameters.map(|one| format!("{} {}", one.name, one.since));
        since.collect::<Vec<_>>().join(", ")
    }
}

/// What a rule says of a case.
#[derive(Debug)]
pub enum Verdict {
    /// It is so.
    Found(Box<Finding>),
    /// It is not so.
    Clear,
    /// It cannot be so on this machine: its processor has nothing of the kind.
    NotOfMachine,
    /// The recording has not the events for it: what to record, a full sentence.
    Unknown(String),
}

/// One cause that is looked for.
#[derive(Debug)]
pub struct Rule {
    /// Its name in documents and scripts.
    pub id: &'static str,
    /// What it finds, in one line.
    pub title: &'static str,
    /// How people describe it who do not know the cause: symptoms, names and messages that they search for.
    pub described_as: &'static [&'static str],
    /// What it looks at.
    pub looks_at: &'static str,
    /// The events, tables or facts it needs.
    pub needs: &'static str,
    /// What 'trapline record' is to be asked for, so that a recording has these events. Empty where no event is
    /// missing, ever.
    pub record: &'static [RecordNeeds],
    /// What a comparison calls the changes of what it measures, as they begin: a finding is no news while these are
    /// not. Empty where it measures several things.
    pub measures: &'static [&'static str],
    /// Why that makes a VM slow.
    pub cause: &'static str,
    /// When it finds, how sure it is then and how severe, what does not count: paragraphs of Markdown, in which
    /// `{name}` is one of [`Rule::limits`]. A table is a paragraph of its own.
    pub found: &'static [&'static str],
    /// The limits that its code goes by, with their names in texts.
    pub limits: &'static [(&'static str, EvidenceNumber)],
    /// The least that it would have found, in which `{name}` is one of [`Rule::limits`]: what "not found" is worth.
    pub seen_from: &'static str,
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
    /// Which time its findings explain, of which they take what they cost; what stands first is taken first. Empty
    /// where they cost no time of vCPUs or of threads that work for them.
    pub explains: &'static [ExplainedTime],
    /// Looks at a case.
    pub look: RuleLook,
}

/// How a rule looks.
#[derive(Debug, Clone, Copy)]
pub enum RuleLook {
    /// At a case.
    Case(fn(&Case<'_>) -> Verdict),
    /// At what the findings of all rules above it leave of the time, too.
    Account(fn(&Case<'_>, &TimeAccounts) -> Verdict),
    /// At a case in which all rules above it found nothing; where they did, what it finds is left out.
    Silence(fn(&Case<'_>) -> Verdict),
}
