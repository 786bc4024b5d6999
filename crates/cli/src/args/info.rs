//! `trapline info`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

/// `trapline info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    #[command(flatten)]
    pub common: Common,
}
