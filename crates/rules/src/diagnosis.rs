//! What all rules say of a situation.

use domain::DomainChange;
use doubts::DoubtKind;

use crate::evidence::says;
use crate::unchecked::could_explain;
use crate::{
    Base, Case, Finding, Precedence, ProgressVerdict, RecordNeeds, Rule, RuleLook, TimeAccounts,
    UncheckedRule, Verdict, caps, chains, guests, progress, rules, versions,
};

/// Findings with less confidence are no reason to change a definition.
const SURE: f64 = 0.6;

/// What all rules say.
#[derive(Debug, Clone, Default)]
pub struct Diagnosis {
    /// What was found, most time first.
    pub findings: Vec<Finding>,
    /// Rules that cannot tell, and what they lack.
    pub unchecked: Vec<UncheckedRule>,
    /// Rules that found nothing.
    pub clear: Vec<&'static Rule>,
    /// Rules about what this machine's processor does not have.
    pub not_of_machine: Vec<&'static Rule>,
    /// Where all observed time went: explained, normal, or neither.
    pub accounts: TimeAccounts,
    /// Of every vCPU whether it got anywhere.
    pub progress: Vec<ProgressVerdict>,
    /// Why there is no verdict at all: too little of a text was read.
    pub no_verdict: Option<String>,
}

impl Diagnosis {
    /// Returns what rules say where there is no recording: that none of them could check anything.
    pub fn of_nothing() -> Diagnosis {
        let unchecked = rules::ALL.iter().map(|rule| UncheckedRule {
            rule,
            what: format!("Nothing was recorded; it needs {}.", rule.needs),
            could_explain: None,
            did_not_occur: false,
        });
        Diagnosis {
            unchecked: unchecked.collect(),
            ..Diagnosis::default()
        }
    }

    /// Returns what rules say where too little of a text was read: that none of them could check anything, and why.
    fn without_verdict(rules: &[&'static Rule], what: &str) -> Diagnosis {
        let unchecked = rules.iter().map(|rule| UncheckedRule {
            rule,
            what: format!("Give the text as its tool printed it: {what}"),
            could_explain: None,
            did_not_occur: false,
        });
        Diagnosis {
            unchecked: unchecked.collect(),
            no_verdict: Some(what.to_owned()),
            ..Diagnosis::default()
        }
    }

    /// Leaves only what some rules say.
    pub fn keep(&mut self, ids: &[String]) {
        let wanted = |id: &str| ids.iter().any(|one| one == id);
        self.findings.retain(|finding| wanted(finding.rule.id));
        self.unchecked.retain(|one| wanted(one.rule.id));
        self.clear.retain(|rule| wanted(rule.id));
        self.not_of_machine.retain(|rule| wanted(rule.id));
        for one in &mut self.unchecked {
            // Who asks for it by its name wants to know, however little it is.
            one.could_explain = None;
        }
    }

    /// Returns the command that records what the rules lack that cannot tell; `None` where there are none, or a
    /// recording cannot help.
    pub fn to_record(&self) -> Option<String> {
        let unchecked = self.unchecked.iter().filter(|one| one.is_worth_checking());
        RecordNeeds::command(unchecked.flat_map(UncheckedRule::needs))
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
    diagnose_with(rules::ALL, cases)
}

/// Returns what was read of a text of which less than half could be: no verdict rests on it.
fn mostly_unread(case: &Case<'_>) -> Option<String> {
    let doubts = case.picture.quality.all_doubts();
    let unread = doubts.iter().find_map(|doubt| match doubt.kind {
        DoubtKind::EventsMostlyUnread { read, lines, .. } => Some((read, lines)),
        _ => None,
    });
    let (read, lines) = unread?;
    Some(format!(
        "{read} of the {lines} lines that look like events could be read."
    ))
}

/// Asks some rules. Of cases that are texts of which less than half was read, none is asked anything.
pub fn diagnose_with(rules: &[&'static Rule], cases: &[Case<'_>]) -> Diagnosis {
    let whole: Vec<Case<'_>> = cases
        .iter()
        .filter(|case| mostly_unread(case).is_none())
        .copied()
        .collect();
    match cases.first().and_then(mostly_unread) {
        Some(what) if whole.is_empty() => Diagnosis::without_verdict(rules, &what),
        _ => diagnose_whole(rules, &whole),
    }
}

fn diagnose_whole(rules: &[&'static Rule], cases: &[Case<'_>]) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let of_cases = rules
        .iter()
        .filter(|rule| matches!(rule.look, RuleLook::Case(_)));
    for rule in of_cases {
        diagnosis.ask(rule, cases, &[]);
    }
    chains::link(&mut diagnosis.findings);
    // What these leave unexplained is what the others look at.
    let of_accounts = rules
        .iter()
        .filter(|rule| matches!(rule.look, RuleLook::Account(_)));
    for rule in of_accounts {
        let accounts = diagnosis.accounts_of(cases);
        diagnosis.ask(rule, cases, &accounts);
    }
    let of_silence = rules
        .iter()
        .filter(|rule| matches!(rule.look, RuleLook::Silence(_)));
    let silence = diagnosis.findings.is_empty();
    for rule in of_silence {
        diagnosis.ask(rule, cases, &[]);
        // What it finds beside others is theirs to explain. It is not said to be absent either.
        (diagnosis.findings).retain(|one| silence || one.rule.id != rule.id);
    }
    let accounts = diagnosis.accounts_of(cases);
    for account in accounts {
        diagnosis.accounts.merge(account);
    }
    diagnosis.weigh_unchecked(cases);
    diagnosis.progress = cases.iter().flat_map(progress::verdicts).collect();
    diagnosis.findings.sort_by(Finding::rank);
    chains::order(&mut diagnosis.findings);
    disturbed(&mut diagnosis.findings);
    diagnosis
}

impl Diagnosis {
    /// Returns the accounts of each case, with what has been found so far.
    fn accounts_of(&self, cases: &[Case<'_>]) -> Vec<TimeAccounts> {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by(|a, b| Finding::rank(a, b));
        let of_case = |case: &Case<'_>| {
            let mut shown = findings.clone();
            if cases.len() > 1 {
                let names = &case.picture.names;
                shown.retain(|finding| names.iter().any(|name| finding.inputs.contains(name)));
            }
            if case.exits_in_doubt().is_some() {
                return TimeAccounts::default();
            }
            let costs = shown.iter().filter_map(|finding| finding.explained_cost());
            TimeAccounts::of(case, &costs.collect::<Vec<_>>())
        };
        cases.iter().map(of_case).collect()
    }

