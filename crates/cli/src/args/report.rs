//! `trapline report`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

/// `trapline report`.
#[derive(Debug, Args)]
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
