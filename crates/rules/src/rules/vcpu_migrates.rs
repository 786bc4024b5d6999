//! vCPU threads move from CPU to CPU.

use analysis::{MovesRow, TaskRow};

use super::vcpu_preempted::pinning;
use crate::evidence::{Evidence, Many, Ns, Of, Share, ThreadMention, says};
use crate::{
    Case, EvidenceNumber, Finding, RecordNeeds, Remedy, Rule, RuleLook, Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "vcpu-migrates",
    title: "vCPU threads migrate from CPU to CPU",
    described_as: &[
        "vCPUs move between CPUs",
        "no pinning, cache misses, the vCPU is on another NUMA node",
        "performance of the VM varies from run to run",
    ],
    looks_at: "how often the scheduler migrates vCPU threads, and how much longer after a move than on the same CPU \
        the wait for a CPU, the entry into the guest and the first exit take",
    needs: "sched:sched_migrate_task, or sched:sched_switch of the whole host, and kvm_exit or kvm_entry to know the \
        threads",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched],
    measures: &[],
    cause: "Each move leaves caches, TLB entries and the vCPU's state on the CPU (VMCS) behind, across NUMA nodes the \
            memory as well. Posted interrupts and timers have to follow.",
    found: &[
        "One vCPU's thread moved {moves} times and {many} times a second, and moves cost something: runs on another \
         CPU than the one before are set against runs on the same one ({moves} of each), by the medians of the wait \
         for the CPU, of the way from there into the guest, and of the first exit after that. What they took longer, \
         times their number, is the cost: from {costs} of the vCPU's time on, confidence 0.9. Where moves take no \
         longer than other runs, they are a finding from {whatever} a second on only (0.7, at least `medium`): to fill \
         a level-2 cache again takes some 100 us, which the guest loses and no event shows. A thread that goes to an \
         idle CPU each time, and waits less for it, gains by moving.",
    ],
    limits: &[
        ("moves", EvidenceNumber::Count(LEAST)),
        ("many", EvidenceNumber::PerSecond(MANY_PER_SECOND)),
        ("costs", EvidenceNumber::Share(COSTS)),
        ("whatever", EvidenceNumber::PerSecond(WHATEVER_PER_SECOND)),
    ],
    seen_from: "{moves} moves of a vCPU, {many} a second, that cost {costs} of its time",
    unknown: "*all*, of the whole host.",
    advice: "If the definition pins, the finding says that the pins were not in force.",
    looks_alike: "With [vcpu-preempted](#vcpu-preempted) beside it, they move *because* others have their CPUs: solve \
        that first.",
    remedies: &[Remedy {
        what: "Pin vCPUs (<vcpupin> in <cputune>), each to a CPU or all to the CPUs of the NUMA node that has the \
            guest's memory.",
        price: "The scheduler cannot move a vCPU away from a busy CPU: it waits behind whatever else runs there.",
        unless: "Pinning needs at least as many CPUs as vCPUs, and other tasks kept off them.",
        check: "trapline sched: migrations of the vCPUs' threads.",
    }],
    sources: &[
        "Linux, include/trace/events/sched.h (sched_migrate_task); arch/x86/kvm (vcpu_load)",
        "libvirt, formatdomain: CPU Tuning",
    ],
    explains: &[],
    look: RuleLook::Case(look),
};

/// Moves of one vCPU in a second that are more than balancing now and then.
const MANY_PER_SECOND: f64 = 20.0;
/// Moves in a second that cost whatever can be measured of them: to fill a level-2 cache again takes some 100 us, which
/// the guest loses and no event shows; that is a fiftieth of its time.
const WHATEVER_PER_SECOND: f64 = 200.0;
/// Moves of one vCPU, and runs of each kind that are compared.
const LEAST: u64 = 50;
/// From this share of the vCPU's time on moves are a cost.
const COSTS: f64 = 0.02;

/// What was measured of moves.
struct MoveCounts<'a> {
    /// The vCPUs' threads, those that moved most first.
    rows: Vec<&'a TaskRow>,
    /// Of the one that moved most, in a second.
    rate: f64,
    /// vCPUs whose moves cost them something, and how much.
    costly: Vec<(&'a MovesRow, u64)>,
    /// That of all together.
    cost_ns: u64,
}

