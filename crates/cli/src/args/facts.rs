//! `trapline facts`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// `trapline facts`.
#[derive(Debug, Args)]
#[command(after_help = FACTS_HELP)]
pub(crate) struct FactsArgs {
    /// Show what these files tell, instead of reading this host's settings. They are files for --facts of the other
    /// commands; - is standard input.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read proc, sys and boot below DIR: those of another host, mounted in a container or copied by sosreport.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        conflicts_with = "files"
    )]
    pub root: PathBuf,

    /// Print a table for people, JSON, or comma-separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Show lists in full.
    #[arg(long)]
    pub wide: bool,
}

const FACTS_HELP: &str = "Reads files in /proc, /sys and /boot, and changes nothing. Root can read more, above all KVM's \
counters. What cannot be read is listed. The environment of processes is never read. Values in command lines that are or \
may be secret are masked (***).

Examples:
  trapline facts
  trapline facts --format json > facts.json      for --facts of other commands
  trapline vcpus --facts facts.json trace.dat
  trapline facts --root /proc/1/root             the host of a container
  trapline facts --root sosreport-web1/
  trapline facts facts.json                      what this file tells
  trapline facts --format csv | grep halt_poll";
