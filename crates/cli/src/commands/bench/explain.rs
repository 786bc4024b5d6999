//! `trapline bench explain`: what the slowest iterations of a result were, by a recording that was made meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use analysis::{StretchWatch, WalkState, WatchedStretch};
use anyhow::{Result, bail};
use model::GuestAccess;
use paths::Paths;
use render::ClockUnit;
use render::bench_explain::{
    self as render_explain, BenchExplanation, Iteration, OnVcpu, OverlappingPath, Task,
};
use results::{BenchResults, BenchRow, Slow};
use session::{Guest, GuestPairing, OpenRecording};

use crate::answer::Answer;
use crate::commands::bench::args::ExplainArgs;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

/// Tasks of an iteration that are said.
const TASKS: usize = 4;

/// Runs the command.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    if args.common.filter.any() {
        return Err(Usage::error(
            "bench explain takes no filter: it looks at the times of the result's slowest iterations".to_owned(),
        ));
    }
    let result = crate::commands::compare::results::read(&args.result)?;
    let beside = AccompanyingFiles {
        with_guests: true,
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording_with_symbols()?;
    // A guest of the recording's folder need not be the one that measured.
    let with_guests = inputs.len() > 1;
    let paired = match with_guests {
        true => host.paired(&recording)?,
        false => GuestPairing::default(),
    };
    let guests = &paired.guests;
    let clock = Clock::of(&result, &recording, guests)?;
    let slow: Vec<(usize, Slow)> = result.slowest(usize::MAX);
    let stretches = slow.iter().map(|(_, slow)| clock.stretch(slow));

    let mut followed = paths::all_builtin();
    if !guests.is_empty() {
        followed.extend(paths::with_guests());
    }
    let mut follower = Paths::new(followed);
    recording.locate_with(&mut follower, guests);
    follower.list();
    let mut question = recording.question(&paired);
    let follower = question.add(follower);
    let during = question.add(StretchWatch::new(stretches));
    let answered = question.walk();
    let (follower, during) = (answered.take(follower), answered.take(during));
    let quality = &answered.quality;
    let names = session.devices().names(follower.isa());
    let teller = Teller {
        follower: &follower,
        walked: &answered.walked(),
        names: &|access: &GuestAccess| analysis::name_access(access, &names),
        vcpus: guests.first().map(Guest::vcpus),
    };
    let iterations = slow.iter().filter_map(|(at, slow)| {
        let (from, to) = clock.stretch(slow);
        let one = during.stretch(from, to)?;
        let seen = !one.vcpus.is_empty() || !one.tasks.is_empty() || !one.instances.is_empty();
        let row = result.rows.get(*at).filter(|_| seen)?;
        Some(teller.iteration(row, one))
    });
    let found = BenchExplanation {
        bench: result.head.bench.name().to_owned(),
        slow: slow.len(),
        bound_ns: clock.bound_ns,
        iterations: iterations.collect(),
    };
    let foreign = guests.is_empty() && !teller.has_bench(&result, &during);
    require(&found, foreign, recording.name(), &args.result)?;
    let recordings = host.names();
    let mut names = vec![args.result.display().to_string()];
    names.extend(recordings.iter().cloned());
    let answer = Answer {
        format: args.common.format,
        command: "bench",
        inputs: &names,
        quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let mut text = render_explain::text(&found, output::width());
            text.push('\n');
            text.push_str(&output::quality(&recordings.join(", "), quality));
            text
        },
        || &found,
        |_| render_explain::csv(&found),
    )
}

/// Says why nothing was found, where that is so; `foreign` where no thread of the benchmark is in the recording.
fn require(found: &BenchExplanation, foreign: bool, recording: &str, result: &Path) -> Result<()> {
    if foreign {
        bail!(
            "{recording}: no thread of the benchmark had the benchmark's CPUs at the times of {}, so it is of another \
             machine or time, or has no sched_switch; where a guest measured, give its host's recording and then the \
             guest's own",
            result.display()
        );
    }
    if found.iterations.is_empty() {
        bail!(
            "{recording}: nothing is in it of the time of any slow iteration of {}: it has to be recorded while the \
             benchmark runs",
            result.display()
        );
    }
    Ok(())
}

