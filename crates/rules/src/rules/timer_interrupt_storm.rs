//! A guest's timer interrupts it thousands of times a second.

use analysis::{TimerEvidence, TimerRow, TimersReport};
use event::{ExitClass, ExitReason, Isa};
use words::duration::human;

use crate::case::RowSum;
use crate::evidence::{Evidence, Many, Ns, Of, PerSecond, Share, ThreadMention, says};
use crate::{
    Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds, Remedy, RestsOn,
    Rule, RuleLook, Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "timer-interrupt-storm",
    title: "A timer interrupts a vCPU thousands of times a second and causes most of its exits",
    described_as: &[
        "many exits for the timer, MSR 0x6e0 or preemption timer",
        "the guest sets its timer thousands of times a second",
        "an idle guest wakes up all the time",
        "high-resolution timers cost CPU in the VM",
    ],
    looks_at: "by vCPU: interrupts of the guest's timer by vector (arm64: by line), how often the guest sets it, and \
        which exits are for either; exits for the host's own timer by vector, where Intel's kvm_exit has it",
    needs: "kvm_exit and kvm_entry with kvm:kvm_inj_virq or kvm:kvm_apic_accept_irq, and kvm:kvm_msr (arm64: \
            kvm:kvm_timer_update_irq); all of KVM's events (-e kvm, -e 'kvm:*') have them",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "Each expiry of a guest's timer costs exits: one to set it, one when it expires while the guest runs, on \
        AMD often one more for the interrupt window. With a period of microseconds the exits take more time than the \
        guest's work, and the timer is late all the same.",
    found: &[
        "By vCPU: {many} interrupts of its timer a second (no kernel's tick is faster than `CONFIG_HZ=1000`; half as \
         much again is left for what else it times), {least} in all, seen for {least_time} or more, and half of all \
         its exits are for the timer. An exit is, if between it and the entry the guest set its timer (writes of \
         0x6e0, 0x838, 0xfee00380, or of Hyper-V's synthetic timers), or the timer's interrupt was accepted or \
         injected, or if it is `PREEMPTION_TIMER`. So what is set, expires and waits for a window counts, and the \
         host's tick does not. The cost is the time of these exits, without waits.",
        "x86: the vector, in `kvm_inj_virq` and `kvm_apic_accept_irq`: 236 (0xec) and 237 of Linux, 239 before 4.11, \
         209 of Windows, or another one that came about as often as the preemption timer or the deadline timer \
         expired: 0.95. Without vectors `PREEMPTION_TIMER` shows it: 0.95.",
        "arm64: `kvm_timer_update_irq` that raises the line of a private timer (IRQ below 32) before an `IRQ` exit, or \
         at the end of a wait; KVM raises it again at every load, which is not counted: 0.95.",
        "Neither: the timer was set 3000 times a second, without two for each halt (a vCPU that idles stops its tick \
         and starts it again): 0.5.",
        "Intel's `kvm_exit` has the vector of an `EXTERNAL_INTERRUPT`: half of all exits of a vCPU and {many} a second \
         by 236, the host's own timer, with nothing for the guest: a timer of the host, 0.7.",
        "From {costly} a second on it is one too where these exits take a tenth of the vCPU's time and it hardly \
         sleeps (one halt for four interrupts at most): a guest on a slow host gets through no more.",
        "Counts of KVM's events alone (`kvm_stat`, `perf stat -e 'kvm:*'`): `kvm_inj_virq`, `kvm_msr` and `kvm_eoi` \
         within a tenth of each other, a quarter of the exits or more, and {ticks} a second: 0.5, `medium`. Below that \
         it is the ticks of some vCPUs: no finding.",
    ],
    limits: &[
        ("ticks", EvidenceNumber::PerSecond(TICKS_PER_SECOND)),
        ("many", EvidenceNumber::PerSecond(MANY_PER_SECOND)),
        ("costly", EvidenceNumber::PerSecond(COSTLY_PER_SECOND)),
        ("least", EvidenceNumber::Count(LEAST)),
        ("least_time", EvidenceNumber::Nanoseconds(LEAST_NS)),
    ],
    seen_from: "{many} interrupts of a vCPU's timer a second that are half of its exits",
    unknown: "*all*. A printed table shows neither which timer it was nor how long it took: not known, unless \
        interrupts, windows and writes of registers are fewer than {least}, a tenth of the exits without waits, or a \
        twentieth of the time. A recording of exits alone in which such exits are half of a vCPU's and {many} a \
        second: not known.",
    advice: "",
    looks_alike: "The tick of a guest with `CONFIG_HZ=1000` is nearly all its exits when it computes, and 1000 a \
        second. The host's own tick interrupts the guest and gives it nothing: \
        [host-tick-on-isolated-cpu](#host-tick-on-isolated-cpu). A network card's interrupts have another vector. A \
        vCPU that goes to sleep and is woken by others sets its timer twice each time, and it does not expire: \
        [halted-target-ipi](#halted-target-ipi).",
    remedies: &[
        Remedy {
            what: "Find the timer in the guest and lengthen its period, or let it wait for an event: trapline record \
                -e timer:hrtimer_start -e timer:hrtimer_expire_entry in the guest names the function and the task \
                (timerfd, nanosleep, a poll timeout, a media or real-time loop; Windows: powercfg /energy lists who \
                asked for a fine timer resolution).",
            price: "The work that it starts runs less often, or later.",
            unless: "If the guest needs that period, give its vCPU a CPU of its own instead.",
            check: "trapline exits --event msr --by vcpu: writes of 0x6e0 for each second; the line LOC (arm64: \
                arch_timer) of /proc/interrupts in the guest.",
        },
        Remedy {
            what: "Make each expiry cheaper. Intel: the VMX preemption timer (kvm_intel.preemption_timer=1, the \
                default) avoids the host's own timer and its interrupt; APICv injects without an interrupt window. On \
                a nohz_full= host with dedicated CPUs, kvm.pi_inject_timer=1 (Linux 5.3) posts the interrupt from \
                another \
                CPU, without an exit, where the guest's HLT and MWAIT do not exit (QEMU's -overcommit cpu-pm=on). \
                AMD: avic=1 avoids the window.",
            price: "The modules have to be reloaded, so the host's guests have to stop. Posted timer interrupts need a \
                housekeeping CPU.",
            unless: "AMD and arm64 have no VMX preemption timer; APICv or AVIC need a CPU that has them.",
            check: "trapline exits: PREEMPTION_TIMER in place of EXTERNAL_INTERRUPT, no INTERRUPT_WINDOW or vintr.",
        },
        Remedy {
            what: "If it is the tick: a kernel with CONFIG_HZ=250 or less, CONFIG_NO_HZ_IDLE for vCPUs that idle, \
                nohz_full= in the guest for vCPUs that run one task.",
            price: "Coarser time slices; with nohz_full= entering the guest's kernel gets slower, and one vCPU has to \
                keep the time.",
            unless: "It does not help above 1000 a second: no tick is as fast.",
            check: "trapline exits: exits for each second while the guest does nothing else.",
        },
        Remedy {
            what: "Pin the vCPU to a CPU that nobody else uses (<vcpupin>, isolcpus= on the host), so that expiries \
                are not late as well.",
            price: "No other task can use that CPU when the guest is idle.",
            unless: "It alone does not help: the exits stay.",
            check: "trapline vcpus: runnable time of that vCPU.",
        },
    ],
    sources: &[
        "Linux, arch/x86/kvm/lapic.c (start_apic_timer, kvm_can_post_timer_interrupt); \
         arch/x86/include/asm/irq_vectors.h; arch/arm64/kvm/arch_timer.c",
        "Intel SDM volume 3, 11.5.4 (APIC timer), 26.5.1 (VMX-preemption timer)",
        "Linux, Documentation/timers/no_hz.rst, hrtimers.rst",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Timer),
        ExplainedTime::Exits(ExitClass::Msr),
        ExplainedTime::AllExits,
    ],
    look: RuleLook::Case(look),
};

