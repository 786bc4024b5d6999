//! A guest's CPUs spin on locks whose holders have no CPU.

use analysis::{ProfileSums, ProfileThread, SampledShare};
use event::ExitClass;
use stacks::{FrameOwner, Weight};
use words::share::tenths;

use crate::common::waits_reach;
use crate::evidence::{Evidence, Many, Ns, Of, Share, ThreadMention, says};
use crate::listed::{self, ListedShare};
use crate::sampled::{self, SampleShare};
use crate::{
    AccountPart, Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds,
    Remedy, RestsOn, Rule, RuleLook, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "lock-holder-preempted",
    title: "Guests spin on locks while vCPUs are preempted",
    described_as: &[
        "lock contention rises with the number of vCPUs",
        "native_queued_spin_lock_slowpath in the guest",
        "vCPU overcommitment makes the guest crawl",
        "soft lockups under load",
    ],
    looks_at: "samples of guests' kernels in the slow path of spin locks, and whether vCPUs waited for a CPU or made \
        PAUSE exits meanwhile",
    needs: "samples of guests with the guests' symbols (--guest-kallsyms), and \
        sched:sched_switch and sched:sched_wakeup of the whole host in the same recording",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched, RecordNeeds::Stacks],
    measures: &[
        "vcpus runnable",
        "cpu function queued_spin_lock_slowpath",
        "cpu function native_queued_spin_lock_slowpath",
        "cpu function __pv_queued_spin_lock_slowpath",
    ],
    cause: "A vCPU that holds a spin lock was preempted. The guest's other vCPUs spin until it runs again: they burn \
        CPU time, and may keep the holder from running.",
    found: &[
        "Samples of guests are in the slow path of spin locks (`queued_spin_lock_slowpath` and its native and \
         paravirtual forms, `pv_wait` and `kvm_wait` of the latter) in {spins} of all samples of guests, 20 at least, \
         and that is more than chance; and vCPUs waited behind other tasks for {waits} of the time that they were \
         observed: confidence 0.7. Where nobody recorded whether vCPUs waited, but they made {exits} exits for PAUSE, \
         a twentieth of all, or their host's samples are in `kvm_vcpu_on_spin` in {throws} of cases: 0.5, since a \
         guest's own long critical sections do that too. Both times the confidence that the share is over the limit, \
         which has to be 0.9.",
        "Where perf report printed such samples: the same of the listed shares of guests' kernels, and \
         `kvm_vcpu_on_spin` is in {throws} of all, or there are the exits for PAUSE: 0.5 times the confidence that the \
         share is over the limit, at most `medium`. A table is no all-clear.",
        "Spinning alone is no finding: the guest may contend for its own lock. Where switches of the whole host were \
         recorded and vCPUs hardly waited, that is certain, and this rule is clear.",
    ],
    limits: &[
        ("spins", EvidenceNumber::Share(SPINS)),
        ("waits", EvidenceNumber::Share(WAITS)),
        ("exits", EvidenceNumber::Count(EXITS)),
        ("throws", EvidenceNumber::Share(THROWS)),
    ],
    seen_from: "{spins} of the guests' samples in spin locks, and vCPUs that wait behind other tasks for \
        {waits} of their time",
    unknown: "*guest samples*. A recording made inside a guest shows the spinning, but not whether its vCPUs had CPUs.",
    advice: "",
    looks_alike: "[pause-loop-exits](#pause-loop-exits) finds spinning that is long enough for a PAUSE exit, without \
        samples. [vcpu-preempted](#vcpu-preempted) says who had the CPUs. A guest that contends for its own lock spins \
        as much on dedicated CPUs.",
    remedies: &[
        Remedy {
            what: "Give the guest's vCPUs dedicated CPUs: fewer vCPUs than CPUs, pinned, and no other tasks there.",
            price: "Less overcommitment on this host.",
            unless: "It does not help if vCPUs hardly wait for a CPU (trapline vcpus): the guest then contends for its \
                own lock.",
            check: "trapline compare BEFORE AFTER: samples in spin locks, and runnable time.",
        },
        Remedy {
            what: "Use paravirtual spinlocks (CONFIG_PARAVIRT_SPINLOCKS, KVM_FEATURE_PV_UNHALT), which halt instead of \
                spinning. For Windows: <spinlocks state='on' retries='8191'/>.",
            price: "A wake-up takes longer than spinning for locks that are held briefly.",
            unless: "'hint-dedicated' turns them off. If samples are in __pv_queued_spin_lock_slowpath, the guest has \
                     them already.",
            check: "trapline flame --guest-kallsyms FILE: samples in spin locks.",
        },
        Remedy {
            what: "Give the guest fewer vCPUs, so that each finds a CPU at once.",
            price: "The guest can use fewer CPUs at a time.",
            unless: "It makes a guest slower that needs all of them.",
            check: "trapline compare BEFORE AFTER: the guest's work for each second.",
        },
    ],
    sources: &[
        "Linux, kernel/locking/qspinlock.c and qspinlock_paravirt.h (queued_spin_lock_slowpath, pv_wait); \
         arch/x86/kernel/kvm.c (kvm_wait)",
        "Linux, virt/kvm/kvm_main.c (kvm_vcpu_on_spin)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Pause),
        ExplainedTime::Part(AccountPart::Guest),
    ],
    look: RuleLook::Case(look),
};

