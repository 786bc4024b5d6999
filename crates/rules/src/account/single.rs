//! The account of each vCPU by itself: one of sixteen that is lost in its exits is six per cent of the sum of all.

use std::collections::HashMap;

use analysis::{HandledClass, VcpuRow};
use model::State;

use super::ledger::{AccountRow, TimeAccount};
use super::part::AccountPart;
use super::vcpus::{states, waits};
use crate::Case;

/// A vCPU that was observed for less of the longest that any was is not judged by itself: what it did first, or last,
/// is not what it does.
const OBSERVED: f64 = 0.5;

/// One vCPU's account.
#[derive(Debug, Clone, PartialEq)]
pub struct VcpuAccount {
    /// Its thread.
    pub tid: i32,
    /// What it is called.
    pub called: String,
    /// Where its time went. What findings explain of all vCPUs' is taken for this one's as far as it goes.
    pub account: TimeAccount,
}

/// Returns the accounts of vCPUs where there are several, with what findings explain of all of them.
pub(super) fn accounts(case: &Case<'_>, all: &TimeAccount) -> Vec<VcpuAccount> {
    let rows = case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let rows = rows.filter(|row| row.others == 0 && !row.presumed);
    let rows: Vec<&VcpuRow> = rows.collect();
    let longest = rows.iter().map(|row| row.times.total()).max().unwrap_or(0);
    if rows.len() < 2 {
        return Vec::new();
    }
    let mut classes: HashMap<i32, Vec<&HandledClass>> = HashMap::new();
    for handled in &case.picture.handling {
        let of_vcpu = classes.entry(handled.tid).or_default();
        of_vcpu.extend(&handled.classes);
    }
    let recorder_ns = case.picture.waits.recorder_ns();
    let observed = |row: &&&VcpuRow| row.times.total() as f64 >= longest as f64 * OBSERVED;
    rows.iter()
        .filter(observed)
        .map(|row| {
            let classes = classes.get(&row.tid).map_or(&[][..], Vec::as_slice);
            let mut account = TimeAccount::new(parts(row, classes, recorder_ns));
            for one in &mut account.rows {
                one.explained_ns = one.ns.min(all.explained_of(one.part));
            }
            account.judge_single();
            VcpuAccount {
                tid: row.tid,
                called: row.called.clone(),
                account,
            }
        })
        .collect()
}

/// Returns the parts of a vCPU's time; `recorder_ns` is for how long vCPUs waited behind the recorder.
fn parts(vcpu: &VcpuRow, classes: &[&HandledClass], recorder_ns: u64) -> Vec<AccountRow> {
    let of = |state: State| vcpu.times.get(state);
    let mut rows = states(of);
    let mut rest = of(State::Kernel) + of(State::User) + of(State::Unknown);
    for HandledClass { class, times } in classes {
        for (part, state, by) in [
            (AccountPart::Kvm(*class), State::Kernel, "in KVM"),
            (AccountPart::Vmm(*class), State::User, "in the VMM"),
            (
                AccountPart::KvmOrVmm(*class),
                State::Unknown,
                "in KVM or the VMM",
            ),
        ] {
            let ns = times.get(state).min(rest);
            rest -= ns;
            let name = format!("{} {by}", class.exits());
            rows.push(AccountRow::new(part, name, ns, "exits --by vcpu"));
        }
    }
    let part = AccountPart::NotRecorded;
    rows.push(AccountRow::new(part, "not recorded", rest, "vcpus"));
    let idle = vcpu.behind.iter().filter(|holder| holder.tid == Some(0));
    let idle = idle.map(|holder| holder.ns).fold(0, u64::saturating_add);
    let runnable = of(State::Runnable);
    let idle = idle.min(runnable);
    let behind = runnable - idle;
    // Behind the recorder any of them may have waited.
    let recorder = behind.min(recorder_ns);
    rows.extend(waits(idle, recorder, behind - recorder));
    rows
}
