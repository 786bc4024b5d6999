//! `trapline compare`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

/// `trapline compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct CompareArgs {
    /// The two recordings; with --with the first group of them. What perf kvm stat report, perf sched latency or
    /// perf stat printed will do as well.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,

    /// The second group of recordings.
    #[arg(long, value_name = "REC", num_args = 1..)]
    pub with: Vec<PathBuf>,

    /// Compare each recording with the first, in one table with a column for each.
    #[arg(long, conflicts_with = "with")]
    pub each: bool,

    /// Show what was measured beside the recordings of --each: NAME=VALUE,VALUE,... with a value for each of them in their
    /// order; NAME=VALUE for one of them, by its letter or a part of its path; or a FILE with a line for each NAME and
    /// its values. May be repeated.
    #[arg(long, value_name = "FILE|NAME=VALUE", requires = "each")]
    pub score: Vec<String>,

    /// Tell what is more than noise with this confidence, 0 to 1.
    #[arg(long, value_name = "P", default_value_t = 0.99, value_parser = crate::filter::parse_share)]
    pub confidence: f64,

    /// Count units of work by events with NAME in theirs; without it by packets or I/Os where probes or
    /// tracepoints of them are on both sides, and by guest time.
    #[arg(long, value_name = "NAME")]
    pub work: Option<String>,

    /// Tell also what may be noise, or is small.
    #[arg(long)]
    pub all: bool,

    /// Show N changes at most.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Name functions after a copy of the host's /proc/kallsyms that root made, where the recording has no
    /// symbols itself.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after the text of it in --facts, or after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const COMPARE_HELP: &str = "Rates are for each second recorded, and for each unit of work where both sides count the \
same. The number in brackets is the confidence that a change is more than what varies within the recordings: slices of \
time are resampled, with several recordings on a side what differs from run to run counts too, and that many things are \
compared is taken into account. Where only printed tables are compared, counts stand for themselves, taken to come in \
bursts of ten; where a recording is compared with a table, only shares and means are. What is likely, with a confidence \
from 0.8 on, stands behind what is certain.

Examples:
  trapline compare before.dat after.dat
  trapline compare a1.data a2.data a3.data --with b1.data b2.data b3.data
  trapline compare vmexit-before.txt ioport-before.txt --with vmexit-after.txt
  trapline compare --each kvm-clock.dat tsc.dat hpet.dat --score sysbench=287.6,286.6,280.8
  trapline compare --work block_rq_complete --format json a.data b.data";