    /// Says of what could not be checked how much it could explain, and puts that first which could explain most.
    fn weigh_unchecked(&mut self, cases: &[Case<'_>]) {
        let seen = cases.iter().flat_map(|case| &case.picture.vcpus);
        let seen = seen.map(|report| report.seen).next().unwrap_or_default();
        for one in &mut self.unchecked {
            one.could_explain = could_explain(one.rule, &self.accounts.vcpus, seen);
        }
        // What is not known comes first: it may be all.
        let share = |one: &UncheckedRule| one.could_explain.unwrap_or(f64::MAX);
        self.unchecked.sort_by(|a, b| share(b).total_cmp(&share(a)));
    }

    /// Asks a rule of all cases.
    fn ask(&mut self, rule: &'static Rule, cases: &[Case<'_>], accounts: &[TimeAccounts]) {
        let mut best: Option<Finding> = None;
        let mut unchecked = None;
        let mut clear = false;
        let mut elsewhere = false;
        let mut did_not_occur = false;
        for (at, case) in cases.iter().enumerate() {
            let doubt = case.exits_in_doubt();
            let verdict = match (rule.look, accounts.get(at), &doubt) {
                (RuleLook::Case(look) | RuleLook::Silence(look), ..) => look(case),
                (RuleLook::Account(_), _, Some(doubt)) => Verdict::Unknown(doubt.clone()),
                (RuleLook::Account(look), Some(accounts), None) => look(case, accounts),
                (RuleLook::Account(_), None, None) => Verdict::Clear,
            };
            match verdict {
                // What it says of times would be of the guest's, or of a number that is wrong.
                Verdict::Found(finding)
                    if doubt.is_some()
                        && finding.cost.is_some_and(|cost| cost.base == Base::Handling) =>
                {
                    unchecked = doubt;
                }
                Verdict::Found(mut finding) => {
                    if !case.x86() {
                        finding.remedies.retain(|one| !one.remedy.is_of_x86());
                    }
                    finding.is_printed = case.printed();
                    caps::apply(case, &mut finding);
                    versions::apply(case, &mut finding);
                    guests::tell(case, &mut finding);
                    if case.counts_ticks() {
                        finding.count_ticks();
                    }
                    if cases.len() > 1 {
                        finding.inputs.clone_from(&case.picture.names);
                    }
                    best = Some(match best {
                        None => *finding,
                        Some(known) => finding.beside(known),
                    });
                }
                Verdict::Clear => clear = true,
                Verdict::NotOfMachine => elsewhere = true,
                Verdict::Unknown(what) => {
                    did_not_occur = case.exits_did_not_occur() && what.contains("kvm:kvm_exit");
                    unchecked = Some(match did_not_occur {
                        true => "kvm:kvm_exit was recorded and did not occur.".to_owned(),
                        false => what,
                    });
                }
            }
        }
        match (best, unchecked) {
            (Some(finding), _) => self.findings.push(finding),
            (None, Some(what)) if !clear => self.unchecked.push(UncheckedRule {
                rule,
                what,
                could_explain: None,
                did_not_occur,
            }),
            (None, None) if elsewhere && !clear => self.not_of_machine.push(rule),
            _ => self.clear.push(rule),
        }
    }
}

/// Says of findings that recording may have caused part of them. It stands above them, but for what is severer and
/// likely: who recorded a slow guest asks for that first.
fn disturbed(findings: &mut Vec<Finding>) {
    let disturbs = |one: &Finding| one.precedence == Precedence::Disturbing;
    let Some(at) = findings.iter().position(disturbs) else {
        return;
    };
    let mut recording = findings.remove(at);
    let severer = |one: &Finding| one.severity() > recording.severity() && one.is_likely();
    // They go up past what costs more and is less sure: that may be the recorder's doing.
    let rest = findings.split_off(at);
    let (severer, rest): (Vec<Finding>, Vec<Finding>) = rest.into_iter().partition(severer);
    let above = severer.len();
    findings.extend(severer);
    findings.extend(rest);
    for (other, below) in findings.iter_mut().skip(at).zip(0..) {
        // What has no cost is no matter of time.
        let same = |name: &String| recording.inputs.contains(name);
        if other.cost.is_some() && (other.inputs.iter().any(same) || recording.inputs.is_empty()) {
            let place = if below < above { "" } else { ", above" };
            other.evidence.push(says!(
                "Recording itself cost time ({rule}{place}) and may have caused part of this.",
                rule = recording.rule.id,
                place = place,
            ));
        }
    }
    if above > 0 {
        recording.precedence = Precedence::ByCost;
    }
    findings.insert(at + above, recording);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Base, FindingCost};

