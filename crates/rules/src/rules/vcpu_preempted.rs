//! A vCPU waits for a CPU that another task has.

use analysis::{CpuOwner, Crowd, Stall, StallCause, VcpuRow, VcpuWaits, VcpusReport};
use cpuset::CpuSet;
use domain::DomainChange;
use model::State;
use words::duration::human;
use words::share;

use crate::caps::OF_PRESUMED;
use crate::common::{LARGE_TIMES, OFTEN_WAITS, waits_reach};
use crate::domstats::{CountedWaits, name_of, when};
use crate::evidence::{Evidence, Ns, Of, ThreadMention, Times, says};
use crate::{
    AccountPart, Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule,
    RuleLook, Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "vcpu-preempted",
    title: "vCPUs are preempted by, or wait behind, other tasks",
    described_as: &[
        "steal time in the guest",
        "high %st in top",
        "noisy neighbour, overcommitted host",
        "ping jumps every few milliseconds under load",
    ],
    looks_at: "runqueue latency and preemption of vCPU threads, and which tasks ran on their CPUs meanwhile: threads \
        summed by process, the recorder left out",
    needs: "sched:sched_switch and sched:sched_wakeup of the whole host; kvm_exit and kvm_entry show \
        which threads are vCPUs, else their names do (CPU 0/KVM)",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched],
    measures: &["vcpus runnable"],
    cause: "The vCPU's thread was preempted, or was woken while another task kept the CPU. For the guest this is steal \
        time. If the vCPU holds a lock, the guest's other vCPUs wait as well.",
    found: &[
        "Time in state `runnable` while another task than the idle one ran there: 2 % of the vCPUs' time, or 5 % of \
         one vCPU's, and a fiftieth of the time in which vCPUs had something to do; or a single wait of {long}, which \
         users notice by itself (at least `medium`, from 1 s on `high`). Confidence 0.9. Where it is less than {often} \
         waits, which may be chance, the shares have to be {large} times as large, and confidence is {of_few}. Time in \
         which the CPU was idle is the way out of idling and does not count.",
        "Without one event of KVM, threads are taken for vCPUs that are called so (`CPU 0/KVM`) or that facts name. \
         Their waits are the scheduler's and as sure. Twice the shares are asked for, since what they had to do is \
         only known as the time in which they had a CPU or waited for one. Confidence is {presumed} at most, since any \
         thread may be called so.",
        "The threads of a process are summed before one is named; where processes are not recorded (ftrace), those of \
         a name; vCPUs by VM; kworkers together. What the recorder and its helpers had \
         ([who that is](../../docs/diagnose.md#who-is-the-recorder)) \
         does not count, and is listed separately: a recording whose vCPUs wait for the recorder alone is \
         [tracing-disturbs](#tracing-disturbs).",
        "Without the scheduler's events, from `virsh domstats` (`--facts`): `delay` of the vCPUs is {counted} of the \
         time in which they were on a CPU or waited for one, or {counted_of_one} of one vCPU's. What idle CPUs take to \
         wake up may be in it: 300us are taken off for each time that a vCPU was woken, and without the number of \
         these twice the shares are asked for. Confidence {by_sums}, `low`: behind whom they waited is not known, \
         a quota or a quiet host that was busy once look the same. Less is not an all-clear.",
    ],
    limits: &[
        ("long", EvidenceNumber::Nanoseconds(LONG_NS)),
        ("presumed", EvidenceNumber::Ratio(OF_PRESUMED)),
        ("often", EvidenceNumber::Count(OFTEN_WAITS)),
        ("large", EvidenceNumber::Ratio(LARGE_TIMES)),
        ("of_few", EvidenceNumber::Ratio(OF_FEW)),
        ("counted", EvidenceNumber::Share(COUNTED)),
        ("counted_of_one", EvidenceNumber::Share(COUNTED_OF_ONE)),
        ("by_sums", EvidenceNumber::Ratio(BY_SUMS)),
    ],
    seen_from: "2 % of the vCPUs' time behind other tasks, 5 % of one vCPU's, or one wait of {long}",
    unknown: "*all*, of the whole host (`-a`): `sched_switch`, `sched_wakeup`, and exits or threads that are called as \
        vCPUs are.",
    advice: "The patch gives each vCPU a CPU of one NUMA node, isolated ones if there are any, never CPU 0; nothing if \
        the definition pins already or a node (else the host) has too few. Check that no other guest uses them.",
    looks_alike: "A vCPU that is slow to start on an *idle* CPU waits for the CPU to leave its idle state, which \
        `trapline vcpus` shows as \"nothing: the CPU was idle\".",
    remedies: &[
        Remedy {
            what: "Keep others off the vCPUs' CPUs: pin vCPUs one to a CPU (<vcpupin>), and the VMM's other threads, \
                vhost workers and the host's own tasks elsewhere (<emulatorpin>, isolcpus= or cpusets).",
            price: "No other task can use these CPUs when the guest is idle; the other CPUs carry all other work.",
            unless: "With more vCPUs than CPUs pinning only fixes which vCPU waits for which.",
            check: "trapline vcpus: the share of runnable time, and behind whom.",
        },
        Remedy {
            what: "If CPUs are shared on purpose: give the guests weights (<shares> in <cputune>), or fewer vCPUs to \
                those that need fewer.",
            price: "Another guest gets less CPU time.",
            unless: "Weights do not bound latency.",
            check: "trapline vcpus of all guests.",
        },
    ],
    sources: &[
        "Linux, kernel/sched (prev_state of sched_switch: 0 for a task that is preempted); \
         Documentation/scheduler/sched-stats.rst",
        "libvirt, formatdomain: CPU Tuning",
    ],
    explains: &[ExplainedTime::Part(AccountPart::RunnableBehind)],
    look: RuleLook::Case(look),
};

