//! KVM takes small pages away from guests again and again, to make huge ones of them that may not be executed.

use analysis::{ExitSum, TaskRow};
use event::ExitClass;
use words::duration::human;

use crate::account::AccountPart;
use crate::evidence::{Ns, Of, ThreadMention, says};
use crate::{
    Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds, Remedy, Rule,
    RuleLook, Severity, Verdict,
};

/// Faults for instructions that show it: a guest that starts has some for each program.
const LEAST: u64 = 100;
/// Share of the vCPUs' time.
const SHARE: f64 = 0.01;
/// Share of a CPU that the thread takes.
const OF_CPU: f64 = 0.02;
/// The thread's name as tasks have it, 15 characters of `kvm-nx-lpage-recovery-PID`.
const NAME: &str = "kvm-nx-lpage-re";

pub(crate) static RULE: Rule = Rule {
    id: "nx-hugepage-recovery",
    title: "KVM zaps pages of the guest's code to recover huge pages (iTLB multihit)",
    described_as: &[
        "latency spike every minute in the VM",
        "kvm-nx-lpage-recovery uses CPU",
        "iTLB multihit mitigation slows the guest",
        "huge pages of the guest are split and zapped",
    ],
    looks_at: "the CPU time of KVM's thread kvm-nx-lpage-recovery, and faults of guests that fetch an instruction of a \
        page that is mapped and may not be executed",
    needs: "sched:sched_switch of the whole host, kvm_exit, kvm_entry and kvm_page_fault",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "Against a flaw of Intel's processors (iTLB multihit) KVM maps huge pages without the right to execute \
        them. A guest that executes code there faults, and KVM splits the page. A thread makes huge pages of them \
        again, a part of all each period: it zaps the small pages under a lock that all faults of the VM wait for, and \
        the guest faults for its code once more.",
    found: &[
        "The thread ran. Beside it {least} faults fetched an instruction of a page that is mapped and may not be \
         executed, and they took {share} of the vCPUs' time: confidence 0.85. KVM maps nothing else so. Or the thread \
         took {cpu} of a CPU: 0.8, at most `medium`, since what its lock held up is not known.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("share", EvidenceNumber::Share(SHARE)),
        ("cpu", EvidenceNumber::Share(OF_CPU)),
    ],
    seen_from: "{least} faults for instructions, {share} of the vCPUs' time, or {cpu} of a CPU for the thread",
    unknown: "*all*, of the whole host (`-a`), for a minute and more: by default a period is a minute.",
    advice: "",
    looks_alike: "A guest that starts programs splits pages too, each once: the thread has no part in that. Memory \
        that is mapped for the first time is [ept-violation-storm](#ept-violation-storm).",
    remedies: &[
        Remedy {
            what: "Host: if /sys/devices/system/cpu/vulnerabilities/itlb_multihit says 'Not affected', turn the \
                mitigation off (kvm.nx_huge_pages=off); guests have to be started again for their memory to be mapped \
                so.",
            price: "On a processor that is affected, a guest could stop the whole host.",
            unless: "The processor is affected and guests are not all trusted.",
            check: "trapline sched: kvm-nx-lpage-recovery does not run.",
        },
        Remedy {
            what: "Host: stop the recovery (nx_huge_pages_recovery_ratio=0), or make it gentler: \
                nx_huge_pages_recovery_period_ms and a larger nx_huge_pages_recovery_ratio zap fewer pages at a time.",
            price: "Pages that were split stay small: more TLB misses where code has moved away.",
            unless: "The guest's code moves around much.",
            check: "trapline exits: fewer faults, and none once a period.",
        },
    ],
    sources: &[
        "Linux, Documentation/admin-guide/hw-vuln/multihit.rst; arch/x86/kvm/mmu/mmu.c \
         (kvm_nx_huge_page_recovery_worker, kvm_recover_nx_huge_pages)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::PageFault),
        ExplainedTime::Part(AccountPart::Thread),
        ExplainedTime::Part(AccountPart::OtherThreads),
    ],
    look: RuleLook::Case(look),
};

fn look(case: &Case<'_>) -> Verdict {
    if !case.x86() {
        return Verdict::NotOfMachine;
    }
    let sched = case.picture.sched.as_ref().filter(|_| !case.printed());
    let Some(report) = sched.filter(|_| !case.one_process()) else {
        return Verdict::Unknown(
            "Record sched:sched_switch of the whole host (-a), kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_page_fault, for \
             more than a minute."
                .to_owned(),
        );
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let threads = report.rows.iter().filter(|row| row.comm.starts_with(NAME));
    let threads: Vec<&TaskRow> = threads.filter(|row| row.on_cpu_ns > 0).collect();
    if threads.is_empty() {
        return Verdict::Clear;
    }
    let times = threads.iter().map(|row| row.on_cpu_ns);
    let ran_ns = times.fold(0, u64::saturating_add);
    let span = case.picture.span_ns.unwrap_or(0);
    let faults = case.picture.faults.unwrap_or_default().not_executable;
    let cost = case.vcpu_cost(faults.ns);
    let faulted = faults.count >= LEAST && cost.share >= SHARE;
    if !faulted && (ran_ns as f64) < span as f64 * OF_CPU {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let finding = match faulted {
        true => Finding::new(&RULE, 0.85).cost(cost).title(format!(
            "The guest faulted {} times for code whose pages KVM had made huge, {}",
            faults.count,
            human(faults.ns)
        )),
        false => {
            let mut finding = Finding::new(&RULE, 0.8)
                .cost(FindingCost::of(ran_ns, span, Base::Span))
                .title(format!(
                    "KVM's thread that recovers huge pages ran for {}",
                    human(ran_ns)
                ));
            finding.at_most = Severity::Medium;
            finding
        }
    };
    say(finding, &threads, faults, span).found()
}

fn say(mut finding: Finding, threads: &[&TaskRow], faults: ExitSum, span: u64) -> Finding {
    for row in threads.iter().take(4) {
        finding = finding.evidence(says!(
            "{thread} ran for {time} ({share} of a CPU).",
            thread = ThreadMention::named(&row.comm, row.tid),
            time = Ns(row.on_cpu_ns),
            share = Of(row.on_cpu_ns, span),
        ));
    }
    finding.evidence(says!(
        "{faults} faults fetched an instruction of a page that was mapped and may not be executed: {time}, {each} \
         each.",
        faults = faults.count,
        time = Ns(faults.ns),
        each = Ns(faults.ns / faults.count.max(1)),
    ))
}
