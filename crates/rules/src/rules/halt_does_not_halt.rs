//! A vCPU halts and goes on at once, thousands of times a second.

use analysis::{ExitRow, ExitTable, ProgressRow};
use event::ExitClass;

use crate::evidence::{Ns, Of, PerSecond, says};
use crate::{
    AccountPart, Case, EvidenceNumber, ExplainedTime, Finding, Precedence, RecordNeeds, Remedy,
    RestsOn, Rule, RuleLook, Severity, Verdict,
};

/// Halts a second that were over at once.
const RATE: f64 = 1_000.0;
/// All of them.
const LEAST: u64 = 500;
/// Share of the vCPU's halts.
const SHARE: f64 = 0.5;
/// Of a printed table: mean of a halt that cannot be sleep, and the least that shows that some were no wait at all.
const MEAN_NS: u64 = 50_000;
const MIN_NS: u64 = 1_000;

pub(crate) static RULE: Rule = Rule {
    id: "halt-does-not-halt",
    title: "A vCPU halts and goes on at once",
    described_as: &[
        "an idle guest burns a whole CPU",
        "HLT returns at once",
        "100 % CPU on the host while the guest is idle",
        "millions of HLT exits a second",
    ],
    looks_at: "halts by vCPU: how many were over at once, without kvm_vcpu_wakeup and without losing the CPU; of \
        printed tables count, mean and minimum of the reasons that are waiting",
    needs: "kvm_exit and kvm_entry; kvm_vcpu_wakeup, or sched_switch, to be sure; or what perf kvm stat report prints",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched],
    measures: &["vmexit HLT", "vmexit hlt"],
    cause: "Something is pending for the vCPU, so KVM does not let it sleep, and the guest does not take it, so it \
        halts again: the vCPU's thread spins, and all of it looks like waiting. Where an interrupt is injected each \
        time the guest takes it: then it is a timer that is set in the past, or a device that keeps its line raised. \
        Where nothing is injected, it is an event that the guest has masked: the interrupt of an asynchronous page \
        fault ('page ready') on a vCPU whose local APIC is off, or an EOI that was lost.",
    found: &[
        "{rate} halts a second of one vCPU that were over at once, {least} of them at least, and {share} of its halts. \
         Confidence 0.9 where `kvm_vcpu_wakeup` or `sched_switch` is recorded, else 0.6: polling may end a halt soon, \
         too.",
        "Of a printed table: {least} halts whose mean is below {mean} and whose minimum is below {min}, and that are \
         half of all exits. 0.7. A vCPU that really sleeps takes tens of microseconds to be woken.",
    ],
    limits: &[
        ("rate", EvidenceNumber::PerSecond(RATE)),
        ("least", EvidenceNumber::Count(LEAST)),
        ("share", EvidenceNumber::Share(SHARE)),
        ("mean", EvidenceNumber::Nanoseconds(MEAN_NS)),
        ("min", EvidenceNumber::Nanoseconds(MIN_NS)),
    ],
    seen_from: "{least} halts of one vCPU that are over at once, {rate} a second and {share} of its halts",
    unknown: "*exits*, or a printed table.",
    advice: "",
    looks_alike: "Halt polling that finds something soon ([halt-poll-waste](#halt-poll-waste)) has a kvm_vcpu_wakeup \
        for each halt.",
    remedies: &[
        Remedy {
            what: "See what is pending: record kvm:kvm_inj_virq, kvm_apic_accept_irq, kvm_vcpu_wakeup and \
                kvm:kvm_async_pf_*. If it is asynchronous page faults, take them from the guest: no-kvmapf on its \
                command line, or without the CPUID feature (-cpu ...,kvm-asyncpf-int=off).",
            price: "A vCPU waits for pages that the host has swapped out.",
            unless: "An interrupt is injected after each of these halts.",
            check: "trapline exits: halts with a mean of milliseconds; the thread no longer takes its CPU.",
        },
        Remedy {
            what: "If a timer is set in the past, correct the guest's clock: a guest that catches up after a migration \
                or a pause needs its clock set once (chronyc makestep, or a reboot).",
            price: "The guest's time jumps.",
            unless: "Nothing is injected after these halts.",
            check: "trapline irqs: the timer's vector comes less often.",
        },
    ],
    sources: &[
        "Linux, virt/kvm/kvm_main.c (kvm_vcpu_halt, kvm_vcpu_check_block); arch/x86/kvm/x86.c \
         (kvm_arch_vcpu_runnable, kvm_can_deliver_async_pf)",
        "Linux, Documentation/virt/kvm/x86/msr.rst (MSR_KVM_ASYNC_PF_INT)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Waiting),
        ExplainedTime::Part(AccountPart::Halted),
        ExplainedTime::Part(AccountPart::Guest),
    ],
    look: RuleLook::Case(look),
};