/// A wait that a guest's users notice by itself, however little of the time it is.
const LONG_NS: u64 = analysis::LONG_NS;

/// A large share that a few waits make may come of an event that is missing.
const OF_FEW: f64 = 0.5;

/// Share of the time in which vCPUs wanted a CPU: twice that of events, as where vCPUs are presumed, since what they
/// waited for is not known either.
const COUNTED: f64 = 0.04;
const COUNTED_OF_ONE: f64 = 0.1;
/// How sure sums are: a quota and other times than those of the complaint fit them as well.
const BY_SUMS: f64 = 0.5;

/// What vCPUs waited behind other tasks.
struct WaitsBehind<'a> {
    /// All of them, but behind the recorder.
    total_ns: u64,
    /// The vCPU that waited most, and its row if it was followed.
    worst: &'a VcpuWaits,
    row: Option<&'a VcpuRow>,
    /// Whether that is a share of the time that counts.
    often: bool,
    /// Whether it is of so few waits that one missing event may have made it.
    few: bool,
    /// A wait that is noticed by itself.
    long: Option<&'a Stall>,
}

impl<'a> WaitsBehind<'a> {
    fn of(case: &Case<'a>, report: &'a VcpusReport) -> Option<WaitsBehind<'a>> {
        // Time in which the CPU was idle is the way out of idling and nobody's fault; what the recorder had is reported
        // as that.
        let waits = &case.picture.waits;
        let total_ns = waits.others_ns();
        let worst = waits.vcpus.iter().max_by_key(|vcpu| vcpu.others_ns)?;
        let row = report.rows.iter().find(|row| row.tid == worst.tid);
        let observed = row.map_or(0, |row| row.times.total());
        let busy = case.picture.busy_ns().max(1);
        let share = case.vcpu_cost(total_ns).share;
        // Without KVM's events nobody knows in which of that time a vCPU had something to do.
        let factor = match case.picture.presumes_vcpus() {
            true => 2.0,
            false => 1.0,
        };
        let worst_share = match observed {
            0 => 0.0,
            observed => worst.others_ns as f64 / observed as f64,
        };
        let count = case.waits_behind(waits.others_count());
        let of_worst = row
            .map_or(0, |row| row.waits.count())
            .min(worst.others_count);
        let often = (waits_reach(0.02 * factor, share, count)
            || waits_reach(0.05 * factor, worst_share, of_worst))
            && total_ns >= busy / 50;
        Some(WaitsBehind {
            total_ns,
            worst,
            row,
            often,
            few: count < OFTEN_WAITS,
            long: longest(case),
        })
    }

    /// How much of the time it is, and of whom most.
    fn share(&self, case: &Case<'_>) -> Evidence {
        let observed = self.row.map_or(0, |row| row.times.total());
        says!(
            "vCPUs waited behind other tasks for {share} of their observed time. The worst was {worst}: {time} \
             ({share_of_worst}){waits}.",
            share = Of(self.total_ns, case.picture.observed_ns()),
            worst = case.vcpu_called(self.worst.tid),
            time = Ns(self.worst.others_ns),
            share_of_worst = Of(self.worst.others_ns, observed),
            waits = self.row.map_or_else(Evidence::default, |row| says!(
                ", {waits} waits, p99 {p99}",
                waits = row.waits.count(),
                p99 = Ns(row.waits.percentile(0.99)),
            )),
        )
    }
}

