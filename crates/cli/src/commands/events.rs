//! `trapline events`: the events themselves.

use anyhow::Result;

use crate::args::EventsArgs;

/// Runs the command.
pub fn run(_args: &EventsArgs) -> Result<()> {
    anyhow::bail!("not yet")
}
