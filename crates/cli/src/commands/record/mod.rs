//! `trapline record`: a recording of this host.

pub(crate) mod args;
mod budget;
pub(super) mod check;
mod functions;
pub(super) mod pairs;
pub(super) mod plan;
pub(super) mod watch;

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, bail};
use facts::Facts;
use host::KernelLogTail;
use record::cost::EventCosts;
use record::file::Features;
use record::{
    ClockSource, EventClock, Missing, OpenedEvents, Probes, Question, RecordPlan, Tracefs,
};
use recording::{
    FlightRecorder, FlightRequest, GuestAgents, GuestsRequest, HostOutcome, HostRequest,
    KeptPrivileges, KeptTime, OverwritingRecorder, RecordingNews, record_host, start,
};
use report::quoted;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use source::{ReaderOptions, RecordingBytes};

use super::recording::{
    PrintedNews, asked_to_stop, command_is_there, give_away, measure, say_missing, say_rings,
    say_running, say_wrapped, this_program,
};
use crate::commands::export::parquet::read_mask;
use crate::commands::record::args::{RecordArgs, RecordPurpose};
use crate::options::StoringOptions;
use crate::output;
use budget::RecordingTrial;

/// Runs the command.
pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    if args.keep.is_some() {
        // Until something is kept there is nothing to write, and no reason to end either.
        signal_hook::flag::register(SIGUSR1, Arc::default())?;
    }
    if let Some(pattern) = &args.list_probes {
        return functions::list(pattern);
    }
    // Nothing is changed before it is known that there is something to record.
    let facts = host::collect(Path::new("/"));
    let asked = plan::asked(args);
    if args.check {
        return check::run(args, &plan::plan(args, &asked, &facts)?);
    }
    command_is_there(&args.command)?;
    prepare_store(&args.storing)?;
    let ready = ReadyRecording::within_budget(args, &facts, asked)?;
    let stop = asked_to_stop()?;
    say_rings(&ready.opened)?;
    let Some(keep) = args.keep else {
        let (outcome, missing) = ready.record(args, &facts, &stop, &mut PrintedNews)?;
        say_running(outcome.child, &args.command)?;
        say_missing(&missing)?;
        let mut wrong = outcome.missing_guests;
        // What is not all there is kept.
        let keeps = args.output.is_some() || !wrong.is_empty();
        match stored(args, &outcome.folder, keeps) {
            Ok(next) => output::print(&next)?,
            Err(error) => wrong.push(format!("{error:#}")),
        }
        if let Some(status) = outcome.status.filter(|status| !status.success()) {
            wrong.insert(
                0,
                format!("the command that was recorded ended with {status}"),
            );
        }
        return match wrong.is_empty() {
            true => Ok(()),
            false => bail!("{}", wrong.join("; ")),
        };
    };
    let ReadyRecording {
        plan,
        tracefs,
        opened,
        missing,
        before,
        later,
        ..
    } = ready;
    check::folder(args, &plan)?;
    // Opened while that is allowed, as all else.
    let count_kept = count_kept();
    let clock = EventClock::open(ClockSource::Local).ok();
    give_away(later)?;
    let request = FlightRequest {
        keep,
        memory: args.memory,
        disk: args.disk,
        times: args.times,
        seconds: args.seconds,
        output: args.output.as_deref(),
        // Who has said how large rings are has to say more, whatever --memory is.
        more: match args.ring {
            Some(_) => "--ring",
            None => "--memory",
        },
        facts: &facts,
        count_kept: &count_kept,
        stop,
        asked: Arc::default(),
    };
    signal_hook::flag::register(SIGUSR1, Arc::clone(&request.asked))?;
    let child = match args.until.as_slice() {
        [] => overwriting(args, request, opened, before, clock)?,
        _ => {
            let formats = record::tracing_data::of(&tracefs, opened.tracepoints(), &[])?;
            let head = watch::head(&opened, &before, formats)?;
            watching(args, request, opened, before, &head, clock)?
        }
    };
    say_running(child, &args.command)?;
    say_missing(&missing)
}

/// Events that are open, and what the recording says of them.
pub(in crate::commands) struct ReadyRecording {
    pub(in crate::commands) plan: RecordPlan,
    pub(in crate::commands) tracefs: Tracefs,
    pub(in crate::commands) opened: OpenedEvents,
    /// What was asked for and this machine does not have.
    pub(in crate::commands) missing: Vec<Missing>,
    pub(in crate::commands) cost: Option<EventCosts>,
    pub(in crate::commands) before: (Features, Vec<u8>),
    pub(in crate::commands) later: KeptPrivileges,
    /// They go after the events that use them.
    pub(in crate::commands) probes: Probes,
}

