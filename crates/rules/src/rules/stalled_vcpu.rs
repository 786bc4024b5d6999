//! A vCPU that did nothing for long though its guest did not ask to wait.

use analysis::{ExitRow, ExitTable, LONG_NS, Stall, StallCause, StallsReport};
use event::{ExitClass, ExitReason, Isa};
use facts::LogKind;
use words::{capital, duration::human};

use super::dirty_logging::copying_thread;
use super::memory_taken_away::{giver, is_taken_away};
use super::vcpu_throttled::is_throttled;
use crate::common::called;
use crate::evidence::{Evidence, Many, Ns, Of, ThreadMention, Times, says};
use crate::kernel_log;
use crate::stall::sentence;
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Severity, Verdict,
};

/// How sure it is where the host's kernel log alone names a vCPU's thread, asleep or busy.
const LOGGED_ASLEEP: f64 = 0.85;
const LOGGED_BUSY: f64 = 0.7;

pub(crate) static RULE: Rule = Rule {
    id: "stalled-vcpu",
    title: "A vCPU stalled although its guest had not asked to wait",
    described_as: &[
        "the guest freezes for some hundred milliseconds",
        "clocksource watchdog, RCU stall or soft lockup in the guest",
        "BUG: soft lockup - CPU stuck",
        "all of the VM stands still for a moment",
    ],
    looks_at: "exits of a tenth of a second and more in which the guest did not ask to wait: whether its vCPU was \
        stopped, slept and who woke it, ran, or had a CPU on which nothing happened; time asleep in KVM while exits \
        are handled",
    needs: "kvm_exit and kvm_entry; sched:sched_switch separates waiting for a CPU from being handled",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched],
    measures: &[],
    cause: "The guest sees time jump: its watchdogs (soft lockup, RCU stall), timeouts and peers may react. The VMM \
        holds it (its global lock, a synchronous request to a slow disk, a debugger or monitor command), or the host \
        does (memory that is swapped in, a CPU that is taken away), or a signal stopped it.",
    found: &[
        "Stalls of {long} or more, which users notice: an exit that is no wait, up to the next entry. All of them are \
         summed; the cost is the sum, at least `medium`, from one of 1 s on `high`. The longest stand there with their \
         vCPU, their exit, and the command that shows what happened (`trapline events REC --time A,B`). What held the \
         vCPU for most of a stall is one of:",
        "| what | how it is known | confidence |\n| --- | --- | --- |\n| a signal stopped the VMM | its threads left \
         their CPUs in state `T` or `t`. In halts too: the guest's timers wait as well | 0.95 |\n| asleep in the VMM | \
         after `kvm_userspace_exit`; who woke it had its lock, or did its work: the evidence says how long that one \
         ran meanwhile. If it hardly ran, it waited itself, or the VM was paused | 0.85; 0.7 |\n| asleep in KVM | \
         uninterruptibly (`D`): memory, as a rule | 0.85 |\n| busy | it had its CPU, and events show that it ran there \
         (`sched_stat_runtime`) | 0.7 |\n| the host stood still | it had its CPU, or an idle one was there for it, and \
         for most of the stall no event at all came from that CPU, though a running task has an event at every tick. \
         `low`, no cost: nothing in the VM mends it | 0.6 |\n| unknown | without `sched_switch`, or without events \
         that separate a busy task from a silent CPU | 0.5 |",
        "A wait for a CPU that another task had is [vcpu-preempted](#vcpu-preempted)'s. KVM sleeps interruptibly where \
         the guest asked for it: in halts, and in vCPUs that are off (INIT, PSCI); such sleeps are no stalls whatever \
         exit they seem to be in, since the event that would say so may be missing.",
        "A sleep in the VMM is a stall in halts too, where kvm_userspace_exit shows it: a VM that is paused.",
        "A vCPU that still sleeps when the recording ends has stalled at least until then, and that counts. Of one \
         that runs, or waits for a CPU, nothing is concluded: its next event may be missing.",
        "That the host stood still is not said where [vcpu-throttled](#vcpu-throttled) is found: idle CPUs are silent \
         under a quota as well.",
        "Without a stall: asleep in KVM uninterruptibly for {long} in all and a twentieth of the vCPU's time. 0.85. \
         Not where [memory-taken-away](#memory-taken-away) is found, whose effect that is.",
        "The host's kernel log, of the recording's time, where no event shows a stall: a vCPU's thread that slept \
         uninterruptibly (hung task) 0.85, one that let no other task run (soft lockup) 0.7, both `medium`. Lockups \
         and RCU stalls of CPUs on which vCPUs ran stand beside a stall and raise none; so does what the guest's own \
         log says, which is on the guest's clock.",
        "Of a printed table: the longest exit of each reason, 0.5 and `low`, from 1 s on `medium`: it may be a vCPU \
         that \
         lost its CPU in the exit, or an entry that was lost. A table of perf's of arm64 has other times: not \
         known.",
    ],
    limits: &[("long", EvidenceNumber::Nanoseconds(LONG_NS))],
    seen_from: "one stall of {long}",
    unknown: "*exits*, or a printed table; *all* separates the cases.",
    advice: "",
    looks_alike: "A snapshot, the end of a migration, a suspended host; and events that were lost \
     ([lossy-recording](#lossy-recording)): an exit whose entry was lost looks long.",
    remedies: &[
        Remedy {
            what: "Look at what happened meanwhile: run the command that is printed with each stall.",
            price: "None.",
            unless: "The VM may have been paused on purpose: for a snapshot, the end of a migration, a suspended host.",
            check: "Record again after the change: no stall of a tenth of a second.",
        },
        Remedy {
            what: "Find out who sends the VMM SIGSTOP, or attaches to it (gdb, strace, criu, a job control shell, a \
                container's freezer): record signal:signal_generate.",
            price: "None.",
            unless: "The VM may have been paused on purpose.",
            check: "trapline diagnose of a new recording.",
        },
        Remedy {
            what: "Take the work off the VMM's main loop and its lock: iothreads for disks, vhost for network cards, \
                another disk cache mode; no slow monitor commands (info block, screendump, snapshots) while the guest \
                has to answer.",
            price: "More threads, which need CPUs.",
            unless: "First find out what the thread that woke the vCPU did (trapline record --for stacks).",
            check: "trapline diagnose of a new recording.",
        },
        Remedy {
            what: "Keep the guest's memory in RAM: lock it (<locked/> in <memoryBacking>), or relieve the host's \
                memory.",
            price: "The memory cannot be swapped or used by others.",
            unless: "Do not lock memory during a post-copy migration.",
            check: "vmstat's si on the host; trapline diagnose of a new recording.",
        },
        Remedy {
            what: "Look at what runs below the host: firmware (SMIs: turbostat's SMI column), a hypervisor that runs \
                the host itself as a guest (steal time in the host's /proc/stat), or an emulator.",
            price: "None.",
            unless: "No change of this VM or its definition helps.",
            check: "hwlatdetect, or the hwlat tracer, on the host.",
        },
        Remedy {
            what: "Look at what happened meanwhile in the VMM: run the command that is printed with each stall, and \
                trapline paths --path user-exit --each, whose slowest instances name the exit and the threads that \
                ran.",
            price: "None.",
            unless: "The VM may have been paused on purpose: for a snapshot, the end of a migration, a suspended host.",
            check: "Record again after the change: no stall of a tenth of a second.",
        },
    ],
    sources: &[
        "Linux, kernel/watchdog.c, kernel/rcu/tree_stall.h, kernel/hung_task.c (what guests and hosts complain of); \
         virt/kvm/kvm_main.c (kvm_vcpu_ioctl)",
    ],
    explains: &[
        ExplainedTime::Asleep,
        ExplainedTime::AllExits,
        ExplainedTime::Runnable,
    ],
    look: RuleLook::Case(look),
};

