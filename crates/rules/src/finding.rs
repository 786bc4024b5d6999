//! What rules find.

use std::cmp::Ordering;

use domain::DomainChange;
use words::{duration, share};

use crate::account::{ExplainedCost, ExplainedTime};
use crate::evidence::Evidence;
use crate::rule::{Remedy, Rule, Verdict};

/// What a finding is made of, and so what makes it doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestsOn {
    /// That events are there, or what the recorder says: missing events make it no less true.
    Counts,
    /// Times between events.
    #[default]
    Times,
    /// That something takes long, or does not happen: missing events may be all of it.
    Absence,
}

/// How much a finding matters, by the time it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is there; what it costs is small, or not known.
    Low,
    /// Some per cent.
    Medium,
    /// A tenth or more of the vCPUs' time, or half of the time that exits take.
    High,
}

impl Severity {
    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }
}

/// What a cost is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The time that vCPUs were observed, all together.
    VcpuTime,
    /// The time of all exits in which the guest did not ask to wait.
    Handling,
    /// The time from the first event to the last.
    Span,
    /// The CPUs' time from the first event to the last.
    CpuTime,
    /// The time in which a device was in use.
    InUse,
    /// The time of all exits, waiting too.
    Exits,
    /// The CPU time of threads that work for VMs and are no vCPUs.
    ThreadTime,
}

impl Base {
    /// Returns what it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            Base::VcpuTime => "of the vCPUs' time",
            Base::Handling => "of the time of exits, without waiting",
            Base::Span => "of the recorded time",
            Base::CpuTime => "of the CPUs' time",
            Base::InUse => "of the time in which the device was in use",
            Base::Exits => "of the time of all exits",
            Base::ThreadTime => "of the CPU time of threads that work for VMs",
        }
    }

    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Base::VcpuTime => "vcpu_time",
            Base::Handling => "handling",
            Base::Span => "span",
            Base::CpuTime => "cpu_time",
            Base::InUse => "in_use",
            Base::Exits => "exits",
            Base::ThreadTime => "thread_time",
        }
    }
}

/// The time that a finding costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingCost {
    /// In nanoseconds, within the recording.
    pub ns: u64,
    /// As a share, 0 to 1. Latencies of several threads that overlap may add up to more than there is: that is 1.
    pub share: f64,
    /// Of what.
    pub base: Base,
}

impl FindingCost {
    /// Returns a cost as a share of a whole.
    pub fn of(ns: u64, whole: u64, base: Base) -> FindingCost {
        let share = if whole == 0 {
            0.0
        } else {
            (ns as f64 / whole as f64).min(1.0)
        };
        FindingCost { ns, share, base }
    }

    /// Returns how much it matters.
    pub fn severity(&self) -> Severity {
        let (high, medium) = match self.base {
            Base::Handling => (0.5, 0.1),
            _ => (0.1, 0.02),
        };
        if self.share >= high {
            Severity::High
        } else if self.share >= medium {
            Severity::Medium
        } else {
            Severity::Low
        }
    }
}

/// A remedy for one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseAdvice {
    /// The remedy.
    pub remedy: Remedy,
    /// The same as changes to the guest's definition, where it is known and they are not there yet.
    pub changes: Vec<DomainChange>,
    /// What is particular to this case; a full sentence.
    pub note: Option<String>,
}

/// From this confidence on events show the cause itself ([`Finding::confidence`]).
const SURE: f64 = 0.9;
/// Below this others would fit as well.
const LIKELY: f64 = 0.6;

/// What a finding comes before, whatever it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// A vCPU that gets nowhere, or has ended: nothing of its time matters beside that.
    NoProgress,
    /// Others may be its doing.
    Disturbing,
    /// Nothing: by what it costs.
    ByCost,
    /// It is what all others leave.
    Leftover,
}

/// A cause that is there.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Whose finding.
    pub rule: &'static Rule,
    /// In one line, with the figure that counts most.
    pub title: String,
    /// The same as somebody would tell it who has seen the recording, where the title leaves out whom it met or what it
    /// was against. All numbers are those of the evidence.
    pub headline: Option<String>,
    /// How sure it is (0 to 1): 0.9 and more where events show the cause itself, about a half where sums fit it
    /// and others would fit too.
    pub confidence: f64,
    /// Time that it costs, if that can be known.
    pub cost: Option<FindingCost>,
    /// Whatever it costs, it matters at least so much.
    pub at_least: Severity,
    /// Whatever it costs, it matters at most so much: what it costs is not known.
    pub at_most: Severity,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// Why that makes the VM slow.
    pub cause: String,
    /// What to change, best first.
    pub remedies: Vec<CaseAdvice>,
    /// The recordings that show it, where there are several.
    pub inputs: Vec<String>,
    /// Whether what shows it was printed by a tool, not recorded as events.
    pub is_printed: bool,
    /// Whether its times are ticks, of which nobody knows how many make a second.
    pub in_ticks: bool,
    /// What it comes before whatever it costs.
    pub precedence: Precedence,
    /// Which time it explains, as much of it as it costs.
    pub explains: Vec<ExplainedTime>,
    /// What it is made of, by which doubts lower it.
    pub rests_on: RestsOn,
    /// The ids of doubts about the recording that touch it.
    pub doubts: Vec<&'static str>,
    /// The rule whose finding is its cause; that one stands above it.
    pub effect_of: Option<&'static str>,
    /// Whether its cost is what its effect costs, which explains that time.
    pub cost_of_effect: bool,
}