impl ReadyRecording {
    /// Opens what is to be recorded.
    fn open(args: &RecordArgs, asked: &[Question], facts: &Facts) -> Result<ReadyRecording> {
        let mut plan = plan::plan(args, asked, facts)?;
        let tracefs = Tracefs::find().inspect_err(|_| check::say(args, &plan))?;
        let mut named = plan::probes(args, asked)?;
        let of_pairs = pairs::probes(&args.pair)?;
        named.extend_from_slice(&of_pairs);
        let (probes, mut events, mut missing) = Probes::make(&tracefs, &named);
        let ends = events.split_off(events.len().saturating_sub(of_pairs.len()));
        plan.events.extend(events);
        pairs::add(&mut plan, &args.pair, &ends, &missing)?;
        let opened = OpenedEvents::open(&plan, &tracefs).inspect_err(|error| {
            // What is missing from this machine is no matter of a pair's names.
            if !matches!(error, record::RecordError::Pair { .. }) {
                check::say(args, &plan);
            }
        });
        let mut opened = opened.map_err(functions::explained)?;
        if opened.tracepoints().is_empty() && plan.samples_hz.is_none() {
            bail!(
                "this kernel has none of the events that were asked for: is KVM loaded ('modprobe kvm')?"
            );
        }
        missing.extend_from_slice(opened.missing());
        plan::named_are_there(args, &missing)?;
        let cost = measure(&tracefs, &opened)?;
        let windows = match &cost {
            Some(cost) => opened.fit_pairs(|event| cost.of(event)),
            None => false,
        };
        let before = recording::before(&tracefs, &opened, cost, &this_program())?;
        let later = KeptPrivileges {
            probes: !probes.is_empty(),
            programs: opened.has_programs(),
            windows,
            folders: args.keep.is_some() || args.storing.store.is_some(),
            mappings: args.keep.is_some() && opened.has_chains(),
        };
        Ok(ReadyRecording {
            plan,
            tracefs,
            opened,
            missing,
            cost,
            before,
            later,
            probes,
        })
    }

    /// Opens what is to be recorded, and less of it where recording would take more than the budget: a moment of it
    /// shows that.
    fn within_budget(
        args: &RecordArgs,
        facts: &Facts,
        mut asked: Vec<Question>,
    ) -> Result<ReadyRecording> {
        let mut ready = ReadyRecording::open(args, &asked, facts)?;
        let Some(budget) = args.budget else {
            return Ok(ready);
        };
        loop {
            let Some(cost) = ready.cost else {
                bail!("--budget: what an event costs cannot be measured here");
            };
            // It is opened again: what the kernel counts begins with the recording.
            let trial = RecordingTrial::run(ready.opened, cost)?;
            if trial.share() > budget {
                let left_out = budget::leave_out(&mut asked);
                let Some(left_out) = left_out else {
                    bail!("{}", trial.refusal(budget));
                };
                say_wrapped("left out: ", &trial.left_out(left_out, budget))?;
            }
            let within = trial.share() <= budget;
            // Probes of one name cannot be made twice.
            drop(ready.probes);
            ready = ReadyRecording::open(args, &asked, facts)?;
            if within {
                return Ok(ready);
            }
        }
    }

    /// The same of a command line that asks for a whole recording, for who reads it afterwards: folders can still be
    /// written to.
    pub(in crate::commands) fn to_be_read(
        args: &RecordArgs,
        facts: &Facts,
    ) -> Result<ReadyRecording> {
        let mut ready = ReadyRecording::as_asked(args, facts)?;
        ready.later.folders = true;
        Ok(ready)
    }

    /// The same of a command line that keeps the last seconds.
    pub(in crate::commands) fn as_asked(
        args: &RecordArgs,
        facts: &Facts,
    ) -> Result<ReadyRecording> {
        ReadyRecording::within_budget(args, facts, plan::asked(args))
    }

    /// Records from now on until the command ends, time is over or somebody says so. Returns what it ended with, and
    /// what is not recorded.
    pub(in crate::commands) fn record(
        self,
        args: &RecordArgs,
        facts: &Facts,
        stop: &AtomicBool,
        news: &mut dyn RecordingNews,
    ) -> Result<(HostOutcome, Vec<Missing>)> {
        let guests = GuestAgents::start(&guests(args), news)?;
        let request = HostRequest {
            output: args.output.as_deref(),
            seconds: args.seconds,
            facts,
            count_again: &count_again(),
            features: self.before.0,
            side: self.before.1,
            cost: self.cost,
            privileges: self.later,
            stop,
        };
        let start = || start(&args.command);
        let outcome = record_host(request, self.opened, guests, start, news)?;
        Ok((outcome, self.missing))
    }
}

