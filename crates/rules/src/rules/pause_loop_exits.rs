//! vCPUs spin on locks.

use analysis::ExitTable;
use event::ExitClass;
use words::duration::human;

use crate::evidence::{Ns, Of, says};
use crate::{Case, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Severity, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "pause-loop-exits",
    title: "vCPUs spin until pause-loop exiting (PLE) ends it",
    described_as: &[
        "many PAUSE_INSTRUCTION or pause exits",
        "PLE, spinning vCPUs",
        "spin locks in the guest burn CPU",
        "ple_gap and ple_window",
    ],
    looks_at: "exits for PAUSE (pause-loop exiting), and vCPUs that wait for a CPU meanwhile",
    needs: "kvm_exit and kvm_entry, or what perf kvm stat report prints",
    record: &[RecordNeeds::Exits],
    measures: &["vmexit PAUSE_INSTRUCTION", "vmexit pause"],
    cause: "The guest spins on a lock for longer than the PLE window, mostly because the vCPU that holds the lock was \
        preempted. KVM then yields to another vCPU of the guest, which may be the wrong one.",
    found: &[
        "1000 exits for PAUSE, a twentieth of all exits; and they matter, or are a fifth of all exits. Confidence 0.9. \
         The cost is the exits' time; the spinning before each exit is guest time and not in it.",
    ],
    limits: &[],
    seen_from: "1000 exits for PAUSE, a twentieth of all exits, that take a twentieth of the exits' time",
    unknown: "*exits*, or a printed table; *all* shows whether vCPUs waited for CPUs meanwhile.",
    advice: "",
    looks_alike: "If [vcpu-preempted](#vcpu-preempted) is found too, the holder was preempted; if not, the guest's own \
        lock is slow.",
    remedies: &[
        Remedy {
            what: "Give the guest's vCPUs dedicated CPUs: fewer vCPUs than CPUs, pinned, and no other tasks there.",
            price: "Less overcommitment on this host.",
            unless: "It does not help if vCPUs never wait for a CPU (trapline vcpus): the guest then contends for its \
                own lock.",
            check: "trapline compare BEFORE AFTER: PAUSE exits, and runnable time.",
        },
        Remedy {
            what: "Use paravirtual spinlocks (CONFIG_PARAVIRT_SPINLOCKS, KVM_FEATURE_PV_UNHALT), which halt instead of \
                spinning. For Windows: <spinlocks state='on' retries='8191'/>.",
            price: "A wake-up takes longer than spinning for locks that are held briefly.",
            unless: "'hint-dedicated' turns them off. Guests with CPUs of their own do not need them.",
            check: "trapline exits: fewer PAUSE, more HLT.",
        },
        Remedy {
            what: "For guests with CPUs of their own: widen the window (kvm_intel.ple_window, \
                kvm_amd.pause_filter_count), or turn pause-loop exiting off: kvm_intel.ple_gap=0, \
                kvm_amd.pause_filter_count=0 (ple_window=0 does the opposite: an exit for each PAUSE).",
            price: "A spinning vCPU keeps its CPU for longer. ple_gap and pause_filter_count are read when the \
            module is \
                loaded, so the host's guests have to stop.",
            unless: "Do not do it where vCPUs share CPUs.",
            check: "trapline exits: PAUSE.",
        },
    ],
    sources: &[
        "Intel SDM volume 3, 26.1.3 (PAUSE-loop exiting); AMD APM volume 2, 15.14.4 (pause intercept filtering)",
        "Linux, virt/kvm/kvm_main.c (kvm_vcpu_on_spin); Documentation/virt/kvm/x86/msr.rst (KVM_FEATURE_PV_UNHALT)",
    ],
    explains: &[ExplainedTime::Exits(ExitClass::Pause)],
    look: RuleLook::Case(look),
};

fn look(case: &Case<'_>) -> Verdict {
    if !case.x86() {
        return Verdict::NotOfMachine;
    }
    if !case.has_exits() {
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    let pauses = case.exits_of_class(ExitClass::Pause);
    let all = case.all_exits();
    let often = pauses.count >= 1000 && pauses.count >= all.count / 20;
    if !often || !(case.matters(pauses.ns) || pauses.count >= all.count / 5) {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let mut finding = Finding::new(&RULE, 0.9)
        .cost(case.vcpu_cost(pauses.ns))
        .title(format!("vCPUs made {} exits for spinning (PAUSE), {}", pauses.count, human(pauses.ns)))
        .evidence(
            says!(
                "PAUSE: {exits} of {all} exits ({share}), {share_of_handling} of the handling time without waits, \
                 {each} each. The spinning before each exit is guest time, and is not in the cost.",
                exits = pauses.count,
                all = all.count,
                share = Of(pauses.count, all.count),
                share_of_handling = Of(pauses.ns, case.handling_ns()),
                each = Ns(pauses.ns / pauses.count.max(1)),
            )
            .rows_of(ExitTable::Vmexit, &case.picture.exits_of_class(ExitClass::Pause)),
        );
    let runnable = case.picture.state_ns(model::State::Runnable);
    if runnable > 0 {
        finding = finding.evidence(says!(
            "Meanwhile vCPUs waited {runnable} for a CPU ({share} of their observed time).",
            runnable = Ns(runnable),
            share = Of(runnable, case.picture.observed_ns()),
        ));
    }
    finding.at_least = Severity::Low;
    finding.found()
}
