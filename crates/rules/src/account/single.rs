//! The account of each vCPU by itself: one of sixteen that is lost in its exits is six per cent of the sum of all.

use analysis::VcpuRow;
use event::ExitClass;
use model::State;

use super::ledger::{AccountRow, TimeAccount};
use super::part::AccountPart;
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
    let observed = |row: &&&VcpuRow| row.times.total() as f64 >= longest as f64 * OBSERVED;
    rows.iter()
        .filter(observed)
        .map(|row| {
            let mut account = TimeAccount::new(parts(case, row));
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

fn parts(case: &Case<'_>, vcpu: &VcpuRow) -> Vec<AccountRow> {
    let of = |state: State| vcpu.times.get(state);
    let mut out = Vec::new();
    let mut push = |part: AccountPart, name: String, ns: u64, shown_by: &str| {
        out.push(AccountRow::new(part, name, ns, shown_by));
    };
    let states = [
        (AccountPart::Guest, "in the guest", State::Guest),
        (AccountPart::Halted, "halted", State::Halted),
        (AccountPart::Polling, "halt polling", State::Poll),
        (
            AccountPart::AsleepInKvm,
            "asleep in KVM, not in a halt",
            State::KernelBlocked,
        ),
        (
            AccountPart::AsleepInVmm,
            "asleep in the VMM",
            State::UserBlocked,
        ),
    ];
    for (part, name, state) in states {
        push(part, name.to_owned(), of(state), "vcpus");
    }
    let mut handling = case.picture.handling.iter();
    let handling = handling.find(|one| one.tid == vcpu.tid);
    let classes = handling.map_or(&[][..], |one| &one.classes);
    let (mut kvm, mut vmm, mut unknown) = (of(State::Kernel), of(State::User), of(State::Unknown));
    for one in classes {
        let by_vcpu = "exits --by vcpu";
        let in_kvm = one.kvm_ns.min(kvm);
        let in_vmm = one.vmm_ns.min(vmm);
        // What the walk took for KVM's is not known to be, where no exit to the VMM is recorded.
        let left = (one.kvm_ns - in_kvm).saturating_add(one.vmm_ns - in_vmm);
        let left = match one.class {
            ExitClass::Waiting => one.either_ns,
            _ => one.either_ns.saturating_add(left),
        };
        let either = left.min(unknown);
        kvm -= in_kvm;
        vmm -= in_vmm;
        unknown -= either;
        let parts = [
            (AccountPart::Kvm(one.class), "in KVM", in_kvm),
            (AccountPart::Vmm(one.class), "in the VMM", in_vmm),
            (
                AccountPart::KvmOrVmm(one.class),
                "in KVM or the VMM",
                either,
            ),
        ];
        for (part, by, ns) in parts {
            push(part, format!("{} {by}", one.class.exits()), ns, by_vcpu);
        }
    }
    push(
        AccountPart::NotRecorded,
        "not recorded".to_owned(),
        unknown.saturating_add(kvm).saturating_add(vmm),
        "vcpus",
    );
    let idle = vcpu.behind.iter().filter(|holder| holder.tid == Some(0));
    let idle = idle.map(|holder| holder.ns).fold(0, u64::saturating_add);
    let runnable = of(State::Runnable);
    let idle = idle.min(runnable);
    let behind = runnable - idle;
    // Behind the recorder any of them may have waited.
    let recorder = behind.min(case.picture.waits.recorder_ns());
    let waits = [
        (
            AccountPart::RunnableIdle,
            "runnable while its CPU was idle",
            idle,
        ),
        (
            AccountPart::RunnableRecorder,
            "waiting for a CPU behind the recorder",
            recorder,
        ),
        (
            AccountPart::RunnableBehind,
            "waiting for a CPU behind other tasks",
            behind - recorder,
        ),
    ];
    for (part, name, ns) in waits {
        push(part, name.to_owned(), ns, "vcpus");
    }
    out
}
