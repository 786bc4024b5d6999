//! `trapline report`.

use std::path::PathBuf;

use clap::Args;

use crate::options::{Common, GivenRecordings, GuestOptions};

/// `trapline report`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("recordings", |words| words.help(INPUTS)))]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub recordings: GivenRecordings,

    /// Write the report as one HTML file, whose name ends in .html or .htm; - is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// With -o: compare the recordings with REC, and show what changed from REC to them. All of them are read again for
    /// it.
    #[arg(long, value_name = "REC", requires = "output")]
    pub against: Option<PathBuf>,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    /// Name kernel functions with FILE, a copy of the host's /proc/kallsyms made by root, where the recording has no
    /// symbols itself. Without FILE, names are of this machine's kernel, or of a file, that has the build id.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// Name functions of guests' kernels in samples with FILE, a copy of a guest's /proc/kallsyms made by root.
    #[arg(long, value_name = "FILE")]
    pub guest_kallsyms: Option<PathBuf>,

    /// Print everything instead of one screen: all findings with their evidence, all rows, all warnings.
    #[arg(long, conflicts_with = "output")]
    pub full: bool,

    /// Print ten lines of plain text, for a ticket or a mail: no table, no line beyond 72 columns but for a
    /// command, no colour.
    #[arg(long, conflicts_with_all = ["full", "output"])]
    pub brief: bool,

    /// Print what each analysis costs this recording instead, in CPU time of one thread. The recording is walked some
    /// hundred times for it: with all analyses, and without one after the other.
    #[arg(long, conflicts_with_all = ["full", "brief", "output"])]
    pub cost: bool,

    /// With --cost: walk N pairs for each analysis, with it and without. The default is 3; more of them show what is
    /// noise.
    #[arg(long, value_name = "N", requires = "cost", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub pairs: Option<u8>,

    #[command(flatten)]
    pub guests: GuestOptions,

    #[command(flatten)]
    pub common: Common,
}

const INPUTS: &str = "Recordings; the printed output of perf kvm stat report, perf sched latency or perf stat; or a \
                      ticket, mail or page with several of these, definitions of guests and facts. - is standard \
                      input.";

const EXAMPLES: &str = "The HTML file has all that trapline found: causes and remedies, the doubts about the \
recording, where the time of each vCPU went, exits, paths, a timeline, scheduling, flame graphs where there are \
stacks, and for each table the command that prints it. It needs no network and no other file, so it can be attached to \
a ticket as it is.

Examples:
  trapline report perf.data.guest          one screen: what is wrong, and why
  trapline report --full trace.dat | less  all findings with evidence, all rows
  trapline report --brief trace.dat        ten lines for a ticket
  trapline report trace.dat -o report.html
                                           one HTML file
  trapline report after.dat --against before.dat -o report.html
                                           the same with what changed
  trapline report --format json trace.dat  the same numbers for a program
  trapline report host.dat guest-a.dat     a host and its guest, whose recordings name
                                           each other
  trapline report host.dat --guest web=guest.perf.data
                                           the guest of VM web, of any recorder
  trapline report --cost trace.dat         what each analysis costs, for who changes
                                           trapline itself
  trapline report vmexit.txt ioport.txt    what perf kvm stat report printed of one
                                           situation";
