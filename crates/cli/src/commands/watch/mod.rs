//! `trapline watch`: a watch that is left on.
//!
//! It counts as `top` does, keeps the last seconds as `record --keep` does, and writes pages as `report` does. Its
//! own is when something is recorded, which `counts` decides, and what stays on the disk ([`store`]).

pub(crate) mod args;
mod note;
mod pages;
mod store;
mod watcher;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use counts::{CountingWay, LimitUnit};
use facts::Facts;
use record::check::CheckLine;
use record::cost::EventCosts;
use record::{ClockSource, EventClock, KeepLimit, Tracefs};
use recording::{ArmedRecorder, RecordingNews};
use render::quality;
use rustix::thread::CapabilitySet;
use source::ReaderOptions;

use super::record::args::RecordArgs;
use super::record::check::checked;
use super::record::{ReadyRecording, count_kept, planned, prepare_store, watch};
use super::recording::{PrintedNews, asked_to_stop, say_missing, say_rings, say_wrapped};
use super::top::watch::Watch;
use super::why::line::RecordLine;
use crate::commands::watch::args::WatchArgs;
use crate::output;

use pages::PageThread;
use store::IncidentStore;
use watcher::{HostWatcher, WatcherParts};

/// Runs the command.
pub(crate) fn run(args: &WatchArgs) -> Result<()> {
    let facts = host::collect(Path::new("/"));
    let record = record_line(args);
    let asked = record.args()?;
    if args.dry_run {
        return dry_run(args, &record, &asked, &facts);
    }
    let stop = asked_to_stop()?;
    prepare_store(&args.storing)?;
    // Nothing is opened before it is known where incidents go.
    let store = IncidentStore::open(&args.output_dir, args.disk)?;
    let (counter, ready) = match opened(args, &asked, &facts) {
        Ok(opened) => opened,
        Err(error) => {
            store.discard();
            return Err(error);
        }
    };
    watched(args, &asked, &facts, ready, (store, counter, stop))
}

/// Opens what counts and what is recorded, and says what is missing.
fn opened(args: &WatchArgs, asked: &RecordArgs, facts: &Facts) -> Result<(Watch, ReadyRecording)> {
    let counter = Watch::start(None, args.events)?;
    if let CountingWay::Events { why: Some(why) } = counter.way() {
        say_wrapped("counted out of the kernel's rings: ", why)?;
    }
    for warning in counter.warnings() {
        say_wrapped("warning: ", &warning)?;
    }
    let ready = ReadyRecording::as_asked(asked, facts)?;
    say_rings(&ready.opened)?;
    say_missing(&ready.missing)?;
    Ok((counter, ready))
}

/// Watches with what is open.
fn watched(
    args: &WatchArgs,
    asked: &RecordArgs,
    facts: &Facts,
    ready: ReadyRecording,
    (store, counter, stop): (IncidentStore, Watch, Arc<AtomicBool>),
) -> Result<()> {
    let formats = record::tracing_data::of(&ready.tracefs, ready.opened.tracepoints(), &[])?;
    let head = watch::head(&ready.opened, &ready.before, formats)?;
    let head = head.reader(ReaderOptions::default())?;
    let watches = watch::all(&asked.until, facts, &head)?;
    // Opened while that is allowed, as all else.
    let count_kept = count_kept();
    let clock = EventClock::open(ClockSource::Local).ok();
    let mut also = CapabilitySet::DAC_OVERRIDE;
    also.set(CapabilitySet::SYS_PTRACE, ready.later.mappings);
    also.set(CapabilitySet::BPF, ready.later.programs);
    counter.give_away(also);
    let keep = KeepLimit {
        time: args.keep + args.after,
        bytes: usize::try_from(args.recording_bytes()).unwrap_or(usize::MAX),
    };
    let recorder = ArmedRecorder::begin(keep, ready.opened, ready.before, watches, clock)?;
    let parts = WatcherParts {
        counter,
        recorder,
        count_kept: &count_kept,
        store,
        pages: PageThread::start()?,
        stop,
    };
    let limits = args.limits();
    let ids: Vec<&str> = limits.iter().map(|one| one.condition.id).collect();
    let paths = match asked.until.len() {
        0 => String::new(),
        some => format!(", {}", words::plural(some as u64, "path")),
    };
    PrintedNews.remark(&format!(
        "watching: {}{paths}; incidents go to {}; Ctrl-C ends it",
        words::list(&ids),
        args.output_dir.display()
    ))?;
    HostWatcher::new(args, parts).run()
}