/// From this share of guests' samples on spinning is worth a question.
const SPINS: f64 = 0.05;
/// From this share of their time on vCPUs' waits are more than what a host has anyway.
const WAITS: f64 = 0.02;
/// Exits for PAUSE that show spinning beyond the window, as in pause-loop-exits.
const EXITS: u64 = 1000;
/// And samples of vCPUs' threads in what KVM does then.
const THROWS: f64 = 0.01;

/// The slow paths of spin locks, on x86 and arm64.
const LOCKS: [&str; 5] = [
    "queued_spin_lock_slowpath",
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "pv_wait",
    "kvm_wait",
];

/// What was sampled of guests.
struct Spinning<'a> {
    /// Samples in locks, by vCPU, and all of guests.
    vcpus: Vec<(&'a ProfileThread, Weight)>,
    part: SampleShare,
    ns: Weight,
    /// What all threads of vCPUs weigh.
    all: Weight,
    /// Their samples in which KVM yields to another vCPU.
    yields: SampleShare,
}

impl<'a> Spinning<'a> {
    /// `part` says whose code spins: guests', or the recording's own kernel, if it is one of a guest.
    fn of(case: &Case<'_>, profile: &'a ProfileSums) -> Spinning<'a> {
        let locks = profile.marked(FrameOwner::Guest, |name| LOCKS.contains(&name));
        let yields = profile.marked(FrameOwner::Kernel, |name| name == "kvm_vcpu_on_spin");
        let is_vcpu = sampled::is_vcpu(case);
        let any = |marks: &[bool], path: &[u32]| path.iter().any(|at| sampled::has(marks, *at));
        let mut vcpus = profile.of_threads(|_, path| any(&locks, path));
        vcpus.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.samples));
        let yielding = profile.of_threads(|thread, path| is_vcpu(thread) && any(&yields, path));
        let threads = || profile.threads.iter().filter(|thread| is_vcpu(thread));
        let all = sampled::sum(threads().map(|thread| (thread, thread.all)));
        let ns = sampled::sum(vcpus.iter().copied());
        Spinning {
            part: SampleShare {
                of: ns.samples,
                all: profile.guest.0,
            },
            ns,
            vcpus,
            all,
            yields: SampleShare {
                of: sampled::sum(yielding).samples,
                all: all.samples,
            },
        }
    }
}

/// Whether the holders of locks may have been without a CPU.
enum HolderWaits {
    /// vCPUs waited behind others.
    Waited(Evidence),
    /// They spun for longer than KVM lets them, and nobody recorded why.
    ThrownOut(Evidence),
    /// They hardly waited.
    No,
    /// Nobody recorded it.
    Unknown,
}

