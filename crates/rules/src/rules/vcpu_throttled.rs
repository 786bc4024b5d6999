//! vCPUs can run, their CPUs are idle, and they do not get them.

use analysis::VcpuRow;
use facts::LogKind;
use model::State;
use words::duration::human;

use crate::account::AccountPart;
use crate::evidence::{Ns, Of, says};
use crate::groups::CpuQuota;
use crate::kernel_log;
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Severity, Verdict, definition,
};

/// Share of the vCPUs' time.
const SHARE: f64 = 0.05;
/// The longest wait: a CPU is out of its deepest idle state within a millisecond, and a quota's period is 100 ms by
/// default and 1 ms at least.
const LONG_NS: u64 = 5_000_000;

/// The mean of these waits: where waking up a CPU is slow, all of them are, and none is long.
const EACH_NS: u64 = 1_000_000;

/// How sure it is where the guest's definition has a quota.
const DEFINED: f64 = 0.9;
/// How sure it is where the kernel counted that a quota was used up, and where its groups have none.
const COUNTED: f64 = 0.95;
const NO_QUOTA: f64 = 0.6;

/// Share of these waits that began when the vCPU left its CPU runnable, for the idle task.
const TAKEN: f64 = 0.25;

pub(crate) static RULE: Rule = Rule {
    id: "vcpu-throttled",
    title: "vCPUs are runnable, and their CPUs idle",
    described_as: &[
        "steal though the host is idle",
        "ping jumps every 100 ms",
        "CPU quota, cpu.max, nr_throttled",
        "the VM stops and goes at a fixed rate",
    ],
    looks_at: "vCPUs that wait for a CPU: how long that CPU was idle meanwhile",
    needs: "sched:sched_switch and sched:sched_wakeup of the whole host",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched],
    measures: &[],
    cause: "The scheduler may not run the vCPU's thread: its cgroup has used up its quota (cpu.max, CPUQuota=, \
    libvirt's \
        <quota>), the class of real-time tasks has used up its own (sched_rt_runtime_us), or core scheduling keeps the \
        CPU for tasks of another group. The guest sees steal, and stands still for the rest of each period.",
    found: &[
        "vCPUs were runnable while their CPUs were idle for {share} of their observed time and more, and one of these \
         waits took {long} or more, which no way out of idling does; their mean is {each} or more. {taken} of it or \
         more began when a \
         vCPU left its CPU runnable, for the idle task: nothing but the scheduler does that. Confidence 0.85.",
        "With facts of the host: 0.95 where a control group of the VM has a quota and was throttled, also without the \
         scheduler's events if that was counted during the recording (`trapline record` does); 0.6 where none of them \
         was. 0.9 where the guest's definition limits its CPU time, and where the host's kernel log says during the \
         recording that real-time tasks were throttled.",
    ],
    limits: &[
        ("share", EvidenceNumber::Share(SHARE)),
        ("taken", EvidenceNumber::Share(TAKEN)),
        ("each", EvidenceNumber::Nanoseconds(EACH_NS)),
        ("long", EvidenceNumber::Nanoseconds(LONG_NS)),
    ],
    seen_from: "{share} of the vCPUs' time runnable while CPUs were idle, with one wait of {long}",
    unknown: "*all*, of the whole host (`-a`).",
    advice: "",
    looks_alike: "A CPU that another task has is [vcpu-preempted](#vcpu-preempted). A way out of a deep idle state \
        takes microseconds each time. Where a host stands still, no event at all comes from it \
        ([stalled-vcpu](#stalled-vcpu)).",
    remedies: &[
        Remedy {
            what: "Look at cpu.max and cpu.stat (nr_throttled, throttled_usec) of the VM's cgroup and of those above \
            it, \
                and at <quota> and <period> in <cputune>; raise the quota or take it away (virsh schedinfo DOM \
                --set vcpu_quota=-1; echo max > cpu.max).",
            price: "The VM may take more CPU time from others.",
            unless: "The limit is what the VM's owner pays for.",
            check: "throttled_usec stands still; trapline vcpus: no runnable time behind an idle CPU.",
        },
        Remedy {
            what: "If a limit has to stay, make its period shorter, so that each stop is (cpu.max: \"30000 10000\"; \
                <period>10000</period>), and count the VMM's own threads in (<emulator_quota>).",
            price: "More work for the scheduler.",
            unless: "A period below some milliseconds costs more than it smooths.",
            check: "trapline vcpus: the longest wait is shorter.",
        },
        Remedy {
            what: "If its threads are real-time (SCHED_FIFO), see sched_rt_runtime_us; with core scheduling, see which \
                group has the sibling.",
            price: "A real-time task that loops can stop a CPU.",
            unless: "Its threads are not real-time.",
            check: "trapline diagnose of a new recording.",
        },
    ],
    sources: &[
        "Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max, cpu.stat); Documentation/scheduler/sched-bwc.rst",
        "Linux, kernel/sched/rt.c (sched_rt_runtime_exceeded: RT throttling activated)",
        "Linux, Documentation/scheduler/sched-rt-group.rst; Documentation/admin-guide/hw-vuln/core-scheduling.rst",
    ],
    explains: &[ExplainedTime::Part(AccountPart::RunnableIdle)],
    look: RuleLook::Case(look),
};

/// What a vCPU waited for a CPU that was idle.
fn idle_ns(row: &VcpuRow) -> u64 {
    let idle = row.behind.iter().filter(|holder| holder.tid == Some(0));
    idle.map(|holder| holder.ns).fold(0, u64::saturating_add)
}

