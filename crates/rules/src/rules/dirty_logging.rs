//! The pages that a guest writes are being logged: for a live migration, a snapshot or a backup.

use analysis::{TaskRow, VmmSleepsRow};
use event::ExitClass;
use words::duration::human;

use crate::account::AccountPart;
use crate::evidence::{Many, Ns, Of, ThreadMention, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict,
};

/// Faults that show it, and how many a second.
const LEAST: u64 = 200;
const PER_SECOND: f64 = 100.0;
/// Share of the vCPUs' time, of the faults and of the sleeps by which vCPUs are throttled.
const SHARE: f64 = 0.01;
/// Share of a CPU that the threads of a migration take.
const OF_CPU: f64 = 0.01;
/// Sleeps of a vCPU that is throttled: how many at least, and how long the typical one may be. QEMU lets vCPUs run for
/// 10 ms and has them sleep for 0.1 to 990 ms (`CPU_THROTTLE_TIMESLICE_NS`, 1 % to 99 %, `system/cpu-throttle.c`).
const SLEEPS: u64 = 20;
const SLEEP_NS: std::ops::RangeInclusive<u64> = 500_000..=1_000_000_000;
/// How far the quartiles of the sleeps may be from their median: all of one step of throttling are of one length. And
/// how far the number and the sum of two vCPUs' sleeps may be from each other, whatever the steps were.
const STEADY: f64 = 0.25;
/// Sleeps that two vCPUs have alike.
const SLEEPS_ALIKE: u64 = 10;

pub(crate) static RULE: Rule = Rule {
    id: "dirty-logging",
    title: "The pages that the guest writes are logged (live migration, snapshot, backup)",
    described_as: &[
        "the VM is slow during live migration",
        "migration does not converge, auto-converge throttles the guest",
        "the guest freezes when a backup or snapshot begins",
        "downtime and slow pages while migrating",
    ],
    looks_at: "writes of pages that are mapped and may not be written, KVM's dirty ring, threads of a migration that \
        run, and vCPUs that sleep in the VMM for the same time again and again",
    needs: "kvm_exit, kvm_entry, kvm_page_fault (arm64: kvm_guest_fault), and sched:sched_switch of the whole host",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "Something copies the guest's memory while it runs, and has to know which pages change meanwhile. KVM \
        takes the right to write away from pages, or splits huge ones, so the guest's next write of each is an exit. \
        If the guest writes faster than the copy gets on, QEMU's auto-converge has its vCPUs sleep for more and more \
        of their time.",
    found: &[
        "{least} faults, {rate} a second, were writes of pages that are mapped and may not be written, and took \
         {share} of the vCPUs' time; and a thread of a migration took {cpu} of a CPU (QEMU's live_migration, \
         mig/src/main, multifdsend, bg_snapshot...), KVM filled a dirty ring (kvm_dirty_ring_push), or there were \
         exits for a full log ([pml-full-exits](#pml-full-exits)). Confidence 0.9, and 0.7 by the log alone. Without \
         any of these such writes are copies of shared pages, and are not counted.",
        "While such a thread runs, vCPUs that sleep in the VMM {sleeps} times and more, half of the sleeps within \
         {steady} of the median, are throttled (auto-converge): their sleep counts too. So are vCPUs of which two \
         sleep {alike} times and more, as often and as long as each other within {steady}, since the throttle grows in \
         steps.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("rate", EvidenceNumber::PerSecond(PER_SECOND)),
        ("share", EvidenceNumber::Share(SHARE)),
        ("cpu", EvidenceNumber::Share(OF_CPU)),
        ("sleeps", EvidenceNumber::Count(SLEEPS)),
        ("steady", EvidenceNumber::Share(STEADY)),
        ("alike", EvidenceNumber::Count(SLEEPS_ALIKE)),
    ],
    seen_from: "{least} writes of pages that may not be written, {rate} a second, {share} of the vCPUs' time, with a \
        thread of a migration that takes {cpu} of a CPU",
    unknown: "*all*: without `kvm_page_fault` (arm64: `kvm_guest_fault`) it is not known what faults are for.",
    advice: "",
    looks_alike: "Pages that are shared (KSM, a guest's first write after a read) are written once and fault the same \
        way, without a copying thread; memory that is not mapped at all is \
        [ept-violation-storm](#ept-violation-storm). A VM that is paused sleeps in the VMM for long, and once \
        ([stalled-vcpu](#stalled-vcpu)).",
    remedies: &[
        Remedy {
            what: "Find out what copies: virsh domjobinfo (migration, save, backup), info migrate in QEMU's monitor. \
                It ends by itself; compare a recording from after it.",
            price: "None.",
            unless: "It does not end: see the next.",
            check: "trapline diagnose of a recording from after the job.",
        },
        Remedy {
            what: "Let it end sooner: more bandwidth (virsh migrate-setspeed), several connections (--parallel), \
                compression, or post-copy (--postcopy), which needs no log after its switch.",
            price: "Other traffic gets less bandwidth. With post-copy the guest waits for pages over the network, and \
                is lost if either host fails meanwhile.",
            unless: "Post-copy is not for guests that need low latency.",
            check: "virsh domjobinfo: the rate of dirty pages, and the time that remains.",
        },
        Remedy {
            what: "If auto-converge throttles: give it less to do (smaller cpu-throttle-increment, a larger allowed \
                downtime with virsh migrate-setmaxdowntime), or leave --auto-converge out.",
            price: "The migration takes longer, or does not end while the guest writes as much.",
            unless: "The host has to be empty at a fixed time.",
            check: "trapline vcpus: the time asleep in the VMM.",
        },
        Remedy {
            what: "Make each fault cheaper: on x86 keep eager_page_split=Y (the default), so that huge pages are split \
                before the guest writes them, and on arm64 KVM_CAP_ARM_EAGER_SPLIT_CHUNK_SIZE, which QEMU sets with \
                eager-split-size of -accel kvm.",
            price: "Splitting takes time and memory when logging begins.",
            unless: "The guest has no huge pages.",
            check: "trapline exits: fewer faults when the next job begins.",
        },
    ],
    sources: &[
        "Linux, Documentation/virt/kvm/api.rst (KVM_GET_DIRTY_LOG, KVM_CAP_DIRTY_LOG_RING); arch/x86/kvm/mmu/mmu.c \
         (kvm_mmu_slot_remove_write_access), arch/arm64/kvm/mmu.c (kvm_mmu_wp_memory_region)",
        "QEMU, migration/migration.h (names of threads), migration/migration.c and multifd.c before 9.1; \
         system/cpu-throttle.c (before 9.1 softmmu/cpu-throttle.c)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::PageFault),
        ExplainedTime::Part(AccountPart::AsleepInVmm),
    ],
    look: RuleLook::Case(look),
};

