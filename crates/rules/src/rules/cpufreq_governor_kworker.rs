//! kworkers of a cpufreq governor that samples the load.

use analysis::{
    OtherTask, ProfileSums, ProfileThread, SampleUnit, SchedReport, TaskRow, WorkRow, plain,
};
use model::NamedRole;
use stacks::{FrameOwner, Weight};
use words::duration::human;

use crate::evidence::{Evidence, Many, Ns, Share, ThreadMention, says};
use crate::listed::ListedShare;
use crate::sampled::{self, SampleShare};
use crate::{
    AccountPart, Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds,
    Remedy, RestsOn, Rule, RuleLook, Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "cpufreq-governor-kworker",
    title: "A sampling cpufreq governor's kworkers interrupt the busy CPUs all the time",
    described_as: &[
        "kworker wakes every few milliseconds beside my vCPU",
        "latency differs with the cpufreq governor",
        "the ondemand or schedutil governor disturbs isolated CPUs",
        "kworker od_dbs_update in perf sched",
    ],
    looks_at: "switches and run time of bound kworkers (kworker/CPU:N), the functions they run, samples of them, and \
        the host's cpufreq governor",
    needs: "sched:sched_switch with workqueue:workqueue_execute_start or stacks; or samples of CPUs with stacks; or \
        what perf sched latency prints; --facts with the governor",
    record: &[RecordNeeds::Sched, RecordNeeds::Stacks],
    measures: &[],
    cause: "The ondemand and conservative governors sample the load of each CPU from a work item (od_dbs_update, \
        cs_dbs_update). Each sample preempts what runs on that CPU: with a short sampling period thousands of times a \
        second. Changing the frequency takes time as well.",
    found: &[
        "Kworkers that are bound to a CPU made 1000 switches, a fifth of all switches, and 500 a second (where a table \
         does not say how long it is of, that last is not asked). A kernel's housekeeping is some ten a second on each \
         CPU. Confidence 0.95 if they were seen in `dbs_work_handler`, `od_dbs_update`, `cs_dbs_update` or \
         `do_dbs_timer` (a work item, or the stack of a switch), 0.8 if the host's governor is one that samples, 0.5 \
         if neither is known; nothing if the functions are known and others, if kworkers inject interrupts, if \
         threads of VMMs wake them, if one of them waited {long} for its CPU and neither function nor governor is \
         known, or if all \
         governors are others and no function says otherwise (facts may be of another time than the recording). At \
         least `medium` from tables.",
        "By samples (`perf record -a -g`): stacks of these kworkers in one of these functions, or in `cpufreq_*`, are \
         {sampled} of the samples of their CPUs (where samples are cycles, of all that were not idle), and that is \
         more than chance: 20 of them at least; confidence 0.95 times the confidence that the share is over the limit, \
         which has to be 0.9. Where switches are many and no event or stack shows the function, samples of kworkers \
         that are all in other functions are an all-clear.",
        "Where perf report printed such samples: rows of these kworkers in one of these functions are {sampled} of the \
         shares that are not idle, at most `medium`; where it does not say how many samples there are, twice that, and \
         0.5. A table is no all-clear.",
    ],
    limits: &[
        ("sampled", EvidenceNumber::Share(SAMPLED)),
        ("long", EvidenceNumber::Nanoseconds(LONG_NS)),
    ],
    seen_from: "1000 switches of kworkers that are bound to a CPU, 500 a second and a fifth of all",
    unknown: "*kworkers*, or a printed `perf sched latency`, or *samples*; *facts* for the governor.",
    advice: "",
    looks_alike: "Kworkers also inject interrupts (`irqfd_inject`), write back and flush; hence 0.5 without a \
        function.",
    remedies: &[
        Remedy {
            what: "Set the governor of these CPUs to performance: cpupower -c CPUS frequency-set -g performance (or \
                echo performance > /sys/devices/system/cpu/cpuN/cpufreq/scaling_governor).",
            price: "More power and heat: these CPUs keep their highest frequency, and others may get less turbo.",
            unless: "Where power or cooling is the limit, schedutil is the better choice: it runs from the scheduler, \
                with most drivers without kworkers.",
            check: "trapline compare BEFORE AFTER: the kworkers' switches are gone; perf stat -e context-switches.",
        },
        Remedy {
            what: "Keep the governor and let it sample less often: raise sampling_rate (in microseconds) in \
                   /sys/devices/system/cpu/cpufreq/ondemand.",
            price: "The frequency follows the load more slowly.",
            unless: "Bursts shorter than the period get no higher frequency.",
            check: "trapline sched: the kworkers' switches per second.",
        },
    ],
    sources: &[
        "Linux, drivers/cpufreq/cpufreq_governor.c (dbs_work_handler), cpufreq_ondemand.c (od_dbs_update)",
        "Linux, Documentation/admin-guide/pm/cpufreq.rst",
    ],
    explains: &[ExplainedTime::Part(AccountPart::RunnableBehind)],
    look: RuleLook::Case(look),
};

