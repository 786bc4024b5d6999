//! Halt polling that burns more than it saves.

use analysis::{ProfileSums, ProfileThread, SampledShare, VcpusReport};
use model::{State, vcpu_from_comm};
use stacks::{FrameOwner, Weight};
use words::duration::human;

use crate::domstats::{CountedPolls, name_of, when};
use crate::evidence::{Ns, Of, Share, says};
use crate::listed::{self, ListedShare};
use crate::sampled::{self, SampleShare};
use crate::{
    AccountPart, Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds,
    Remedy, RestsOn, Rule, RuleLook, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "halt-poll-waste",
    title: "Halt polling burns CPU time in polls that fail",
    described_as: &[
        "QEMU at 30 % to 100 % CPU while the guest is idle",
        "idle guests burn host CPU in kvm_vcpu_halt or kvm_vcpu_block",
        "halt_poll_ns wastes CPU",
        "idle=poll or poll_idle in the guest",
    ],
    looks_at: "time that vCPUs polled in halts before they slept, and how often an interrupt came meanwhile; samples \
        of their threads in the polling loop",
    needs: "kvm:kvm_vcpu_wakeup and kvm:kvm_halt_poll_ns with kvm_exit and kvm_entry; sched:sched_switch to separate \
        polling from sleeping; or samples of CPUs with stacks; or the host's KVM debug statistics or \
        virsh domstats (--facts)",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched],
    measures: &[
        "vcpus poll",
        "cpu function kvm_vcpu_halt",
        "cpu function kvm_vcpu_block",
        "cpu function kvm_vcpu_check_block",
        "cpu function poll_idle",
        "cpu function cpu_idle_poll",
    ],
    cause: "When a vCPU halts, KVM first polls for up to halt_poll_ns, so that an interrupt need not wake it. If none \
        comes in that time, the CPU time is lost and the vCPU sleeps all the same.",
    found: &[
        "{polls} polls failed and burnt {costs} of the vCPUs' time. That is the cost, whatever share of the polls \
         succeeds. Those that succeed save a wake-up each: below {whatever} of the vCPUs' time polling pays, and is no \
         finding, where they took more time than those that failed (that is time in which the vCPU would have slept, \
         and been woken late); above, it is a finding all the same, and the remedy says how many wake-ups it saved and \
         what a woken vCPU waited for its CPU. Confidence 0.9. Without events, from the host's statistics (`--facts`): \
         1000 polls since the VMs' start, failed ones took twice as long as those that succeeded: 0.6, without a cost. \
         So from `virsh domstats`, where they have to be {costs} of the domain's CPU time too; where the time that its \
         vCPUs slept was counted too, of their whole time, and {whatever} of it whatever succeeds. \
         Halts that were recorded and in which nobody polled are an all-clear.",
        "Without those events, from samples of the vCPUs' threads (`perf record -a -g`, `perf kvm --host --guest \
         record`): those in the loop of `kvm_vcpu_halt` (before Linux 5.17 `kvm_vcpu_block`) that polls, and in a \
         guest's own (`poll_idle`, `cpu_idle_poll`). The loop is the function itself and what it asks \
         (`kvm_vcpu_check_block`, `ktime_get`); sleeping and interrupts do not count. They are {whatever} of the \
         samples of vCPUs' threads, and that is more than chance: 20 of them at least; 0.6 times the confidence that \
         the share is over the limit, which has to be 0.9; samples do not show which polls failed, so the limit is \
         high. Surely below {costs} is an all-clear.",
        "Where perf report printed such samples: {whatever} of the shares of threads called `CPU N/KVM` are in \
         `kvm_vcpu_halt`, `kvm_vcpu_block` or `kvm_vcpu_check_block` themselves: 0.6 times the same confidence, at \
         most `medium`; where it does not say how many samples there are, twice that, and 0.3. A table is no \
         all-clear.",
    ],
    limits: &[
        ("polls", EvidenceNumber::Count(LEAST)),
        ("costs", EvidenceNumber::Share(COSTS)),
        ("whatever", EvidenceNumber::Share(WHATEVER)),
    ],
    seen_from: "{polls} failed polls that burn {costs} of the vCPUs' time",
    unknown: "*samples* with the kernel's symbols, or `kvm_vcpu_wakeup`, `kvm_halt_poll_ns`, exits and `sched_switch` \
        (*all*), or *facts* of a host whose KVM statistics are readable. Without `kvm_halt_poll_ns` a poll that fails \
        looks like a slow way to sleep: where none succeeds either, and the host's `halt_poll_ns` is unknown, it is \
        not known.",
    advice: "",
    looks_alike: "A guest that polls itself (`idle=poll`, haltpoll) burns guest time; samples of the guest show it, \
        events do not. A host that is slow to put a thread to sleep keeps it on its CPU without polling \
        ([vcpus.md](../../docs/vcpus.md)).",
    remedies: &[
        Remedy {
            what: "Poll for less: lower /sys/module/kvm/parameters/halt_poll_ns (0 turns it off; 200000 is the default \
                on x86). With Linux 5.8 to 6.0 on the host a VM keeps the value that it was created with: stop it and \
                start it again; a reboot of the guest is not enough.",
            price: "Interrupts that came while KVM polled now cost a wake-up, tens of microseconds each.",
            unless: "Successful polls may matter more than the CPU time: look at the ipi and halt-wake paths first.",
            check: "trapline vcpus: polling time, and polls that succeeded. If they do not change, the VM is older \
                than the setting (Linux 5.8 to 6.0), or its VMM set a limit of its own (KVM_CAP_HALT_POLL), which \
                comes before the parameter.",
        },
        Remedy {
            what: "Let the interval shrink at once: halt_poll_ns_shrink=0 resets a vCPU's interval after a failed \
                poll, and halt_poll_ns_grow_start is the value that it starts again with.",
            price: "The interval needs several halts to grow again when the load changes.",
            unless: "halt_poll_ns_grow_start needs Linux 5.1 or later.",
            check: "trapline vcpus, and the host's halt_poll_fail_ns against halt_poll_success_ns.",
        },
        Remedy {
            what: "In the guest: take idle=poll from its command line, or lower guest_halt_poll_ns in \
                   /sys/module/haltpoll/parameters (drivers/cpuidle/governors/haltpoll.c).",
            price: "An interrupt for an idle guest costs an exit and a wake-up, which polling in the guest avoids.",
            unless: "Keep it for a guest that has CPUs of its own and needs low latency.",
            check: "trapline flame --guest-kallsyms FILE: samples in poll_idle and cpu_idle_poll.",
        },
    ],
    sources: &[
        "Linux, virt/kvm/kvm_main.c: kvm->max_halt_poll_ns copied in kvm_create_vm (commit acd05785e48c, 5.8), and \
         read only where the VMM set it (kvm_vcpu_max_halt_poll_ns with override_halt_poll_ns, 6.1); \
         Documentation/virt/kvm/api.rst (KVM_CAP_HALT_POLL)",
        "Linux, Documentation/virt/kvm/halt-polling.rst; virt/kvm/kvm_main.c (kvm_vcpu_halt; kvm_vcpu_block before \
         5.17)",
        "Linux, drivers/cpuidle/poll_state.c (poll_idle); kernel/sched/idle.c (cpu_idle_poll); \
         Documentation/virt/guest-halt-polling.rst",
    ],
    explains: &[ExplainedTime::Part(AccountPart::Polling)],
    look: RuleLook::Case(look),
};