/// How QEMU's threads are called that copy a guest's memory, by their names' first letters: `live_migration`,
/// `multifdsend_0` and `bg_snapshot` before 9.1, `mig/src/main`, `mig/src/send_0` and `mig/snapshot` since then
/// (`migration/migration.h`).
const COPYING: [&str; 5] = [
    "live_migration",
    "multifdsend",
    "bg_snapshot",
    "mig/src/",
    "mig/snapshot",
];

/// What shows that a log is kept.
struct LogSigns<'a> {
    /// Threads that copy memory, most CPU time first.
    threads: Vec<&'a TaskRow>,
    /// Pages that KVM put into dirty rings, where that is recorded.
    ring: u64,
    /// Exits for a full log.
    full: u64,
}

impl LogSigns<'_> {
    fn of<'a>(case: &Case<'a>) -> LogSigns<'a> {
        let span = case.picture.span_ns.unwrap_or(0) as f64;
        let rows = case.picture.sched.iter().flat_map(|report| &report.rows);
        let copies = |row: &&TaskRow| COPYING.iter().any(|name| row.comm.starts_with(name));
        let mut threads: Vec<&TaskRow> = rows.filter(copies).collect();
        threads.retain(|row| row.on_cpu_ns as f64 >= span * OF_CPU);
        threads.sort_by_key(|row| std::cmp::Reverse(row.on_cpu_ns));
        LogSigns {
            threads,
            ring: case.picture.events("kvm_dirty_ring_push").unwrap_or(0),
            full: case.exits_of_class(ExitClass::DirtyLog).count,
        }
    }

    fn any(&self) -> bool {
        !self.threads.is_empty() || self.ring >= LEAST || self.full > 0
    }
}

/// How long a throttled vCPU slept. The longest sleep is no throttle's if it is longer than any of these: the VM was
/// stopped, as at the end of its migration.
fn slept(row: &VmmSleepsRow) -> u64 {
    let sleeps = &row.sleeps;
    match sleeps.max() > *SLEEP_NS.end() {
        true => sleeps.total().saturating_sub(sleeps.max()),
        false => sleeps.total(),
    }
}

/// vCPUs that are throttled: all of a VM sleep at the same times, and, as long as the throttle does not change, for the
/// same time.
fn throttled<'a>(case: &Case<'a>) -> Vec<&'a VmmSleepsRow> {
    let near = |one: u64, other: u64| one.abs_diff(other) as f64 <= other as f64 * STEADY;
    let all = &case.picture.vmm_sleeps;
    let rows = all.iter().filter(|row| {
        let sleeps = &row.sleeps;
        let half = sleeps.percentile(0.5);
        let mut quartiles = [0.25, 0.75].map(|part| sleeps.percentile(part)).into_iter();
        let steady = sleeps.count() >= SLEEPS && quartiles.all(|one| near(one, half));
        let mut others = all.iter().filter(|other| other.tid != row.tid);
        let alike = sleeps.count() >= SLEEPS_ALIKE
            && others.any(|other| {
                near(other.sleeps.count(), sleeps.count()) && near(slept(other), slept(row))
            });
        SLEEP_NS.contains(&half) && (steady || alike)
    });
    rows.collect()
}

