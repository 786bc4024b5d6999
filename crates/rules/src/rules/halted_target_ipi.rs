//! Inter-processor interrupts to vCPUs that are halted.

use analysis::{ExitTable, IpiSums};
use event::{ExitClass, Isa};
use words::duration::human;

use crate::case::RowSum;
use crate::evidence::{Evidence, Many, Ns, Of, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "halted-target-ipi",
    title: "IPIs have to wake halted vCPUs",
    described_as: &[
        "IPIs in the guest take long",
        "wake-ups between vCPUs are slow",
        "smp_call_function or TLB flushes are slow in the VM",
        "context-switch or pipe benchmarks are slow across vCPUs",
    ],
    looks_at: "each IPI, from the write to the interrupt controller to the target's entry, and what the target was \
        doing: how much longer IPIs to halted vCPUs take than others, without waits behind other tasks",
    needs: "kvm:* and sched_switch, sched_waking; exits with kvm_msr show which target was halted; sums do not",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "The target vCPU had halted, so its thread slept. The IPI has to wake the thread (kvm_vcpu_kick, schedule), \
            the CPU has to leave its idle state, and the vCPU has to enter its guest. That takes many times as long as \
            interrupting a running vCPU.",
    found: &[
        "From the path `ipi`: of each interrupt what its target was doing when it was sent. The cost is the median of \
         those to halted vCPUs, less the median of those to vCPUs that did not have to be woken, times their count. \
         Where fewer than {compared} went to such (on arm64 those make no event), only the way from the wake-up to the \
         CPU counts, which surely is the halt's. Found from {halted} on, a tenth of all, {share} of the time in which \
         they occur and {of_all} of the recording. They occur in slices of 17 ms that have four or more: one that \
         comes alone keeps nobody waiting again and again. Confidence 0.9; at least `medium`, from 10 % of that time \
         `high`.",
        "Not counted: the time in which a woken vCPU waits for a CPU that another task has \
         ([vcpu-preempted](#vcpu-preempted); polling makes that worse), and interrupts within 5 ms of traffic between \
         the recorder and its agent in the guest, which looks at its buffers once a millisecond. The evidence says how \
         much both are.",
        "From exits: a write of the command register (x2APIC's ICR 0x830, the xAPIC's 0xfee00300) names its target, \
         and the target's own exits and entries say what it was doing when the sender left its guest: in a halt, in \
         its guest, in another exit. The same thresholds; confidence 0.6, since a vCPU in a halt may have been \
         polling.",
    ],
    limits: &[
        ("halted", EvidenceNumber::Count(ENOUGH)),
        ("share", EvidenceNumber::Share(SHARE)),
        ("of_all", EvidenceNumber::Share(OF_ALL)),
        ("compared", EvidenceNumber::Count(COMPARED)),
    ],
    seen_from: "{halted} IPIs to halted vCPUs, a tenth of all, that cost {of_all} of the recorded time",
    unknown: "*all* (arm64: `kvm_sys_access` is in it), or *exits* with `kvm_msr`. Sums of a printed table do not show \
        it: halts and writes go together as well where vCPUs that run are interrupted while others halt. The rule then \
        says what to record.",
    advice: "",
    looks_alike: "Interrupts to halted vCPUs that take no longer than those to running ones: then it is not the halt. \
        If polling is on and burns, [halt-poll-waste](#halt-poll-waste) says the opposite: what counts is whether \
        polls succeed.",
    remedies: &[
        Remedy {
            what: "Host: let halted vCPUs poll before they sleep, for longer than the gap between interrupts: echo \
                2000000 > /sys/module/kvm/parameters/halt_poll_ns (2 ms). With Linux 5.8 to 6.0 on the host a VM keeps \
                the value that it was created with: stop it and start it again; a reboot of the guest is not enough.",
            price: "Polling burns host CPU time, up to that long for each halt: other guests and tasks lose it, and it \
                    costs power and turbo frequency. It helps less than idle=poll.",
            unless: "With more vCPUs than CPUs, or halts longer than the polling, it only burns CPU time. It does \
                     nothing for a guest that is never idle.",
            check: "trapline paths --path ipi: the wake-up stages are gone where polls succeed; trapline vcpus shows \
                what polling burns. If nothing polls, the VM is older than the setting (Linux 5.8 to 6.0), or its VMM \
                set a limit of its own (KVM_CAP_HALT_POLL), which comes before the parameter.",
        },
        Remedy {
            what: "Guest: never halt: idle=poll (arm64: nohlt) on the guest's kernel command line.",
            price: "Every vCPU uses its whole CPU all the time, and its sibling hyperthread gets slower. On the host \
                the guest always looks busy.",
            unless: "Do not use it where vCPUs share CPUs, or where CPU time is billed. It does nothing for a guest \
                     that is never idle.",
            check: "trapline exits: no halts; trapline compare BEFORE AFTER: the ipi path.",
        },
        Remedy {
            what: "Host, for vCPUs with CPUs of their own: let the guest halt the CPU itself (QEMU's -overcommit \
                cpu-pm=on, since 3.0; libvirt passes it through <qemu:commandline>). HLT and MWAIT then do not exit, \
                and \
                an interrupt is posted to a CPU that is in its guest.",
            price: "The host sees these CPUs as busy all the time, and their turbo frequency is the guest's to manage.",
            unless: "Do not use it where vCPUs share CPUs: a halted vCPU keeps its CPU.",
            check: "trapline exits: no HLT.",
        },
        Remedy {
            what: "Guest: poll in the guest before it halts: the cpuidle-haltpoll driver and governor \
                   (cpuidle_haltpoll.force=1, or the KVM hint 'hint-dedicated' together with 'poll-control').",
            price: "The guest burns up to guest_halt_poll_ns (200 us by default) of CPU time for each halt, which the \
                host sees as guest time. It adapts, and stops when polling does not pay.",
            unless: "Do not use it for vCPUs that share a CPU: a polling vCPU keeps the CPU from the one it waits for.",
            check: "trapline exits: fewer HLT; trapline compare BEFORE AFTER: the ipi path.",
        },
        Remedy {
            what: "Host: keep idle CPUs out of deep idle states: hold /dev/cpu_dma_latency open with a small number \
                (tuned's profile latency-performance does), or cpupower idle-set -D 10.",
            price: "Idle CPUs take more power, and leave less of it for the turbo of the busy ones.",
            unless: "The wake-ups are slow because another task has the CPU, or the host is a guest itself.",
            check: "trapline paths --path ipi: the stage from the wake-up to the CPU is shorter.",
        },
        Remedy {
            what: "Windows: let it send interrupts to many vCPUs, and flush their TLBs, by one call: <ipi state='on'/> \
                and <tlbflush state='on'/> in <hyperv> (both need <vpindex state='on'/>).",
            price: "None.",
            unless: "Vectors are sent to one vCPU at a time: a call is no cheaper then.",
            check: "trapline exits --event msr: fewer writes of 0x830.",
        },
    ],
    sources: &[
        "Linux, virt/kvm/kvm_main.c: kvm->max_halt_poll_ns copied in kvm_create_vm (commit acd05785e48c, 5.8), and \
         read only where the VMM set it (kvm_vcpu_max_halt_poll_ns with override_halt_poll_ns, 6.1); \
         Documentation/virt/kvm/api.rst (KVM_CAP_HALT_POLL)",
        "Linux, virt/kvm/kvm_main.c (kvm_vcpu_halt, kvm_vcpu_kick); Documentation/virt/kvm/halt-polling.rst",
        "Linux, Documentation/virt/guest-halt-polling.rst; drivers/cpuidle/cpuidle-haltpoll.c",
        "D. Matlack, KVM Message Passing Performance, KVM Forum 2015",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Waiting),
        ExplainedTime::Runnable,
    ],
    look: RuleLook::Case(look),
};