impl Finding {
    /// Returns a finding of a rule, with its cause and its remedies as they stand.
    pub fn new(rule: &'static Rule, confidence: f64) -> Finding {
        let remedies = rule.remedies.iter().map(|remedy| CaseAdvice {
            remedy: *remedy,
            changes: Vec::new(),
            note: None,
        });
        Finding {
            rule,
            title: rule.title.to_owned(),
            headline: None,
            confidence,
            cost: None,
            at_least: Severity::Low,
            at_most: Severity::High,
            evidence: Vec::new(),
            cause: rule.cause.to_owned(),
            remedies: remedies.collect(),
            inputs: Vec::new(),
            is_printed: false,
            in_ticks: false,
            precedence: Precedence::ByCost,
            explains: rule.explains.to_vec(),
            rests_on: RestsOn::default(),
            doubts: Vec::new(),
            effect_of: None,
            cost_of_effect: false,
        }
    }

    /// Says what it is made of.
    pub(crate) fn rests_on(mut self, what: RestsOn) -> Finding {
        self.rests_on = what;
        self
    }

    /// Says in one line what was found.
    pub fn title(mut self, title: impl Into<String>) -> Finding {
        self.title = title.into();
        self
    }

    /// Says the same as somebody would tell it.
    pub fn headline(mut self, headline: impl Into<String>) -> Finding {
        self.headline = Some(headline.into());
        self
    }

    /// Says what it costs.
    pub fn cost(mut self, cost: FindingCost) -> Finding {
        self.cost = Some(cost);
        self
    }

    /// Says what shows it.
    pub fn evidence(mut self, evidence: impl Into<Evidence>) -> Finding {
        self.evidence.push(evidence.into());
        self
    }

    /// Adds what else is to be said of the cause.
    pub fn also(mut self, text: &str) -> Finding {
        self.cause.push(' ');
        self.cause.push_str(text);
        self
    }

    /// Gives changes of the guest's definition to a remedy, by its position.
    pub fn changes(mut self, remedy: usize, changes: Vec<DomainChange>) -> Finding {
        if let Some(advice) = self.remedies.get_mut(remedy) {
            advice.changes = changes;
        }
        self
    }

    /// Says what is particular to a remedy in this case, by its position.
    pub fn note(mut self, remedy: usize, note: impl Into<String>) -> Finding {
        if let Some(advice) = self.remedies.get_mut(remedy) {
            advice.note = Some(note.into());
        }
        self
    }

    /// Leaves only some of the remedies, in this order.
    pub fn only(mut self, remedies: &[usize]) -> Finding {
        let kept = remedies
            .iter()
            .filter_map(|at| self.remedies.get(*at).cloned());
        self.remedies = kept.collect();
        self
    }

    /// Says all its durations in ticks, since its recording's clock counts those.
    pub(crate) fn count_ticks(&mut self) {
        self.in_ticks = true;
        let texts = std::iter::once(&mut self.title).chain(&mut self.headline);
        let evidence = self.evidence.iter_mut().flat_map(|one| {
            let numbers = one.numbers.iter_mut().map(|number| &mut number.text);
            numbers.chain(std::iter::once(&mut one.text))
        });
        let notes = self.remedies.iter_mut().flat_map(|advice| &mut advice.note);
        for text in texts.chain(evidence).chain(notes) {
            *text = duration::as_ticks(text);
        }
    }

    /// Returns one of its durations in words.
    pub fn time(&self, ns: u64) -> String {
        let time = duration::human(ns);
        match self.in_ticks {
            true => duration::as_ticks(&time),
            false => time,
        }
    }

    /// Returns it as a verdict.
    pub fn found(self) -> Verdict {
        Verdict::Found(Box::new(self))
    }

