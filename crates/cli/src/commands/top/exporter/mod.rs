//! What is counted, for Prometheus.
//!
//! Two processes: this one may read what the kernel counts, and reads nothing that others send. It starts one that
//! speaks HTTP and may do nothing else, and hands texts to it over a pair of sockets. Where that one ends it starts
//! the next.

mod address;
mod counter;
mod front;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use counts::Choice;
use httpd::{BoundSocket, PageMaker, pages};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::watch::Watch;
use crate::commands::again;
pub(crate) use address::ExporterAddress;
use counter::ExportCounter;

/// How long a process that crashed is not started again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one may take to end that says nothing any more.
const ENDING: Duration = Duration::from_secs(1);
/// The exit status of one that could not go on, and has said why.
const FAILED: i32 = 1;

/// Binds the address: before anything is counted, since that may be all that is wrong.
pub(super) fn bind(address: &ExporterAddress) -> Result<Vec<BoundSocket>> {
    address.bind()
}

/// Serves what is counted until the process is ended.
pub(super) fn serve(watch: Watch, sockets: &[BoundSocket], choice: &Choice) -> Result<()> {
    let stop = stopped()?;
    let mut counter = ExportCounter::new(watch, choice);
    loop {
        let (child, mut maker) = start(sockets)?;
        let answered = counter.answer(&mut maker, stop.as_fd());
        drop(maker);
        let status = end(child)?;
        if answered? || is_to_end(&stop, Duration::ZERO)? {
            return Ok(());
        }
        if status.code() == Some(FAILED) {
            bail!("nothing is served any more: the reason stands above");
        }
        writeln!(
            io::stderr(),
            "the process that answers requests ended with {status}: it is started again"
        )?;
        if is_to_end(&stop, PAUSE)? {
            return Ok(());
        }
        counter.note_restart();
    }
}

/// Serves what another process counts, as [`serve`] starts it.
pub(super) fn serve_for_another() -> Result<()> {
    front::serve()
}

/// Starts the process that speaks HTTP.
fn start(sockets: &[BoundSocket]) -> Result<(Child, PageMaker)> {
    let (source, maker) = pages()?;
    maker.hand_over(sockets)?;
    let child = again::start("--serves", source.into_socket()?)?;
    Ok((child, maker))
}

/// Ends a process that nobody answers any more. It has ended, or does so itself unless somebody has taken it over.
fn end(mut child: Child) -> Result<ExitStatus> {
    let by = Instant::now() + ENDING;
    while Instant::now() < by {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    Ok(child.wait()?)
}

/// Returns what can be read once this process is to end.
fn stopped() -> io::Result<UnixStream> {
    let (stopped, stops) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, stops.try_clone()?)?;
    }
    Ok(stopped)
}

/// Returns whether this process is to end, and waits for that at most for a time.
fn is_to_end(stop: &UnixStream, at_most: Duration) -> Result<bool> {
    let time = Timespec::try_from(at_most)?;
    let mut files = [PollFd::new(stop, PollFlags::IN)];
    match poll(&mut files, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        // That is a signal which ends this process, or one that it does not know.
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
