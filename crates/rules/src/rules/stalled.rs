//! A vCPU that did nothing for long though its guest did not ask to wait.

use analysis::{ExitRow, ExitTable};
use event::Isa;
use model::State;
use stats::duration::human;

use crate::case::{called, plural};
use crate::{Case, Finding, Remedy, Rule, Severity, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "stalled-vcpu",
    title: "A vCPU stood still for long, and its guest had not asked to wait",
    looks_at: "single exits, and single waits for a CPU, of a tenth of a second and more; time asleep in KVM while an exit is handled",
    needs: "kvm_exit and kvm_entry; sched:sched_switch tells waiting for a CPU from being handled",
    measures: &[],
    cause: "The guest sees time jump: its watchdogs (soft lockup, RCU stall), timeouts and peers may react. What holds it is the \
            VMM (its global lock, a slow disk behind a synchronous request, a debugger or monitor command), the host (memory that \
            is swapped in, a CPU that is taken away), or a signal that stopped it.",
    remedies: &[
        Remedy {
            what: "Look at what the vCPU was in at that time: trapline vcpus, and trapline paths --path user-exit --each, whose \
                   slowest instances name the exit and the threads that ran meanwhile.",
            price: "None.",
            unless: "Not if the VM was paused on purpose: a snapshot, the end of a migration, a suspended host.",
            check: "The same recording, after the change: no exit of a tenth of a second.",
        },
        Remedy {
            what: "If the VMM held it: move the device off the main loop (iothreads, vhost, another disk cache mode). If the host \
                   did: lock the guest's memory (<locked/>), and keep its CPUs free.",
            price: "Memory that cannot be swapped, CPUs that nobody else has.",
            unless: "Not before it is known which of them it was.",
            check: "trapline diagnose of a new recording.",
        },
    ],
    sources: &[
        "Linux, kernel/watchdog.c, kernel/rcu/tree_stall.h (what guests complain of); virt/kvm/kvm_main.c (kvm_vcpu_ioctl)",
    ],
    look,
};

/// What a guest's users notice.
const LONG_NS: u64 = 100_000_000;

/// Whether the guest may have asked for it: on arm64 it turns vCPUs off, and suspends them, by a call (PSCI).
fn asked(row: &ExitRow) -> bool {
    matches!(row.key.as_str(), "HVC64" | "SMC64" | "HVC32" | "SMC32")
}

fn look(case: &Case<'_>) -> Verdict {
    if !case.has_exits() {
        return Verdict::Lacks(
            "Record kvm:kvm_exit, kvm:kvm_entry and sched:sched_switch to know.".to_owned(),
        );
    }
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    if case.printed() && case.picture.isa == Some(Isa::Arm64) {
        // perf pairs an entry with the exit that follows it there: these are the guest's own times.
        return Verdict::Lacks(
            "perf kvm stat's times on arm64 may be those that the guest ran before each exit; give the recording itself."
                .to_owned(),
        );
    }
    let rows = case.picture.rows(ExitTable::Vmexit).iter();
    let mut exits: Vec<_> = rows
        .filter(|row| !row.waiting && !asked(row) && row.stats.max() >= LONG_NS)
        .collect();
    exits.sort_by_key(|row| std::cmp::Reverse(row.stats.max()));
    let vcpus = case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let mut waits: Vec<_> = vcpus
        .clone()
        .filter(|row| row.waits.max() >= LONG_NS)
        .collect();
    waits.sort_by_key(|row| std::cmp::Reverse(row.waits.max()));
    // A vCPU that its guest turns off sleeps there too (PSCI), on arm64.
    let asleep: Vec<_> = vcpus
        .filter(|_| case.x86())
        .filter(|row| {
            row.times.get(State::KernelBlocked) >= LONG_NS
                && row.times.get(State::KernelBlocked) >= row.times.total() / 20
        })
        .collect();
    let longest = exits.first().map(|row| row.stats.max()).into_iter();
    let longest = longest.chain(waits.first().map(|row| row.waits.max()));
    let longest = longest.max();
    let slept = asleep.iter().map(|row| row.times.get(State::KernelBlocked));
    let mut finding = Finding::new(&RULE, if case.printed() { 0.6 } else { 0.85 });
    finding = match (longest, slept.max()) {
        (Some(longest), _) => finding
            .cost(case.vcpu_cost(longest))
            .title(format!("A vCPU stood still for {}", human(longest))),
        // Many short sleeps are as long, and nobody sees time jump.
        (None, Some(slept)) => finding.cost(case.vcpu_cost(slept)).title(format!(
            "A vCPU slept {} in all while its exits were handled",
            human(slept)
        )),
        (None, None) => return Verdict::Clear,
    };
    for row in exits.iter().take(4) {
        let user = row.times.map_or(0, |times| {
            times
                .get(State::User)
                .saturating_add(times.get(State::UserBlocked))
        });
        let vmm = if user > row.stats.total() / 2 {
            ", most of the time of these exits in the VMM"
        } else {
            ""
        };
        finding = finding.evidence(format!(
            "{}: the longest of {} took {}, their mean is {}{vmm}.",
            called(row),
            plural(row.stats.count(), "exit"),
            human(row.stats.max()),
            human(row.stats.mean()),
        ));
    }
    for row in waits.iter().take(4) {
        let behind = row.behind.first().and_then(|behind| behind.comm.clone());
        finding = finding.evidence(format!(
            "vCPU {} (thread {}) waited {} for a CPU; most of its waiting was behind {}.",
            row.vcpu,
            row.tid,
            human(row.waits.max()),
            behind.as_deref().unwrap_or("tasks that are not known"),
        ));
    }
    for row in asleep.iter().take(4) {
        finding = finding.evidence(format!(
            "vCPU {} (thread {}) slept {} in KVM while its exits were handled.",
            row.vcpu,
            row.tid,
            human(row.times.get(State::KernelBlocked))
        ));
    }
    finding.at_least = match longest {
        Some(ns) if ns >= 10 * LONG_NS => Severity::High,
        Some(_) => Severity::Medium,
        None => Severity::Low,
    };
    finding.found()
}