/// Returns what a command line would have recorded.
pub(in crate::commands) fn planned(args: &RecordArgs, facts: &Facts) -> Result<RecordPlan> {
    plan::plan(args, &plan::asked(args), facts)
}

/// Says what to type next.
fn next(args: &RecordArgs, folder: &Path) -> String {
    // Of pairs alone there is nothing that a report is about.
    let only_pairs = !args.pair.is_empty() && args.questions == [RecordPurpose::Named];
    let command = if only_pairs { "paths" } else { "report" };
    format!("next: trapline {command} {}\n", quoted(folder.as_os_str()))
}

/// Has another process write the recording's sums into a store, where that was asked for: it reads what guests may have
/// had a hand in, within its sandbox. Removes the recording then, unless it is to be kept. Returns what to type next.
fn stored(args: &RecordArgs, folder: &Path, keeps: bool) -> Result<String> {
    let (Some(store), Some(words)) = (&args.storing.store, args.storing.words(folder)) else {
        return Ok(next(args, folder));
    };
    let status = Command::new("/proc/self/exe")
        .args(words)
        .stdin(Stdio::null())
        .status();
    if !status.context("starting 'trapline export'")?.success() {
        bail!(
            "the recording is not in the store, and stays in {}",
            folder.display()
        );
    }
    let fleet = format!("trapline fleet {}\n", quoted(store.as_os_str()));
    if keeps {
        return Ok(format!("{}      {fleet}", next(args, folder)));
    }
    recording::remove_recording(folder)
        .with_context(|| format!("{}: cannot be removed", folder.display()))?;
    Ok(format!(
        "removed {}: -o DIR keeps it\nnext: {fleet}",
        folder.display()
    ))
}

/// Makes the store, and reads the key that masks names in it, before anything is recorded for it. So it is there before
/// the recording's folder is made, and never within it.
pub(in crate::commands) fn prepare_store(storing: &StoringOptions) -> Result<()> {
    if let Some(store) = &storing.store {
        fs::create_dir_all(store).with_context(|| store.display().to_string())?;
    }
    let key = storing.mask.as_deref();
    key.map(read_mask).transpose().map(drop)
}

/// Returns what reads counters again, and what was written to the kernel's log from now on: it is opened while that is
/// allowed, as all else.
fn count_again() -> impl Fn(&mut Facts) {
    let log = KernelLogTail::open();
    move |facts| host::count_again(Path::new("/"), facts, &log)
}

/// Returns what reads the same of the last seconds that are kept, whenever they are written.
pub(in crate::commands) fn count_kept() -> impl Fn(&mut Facts, &KeptTime) {
    let log = KernelLogTail::open();
    move |facts, kept| {
        let during_ns = kept.during_ns.as_ref();
        host::count_kept(Path::new("/"), facts, &log, during_ns, kept.from_begin);
    }
}

/// Keeps the last seconds until a signal comes or the command ends. Returns the command.
fn overwriting(
    args: &RecordArgs,
    request: FlightRequest<'_>,
    opened: OpenedEvents,
    before: (Features, Vec<u8>),
    clock: Option<EventClock>,
) -> Result<Option<Child>> {
    let (woken, wakes) = UnixStream::pair()?;
    // Registered behind the flags, so that these are set before anybody wakes.
    for signal in [SIGUSR1, SIGCHLD, SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, wakes.try_clone()?)?;
    }
    let mut recorder = OverwritingRecorder::begin(request, opened, before, (woken, clock))?;
    let mut child = start(&args.command)?;
    recorder.run(&mut child, &mut PrintedNews)?;
    Ok(child)
}

/// Keeps the last seconds until a path takes too long, and whatever else ends them. Returns the command.
fn watching(
    args: &RecordArgs,
    request: FlightRequest<'_>,
    opened: OpenedEvents,
    before: (Features, Vec<u8>),
    head: &RecordingBytes,
    clock: Option<EventClock>,
) -> Result<Option<Child>> {
    let head = head.reader(ReaderOptions::default())?;
    let watches = watch::all(&args.until, request.facts, &head)?;
    let mut recorder = FlightRecorder::begin(request, opened, before, watches, clock)?;
    let mut child = start(&args.command)?;
    recorder.run(&mut child, &mut PrintedNews)?;
    Ok(child)
}

/// Returns what agents in guests are asked for.
fn guests(args: &RecordArgs) -> GuestsRequest<'_> {
    GuestsRequest {
        agents: &args.agent,
        token: args.agent_token.as_deref(),
        questions: plan::questions_to_guests(&args.questions, &args.agent_for),
        seconds: args.seconds,
        size: args.agent_size,
    }
}
