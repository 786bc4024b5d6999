//! Inter-processor interrupts to vCPUs that are halted.

use analysis::ExitTable;
use event::Isa;
use paths::{PathReport, Trait, Was};
use stats::duration::human;

use crate::case::{Sum, percent};
use crate::{Case, Finding, Remedy, Rule, Severity, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "halted-target-ipi",
    title: "Inter-processor interrupts have to wake vCPUs that are halted",
    looks_at: "the path of an inter-processor interrupt: the write to the interrupt controller, the target's wake-up, its \
               way to a CPU, its entry; and how often the target was halted",
    needs: "kvm:* and sched_switch, sched_waking; sums of exits alone (MSR_WRITE beside HLT) allow a guess",
    measures: &[],
    cause: "The target had nothing to do and halted, so its thread gave its CPU away. The interrupt then wakes that \
            thread (kvm_vcpu_kick, schedule), it waits until its CPU is out of idle, and enters its guest: many times \
            what it takes to interrupt a vCPU that is running.",
    remedies: &[
        Remedy {
            what: "Host: let halted vCPUs poll before they sleep, for longer than the gap between interrupts: echo \
                   2000000 > /sys/module/kvm/parameters/halt_poll_ns (2 ms).",
            price: "Host CPU time is burnt while vCPUs poll, up to that long for each halt: it is taken from other \
                    guests and tasks, and from turbo frequency and power. It helps less than idle=poll.",
            unless: "Not on hosts whose CPUs are shared by more vCPUs than there are CPUs, nor where halts last longer \
                     than what is polled: that only burns. It does nothing for a guest that is never idle.",
            check: "trapline paths --path ipi: the wake-up stages are gone where polls succeed; trapline vcpus shows \
                    what polling burns.",
        },
        Remedy {
            what: "Guest: do not halt at all: idle=poll (arm64: nohlt) on the guest's kernel command line.",
            price: "Every vCPU burns its whole CPU all the time, and nobody else gets it; a sibling hyperthread loses too. \
                    The host sees a guest that is always busy.",
            unless: "Not where CPU time is sold or shared, and not for vCPUs that share a CPU. It does nothing for a \
                     guest that is never idle.",
            check: "trapline exits: no HLT (WFx); trapline compare BEFORE AFTER: the ipi path.",
        },
        Remedy {
            what: "Guest: poll in the guest before it halts: the cpuidle-haltpoll driver and governor \
                   (cpuidle_haltpoll.force=1, or the KVM hint 'hint-dedicated' together with 'poll-control').",
            price: "Up to guest_halt_poll_ns (200 us as shipped) of the CPU is burnt for each halt, by the guest where no \
                    host tool sees it; it adapts, and stops when polling does not pay.",
            unless: "Not for vCPUs that share a CPU: polling in the guest keeps the CPU from the one it waits for.",
            check: "trapline exits: fewer HLT; trapline compare BEFORE AFTER: the ipi path.",
        },
    ],
    sources: &[
        "Linux, virt/kvm/kvm_main.c (kvm_vcpu_halt, kvm_vcpu_kick); Documentation/virt/kvm/halt-polling.rst",
        "Linux, Documentation/virt/guest-halt-polling.rst; drivers/cpuidle/cpuidle-haltpoll.c",
        "D. Matlack, KVM Message Passing Performance, KVM Forum 2015",
    ],
    look,
};

/// Interrupts to halted vCPUs that are enough to tell.
const ENOUGH: u64 = 50;

fn look(case: &Case<'_>) -> Verdict {
    if let Some(path) = case.picture.path("ipi") {
        return followed(case, path);
    }
    if !case.has_exits() {
        return Verdict::Lacks(
            "Record kvm:* and sched:sched_switch, sched:sched_waking to know.".to_owned(),
        );
    }
    by_sums(case)
}

/// No write that wakes a thread up is over in less.
const WAKES_NS: u64 = 2_500;

/// The path itself was recorded.
fn followed(case: &Case<'_>, path: &PathReport) -> Verdict {
    let (halted, halted_ns) = path.with(|one| matches!(one, Trait::Was(Was::Halted)));
    let (awake, awake_ns) =
        path.with(|one| matches!(one, Trait::Was(was) if was.busy() || *was == Was::Polling));
    let cost = case.span_cost(halted_ns);
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    if halted < ENOUGH || halted * 10 < path.count || cost.share < 0.05 {
        return Verdict::Clear;
    }
    let mut finding = Finding::new(&RULE, 0.9)
        .cost(cost)
        .title(format!(
            "{} of {} inter-processor interrupts had to wake a halted vCPU, {} each",
            halted,
            path.count,
            human(halted_ns / halted)
        ))
        .evidence(format!(
            "{halted} of {} interrupts ({}) were for a halted vCPU, and took {} on average from sender to target.",
            path.count,
            percent(halted, path.count),
            human(halted_ns / halted),
        ));
    if awake >= 10 {
        finding = finding.evidence(format!(
            "{awake} were for one that was running or polling, and took {}.",
            human(awake_ns / awake)
        ));
    }
    let mut stages: Vec<_> = path
        .stages
        .iter()
        .filter(|stage| stage.stats.count() >= halted / 10)
        .collect();
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.stats.total()));
    for stage in stages.iter().take(3) {
        finding = finding.evidence(format!(
            "{}: p50 {}, p99 {}, {} times.",
            stage.name,
            human(stage.stats.percentile(0.5)),
            human(stage.stats.percentile(0.99)),
            stage.stats.count(),
        ));
    }
    polling(case, finding).found()
}

