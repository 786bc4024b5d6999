//! Causes that could not be looked for, and how much of the recorded time each could explain.

use event::ExitClass;
use model::SeenEvents;

use crate::{AccountPart, ExplainedTime, OPEN_SHARE, RecordNeeds, Rule, TimeAccount};

/// A rule that cannot tell.
#[derive(Debug, Clone)]
pub struct UncheckedRule {
    /// Which.
    pub rule: &'static Rule,
    /// What to record to know.
    pub what: String,
    /// The share of the vCPUs' observed time that it could explain at most; `None` where no such time is known.
    pub could_explain: Option<f64>,
    /// Whether its events were recorded and did not occur: another recording shows no more.
    pub did_not_occur: bool,
}

impl UncheckedRule {
    /// Returns the command that records what it needs; `None` where no recording has it.
    pub fn record(&self) -> Option<String> {
        RecordNeeds::command(self.needs())
    }

    /// Returns what 'trapline record' is to be asked for.
    pub(crate) fn needs(&self) -> impl Iterator<Item = RecordNeeds> {
        let needs = match self.did_not_occur {
            true => &[][..],
            false => self.rule.record,
        };
        needs.iter().copied()
    }

    /// Returns whether it could explain so much that it is worth a second recording.
    pub fn is_worth_checking(&self) -> bool {
        self.could_explain.is_none_or(|share| share >= OPEN_SHARE)
    }
}

/// Returns the share of an account that a rule could explain at most: the time of the kinds that it explains, and that
/// of those in which such time is, where the recording does not separate it.
pub(crate) fn could_explain(rule: &Rule, account: &TimeAccount, seen: SeenEvents) -> Option<f64> {
    let observed = account.observed_ns();
    // What other threads take is no time of vCPUs.
    let of_threads = |what: &ExplainedTime| {
        matches!(
            what,
            ExplainedTime::Part(AccountPart::Thread | AccountPart::OtherThreads)
        )
    };
    let beside = !rule.explains.is_empty() && rule.explains.iter().all(of_threads);
    if observed == 0 || beside {
        return None;
    }
    // A rule that explains no time of vCPUs by itself is about what they wait for when they are halted, or about what
    // slows their guests.
    let by_effect = rule.explains.is_empty();
    let of_part = |part: AccountPart| {
        let hides = |what: &ExplainedTime| is_hidden_in(*what, part, account.of_exits, seen);
        let direct = rule.explains.iter();
        match by_effect {
            true => matches!(part, AccountPart::Guest | AccountPart::Halted),
            false => direct.clone().any(|what| what.is(part) || hides(what)),
        }
    };
    let rows = account.rows.iter().filter(|row| of_part(row.part));
    let left = rows.map(|row| row.ns.saturating_sub(row.explained_ns));
    Some(account.share(left.fold(0, u64::saturating_add)))
}

/// Whether time of one kind is within another, since the events that separate them were not recorded.
fn is_hidden_in(what: ExplainedTime, part: AccountPart, of_exits: bool, seen: SeenEvents) -> bool {
    let of_scheduler = match what {
        ExplainedTime::Runnable | ExplainedTime::Asleep => true,
        ExplainedTime::Part(kind) => matches!(
            kind,
            AccountPart::AsleepInKvm
                | AccountPart::AsleepInVmm
                | AccountPart::RunnableIdle
                | AccountPart::RunnableBehind
                | AccountPart::RunnableRecorder
        ),
        _ => false,
    };
    let is_halted = matches!(
        part,
        AccountPart::Halted | AccountPart::Kvm(ExitClass::Waiting)
    );
    let polls = what == ExplainedTime::Part(AccountPart::Polling);
    let unseen = of_exits || !seen.switches;
    // What a vCPU does without its CPU, or who has it, is within its exits then.
    (of_scheduler && unseen && (part.exits().is_some() || is_halted))
        || (polls && (of_exits || !seen.halts) && is_halted)
        || part == AccountPart::NotRecorded
}