/// From this share of the vCPUs' time on polls that fail are a cost.
const COSTS: f64 = 0.02;
/// From this share on they are one whatever the others save: a tenth of the vCPUs' time is worth telling.
const WHATEVER: f64 = 0.1;
/// Polls that have to fail.
const LEAST: u64 = 50;

/// What vCPUs polled.
struct PollTimes {
    hits: u64,
    hits_ns: u64,
    misses: u64,
    burnt_ns: u64,
}

impl PollTimes {
    /// Sums it; `None` where halts have no event that would tell.
    fn of(case: &Case<'_>) -> Option<PollTimes> {
        let rows = || case.picture.vcpus.iter().flat_map(|report| &report.rows);
        let sum = |of: &dyn Fn(&model::Polls) -> u64| {
            rows()
                .map(|row| of(&row.polls))
                .fold(0u64, u64::saturating_add)
        };
        let polled = PollTimes {
            hits: sum(&|polls| polls.succeeded),
            hits_ns: sum(&|polls| polls.succeeded_ns),
            misses: sum(&|polls| polls.failed),
            burnt_ns: sum(&|polls| polls.failed_ns),
        };
        let any = polled.hits + polled.misses + sum(&|polls| polls.unpolled) > 0;
        any.then_some(polled)
    }
}

