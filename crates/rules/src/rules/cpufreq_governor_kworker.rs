//! kworkers of a cpufreq governor that samples the load.

use analysis::TaskRow;
use words::duration::human;

use crate::evidence::{Many, Ns, Thread, says};
use crate::{Case, Finding, Remedy, Rule, Severity, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "cpufreq-governor-kworker",
    title: "A cpufreq governor's kworkers run all the time on the CPUs that do the work",
    looks_at: "switches and run time of bound kworkers (kworker/CPU:N), the functions they run, and the host's cpufreq governor",
    needs: "sched:sched_switch with workqueue:workqueue_execute_start or stacks; or what perf sched latency prints; \
            --facts with the governor",
    measures: &[],
    cause: "The ondemand and conservative governors sample the load of each CPU from a work item (od_dbs_update, \
            cs_dbs_update). On a busy CPU that takes the CPU from what runs there, thousands of times a second with a short \
            sampling period, and changes of frequency are slow on top of it.",
    found: &[
        "Kworkers that are bound to a CPU made 1000 switches, a fifth of all switches, and 500 a second (where a table \
         does not say how long it is of, that last is not asked). A kernel's housekeeping is some ten a second on each \
         CPU. Confidence 0.95 if they were seen in `dbs_work_handler`, `od_dbs_update`, `cs_dbs_update` or \
         `do_dbs_timer` (a work item, or the stack of a switch), 0.8 if the host's governor is one that samples, 0.5 if \
         neither is known; nothing if the functions are known and others, if kworkers inject interrupts, or if all \
         governors are others and no function says otherwise (facts may be of another time than the recording). At \
         least `medium` from tables.",
    ],
    limits: &[],
    unknown: "*kworkers*, or a printed `perf sched latency`; *facts* for the governor.",
    advice: "",
    looks_alike: "Kworkers also inject interrupts (`irqfd_inject`), write back, and flush: that is why 0.5 without a function.",
    remedies: &[
        Remedy {
            what: "Set the governor of these CPUs to performance: cpupower -c CPUS frequency-set -g performance (or echo \
                   performance > /sys/devices/system/cpu/cpuN/cpufreq/scaling_governor).",
            price: "Power and heat: these CPUs run at their highest frequency also when idle in C0, and others may get less \
                    turbo.",
            unless: "Not where the power budget or the cooling is the limit; schedutil is then the better choice (it works \
                     from the scheduler, without kworkers on most drivers).",
            check: "trapline compare BEFORE AFTER: the kworkers' switches are gone; perf stat -e context-switches.",
        },
        Remedy {
            what: "Keep the governor and let it sample less often: raise sampling_rate (in microseconds) in \
                   /sys/devices/system/cpu/cpufreq/ondemand.",
            price: "Frequencies follow the load more slowly.",
            unless: "Not for loads that come in bursts shorter than the period.",
            check: "trapline sched: the kworkers' switches per second.",
        },
    ],
    sources: &[
        "Linux, drivers/cpufreq/cpufreq_governor.c (dbs_work_handler), cpufreq_ondemand.c (od_dbs_update)",
        "Linux, Documentation/admin-guide/pm/cpufreq.rst",
    ],
    look,
};

/// Functions of the governors' work items; od_dbs_update and cs_dbs_update run under the first.
const FUNCTIONS: [&str; 4] = [
    "dbs_work_handler",
    "od_dbs_update",
    "cs_dbs_update",
    "do_dbs_timer",
];