fn look(case: &Case<'_>) -> Verdict {
    let Some(report) = &case.picture.vcpus else {
        return from_domstats(case);
    };
    if report.rows.is_empty() || !report.seen.switches || !report.seen.returns {
        return from_domstats(case);
    }
    let Some(waited) = WaitsBehind::of(case, report) else {
        return Verdict::Clear;
    };
    if !waited.often && waited.long.is_none() {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    // A single wait that users notice stands by itself.
    let confidence = match waited.few && waited.long.is_none() {
        true => OF_FEW,
        false => 0.9,
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .cost(case.vcpu_cost(waited.total_ns))
        .title(title(case, &waited))
        .evidence(waited.share(case));
    finding = crowds(case, finding);
    if let Some(long) = waited.long {
        finding = finding.evidence(says!(
            "The longest single wait was {time}, of {vcpu}{behind}: {shown}.",
            time = Ns(long.held_ns),
            vcpu = case.vcpu_called(long.tid),
            behind = behind(long),
            shown = case.command(long.from, long.to),
        ));
        finding.at_least = match long.held_ns {
            ns if ns >= 10 * LONG_NS => Severity::High,
            _ => Severity::Medium,
        };
    }
    finding = recorder(case, finding);
    finding = match case.picture.presumes_vcpus() {
        true => finding.evidence(says!(
            "vCPUs had CPUs for {time}; what they did with them was not recorded.",
            time =
                Ns((case.picture.busy_ns()).saturating_sub(case.picture.state_ns(State::Runnable))),
        )),
        false => finding.evidence(says!(
            "vCPUs ran in their guests for {time}.",
            time = Ns(case.picture.state_ns(State::Guest)),
        )),
    };
    pins(case, case.logged_beside(finding)).found()
}

fn title(case: &Case<'_>, waited: &WaitsBehind<'_>) -> String {
    match waited.long {
        Some(long) if !waited.often || long.held_ns > waited.total_ns / 2 => format!(
            "{} waited {} for a CPU in one wait{}",
            case.vcpu_called(long.tid).capital(),
            human(long.held_ns),
            behind(long)
        ),
        _ => {
            let crowds = case.picture.waits.crowds.iter();
            let mut crowds = crowds.filter(|crowd| !is_recorder(crowd));
            let all = crowds.clone().map(|crowd| crowd.ns);
            let all = all.fold(0, u64::saturating_add);
            let behind = match crowds.next() {
                None => "most behind other tasks".to_owned(),
                Some(first) if first.ns > all / 2 => format!("most behind {}", called(first)),
                // Nobody alone had most of it.
                Some(first) => format!(
                    "behind many, {} of it behind {}",
                    share::whole(first.ns as f64 / all.max(1) as f64),
                    called(first)
                ),
            };
            format!(
                "vCPUs waited {} for a CPU, {behind}",
                human(waited.total_ns)
            )
        }
    }
}

fn is_recorder(crowd: &Crowd) -> bool {
    matches!(crowd.who, CpuOwner::Recorder(_))
}

/// Says which tasks had the CPUs.
fn crowds(case: &Case<'_>, mut finding: Finding) -> Finding {
    let crowds = case.picture.waits.crowds.iter();
    for crowd in crowds.filter(|crowd| !is_recorder(crowd)).take(4) {
        let vcpus = match crowd.who {
            CpuOwner::Vm(_) if crowd.threads == 1 => ", a vCPU itself",
            CpuOwner::Vm(_) => ", vCPUs themselves",
            _ => "",
        };
        finding = finding.evidence(says!(
            "{crowd}{vcpus} ran {times} meanwhile, for {time}.",
            crowd = members(crowd),
            vcpus = vcpus,
            times = Times(crowd.count),
            time = Ns(crowd.ns),
        ));
    }
    finding
}

/// Says what the recorder had, which is not counted.
fn recorder(case: &Case<'_>, finding: Finding) -> Finding {
    let crowds = || {
        let crowds = case.picture.waits.crowds.iter();
        crowds.filter(|crowd| is_recorder(crowd))
    };
    let ns: u64 = crowds().map(|crowd| crowd.ns).fold(0, u64::saturating_add);
    if ns == 0 {
        return finding;
    }
    finding.evidence(says!(
        "Not counted: {time} behind the recorder ({threads}).",
        time = Ns(ns),
        threads = Evidence::join(crowds().map(members).collect()),
    ))
}

/// The longest single wait behind a task that is not the recorder's, if it is one that is noticed by itself.
fn longest<'a>(case: &Case<'a>) -> Option<&'a Stall> {
    let stalls = case.picture.stalls.as_ref()?;
    let behind = stalls.longest.iter().filter(|stall| {
        let recorder = stall.behind.as_ref().map(|ran| ran.tid);
        stall.held == StallCause::Behind
            && stall.held_ns >= LONG_NS
            && recorder.is_none_or(|tid| case.picture.recorder.role(tid).is_none())
    });
    behind.max_by_key(|stall| stall.held_ns)
}

