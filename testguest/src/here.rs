//! This thread and this moment.

use std::fs;
use std::io::{self, Write};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// Returns CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Returns this thread's number.
pub(crate) fn tid() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// Returns what the kernel calls this thread.
pub(crate) fn thread_name() -> Result<String> {
    let name =
        fs::read_to_string("/proc/thread-self/comm").context("cannot read a thread's name")?;
    Ok(name.trim_end().to_owned())
}

/// Says a line on standard error. Where nobody can read it, nothing is lost that counts.
pub(crate) fn say(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}
