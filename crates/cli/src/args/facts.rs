//! `trapline facts`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// `trapline facts`.
#[derive(Debug, Args)]
#[command(after_help = FACTS_HELP)]
pub(crate) struct FactsArgs {
    /// Show what these files tell (see --facts of the other commands) instead of looking at a host; - is standard
    /// input.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read the host's files below DIR: those of another host, as a container has them mounted or as
    /// sosreport copied them.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        conflicts_with = "files"
    )]
    pub root: PathBuf,

    /// Output as a table for people, as JSON or as comma separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// All of the lists in the table.
    #[arg(long)]
    pub wide: bool,
}

const FACTS_HELP: &str = "Reads files of /proc, /sys and /boot, and changes nothing; as root it sees more, KVM's counters \
first of all. What cannot be read is listed. The environment of processes is never read, and values of command lines \
that are or may be secret are masked (***).

Examples:
  trapline facts
  trapline facts --format json > facts.json      to be given to other commands with --facts
  trapline vcpus --facts facts.json trace.dat
  trapline facts --root /proc/1/root             the host, from inside a container
  trapline facts --root sosreport-web1/
  trapline facts facts.json                      what the file tells
  trapline facts --format csv | grep halt_poll";