fn preempted(case: &Case<'_>, spinning: &Spinning<'_>) -> HolderWaits {
    let report = case.picture.vcpus.as_ref();
    let known = report
        .filter(|report| !report.rows.is_empty() && report.seen.switches && report.seen.returns);
    if known.is_some() {
        let waited = case.picture.waits.others_ns();
        let observed = case.picture.observed_ns();
        let share = waited as f64 / observed.max(1) as f64;
        if waits_reach(
            WAITS,
            share,
            case.waits_behind(case.picture.waits.others_count()),
        ) {
            return HolderWaits::Waited(says!(
                "Meanwhile vCPUs waited {time} behind other tasks ({share} of their observed time).",
                time = Ns(waited),
                share = Of(waited, observed),
            ));
        }
        return HolderWaits::No;
    }
    let pauses = case.exits_of_class(ExitClass::Pause);
    let all = case.all_exits();
    if pauses.count >= EXITS && pauses.count >= all.count / 20 {
        return HolderWaits::ThrownOut(case.says_exits("PAUSE_INSTRUCTION", pauses));
    }
    if spinning.yields.is_above(THROWS) {
        return HolderWaits::ThrownOut(
            says!("KVM yielded to another vCPU (kvm_vcpu_on_spin) in ")
                .then(spinning.yields.says("samples of vCPUs' threads"))
                .then(says!(".")),
        );
    }
    HolderWaits::Unknown
}

fn look(case: &Case<'_>) -> Verdict {
    let Some(profile) = &case.picture.profile else {
        return by_shares(case).unwrap_or_else(unknown);
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    if profile.guest.0 == 0 {
        return inside(profile);
    }
    if !profile.names_guests() {
        return Verdict::Unknown(format!(
            "{} of guests have no symbol: give --guest-kallsyms, a copy of the guest's /proc/kallsyms.",
            words::plural(profile.guest.0, "sample")
        ));
    }
    let spinning = Spinning::of(case, profile);
    if spinning.part.is_below(SPINS) {
        return Verdict::Clear;
    }
    if !spinning.part.is_above(SPINS) {
        return Verdict::Unknown(format!(
            "Guests spin on locks in {}, too few for a share; record for longer.",
            spinning.part.says("of their samples").text
        ));
    }
    let (least, evidence) = match preempted(case, &spinning) {
        HolderWaits::Waited(evidence) => (0.7, evidence),
        HolderWaits::ThrownOut(evidence) => (0.5, evidence),
        HolderWaits::No => return Verdict::Clear,
        HolderWaits::Unknown => {
            return Verdict::Unknown(format!(
                "Guests spin on locks in {}, which may be contention of their own; record sched:sched_switch and \
                 sched:sched_wakeup of the whole host (-a) with the samples: they show whether vCPUs were preempted.",
                spinning.part.says("of their samples").text
            ));
        }
    };
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, &spinning, least, evidence).found()
}

