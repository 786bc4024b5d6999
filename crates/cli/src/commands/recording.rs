//! What recording a host and recording a guest have in common.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use record::cost::EventCosts;
use record::{Missing, OpenedEvents, Tracefs};
use recording::{KeptPrivileges, Program, RecordingNews, missing_sentences};
use render::{neutral, quality};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::output;

/// Measures what an event costs here: it is the one thing that a recording changes for certain.
pub(crate) fn measure(tracefs: &Tracefs, opened: &OpenedEvents) -> io::Result<Option<EventCosts>> {
    let (chains, pairs) = (opened.has_chains(), opened.has_programs());
    match EventCosts::here(tracefs, chains, pairs, &opened.probes()) {
        Ok(cost) => Ok(Some(cost)),
        Err(error) => {
            writeln!(io::stderr(), "{error}")?;
            Ok(None)
        }
    }
}

/// Returns this program, as files that it records name it.
pub(crate) fn this_program() -> Program {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    Program {
        version: concat!("trapline ", env!("CARGO_PKG_VERSION")).to_owned(),
        command_line: words.collect(),
    }
}

/// Returns what becomes true when the recording is to end.
pub(crate) fn asked_to_stop() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Prints what is said while a recording is made.
pub(crate) struct PrintedNews;

impl RecordingNews for PrintedNews {
    fn made(&mut self, text: &str) -> io::Result<()> {
        output::print(text).map_err(|error| error.downcast().unwrap_or_else(io::Error::other))
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", neutral::text(text))
    }

    fn missing_in_guest(&mut self, guest: &str, why: &str) -> io::Result<()> {
        let mut text = String::new();
        let label = format!("not recorded in {guest}: ");
        quality::wrap(&mut text, &label, why, output::width());
        write!(io::stderr(), "{}", neutral::text(&text))
    }
}

/// Gives privileges away, and says where that cannot be done.
pub(crate) fn give_away(later: KeptPrivileges) -> io::Result<()> {
    recording::give_away(later).map_or(Ok(()), |remark| PrintedNews.remark(&remark))
}

/// Says where rings are smaller than they should be.
pub(crate) fn say_rings(opened: &OpenedEvents) -> io::Result<()> {
    let Some(wanted) = opened.ring_wanted() else {
        return Ok(());
    };
    let sentence = format!(
        "each CPU's ring has {} KiB instead of {}, as much as kernel.perf_event_mlock_kb lets this user lock: \
         'trapline record --check' says how to get more",
        opened.ring_bytes() / 1024,
        wanted / 1024
    );
    let mut text = String::new();
    quality::wrap(&mut text, "warning: ", &sentence, output::width());
    write!(io::stderr(), "{text}")
}

/// Says something that is no result, in lines of the terminal's width.
pub(crate) fn say_wrapped(label: &str, text: &str) -> io::Result<()> {
    let mut out = String::new();
    quality::wrap(&mut out, label, text, output::width());
    write!(io::stderr(), "{}", neutral::text(&out))
}

/// Says what is not recorded.
pub(crate) fn say_missing(all: &[Missing]) -> Result<()> {
    for sentence in missing_sentences(all) {
        let mut text = String::new();
        quality::wrap(&mut text, "not recorded: ", &sentence, output::width());
        write!(io::stderr(), "{text}")?;
    }
    Ok(())
}

/// Says that the command goes on, if it does.
pub(crate) fn say_running(child: Option<Child>, command: &[OsString]) -> Result<()> {
    match recording::goes_on(child, command)? {
        Some(remark) => Ok(PrintedNews.remark(&remark)?),
        None => Ok(()),
    }
}

/// A command that is not there is said before a folder is made for its recording.
pub(crate) fn command_is_there(command: &[OsString]) -> Result<()> {
    let Some(program) = command.first() else {
        return Ok(());
    };
    let is_program = |path: &Path| {
        let found = path.metadata();
        found.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let has_folder = program.as_encoded_bytes().contains(&b'/');
    let there = if has_folder {
        is_program(Path::new(program))
    } else {
        // Without PATH the system looks in places of its own.
        std::env::var_os("PATH").is_none_or(|all| {
            std::env::split_paths(&all).any(|folder| is_program(&folder.join(program)))
        })
    };
    if !there && has_folder && Path::new(program).exists() {
        bail!(
            "{}: is no program, or may not be run: expected an executable file",
            program.display()
        );
    }
    if !there {
        bail!("{}: there is no such program", program.display());
    }
    Ok(())
}