/// Positions of the remedies.
const LOOK: usize = 0;
const STOPPED: usize = 1;
const VMM: usize = 2;
const MEMORY: usize = 3;
const HOST: usize = 4;
const LOOK_VMM: usize = 5;

/// Whether the guest may have asked for it: on arm64 it turns vCPUs off, and suspends them, by a call (PSCI).
fn asked(row: &ExitRow) -> bool {
    row.reason.is_some_and(ExitReason::is_arm64_call)
}

fn look(case: &Case<'_>) -> Verdict {
    // The only exit of a vCPU may be the one that it stalls in.
    let stalls = case.picture.stalls.as_ref();
    if !case.has_exits() && stalls.is_none_or(|stalls| stalls.longest.is_empty()) {
        if let Some(finding) = by_log(case) {
            return finding.found();
        }
        return Verdict::Unknown(
            "Record kvm:kvm_exit, kvm:kvm_entry and sched:sched_switch.".to_owned(),
        );
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    if case.printed() {
        return printed(case);
    }
    let Some(stalls) = &case.picture.stalls else {
        return Verdict::Clear;
    };
    let seen = by_stall(case, stalls).or_else(|| asleep(case, stalls));
    seen.map(|finding| case.logged_beside(finding))
        .or_else(|| by_log(case))
        .map_or(Verdict::Clear, Finding::found)
}

/// What the host's own watchdogs say of vCPUs' threads, where no event shows it: who sleeps for minutes has none.
fn by_log(case: &Case<'_>) -> Option<Finding> {
    let hung = case.logged_of_vcpus(LogKind::HungTask);
    let busy = case.logged_of_vcpus(LogKind::SoftLockup);
    let (lines, what, confidence, remedies): (_, _, _, &[usize]) = match hung.is_empty() {
        false => (
            hung,
            "slept uninterruptibly",
            LOGGED_ASLEEP,
            &[MEMORY, LOOK],
        ),
        true => (busy, "was busy in the host's kernel", LOGGED_BUSY, &[LOOK]),
    };
    let said = kernel_log::said(&lines)?;
    let line = lines.iter().max_by_key(|line| line.seconds)?;
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Counts)
        .title(format!(
            "{} {what} for {} s, by the host's kernel log",
            case.vcpu_called(line.tid?).capital(),
            line.seconds?
        ))
        .evidence(said)
        .only(remedies);
    (finding.at_least, finding.at_most) = (Severity::Medium, Severity::Medium);
    Some(case.logged_beside(finding))
}