/// Returns the thread that copies a VM's memory and ran most.
pub(crate) fn copying_thread<'a>(case: &Case<'a>) -> Option<&'a TaskRow> {
    LogSigns::of(case).threads.first().copied()
}

/// Returns whether pages that a guest writes are logged: what faults are for then.
pub(crate) fn is_logging(case: &Case<'_>) -> bool {
    matches!(look(case), Verdict::Found(_))
}

fn look(case: &Case<'_>) -> Verdict {
    if !case.has_exits() || case.printed() {
        return unknown();
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let Some(faults) = &case.picture.faults else {
        return unknown();
    };
    let signs = LogSigns::of(case);
    if !faults.has_codes
        && !case.records_addresses()
        && case.exits_of_class(ExitClass::PageFault).count >= LEAST
    {
        // What the faults were for is not known, and the thread that copies would be seen.
        let seen = case.picture.sched.is_some() && !case.one_process();
        return match seen && !signs.any() {
            true => Verdict::Clear,
            false => unknown(),
        };
    }
    let written = faults.write_protected;
    let often = written.count >= LEAST && written.count as f64 >= case.seconds() * PER_SECOND;
    let written_ns = match often && case.vcpu_cost(written.ns).share >= SHARE {
        true => written.ns,
        false => 0,
    };
    let throttled = match signs.threads.is_empty() {
        true => Vec::new(),
        false => throttled(case),
    };
    let slept_ns = throttled
        .iter()
        .map(|row| slept(row))
        .fold(0, u64::saturating_add);
    let slept_ns = match case.vcpu_cost(slept_ns).share >= SHARE {
        true => slept_ns,
        false => 0,
    };
    if !signs.any() || (written_ns == 0 && slept_ns == 0) {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, &signs, (written_ns, slept_ns), &throttled).found()
}

fn say(
    case: &Case<'_>,
    signs: &LogSigns<'_>,
    (written_ns, slept_ns): (u64, u64),
    throttled: &[&VmmSleepsRow],
) -> Finding {
    let confidence = match !signs.threads.is_empty() || signs.ring > 0 {
        true => 0.9,
        false => 0.7,
    };
    let written = case.picture.faults.unwrap_or_default().write_protected;
    let title = match (written_ns > 0, slept_ns > 0) {
        (true, false) => format!(
            "The guest's memory is copied while it runs: {} first writes of pages, {}",
            written.count,
            human(written_ns)
        ),
        (false, _) => format!(
            "A migration throttles the vCPUs (auto-converge): {} asleep",
            human(slept_ns)
        ),
        (true, true) => format!(
            "A migration logs the guest's writes and throttles its vCPUs: {} of faults, {} asleep",
            human(written_ns),
            human(slept_ns)
        ),
    };
    let mut finding = Finding::new(&RULE, confidence)
        .cost(case.vcpu_cost(written_ns.saturating_add(slept_ns)))
        .title(title);
    let span = case.picture.span_ns.unwrap_or(0);
    for row in signs.threads.iter().take(4) {
        finding = finding.evidence(says!(
            "{thread} ran for {time} ({share} of a CPU): it copies the guest's memory.",
            thread = ThreadMention::named(&row.comm, row.tid),
            time = Ns(row.on_cpu_ns),
            share = Of(row.on_cpu_ns, span),
        ));
    }
    if written.count > 0 {
        finding = finding.evidence(says!(
            "{faults} were writes of pages that are mapped and may not be written: {time}, {each} each.",
            faults = Many(written.count, "fault"),
            time = Ns(written.ns),
            each = Ns(written.ns / written.count.max(1)),
        ));
    }
    if signs.ring > 0 {
        finding = finding.evidence(says!(
            "KVM put {pages} into dirty rings (kvm_dirty_ring_push).",
            pages = Many(signs.ring, "page"),
        ));
    }
    if signs.full > 0 {
        finding = finding.evidence(says!(
            "There were {exits} because the processor's log of written pages was full (PML_FULL).",
            exits = Many(signs.full, "exit"),
        ));
    }
    for row in throttled.iter().filter(|_| slept_ns > 0).take(4) {
        let sleeps = &row.sleeps;
        finding = finding.evidence(says!(
            "{vcpu} slept in the VMM {times} times, {half} each (p50), {time} in all: it is throttled.",
            vcpu = case.vcpu_called(row.tid).capital(),
            times = sleeps.count(),
            half = Ns(sleeps.percentile(0.5)),
            time = Ns(slept(row)),
        ));
    }
    finding
}

fn unknown() -> Verdict {
    Verdict::Unknown(
        "Record kvm:kvm_exit, kvm:kvm_entry, kvm:kvm_page_fault (arm64: kvm:kvm_guest_fault), and sched:sched_switch \
         of the whole host (-a)."
            .to_owned(),
    )
}
