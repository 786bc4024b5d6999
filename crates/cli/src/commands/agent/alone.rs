//! A recording of a guest that no host asked for: a file to fetch later.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use record::{HostRecorder, RecordSummary, Tracefs};
use recording::KeptPrivileges;

use super::open_events;
use crate::commands::agent::args::AgentArgs;
use crate::commands::recording::{
    asked_to_stop, command_is_there, give_away, measure, say_missing, say_rings, say_running,
    this_program,
};
use crate::output;

/// How long a turn lasts where no ring fills.
const TURN: Duration = Duration::from_millis(250);

/// Why a recording ended.
enum AgentEnd {
    Asked,
    Command(ExitStatus),
    Time,
    Size,
}

/// Records to the file that was named.
pub(super) fn run(args: &AgentArgs) -> Result<()> {
    command_is_there(&args.command)?;
    let tracefs = Tracefs::find()?;
    let opened = open_events(args, &tracefs)?;
    let missing = opened.missing().to_vec();
    let cost = measure(&tracefs, &opened)?;
    let (features, side) = recording::before(&tracefs, &opened, cost, &this_program())?;
    let stop = asked_to_stop()?;
    say_rings(&opened)?;
    let file = make(&args.output)?;
    let kept = file.try_clone()?;
    match args.command.is_empty() {
        // It writes to a file that is open, and nothing else.
        true => recording::give_away_all((0, 0))?,
        // What is started is to have what the caller has.
        false => give_away(KeptPrivileges::default())?,
    }
    let shown = args.output.display().to_string();
    let mut recorder =
        HostRecorder::begin(opened, file, features, &side).with_context(|| shown.clone())?;
    if recorder.at_most() > args.size {
        let needed = recorder.at_most();
        // Nothing was recorded that anybody asked for.
        let _ = std::fs::remove_file(&args.output);
        bail!("--size: {}", recording::too_small(args.size, needed));
    }
    let mut child = recording::start(&args.command)?;
    if child.is_none() {
        writeln!(
            io::stderr(),
            "recording to {shown} for {} at most; Ctrl-C ends it",
            words::duration::human(u64::try_from(args.time.as_nanos()).unwrap_or(u64::MAX))
        )?;
    }
    let ended = watch(&mut recorder, &stop, &mut child, args);
    let summary = recorder.stop();
    let finished = match &summary {
        Ok(_) => recorder.finish(Vec::new()),
        Err(_) => Ok(()),
    };
    if !record::has_name(&kept)? {
        bail!("{shown} was removed while it was written: the recording is lost");
    }
    let whole = || format!("{shown} has what was recorded until then");
    let summary = summary.with_context(whole)?;
    let ended = ended.with_context(whole)?;
    finished.with_context(whole)?;
    output::print(&sentences(&shown, &summary, &ended, args))?;
    say_running(child, &args.command)?;
    say_missing(&missing)?;
    match ended {
        AgentEnd::Command(status) if !status.success() => {
            bail!("the command that was recorded ended with {status}")
        }
        _ => Ok(()),
    }
}

/// Makes a file that is not there yet, which only its owner may read.
fn make(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    // A link counts as being there.
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow!(
            "{}: is there already; name another file with -o, or remove it",
            path.display()
        ),
        _ => anyhow!(
            "{}: cannot be made: {}",
            path.display(),
            words::io_reason(&error)
        ),
    })
}

/// Records until somebody says so, the command ends, or a bound is reached.
fn watch(
    recorder: &mut HostRecorder,
    stop: &AtomicBool,
    child: &mut Option<Child>,
    args: &AgentArgs,
) -> Result<AgentEnd> {
    let until = Instant::now() + args.time;
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(AgentEnd::Time);
        }
        let status = child.as_mut().map(Child::try_wait).transpose()?.flatten();
        if let Some(status) = status {
            return Ok(AgentEnd::Command(status));
        }
        recorder.turn(left.min(TURN))?;
        if recorder.at_most() > args.size {
            return Ok(AgentEnd::Size);
        }
    }
    Ok(AgentEnd::Asked)
}

/// Says what was recorded.
fn sentences(shown: &str, summary: &RecordSummary, ended: &AgentEnd, args: &AgentArgs) -> String {
    let mut text = format!(
        "wrote {shown}: {}, {} KiB\n",
        words::plural(summary.samples, "event"),
        summary.bytes / 1024
    );
    match summary.lost() {
        Some(0) => text.push_str("No event was lost.\n"),
        Some(lost) => text.push_str(&format!(
            "{} found no room in a ring and are lost: ask for less with --for.\n",
            words::plural(lost, "event")
        )),
        None => text.push_str("This kernel does not say how many events were lost.\n"),
    }
    match ended {
        AgentEnd::Size => text.push_str(&format!(
            "It ended since its file may have {} KiB: allow more with --size.\n",
            args.size / 1024
        )),
        AgentEnd::Time => text.push_str("It ended since its time was over (--time).\n"),
        AgentEnd::Asked | AgentEnd::Command(_) => {}
    }
    text
}
