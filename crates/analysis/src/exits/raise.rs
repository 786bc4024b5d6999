//! What a table of exits does not show.

use doubts::{DoubtKind, Doubts};
use event::{ExitReason, Kind};

use super::{Exits, ExitsReport, UnpairedExits, VMEXIT};
use crate::analysis::{AccountScope, AccountedEvents, EventAccount, WalkState};
use crate::unknowable;

impl ExitsReport {
    /// Raises that keys have no row of their own, where that is so.
    pub fn raise_merged(&self, doubts: &mut Doubts) {
        if let Some(others) = self.rows.iter().find(|row| row.is_others()) {
            doubts.raise(DoubtKind::ExitRowsMerged {
                table: self.table.name().to_owned(),
                rows: self.rows.len().saturating_sub(1),
                more: others.stats.count(),
                key: others.key.clone(),
            });
        }
    }
}

impl UnpairedExits {
    fn raise(&self, doubts: &mut Doubts) {
        if !self.before_first_entry.is_empty() {
            let exits = list(&self.before_first_entry);
            doubts.raise(DoubtKind::NoEntryBefore { exits });
        }
        if !self.without_entry.is_empty() {
            let exits = list(&self.without_entry);
            doubts.raise(DoubtKind::NoEntryBehind { exits });
        }
    }
}

fn list(reasons: &[(ExitReason, u64)]) -> String {
    let parts: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.key()))
        .collect();
    parts.join(", ")
}

fn sum<'r>(reasons: impl IntoIterator<Item = &'r (ExitReason, u64)>) -> u64 {
    let counts = reasons.into_iter().map(|(_, count)| *count);
    counts.fold(0, u64::saturating_add)
}

impl Exits {
    /// Raises what has to be known of all tables.
    pub(super) fn raise(&self, walked: &WalkState<'_>, doubts: &mut Doubts) {
        self.unpaired().raise(doubts);
        let untimed = &self.untimed;
        if untimed.without_thread > 0 {
            doubts.raise(DoubtKind::ExitsWithoutThread {
                exits: untimed.without_thread,
            });
        }
        if untimed.clock_back > 0 {
            doubts.raise(DoubtKind::ClockWentBack {
                exits: untimed.clock_back,
            });
        }
        self.raise_left_out(doubts);
        let tables = self.tables.iter().map(|rows| rows.rows.len());
        if let Some(rows) = tables.chain([self.of_exits.most_rows()]).max()
            && rows >= self.tables[VMEXIT].most
        {
            for report in self.reports(walked.machine) {
                report.raise_merged(doubts);
            }
        }
        let seen = walked.machine.seen();
        if self.options.split && self.saw_exits() {
            for one in unknowable(&seen) {
                doubts.raise(one.doubt());
            }
        }
    }

    /// Returns how many exits are counted: in rows, as not timed, or before the first entry of their vCPU.
    pub(super) fn count_exits(&self) -> Option<EventAccount> {
        let rows = &self.tables[VMEXIT];
        if !rows.wanted {
            return None;
        }
        let timed = rows.rows.iter().map(|row| row.stats.count());
        let timed = timed.fold(0, u64::saturating_add);
        let unpaired = self.unpaired();
        let not_timed = sum(unpaired
            .before_first_entry
            .iter()
            .chain(&unpaired.without_entry));
        let untimed = &self.untimed;
        let others =
            untimed.without_thread + untimed.unreadable + untimed.clock_back + untimed.first;
        Some(EventAccount {
            which: AccountedEvents::Kinds(&[Kind::KvmExit]),
            name: "kvm_exit",
            of: AccountScope::Chosen,
            events: timed
                .saturating_add(not_timed)
                .saturating_add(others)
                .saturating_sub(untimed.inner),
        })
    }
}