    fn finding(rule: &str, share: u64, confidence: f64) -> Finding {
        Finding {
            cost: Some(FindingCost::of(share, 1_000, Base::VcpuTime)),
            ..Finding::new(crate::rule(rule).expect("a rule"), confidence)
        }
    }

    fn order(of: &[(u64, f64)]) -> Vec<&'static str> {
        let recording = Finding {
            precedence: Precedence::Disturbing,
            ..finding("tracing-disturbs", 50, 0.9)
        };
        let others = of
            .iter()
            .map(|(share, sure)| finding("timer-port-exits", *share, *sure));
        let mut all: Vec<Finding> = std::iter::once(recording).chain(others).collect();
        all.sort_by(Finding::rank);
        disturbed(&mut all);
        all.iter().map(|one| one.rule.id).collect()
    }

    #[test]
    fn recording_stands_above_what_it_may_have_caused_and_below_what_is_severer() {
        // 5 % of the time are medium, 30 % high.
        assert_eq!(
            order(&[(60, 0.9)]),
            ["tracing-disturbs", "timer-port-exits"]
        );
        assert_eq!(
            order(&[(300, 0.9)]),
            ["timer-port-exits", "tracing-disturbs"]
        );
        assert_eq!(
            order(&[(300, 0.4)]),
            ["tracing-disturbs", "timer-port-exits"]
        );
        // What costs more and is not likely does not keep the recorder above what is severer and likely.
        assert_eq!(
            order(&[(600, 0.5), (300, 0.9)]),
            ["timer-port-exits", "tracing-disturbs", "timer-port-exits"]
        );
        assert_eq!(order(&[]), ["tracing-disturbs"]);
    }
}