/// A table has the longest exit of each reason.
fn printed(case: &Case<'_>) -> Verdict {
    if case.picture.isa == Some(Isa::Arm64) {
        // perf pairs an entry with the exit that follows it there: these are the guest's own times.
        return Verdict::Unknown(
            "On arm64 perf kvm stat may print how long the guest ran before each exit; give the recording itself."
                .to_owned(),
        );
    }
    let rows = case.picture.rows(ExitTable::Vmexit).iter();
    let mut exits: Vec<_> = rows
        .filter(|row| !row.waiting && !asked(row) && row.stats.max() >= LONG_NS)
        .collect();
    exits.sort_by_key(|row| std::cmp::Reverse(row.stats.max()));
    let Some(first) = exits.first() else {
        return Verdict::Clear;
    };
    let longest = first.stats.max();
    let mut finding = Finding::new(&RULE, 0.5)
        .cost(case.vcpu_cost(longest))
        .title(format!("A vCPU stalled for {}", human(longest)));
    for row in exits.iter().take(4) {
        finding = finding.evidence(
            says!(
                "{row}: the longest of {exits} took {longest}, their mean is {mean}.",
                row = called(row),
                exits = Many(row.stats.count(), "exit"),
                longest = Ns(row.stats.max()),
                mean = Ns(row.stats.mean()),
            )
            .row(ExitTable::Vmexit, row),
        );
    }
    finding = finding
        .evidence("A table does not show when that was and what held the vCPU.")
        .only(&[LOOK]);
    // One long exit of a table may be a vCPU without its CPU, a stall, or an entry that was lost.
    finding.at_most = match longest {
        ns if ns >= 10 * LONG_NS => Severity::Medium,
        _ => Severity::Low,
    };
    finding.found()
}

/// What users notice of a stall.
fn noticed(longest: u64) -> Severity {
    match longest {
        ns if ns >= 10 * LONG_NS => Severity::High,
        _ => Severity::Medium,
    }
}

/// What holds a vCPU that its guest or its VMM can mend, most certain first.
const MENDED: [StallCause; 5] = [
    StallCause::Stopped,
    StallCause::Vmm,
    StallCause::Kernel,
    StallCause::Busy,
    StallCause::Unknown,
];

/// Stalls by what held them, and the kind that took most of their time.
struct StallSum<'a> {
    /// Those that the guest or its VMM can mend, with their time; where there are none, the host's own.
    count: u64,
    ns: u64,
    /// Those of the host itself.
    of_host: u64,
    host_ns: u64,
    main: StallCause,
    /// The longest of that kind.
    first: Option<&'a Stall>,
    /// The vCPU slept in the VMM, and who woke it hardly ran meanwhile.
    idle: bool,
}