/// How the times of a result read on a recording's clock.
struct Clock<'g> {
    /// What the clock of the measuring machine's recordings is ahead of `CLOCK_MONOTONIC`, in nanoseconds.
    ahead: i128,
    /// The guest that measured.
    guest: Option<&'g Guest<'g>>,
    bound_ns: u64,
}

impl<'g> Clock<'g> {
    fn of(
        result: &BenchResults,
        recording: &OpenRecording<'_>,
        guests: &'g [Guest<'g>],
    ) -> Result<Clock<'g>> {
        let head = &result.head;
        let Some(ahead) = head.started.recording_ns else {
            bail!(
                "the result does not have the clock of recordings, which takes perf events when the benchmark runs: \
                 run it as root, or with kernel.perf_event_paranoid=1 or less"
            );
        };
        let guest = match guests {
            [] => None,
            [guest] => Some(guest),
            _ => bail!("give one guest's recording: that of the guest that measured"),
        };
        let (name, header) = match guest {
            Some(guest) => (guest.name(), guest.reader().header()),
            None => (recording.name(), recording.header()),
        };
        // Another machine's times mean nothing there. Who measured in a guest may well have the host's recording alone.
        let differs = |recorded: Option<&str>, here: Option<&str>| {
            recorded.is_some() && here.is_some() && recorded != here
        };
        let cpus = u32::try_from(head.machine.cpus).ok();
        let other = differs(header.kernel.as_deref(), head.machine.kernel.as_deref())
            || matches!((header.cpus, cpus), (Some(recorded), Some(here)) if recorded < here);
        if other {
            let (kernel, cpus) = (head.machine.kernel.as_deref(), head.machine.cpus);
            bail!(
                "{name}: is of another machine than the result, which was measured on Linux {} with {}: where a guest \
                 measured, give its host's recording and then the guest's own",
                kernel.unwrap_or("?"),
                words::plural(cpus, "CPU")
            );
        }
        // perf's clock is trace-cmd's 'local' too.
        let clock = header.clock.as_deref().unwrap_or("local");
        if !matches!(clock, "local" | "perf" | "sched_clock") {
            bail!(
                "{name}: its clock is {clock}; the result's times are known on the kernel's own clock, which perf and \
                 trace-cmd use where nothing else is asked for"
            );
        }
        Ok(Clock {
            ahead: i128::from(ahead) - i128::from(head.started.monotonic_ns),
            guest,
            bound_ns: guest.map_or(0, |guest| guest.fit().bound_ns),
        })
    }

    /// Returns when an iteration began and ended, on the recording's clock.
    fn stretch(&self, slow: &Slow) -> (u64, u64) {
        let own = |time: u64| {
            let time = i128::from(time) + self.ahead;
            u64::try_from(time.max(0)).unwrap_or(u64::MAX)
        };
        let (from, to) = (
            own(slow.begin_ns),
            own(slow.begin_ns.saturating_add(slow.ns)),
        );
        match self.guest {
            Some(guest) => (guest.fit().host(from), guest.fit().host(to)),
            None => (from, to),
        }
    }
}

/// Puts what was found into words.
struct Teller<'w> {
    follower: &'w Paths,
    walked: &'w WalkState<'w>,
    names: paths::AccessNamer<'w>,
    /// CPUs of the guest that measured, each with its thread.
    vcpus: Option<&'w [(u32, i32)]>,
}

