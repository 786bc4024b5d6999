//! `trapline record`: a recording of this host.

mod agents;
pub(crate) mod args;
mod check;
mod flight;
mod folder;
mod overwriting;
mod plan;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use facts::Facts;
use record::cost::EventCosts;
use record::file::{Feature, Features};
use record::{HostRecorder, OpenedEvents, Probes, RecordSummary, Tracefs};
use signal_hook::consts::SIGUSR1;
use source::ReaderOptions;

use super::privileges::{self, Later};
use super::recording::{
    asked_to_stop, command_is_there, measure, say_missing, say_rings, say_running, start,
    this_program,
};
use crate::commands::record::args::RecordArgs;
use crate::output;
use agents::Agents;

/// How long a turn lasts where no ring fills: what is in the rings when the recorder is killed is lost.
const TURN: Duration = Duration::from_millis(250);

/// Runs the command.
pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    if args.keep.is_some() {
        // Until something is kept there is nothing to write, and no reason to end either.
        signal_hook::flag::register(SIGUSR1, Arc::default())?;
    }
    // Nothing is changed before it is known that there is something to record.
    let facts = host::collect(Path::new("/"));
    let mut plan = plan::plan(args, &facts)?;
    if args.check {
        return check::run(args, &plan);
    }
    command_is_there(&args.command)?;
    let tracefs = Tracefs::find().inspect_err(|_| check::say(args, &plan))?;
    // They go after the events that use them.
    let (probes, events, mut missing) = Probes::make(&tracefs, &plan::probes(args));
    plan.events.extend(events);
    let opened = OpenedEvents::open(&plan, &tracefs).inspect_err(|_| check::say(args, &plan))?;
    if opened.tracepoints().is_empty() && plan.samples_hz.is_none() {
        bail!(
            "this kernel has none of the events that were asked for: is KVM loaded ('modprobe kvm')?"
        );
    }
    missing.extend_from_slice(opened.missing());
    plan::named_are_there(args, &missing)?;
    let cost = measure(&tracefs, &opened)?;
    let before = recording::before(&tracefs, &opened, cost, &this_program())?;
    let stop = asked_to_stop()?;
    say_rings(&opened)?;
    let later = Later {
        probes: !probes.is_empty(),
        folders: args.keep.is_some(),
        mappings: args.keep.is_some() && opened.has_chains(),
    };
    if args.keep.is_some() {
        check::folder(args, &plan)?;
        privileges::give_away(later)?;
    }
    let mut missing_guests = Vec::new();
    let status = match args.keep {
        Some(keep) if args.until.is_none() => {
            let begun = overwriting::Recorder::begin(args, &facts, keep, opened, before, stop);
            let mut recorder = begun?;
            let mut child = start(&args.command)?;
            recorder.run(&mut child)?;
            say_running(child, &args.command)?;
            None
        }
        Some(keep) => {
            let formats = record::tracing_data::of(&tracefs, opened.tracepoints(), &[])?;
            let head = flight::head(&opened, &before, formats)?;
            let head = head.reader(ReaderOptions::default())?;
            let watch = flight::watch(args, &facts, &head)?;
            let begun = flight::Recorder::begin(args, &facts, keep, opened, before, watch, stop);
            let mut recorder = begun?;
            let mut child = start(&args.command)?;
            recorder.run(&mut child)?;
            say_running(child, &args.command)?;
            None
        }
        None => {
            let agents = Agents::start(args)?;
            let (status, guests) =
                to_file(args, &facts, opened, (before, cost), (&stop, later), agents)?;
            missing_guests = guests;
            status
        }
    };
    say_missing(&missing)?;
    match status {
        Some(status) if !status.success() => {
            bail!("the command that was recorded ended with {status}")
        }
        _ if !missing_guests.is_empty() => bail!("{}", missing_guests.join("; ")),
        _ => Ok(()),
    }
}