impl<'a> StallSum<'a> {
    /// Sums all stalls but waits behind tasks, which are vcpu-preempted's.
    fn of(stalls: &'a StallsReport) -> Option<StallSum<'a>> {
        let sum = |kinds: &[StallCause]| {
            let sums = kinds.iter().map(|held| stalls.sum(*held));
            sums.fold((0, 0u64), |sum, one| {
                (sum.0 + one.0, sum.1.saturating_add(one.1))
            })
        };
        let mended = sum(&MENDED);
        let (of_host, host_ns) = sum(&[StallCause::Host]);
        let (main, (count, ns)) = match (mended.0, of_host) {
            (0, 0) => return None,
            (0, _) => (StallCause::Host, (of_host, host_ns)),
            _ => {
                let longest = MENDED.into_iter().max_by_key(|held| stalls.sum(*held).1)?;
                (longest, mended)
            }
        };
        let first = stalls.longest.iter().find(|stall| stall.held == main);
        // Whoever has the VMM's lock runs while a vCPU sleeps for it.
        let ran = |stall: &Stall| {
            let waker = stall.waker.as_ref();
            waker.is_some_and(|waker| waker.ns >= stall.held_ns / 2)
        };
        Some(StallSum {
            count,
            ns,
            of_host,
            host_ns,
            main,
            first,
            idle: main == StallCause::Vmm && first.is_some_and(|stall| !ran(stall)),
        })
    }

    /// Whether the VMM had the vCPU for most of the longest one.
    fn is_of_vmm(&self) -> bool {
        self.first
            .is_some_and(|stall| stall.vmm_ns >= stall.ns() / 2)
    }

    fn longest_ns(&self) -> u64 {
        self.first.map_or(0, Stall::ns)
    }

    fn confidence(&self) -> f64 {
        match self.main {
            StallCause::Stopped => 0.95,
            StallCause::Vmm if self.idle => 0.7,
            StallCause::Vmm | StallCause::Kernel => 0.85,
            StallCause::Busy => 0.7,
            StallCause::Host => 0.6,
            // Nothing shows what it was: one of two events that were missed looks the same.
            StallCause::Unknown | StallCause::Behind => 0.5,
        }
    }

    fn title(&self, case: &Case<'_>) -> String {
        let often = match self.count {
            1 => {
                let whom = self.first.map_or_else(
                    || "a vCPU".to_owned(),
                    |stall| case.vcpu_called(stall.tid).called,
                );
                format!("{} stalled for {}", capital(&whom), human(self.ns))
            }
            count => format!("vCPUs stalled {count} times, {} in all", human(self.ns)),
        };
        match self.main {
            StallCause::Stopped => format!("{often}: a signal had stopped the VMM"),
            StallCause::Vmm => format!("{often}: asleep in the VMM"),
            StallCause::Kernel => format!("{often}: asleep in KVM"),
            StallCause::Busy => format!("{often}: busy in KVM or the VMM"),
            StallCause::Host => format!("{often}: the host itself stood still"),
            StallCause::Unknown | StallCause::Behind => often,
        }
    }

    /// All of them in one sentence.
    fn in_all(&self, case: &Case<'_>) -> Evidence {
        let share = Of(self.ns, case.picture.observed_ns());
        match self.count {
            1 => says!("That is {share} of the vCPUs' time.", share = share),
            count => says!(
                "All {stalls} stalls of {least} or more took {time}, {share} of the vCPUs' time; the longest \
                 {longest}.",
                stalls = count,
                least = Ns(LONG_NS),
                time = Ns(self.ns),
                share = share,
                longest = Ns(self.longest_ns()),
            ),
        }
    }

    /// What else is to be said of the cause, and the remedies for it, best first.
    fn advice(&self) -> (&'static str, &'static [usize]) {
        match self.main {
            StallCause::Stopped => (
                "The VMM's threads left their CPUs in state T: SIGSTOP, job control, a debugger or a checkpoint.",
                &[STOPPED],
            ),
            StallCause::Vmm if self.idle => (
                "The vCPU's thread slept in the VMM, and its waker hardly ran meanwhile: the waker itself waited (for \
                 a disk, for a migration's peer), or the VM was paused.",
                &[LOOK_VMM, VMM],
            ),
            StallCause::Vmm => (
                "The vCPU's thread slept in the VMM, for its global lock or for the work of another of its threads.",
                &[VMM, LOOK_VMM],
            ),
            StallCause::Kernel => (
                "The vCPU's thread slept uninterruptibly in the host's kernel, as a rule for memory that is read from \
                 a disk.",
                &[MEMORY, LOOK],
            ),
            StallCause::Busy => (
                "The vCPU's thread had its CPU all the time.",
                match self.is_of_vmm() {
                    true => &[LOOK_VMM],
                    false => &[LOOK],
                },
            ),
            StallCause::Host => (
                "Nothing at all happened on the vCPU's CPU, which the vCPU had or which was idle: the host itself \
                 stood still. No change of the VM helps.",
                &[HOST],
            ),
            StallCause::Unknown | StallCause::Behind => (
                "The recording does not show which of these it was.",
                match self.is_of_vmm() {
                    true => &[LOOK_VMM, VMM, MEMORY],
                    false => &[LOOK, VMM, MEMORY],
                },
            ),
        }
    }
}

/// Stalls, all of them summed.
fn by_stall(case: &Case<'_>, stalls: &StallsReport) -> Option<Finding> {
    // Idle CPUs are silent under a quota too: then it is the quota that stalls vCPUs, and not the host.
    let throttled = is_throttled(case);
    let stood = StallSum::of(stalls)?;
    if throttled && stood.main == StallCause::Host {
        return None;
    }
    let mut finding = Finding::new(&RULE, stood.confidence())
        .rests_on(RestsOn::Absence)
        .cost(case.vcpu_cost(stood.ns))
        .title(stood.title(case));
    let longest = stalls.longest.iter();
    let longest = longest.filter(|stall| stall.held != StallCause::Behind);
    for stall in longest.take(4) {
        finding = finding.evidence(sentence(case, stall));
    }
    finding = finding.evidence(stood.in_all(case));
    if stood.main != StallCause::Host && stood.of_host > 0 && !throttled {
        finding = finding.evidence(says!(
            "In addition, the host itself stood still {stalls}, {time} in all.",
            stalls = Times(stood.of_host),
            time = Ns(stood.host_ns),
        ));
    }
    let (behind, behind_ns) = stalls.sum(StallCause::Behind);
    if behind > 0 {
        finding = finding.evidence(says!(
            "In addition, vCPUs waited as long behind another task {waits}, {time} in all: see vcpu-preempted.",
            waits = Times(behind),
            time = Ns(behind_ns),
        ));
    }
    let (also, remedies) = stood.advice();
    finding = finding.also(also).only(remedies);
    if stood.main == StallCause::Vmm
        && stalls.longest.iter().all(|stall| stall.is_open)
        && let Some(thread) = copying_thread(case)
    {
        finding = finding.evidence(says!(
            "{thread} copied a VM's memory in this recording: at the end of its migration a VM is stopped here, and \
             goes on at the other host.",
            thread = ThreadMention::named(&thread.comm, thread.tid),
        ));
    }
    if stood.main == StallCause::Busy
        && stood.is_of_vmm()
        && let Some(giver) = giver(case)
        && stalls.longest.iter().all(|stall| stall.tid == giver)
    {
        // The balloon's queue is handled by the VMM's thread that the guest's notification came to.
        finding.effect_of = Some("memory-taken-away");
        finding = finding.evidence(says!(
            "This is likely an effect of {rule}: the thread that gave the guest's memory back is this vCPU's, which \
             waits for the VMM meanwhile.",
            rule = "memory-taken-away",
        ));
    }
    finding.at_least = match stood.main {
        StallCause::Host => Severity::Low,
        _ => noticed(stood.longest_ns()),
    };
    if stood.main == StallCause::Host {
        // What cannot be mended is reported, and is no reason to look at it first.
        finding.cost = None;
    }
    Some(finding)
}

/// Many short sleeps are as long, and nobody sees time jump.
fn asleep(case: &Case<'_>, stalls: &StallsReport) -> Option<Finding> {
    // Where it is known what they slept for, that is the finding.
    if is_taken_away(case) {
        return None;
    }
    let rows = || case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let observed = |tid: i32| {
        rows()
            .find(|row| row.tid == tid)
            .map_or(0, |row| row.times.total())
    };
    let mut asleep: Vec<(i32, u64)> = stalls
        .asleep
        .iter()
        .copied()
        .filter(|(tid, ns)| *ns >= LONG_NS && *ns >= observed(*tid) / 20)
        .collect();
    asleep.sort_by_key(|(tid, ns)| (std::cmp::Reverse(*ns), *tid));
    let (worst, longest) = *asleep.first()?;
    let all = asleep.iter().map(|(_, ns)| *ns);
    let mut finding = Finding::new(&RULE, 0.85)
        .rests_on(RestsOn::Absence)
        .cost(case.vcpu_cost(all.fold(0, u64::saturating_add)))
        .title(format!(
            "{} slept {} in all while KVM handled its exits",
            case.vcpu_called(worst).capital(),
            human(longest)
        ))
        .only(&[MEMORY]);
    for (tid, ns) in asleep.iter().take(4) {
        finding = finding.evidence(says!(
            "{vcpu} slept uninterruptibly in KVM for {time} while it handled exits.",
            vcpu = case.vcpu_called(*tid).capital(),
            time = Ns(*ns),
        ));
    }
    let faults = case.exits_of_class(ExitClass::PageFault);
    if faults.count > 0 {
        finding = finding.evidence(says!(
            "{faults} for memory took {time}: trapline paths --path page-fault shows how long each slept.",
            faults = Many(faults.count, "exit"),
            time = Ns(faults.ns),
        ));
    }
    Some(finding)
}