/// Interrupts to halted vCPUs that are enough to tell.
const ENOUGH: u64 = 50;
/// Interrupts to others that are enough to compare with.
const COMPARED: u64 = 10;
/// Some per cent of the time in which they occur, as costs are medium from; what is less than half a per cent of the
/// recording is no reason to change anything.
const SHARE: f64 = 0.02;
const OF_ALL: f64 = 0.005;

fn look(case: &Case<'_>) -> Verdict {
    let has_path = case.picture.path("ipi").is_some();
    if !has_path && !case.has_exits() {
        return Verdict::Unknown(
            "Record kvm:*, sched:sched_switch and sched:sched_waking.".to_owned(),
        );
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let ipis = &case.picture.ipis;
    if has_path {
        return by_target(case, &ipis.followed, true);
    }
    if ipis.written.count() > 0 {
        return by_target(case, &ipis.written, false);
    }
    by_sums(case)
}

/// What a halt costs an interrupt.
struct Halts {
    /// Of one, by medians.
    each_ns: u64,
    /// How it is known.
    why: Evidence,
}

/// What interrupts to halted vCPUs take more than others. `followed`: their path was recorded.
fn halts(sums: &IpiSums, followed: bool) -> Halts {
    let median = sums.halted.percentile(0.5);
    let halted = says!(
        "IPIs to halted vCPUs: p50 {halted_p50}",
        halted_p50 = Ns(median)
    );
    if sums.awake.count() >= COMPARED {
        let awake = sums.awake.percentile(0.5);
        return Halts {
            each_ns: median.saturating_sub(awake),
            why: halted.then(says!(
                "; {others} IPIs to vCPUs that were not halted: p50 {others_p50}.",
                others = sums.awake.count(),
                others_p50 = Ns(awake),
            )),
        };
    }
    // Too few to compare with: what surely is the halt's is the way from the wake-up to the CPU.
    let waking = sums.waking.percentile(0.5);
    if followed && sums.waking.count() >= ENOUGH {
        return Halts {
            each_ns: waking,
            why: halted.then(says!(
                ", {waking_p50} of it from the wake-up to the CPU. IPIs to vCPUs that were not halted are too few for \
                 a comparison, so only the part from the wake-up counts.",
                waking_p50 = Ns(waking),
            )),
        };
    }
    Halts {
        each_ns: median,
        why: halted.then(
            "; IPIs to vCPUs that were not halted are too few for a comparison, so all of it counts.".into(),
        ),
    }
}

/// It is known of each what its target was doing.
fn by_target(case: &Case<'_>, sums: &IpiSums, followed: bool) -> Verdict {
    let (count, halted) = (sums.count(), sums.halted.count());
    let found = halted.saturating_add(sums.alone);
    let halts = halts(sums, followed);
    let ns = halts.each_ns.saturating_mul(halted);
    let active = sums.active_ns.max(1);
    let share = ns as f64 / active as f64;
    let cost = case.span_cost(ns);
    if halted < ENOUGH || found * 10 < count || share < SHARE || cost.share < OF_ALL {
        return Verdict::Clear;
    }
    // Exits alone do not tell a vCPU that slept from one that polled.
    let confidence = if followed { 0.9 } else { 0.6 };
    let title = match followed {
        true => format!(
            "{found} of {count} IPIs had to wake a halted vCPU, {} each",
            human(sums.halted.percentile(0.5))
        ),
        false => format!(
            "{found} of {count} IPIs were sent to a halted vCPU, {} each",
            human(sums.halted.percentile(0.5))
        ),
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .cost(cost)
        .title(title)
        .evidence(says!(
            "{halted} of {all} IPIs ({share}) were for a halted vCPU.",
            halted = found,
            all = count,
            share = Of(found, count),
        ))
        .evidence(halts.why)
        .evidence(says!(
            "The halts cost {cost}: {each} for each IPI (difference of the medians), {share} of the {active} in which \
             such IPIs occur.",
            cost = Ns(ns),
            each = Ns(halts.each_ns),
            share = Of(ns, active),
            active = Ns(active),
        ));
    if sums.alone > 0 {
        finding = finding.evidence(says!(
            "Not counted: {alone} to a halted vCPU with fewer than four in 17 ms.",
            alone = Many(sums.alone, "interrupt"),
        ));
    }
    if sums.waited.0 > 0 {
        finding = finding.evidence(says!(
            "Not counted: {waited} in which {count} of the targets waited for a CPU behind another task \
             (vcpu-preempted; polling makes that worse).",
            waited = Ns(sums.waited.1),
            count = sums.waited.0,
        ));
    }
    if sums.of_agent > 0 {
        finding = finding.evidence(says!(
            "Not counted: {of_agent} within 5 ms of traffic between the recorder and its agent in the guest.",
            of_agent = Many(sums.of_agent, "interrupt"),
        ));
    }
    if !followed {
        finding = finding.evidence(
            "Exits and entries do not show whether a halted vCPU slept or polled; kvm:kvm_vcpu_wakeup and sched:* do.",
        );
    }
    finding = stages(case, finding, halted);
    finding = polling(case, finding);
    finding.at_least = match share {
        share if share >= 0.1 => Severity::High,
        _ => Severity::Medium,
    };
    finding.found()
}

/// The stages of the path, most time first.
fn stages(case: &Case<'_>, finding: Finding, halted: u64) -> Finding {
    let Some(path) = case.picture.path("ipi") else {
        return finding;
    };
    let mut stages: Vec<_> = (path.stages.iter())
        .filter(|stage| stage.stats.count() >= halted / 10)
        .collect();
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.stats.total()));
    let mut finding = finding;
    for stage in stages.iter().take(3) {
        finding = finding.evidence(
            says!(
                "{stage}: p50 {p50}, p99 {p99}, {count} times.",
                stage = stage.name.as_str(),
                p50 = Ns(stage.stats.percentile(0.5)),
                p99 = Ns(stage.stats.percentile(0.99)),
                count = stage.stats.count(),
            )
            .slowest(path),
        );
    }
    finding
}