/// Records to a file. Returns how the command ended, if there was one, and which guests' recordings are missing.
fn to_file(
    args: &RecordArgs,
    facts: &Facts,
    opened: OpenedEvents,
    ((mut features, side), cost): ((Features, Vec<u8>), Option<EventCosts>),
    (stop, later): (&AtomicBool, Later),
    mut agents: Agents,
) -> Result<(Option<ExitStatus>, Vec<String>)> {
    // A recording that is not ended in order says whose guests these are, too.
    agents.said().into_iter().for_each(|one| features.set(one));
    let folder = folder::make(args.output.as_deref())?;
    let shown = folder.shown();
    let begun = begin(facts, opened, (features, &side), &folder, later);
    let (mut recorder, kept) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            folder.discard();
            return Err(error);
        }
    };
    let mut child = start(&args.command)?;
    if child.is_none() && args.seconds.is_none() {
        writeln!(io::stderr(), "recording to {shown}; Ctrl-C ends it")?;
    }
    let until = args.seconds.map(|time| Instant::now() + time);
    let ended = watch(&mut recorder, stop, &mut child, until);
    let summary = recorder.stop();
    agents.stop(&folder);
    // A recording that could not be written to its end is not ended in order, so that readers say that some is missing.
    let finished = match &summary {
        Ok(summary) => {
            let cost = cost.map(|cost| Feature::Trapline(cost.at_end(summary).said()));
            recorder.finish(cost.into_iter().chain(agents.said()).collect())
        }
        Err(_) => Ok(()),
    };
    if !record::has_name(&kept)? {
        bail!("{shown}/perf.data was removed while it was written: the recording is lost");
    }
    let whole = || format!("{shown}/perf.data has what was recorded until then");
    let summary = summary.with_context(whole)?;
    let status = ended.with_context(whole)?;
    finished.with_context(whole)?;
    output::print(&summary_text(&shown, &summary))?;
    let missing = agents.fetched(&folder)?;
    say_running(child, &args.command)?;
    Ok((status, missing))
}

/// Begins to record into a folder. Returns the recorder and its file.
fn begin(
    facts: &Facts,
    opened: OpenedEvents,
    (features, side): (Features, &[u8]),
    folder: &folder::Made,
    later: Later,
) -> Result<(HostRecorder, File)> {
    folder.facts(facts)?;
    let file = folder.file(folder::DATA)?;
    let kept = file.try_clone()?;
    privileges::give_away(later)?;
    let begun = HostRecorder::begin(opened, file, features, side);
    Ok((begun.with_context(|| folder.failed())?, kept))
}

/// Records until the command ends, time is over or somebody says so. Returns how the command ended, if it did.
fn watch(
    recorder: &mut HostRecorder,
    stop: &AtomicBool,
    child: &mut Option<Child>,
    until: Option<Instant>,
) -> Result<Option<ExitStatus>> {
    while !stop.load(Ordering::Relaxed) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        if let Some(child) = child
            && let Some(status) = child.try_wait()?
        {
            return Ok(Some(status));
        }
        recorder.turn(left.map_or(TURN, |left| left.min(TURN)))?;
    }
    Ok(None)
}

/// Says what was recorded.
fn summary_text(folder: &str, summary: &RecordSummary) -> String {
    let events = words::plural(summary.samples, "event");
    let kib = summary.bytes / 1024;
    let mut text = format!("wrote {folder}: {events}, {kib} KiB\n");
    match summary.lost() {
        Some(0) => text.push_str("No event was lost.\n"),
        Some(lost) => {
            text.push_str(&format!(
                "{} found no room in a ring and are lost: take larger rings with --ring, or ask for less with --for.\n",
                words::plural(lost, "event")
            ));
            for (cpu, lost) in &summary.lost_by_cpu {
                text.push_str(&format!("  CPU {cpu}: {lost}\n"));
            }
        }
        None => text.push_str("This kernel does not say how many events were lost.\n"),
    }
    if let Some(withheld @ 1..) = summary.withheld() {
        let all = summary.samples.saturating_add(summary.lost().unwrap_or(0));
        let share = withheld as f64 * 100.0 / all.saturating_add(withheld) as f64;
        text.push_str(&format!(
            "The kernel counted {} that it neither wrote nor counted as lost: {share:.1} % of all are missing.\n",
            words::plural(withheld, "more event")
        ));
    }
    text
}
