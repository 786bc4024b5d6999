//! The account of the CPU time of other threads that work for VMs: the VMM's, back ends', helpers'.

use std::collections::HashSet;

use analysis::TaskRow;

use super::ledger::{AccountRow, TimeAccount};
use super::part::AccountPart;
use crate::Case;
use crate::case::VmHelpers;

/// A thread that works for a VM may take this share of a CPU: one that takes more is what everything waits for.
/// `disk-healthy` has a main loop of 35 %.
const OF_CPU: f64 = 0.9;

/// Returns it with nothing explained. Threads that take less than [`OF_CPU`] of a CPU are normal.
pub(super) fn account(case: &Case<'_>) -> TimeAccount {
    let Some(report) = &case.picture.sched else {
        return TimeAccount::default();
    };
    let vcpus = case.vcpu_tids();
    let helpers = case.vm_helpers();
    let recorder: HashSet<i32> = {
        let threads = case.picture.recorder.threads.iter();
        threads.map(|thread| thread.tid).collect()
    };
    let mut small = 0u64;
    let mut rows = Vec::new();
    let span = case.picture.span_ns.unwrap_or(0) as f64;
    for task in &report.rows {
        if vcpus.contains(&task.tid)
            || recorder.contains(&task.tid)
            || !works_for_vms(&helpers, task)
        {
            continue;
        }
        let ns = task.on_cpu_ns.max(task.runtime_ns);
        if (ns as f64) < span * OF_CPU {
            small = small.saturating_add(ns);
            continue;
        }
        let name = words::with_thread(&task.comm, task.tid);
        rows.push(AccountRow::new(AccountPart::Thread, name, ns, "sched"));
    }
    let part = AccountPart::OtherThreads;
    rows.push(AccountRow::new(
        part,
        "threads that leave a CPU idle at times",
        small,
        "sched",
    ));
    TimeAccount::new(rows)
}

fn works_for_vms(helpers: &VmHelpers, task: &TaskRow) -> bool {
    helpers.has_named(task.tid, &task.comm) || task.pid.is_some_and(|pid| helpers.has(pid))
}