/// No kernel's tick is faster than CONFIG_HZ=1000; with half as much again for what else the guest times.
const MANY_PER_SECOND: f64 = 1500.0;
/// Just above any tick, where it costs a tenth of the vCPU's time and keeps it from its sleep: a slow host, or a guest
/// that does not get through its interrupts, has no more.
const COSTLY_PER_SECOND: f64 = 1100.0;
const COSTLY: f64 = 0.1;
/// Interrupts of one vCPU's timer that it takes to speak of a rate.
const LEAST: u64 = 500;
/// A vCPU that was observed for less than this has no rate.
const LEAST_NS: u64 = 100_000_000;

/// Of counts alone: more interrupts a second than 20 vCPUs with the fastest tick have.
const TICKS_PER_SECOND: f64 = 20_000.0;
/// How sure it is by counts alone: many vCPUs may share them.
const BY_COUNTS: f64 = 0.5;

/// How often something happened to a vCPU.
fn rate(row: &TimerRow, count: u64) -> f64 {
    count as f64 * 1e9 / row.observed_ns.max(1) as f64
}

fn often(row: &TimerRow, count: u64) -> bool {
    row.observed_ns >= LEAST_NS && count >= LEAST && rate(row, count) >= MANY_PER_SECOND
}

/// Whether interrupts that are not so many keep a vCPU busy.
fn costly(row: &TimerRow) -> bool {
    let share = row.timer.ns as f64 / row.observed_ns.max(1) as f64;
    row.observed_ns >= LEAST_NS
        && row.interrupts >= LEAST
        && rate(row, row.interrupts) >= COSTLY_PER_SECOND
        && share >= COSTLY
        && row.halts.saturating_mul(4) < row.interrupts
}

