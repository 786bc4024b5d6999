//! vCPU threads move from CPU to CPU.

use analysis::TaskRow;

use super::preempted::pinning;
use crate::case::plural;
use crate::{Case, Finding, Remedy, Rule, Severity, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "vcpu-migrates",
    title: "vCPU threads move from CPU to CPU",
    looks_at: "how often the scheduler moves the threads of vCPUs",
    needs: "sched:sched_migrate_task, or sched:sched_switch of the whole host, and kvm_exit or kvm_entry to know the threads",
    measures: &[],
    cause: "Each move leaves caches, TLB entries and the virtual processor's state (VMCS, loaded per CPU) behind, and \
            across NUMA nodes the memory as well. Posted interrupts and timers have to follow.",
    remedies: &[Remedy {
        what: "Pin vCPUs (<vcpupin> in <cputune>), each to a CPU or all to the CPUs of the NUMA node that has the guest's \
               memory.",
        price: "The scheduler cannot evade a busy CPU any more: a vCPU waits behind whatever else runs there.",
        unless: "Not where vCPUs are more than CPUs, nor without keeping other tasks off these CPUs.",
        check: "trapline sched: migrations of the vCPUs' threads.",
    }],
    sources: &[
        "Linux, include/trace/events/sched.h (sched_migrate_task); arch/x86/kvm (vcpu_load)",
        "libvirt, formatdomain: CPU Tuning",
    ],
    look,
};

/// Moves of one vCPU in a second that are more than balancing now and then.
const MANY_PER_SECOND: f64 = 20.0;

fn look(case: &Case<'_>) -> Verdict {
    let tids = case.vcpu_tids();
    let Some(sched) = &case.picture.sched else {
        return lacks();
    };
    if tids.is_empty() {
        return lacks();
    }
    let mut rows: Vec<&TaskRow> = sched
        .rows
        .iter()
        .filter(|row| tids.contains(&row.tid))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.migrations));
    let Some(worst) = rows.first() else {
        return if sched.rows.is_empty() {
            lacks()
        } else {
            Verdict::Clear
        };
    };
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    let moves: u64 = rows.iter().map(|row| row.migrations).sum();
    let rate = worst.migrations as f64 / case.seconds();
    if worst.migrations < 50 || rate < MANY_PER_SECOND {
        return Verdict::Clear;
    }
    let mut finding = Finding::new(&RULE, 0.9).title(format!(
        "vCPU threads moved to another CPU {moves} times, the worst {rate:.0} times a second"
    ));
    for row in rows.iter().take(4).filter(|row| row.migrations > 0) {
        finding = finding.evidence(format!(
            "{} (thread {}): moved {}, in {}.",
            row.comm,
            row.tid,
            plural(row.migrations, "time"),
            plural(row.delays.count(), "run"),
        ));
    }
    if rate >= 200.0 {
        finding.at_least = Severity::Medium;
    }
    if let (Some(domain), Some(host)) = (case.domain, case.host()) {
        finding = finding.changes(0, pinning(domain, host));
    }
    if case
        .domain
        .is_some_and(|domain| !domain.vcpu_pins.is_empty())
    {
        finding = finding.evidence("The guest's definition pins vCPUs: those pins were not in force, or hold several CPUs.");
    }
    finding.found()
}

fn lacks() -> Verdict {
    Verdict::Lacks(
        "Record kvm:kvm_exit, kvm:kvm_entry, sched:sched_switch and sched:sched_migrate_task of the whole host (-a) to know."
            .to_owned(),
    )
}
