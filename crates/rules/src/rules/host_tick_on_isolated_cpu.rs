//! The host's tick on CPUs that were isolated for guests.

use analysis::ExitTable;
use cpuset::CpuSet;
use event::{ExitClass, ExitReason};

use crate::case::RowSum;
use crate::evidence::{Evidence, Id, Ns, PerSecond, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "host-tick-on-isolated-cpu",
    title: "The host's tick interrupts vCPUs on isolated CPUs",
    described_as: &[
        "timer interrupts on isolated CPUs",
        "nohz_full does not stop the tick",
        "local_timer_entry on the vCPU's CPU 250 or 1000 times a second",
        "jitter on a pinned vCPU, cyclictest spikes every millisecond",
    ],
    looks_at: "exits for interrupts of the host, on CPUs that the host's command line isolates",
    needs: "kvm_exit with its CPU, and --facts with the host's isolated CPUs; irq_vectors:local_timer_entry shows \
        which are the timer's own",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "isolcpus= keeps other tasks off a CPU, but not the tick. Without nohz_full= the host's scheduler tick runs \
        on every CPU that has a task, CONFIG_HZ times a second, and each tick is an exit.",
    found: &[
        "A CPU of the host's isolated ones with {ticks} exits for interrupts (or timer interrupts) a second, which is \
         a tick of the slowest kernel (100 Hz) with some missing; {exits} exits in all. On a CPU of `nohz_full` only \
         what goes beyond the guest's own timer counts: AMD has no timer that counts while a guest runs, and on arm64 \
         the guest's timer interrupts the host, so each expiry is such an exit. `kvm_msr` (arm64: \
         `kvm_timer_update_irq`) shows how often the guest started it; without, it is not known. Confidence 0.9 where \
         `local_timer_entry` was recorded, else 0.7. The cost is by the mean of all exits for interrupts.",
    ],
    limits: &[
        ("ticks", EvidenceNumber::PerSecond(TICK_PER_SECOND)),
        ("exits", EvidenceNumber::Count(LEAST)),
    ],
    seen_from: "{ticks} exits for interrupts a second, {exits} in all, on a CPU that the host isolates",
    unknown: "*facts*, with *exits* of the host's CPUs; `trapline record --for exits -e \
     irq_vectors:local_timer_entry` shows which are the timer's.",
    advice: "",
    looks_alike: "A device's interrupt on such a CPU: without `local_timer_entry` the two are one, at 0.7; `trapline \
        facts` has the IRQs' affinity.",
    remedies: &[
        Remedy {
            what: "Stop the tick where one task runs: nohz_full= and rcu_nocbs= with these CPUs on the host's kernel \
                command line (CONFIG_NO_HZ_FULL).",
            price: "Entering and leaving the kernel gets slower on these CPUs (context tracking), so each exit costs \
                more. At least one CPU has to keep the time.",
            unless: "The tick stays where more than one task runs on such a CPU.",
            check: "trapline exits --cpu LIST: exits for interrupts in a second.",
        },
        Remedy {
            what: "Move the other interrupts: IRQ affinity (irqbalance off, /proc/irq/*/smp_affinity_list), and kernel \
                threads.",
            price: "The other CPUs take these interrupts.",
            unless: "Managed interrupts (one for each CPU, set by the driver) cannot be moved.",
            check: "trapline facts: the IRQs' affinity; trapline exits.",
        },
    ],
    sources: &[
        "Linux, Documentation/timers/no_hz.rst; Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full, \
         rcu_nocbs)",
    ],
    explains: &[ExplainedTime::Exits(ExitClass::Interrupt)],
    look: RuleLook::Case(look),
};

/// Exits that it takes to speak of a rate.
const LEAST: u64 = 100;
/// A tick of the slowest configuration (CONFIG_HZ=100), with some missing.
const TICK_PER_SECOND: f64 = 80.0;

/// Exits for interrupts of the host on one isolated CPU.
struct Ticking {
    cpu: u32,
    /// Without those that the guest's own timer makes.
    exits: u64,
    /// Interrupts of the host's own timer that were recorded.
    timer: u64,
    /// Whether the host stops its tick there where one task runs.
    adaptive: bool,
}