fn look(case: &Case<'_>) -> Verdict {
    let report = case.picture.vcpus.as_ref();
    let Some(report) = report.filter(|report| report.seen.halts && report.seen.switches) else {
        return without_events(case);
    };
    let Some(polled) = PollTimes::of(case) else {
        // Halts that would have had an event, and none had.
        return match report.rows.is_empty() {
            true => without_events(case),
            false => Verdict::Clear,
        };
    };
    let cost = case.vcpu_cost(polled.burnt_ns);
    // A poll that succeeds is time in which the vCPU would have slept, and saves waking it up. Where these are more
    // than what is burnt, polling pays.
    let pays = cost.share < WHATEVER && polled.burnt_ns <= polled.hits_ns;
    if cost.share < COSTS || polled.misses < LEAST || pays {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    if !report.seen.poll_lengths && doubtful(case) {
        return Verdict::Unknown(format!(
            "vCPUs stayed on their CPU for {} before they slept. The recording does not show whether KVM polled or was \
             slow to sleep; record kvm:kvm_halt_poll_ns too, which every failed poll emits.",
            human(polled.burnt_ns)
        ));
    }
    let mut finding = say(case, &polled).cost(cost).only(&[0, 1]);
    if polled.hits > 0 {
        finding = finding.note(0, saved(report, &polled));
    }
    let modules = case.host().map(|host| &host.modules);
    if let Some(ns) = modules.and_then(|modules| modules.get("kvm")?.get("halt_poll_ns")) {
        finding = finding.evidence(says!("The host's halt_poll_ns is {ns}.", ns = ns.as_str(),));
    }
    finding.found()
}

fn say(case: &Case<'_>, polled: &PollTimes) -> Finding {
    Finding::new(&RULE, 0.9)
        .title(format!(
            "Halt polling failed in {} of {} polls, and burnt {}",
            polled.misses,
            polled.hits + polled.misses,
            human(polled.burnt_ns),
        ))
        .evidence(says!(
            "{failed} polls failed and burnt {burnt} ({share} of the vCPUs' observed time); {succeeded} succeeded \
             after polling for {polled} in all.",
            failed = polled.misses,
            burnt = Ns(polled.burnt_ns),
            share = Of(polled.burnt_ns, case.picture.observed_ns()),
            succeeded = polled.hits,
            polled = Ns(polled.hits_ns),
        ))
        .evidence(says!(
            "vCPUs slept in halts for {halted}.",
            halted = Ns(case.picture.state_ns(State::Halted)),
        ))
}

/// What polls that succeeded are worth.
fn saved(report: &VcpusReport, polled: &PollTimes) -> String {
    let waits = (report.rows.iter())
        .map(|row| row.waits.total())
        .fold(0u64, u64::saturating_add);
    let woken = (report.rows.iter())
        .map(|row| row.waits.count())
        .fold(0u64, u64::saturating_add);
    let each = waits / woken.max(1);
    format!(
        "Each of the {} successful polls saved a wake-up. A woken vCPU waited {} for its CPU on average, so they saved \
         {} of latency; failed polls burnt {} of CPU time.",
        polled.hits,
        human(each),
        human(each.saturating_mul(polled.hits)),
        human(polled.burnt_ns)
    )
}

/// Whether what is taken for polls may be the way to sleep: the host does not poll, for all that is known, or none of
/// the polls succeeded, which the shortest of halts would have.
fn doubtful(case: &Case<'_>) -> bool {
    let rows = case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let hits: u64 = rows
        .map(|row| row.polls.succeeded)
        .fold(0, u64::saturating_add);
    let modules = case.host().map(|host| &host.modules);
    let set = modules.and_then(|modules| modules.get("kvm")?.get("halt_poll_ns"));
    match set.and_then(|ns| ns.parse::<u64>().ok()) {
        Some(ns) => ns == 0,
        None => hits == 0,
    }
}

/// Functions in which a vCPU's thread polls and then sleeps: `virt/kvm/kvm_main.c` from 5.17 on, and before.
const HALTS: [&str; 2] = ["kvm_vcpu_halt", "kvm_vcpu_block"];
/// What the loop that polls calls there, in any version from 4.2 on: what else is called sleeps, or is an interrupt.
const ASKS: [&str; 9] = [
    "kvm_vcpu_check_block",
    "kvm_arch_vcpu_runnable",
    "kvm_cpu_has_pending_timer",
    "kvm_vcpu_can_poll",
    "ktime_get",
    "single_task_running",
    "__srcu_read_lock",
    "__srcu_read_unlock",
    "srcu_read_unlock",
];
/// A guest's loops that poll instead of halting.
const GUESTS: [&str; 2] = ["poll_idle", "cpu_idle_poll"];

/// Samples of vCPUs' threads that poll.
struct PollSamples {
    /// In the host, and in guests.
    host: Weight,
    guest: Weight,
    all: Weight,
    /// The worst thread, its name and its share.
    worst: Option<(String, i32, SampleShare)>,
}

impl PollSamples {
    /// Sums them; `None` where no thread of a vCPU was sampled.
    fn of(case: &Case<'_>) -> Option<PollSamples> {
        let profile = case.picture.profile.as_ref()?;
        let is_vcpu = sampled::is_vcpu(case);
        let polls = host_polls(profile);
        let guests = profile.marked(FrameOwner::Guest, |name| GUESTS.contains(&name));
        let in_guest = |path: &[u32]| path.iter().any(|frame| sampled::has(&guests, *frame));
        let host = profile.of_threads(|thread, path| is_vcpu(thread) && polls(path));
        let guest = profile.of_threads(|thread, path| is_vcpu(thread) && in_guest(path));
        let vcpus: Vec<&ProfileThread> =
            profile.threads.iter().filter(|one| is_vcpu(one)).collect();
        let all = sampled::sum(vcpus.iter().map(|thread| (*thread, thread.all)));
        let worst = vcpus.iter().map(|thread| {
            let both = host.iter().chain(&guest).filter(|(one, _)| one == thread);
            let part = SampleShare {
                of: both
                    .map(|(_, weight)| weight.samples)
                    .fold(0, u64::saturating_add),
                all: thread.all.samples,
            };
            (thread.comm.clone(), thread.tid, part)
        });
        let worst = worst.max_by_key(|(_, tid, part)| (part.of, std::cmp::Reverse(*tid)));
        (all.samples > 0).then(|| PollSamples {
            host: sampled::sum(host),
            guest: sampled::sum(guest),
            all,
            worst,
        })
    }

    fn part(&self) -> SampleShare {
        SampleShare {
            of: self.host.samples.saturating_add(self.guest.samples),
            all: self.all.samples,
        }
    }
}

/// Returns a test of stacks, innermost frame first: whether they are in the host's loop that polls.
fn host_polls(profile: &ProfileSums) -> impl Fn(&[u32]) -> bool + use<> {
    let halts = profile.marked(FrameOwner::Kernel, |name| HALTS.contains(&name));
    let asks = profile.marked(FrameOwner::Kernel, |name| ASKS.contains(&name));
    let check = profile.marked(FrameOwner::Kernel, |name| name == ASKS[0]);
    move |path| {
        // From 5.17 on the one calls the other, to sleep.
        let halt = path.iter().rposition(|frame| sampled::has(&halts, *frame));
        match halt {
            Some(0) => true,
            Some(at) => sampled::has(&asks, path[at - 1]),
            // Without stacks there is the innermost function alone.
            None => matches!(path, [frame] if sampled::has(&check, *frame)),
        }
    }
}

/// Without events: samples, and KVM's own sums.
fn without_events(case: &Case<'_>) -> Verdict {
    let statistics = from_statistics(case);
    let Some(samples) = PollSamples::of(case).filter(|_| case.in_ticks().is_none()) else {
        return match statistics {
            Verdict::Unknown(_) => by_shares(case).map_or(statistics, Finding::found),
            _ => statistics,
        };
    };
    if samples.part().is_above(WHATEVER) {
        return case
            .too_brief()
            .unwrap_or_else(|| say_samples(case, &samples).found());
    }
    let Verdict::Unknown(what) = statistics else {
        return statistics;
    };
    let nameless = case.nameless();
    if !nameless.is_empty() {
        return Verdict::Unknown(what + nameless);
    }
    if samples.part().is_below(COSTS) {
        return Verdict::Clear;
    }
    Verdict::Unknown(format!(
        "vCPU threads polled in {}; samples do not show which polls failed. {what}",
        samples.part().says("of their samples").text
    ))
}

/// What perf report printed of vCPUs' threads in the loop that polls.
fn by_shares(case: &Case<'_>) -> Option<Finding> {
    let shares = case.listed()?;
    let is_vcpu = |comm: &Option<String>| comm.as_deref().and_then(vcpu_from_comm).is_some();
    let own = |pick: &dyn Fn(&SampledShare) -> bool| -> f64 {
        let rows = shares.function_rows().iter();
        let picked = rows.filter(|row| is_vcpu(&row.comm) && pick(row));
        picked.map(|row| row.own).sum()
    };
    // What it calls to sleep is none of it, so own shares alone count.
    let names = [HALTS[0], HALTS[1], ASKS[0]];
    let polls = own(&|row| listed::is_in(row, false, &names));
    let part = ListedShare::of(shares, polls, own(&|_| true));
    let sure = part.above(WHATEVER)?;
    let mut finding = Finding::new(&RULE, 0.6 * sure)
        .rests_on(RestsOn::Absence)
        .title(format!(
            "vCPU threads have {} of their listed samples in the loop that polls in halts",
            words::share::tenths(part.part)
        ))
        .evidence(
            says!("kvm_vcpu_halt, kvm_vcpu_block and kvm_vcpu_check_block themselves have ")
                .then(part.says("the listed shares of threads called CPU N/KVM"))
                .then(says!(". Samples do not show which polls failed.")),
        )
        .only(&[0, 1]);
    part.rank(&mut finding, Base::VcpuTime);
    Some(finding)
}

fn say_samples(case: &Case<'_>, samples: &PollSamples) -> Finding {
    let part = samples.part();
    let polled = Weight {
        samples: part.of,
        amount: samples.host.amount.saturating_add(samples.guest.amount),
    };
    let mut finding = Finding::new(&RULE, 0.6 * part.above(WHATEVER))
        .rests_on(RestsOn::Absence)
        .title(format!(
            "vCPU threads spent {} of their CPU time polling in halts",
            words::share::tenths(part.share())
        ))
        .evidence(
            says!("Samples of vCPUs' threads poll in ")
                .then(part.says("of them"))
                .then(says!("; {command} shows them.", command = case.flame())),
        )
        .evidence(says!(
            "{host} of them poll in the host (kvm_vcpu_halt, kvm_vcpu_block), {guest} in their guests (poll_idle, \
             cpu_idle_poll). Samples do not show which polls failed.",
            host = samples.host.samples,
            guest = samples.guest.samples,
        ));
    if let Some((comm, tid, worst)) = &samples.worst {
        finding = finding.evidence(says!(
            "Most in {task}: {polled} of {all} samples ({share}).",
            task = crate::evidence::ThreadMention::named(comm, *tid),
            polled = worst.of,
            all = worst.all,
            share = Share(worst.share()),
        ));
    }
    finding = match case.sampled_cost(polled, samples.all.amount, Base::VcpuTime) {
        Some(cost) => finding.cost(cost),
        None => {
            finding.at_least = FindingCost::of(part.of, part.all, Base::VcpuTime).severity();
            finding
        }
    };
    match (samples.host.samples, samples.guest.samples) {
        (0, _) => finding.only(&[2]),
        (_, 0) => finding.only(&[0, 1]),
        (host, guest) if guest > host => finding.only(&[2, 0, 1]),
        _ => finding,
    }
}

/// Polls that have to fail by sums since a start, which have no share of a recording's time to be compared with.
const LEAST_SINCE_START: u64 = 1000;
/// What so many polls take that go on for as long as KVM polls by default: where they were not counted.
const LEAST_SINCE_START_NS: u64 = LEAST_SINCE_START * 200_000;

/// Without events: what libvirt counted of domains. `None` where it counted nothing of it.
fn from_domstats(case: &Case<'_>) -> Option<Verdict> {
    let domains = case.domstats().into_iter();
    let polls = domains.filter_map(CountedPolls::of);
    let worst = polls.max_by(|a, b| a.share().total_cmp(&b.share()))?;
    let (failed, succeeded) = (worst.failed_ns, worst.succeeded_ns);
    let pays = match worst.is_whole_time {
        true => worst.share() < WHATEVER && failed <= succeeded,
        // How much of the vCPUs' time it is nobody knows, so only what burns more than it saves is reported.
        false => failed < succeeded.saturating_mul(2),
    };
    let enough = match worst.failures {
        Some(failures) => failures >= LEAST_SINCE_START,
        None => failed >= LEAST_SINCE_START_NS,
    };
    if worst.share() < COSTS || pays || !enough {
        return Some(Verdict::Clear);
    }
    let finding = Finding::new(&RULE, 0.6)
        .rests_on(RestsOn::Counts)
        .title(format!(
            "Halt polling of {} failed for {}, {}",
            name_of(worst.domain),
            human(failed),
            when(worst.domain),
        ))
        .evidence(worst.said())
        .only(&[0, 1]);
    Some(finding.found())
}

/// Without events: KVM's own sums since the host's start.
fn from_statistics(case: &Case<'_>) -> Verdict {
    if let Some(verdict) = from_domstats(case) {
        return verdict;
    }
    let counters = case.host().map(|host| &host.kvm_debug);
    let get = |name: &str| counters.and_then(|all| all.get(name).copied());
    let (Some(fail_ns), Some(success_ns)) = (get("halt_poll_fail_ns"), get("halt_poll_success_ns"))
    else {
        return Verdict::Unknown(
            "Record kvm:kvm_vcpu_wakeup, kvm:kvm_exit, kvm:kvm_entry and sched:sched_switch, or give --facts of a host \
             whose KVM debug statistics are readable, or virsh domstats of the VM."
                .to_owned(),
        );
    };
    let (hits, tries) = (
        get("halt_successful_poll").unwrap_or(0),
        get("halt_attempted_poll").unwrap_or(0),
    );
    // What share of the time it is these sums do not say, so only what burns more than it saves is reported.
    if fail_ns < success_ns.saturating_mul(2) || tries < 1000 {
        return Verdict::Clear;
    }
    Finding::new(&RULE, 0.6)
        .title(format!("Halt polling failed in {} of {tries} polls, by the host's statistics", tries - hits.min(tries)))
        .evidence(says!(
            "Since the VMs' start failed polls took {failed} and successful ones {succeeded}; the statistics do not \
             say when the VMs started.",
            failed = Ns(fail_ns),
            succeeded = Ns(success_ns),
        ))
        .only(&[0, 1])
        .found()
}