fn look(case: &Case<'_>) -> Verdict {
    if case.printed() {
        return printed(case);
    }
    let Some(timers) = case.picture.timers.as_ref().filter(|_| case.has_exits()) else {
        return unknown(case);
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let rows = || timers.rows.iter();
    let guests: Vec<&TimerRow> = rows().filter(|row| is_guests(row)).collect();
    if !guests.is_empty() {
        return guests_timer(case, timers, &guests);
    }
    let hosts: Vec<&TimerRow> = rows()
        .filter(|row| {
            often(row, row.host_timer.count) && row.host_timer.count >= row.exits.div_ceil(2)
        })
        .collect();
    if !hosts.is_empty() {
        return hosts_timer(case, &hosts);
    }
    // Without interrupts: a timer cannot expire more often than it was set, and a vCPU that goes to sleep and comes
    // back sets it twice without an expiry.
    let unnamed: Vec<&TimerRow> = rows()
        .filter(|row| {
            let expiries = row.set.saturating_sub(row.halts.saturating_mul(2)) / 2;
            row.evidence == TimerEvidence::Nothing
                && often(row, expiries)
                && row.timer_exits >= row.exits.div_ceil(2)
        })
        .collect();
    let recorded = timers.vectors || timers.lines;
    if !unnamed.is_empty() && !recorded {
        return guests_timer(case, timers, &unnamed);
    }
    let possible =
        rows().any(|row| often(row, row.possible) && row.possible >= row.exits.div_ceil(2));
    let arm64 = case.picture.isa == Some(Isa::Arm64);
    let records = if arm64 {
        timers.lines
    } else {
        recorded || timers.writes
    };
    match possible && !records {
        true => unknown(case),
        false => Verdict::Clear,
    }
}

/// Whether the guest's timer is what a vCPU leaves its guest for.
fn is_guests(row: &TimerRow) -> bool {
    row.evidence != TimerEvidence::Nothing
        && (often(row, row.interrupts) || costly(row))
        && row.timer_exits.saturating_mul(2) >= row.exits
}

fn name(row: &TimerRow) -> ThreadMention {
    match row.vcpu {
        Some(vcpu) => ThreadMention::named(&words::vcpu(None, vcpu), row.tid),
        None => ThreadMention {
            called: format!("the vCPU of thread {}", row.tid),
            tid: row.tid,
        },
    }
}

fn guests_timer(case: &Case<'_>, timers: &TimersReport, rows: &[&TimerRow]) -> Verdict {
    let Some(worst) = rows.iter().max_by_key(|row| row.timer.ns) else {
        return Verdict::Clear;
    };
    let ns = rows
        .iter()
        .map(|row| row.timer.ns)
        .fold(0u64, u64::saturating_add);
    let counted = worst.evidence != TimerEvidence::Nothing;
    let (confidence, title) = match counted {
        true => (
            0.95,
            format!(
                "A timer of the guest interrupts {} {:.0} times a second, {}",
                name(worst),
                rate(worst, worst.interrupts),
                human(ns)
            ),
        ),
        // How many expired is an estimate, and other guests set timers that never do; a lost halt makes two settings
        // look like an expiry.
        false => (
            0.5,
            format!(
                "{} sets its timer {:.0} times a second, {}",
                name(worst),
                rate(worst, worst.set),
                human(ns)
            ),
        ),
    };
    let mut finding = Finding::new(&RULE, confidence)
        .cost(case.vcpu_cost(ns))
        .title(title);
    for row in rows.iter().take(4) {
        let own = FindingCost::of(row.timer.ns, row.observed_ns, Base::VcpuTime);
        finding.at_least = finding.at_least.max(own.severity());
        finding = finding.evidence(interrupted(row));
    }
    let arm64 = case.picture.isa == Some(Isa::Arm64);
    // On arm64 the guest's timer is an interrupt of the host.
    if worst.interrupted.count > 0 && !arm64 {
        finding = finding.evidence(by_host(worst));
    }
    if !counted {
        finding = finding.evidence(
            "The recording does not show which interrupts came; kvm:kvm_inj_virq and kvm:kvm_apic_accept_irq have \
             their vectors.",
        );
    }
    if !timers.writes && !arm64 {
        finding = finding.evidence(
            "Register writes (kvm:kvm_msr) are not recorded, so exits that set the timer are not in the cost.",
        );
    }
    if let Some(losses) = case.losses() {
        finding = finding.evidence(losses);
    }
    let order: &[usize] = match arm64 {
        true => &[0, 3, 2],
        false => &[0, 1, 3, 2],
    };
    finding.only(order).found()
}

/// How often a vCPU's timer interrupts it, and what that takes.
fn interrupted(row: &TimerRow) -> Evidence {
    let what = match row.evidence {
        TimerEvidence::Vector(vector) => says!(
            "{interrupts} timer interrupts ({vector})",
            interrupts = row.interrupts,
            vector = format!("vector {vector}, 0x{vector:x}"),
        ),
        TimerEvidence::Preemption => says!(
            "{interrupts} expiries of the VMX preemption timer",
            interrupts = row.interrupts,
        ),
        TimerEvidence::Line(irq) => says!(
            "{interrupts} interrupts of the virtual timer ({line})",
            interrupts = row.interrupts,
            line = format!("IRQ {irq}"),
        ),
        TimerEvidence::Nothing => "an unknown number of expiries".into(),
    };
    let set = match row.set {
        0 => Evidence::default(),
        set => says!(", and the timer was set {set}", set = Many(set, "time")),
    };
    says!(
        "{vcpu}: {what} in {observed}{set}; {exits} of {all} exits are for it ({share}); they took {share_of_time} of \
         the vCPU's time, in {timed}.",
        vcpu = name(row),
        what = what,
        observed = Ns(row.observed_ns),
        set = set,
        exits = row.timer_exits,
        all = row.exits,
        share = Of(row.timer_exits, row.exits),
        share_of_time = Of(row.timer.ns, row.observed_ns),
        timed = Many(row.timer.count, "exit"),
    )
}

/// How often the host interrupts a vCPU beside that.
fn by_host(row: &TimerRow) -> Evidence {
    let own = match row.host_timer.count {
        0 => Evidence::default(),
        recorded => says!(
            "; {by_timer} of these are the host's own timer (vector 236), and are not for the guest",
            by_timer = recorded,
        ),
    };
    says!(
        "{exits} of its exits are for interrupts of the host{own}.",
        exits = row.interrupted.count,
        own = own,
    )
}

/// The host's own timer: its tick is never so fast, so something on the host has a timer there.
fn hosts_timer(case: &Case<'_>, rows: &[&TimerRow]) -> Verdict {
    let Some(worst) = rows.iter().max_by_key(|row| row.host_timer.ns) else {
        return Verdict::Clear;
    };
    let ns = rows
        .iter()
        .map(|row| row.host_timer.ns)
        .fold(0u64, u64::saturating_add);
    let mut finding = Finding::new(&RULE, 0.7)
        .cost(case.vcpu_cost(ns))
        .title(format!(
            "A timer of the host interrupts {} {:.0} times a second, {}",
            name(worst),
            rate(worst, worst.host_timer.count),
            human(ns)
        ));
    for row in rows.iter().take(4) {
        finding = finding.evidence(says!(
            "{vcpu}: {exits} exits by vector 236, the host's own timer, in {observed} ({share} of its exits), without \
             a timer interrupt for the guest. The host's tick is 1000 a second at most.",
            vcpu = name(row),
            exits = row.host_timer.count,
            observed = Ns(row.observed_ns),
            share = Of(row.host_timer.count, row.exits),
        ));
    }
    finding
        .note(
            0,
            "This timer is the host's: the same command on the host, or /proc/timer_list, names what set it (a \
             profiler, a VMM thread with a short timeout, another guest's timer on that CPU).",
        )
        .only(&[0, 3])
        .found()
}

/// A table says neither which timer, nor how long it is of.
fn printed(case: &Case<'_>) -> Verdict {
    if !case.has_exits() {
        return by_counts(case).unwrap_or_else(|| unknown(case));
    }
    // Timers are set by registers, and end the guest's time by interrupts, windows for them, or the hardware's
    // own timer.
    let of_timers = |reason: ExitReason| {
        let ends = [
            ExitClass::Interrupt,
            ExitClass::InterruptWindow,
            ExitClass::Timer,
        ];
        reason.may_write_msr() || ends.contains(&reason.class())
    };
    let sum = RowSum::of(case.picture.exits_that(of_timers));
    // The guest's other exits, without its waits, which end with an interrupt each.
    let report = case.picture.table(analysis::ExitTable::Vmexit);
    let waits = report.map_or(RowSum::default(), |report| {
        RowSum::of(report.rows.iter().filter(|row| row.waiting))
    });
    let others = case.all_exits().count.saturating_sub(waits.count);
    let share = FindingCost::of(sum.ns, case.handling_ns(), Base::Handling).share;
    // A vCPU of several may have it all, and its timer half of all that it does: a tenth of the sum is too little for
    // that.
    if sum.count < LEAST || sum.count < others / 10 || share < 0.05 {
        return Verdict::Clear;
    }
    unknown(case)
}

/// Counts of KVM's events alone: each turn of a guest that sets its timer, takes its interrupt and ends it is a write
/// of a register, an injection and an EOI, and about three exits.
fn by_counts(case: &Case<'_>) -> Option<Verdict> {
    let (exits, _) = case.counted_event("kvm_exit")?;
    let (writes, _) = case.counted_event("kvm_msr")?;
    let (injected, rate) = case.counted_event("kvm_inj_virq")?;
    let (ended, _) = case.counted_event("kvm_eoi")?;
    let rate = rate?;
    // A count for each turn, but for what else the guests do.
    let each = |count: u64| count.abs_diff(injected) <= injected / 10;
    if injected < LEAST || !each(writes) || !each(ended) || injected.saturating_mul(4) < exits {
        return None;
    }
    if rate < TICKS_PER_SECOND {
        return Some(Verdict::Clear);
    }
    let ticks = (rate / 1000.0).ceil() as u64;
    let mut finding = Finding::new(&RULE, BY_COUNTS)
        .title(format!(
            "Guests set a timer and take an interrupt {rate:.0} times a second, which is nearly all that they exit for"
        ))
        .evidence(says!(
            "{exits} exits with {writes} accesses of registers (kvm_msr), {injected} interrupts (kvm_inj_virq) and \
             {ended} ends of interrupts (kvm_eoi): {share} of each for an exit, as in a loop that sets a timer, takes \
             its interrupt and ends it.",
            exits = exits,
            writes = writes,
            injected = injected,
            ended = ended,
            share = Share(injected as f64 / exits.max(1) as f64),
        ))
        .evidence(says!(
            "{rate} interrupts a second are those of one vCPU, or of {ticks} vCPUs with a tick of 1000 a second: with \
             that many vCPUs that compute, it is no storm.",
            rate = PerSecond(rate),
            ticks = ticks,
        ));
    if let Some((armed, _)) = case
        .counted_event("kvm_hv_timer_state")
        .filter(|(count, _)| each(*count))
    {
        finding = finding.evidence(says!(
            "The VMX preemption timer was set or stopped {armed} times (kvm_hv_timer_state): the register is that of \
             the timer.",
            armed = armed,
        ));
    }
    finding.at_least = Severity::Medium;
    finding.at_most = Severity::Medium;
    finding.rests_on = RestsOn::Counts;
    let note = "First see which vCPU it is, and whether it sets its timer to a time that has passed: trapline record \
                --for paths has kvm:kvm_msr (writes of 0x6e0) and kvm:kvm_inj_virq. A guest that catches up with its \
                clock after it was migrated or stopped does this until it has.";
    Some(finding.note(0, note).only(&[0, 1, 3]).found())
}

fn unknown(case: &Case<'_>) -> Verdict {
    Verdict::Unknown(match (case.printed(), case.picture.isa) {
        (true, _) => {
            "A table shows neither which interrupts came nor in what time; record kvm:kvm_exit, kvm:kvm_entry, \
             kvm:kvm_msr and kvm:kvm_inj_virq (arm64: kvm:kvm_timer_update_irq)."
                .to_owned()
        }
        (_, Some(Isa::Arm64)) => {
            "Record kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_timer_update_irq: they show which interrupts are those of \
             the guest's timer."
                .to_owned()
        }
        _ => "Record kvm:kvm_exit, kvm:kvm_entry, kvm:kvm_msr and kvm:kvm_inj_virq or kvm:kvm_apic_accept_irq (arm64: \
              kvm:kvm_timer_update_irq)."
            .to_owned(),
    })
}
