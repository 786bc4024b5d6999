//! `trapline facts`: the facts of a host.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use doubts::DoubtKind;
use event::Quality;
use render::{ClockUnit, facts as render_facts, quality};

use crate::answer::Answer;
use crate::options::Format;
use crate::output;

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

    #[command(flatten)]
    pub format: Format,

    /// Show lists in full.
    #[arg(long)]
    pub wide: bool,
}

const FACTS_HELP: &str = "Reads files in /proc, /sys and /boot, and changes nothing. Root can read more, above all \
KVM's counters. What cannot be read is listed. The environment of processes is never read. Values in command lines \
that are or may be secret are masked (***).

Examples:
  trapline facts
  trapline facts --format json > facts.json      for --facts of other commands
  trapline vcpus --facts facts.json trace.dat
  trapline facts --root /proc/1/root             the host of a container
  trapline facts --root sosreport-web1/
  trapline facts facts.json                      what this file says
  trapline facts --format csv | grep halt_poll";

/// Rows of each list of the table.
const ROWS: usize = 16;

/// Runs the command.
pub(crate) fn run(args: &FactsArgs) -> Result<()> {
    let mut quality = Quality::default();
    let (facts, inputs) = if args.files.is_empty() {
        let root = args.root.display().to_string();
        match fs::metadata(&args.root) {
            Ok(data) if data.is_dir() => {}
            Ok(_) => {
                bail!("{root}: is no directory; expected one with a host's proc and sys in it")
            }
            Err(error) => bail!("{root}: {}", words::io_reason(&error)),
        }
        (host::collect(&args.root), vec![root])
    } else {
        let (facts, notes) = session::read_facts(&args.files)?;
        for note in notes {
            quality.raise(DoubtKind::FactsNotUnderstood { note });
        }
        (
            facts,
            args.files
                .iter()
                .map(|file| file.display().to_string())
                .collect(),
        )
    };
    let answer = Answer {
        format: args.format,
        command: "facts",
        inputs: &inputs,
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let layout = output::layout(if args.wide { usize::MAX } else { ROWS }, true);
            let mut text = render_facts::table(&facts, layout);
            text.push_str(&quality::doubts(&quality, output::width()));
            text
        },
        || facts::write(&facts),
        |_| render_facts::csv(&facts),
    )
}
