//! What listens for hosts: it starts a process for each recording, and reads nothing that others send itself.
//!
//! Opening events takes permissions that nobody should have who reads what comes over a socket. So the process that has
//! them hands the socket to one that gives them away, and starts the next one when that has ended.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use agent::{Listen, Listener, SharedToken};
use anyhow::{Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::commands::again;
use crate::commands::agent::args::AgentArgs;

/// How long a process that crashed is not started again.
const PAUSE: Duration = Duration::from_secs(1);
/// The exit status of one that could not begin, and has said why.
const FAILED: i32 = 1;

/// Listens until it is to end.
pub(super) fn run(args: &AgentArgs, at: &Listen, token: &Path) -> Result<()> {
    // Without a token nothing listens, not even for a moment.
    SharedToken::read(token)?;
    let listener = Listener::bind(at).map_err(|error| match (at, error.kind()) {
        (Listen::Vsock(_), io::ErrorKind::Unsupported | io::ErrorKind::NotFound) => anyhow!(
            "{at}: {}: this guest has no vsock device; give it one (QEMU: -device vhost-vsock-pci,guest-cid=3), or \
             listen on tcp:ADDRESS:PORT",
            words::io_reason(&error)
        ),
        _ => anyhow!("{at}: cannot be listened on: {}", words::io_reason(&error)),
    })?;
    writeln!(io::stderr(), "listening on {}", listener.at()?)?;
    let socket = OwnedFd::from(listener);
    let mut signals = Signals::new([SIGCHLD, SIGINT, SIGTERM, SIGHUP])?;
    loop {
        let mut child = again::start("--session", socket.try_clone()?)?;
        let (status, ends) = wait(&mut child, &mut signals)?;
        if ends || (args.once && status.success()) {
            return Ok(());
        }
        if status.code() == Some(FAILED) {
            bail!("{at}: the agent cannot record: what is missing stands above");
        }
        if !status.success() {
            writeln!(io::stderr(), "a recording ended with {status}")?;
            thread::sleep(PAUSE);
        }
    }
}

/// Waits until it has ended, and ends it where this process is ended. Returns how it ended, and whether this process is
/// to end.
fn wait(child: &mut Child, signals: &mut Signals) -> Result<(ExitStatus, bool)> {
    let mut ends = false;
    loop {
        for signal in signals.wait() {
            if signal != SIGCHLD {
                ends = true;
                // It may have ended already, and is not waited for yet: its number is still its own.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
        }
        if let Some(status) = child.try_wait()? {
            return Ok((status, ends));
        }
    }
}