/// What perf report printed of guests' kernels.
fn by_shares(case: &Case<'_>) -> Option<Verdict> {
    let shares = case.listed()?;
    let own = |pick: &dyn Fn(&SampledShare) -> bool| -> f64 {
        let picked = shares.function_rows().iter().filter(|row| pick(row));
        picked.map(|row| row.own).sum()
    };
    let spins = own(&|row| listed::is_in(row, true, &LOCKS));
    let part = ListedShare::of(shares, spins, own(&|row| row.level == Some('g')));
    let sure = part.above(SPINS)?;
    let yields = shares.of_tasks(|row| listed::is_in(row, false, &["kvm_vcpu_on_spin"]));
    let yields = ListedShare::of(shares, yields.iter().map(|(_, part)| part).sum(), 1.0);
    let pauses = case.exits_of_class(ExitClass::Pause);
    let many = pauses.count >= EXITS && pauses.count >= case.all_exits().count / 20;
    let meanwhile = match (many, yields.above(THROWS)) {
        (true, _) => case.says_exits("PAUSE_INSTRUCTION", pauses),
        (false, Some(_)) => says!("KVM yielded to another vCPU (kvm_vcpu_on_spin) in ")
            .then(yields.says("all samples"))
            .then(says!(".")),
        (false, None) => {
            return Some(Verdict::Unknown(format!(
                "Guests spin on locks in {}, which may be contention of their own; record sched:sched_switch and \
                 sched:sched_wakeup of the whole host (-a) with the samples: they show whether vCPUs were preempted.",
                part.says("the listed shares of their kernels").text
            )));
        }
    };
    let mut finding = Finding::new(&RULE, 0.5 * sure)
        .rests_on(RestsOn::Absence)
        .title(format!(
            "Guests' kernels have {} of their listed samples in spin locks, and KVM saw vCPUs spin",
            tenths(part.part)
        ))
        .evidence(
            says!("Guests are in the slow path of spin locks in ")
                .then(part.says("the listed shares of their kernels"))
                .then(says!(". Whether the holders had CPUs is not in a table.")),
        )
        .evidence(meanwhile);
    part.rank(&mut finding, Base::VcpuTime);
    Some(finding.found())
}

fn say(case: &Case<'_>, spinning: &Spinning<'_>, sure: f64, preempted: Evidence) -> Finding {
    let share = spinning.part.share();
    let mut finding = Finding::new(&RULE, sure * spinning.part.above(SPINS))
        .rests_on(RestsOn::Absence)
        .title(format!(
            "Guests spent {} of their sampled time spinning on locks while vCPUs waited for CPUs",
            tenths(share)
        ))
        .evidence(
            says!("Guests are in the slow path of spin locks in ")
                .then(spinning.part.says("of their samples"))
                .then(says!(
                    "; {command} shows them.",
                    command = format!("{} --guest-kallsyms FILE", case.flame())
                )),
        )
        .evidence(preempted)
        .evidence(says!(
            "{vcpus} spun. Samples do not show whether the holder was preempted each time.",
            vcpus = Many(spinning.vcpus.len() as u64, "thread"),
        ));
    if let Some((thread, weight)) = spinning.vcpus.first() {
        finding = finding.evidence(says!(
            "Most in {task}: {spins} of {all} samples in the guest ({share}).",
            task = ThreadMention::named(&thread.comm, thread.tid),
            spins = weight.samples,
            all = thread.guest.samples,
            share = Share(weight.samples as f64 / thread.guest.samples.max(1) as f64),
        ));
    }
    match case.sampled_cost(spinning.ns, spinning.all.amount, Base::VcpuTime) {
        Some(cost) => finding.cost(cost),
        None => {
            let part = FindingCost::of(spinning.part.of, spinning.part.all, Base::VcpuTime);
            finding.at_least = part.severity();
            finding
        }
    }
}

/// A recording without samples of guests: it may be one of a guest.
fn inside(profile: &ProfileSums) -> Verdict {
    let locks = profile.marked(FrameOwner::Kernel, |name| LOCKS.contains(&name));
    let spins = profile.of_threads(|thread, path| {
        !thread.is_idle() && path.iter().any(|frame| sampled::has(&locks, *frame))
    });
    let part = SampleShare {
        of: sampled::sum(spins).samples,
        all: profile.busy().samples,
    };
    if !part.is_above(SPINS) {
        return unknown();
    }
    Verdict::Unknown(format!(
        "The kernel spins on locks in {}. If this was recorded in a guest, record on its host whether its vCPUs were \
         preempted (sched:sched_switch and sched:sched_wakeup, -a). If not, the kernel contends for its own lock.",
        part.says("samples that are not of idle CPUs").text
    ))
}

fn unknown() -> Verdict {
    Verdict::Unknown(
        "Record samples of guests with the scheduler's events of the whole host: sched:sched_switch, \
         sched:sched_wakeup, kvm:kvm_entry and kvm:kvm_exit."
            .to_owned(),
    )
}
