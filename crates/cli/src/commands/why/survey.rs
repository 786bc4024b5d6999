//! What a host's vCPUs do, as one interval of counting shows it.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use counts::{Choice, NamedCounts, RowTable};
use model::Times;

use crate::commands::top::watch::Watch;

/// How long is counted.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long nobody looks whether it is to end.
const NAP: Duration = Duration::from_millis(50);

/// What vCPUs, back ends and the scheduler did meanwhile.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct HostSurvey {
    /// How long it was, in seconds.
    pub seconds: f64,
    /// CPUs on line.
    pub cpus: u32,
    /// vCPUs that were seen or are known.
    pub vcpus: usize,
    /// Exits of all vCPUs together.
    pub exits: u64,
    /// Exits of the vCPU that exited most often.
    pub most_exits: u64,
    /// Accesses to ports, addresses and registers.
    pub accesses: u64,
    /// Exits that the VMM handled.
    pub user_exits: u64,
    /// Wake-ups of halted vCPUs.
    pub wakeups: u64,
    /// Context switches of the whole host; `None` where /proc/stat does not say.
    pub switches: Option<u64>,
    /// What the vCPUs did, all together, in nanoseconds.
    pub times: Times,
    /// CPU time of the VMs' other threads, in nanoseconds.
    pub back_end_ns: u64,
}

/// Counts for an interval. What is looked at is `choice`; `stop` ends it.
///
/// # Errors
///
/// Nothing can count here, or it was stopped.
pub(super) fn take(choice: &Choice, stop: &AtomicBool) -> Result<(HostSurvey, NamedCounts)> {
    let mut watch = Watch::start(None, false)?;
    // Attaching takes its time, in which one program counts already and another does not.
    watch.interval()?;
    let before = switches();
    let until = Instant::now() + INTERVAL;
    while Instant::now() < until {
        if stop.load(Ordering::Relaxed) {
            bail!("ended before anything was recorded");
        }
        thread::sleep(NAP.min(until.saturating_duration_since(Instant::now())));
    }
    let counted = watch.interval()?;
    let named = watch.named(&counted, choice);
    let since = |(before, after): (u64, u64)| after.saturating_sub(before);
    let mut survey = of(&named);
    survey.switches = before.zip(switches()).map(since);
    survey.cpus = u32::try_from(record::machine::online().len()).unwrap_or(u32::MAX);
    Ok((survey, named))
}

/// Adds up what was counted.
fn of(named: &NamedCounts) -> HostSurvey {
    let mut survey = HostSurvey {
        seconds: named.interval_ns as f64 / 1e9,
        vcpus: named.vcpus.len(),
        ..HostSurvey::default()
    };
    for one in &named.vcpus {
        survey.exits += one.vcpu.exits;
        survey.most_exits = survey.most_exits.max(one.vcpu.exits);
        survey.wakeups += one.vcpu.woken.count;
        survey.times.merge(&one.vcpu.times);
    }
    for row in &named.rows {
        match row.table {
            RowTable::Of(analysis::ExitTable::Vmexit) => survey.user_exits += row.user_count,
            _ => survey.accesses += row.durations.count,
        }
    }
    let threads = named.threads.iter();
    survey.back_end_ns = threads.map(|one| one.thread.ran_ns).sum();
    survey
}

/// Returns how many context switches there were since this host's start (`ctxt` of proc_stat(5)).
fn switches() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let mut lines = stat.lines();
    lines.find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok())
}