/// Functions of the governors' work items; od_dbs_update and cs_dbs_update run under the first.
const FUNCTIONS: [&str; 4] = [
    "dbs_work_handler",
    "od_dbs_update",
    "cs_dbs_update",
    "do_dbs_timer",
];

/// How sure a finding is that knows the function.
const KNOWN: f64 = 0.95;
/// From this share of their CPUs' samples on kworkers are a cost: sampling every 4 ms takes a tenth of that.
const SAMPLED: f64 = 0.01;
/// A kworker that waits so long for its CPU waits behind something else than what it would preempt.
const LONG_NS: u64 = 20_000_000;
/// Samples of kworkers that say what they do.
const ENOUGH: u64 = 20;

/// Whether a name is that of a kworker bound to a CPU: `kworker/9:1-eve`, and not `kworker/u449:3`.
fn is_bound(comm: &str) -> bool {
    cpu_of(comm).is_some()
}

/// Returns the CPU that a kworker is bound to.
fn cpu_of(comm: &str) -> Option<u32> {
    match NamedRole::from(comm) {
        NamedRole::Kworker(cpu) => cpu,
        _ => None,
    }
}

/// What was measured of kworkers that are bound to a CPU.
struct Kworkers<'a> {
    /// Those with most switches first.
    rows: Vec<&'a TaskRow>,
    switches: u64,
    /// Switches of all tasks.
    all: u64,
    ran_ns: u64,
    /// Their work, if it is a governor's.
    work: Option<&'a WorkRow>,
}

impl<'a> Kworkers<'a> {
    fn of(sched: &'a SchedReport) -> Kworkers<'a> {
        let mut rows: Vec<&TaskRow> = sched
            .rows
            .iter()
            .filter(|row| is_bound(&row.comm))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.delays.count()));
        Kworkers {
            switches: rows
                .iter()
                .map(|row| row.delays.count())
                .fold(0, u64::saturating_add),
            all: sched
                .rows
                .iter()
                .map(|row| row.delays.count())
                .fold(0, u64::saturating_add),
            ran_ns: rows
                .iter()
                .map(|row| ran_ns(row))
                .fold(0, u64::saturating_add),
            rows,
            work: (sched.work.iter()).find(|work| FUNCTIONS.contains(&work.function.as_str())),
        }
    }

    /// Whether they switch often, and more than what housekeeping takes: that is some ten a second on each CPU.
    fn are_many(&self, case: &Case<'_>) -> bool {
        let per_second = self.switches as f64 / case.seconds();
        self.switches >= 1000
            && self.switches >= self.all.div_ceil(5)
            && (case.printed() || per_second >= 500.0)
    }
}

impl Kworkers<'_> {
    fn wait_long(&self) -> bool {
        self.rows.iter().any(|row| row.delays.max() >= LONG_NS)
    }
}

fn ran_ns(row: &TaskRow) -> u64 {
    row.runtime_ns.max(row.on_cpu_ns)
}

/// The governors of the host's CPUs.
struct Governors<'a> {
    all: Vec<&'a str>,
    /// One that samples.
    sampling: Option<&'a str>,
}

