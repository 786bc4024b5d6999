//! This program, started once more for what needs less than it may do itself.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Starts this program again with its own arguments and one more, and with a socket as its standard input.
pub(crate) fn start(option: &str, socket: OwnedFd) -> Result<Child> {
    // Also if its file has been replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    let mut words = std::env::args_os();
    if let Some(own) = words.next() {
        command.arg0(own);
    }
    let command = command.args(words).arg(option).stdin(Stdio::from(socket));
    command
        .spawn()
        .context("this program cannot be started again")
}