/// Positions of the remedies.
const PENDING: usize = 0;
const TIMER: usize = 1;

fn look(case: &Case<'_>) -> Verdict {
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    if case.printed() {
        return printed(case);
    }
    if case.picture.progress.rows.is_empty() {
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    let rows = case.picture.progress.rows.iter();
    let spins = rows.filter(|row| is_spinning(row));
    let Some(row) = spins.max_by_key(|row| row.halts_at_once) else {
        return Verdict::Clear;
    };
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, row).found()
}

/// Returns whether a vCPU's halts end at once, most of them and often.
pub(crate) fn is_spinning(row: &ProgressRow) -> bool {
    let seconds = row.to.saturating_sub(row.from) as f64 / 1e9;
    let halts = row.halts_at_once;
    halts >= LEAST && halts as f64 >= seconds * RATE && halts as f64 >= row.halts as f64 * SHARE
}

fn say(case: &Case<'_>, row: &ProgressRow) -> Finding {
    let vcpu = case.vcpu_called(row.tid);
    let progress = &case.picture.progress;
    let switches = (case.picture.vcpus.as_ref()).is_some_and(|report| report.seen.switches);
    let confidence = match progress.wakeups || switches {
        true => 0.9,
        false => 0.6,
    };
    let observed = row.to.saturating_sub(row.from);
    let count = row.halts_at_once;
    let injected = row.halts_with_interrupt >= count / 2 && count > 0;
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .cost(case.vcpu_cost(observed))
        .title(format!(
            "{} halts and goes on at once, {count} times: it spins",
            words::capital(&vcpu.called)
        ))
        .evidence(says!(
            "{count} of {halts} halts of {vcpu} ({share}), {rate} a second, were over at once, {each} each.",
            count = count,
            halts = row.halts,
            vcpu = vcpu,
            share = Of(count, row.halts),
            rate = PerSecond(count as f64 * 1e9 / observed.max(1) as f64),
            each = Ns(row.at_once_ns / count.max(1)),
        ));
    finding = match (progress.interrupts, injected) {
        (true, true) => finding.evidence(says!(
            "KVM injected an interrupt after {count} of them: the guest takes it and halts again.",
            count = row.halts_with_interrupt,
        )),
        (true, false) => finding.evidence(says!(
            "KVM injected an interrupt after {count} of them only: what is pending the guest does not take.",
            count = row.halts_with_interrupt,
        )),
        (false, _) => finding.evidence("Injected interrupts (kvm_inj_virq) were not recorded."),
    };
    finding.at_least = Severity::High;
    finding.precedence = Precedence::NoProgress;
    match progress.interrupts && injected {
        true => finding.only(&[TIMER, PENDING]),
        false => finding,
    }
}

/// A printed table has the mean and the minimum of each reason.
fn printed(case: &Case<'_>) -> Verdict {
    if !case.has_exits() {
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    let all = case.all_exits();
    let spins = |row: &&ExitRow| {
        row.waiting
            && row.stats.count() >= LEAST
            && row.stats.mean() < MEAN_NS
            && row.stats.min() < MIN_NS
            && row.stats.count() >= all.count / 2
            // More of them in its own time than a second has room for with sleep in each.
            && row.stats.count() as f64 >= row.stats.total() as f64 / 1e9 * RATE
    };
    let rows = case.picture.rows(ExitTable::Vmexit).iter();
    let Some(row) = rows.filter(spins).max_by_key(|row| row.stats.count()) else {
        return Verdict::Clear;
    };
    let count = row.stats.count();
    let mut finding = Finding::new(&RULE, 0.7)
        .rests_on(RestsOn::Counts)
        .cost(case.vcpu_cost(row.stats.total()))
        .title(format!(
            "vCPUs halt and go on at once: {count} {} exits of {} in the mean",
            row.key,
            words::duration::human(row.stats.mean())
        ))
        .evidence(
            says!(
                "{reason}: {count} of {all} exits ({share}), {mean} in the mean and {least} at least. Sleep, and being \
                 woken, takes tens of microseconds.",
                reason = row.key.clone(),
                count = count,
                all = all.count,
                share = Of(count, all.count),
                mean = Ns(row.stats.mean()),
                least = Ns(row.stats.min()),
            )
            .row(ExitTable::Vmexit, row),
        );
    finding.at_least = Severity::High;
    finding.precedence = Precedence::NoProgress;
    finding.found()
}
