//! `trapline report`: one screen about a recording.

use anyhow::Result;

use crate::args::ReportArgs;

/// Runs the command.
pub fn run(_args: &ReportArgs) -> Result<()> {
    anyhow::bail!("not yet")
}