    /// Returns what was found in one sentence, without its full stop: with its numbers, what it costs, and how sure it
    /// is where that is not sure.
    pub fn sentence(&self) -> String {
        let text = self.headline.as_ref().unwrap_or(&self.title);
        let doubt = match self.confidence {
            // That nothing explains it is certain.
            _ if self.precedence == Precedence::Leftover => "",
            sure if sure >= SURE => "",
            likely if likely >= LIKELY => "Likely: ",
            _ => "Possibly: ",
        };
        let Some(cost) = self.cost.filter(|cost| cost.ns > 0) else {
            return format!("{doubt}{text}");
        };
        let mut parts = Vec::new();
        let time = self.time(cost.ns);
        if !text.contains(&time) {
            parts.push(time);
        }
        if cost.share > 0.0 {
            let share = format!("{} {}", share::tenths(cost.share), cost.base.words());
            parts.extend((!text.contains(&share)).then_some(share));
        }
        match parts.is_empty() {
            true => format!("{doubt}{text}"),
            false => format!("{doubt}{text} ({})", parts.join(", ")),
        }
    }

    /// Returns which time it explains, if its cost is known and no effect of it explains the same.
    pub(crate) fn explained_cost(&self) -> Option<ExplainedCost<'_>> {
        let own = self.cost.filter(|_| !self.cost_of_effect);
        own.map(|cost| ExplainedCost {
            rule: self.rule.id,
            explains: &self.explains,
            ns: cost.ns,
        })
    }

    /// Returns how much it matters.
    pub fn severity(&self) -> Severity {
        let by_cost = self.cost.map_or(Severity::Low, |cost| cost.severity());
        by_cost.max(self.at_least).min(self.at_most)
    }

    /// The time it surely costs, as far as that can be said: what sums only fit counts for less.
    fn weight(&self) -> f64 {
        self.cost.map_or(0.0, |cost| cost.ns as f64) * self.confidence
    }

    /// Returns the one of two findings of a rule that shows it best, with the recordings of both: that one is quoted,
    /// and its recordings come first. What a tool printed shows it from another side than events do: of these both are
    /// quoted, and the surer one says how sure it is.
    pub(crate) fn beside(self, other: Finding) -> Finding {
        let (mut first, mut second) = match self.weighs_more(&other) {
            true => (self, other),
            false => (other, self),
        };
        if first.is_printed != second.is_printed {
            let name = second.inputs.first().map_or("", String::as_str);
            let evidence = std::mem::take(&mut second.evidence).into_iter();
            first
                .evidence
                .extend(evidence.map(|one| one.of_input(name)));
            first.confidence = first.confidence.max(second.confidence);
        }
        for name in second.inputs {
            if !first.inputs.contains(&name) {
                first.inputs.push(name);
            }
        }
        first
    }

    /// Returns whether it shows more than another of the same rule: severer, since a table without a whole to be a
    /// share of has times of its own.
    pub fn weighs_more(&self, other: &Finding) -> bool {
        // What it costs can be compared only where both say it.
        let costs = self.cost.is_some() && other.cost.is_some();
        let weight = |one: &Finding| if costs { one.weight() } else { 0.0 };
        let of = |one: &Finding| (one.severity(), weight(one), one.confidence);
        of(self) > of(other)
    }

    /// Returns whether it is likely to be there.
    pub fn is_likely(&self) -> bool {
        self.confidence >= LIKELY
    }

    /// Orders findings: what others may be the doing of, then most time first, then the severest, then the surest.
    pub fn rank(a: &Finding, b: &Finding) -> Ordering {
        (a.precedence.cmp(&b.precedence))
            .then(b.weight().total_cmp(&a.weight()))
            .then(b.severity().cmp(&a.severity()))
            .then(b.confidence.total_cmp(&a.confidence))
            .then(a.rule.id.cmp(b.rule.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_what_it_costs_once_and_how_sure_it_is() {
        let rule = crate::rule("timer-port-exits").expect("a rule");
        let cost = FindingCost::of(608_400_000, 2_313_000_000, Base::VcpuTime);
        let title = "The guest reads time from I/O ports: 12635 exits, 608.4ms";
        for (confidence, title, headline, cost, sentence) in [
            (0.95, title, None, None, title.to_owned()),
            (
                0.9,
                title,
                None,
                Some(cost),
                format!("{title} (26.3 % of the vCPUs' time)"),
            ),
            (
                0.6,
                title,
                Some("It reads a port"),
                Some(cost),
                "Likely: It reads a port (608.4ms, 26.3 % of the vCPUs' time)".to_owned(),
            ),
            (
                0.5,
                "It took 608.4ms, 26.3 % of the vCPUs' time",
                None,
                Some(cost),
                "Possibly: It took 608.4ms, 26.3 % of the vCPUs' time".to_owned(),
            ),
            (
                0.9,
                title,
                None,
                Some(FindingCost { share: 0.0, ..cost }),
                title.to_owned(),
            ),
        ] {
            let mut finding = Finding::new(rule, confidence).title(title);
            finding.headline = headline.map(str::to_owned);
            finding.cost = cost;
            assert_eq!(finding.sentence(), sentence);
        }
    }
}
