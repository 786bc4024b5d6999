//! The process that speaks HTTP. It may do nothing else: it gives away all that it may do before it reads anything
//! that others send.

use std::io;
use std::os::fd::AsFd;

use anyhow::{Context, Result, bail};
use httpd::{HttpServer, HttpStatus, PageSource, ServerCounts, ServerError, Site};
use render::metrics::{CONTENT_TYPE, ServingHealth};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::stopped;

/// The user `nobody` and its group: who has no other (the kernel's `overflowuid`, proc_sys_kernel(5)).
const NOBODY: (u32, u32) = (65534, 65534);
/// The page at `/`.
const INDEX: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>trapline</title></head>\n\
                     <body><h1>trapline</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>\n";

/// Serves what the process counts that is at the other end of standard input.
pub(super) fn serve() -> Result<()> {
    let stop = stopped()?;
    let parent = getppid();
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let (source, sockets) = PageSource::handed_over(socket)?;
    recording::give_away_all(NOBODY).context(
        "the process that answers requests cannot become the user 'nobody', which takes CAP_SETUID and CAP_SETGID",
    )?;
    // Who changes its user hears no more of what becomes of its parent.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != parent {
        bail!("the process that counts is gone");
    }
    let site = Site {
        index: INDEX,
        kind: CONTENT_TYPE,
        own: &mut |counts| health(counts).text(),
    };
    match HttpServer::new(&sockets, source, site).run(stop.as_fd()) {
        // Who counts has ended, and says itself why.
        Err(ServerError::Source(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        ended => Ok(ended?),
    }
}

/// Returns what the server says of itself.
fn health(counts: &ServerCounts) -> ServingHealth {
    let of = |status: HttpStatus| (status.code(), counts.requests(status));
    ServingHealth {
        requests: HttpStatus::ALL.map(of).to_vec(),
        refused: counts.refused,
        displaced: counts.displaced,
        open: counts.open,
    }
}