/// Returns the isolated CPUs on which interrupts come as often as a tick.
fn ticking(case: &Case<'_>, isolated: &CpuSet) -> Vec<Ticking> {
    let nohz = nohz_full(case);
    let signs = case.picture.signs.cpus.iter().zip(0u32..);
    signs
        .filter(|(_, cpu)| isolated.contains(*cpu))
        .map(|(signs, cpu)| {
            // Without nohz_full a CPU that runs a vCPU has its tick. With it the interrupts may be the guest's own
            // timer's.
            let adaptive = nohz.is_some_and(|set| set.contains(cpu));
            let guests = if adaptive { signs.guest_timers } else { 0 };
            Ticking {
                cpu,
                exits: signs.interrupt_exits.saturating_sub(guests),
                timer: signs.timer_interrupts,
                adaptive,
            }
        })
        .filter(|one| one.exits as f64 / case.seconds() >= TICK_PER_SECOND)
        .collect()
}

/// Returns the CPUs of the host's `nohz_full=`.
fn nohz_full<'a>(case: &Case<'a>) -> Option<&'a CpuSet> {
    let set = case.host()?.nohz_full.as_ref();
    set.filter(|set| !set.is_empty())
}

fn look(case: &Case<'_>) -> Verdict {
    let Some(isolated) = case.host().and_then(|host| host.isolated.as_ref()) else {
        return Verdict::Unknown(
            "Give --facts of the host (trapline facts --format json): it lists the isolated CPUs."
                .to_owned(),
        );
    };
    if isolated.is_empty() {
        return Verdict::Clear;
    }
    if !case.has_exits() || case.printed() {
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let ticking = ticking(case, isolated);
    let recorded = ["kvm_msr", "kvm_mmio", "kvm_timer_update_irq"];
    let recorded = recorded
        .iter()
        .any(|name| case.picture.events(name).is_some());
    if !recorded && ticking.iter().any(|one| one.adaptive) {
        return Verdict::Unknown(
            "Isolated CPUs are interrupted often though nohz_full stops their tick; record kvm:kvm_msr (arm64: \
             kvm:kvm_timer_update_irq) to separate the guest's own timer from the host's interrupts."
                .to_owned(),
        );
    }
    let count: u64 = ticking
        .iter()
        .map(|one| one.exits)
        .fold(0, u64::saturating_add);
    if ticking.is_empty() || count < LEAST {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, isolated, &ticking, count).found()
}

/// What exits for interrupts take, by the mean of all of them.
fn cost_ns(case: &Case<'_>, count: u64) -> u64 {
    let rows = case.picture.rows(ExitTable::Vmexit).iter();
    let sum = RowSum::of(rows.filter(|row| row.reason.is_some_and(ExitReason::is_interrupt)));
    (u128::from(sum.ns) * u128::from(count) / u128::from(sum.count.max(1))) as u64
}

fn say(case: &Case<'_>, isolated: &CpuSet, ticking: &[Ticking], count: u64) -> Finding {
    let seconds = case.seconds();
    let cost_ns = cost_ns(case, count);
    let timer: u64 = ticking
        .iter()
        .map(|one| one.timer)
        .fold(0, u64::saturating_add);
    let confidence = if timer > 0 { 0.9 } else { 0.7 };
    let mut finding = Finding::new(&RULE, confidence)
        .cost(case.vcpu_cost(cost_ns))
        .title(format!(
            "Isolated CPUs were interrupted {:.0} times a second each, on average",
            count as f64 / seconds / ticking.len() as f64
        ))
        .evidence(says!(
            "The host isolates CPUs {isolated}; nohz_full is {nohz}.",
            isolated = isolated.to_string(),
            nohz = nohz_full(case).map_or_else(|| "not set".to_owned(), ToString::to_string),
        ));
    for one in ticking.iter().take(6) {
        let own = match one.timer {
            0 => Evidence::default(),
            timer => says!(", {timer} interrupts of the local timer", timer = timer),
        };
        finding = finding.evidence(says!(
            "CPU {cpu}: {exits} exits for interrupts of the host, {rate} a second{own}.",
            cpu = Id(u64::from(one.cpu)),
            exits = one.exits,
            rate = PerSecond(one.exits as f64 / seconds),
            own = own,
        ));
    }
    finding = finding.evidence(says!(
        "{exits} exits took {time}, at the mean of all exits for interrupts.",
        exits = count,
        time = Ns(cost_ns),
    ));
    if let Some(hz) = case.host().and_then(|host| host.hz) {
        finding = finding.evidence(says!("The host's CONFIG_HZ is {hz}.", hz = hz.to_string(),));
    }
    if ticking.iter().all(|one| one.adaptive) {
        finding = finding
            .also("nohz_full is set for these CPUs and does not help here: more than one task runs on them, or another \
                interrupt than the tick.")
            .only(&[1]);
    }
    if timer == 0 {
        finding = finding.evidence(
            "The recording does not show which interrupts these are; irq_vectors:local_timer_entry and \
            irq:irq_handler_entry do.",
        );
    }
    finding
}