/// Behind whom a wait was.
fn behind(long: &Stall) -> String {
    let comm = long.behind.as_ref().and_then(|ran| ran.comm.as_ref());
    comm.map_or_else(String::new, |comm| format!(", most of it behind {comm}"))
}

/// What a crowd is called in a title.
fn called(crowd: &Crowd) -> String {
    match &crowd.who {
        CpuOwner::Vm(_) if crowd.threads == 1 => {
            let name = crowd.most.first().and_then(|one| one.comm.clone());
            name.unwrap_or_else(|| crowd.name.clone())
        }
        CpuOwner::Vm(_) => format!("vCPUs of {}", crowd.name),
        _ => crowd.name.clone(),
    }
}

/// The same with its threads.
fn members(crowd: &Crowd) -> Evidence {
    let thread = crowd.most.first().and_then(|one| one.tid);
    match (&crowd.who, thread) {
        (_, Some(tid)) if crowd.threads == 1 => {
            says!("{task}", task = ThreadMention::named(&called(crowd), tid))
        }
        (CpuOwner::Process(pid), _) => says!(
            "{task} ({process}, {threads} threads)",
            task = called(crowd),
            process = format!("process {pid}"),
            threads = crowd.threads,
        ),
        (CpuOwner::Unknown, _) => says!("{task}", task = called(crowd)),
        _ => says!(
            "{task} ({threads} threads)",
            task = called(crowd),
            threads = crowd.threads,
        ),
    }
}