/// Returns the command that keeps the same.
fn record_line(args: &WatchArgs) -> RecordLine {
    let keep = (args.keep + args.after).as_secs_f64();
    let mut words: Vec<OsString> = vec!["--keep".into(), keep.to_string().into()];
    words.extend(["--memory".into(), args.recording_bytes().to_string().into()]);
    words.extend(["--budget".into(), args.budget.to_string().into()]);
    for one in &args.when {
        let bound = format!("{} > {}ns", one.path, one.bound_ns);
        words.extend(["--until".into(), bound.into()]);
    }
    RecordLine::keeping(words)
}

/// Says what would be done, and what it costs.
fn dry_run(args: &WatchArgs, record: &RecordLine, asked: &RecordArgs, facts: &Facts) -> Result<()> {
    let plan = planned(asked, facts)?;
    let names = vec![args.output_dir.clone()];
    let checks = checked(
        Some(&args.output_dir),
        plan.events.clone(),
        plan.ring_bytes,
        names,
    );
    // The folder may be there.
    let failing = checks.iter().filter(|one| !one.ok && one.name != "folder");
    let failing: Vec<&CheckLine> = failing.collect();
    let mut text = String::new();
    let width = output::width();
    for one in &failing {
        let label = format!("missing: {:<8} ", one.name);
        quality::wrap(&mut text, &label, &one.sentence(), width);
    }
    text.push_str(&conditions(args));
    let cpus = record::machine::online().len();
    let names: Vec<String> = (plan.events.iter())
        .map(|one| format!("{}:{}", one.system, one.name))
        .collect();
    let opens = format!(
        "what 'trapline top' counts, and {} on each of {}: {}",
        words::plural(names.len() as u64, "event"),
        words::plural(cpus as u64, "CPU"),
        names.join(", ")
    );
    quality::wrap(&mut text, "opens:  ", &opens, width);
    quality::wrap(
        &mut text,
        "keeps:  ",
        &format!("$ {}", record.shown()),
        width,
    );
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let ring = plan.ring_bytes as u64;
    let memory = match ring {
        0 => mib(args.recording_bytes()),
        ring => mib(ring.saturating_mul(cpus as u64)),
    };
    let tracefs = Tracefs::find();
    let cost =
        tracefs.and_then(|tracefs| EventCosts::here(&tracefs, false, false, &BTreeSet::new()));
    let cost = cost.map_or_else(
        |_| "what an event costs cannot be measured here".to_owned(),
        |cost| {
            let budget = words::share::short(args.budget);
            let each = words::duration::human(cost.event_ns);
            format!("{each} for each event, {budget} of a CPU's time at most (--budget)")
        },
    );
    let costs = format!(
        "{cost}; {memory} MiB of memory for what is kept; {} MiB of disk at most, and {} an hour",
        mib(args.disk),
        words::plural(args.max_incidents, "incident")
    );
    quality::wrap(&mut text, "costs:  ", &costs, width);
    let writes = format!(
        "{}: a folder for each incident, and incidents.jsonl; nothing else of this host is changed",
        args.output_dir.display()
    );
    quality::wrap(&mut text, "writes: ", &writes, width);
    output::print(&text)?;
    match failing.iter().find(|one| one.needed) {
        Some(line) => bail!("nothing can be watched: {}", line.found),
        None => Ok(()),
    }
}

/// Lists the conditions that are looked at.
fn conditions(args: &WatchArgs) -> String {
    let mut text = String::from("condition       limit       lasting   looks at\n");
    for one in args.limits() {
        let limit = match one.condition.unit {
            LimitUnit::CpuShare => words::share::short(one.limit),
            LimitUnit::PerSecond => format!("{}/s", words::large(one.limit)),
        };
        let lasting = args.interval * one.condition.intervals;
        let lasting = format!("{} s", lasting.as_secs_f64());
        let _ = writeln!(
            text,
            "{:<15} {limit:<11} {lasting:<9} {}",
            one.condition.id, one.condition.looks_at
        );
    }
    for one in &args.when {
        let limit = words::duration::human(one.bound_ns);
        let _ = writeln!(
            text,
            "{:<15} {limit:<11} {:<9} path {}",
            "path", "once", one.path
        );
    }
    text
}
