//! A thread that VMs depend on waits long for a CPU.

use std::collections::HashSet;

use analysis::TaskRow;
use model::NamedRole;
use words::duration::human;

use crate::case::VmHelpers;
use crate::evidence::{Evidence, Ns, ThreadMention, says};
use crate::{
    Case, EvidenceNumber, Finding, FindingCost, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Severity, Verdict,
};

/// A wait that the guest's packets and blocks wait too. A busy host's scheduler lets everybody run within a few of its
/// slices, which are 3 ms.
const LONG_NS: u64 = 20_000_000;
/// One that is worth a change of the host.
const MANY_NS: u64 = 50_000_000;
/// One that users notice.
const NOTICED_NS: u64 = 100_000_000;
/// The cause where no other task had the CPU.
const IDLE: &str = "These threads move the guest's packets and blocks and inject its interrupts. This one was woken \
    for a CPU that was idle, and the CPU took long to run it, so the guest's request waited.";
/// Threads that are listed.
const LISTED: usize = 4;

pub(crate) static RULE: Rule = Rule {
    id: "helper-waits-for-cpu",
    title: "A thread that VMs depend on waits long for a CPU",
    described_as: &[
        "vhost thread does not get a CPU",
        "network or disk of the VM stalls now and then while its vCPUs are fine",
        "ping jumps by tens of milliseconds",
        "the emulator threads share CPUs with other load",
    ],
    looks_at: "the longest waits for a CPU of vhost workers, iothreads, the VMM's main thread, KVM's own threads, and \
        kworkers that wake vCPUs; of printed tables the longest delay",
    needs: "sched:sched_switch and sched:sched_wakeup (or sched_waking), or what perf sched latency or timehist prints",
    record: &[RecordNeeds::Sched],
    measures: &[],
    cause: "These threads move the guest's packets and blocks and inject its interrupts. While one of them waits \
    behind \
        another task of its CPU, the guest's request waits too, though its vCPUs have their CPUs.",
    found: &[
        "One wait of {long} or more after a wake-up or a preemption. A kworker counts if it is bound to a CPU and \
         wakes vCPUs, as an irqfd's does, or waited behind a thread of a VM. Confidence 0.85. `low`; from {many}, or a \
         tenth of the recorded time, on `medium`, from {noticed} on `high`.",
        "The same while its CPU is idle: 0.5 and `low` however long, since a way out of an idle state, a throttled \
         thread and a machine that stood still look alike. It begins at sched_waking where that is recorded: \
         sched_wakeup comes only when the idle CPU has answered.",
        "Of a printed table: the longest delay of such a thread, where vCPUs' threads are in the table; 0.6. Who had \
         the CPU is not in it.",
    ],
    limits: &[
        ("long", EvidenceNumber::Nanoseconds(LONG_NS)),
        ("many", EvidenceNumber::Nanoseconds(MANY_NS)),
        ("noticed", EvidenceNumber::Nanoseconds(NOTICED_NS)),
    ],
    seen_from: "one wait of {long}",
    unknown: "*all*, of the whole host (`-a`), or a printed `perf sched latency` or `timehist`.",
    advice: "",
    looks_alike: "vCPUs that wait themselves are [vcpu-preempted](#vcpu-preempted).",
    remedies: &[
        Remedy {
            what: "Keep these threads and the tasks that had their CPUs apart: pin vhost workers and the VMM's threads \
                (<emulatorpin>, <iothreadpin>) to CPUs without vCPUs and without other load; a kworker runs on the CPU \
                that its interrupt came to, so move that interrupt.",
            price: "CPUs for the host's side.",
            unless: "On a host with few CPUs the helpers have no CPUs to go to.",
            check: "trapline sched: the longest delay of these threads.",
        },
        Remedy {
            what: "Give them a higher weight than the task that had the CPU (nice, chrt, cpu.weight), or see who it is \
                and when it runs: perf sched timehist, or trapline sched.",
            price: "The others wait.",
            unless: "Real-time priority for a thread that may loop stops the CPU for all others.",
            check: "trapline sched: the longest delay of these threads.",
        },
        Remedy {
            what: "Record power:cpu_idle and irq_vectors with it, and see what that CPU did. In a deep idle state, \
                limit it (/dev/cpu_dma_latency); throttled, look at the control group's cpu.stat; silent like all \
                the others, the machine stood still (firmware, or a hypervisor beneath).",
            price: "A few more events.",
            unless: "It happened once, and nobody has noticed.",
            check: "trapline sched: the longest delay of these threads.",
        },
    ],
    sources: &[
        "Linux, kernel/sched/core.c (ttwu_queue_cond), kernel/sched/fair.c (place_entity)",
        "Linux, drivers/vhost/vhost.c, virt/kvm/eventfd.c (irqfd_inject)",
    ],
    explains: &[],
    look: RuleLook::Case(look),
};