/// Pins one to a CPU where the definition has none and the host has CPUs enough.
fn pins(case: &Case<'_>, finding: Finding) -> Finding {
    let (Some(domain), Some(host)) = (case.whole_domain(), case.host()) else {
        return finding;
    };
    let changes = pinning(domain, host);
    if changes.is_empty() {
        return finding;
    }
    finding.changes(0, changes).note(
        0,
        "The patch gives each vCPU a CPU of its own on one NUMA node, and the VMM's other threads the rest. Check that \
         no other guest uses these CPUs.",
    )
}

/// Returns a CPU for each vCPU, all of one node, or nothing where there are too few or pins are there already.
pub(super) fn pinning(domain: &domain::Domain, host: &facts::Host) -> Vec<DomainChange> {
    let vcpus = domain.vcpus.unwrap_or(0);
    if vcpus == 0 || !domain.vcpu_pins.is_empty() || domain.vcpu_cpuset.is_some() {
        return Vec::new();
    }
    let Some(online) = &host.online else {
        return Vec::new();
    };
    // Interrupts and the host's own tasks gather on the first CPU.
    let free = |cpus: &CpuSet| -> Vec<u32> {
        let isolated = host.isolated.as_ref().filter(|set| !set.is_empty());
        let fits = |cpu: &u32| {
            *cpu != 0 && online.contains(*cpu) && isolated.is_none_or(|set| set.contains(*cpu))
        };
        cpus.iter().filter(fits).collect()
    };
    let nodes = host.nodes.iter().map(|node| free(&node.cpus));
    let whole = std::iter::once(free(online));
    let Some(cpus) = nodes.chain(whole).find(|cpus| cpus.len() >= vcpus as usize) else {
        return Vec::new();
    };
    let mut changes: Vec<DomainChange> = (0..vcpus)
        .zip(&cpus)
        .map(|(vcpu, cpu)| DomainChange::VcpuPin {
            vcpu,
            cpus: [*cpu].into_iter().collect(),
        })
        .collect();
    let used = &cpus[..vcpus as usize];
    let rest: CpuSet = online.iter().filter(|cpu| !used.contains(cpu)).collect();
    if domain.emulator_pin.is_none() && !rest.is_empty() {
        changes.push(DomainChange::EmulatorPin(rest));
    }
    changes
}

/// Without events: what libvirt counted of domains.
fn from_domstats(case: &Case<'_>) -> Verdict {
    const RECORD: &str = "Record kvm:kvm_exit, kvm:kvm_entry, sched:sched_switch and sched:sched_wakeup of the whole \
        host (-a).";
    let domains = case.domstats().into_iter();
    let waits = domains.filter_map(CountedWaits::of);
    let ratio = |waits: &CountedWaits<'_>| {
        let (all, worst) = waits.shares();
        (all / COUNTED).max(worst / COUNTED_OF_ONE)
    };
    let Some(worst) = waits.max_by(|a, b| ratio(a).total_cmp(&ratio(b))) else {
        return Verdict::Unknown(RECORD.to_owned());
    };
    if ratio(&worst) < 1.0 {
        return Verdict::Unknown(format!("{} {RECORD}", worst.said().text));
    }
    let mut finding = Finding::new(&RULE, BY_SUMS)
        .rests_on(RestsOn::Counts)
        .title(format!(
            "vCPUs of {} waited {} for a CPU, {}",
            name_of(worst.domain),
            human(worst.waited_ns),
            when(worst.domain),
        ))
        .evidence(worst.said())
        .evidence(
            "Behind whom they waited is not known: sched:sched_switch of the whole host shows it, and whether it is so \
             now. A CPU quota (cpu.max) looks the same here.",
        );
    if !worst.counts_wakeups() {
        finding = finding.evidence(
            "How often vCPUs were woken was not counted (newer libvirt does): what idle CPUs took to wake up may be \
             part of it.",
        );
    }
    finding.at_most = Severity::Low;
    finding.found()
}
