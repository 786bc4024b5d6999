//! One recording for a host: this process opens the events, gives everything away that it may do, and only then reads
//! what others send.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agent::{
    AgentError, ConnectionOutcome, Limits, Listen, Listener, RecordedGuest, SharedToken, serve,
};
use anyhow::{Context, Result, bail};
use record::{ClockSource, EventClock, Folder, Tracefs};
use recording::{AskedMachine, DATA, of_machine};
use render::neutral;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::{open_events, questions};
use crate::commands::agent::args::AgentArgs;
use crate::commands::recording::{asked_to_stop, measure, this_program};

/// How long a host may take to show its token, and say nothing afterwards.
const GREETING: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether somebody asked the agent to end.
const LOOK: Duration = Duration::from_millis(500);
/// How long nobody is heard after something that failed otherwise.
const PAUSE: Duration = Duration::from_millis(200);
/// How long nobody is heard after a wrong token, and what that grows to with more of them.
const DELAY: Duration = Duration::from_secs(1);
const MOST_DOUBLED: u32 = 3;

/// Serves hosts on the socket that is standard input, until one has had a recording made.
pub(super) fn run(args: &AgentArgs, at: &Listen, token: &Path) -> Result<()> {
    let stop = asked_to_stop()?;
    let parent = getppid();
    let token = SharedToken::read(token)?;
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let listener = Listener::from_open(socket, at)?;
    let mut guest = ready(args)?;
    let owner = guest.folder.owner()?;
    recording::give_away_all(owner).context("the agent cannot give away what it may do")?;
    // Who changes its user hears no more of what becomes of its parent.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != parent {
        bail!("the agent that started this recording is gone");
    }
    let limits = Limits {
        time: args.time,
        size: args.size,
        greeting: GREETING,
        silence: SILENCE,
    };
    let mut wrong = 0u32;
    while !stop.load(Ordering::Relaxed) && !guest.is_used() {
        let Some((link, from)) = listener.accept(LOOK)? else {
            continue;
        };
        match serve(link, &token, &mut guest, &limits, &stop) {
            Err((AgentError::WrongToken, _)) => {
                wrong = wrong.saturating_add(1);
                let count = words::plural(u64::from(wrong), "wrong token");
                say(&format!("{from}: wrong token ({count} in a row)"))?;
                wait(wrong, &stop);
            }
            Err((error, recorded)) => {
                let kept = recorded.map_or_else(String::new, |one| kept(&guest, one));
                say(&format!("{from}: {error}{kept}"))?;
                // Who only tries is not to fill a log with that.
                thread::sleep(PAUSE);
            }
            Ok(ConnectionOutcome::Nothing) => {
                wrong = 0;
                say(&format!("{from}: has the token, and asked for nothing"))?;
            }
            Ok(ConnectionOutcome::Kept(recorded)) => say(&format!(
                "{from}: was not fetched{}",
                kept(&guest, recorded)
            ))?,
            Ok(ConnectionOutcome::Fetched(recorded)) => say(&format!(
                "{from}: recorded {}, {} KiB, and sent them",
                words::plural(recorded.events, "event"),
                recorded.length / 1024
            ))?,
        }
    }
    Ok(())
}

/// Opens all that a recording takes.
fn ready(args: &AgentArgs) -> Result<AskedMachine> {
    let tracefs = Tracefs::find()?;
    let opened = open_events(args, &tracefs)?;
    let cost = measure(&tracefs, &opened)?;
    let (features, side) = of_machine(&tracefs, &opened, cost, &this_program())?;
    let folder = Folder::open(&args.output);
    let folder =
        folder.with_context(|| format!("{}: no folder for recordings", args.output.display()))?;
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Ok(AskedMachine {
        opened: Some(opened),
        features,
        side,
        cost,
        folder,
        clock: EventClock::open(ClockSource::Local)?,
        name: name.trim().to_owned(),
        questions: questions(args),
        recording: None,
    })
}

/// Says where a recording is that nobody has fetched.
fn kept(guest: &AskedMachine, recorded: RecordedGuest) -> String {
    format!(
        "; {}/{DATA} has {}",
        guest.folder.path().display(),
        words::plural(recorded.events, "event")
    )
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{}", neutral::name(text))
}

/// Hears nobody for a while: longer after each wrong token.
fn wait(wrong: u32, stop: &AtomicBool) {
    let doubled = wrong.saturating_sub(1).min(MOST_DOUBLED);
    let until = Instant::now() + DELAY * 2u32.pow(doubled);
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
    }
}
