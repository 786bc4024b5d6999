//! `trapline record`: a recording of this host.

mod flight;
mod folder;
mod plan;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use facts::Facts;
use record::file::{Feature, Features};
use record::{Missing, Opened, Probes, Recorder, Summary, Tracefs};
use render::quality;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::RecordArgs;
use crate::output;

/// How long a turn lasts where no ring fills: what is in the rings when the recorder is killed is lost.
const TURN: Duration = Duration::from_millis(250);

/// Runs the command.
pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    // Nothing is changed before it is known that there is something to record.
    let facts = host::collect(Path::new("/"));
    let mut plan = plan::plan(args, &facts)?;
    let tracefs = Tracefs::find()?;
    // They go after the events that use them.
    let (_probes, events, mut missing) = Probes::make(&tracefs, &plan::probes(args));
    plan.events.extend(events);
    let opened = Opened::open(&plan, &tracefs)?;
    if opened.tracepoints().is_empty() && plan.samples_hz.is_none() {
        bail!(
            "this kernel has none of the events that were asked for: is KVM loaded ('modprobe kvm')?"
        );
    }
    missing.extend_from_slice(opened.missing());
    let before = before(&tracefs, &opened)?;
    let stop = asked_to_stop()?;
    let status = match args.keep {
        Some(keep) => {
            let formats = record::tracing_data::of(&tracefs, opened.tracepoints(), &[])?;
            let begun = flight::Recorder::begin(args, &facts, keep, opened, before, formats, stop);
            let mut recorder = begun?;
            let mut child = start(&args.command)?;
            recorder.run(&mut child)?;
            None
        }
        None => to_file(args, &facts, opened, before, &stop)?,
    };
    say_missing(&missing)?;
    match status {
        Some(status) if !status.success() => {
            bail!("the command that was recorded ended with {status}")
        }
        _ => Ok(()),
    }
}

/// Records to a file. Returns how the command ended, if there was one.
fn to_file(
    args: &RecordArgs,
    facts: &Facts,
    opened: Opened,
    (features, side): (Features, Vec<u8>),
    stop: &AtomicBool,
) -> Result<Option<ExitStatus>> {
    let folder = folder::make(args.output.as_deref())?;
    let shown = folder.shown();
    folder.facts(facts)?;
    let file = folder.file("perf.data")?;
    let kept = file.try_clone()?;
    let mut recorder = Recorder::begin(opened, file, features, &side)?;
    let mut child = start(&args.command)?;
    if child.is_none() && args.seconds.is_none() {
        writeln!(io::stderr(), "recording to {shown}; Ctrl-C ends it")?;
    }
    let until = args.seconds.map(|time| Instant::now() + time);
    let ended = watch(&mut recorder, stop, &mut child, until);
    let summary = recorder.stop();
    // A recording that could not be written to its end is not ended in order, so that readers say that some is missing.
    let finished = match &summary {
        Ok(_) => recorder.finish(Vec::new()),
        Err(_) => Ok(()),
    };
    if !record::has_name(&kept)? {
        bail!("{shown}/perf.data was removed while it was written: the recording is lost");
    }
    let whole = || format!("{shown}/perf.data has what was recorded until then");
    let summary = summary.with_context(whole)?;
    let status = ended.with_context(whole)?;
    finished.with_context(whole)?;
    output::print(&told(&shown, &summary))?;
    Ok(status)
}

/// Returns what the file says of the machine and of the recording, and the records that stand before those of the kernel.
fn before(tracefs: &Tracefs, opened: &Opened) -> Result<(Features, Vec<u8>)> {
    let symbols = fs::read("/proc/kallsyms").unwrap_or_default();
    let functions = record::tracing_data::functions(&symbols);
    let formats = record::tracing_data::of(tracefs, opened.tracepoints(), &functions)?;
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let mut side = record::mappings::kernel(&symbols, &modules);
    side.extend(record::tasks::names());
    if opened.has_chains() {
        side.extend(record::mappings::processes());
    }
    let mut features = Features::default();
    for one in record::machine::features() {
        features.set(one);
    }
    let version = concat!("trapline ", env!("CARGO_PKG_VERSION"));
    features.set(Feature::Version(version.to_owned()));
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    features.set(Feature::CommandLine(words.collect()));
    features.set(Feature::TracingData(formats));
    Ok((features, side))
}

/// Returns what becomes true when the recording is to end.
fn asked_to_stop() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn start(command: &[OsString]) -> Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    let child = child.with_context(|| format!("{}: cannot be run", program.display()))?;
    Ok(Some(child))
}

/// Records until the command ends, time is over or somebody says so. Returns how the command ended, if it did.
fn watch(
    recorder: &mut Recorder,
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

/// Says what is not recorded, by reason.
fn say_missing(missing: &[Missing]) -> io::Result<()> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in missing {
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, names)) => names.push(&one.name),
            None => reasons.push((&one.why, vec![&one.name])),
        }
    }
    for (why, names) in reasons {
        let sentence = format!("{}: {why}", words::list(&names));
        let mut text = String::new();
        quality::wrap(&mut text, "not recorded: ", &sentence, output::width());
        write!(io::stderr(), "{text}")?;
    }
    Ok(())
}

/// Says what was recorded.
fn told(folder: &str, summary: &Summary) -> String {
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
        text.push_str(&format!(
            "The kernel counted {} that it neither wrote nor counted as lost.\n",
            words::plural(withheld, "more event")
        ));
    }
    text
}
