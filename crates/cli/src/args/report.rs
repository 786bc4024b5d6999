//! `trapline report`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

/// `trapline report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_HELP)]
pub(crate) struct ReportArgs {
    /// Recordings, or the printed output of perf kvm stat report, perf sched latency or perf stat; - is standard input.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,

    /// Write the report as one HTML file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// With -o: compare the recordings with REC, and show what changed from REC to them. All of them are read again for it.
    #[arg(long, value_name = "REC", requires = "output")]
    pub against: Option<PathBuf>,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const REPORT_HELP: &str = "The HTML file has all that trapline found: causes and remedies, what the recording lacks, where \
the time of each vCPU went, exits, paths, scheduling, flame graphs where there are stacks, and for each table the command \
that prints it. It needs no network and no other file, so it can be attached to a ticket as it is.

Examples:
  trapline report trace.dat
  trapline report trace.dat -o report.html
  trapline report after.dat --against before.dat -o report.html
  trapline report --vm web --time 12.5,13 perf.data -o report.html
  trapline report vmexit.txt
  trapline report --format json perf.data";
