//! `trapline agent`: the guest's side, recorded within the guest.

mod alone;
mod bounds;
mod guest;
mod keeper;
mod session;

use anyhow::Result;

use crate::args::AgentArgs;

pub(super) use bounds::bits;

/// Runs the command.
pub(crate) fn run(args: &AgentArgs) -> Result<()> {
    match (&args.listen, &args.token_file) {
        (Some(at), Some(token)) if args.session => session::run(args, at, token),
        (Some(at), Some(token)) => keeper::run(args, at, token),
        _ => alone::run(args),
    }
}
