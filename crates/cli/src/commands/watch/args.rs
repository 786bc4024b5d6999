//! `trapline watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use counts::{CONDITIONS, ConditionLimit, LimitUnit, condition};

use crate::commands::record::args::{PathBound, path_bound};
use crate::options::StoringOptions;
use crate::options::values::{seconds, share, size, some_size};

/// `trapline watch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Write incidents to this folder, which is made if it is not there: a folder for each incident, and
    /// incidents.jsonl, a line for each. Nobody else may write to it.
    #[arg(long, value_name = "DIR", default_value = "trapline-watch")]
    pub output_dir: PathBuf,

    /// Look at what was counted so often: 1s, 2s, 10s.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    pub interval: Duration,

    /// Set the limit of a condition, as steal=10% of a CPU's time or short-halts=5000 a second; CONDITION=off does
    /// not look at it. --dry-run lists the conditions with their limits. May be repeated.
    #[arg(long, value_name = "CONDITION=LIMIT", value_parser = limit)]
    pub limit: Vec<ConditionLimit>,

    /// Record when an instance of a path took longer, too, as 'irqfd > 10ms'. PATH is one of 'trapline paths --help',
    /// or a file. May be repeated. All events are then looked at by this process as they come, which costs more.
    #[arg(long, value_name = "PATH > TIME", value_parser = path_bound)]
    pub when: Vec<PathBound>,

    /// Keep the last SECONDS before an incident.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub keep: Duration,

    /// Record for so many SECONDS after an incident began.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub after: Duration,

    /// Take this much memory for what is kept at most. A quarter of --disk is never gone beyond.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = some_size)]
    pub memory: u64,

    /// Let all incidents together take so much of the disk at most: the oldest are removed for new ones.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = some_room)]
    pub disk: u64,

    /// Record so many incidents in an hour at most; others are a line each.
    #[arg(
        long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub max_incidents: u32,

    /// Take an incident for over after so many intervals without a symptom.
    #[arg(
        long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub quiet_intervals: u32,

    /// Take what comes back so many SECONDS after an incident was over for the same incident, which is not recorded
    /// again.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub cool_down: Duration,

    /// End after so many seconds. Without it, Ctrl-C or SIGTERM ends it.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub time: Option<Duration>,

    /// Let recording take so much of a CPU's time at most: where it would take more, less is recorded.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub budget: f64,

    /// Count in this program, out of events that the kernel writes to rings, as 'trapline top --events' does.
    #[arg(long)]
    pub events: bool,

    #[command(flatten)]
    pub storing: StoringOptions,

    /// Watch nothing: say what is missing here, what would be opened, what that costs, and which conditions there
    /// are.
    #[arg(long)]
    pub dry_run: bool,
}

impl WatchArgs {
    /// Returns the conditions that are looked at, with their limits.
    pub(super) fn limits(&self) -> Vec<ConditionLimit> {
        let mut limits = ConditionLimit::defaults();
        for one in &mut limits {
            let mut chosen = self.limit.iter().rev();
            if let Some(chosen) = chosen.find(|other| other.condition.id == one.condition.id) {
                one.limit = chosen.limit;
            }
        }
        limits.retain(|one| one.limit.is_finite());
        limits
    }

    /// Returns the memory that what is kept may take, in bytes: one recording is never more than a quarter of all.
    pub(super) fn recording_bytes(&self) -> u64 {
        self.memory.min(self.disk / 4)
    }
}

/// Reads `CONDITION=LIMIT`.
fn limit(text: &str) -> Result<ConditionLimit, String> {
    let (id, limit) = text
        .split_once('=')
        .ok_or("expected a condition and its limit, such as steal=10%")?;
    let known = condition(id.trim());
    let condition = known.ok_or_else(|| {
        let ids = CONDITIONS.iter().map(|one| one.id);
        let near = words::did_you_mean(id, ids.clone());
        let ids: Vec<&str> = ids.collect();
        format!(
            "there is no condition {id}{near}; there are {}",
            words::list(&ids)
        )
    })?;
    let limit = limit.trim();
    let limit = match condition.unit {
        _ if limit == "off" => f64::INFINITY,
        LimitUnit::CpuShare => share(limit)?,
        LimitUnit::PerSecond => limit
            .parse()
            .ok()
            .filter(|rate: &f64| rate.is_finite())
            .ok_or("expected a number of times a second, such as 5000")?,
    };
    if limit <= 0.0 {
        return Err("expected a limit above 0, or off".to_owned());
    }
    Ok(ConditionLimit { condition, limit })
}

/// Reads an interval: of shorter ones the steps of the scheduler would be seen.
fn interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(500);
    match seconds(text)? {
        time if time >= SHORTEST => Ok(time),
        _ => Err("expected 500ms or longer".to_owned()),
    }
}

/// Reads a size in which two incidents have room: the newest, and the one that is written.
fn some_room(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 256 << 20;
    match size(text)? {
        bytes if bytes >= LEAST => Ok(bytes),
        _ => Err("expected 256M or more: two incidents need that".to_owned()),
    }
}

const EXAMPLES: &str = "It counts in the kernel as 'trapline top' does and judges each interval: how long vCPUs \
and the threads of their VMMs waited for a CPU, and whether halted vCPUs really sleep. \
Meanwhile a flight recorder keeps the last seconds, as 'trapline record --keep 7' does. \
When a condition is beyond its limit, these seconds are written to a folder of their own \
and reported as one HTML page (page.html, by a process of the lowest priority), and a line \
is printed and added to incidents.jsonl.

An incident lasts as long as its VM has symptoms, and is recorded once: what else its VM has meanwhile is noted \
in its folder (incident.json), and so is what others have that begins within its recording. A condition that \
comes and goes is one incident. --disk is never gone beyond: the oldest incidents go first, and only folders \
that this command made.

It needs root, or CAP_PERFMON and tracefs; CAP_BPF lets the kernel count. A unit for systemd is \
packaging/systemd/trapline-watch.service.

Examples:
  sudo trapline watch                      until Ctrl-C
  sudo trapline watch --limit steal=10% --when 'irqfd > 10ms'
                                           with a limit and a path of one's own
  sudo trapline watch --for 3600 --disk 4G --output-dir /var/tmp/night
                                           for an hour
  trapline watch --dry-run                 what it would open, and what that costs
  trapline report trapline-watch/*/        what the recordings say";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_the_unit_of_their_condition() {
        let steal = limit("steal=10%").expect("a limit");
        assert_eq!((steal.condition.id, steal.limit), ("steal", 0.1));
        assert_eq!(limit("short-halts = 5000").expect("a limit").limit, 5000.0);
        assert!(limit("steal=off").expect("no limit").limit.is_infinite());
        for bad in [
            "steal",
            "steal=",
            "steal=0",
            "steal=200%",
            "short-halts=-1",
            "short-halts=inf",
        ] {
            assert!(limit(bad).is_err(), "{bad}");
        }
        let error = limit("steel=1%").expect_err("no condition");
        assert!(
            error.contains("steal") && error.contains("back-end-waits"),
            "{error}"
        );
    }
}