/// What vCPUs waited that left their CPUs runnable, for the idle task: the scheduler took them off.
fn taken_by_idle_ns(case: &Case<'_>) -> u64 {
    let vcpus = case.vcpu_tids();
    let tasks = case.picture.sched.iter().flat_map(|report| &report.rows);
    let vcpus = tasks.filter(|task| vcpus.contains(&task.tid));
    let taken = vcpus.flat_map(|task| &task.preempted_by);
    let taken = taken.filter(|other| other.tid == Some(0));
    taken.map(|other| other.ns).fold(0, u64::saturating_add)
}

fn idle_times(row: &VcpuRow) -> u64 {
    let idle = row.behind.iter().filter(|holder| holder.tid == Some(0));
    idle.map(|holder| holder.count).fold(0, u64::saturating_add)
}

/// Returns whether vCPUs seem to be throttled.
pub(crate) fn is_throttled(case: &Case<'_>) -> bool {
    matches!(look(case), Verdict::Found(_))
}

fn look(case: &Case<'_>) -> Verdict {
    let Some(report) = (case.picture.vcpus.as_ref())
        .filter(|report| !report.rows.is_empty() && report.seen.switches && report.seen.returns)
    else {
        return counted_alone(case);
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let ns = report.rows.iter().map(idle_ns).fold(0, u64::saturating_add);
    let long = report.rows.iter().map(|row| row.waits.max()).max();
    let observed = case.picture.observed_ns();
    let times: u64 = report
        .rows
        .iter()
        .map(idle_times)
        .fold(0, u64::saturating_add);
    let often = ns as f64 >= observed as f64 * SHARE && ns >= times.saturating_mul(EACH_NS);
    let taken = taken_by_idle_ns(case);
    let often = often && taken as f64 >= ns as f64 * TAKEN;
    if !often || ns == 0 || long.unwrap_or(0) < LONG_NS {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, &report.rows, ns).found()
}

/// Without the scheduler's events the kernel's own counters show it, where they were read before and after.
fn counted_alone(case: &Case<'_>) -> Verdict {
    let quotas = case.cpu_quotas().unwrap_or_default();
    let throttled = |quota: &&CpuQuota<'_>| quota.is_of_recording() && quota.throttled().0 > 0;
    let Some(quota) = quotas.iter().find(throttled) else {
        return Verdict::Unknown(
            "Record sched:sched_switch, sched:sched_wakeup and kvm:kvm_exit of the whole host (-a)."
                .to_owned(),
        );
    };
    let (periods, ns) = quota.throttled();
    let mut finding = Finding::new(&RULE, COUNTED)
        .rests_on(RestsOn::Counts)
        .title(format!(
            "The VM's CPU quota was used up in {periods} periods, and it was throttled for {}",
            human(ns)
        ))
        .evidence(quota.said())
        .evidence(
            "How long each vCPU waited for it is not known: sched:sched_switch of the whole host was not recorded.",
        );
    finding.at_least = Severity::Medium;
    finding.found()
}

fn say(case: &Case<'_>, rows: &[VcpuRow], ns: u64) -> Finding {
    // What the kernel counts shows the cause itself; a host of which groups are known and have no quota has another.
    let quotas = case.cpu_quotas();
    let throttled = |quota: &&CpuQuota<'_>| quota.throttled().0 > 0;
    let quota = quotas.iter().flatten().find(throttled).copied();
    let defined = case.domain.and_then(definition::cpu_quota);
    let logged = case.logged(LogKind::RtThrottling);
    let confidence = match (&quotas, quota, &defined) {
        (_, None, None) if !logged.is_empty() => DEFINED,
        (_, Some(_), _) => COUNTED,
        (_, None, Some(_)) => DEFINED,
        (Some(_), None, None) => NO_QUOTA,
        (None, None, None) => 0.85,
    };
    let rests_on = match (quota, &defined) {
        (None, None) if logged.is_empty() => RestsOn::Absence,
        _ => RestsOn::Times,
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(rests_on)
        .cost(case.vcpu_cost(ns))
        .title(format!(
            "vCPUs were runnable for {} while their CPUs were idle, as under a CPU quota",
            human(ns)
        ));
    if let Some(quota) = quota {
        finding = finding.evidence(quota.said());
    } else if let Some(defined) = defined {
        finding = finding.evidence(says!(
            "The guest's definition: {quota}",
            quota = defined.as_str()
        ));
    } else if let Some(said) = kernel_log::said(&logged) {
        finding = finding.evidence(said).only(&[2, 0]);
    } else if quotas.is_some() {
        finding = finding
            .evidence(
                "None of the control groups that facts of the host have of the VM was throttled by a quota: real-time \
                 throttling, core scheduling, or a group that they do not have.",
            )
            .only(&[2, 0]);
    }
    if quota.is_none() && logged.is_empty() && case.logged_before(LogKind::RtThrottling) {
        finding = finding.evidence(
            "The host's kernel log says of another time that real-time tasks were throttled; it says so once after \
             each start of the host, however often it is.",
        );
    }
    let mut rows: Vec<&VcpuRow> = rows.iter().filter(|row| idle_ns(row) > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(idle_ns(row)));
    for row in rows.iter().take(4) {
        finding = finding.evidence(says!(
            "{vcpu}: {time} of {observed} ({share}) runnable behind an idle CPU; {waits} waits, {long} at most.",
            vcpu = case.vcpu_called(row.tid).capital(),
            time = Ns(idle_ns(row)),
            observed = Ns(row.times.total()),
            share = Of(idle_ns(row), row.times.total()),
            waits = row.waits.count(),
            long = Ns(row.waits.max()),
        ));
    }
    finding.evidence(says!(
        "They ran in their guests for {time}.",
        time = Ns(case.picture.state_ns(State::Guest)),
    ))
}