fn look(case: &Case<'_>) -> Verdict {
    let tids = case.vcpu_tids();
    let Some(sched) = &case.picture.sched else {
        return unknown();
    };
    if tids.is_empty() || case.one_process() {
        return unknown();
    }
    let rows = sched.rows.iter().filter(|row| tids.contains(&row.tid));
    let mut rows: Vec<&TaskRow> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.migrations));
    let Some(worst) = rows.first() else {
        return unknown();
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let rate = worst.migrations as f64 / case.seconds();
    if worst.migrations < LEAST || rate < MANY_PER_SECOND {
        return Verdict::Clear;
    }
    let costly = costly(case);
    let cost_ns = costly
        .iter()
        .map(|(_, ns)| *ns)
        .fold(0u64, u64::saturating_add);
    if cost_ns == 0 && rate < WHATEVER_PER_SECOND {
        // What a move costs exits and entries show.
        return match case.picture.presumes_vcpus() {
            true => unknown(),
            false => Verdict::Clear,
        };
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let moves = MoveCounts {
        rows,
        rate,
        costly,
        cost_ns,
    };
    pins(case, say(case, &moves)).found()
}

/// Returns vCPUs for which runs on another CPU than before take longer than others, and how much in all.
fn costly<'a>(case: &Case<'a>) -> Vec<(&'a MovesRow, u64)> {
    let rows = case.picture.moves.iter();
    rows.filter(|row| row.moved.count >= LEAST)
        .filter_map(|row| {
            let excess = u64::try_from(row.moved.excess_ns(&row.stayed, LEAST)).ok()?;
            (excess as f64 >= COSTS * row.observed_ns as f64).then_some((row, excess))
        })
        .collect()
}

fn say(case: &Case<'_>, moves: &MoveCounts<'_>) -> Finding {
    let count: u64 = moves
        .rows
        .iter()
        .map(|row| row.migrations)
        .fold(0, u64::saturating_add);
    let rate = moves.rate;
    let confidence = if moves.cost_ns > 0 { 0.9 } else { 0.7 };
    let mut finding = Finding::new(&RULE, confidence).title(format!(
        "vCPU threads migrated {count} times, the worst {rate:.0} times a second"
    ));
    if moves.cost_ns > 0 {
        finding = finding.cost(case.vcpu_cost(moves.cost_ns));
    }
    for row in moves.rows.iter().take(4).filter(|row| row.migrations > 0) {
        finding = finding.evidence(says!(
            "{task}: migrated {moves} in {runs}.",
            task = ThreadMention::named(&row.comm, row.tid),
            moves = Many(row.migrations, "time"),
            runs = Many(row.delays.count(), "run"),
        ));
    }
    for (row, ns) in moves.costly.iter().take(4) {
        finding = finding.evidence(took(row, *ns));
    }
    if moves.cost_ns == 0 {
        finding = finding.evidence(says!(
            "Waits and exits after a move were no longer than others. No event shows what the guest loses to cold \
             caches: some 100 us each, {share} of the vCPU's time at this rate.",
            share = Share(rate / 10_000.0),
        ));
    }
    if rate >= WHATEVER_PER_SECOND {
        finding.at_least = Severity::Medium;
    }
    finding
}

/// What runs after a move took, against others.
fn took(row: &MovesRow, ns: u64) -> Evidence {
    let half = |stats: &analysis::Stats| Ns(stats.percentile(0.5));
    let (moved, stayed) = (&row.moved, &row.stayed);
    says!(
        "{thread}: after a move the wait for the CPU took {wait}, the entry into the guest {enter} and the first exit \
         {first_exit} (medians of {moves}); on the same CPU as before {stayed_wait}, {stayed_enter} and \
         {stayed_first_exit} (of {stays}). The difference is {cost} in all, {share} of its time.",
        thread = ThreadMention {
            called: format!("Thread {}", row.tid),
            tid: row.tid,
        },
        wait = half(&moved.waits),
        enter = half(&moved.enters),
        first_exit = half(&moved.first_exits),
        moves = moved.count,
        stayed_wait = half(&stayed.waits),
        stayed_enter = half(&stayed.enters),
        stayed_first_exit = half(&stayed.first_exits),
        stays = stayed.count,
        cost = Ns(ns),
        share = Of(ns, row.observed_ns),
    )
}

/// Pins vCPUs where their definition does not.
fn pins(case: &Case<'_>, mut finding: Finding) -> Finding {
    let Some(domain) = case.whole_domain() else {
        return finding;
    };
    if let Some(host) = case.host() {
        finding = finding.changes(0, pinning(domain, host));
    }
    if domain.vcpu_pins.is_empty() {
        return finding;
    }
    finding.evidence(
        "The guest's definition pins vCPUs, but the pins were not in force, or allow several CPUs.",
    )
}

fn unknown() -> Verdict {
    Verdict::Unknown(
        "Record kvm:kvm_exit, kvm:kvm_entry, sched:sched_switch and sched:sched_migrate_task of the whole host (-a)."
            .to_owned(),
    )
}
