//! The account of the vCPUs' time: states, and within exits which reason was handled by whom.

use analysis::{ExitRow, ExitTable};
use event::ExitClass;
use model::State;

use super::ledger::{AccountRow, TimeAccount};
use super::part::AccountPart;
use crate::Case;

/// Returns it with nothing explained.
pub(super) fn account(case: &Case<'_>) -> TimeAccount {
    match case.picture.observed_ns() {
        0 => of_exits(case),
        _ => of_states(case),
    }
}

fn class(row: &ExitRow) -> ExitClass {
    row.reason.map_or(ExitClass::Other, |reason| reason.class())
}

/// A table alone: the time of exits is all that there is.
fn of_exits(case: &Case<'_>) -> TimeAccount {
    let rows = case.picture.rows(ExitTable::Vmexit).iter();
    let rows = rows.map(|row| {
        let part = match row.waiting {
            true => AccountPart::Halted,
            false => AccountPart::Kvm(class(row)),
        };
        let name = format!("{} exits", row.key);
        AccountRow::new(part, name, row.stats.total(), &detail(class(row)))
    });
    TimeAccount {
        of_exits: true,
        ..TimeAccount::new(rows.collect())
    }
}

/// The arguments that open a class of exits.
fn detail(class: ExitClass) -> String {
    match class {
        ExitClass::Port => "exits --event ioport",
        ExitClass::Mmio | ExitClass::PageFault => "exits --event mmio",
        ExitClass::Msr => "exits --event msr",
        _ => "exits",
    }
    .to_owned()
}

/// What is left of a state while rows take their parts of it.
struct StateRest(u64);

impl StateRest {
    fn of(case: &Case<'_>, state: State) -> StateRest {
        StateRest(case.picture.state_ns(state))
    }

    /// Takes a part, at most what is left: exits may reach beyond the time in which vCPUs were observed.
    fn take(&mut self, ns: u64) -> u64 {
        let ns = ns.min(self.0);
        self.0 -= ns;
        ns
    }
}

/// Returns the rows of states that are what they are called.
pub(super) fn states(ns: impl Fn(State) -> u64) -> Vec<AccountRow> {
    let row = |part, name, state, shown_by| AccountRow::new(part, name, ns(state), shown_by);
    vec![
        row(AccountPart::Guest, "in the guest", State::Guest, "vcpus"),
        row(AccountPart::Halted, "halted", State::Halted, "vcpus"),
        row(AccountPart::Polling, "halt polling", State::Poll, "vcpus"),
        row(
            AccountPart::AsleepInKvm,
            "asleep in KVM, not in a halt",
            State::KernelBlocked,
            "exits",
        ),
        row(
            AccountPart::AsleepInVmm,
            "asleep in the VMM",
            State::UserBlocked,
            "vcpus",
        ),
    ]
}

/// Returns the rows of waits for a CPU, by who had it.
pub(super) fn waits(idle_ns: u64, recorder_ns: u64, behind_ns: u64) -> Vec<AccountRow> {
    let row = |part, name, ns| AccountRow::new(part, name, ns, "vcpus");
    vec![
        row(
            AccountPart::RunnableIdle,
            "runnable while its CPU was idle",
            idle_ns,
        ),
        row(
            AccountPart::RunnableRecorder,
            "waiting for a CPU behind the recorder",
            recorder_ns,
        ),
        row(
            AccountPart::RunnableBehind,
            "waiting for a CPU behind other tasks",
            behind_ns,
        ),
    ]
}

fn of_states(case: &Case<'_>) -> TimeAccount {
    let mut rows = states(|state| case.picture.state_ns(state));
    rows.extend(exits(case));
    rows.extend(runnable(case));
    TimeAccount::new(rows)
}

/// What KVM and the VMM had to do, by reason.
fn exits(case: &Case<'_>) -> Vec<AccountRow> {
    let mut out = Vec::new();
    let mut kvm = StateRest::of(case, State::Kernel);
    let mut vmm = StateRest::of(case, State::User);
    let mut unknown = StateRest::of(case, State::Unknown);
    for row in case.picture.rows(ExitTable::Vmexit) {
        let Some(times) = &row.times else {
            continue;
        };
        let (class, shown_by) = (class(row), detail(class(row)));
        let name = format!("{} exits in KVM", row.key);
        let ns = kvm.take(times.get(State::Kernel));
        out.push(AccountRow::new(
            AccountPart::Kvm(class),
            name,
            ns,
            &shown_by,
        ));
        let name = format!("{} exits in the VMM", row.key);
        let ns = vmm.take(times.get(State::User));
        out.push(AccountRow::new(
            AccountPart::Vmm(class),
            name,
            ns,
            &shown_by,
        ));
    }
    // Without kvm_userspace_exit handling is known by its reason all the same.
    for row in case.picture.rows(ExitTable::Vmexit) {
        let either = (row.times.as_ref()).filter(|_| !row.waiting && row.reason.is_some());
        let Some(times) = either else {
            continue;
        };
        let name = format!("{} exits in KVM or the VMM", row.key);
        let ns = unknown.take(times.get(State::Unknown));
        let part = AccountPart::KvmOrVmm(class(row));
        out.push(AccountRow::new(part, name, ns, &detail(class(row))));
    }
    let part = AccountPart::NotRecorded;
    out.push(AccountRow::new(part, "not recorded", unknown.0, "vcpus"));
    let other = AccountPart::Kvm(ExitClass::Other);
    out.push(AccountRow::new(other, "other time in KVM", kvm.0, "exits"));
    let other = AccountPart::Vmm(ExitClass::Other);
    out.push(AccountRow::new(
        other,
        "other time in the VMM",
        vmm.0,
        "vcpus",
    ));
    out
}

/// What they waited for a CPU, by who had it.
fn runnable(case: &Case<'_>) -> Vec<AccountRow> {
    let mut rest = StateRest::of(case, State::Runnable);
    let holders = case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let idle = holders
        .flat_map(|row| &row.behind)
        .filter(|holder| holder.tid == Some(0))
        .map(|holder| holder.ns);
    let idle = rest.take(idle.fold(0, u64::saturating_add));
    let recorder = rest.take(case.picture.waits.recorder_ns());
    waits(idle, recorder, rest.0)
}
