//! The command line: the options that stand before any command, and the commands.

use clap::Parser;

use crate::colour::Colour;
use crate::commands::Command;
use crate::sandboxed::SandboxUse;
use crate::status;

/// Where did my virtual machine's time go, and what do I change?
///
/// Reads KVM recordings made by perf or trace-cmd, and their text output: perf.data (file and pipe mode, compressed or
/// not), trace.dat version 6 and 7, the text of `perf script` and `trace-cmd report`, and the kernel's own trace file.
/// Each may be packed with gzip or zstd. `-` is standard input. `trapline FILE` is `trapline report FILE`.
#[derive(Debug, Parser)]
#[command(name = "trapline", version, max_term_width = 100, after_help = below())]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or
    /// never.
    #[arg(
        long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto,
        hide_possible_values = true
    )]
    pub color: Colour,

    /// End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever
    /// stands as a warning below a table.
    #[arg(long, global = true)]
    pub strict: bool,

    /// Read files without what reading does not need: network, other programs, files but those of -o. As far as the
    /// kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or
    /// not (off).
    #[arg(
        long, global = true, value_enum, value_name = "WHEN", default_value_t = SandboxUse::Auto,
        hide_possible_values = true
    )]
    pub sandbox: SandboxUse,
}

const EXAMPLES: &str = "Examples:
  sudo trapline why                        on a host with a slow VM: what is wrong, and why
  trapline perf.data.guest                 one screen: what is wrong, and why; short for
                                           trapline report perf.data.guest
  trapline report                          the same of the newest recording here
  trapline exits --event ioport perf.data  the cost of each I/O port
  trapline vcpus trace.dat                 where each vCPU's time went
  trapline diagnose trace.dat              why it is slow, and what to change
  trapline compare before.dat after.dat    what changed
  trapline sched --by cpu trace.dat        how long tasks waited for each CPU
  trapline events trace.dat | grep kvm_msr
                                           events as trace-cmd prints them
  trapline events --console trace.dat      the output on serial consoles
  trapline exits --facts ps.txt --vm web trace.dat
                                           the exits of the VM named web
  trapline export trace.dat -o trace.pftrace
                                           for ui.perfetto.dev
  trapline top                             what vCPUs of this host do now
  trapline facts --format json > facts.json
                                           this host's settings, for --facts
  perf record -e 'kvm:*' -a -o - sleep 5 | trapline report -";

/// Returns what stands below the help.
fn below() -> String {
    format!("{EXAMPLES}\n\n{}", status::paragraph())
}
