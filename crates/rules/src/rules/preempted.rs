//! A vCPU waits for a CPU that another task has.

use analysis::VcpuRow;
use cpuset::CpuSet;
use domain::Change;
use model::State;
use stats::duration::human;

use crate::case::percent;
use crate::{Case, Finding, Remedy, Rule, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "vcpu-preempted",
    title: "vCPUs wait for CPUs that other tasks have",
    looks_at: "time in which a vCPU's thread could run and had no CPU, and which tasks ran there meanwhile",
    needs: "kvm_exit, kvm_entry, sched:sched_switch and sched:sched_wakeup of the whole host (perf record -a)",
    measures: &["vcpus runnable"],
    cause: "The vCPU's thread was preempted, or woken behind a task that kept the CPU. The guest sees its time pass and \
            nothing happen (steal time), and whoever waits for a lock that this vCPU holds waits as well.",
    remedies: &[
        Remedy {
            what: "Keep others off the vCPUs' CPUs: pin vCPUs one to a CPU (<vcpupin>), and the VMM's other threads, vhost \
                   workers and the host's own tasks elsewhere (<emulatorpin>, isolcpus= or cpusets).",
            price: "These CPUs are the guest's also when it is idle; the others have to carry all else.",
            unless: "Not where vCPUs are more than CPUs: pinning then fixes who waits for whom.",
            check: "trapline vcpus: the share of runnable time, and behind whom.",
        },
        Remedy {
            what: "Where CPUs are shared on purpose: weigh the guests (<shares> in <cputune>), or take vCPUs away from those \
                   that need fewer.",
            price: "Another guest gets less.",
            unless: "Not for guests that have to answer in time: weights say nothing about latency.",
            check: "trapline vcpus of all guests.",
        },
    ],
    sources: &[
        "Linux, kernel/sched (prev_state of sched_switch: 0 for a task that is preempted); Documentation/scheduler/sched-stats.rst",
        "libvirt, formatdomain: CPU Tuning",
    ],
    look,
};

fn look(case: &Case<'_>) -> Verdict {
    let Some(report) = &case.picture.vcpus else {
        return lacks();
    };
    if report.rows.is_empty() {
        return lacks();
    }
    if !report.seen.switches || !report.seen.returns {
        return lacks();
    }
    // Time in which the CPU was idle is the way out of idling, and nobody's fault.
    let others = |row: &VcpuRow| -> u64 {
        let behind = row.behind.iter().filter(|behind| behind.tid != Some(0));
        behind.map(|behind| behind.ns).fold(0, u64::saturating_add)
    };
    let total: u64 = report.rows.iter().map(others).fold(0, u64::saturating_add);
    let cost = case.vcpu_cost(total);
    let worst = report.rows.iter().max_by_key(|row| others(row));
    let Some(worst) = worst else { return lacks() };
    let busy = case.picture.busy_ns().max(1);
    if cost.share < 0.02 && (others(worst) as f64) < 0.05 * worst.times.total() as f64
        || total < busy / 50
    {
        return Verdict::Clear;
    }
    let mut tasks: Vec<(String, Option<i32>, u64, u64)> = Vec::new();
    for behind in report
        .rows
        .iter()
        .flat_map(|row| &row.behind)
        .filter(|behind| behind.tid != Some(0))
    {
        match tasks.iter_mut().find(|task| task.1 == behind.tid) {
            Some(task) => {
                task.2 += behind.count;
                task.3 = task.3.saturating_add(behind.ns);
            }
            None => {
                let name = behind.comm.clone().unwrap_or_else(|| "others".to_owned());
                tasks.push((name, behind.tid, behind.count, behind.ns));
            }
        }
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(task.3));
    let first = tasks.first();
    let whom = first.map_or_else(|| "other tasks".to_owned(), |task| task.0.clone());
    let mut finding = Finding::new(&RULE, 0.9).cost(cost).title(format!(
        "vCPUs waited {} for a CPU, most behind {whom}",
        human(total)
    ));
    finding = finding.evidence(format!(
        "{} of the time that vCPUs were observed they could run and another task had the CPU; worst was thread {} (vCPU {}) \
         with {} ({}), {} waits, p99 {}.",
        percent(total, case.picture.observed_ns()),
        worst.tid,
        worst.vcpu,
        human(others(worst)),
        percent(others(worst), worst.times.total()),
        worst.waits.count(),
        human(worst.waits.percentile(0.99)),
    ));
    let vcpus = case.vcpu_tids();
    for (name, tid, count, ns) in tasks.iter().take(4) {
        let thread = tid
            .map(|tid| format!(" (thread {tid})"))
            .unwrap_or_default();
        let is_vcpu = tid.is_some_and(|tid| vcpus.contains(&tid));
        let which = if is_vcpu { ", a vCPU itself" } else { "" };
        finding = finding.evidence(format!(
            "{name}{thread}{which} ran {count} times meanwhile, {}.",
            human(*ns)
        ));
    }
    let guest = report
        .rows
        .iter()
        .map(|row| row.times.get(State::Guest))
        .fold(0, u64::saturating_add);
    finding = finding.evidence(format!("In their guests they were {}.", human(guest)));
    pins(case, finding).found()
}

/// Pins one to a CPU where the definition has none and the host has CPUs enough.
fn pins(case: &Case<'_>, finding: Finding) -> Finding {
    let (Some(domain), Some(host)) = (case.domain, case.host()) else {
        return finding;
    };
    let changes = pinning(domain, host);
    if changes.is_empty() {
        return finding;
    }
    finding.changes(0, changes).note(
        0,
        "The patch gives each vCPU a CPU of its own on one NUMA node, and the VMM's other threads the rest; look that no \
         other guest has them.",
    )
}

/// Returns a CPU for each vCPU, all of one node, or nothing where there are too few or pins are there already.
pub(super) fn pinning(domain: &domain::Domain, host: &facts::Host) -> Vec<Change> {
    let vcpus = domain.vcpus.unwrap_or(0);
    if vcpus == 0 || !domain.vcpu_pins.is_empty() || domain.vcpu_cpuset.is_some() {
        return Vec::new();
    }
    let Some(online) = &host.online else {
        return Vec::new();
    };
    // Interrupts and the host's own tasks gather on the first CPU.
    let free = |cpus: &CpuSet| -> Vec<u32> {
        let isolated = host.isolated.as_ref().filter(|set| !set.is_empty());
        let fits = |cpu: &u32| {
            *cpu != 0 && online.contains(*cpu) && isolated.is_none_or(|set| set.contains(*cpu))
        };
        cpus.iter().filter(fits).collect()
    };
    let nodes = host.nodes.iter().map(|node| free(&node.cpus));
    let whole = std::iter::once(free(online));
    let Some(cpus) = nodes.chain(whole).find(|cpus| cpus.len() >= vcpus as usize) else {
        return Vec::new();
    };
    let mut changes: Vec<Change> = (0..vcpus)
        .zip(&cpus)
        .map(|(vcpu, cpu)| Change::VcpuPin {
            vcpu,
            cpus: [*cpu].into_iter().collect(),
        })
        .collect();
    let used = &cpus[..vcpus as usize];
    let rest: CpuSet = online.iter().filter(|cpu| !used.contains(cpu)).collect();
    if domain.emulator_pin.is_none() && !rest.is_empty() {
        changes.push(Change::EmulatorPin(rest));
    }
    changes
}

fn lacks() -> Verdict {
    Verdict::Lacks(
        "Record kvm:kvm_exit, kvm:kvm_entry, sched:sched_switch and sched:sched_wakeup of the whole host (-a) to know."
            .to_owned(),
    )
}
