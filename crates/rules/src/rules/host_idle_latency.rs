//! Threads of VMs are woken, and their CPUs take long to leave their idle states.

use analysis::{IdleWakeupsReport, IdleWakeupsRow, Stats};
use words::duration::human;

use crate::account::AccountPart;
use crate::evidence::{Evidence, Id, Ns, Of, ThreadMention, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds, Remedy, Rule, RuleLook,
    Verdict,
};

/// Wake-ups that show it.
const LEAST: u64 = 100;
/// How long a CPU takes typically. Shallow states are left within some microseconds; the table of `intel_idle` has 85
/// to 200 us for C6 of servers, that of arm64 platforms' firmware a hundred and more for powered-down clusters.
const EACH_NS: u64 = 20_000;
/// Share of the vCPUs' time, or of the recorded time for a thread that works for VMs.
const SHARE: f64 = 0.01;
/// Share of the waits: less, and something else is what makes them long.
const OF_WAITS: f64 = 0.4;
/// Share of the waits for other states than 0 that were for state 1.
const SHALLOW: f64 = 0.9;
/// The remedy that helps whatever the state is, by its position.
const POLL: usize = 2;
/// Threads that are listed.
const LISTED: usize = 4;

pub(crate) static RULE: Rule = Rule {
    id: "host-idle-latency",
    title: "Idle CPUs of the host take long to run a VM's thread that is woken",
    described_as: &[
        "latency is worse when the host is idle",
        "ping is faster under load than on an idle system",
        "C-states add 50 to 200 us",
        "wake-up latency of an idle vCPU",
        "the first packet after a pause is slow",
    ],
    looks_at: "vCPUs, vhost workers and the VMM's threads that are woken for an idle CPU: how long that CPU is still \
        in its idle state",
    needs: "power:cpu_idle, sched:sched_waking and sched:sched_switch of the whole host",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "A CPU that has nothing to do goes into an idle state (C-state). The deeper the state, the longer it takes \
        to leave it: a microsecond for the first, a hundred and more for the deepest. Whoever is woken for that CPU \
        waits for it, though nobody else runs there: each answer of a guest that is mostly idle is late by as much.",
    found: &[
        "{least} wake-ups of threads of VMs for CPUs in an idle state other than 0 (the polling loop on x86, WFI on \
         arm64), of which half wait for {each} or more until the CPU has left it. All of it is {share} of the vCPUs' \
         time or more (for other threads, of the recorded time) and {part} of what these threads wait for idle CPUs. \
         Confidence 0.9: both ends are events. Time after the CPU has left its state is not in it, and neither are \
         waits behind another task.",
        "On x86 state 1 is C1, which hardware leaves within 10 us. If {shallow} of it is of state 1, no deeper state \
         is the cause, and the host may be a VM itself: 0.5. So it is on arm64 where no CPU was in state 0: without \
         a cpuidle driver state 1 is WFI.",
        "Where a timer or a device wakes a thread, its interrupt waits for the same before any event: that is not \
         counted, so the cost is a lower bound.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("each", EvidenceNumber::Nanoseconds(EACH_NS)),
        ("share", EvidenceNumber::Share(SHARE)),
        ("part", EvidenceNumber::Share(OF_WAITS)),
        ("shallow", EvidenceNumber::Share(SHALLOW)),
    ],
    seen_from: "{least} wake-ups for CPUs that take {each} each to leave an idle state, {share} of the vCPUs' time",
    unknown: "*all*, with `power:cpu_idle`. It cannot tell where that is missing and waits for idle CPUs are long.",
    advice: "",
    looks_alike: "A CPU that another task has is [vcpu-preempted](#vcpu-preempted) or \
        [helper-waits-for-cpu](#helper-waits-for-cpu); a CPU that is idle because the thread may not run is \
        [vcpu-throttled](#vcpu-throttled), whose waits take milliseconds. Where the host is a VM itself, leaving \
        state 1 means that the hypervisor below has to run it again: look there.",
    remedies: &[
        Remedy {
            what: "Try it first: hold /dev/cpu_dma_latency open with a limit in microseconds (cpu_dma_latency 10), as \
                tuned's profiles latency-performance and network-latency do; for some CPUs alone \
                pm_qos_resume_latency_us in /sys/devices/system/cpu/cpuN/power.",
            price: "Power and heat: idle CPUs stay awake, and the others have less room for turbo.",
            unless: "The host is to save power, or its guests do not care for some hundred microseconds.",
            check: "trapline diagnose of a new recording, and trapline paths: 'woken' to 'on CPU' is short.",
        },
        Remedy {
            what: "Turn the deep states off: cpupower idle-set -D 20 disables all that take longer than 20 us to \
                leave; at boot, on x86 intel_idle.max_cstate=1 and processor.max_cstate=1, on arm64 cpuidle.off=1.",
            price: "As above, for all CPUs and all the time.",
            unless: "The host's firmware chooses states by itself (C1E, package states): then see its settings.",
            check: "cpupower idle-info, and trapline diagnose of a new recording.",
        },
        Remedy {
            what: "Have KVM poll before a vCPU blocks (halt_poll_ns=200000), so that short halts do not reach the idle \
                loop; or have the host's idle loop poll: idle=poll on x86, nohlt on arm64.",
            price: "Polling burns the CPU that it saves the latency of; idle=poll burns every idle CPU, and takes the \
                turbo of the siblings.",
            unless: "Guests sleep for longer than one would poll; or hyperthreads share the cores.",
            check: "trapline vcpus: polling and halted time; trapline diagnose of a new recording.",
        },
    ],
    sources: &[
        "Linux, drivers/cpuidle/cpuidle.c (cpuidle_enter_state), include/trace/events/power.h (PWR_EVENT_EXIT)",
        "Linux, Documentation/admin-guide/pm/cpuidle.rst, Documentation/power/pm_qos_interface.rst; drivers/idle/\
         intel_idle.c (exit_latency)",
        "Linux, kernel/sched/core.c (ttwu_queue_cond)",
    ],
    // Where sched_wakeup comes when the CPU has left its state, the vCPU counts as halted until then.
    explains: &[
        ExplainedTime::Part(AccountPart::RunnableIdle),
        ExplainedTime::Part(AccountPart::Halted),
    ],
    look: RuleLook::Case(look),
};