impl<'a> Governors<'a> {
    fn of(case: &Case<'a>) -> Governors<'a> {
        let all: Vec<&str> = (case.host().into_iter().flat_map(|host| &host.cpufreq))
            .filter_map(|policy| policy.governor.as_deref())
            .collect();
        let samples = |name: &&str| matches!(*name, "ondemand" | "conservative");
        let sampling = all.iter().copied().find(samples);
        Governors { all, sampling }
    }

    fn evidence(&self) -> Evidence {
        match (self.sampling, self.all.first()) {
            (Some(governor), _) => says!(
                "The host's cpufreq governor is {governor}.",
                governor = governor,
            ),
            (None, Some(governor)) => says!(
                "The facts say that the governor is {governor}, so they were taken at another time than the recording.",
                governor = *governor,
            ),
            (None, None) => {
                "The host's cpufreq governor is unknown; trapline facts on the host shows it."
                    .into()
            }
        }
    }
}

/// What samples say of kworkers that are bound to a CPU.
struct KworkerSamples<'a> {
    /// Those of the governor's functions, by kworker, heaviest first.
    governing: Vec<(&'a ProfileThread, Weight)>,
    /// All samples of such kworkers with a stack in which functions have names.
    named: u64,
    /// The part that the governor's functions are of the samples of the CPUs, and of what.
    part: SampleShare,
    of: &'static str,
    /// The time of these CPUs, if samples are time.
    cpus_ns: Option<u64>,
}

impl<'a> KworkerSamples<'a> {
    fn of(case: &Case<'a>) -> Option<KworkerSamples<'a>> {
        let profile: &'a ProfileSums = case.picture.profile.as_ref()?;
        let governor = |name: &str| {
            let name = name.trim_start_matches('_');
            FUNCTIONS.contains(&name) || name.starts_with("cpufreq_")
        };
        let governor = profile.marked(FrameOwner::Kernel, governor);
        let any = profile.marked(FrameOwner::Kernel, |name| {
            !name.contains("+0x") && name != "[unknown]"
        });
        let governing = profile.of_threads(|thread, path| {
            is_bound(&thread.comm) && path.iter().any(|frame| sampled::has(&governor, *frame))
        });
        let named = profile.of_threads(|thread, path| {
            let named = path.iter().all(|frame| sampled::has(&any, *frame));
            is_bound(&thread.comm) && named && path.len() > 1
        });
        let weight = sampled::sum(governing.iter().copied());
        let mut cpus: Vec<u32> = (governing.iter())
            .filter_map(|(thread, _)| cpu_of(&thread.comm))
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        let span = case.picture.span_ns.unwrap_or(0);
        let cpus_ns = (profile.unit == SampleUnit::Nanoseconds)
            .then(|| span.saturating_mul(cpus.len().max(1) as u64));
        let (all, of) = match cpus_ns {
            // As many as these CPUs would have, had they all been taken.
            Some(ns) => {
                let each = weight.amount.checked_div(weight.samples);
                let each = each.filter(|each| *each > 0).unwrap_or(u64::MAX);
                (ns / each, "samples that their CPUs have time for")
            }
            None => (profile.busy().samples, "samples that are not of idle CPUs"),
        };
        Some(KworkerSamples {
            named: sampled::sum(named).samples,
            part: SampleShare {
                of: weight.samples,
                all: all.max(weight.samples),
            },
            of,
            cpus_ns,
            governing,
        })
    }

    /// Whether kworkers are known to do something else.
    fn elsewhere(&self) -> bool {
        self.part.of == 0 && self.named >= ENOUGH
    }

    fn cost(&self, case: &Case<'_>) -> Option<FindingCost> {
        let weight = sampled::sum(self.governing.iter().copied());
        case.sampled_cost(weight, self.cpus_ns?, Base::CpuTime)
    }
}

fn look(case: &Case<'_>) -> Verdict {
    let by_switches = by_switches(case);
    let Some(samples) = KworkerSamples::of(case).filter(|_| case.in_ticks().is_none()) else {
        return match by_switches {
            Verdict::Unknown(_) => by_shares(case).map_or(by_switches, Finding::found),
            _ => by_switches,
        };
    };
    if let Verdict::Found(found) = &by_switches
        && found.confidence >= KNOWN
    {
        return by_switches;
    }
    if samples.part.is_above(SAMPLED) {
        return case
            .too_brief()
            .unwrap_or_else(|| say_samples(case, &samples).found());
    }
    match by_switches {
        Verdict::Found(_) | Verdict::Unknown(_) if samples.elsewhere() => Verdict::Clear,
        Verdict::Unknown(what) if !case.nameless().is_empty() => {
            Verdict::Unknown(what + case.nameless())
        }
        Verdict::Unknown(_) if samples.part.is_below(SAMPLED) => Verdict::Clear,
        Verdict::Unknown(_) if samples.part.share() >= SAMPLED => Verdict::Unknown(format!(
            "{} of kworkers in the governor's functions are too few for a share; record for longer.",
            words::plural(samples.part.of, "sample")
        )),
        other => other,
    }
}

/// What perf report printed of kworkers in the governor's functions.
fn by_shares(case: &Case<'_>) -> Option<Finding> {
    let shares = case.listed()?;
    let kworkers = shares.of_tasks(|row| {
        let name = plain(row.symbol.as_deref().unwrap_or_default());
        let governor = FUNCTIONS.contains(&name) || name.starts_with("cpufreq_");
        governor && row.comm.as_deref().is_some_and(is_bound)
    });
    let part = kworkers.iter().map(|(_, part)| part).sum();
    let part = ListedShare::of(shares, part, 1.0 - shares.idle());
    let sure = part.above(SAMPLED)?;
    let mut finding = Finding::new(&RULE, KNOWN * sure)
        .rests_on(RestsOn::Absence)
        .title(format!(
            "kworkers of a sampling cpufreq governor have {} of the samples that are not idle",
            words::share::tenths(part.part)
        ))
        .evidence(
            says!("kworkers are in the governor's functions in ")
                .then(part.says("the shares that are not idle"))
                .then(says!(".")),
        );
    for (comm, part) in kworkers.iter().take(4) {
        finding = finding.evidence(says!(
            "{task}: {share} of all samples in them.",
            task = *comm,
            share = Share(*part),
        ));
    }
    part.rank(&mut finding, Base::CpuTime);
    Some(finding.evidence(Governors::of(case).evidence()))
}

fn say_samples(case: &Case<'_>, samples: &KworkerSamples<'_>) -> Finding {
    let confidence = KNOWN * samples.part.above(SAMPLED);
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .title(format!(
            "kworkers of a sampling cpufreq governor took {} of the time of their CPUs",
            words::share::tenths(samples.part.share())
        ))
        .evidence(
            says!("Stacks of kworkers are in the governor's functions in ")
                .then(samples.part.says(samples.of))
                .then(says!("; {command} shows them.", command = case.flame())),
        );
    if let Some(cost) = samples.cost(case) {
        finding = finding.cost(cost);
    } else {
        finding.at_least =
            FindingCost::of(samples.part.of, samples.part.all, Base::CpuTime).severity();
    }
    for (thread, weight) in samples.governing.iter().take(4) {
        finding = finding.evidence(says!(
            "{task}: {samples} of {all} samples in them.",
            task = ThreadMention::named(&thread.comm, thread.tid),
            samples = weight.samples,
            all = thread.all.samples,
        ));
    }
    finding.evidence(Governors::of(case).evidence())
}

fn by_switches(case: &Case<'_>) -> Verdict {
    let switches = case.picture.sched.as_ref();
    let Some(sched) = switches.filter(|_| !case.run_times_alone()) else {
        return Verdict::Unknown(
            "Record sched:sched_switch, sched:sched_wakeup and workqueue:workqueue_execute_start."
                .to_owned(),
        );
    };
    if case.one_process() {
        return Verdict::Unknown(
            "Record sched:sched_switch, sched:sched_wakeup and workqueue:workqueue_execute_start of the whole host \
             (-a)."
                .to_owned(),
        );
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let governors = Governors::of(case);
    let kworkers = Kworkers::of(sched);
    // What ran is what was recorded; facts may be of another time.
    let others = !governors.all.is_empty() && governors.sampling.is_none();
    if (others && kworkers.work.is_none()) || !kworkers.are_many(case) {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let confidence = match (kworkers.work, governors.sampling) {
        (Some(_), _) => KNOWN,
        _ if do_something_else(case, sched) => return Verdict::Clear,
        (None, Some(_)) => 0.8,
        // A governor's work is brief, and waits briefly: these kworkers have another matter (helper-waits-for-cpu).
        (None, None) if kworkers.wait_long() => return Verdict::Clear,
        (None, None) => 0.5,
    };
    say(case, &kworkers, &governors, confidence).found()
}

/// Whether kworkers that run none of the governors' functions are known to do something else.
fn do_something_else(case: &Case<'_>, sched: &SchedReport) -> bool {
    let functions_known = sched.work.iter().any(|work| work.stats.count() > 0);
    let stacks: u64 = sched
        .work
        .iter()
        .map(|work| work.stacks)
        .fold(0, u64::saturating_add);
    // Interrupts that kworkers inject are another matter.
    let injects = case.picture.path("irqfd").is_some_and(|path| {
        path.stages
            .iter()
            .any(|stage| stage.name.contains("kworker woken"))
    });
    functions_known || stacks > 0 || injects || woken_by_vmms(case, sched)
}

/// Whether threads of VMMs wake these kworkers: they hand them work, such as what a console prints. A governor's
/// work is queued by the scheduler and by its timer, on behalf of whoever runs.
fn woken_by_vmms(case: &Case<'_>, sched: &SchedReport) -> bool {
    let vcpus = case.vcpu_tids();
    let helpers = case.vm_helpers();
    let of_vmm = |waker: &OtherTask| {
        let Some(tid) = waker.tid.filter(|tid| !vcpus.contains(tid)) else {
            return false;
        };
        helpers.has_named(tid, waker.comm.as_deref().unwrap_or_default())
    };
    let kworkers = sched.rows.iter().filter(|row| is_bound(&row.comm));
    // One kworker hands work to another: who woke the first one counts.
    let others = kworkers.flat_map(|row| &row.woken_by).filter(|waker| {
        let role = NamedRole::from(waker.comm.as_deref().unwrap_or_default());
        !role.is_kworker()
    });
    let wakers: Vec<&OtherTask> = others.collect();
    let count = |pick: &dyn Fn(&OtherTask) -> bool| -> u64 {
        let picked = wakers.iter().filter(|waker| pick(waker));
        picked.map(|waker| waker.count).fold(0, u64::saturating_add)
    };
    count(&of_vmm) * 2 > count(&|_| true)
}

fn say(
    case: &Case<'_>,
    kworkers: &Kworkers<'_>,
    governors: &Governors<'_>,
    confidence: f64,
) -> Finding {
    let mut finding = Finding::new(&RULE, confidence)
        .cost(case.cpu_cost(kworkers.ran_ns))
        .title(format!(
            "kworkers switched {} times and ran for {}, as a sampling cpufreq governor makes them",
            kworkers.switches,
            human(kworkers.ran_ns)
        ));
    for row in kworkers.rows.iter().take(4) {
        finding = finding.evidence(says!(
            "{task}: {switches} switches, ran for {ran}.",
            task = ThreadMention {
                called: format!("{}:{}", row.comm, row.tid),
                tid: row.tid,
            },
            switches = row.delays.count(),
            ran = Ns(ran_ns(row)),
        ));
    }
    let mut finding = finding
        .evidence(says!(
            "{kworkers} bound to a CPU: {switches} of {all} switches.",
            kworkers = Many(kworkers.rows.len() as u64, "kworker"),
            switches = kworkers.switches,
            all = kworkers.all,
        ))
        .evidence(match kworkers.work {
            Some(work) if work.stats.count() > 0 => says!(
                "They ran {function} {count} times, {time} in all.",
                function = work.function.as_str(),
                count = work.stats.count(),
                time = Ns(work.stats.total()),
            ),
            Some(work) => says!(
                "{stacks} of their stacks are in {function}.",
                stacks = work.stacks,
                function = work.function.as_str(),
            ),
            None => {
                "The recording does not show which function they run; workqueue:workqueue_execute_start or stacks do."
                    .into()
            }
        })
        .evidence(governors.evidence());
    // Rates are not known of a table that does not say how long it is of.
    if case.printed() {
        finding.at_least = Severity::Medium;
    }
    finding
}
