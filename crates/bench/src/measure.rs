//! One benchmark from its beginning to its end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use cpuset::CpuSet;
use facts::Host;
use results::{Bench, BenchPlan, BenchResults, BenchRow, Noise, RESULT_VERSION, ResultsHead};
use rustix::thread::sched_getaffinity;

use crate::ipi::MAX_PAIRED;
use crate::place::BenchCpus;
use crate::run::{BenchRun, plain};
use crate::samples::IterationBounds;
use crate::{BenchError, clock, disk, exits, ipi, machine, net, noise, now, timer, wake};

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasuredThing {
    /// IPIs.
    Ipi {
        /// Every pair of CPUs, too.
        pairs: bool,
        /// How long a target sleeps before, where it is to be asleep.
        idle_ns: u64,
    },
    /// Wake-ups.
    Wake {
        /// How long a target sleeps before, where somebody may still poll.
        short_ns: u64,
        /// How long, where nobody does any more.
        idle_ns: u64,
    },
    /// Clocks.
    Clock {
        /// With every clock source, which is set back at the end.
        each_source: bool,
    },
    /// Timers.
    Timer,
    /// Exits.
    Exits,
    /// A network.
    Net {
        /// The peer; `None` is one of this machine's own.
        connect: Option<SocketAddr>,
        /// Bytes of a message ([`crate::SIZES`]).
        size: usize,
    },
    /// A disk.
    Disk {
        /// A file or device, which is read, or a folder, in which a file is made.
        path: PathBuf,
        /// Writes too, which takes a folder.
        write: bool,
        /// Bytes of the file that is made.
        size: u64,
    },
}

impl MeasuredThing {
    /// Returns which benchmark it is.
    pub fn bench(&self) -> Bench {
        match self {
            MeasuredThing::Ipi { .. } => Bench::Ipi,
            MeasuredThing::Wake { .. } => Bench::Wake,
            MeasuredThing::Clock { .. } => Bench::Clock,
            MeasuredThing::Timer => Bench::Timer,
            MeasuredThing::Exits => Bench::Exits,
            MeasuredThing::Net { .. } => Bench::Net,
            MeasuredThing::Disk { .. } => Bench::Disk,
        }
    }

