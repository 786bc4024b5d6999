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

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const REPORT_HELP: &str = "\
Examples:
  trapline report perf.data.guest
  trapline report -o ticket.html trace.dat     one file for a browser
  trapline report --vm web --facts facts.json trace.dat
  trapline report vmexit.txt ioport.txt        two tables that perf printed
  perf record -e 'kvm:*' -a -o - sleep 5 | trapline report -";