/// What a sum over threads is.
fn sum<'r>(
    rows: impl IntoIterator<Item = &'r IdleWakeupsRow>,
    of: fn(&IdleWakeupsRow) -> u64,
) -> u64 {
    rows.into_iter().map(of).fold(0, u64::saturating_add)
}

fn vcpus(idle: &IdleWakeupsReport) -> impl Iterator<Item = &IdleWakeupsRow> {
    idle.rows.iter().filter(|row| row.is_vcpu)
}

/// How long all waits for states other than 0 took.
fn deep(idle: &IdleWakeupsReport) -> Stats {
    let mut all = Stats::default();
    for (_, waits) in idle.states.iter().filter(|(state, _)| *state > 0) {
        all.merge(waits);
    }
    all
}

fn look(case: &Case<'_>) -> Verdict {
    const RECORD: &str = "Record power:cpu_idle, sched:sched_waking and sched:sched_switch of the whole host (-a) with \
                          kvm:kvm_entry: how long idle CPUs take to run a VM's thread is not known.";
    if case.printed() || case.picture.sched.is_none() || case.picture.vcpus.is_none() {
        return Verdict::Unknown(RECORD.to_owned());
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let idle = &case.picture.idle;
    let waits = &idle.waits;
    if !idle.has_states || !idle.has_wakings {
        // All of such waits is as much as idle states can be.
        let long = waits.count() >= LEAST && waits.percentile(0.5) >= EACH_NS;
        let of_vcpus = case.vcpu_cost(sum(vcpus(idle), |row| row.ns)).share;
        let most = idle.rows.iter().map(|row| row.ns).max().unwrap_or(0);
        let much = of_vcpus >= SHARE || case.span_cost(most).share >= SHARE;
        return match long && much {
            true => Verdict::Unknown(RECORD.to_owned()),
            false => Verdict::Clear,
        };
    }
    let all = deep(idle);
    let often = all.count() >= LEAST && all.percentile(0.5) >= EACH_NS;
    let part = all.total() as f64 >= waits.total() as f64 * OF_WAITS;
    let cost = case.vcpu_cost(sum(vcpus(idle), |row| row.deep_ns));
    let helpers = idle.rows.iter().filter(|row| !row.is_vcpu);
    let longest = helpers.map(|row| row.deep_ns).max().unwrap_or(0);
    let much = cost.share >= SHARE || case.span_cost(longest).share >= SHARE;
    if !often || !part || !much {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, &all, cost).found()
}

fn say(case: &Case<'_>, all: &Stats, cost: FindingCost) -> Finding {
    let idle = &case.picture.idle;
    let first = first_state(case, all);
    let confidence = match first {
        Some(_) => 0.5,
        None => 0.9,
    };
    let mut finding = Finding::new(&RULE, confidence).cost(cost).title(format!(
        "Threads of VMs waited {} times for an idle CPU to leave its idle state, {} typically",
        all.count(),
        human(all.percentile(0.5))
    ));
    finding = finding.evidence(says!(
        "{count} of {wakes} wake-ups for idle CPUs came while the CPU was in an idle state deeper than the first. It \
         left the state after {half} (p50), {most} (p99), in all {time}: {share} of what these wake-ups waited.",
        count = all.count(),
        wakes = idle.waits.count(),
        half = Ns(all.percentile(0.5)),
        most = Ns(all.percentile(0.99)),
        time = Ns(all.total()),
        share = Of(all.total(), idle.waits.total()),
    ));
    for (state, waits) in idle.states.iter().filter(|(_, waits)| waits.count() > 0) {
        finding = finding.evidence(says!(
            "Idle state {state}: {count} of them, {half} (p50) and {most} at most.",
            state = Id(u64::from(*state)),
            count = waits.count(),
            half = Ns(waits.percentile(0.5)),
            most = Ns(waits.max()),
        ));
    }
    for row in idle.rows.iter().filter(|row| row.deep_ns > 0).take(LISTED) {
        finding = finding.evidence(thread(case, row));
    }
    match first {
        None => return finding,
        Some(FirstState::Ambiguous) => {
            return finding.also(
                "All idle CPUs were in state 1. If the host has no cpuidle driver, that is WFI, which is left at once: \
                 then the host is a VM itself. /sys/devices/system/cpu/cpuidle/current_driver says it.",
            );
        }
        Some(FirstState::C1) => {}
    }
    if case
        .host()
        .is_some_and(|host| host.virtualized == Some(true))
    {
        finding = finding.evidence(
            "The host is a virtual machine itself: its /proc/cpuinfo has the flag hypervisor.",
        );
    }
    finding.only(&[POLL]).also(
        "State 1 of x86 is the first that halts, and hardware leaves it within 10 us: where it takes longer, the \
         host is a VM itself, and the hypervisor below it has to run its CPU again (or firmware makes a deeper state \
         of it). Limits of cpu_dma_latency and of C-states do not change that.",
    )
}

/// What state 1 is, where it is what nearly all of the waits were for.
enum FirstState {
    /// C1, which hardware leaves in 1 to 2 us, and in 10 as C1E (`drivers/idle/intel_idle.c`).
    C1,
    /// WFI where no cpuidle driver is loaded (`default_idle_call`, `kernel/sched/idle.c`), and deeper than WFI where
    /// one is.
    Ambiguous,
}

/// Returns what state 1 is, if no deeper one is the cause.
fn first_state(case: &Case<'_>, all: &Stats) -> Option<FirstState> {
    let states = &case.picture.idle.states;
    let first = states.iter().find(|(state, _)| *state == 1);
    let first = first.map_or(0, |(_, waits)| waits.total());
    if (first as f64) < all.total() as f64 * SHALLOW {
        return None;
    }
    if case.x86() {
        return Some(FirstState::C1);
    }
    // A cpuidle driver's WFI would be state 0.
    let wfi = states
        .iter()
        .any(|(state, waits)| *state == 0 && waits.count() > 0);
    (!wfi).then_some(FirstState::Ambiguous)
}

fn thread(case: &Case<'_>, row: &IdleWakeupsRow) -> Evidence {
    let called = match row.is_vcpu {
        true => case.vcpu_called(row.tid).capital(),
        false => ThreadMention::named(row.comm.as_deref().unwrap_or("a thread"), row.tid),
    };
    let evidence = says!(
        "{thread}: {count} times, {time} of the {waited} that it waited for idle CPUs",
        thread = called,
        count = row.deep_count,
        time = Ns(row.deep_ns),
        waited = Ns(row.ns),
    );
    match row.longest {
        Some((from, until)) => evidence.then(says!(
            "; the longest took {longest}: {shown}.",
            longest = Ns(until.saturating_sub(from)),
            shown = case.command(from, until),
        )),
        None => evidence.then(".".into()),
    }
}