/// What polling does already.
fn polling(case: &Case<'_>, finding: Finding) -> Finding {
    let rows = || case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let hits: u64 = rows()
        .map(|row| row.polls.succeeded)
        .fold(0, u64::saturating_add);
    let misses: u64 = rows()
        .map(|row| row.polls.failed)
        .fold(0, u64::saturating_add);
    let mut finding = finding;
    if hits + misses > 0 {
        finding = finding.evidence(says!(
            "Halt polling succeeded {succeeded} of {polls} times.",
            succeeded = hits,
            polls = hits + misses,
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

/// No write that wakes a thread up is over in less.
const WAKES_NS: u64 = 2_500;

/// Only sums: interrupts sent, and halts. They go together in a guest whose vCPUs wake each other, and as well in one
/// that interrupts vCPUs which run while others halt: whom an interrupt found is not in them.
fn by_sums(case: &Case<'_>) -> Verdict {
    let waits = case.exits_of_class(ExitClass::Waiting);
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
    // A guest that has little to do sets its timer and halts, as often. That write is over sooner than most exits; one
    // that wakes a thread up takes longer.
    let each = sent.ns / sent.count.max(1);
    if !exact && (each < WAKES_NS || each < case.others_mean_ns(sent)) {
        return Verdict::Clear;
    }
    let what = match exact {
        true => "interrupts sent",
        false => "writes of registers",
    };
    Verdict::Unknown(format!(
        "{} {what} and {} halts may be IPIs that wake halted vCPUs; sums do not show what the targets were doing. \
         Record kvm:kvm_msr, kvm:kvm_apic_ipi and kvm:kvm_apic_accept_irq (arm64: kvm:kvm_sys_access), \
         sched:sched_switch and sched:sched_waking.",
        sent.count, waits.count
    ))
}

/// Interrupts sent, and whether it is certain that they are. Their time is that of whole exits: KVM wakes the target
/// before its event of the register.
fn sent(case: &Case<'_>) -> (RowSum, bool) {
    let registers = RowSum::of(
        case.picture
            .exits_that(|reason| reason.may_write_msr() || reason.name() == Some("APIC_WRITE")),
    );
    // x2APIC's ICR, and the xAPIC's (Intel SDM volume 3, 11.6.1).
    let msr = RowSum::of(case.accesses(ExitTable::Msr, |row| {
        row.write && row.address == Some(0x830)
    }));
    let mmio = RowSum::of(case.accesses(ExitTable::Mmio, |row| {
        row.write && row.address == Some(0xfee0_0300)
    }));
    if msr.count > 0 {
        let all = RowSum::of(case.picture.rows(ExitTable::Msr));
        // Those that do not wake anybody take what they take in the table of registers.
        let others = all.ns.saturating_sub(msr.ns);
        let ns = registers.ns.saturating_sub(others).max(msr.ns);
        return (
            RowSum {
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
        _ if known => (RowSum::default(), false),
        Some(Isa::Arm64) => (RowSum::default(), false),
        _ => (registers, false),
    }
}