/// Whether a name is that of a kworker bound to a CPU: `kworker/9:1-eve`, and not `kworker/u449:3`.
fn is_bound(row: &TaskRow) -> bool {
    let rest = row.comm.strip_prefix("kworker/");
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn look(case: &Case<'_>) -> Verdict {
    let Some(sched) = &case.picture.sched else {
        return Verdict::Lacks(
            "Record sched:sched_switch, sched:sched_wakeup and workqueue:workqueue_execute_start to know.".to_owned(),
        );
    };
    if case.one_process() {
        return Verdict::Lacks(
            "Record sched:sched_switch, sched:sched_wakeup and workqueue:workqueue_execute_start of the whole host (-a) to know."
                .to_owned(),
        );
    }
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    let governors: Vec<&str> = (case.host().into_iter().flat_map(|host| &host.cpufreq))
        .filter_map(|policy| policy.governor.as_deref())
        .collect();
    let samples = |name: &&str| matches!(*name, "ondemand" | "conservative");
    let sampling = governors.iter().copied().find(|name| samples(name));
    let work = sched
        .work
        .iter()
        .find(|work| FUNCTIONS.contains(&work.function.as_str()));
    // What ran is what was recorded; facts may be of another time.
    if !governors.is_empty() && sampling.is_none() && work.is_none() {
        return Verdict::Clear;
    }
    let mut kworkers: Vec<&TaskRow> = sched.rows.iter().filter(|row| is_bound(row)).collect();
    kworkers.sort_by_key(|row| std::cmp::Reverse(row.delays.count()));
    let switches: u64 = kworkers.iter().map(|row| row.delays.count()).sum();
    let all: u64 = sched.rows.iter().map(|row| row.delays.count()).sum();
    let ran = |rows: &[&TaskRow]| {
        rows.iter()
            .map(|row| row.runtime_ns.max(row.on_cpu_ns))
            .fold(0u64, u64::saturating_add)
    };
    let per_second = switches as f64 / case.seconds();
    // A kernel's housekeeping is some ten a second on each CPU.
    let many = switches >= 1000 && switches * 5 >= all && (case.printed() || per_second >= 500.0);
    if !many {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let functions_known = sched.work.iter().any(|work| work.stats.count() > 0);
    let stacks: u64 = sched.work.iter().map(|work| work.stacks).sum();
    // Interrupts that kworkers inject are another matter.
    let injects = case.picture.path("irqfd").is_some_and(|path| {
        path.stages
            .iter()
            .any(|stage| stage.name.contains("kworker woken"))
    });
    let confidence = match (work, sampling) {
        (Some(_), _) => 0.95,
        _ if functions_known || stacks > 0 || injects => return Verdict::Clear,
        (None, Some(_)) => 0.8,
        (None, None) => 0.5,
    };
    let cost_ns = ran(&kworkers);
    let mut finding = Finding::new(&RULE, confidence).cost(case.cpu_cost(cost_ns)).title(format!(
        "kworkers switched {switches} times and ran for {}, as those of a sampling cpufreq governor do",
        human(cost_ns)
    ));
    for row in kworkers.iter().take(4) {
        finding = finding.evidence(says!(
            "{task}: {switches} switches, ran for {ran}.",
            task = Thread {
                called: format!("{}:{}", row.comm, row.tid),
                tid: row.tid,
            },
            switches = row.delays.count(),
            ran = Ns(row.runtime_ns.max(row.on_cpu_ns)),
        ));
    }
    finding = finding.evidence(says!(
        "{kworkers} bound to a CPU made {switches} of {all} switches.",
        kworkers = Many(kworkers.len() as u64, "kworker"),
        switches = switches,
        all = all,
    ));
    match work {
        Some(work) if work.stats.count() > 0 => {
            finding = finding.evidence(says!(
                "They ran {function} {count} times, {time} in all.",
                function = work.function.as_str(),
                count = work.stats.count(),
                time = Ns(work.stats.total()),
            ));
        }
        Some(work) => {
            finding = finding.evidence(says!(
                "{stacks} of their stacks are in {function}.",
                stacks = work.stacks,
                function = work.function.as_str(),
            ));
        }
        None => {
            finding = finding.evidence(
                "Which function they run is not recorded; workqueue:workqueue_execute_start, or a stack, shows it.",
            );
        }
    }
    if let Some(governor) = sampling {
        finding = finding.evidence(says!(
            "The host's cpufreq governor is {governor}.",
            governor = governor,
        ));
    } else if let Some(governor) = governors.first() {
        finding = finding.evidence(says!(
            "The facts say that the governor is {governor}: they are not of the time of the recording.",
            governor = *governor,
        ));
    } else {
        finding = finding.evidence(
            "The host's cpufreq governor is unknown; trapline facts on the host shows it.",
        );
    }
    // Rates are not known of a table that does not say how long it is of.
    if case.printed() {
        finding.at_least = Severity::Medium;
    }
    finding.found()
}
