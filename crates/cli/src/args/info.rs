//! `trapline info`.

use std::path::PathBuf;

use clap::Args;

use super::{Common, GuestArgs};

/// `trapline info`.
#[derive(Debug, Args)]
#[command(after_help = INFO_HELP)]
pub(crate) struct InfoArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    #[command(flatten)]
    pub guests: GuestArgs,

    #[command(flatten)]
    pub common: Common,
}

const INFO_HELP: &str = "\
Examples:
  trapline info perf.data
  trapline info --vm web --time 12.5,13 trace.dat
  trapline info --facts ps.txt trace.dat       names of VMs that it lacks
  trapline info host.dat guest.dat             whose guest, and how its clock reads
  zstdcat trace.dat.zst | trapline info --format json -";
