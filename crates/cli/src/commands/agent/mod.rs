//! `trapline agent`: the guest's side, recorded within the guest.

mod alone;
pub(crate) mod args;
mod keeper;
mod session;

use agent::{CPU, IO};
use anyhow::{Result, bail};
use record::{OpenedEvents, Tracefs};
use recording::open_for_guest;

use crate::commands::agent::args::{AgentArgs, ForGuest};

/// Runs the command.
pub(crate) fn run(args: &AgentArgs) -> Result<()> {
    match (&args.listen, &args.token_file) {
        (Some(at), Some(token)) if args.session => session::run(args, at, token),
        (Some(at), Some(token)) => keeper::run(args, at, token),
        _ => alone::run(args),
    }
}

/// Returns the questions that this agent answers, as bits.
fn questions(args: &AgentArgs) -> u8 {
    ForGuest::bits(&args.questions, CPU | IO)
}

/// Opens the events.
fn open_events(args: &AgentArgs, tracefs: &Tracefs) -> Result<OpenedEvents> {
    let opened = open_for_guest(questions(args), args.size, tracefs)?;
    if opened.tracepoints().is_empty() {
        bail!("this kernel has none of the events that were asked for");
    }
    Ok(opened)
}