impl Teller<'_> {
    fn iteration(&self, row: &BenchRow, one: &WatchedStretch) -> Iteration {
        let to = row.to.as_deref().and_then(|to| to.parse::<u32>().ok());
        let from = row.from.and_then(|from| u32::try_from(from).ok());
        let cpus = [(from, "from"), (to, "to")].map(|(cpu, role)| cpu.map(|cpu| (cpu, role)));
        let cpus: Vec<(u32, &'static str)> = cpus.into_iter().flatten().collect();
        let inside = one
            .instances
            .iter()
            .map(|instance| self.inside(instance, one));
        Iteration {
            what: render::bench::title(row),
            begin_ns: one.from,
            total_ns: one.to.saturating_sub(one.from),
            vcpus: self.on_vcpus(&cpus, one),
            paths: inside.collect(),
            tasks: self.tasks(&cpus, one),
        }
    }

    fn on_vcpus(&self, cpus: &[(u32, &'static str)], one: &WatchedStretch) -> Vec<OnVcpu> {
        let machine = self.walked.machine;
        let places: BTreeMap<i32, u32> = machine.vcpus().map(|vcpu| vcpu.tid).zip(0..).collect();
        let seen = machine.seen();
        let known = cpus.iter().filter_map(|(cpu, role)| {
            let (_, tid) = self.vcpus?.iter().find(|(number, _)| number == cpu)?;
            let times = one.vcpus.get(places.get(tid)?)?;
            let total = one.to.saturating_sub(one.from);
            Some(OnVcpu::new(*cpu, role, &seen.settle(times, 0), total))
        });
        known.collect()
    }

    fn inside(&self, instance: &paths::CompletedInstance, one: &WatchedStretch) -> OverlappingPath {
        let recorded = self
            .follower
            .describe(instance, self.walked.machine, self.names);
        let stages = recorded.steps.windows(2).map(|pair| {
            let ns = one.shared(pair[0].time, pair[1].time);
            (ns, format!("{} → {}", pair[0].name, pair[1].name))
        });
        let (stage_ns, stage) = stages.max_by_key(|(ns, _)| *ns).unzip();
        let length = one.to.saturating_sub(one.from).max(1);
        let begin_ns = recorded.steps.first().map_or(one.from, |step| step.time);
        let end_ns = recorded.steps.last().map_or(one.from, |step| step.time);
        let here_ns = one.shared(begin_ns, end_ns);
        OverlappingPath {
            total_ns: recorded.total_ns(),
            here_ns,
            share: here_ns as f64 / length as f64,
            begin_ns,
            path: recorded.path.to_string(),
            number: recorded.number,
            stage,
            stage_ns: stage_ns.unwrap_or(0),
            vcpu: recorded.vcpu.as_deref().map(str::to_owned),
        }
    }

    /// Returns whether a thread of the benchmark had a CPU in any of the iterations.
    fn has_bench(&self, result: &BenchResults, during: &StretchWatch) -> bool {
        let cpus = result.rows.iter().filter_map(|row| row.from);
        let cpus: BTreeSet<i32> = cpus.filter_map(|cpu| i32::try_from(cpu).ok()).collect();
        let ran = during.stretches().iter().flat_map(|one| one.tasks.keys());
        let mut ran = ran.filter(|(cpu, _)| cpus.contains(cpu));
        ran.any(|(_, tid)| self.comm(*tid).is_some_and(is_bench))
    }

    fn comm(&self, tid: i32) -> Option<&str> {
        let thread = self.walked.machine.threads().get(tid);
        thread.and_then(|thread| thread.comm.as_deref())
    }

    /// Returns who else had the CPUs of the row: the benchmark's own threads and the idle task are not said.
    fn tasks(&self, cpus: &[(u32, &'static str)], one: &WatchedStretch) -> Vec<Task> {
        if self.vcpus.is_some() {
            return Vec::new();
        }
        let on = |cpu: i32| cpus.iter().any(|(of, _)| i32::try_from(*of) == Ok(cpu));
        let ran = one
            .tasks
            .iter()
            .filter(|((cpu, tid), _)| on(*cpu) && *tid != 0);
        let tasks = ran.map(|((cpu, tid), ns)| Task {
            cpu: *cpu,
            tid: *tid,
            comm: self.comm(*tid).map(str::to_owned),
            ns: *ns,
        });
        let own = |task: &Task| task.comm.as_deref().is_some_and(is_bench);
        let mut tasks: Vec<Task> = tasks.filter(|task| !own(task)).collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.ns), task.cpu, task.tid));
        tasks.truncate(TASKS);
        tasks
    }
}

/// Whether a thread is one of a benchmark's, which have names for that.
fn is_bench(comm: &str) -> bool {
    comm.starts_with("bench-")
}