    /// Returns what was chosen, by the names of options.
    fn settings(&self) -> BTreeMap<String, String> {
        let all: Vec<(&str, String)> = match self {
            MeasuredThing::Ipi { pairs, idle_ns } => {
                vec![("pairs", pairs.to_string()), ("idle", plain(*idle_ns))]
            }
            MeasuredThing::Wake { short_ns, idle_ns } => {
                vec![("short", plain(*short_ns)), ("idle", plain(*idle_ns))]
            }
            MeasuredThing::Clock { each_source } => vec![("each-source", each_source.to_string())],
            MeasuredThing::Timer | MeasuredThing::Exits => Vec::new(),
            MeasuredThing::Net { connect, size } => vec![
                (
                    "peer",
                    connect.map_or("loopback".to_owned(), |address| address.to_string()),
                ),
                ("size", size.to_string()),
            ],
            MeasuredThing::Disk { path, write, size } => vec![
                ("path", path.display().to_string()),
                ("write", write.to_string()),
                ("size", size.to_string()),
            ],
        };
        let all = all.into_iter();
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// What a benchmark is given.
pub struct Setup<'a> {
    /// The machine, as `host` read it.
    pub host: &'a Host,
    /// The CPUs that may be used; `None` are all that this process may run on.
    pub cpus: Option<CpuSet>,
    /// Iterations of each row.
    pub iterations: u64,
    /// Iterations before them that do not count.
    pub warmup: u64,
    /// A row ends after this time.
    pub row_time_ns: u64,
    /// What the user calls this run.
    pub label: Option<String>,
    /// Raised when it is to end with what it has.
    pub stop: &'a AtomicBool,
    /// Hears what is measured next.
    pub doing: &'a dyn Fn(&str),
}

impl std::fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("cpus", &self.cpus)
            .field("iterations", &self.iterations)
            .field("warmup", &self.warmup)
            .field("row_time_ns", &self.row_time_ns)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// Measures. Returns what was found, and what is to be said of it.
///
/// # Errors
///
/// Nothing can be measured at all: no CPU may be used, a file cannot be opened, an address cannot be bound.
pub fn run(
    what: &MeasuredThing,
    setup: &Setup<'_>,
) -> Result<(BenchResults, Vec<String>), BenchError> {
    let cpus = usable(setup)?;
    if matches!(what, MeasuredThing::Ipi { pairs: true, .. }) && cpus.len() > MAX_PAIRED {
        return Err(BenchError::TooManyPairs { cpus: cpus.len() });
    }
    let places = BenchCpus::of(setup.host, &cpus).ok_or_else(|| BenchError::NoCpu {
        wanted: "of this machine".to_owned(),
        allowed: "none of them".to_owned(),
    })?;
    let bounds = IterationBounds {
        iterations: setup.iterations,
        warmup: setup.warmup,
        row_time_ns: setup.row_time_ns,
        stop: setup.stop,
    };
    let run = BenchRun {
        places,
        bounds,
        doing: setup.doing,
    };
    let machine = machine::machine(setup.host);
    (setup.doing)("how quiet it is");
    let watched = noise::watch(run.places.from, bounds);
    let stolen = noise::steal_ns();
    let started = now::clocks();
    let (rows, warnings) = rows(what, &run, machine.virtualized)?;
    let ended = now::clocks();
    let steal_ns = stolen.and_then(|before| Some(noise::steal_ns()?.saturating_sub(before)));
    let waited = rows.iter().filter_map(|row| row.waited_ns);
    let noise = Noise {
        steal_ns,
        waited_ns: waited.fold(0, u64::saturating_add),
        ..watched
    };
    let head = ResultsHead {
        result_version: RESULT_VERSION,
        bench: what.bench(),
        label: setup.label.clone(),
        interrupted: setup.stop.load(Ordering::Relaxed),
        machine,
        plan: BenchPlan {
            iterations: setup.iterations,
            warmup: setup.warmup,
            row_time_ns: setup.row_time_ns,
            cpus: cpus.to_string(),
            settings: what.settings(),
        },
        started,
        ended,
        noise,
    };
    Ok((BenchResults { head, rows }, warnings))
}

fn rows(
    what: &MeasuredThing,
    run: &BenchRun<'_>,
    virtualized: Option<bool>,
) -> Result<(Vec<BenchRow>, Vec<String>), BenchError> {
    let rows = match what {
        MeasuredThing::Ipi { pairs, idle_ns } => ipi::rows(run, *pairs, *idle_ns),
        MeasuredThing::Wake { short_ns, idle_ns } => wake::rows(run, *short_ns, *idle_ns),
        MeasuredThing::Clock { each_source } => return Ok(clock::rows(run, *each_source)),
        MeasuredThing::Timer => timer::rows(run),
        MeasuredThing::Exits => exits::rows(run, virtualized),
        MeasuredThing::Net { connect, size } => net::rows(run, *connect, *size)?,
        MeasuredThing::Disk { path, write, size } => return disk::rows(run, path, *write, *size),
    };
    Ok((rows, Vec::new()))
}

/// Returns the CPUs that are asked for, as far as this process may run there.
fn usable(setup: &Setup<'_>) -> Result<CpuSet, BenchError> {
    let mut allowed = CpuSet::new();
    if let Ok(set) = sched_getaffinity(None) {
        for cpu in 0..u32::try_from(rustix::thread::CpuSet::MAX_CPU).unwrap_or(0) {
            if set.is_set(cpu as usize) {
                allowed.insert(cpu);
            }
        }
    }
    let Some(wanted) = &setup.cpus else {
        return Ok(allowed);
    };
    let mut both = CpuSet::new();
    for cpu in wanted.iter().filter(|cpu| allowed.contains(*cpu)) {
        both.insert(cpu);
    }
    if both.is_empty() {
        return Err(BenchError::NoCpu {
            wanted: wanted.to_string(),
            allowed: allowed.to_string(),
        });
    }
    Ok(both)
}