/// Threads by what they do for VMs.
struct ServedVms {
    vcpus: HashSet<i32>,
    /// Who wakes vCPUs.
    wakers: HashSet<i32>,
    helpers: VmHelpers,
}

/// The longest wait of a task: how long, since when, and behind whom.
struct HelperWait<'a> {
    row: &'a TaskRow,
    ns: u64,
    since: Option<u64>,
    behind: Option<(i32, Option<&'a str>)>,
}

impl HelperWait<'_> {
    fn is_behind_idle(&self) -> bool {
        self.behind.is_some_and(|(tid, _)| tid == 0)
    }
}

fn look(case: &Case<'_>) -> Verdict {
    let waits = case.picture.sched.as_ref();
    let Some(report) = waits.filter(|_| !case.run_times_alone()) else {
        return Verdict::Unknown(
            "Record sched:sched_switch, sched:sched_wakeup and sched:sched_waking of the whole host (-a)."
                .to_owned(),
        );
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let vcpus = case.vcpu_tids();
    let named = |row: &TaskRow| NamedRole::from(row.comm.as_str()).is_vcpu();
    if vcpus.is_empty() && !report.rows.iter().any(named) {
        return Verdict::Clear;
    }
    let served = ServedVms {
        wakers: wakers(case, &vcpus),
        helpers: case.vm_helpers(),
        vcpus,
    };
    let mut waits: Vec<HelperWait<'_>> = (report.rows.iter())
        .filter(|row| serves(case, row, &served))
        .filter_map(|row| longest(case, row))
        .filter(|wait| wait.ns >= LONG_NS)
        .collect();
    // A wait behind a task says more than one behind an idle CPU.
    waits.sort_by_key(|wait| (wait.is_behind_idle(), std::cmp::Reverse(wait.ns)));
    match waits.first() {
        Some(first) => say(case, first, &waits).found(),
        None => Verdict::Clear,
    }
}

/// Threads that wake vCPUs.
fn wakers(case: &Case<'_>, vcpus: &HashSet<i32>) -> HashSet<i32> {
    let rows = case.picture.sched.iter().flat_map(|report| &report.rows);
    let of_vcpus = rows.filter(|row| vcpus.contains(&row.tid));
    let wakers = of_vcpus.flat_map(|row| &row.woken_by);
    wakers.filter_map(|other| other.tid).collect()
}

/// Whether VMs depend on a thread.
fn serves(case: &Case<'_>, row: &TaskRow, vms: &ServedVms) -> bool {
    if row.is_others()
        || vms.vcpus.contains(&row.tid)
        || case.picture.recorder.role(row.tid).is_some()
    {
        return false;
    }
    match NamedRole::from(row.comm.as_str()) {
        NamedRole::Kworker(Some(_)) => {
            case.printed() || vms.wakers.contains(&row.tid) || is_behind_vm(row, vms)
        }
        _ => vms.helpers.has_named(row.tid, &row.comm),
    }
}

/// Whether a task waited longest behind a thread of a VM: what that wakes works for VMs, too.
fn is_behind_vm(row: &TaskRow, vms: &ServedVms) -> bool {
    let behind = row
        .longest_wait
        .as_ref()
        .and_then(|wait| wait.behind.as_ref());
    behind.is_some_and(|(tid, comm)| {
        let role = NamedRole::from(comm.as_deref().unwrap_or_default());
        vms.vcpus.contains(tid) || role.is_vhost() || vms.helpers.has(*tid)
    })
}

fn longest<'a>(case: &Case<'_>, row: &'a TaskRow) -> Option<HelperWait<'a>> {
    if case.printed() {
        let ns = row.delays.max();
        return (ns > 0).then_some(HelperWait {
            row,
            ns,
            since: None,
            behind: None,
        });
    }
    let wait = row.longest_wait.as_ref().map(|wait| HelperWait {
        row,
        ns: wait.ns,
        since: Some(wait.since),
        behind: (wait.behind.as_ref()).map(|(tid, comm)| (*tid, comm.as_deref())),
    });
    // The scheduler's own wait begins only when an idle CPU has taken the wake-up.
    let idle = case
        .picture
        .idle
        .rows
        .iter()
        .find(|idle| idle.tid == row.tid);
    let idle = idle.and_then(|idle| idle.longest_wait);
    let idle = idle.map(|(since, until)| HelperWait {
        row,
        ns: until.saturating_sub(since),
        since: Some(since),
        behind: Some((0, None)),
    });
    // A wait behind a task that is long says who is in the way.
    let sure = wait
        .as_ref()
        .is_some_and(|wait| wait.ns >= LONG_NS && !wait.is_behind_idle());
    match sure {
        true => wait,
        false => [wait, idle]
            .into_iter()
            .flatten()
            .max_by_key(|wait| wait.ns),
    }
}

fn say(case: &Case<'_>, first: &HelperWait<'_>, waits: &[HelperWait<'_>]) -> Finding {
    let confidence = match (case.printed(), first.is_behind_idle()) {
        (_, true) => 0.5,
        (true, _) => 0.6,
        (false, false) => 0.85,
    };
    let behind = match first.behind {
        Some((0, _)) => ", its CPU idle".to_owned(),
        Some((_, Some(comm))) => format!(" behind {comm}"),
        _ => String::new(),
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .cost(FindingCost {
            share: 0.0,
            ..case.span_cost(first.ns)
        })
        .title(format!(
            "{} waited {} for a CPU{behind}",
            first.row.comm,
            human(first.ns)
        ));
    for wait in waits.iter().take(LISTED) {
        finding = finding.evidence(evidence(case, wait));
    }
    if first.is_behind_idle() {
        IDLE.clone_into(&mut finding.cause);
        finding = finding.only(&[2]);
    } else {
        finding = finding.only(&[0, 1]);
    }
    let whole = case.picture.span_ns.filter(|_| !case.printed());
    let much = whole.is_some_and(|span| first.ns >= span / 10);
    finding.at_least = match first.ns {
        _ if first.is_behind_idle() => Severity::Low,
        ns if ns >= NOTICED_NS => Severity::High,
        ns if ns >= MANY_NS || much => Severity::Medium,
        _ => Severity::Low,
    };
    finding
}

fn evidence(case: &Case<'_>, wait: &HelperWait<'_>) -> Evidence {
    let row = wait.row;
    let behind = match wait.behind {
        Some((0, _)) => says!(" while its CPU was idle"),
        Some((tid, Some(comm))) => {
            says!(" behind {task}", task = ThreadMention::named(comm, tid))
        }
        _ => says!(""),
    };
    let sentence = says!(
        "{task} waited {time} for a CPU",
        task = ThreadMention::named(&row.comm, row.tid),
        time = Ns(wait.ns),
    )
    .then(behind);
    let rest = match wait.since {
        Some(since) => says!(
            ": {shown}. Its mean delay is {mean}.",
            shown = case.command(since, since.saturating_add(wait.ns)),
            mean = Ns(row.delays.mean()),
        ),
        None => says!(
            ", in the mean {mean}; {switches} switches.",
            mean = Ns(row.delays.mean()),
            switches = row.delays.count(),
        ),
    };
    sentence.then(rest)
}
