//! `trapline report`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

/// `trapline report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Recordings, or what perf kvm stat report, perf sched latency or perf stat printed; - is standard input.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,

    /// Write the report as one HTML file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after the text of it in --facts, or after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}