/// What polling does already.
fn polling(case: &Case<'_>, finding: Finding) -> Finding {
    let rows = || case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let hits: u64 = rows().map(|row| row.polls.succeeded).sum();
    let misses: u64 = rows().map(|row| row.polls.failed).sum();
    let mut finding = finding;
    if hits + misses > 0 {
        finding = finding.evidence(format!(
            "Halt polling succeeded {hits} of {} times.",
            hits + misses
        ));
    }
    if case.picture.isa == Some(Isa::Arm64) {
        // The haltpoll driver is x86's.
        finding = finding.only(&[0, 1]);
    }
    let modules = case.host().map(|host| &host.modules);
    let ns = modules.and_then(|modules| modules.get("kvm")?.get("halt_poll_ns"));
    match ns {
        Some(ns) => finding.note(0, format!("The host's halt_poll_ns is {ns} now.")),
        None => finding,
    }
}

/// Only sums: interrupts sent, and halts.
fn by_sums(case: &Case<'_>) -> Verdict {
    let waits = case.exits(&["HLT", "hlt", "WFx"]);
    let (sent, exact) = sent(case);
    let handling = case.handling_ns();
    // Sending is a good part of what exits take, and halts go with it: one for every three interrupts where it is
    // certain that they are, for every two where other registers may be among them.
    let fits = match exact {
        true => sent.count >= 300 && waits.count >= sent.count / 3 && sent.ns >= handling / 5,
        false => sent.count >= 1000 && waits.count >= sent.count / 2 && sent.ns >= handling / 4,
    };
    if !fits {
        return Verdict::Clear;
    }
    // A guest that has little to do sets its timer and halts, as often. That write is over sooner than most exits; one that
    // wakes a thread up takes longer.
    let each = sent.ns / sent.count.max(1);
    if !exact && (each < WAKES_NS || each < case.others_mean_ns(sent)) {
        return Verdict::Clear;
    }
    if !exact && !case.printed() {
        return Verdict::Lacks(format!(
            "{} writes of registers and {} halts may be interrupts that wake halted vCPUs: record kvm:kvm_msr, kvm:kvm_apic_ipi \
             and kvm:kvm_apic_accept_irq (arm64: kvm:kvm_sys_access), sched:sched_switch and sched:sched_waking to know.",
            sent.count, waits.count
        ));
    }
    let all = case.all_exits();
    let finding = Finding::new(&RULE, if exact { 0.7 } else { 0.4 })
        .cost(case.vcpu_cost(sent.ns))
        .title(format!(
            "Halts go with interrupts sent: {} halts, {} {}",
            waits.count,
            sent.count,
            if exact { "interrupts sent" } else { "writes of registers" }
        ))
        .evidence(format!(
            "Halts: {} of {} exits ({}), {} of the time of all exits.",
            waits.count,
            all.count,
            percent(waits.count, all.count),
            percent(waits.ns, all.ns),
        ))
        .evidence(format!(
            "{}: {} of {} exits ({}), {} of the time without waiting, {} each.",
            if exact { "Writes of the interrupt controller's command register" } else { "MSR_WRITE" },
            sent.count,
            all.count,
            percent(sent.count, all.count),
            percent(sent.ns, handling),
            human(sent.ns / sent.count.max(1)),
        ))
        .evidence("Whom the interrupts woke is not in these sums; kvm:kvm_apic_ipi, kvm:kvm_apic_accept_irq and sched:* tell.");
    let mut finding = polling(case, finding);
    finding.at_least = Severity::Medium;
    finding.found()
}

/// Interrupts sent, and whether it is certain that they are. Their time is that of whole exits: KVM wakes the target
/// before it tells of the register.
fn sent(case: &Case<'_>) -> (Sum, bool) {
    let registers = case.exits(&["MSR_WRITE", "msr", "APIC_WRITE"]);
    // x2APIC's ICR, and the xAPIC's (Intel SDM volume 3, 11.6.1).
    let msr = Sum::of(case.accesses(ExitTable::Msr, |row| {
        row.write && row.address == Some(0x830)
    }));
    let mmio = Sum::of(case.accesses(ExitTable::Mmio, |row| {
        row.write && row.address == Some(0xfee0_0300)
    }));
    if msr.count > 0 {
        let all = Sum::of(case.picture.rows(ExitTable::Msr));
        // Those that do not wake anybody take what they take in the table of registers.
        let others = all.ns.saturating_sub(msr.ns);
        let ns = registers.ns.saturating_sub(others).max(msr.ns);
        return (
            Sum {
                count: msr.count,
                ns,
            },
            true,
        );
    }
    if mmio.count > 0 {
        return (mmio, true);
    }
    let virtualized = case.exits(&["AVIC_INCOMPLETE_IPI", "avic_incomplete_ipi"]);
    if virtualized.count > 0 {
        return (virtualized, true);
    }
    // With addresses recorded, other registers are not taken for it.
    let known = !case.picture.rows(ExitTable::Msr).is_empty();
    match case.picture.isa {
        _ if known => (Sum::default(), false),
        Some(Isa::Arm64) => (Sum::default(), false),
        _ => (registers, false),
    }
}
