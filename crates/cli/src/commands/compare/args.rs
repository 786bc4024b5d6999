//! `trapline compare`.

use std::path::PathBuf;

use clap::Args;
use session::NamedGuest;

use crate::commands::compare::beside::BesideArgs;
use crate::options::{Common, GivenRecordings, named_guest};

/// `trapline compare`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = COMPARE_HELP,
    mut_arg("recordings", |words| words.required_unless_present("input").help(INPUTS)),
    mut_arg("input", |input| input.help("The same as REC, as perf has it. May be repeated."))
)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub recordings: GivenRecordings,

    /// The second group of recordings.
    #[arg(long, value_name = "REC", num_args = 1..)]
    pub with: Vec<PathBuf>,

    /// A recording that was made in a guest of the first side's host at the same time, with the name, UUID or process
    /// of the VM whose guest it is. That side has one host then. May be repeated. Guests whose recordings and their
    /// host's name each other need no option: they stand among the recordings.
    #[arg(long = "guest", value_name = "[NAME=]REC", value_parser = named_guest, conflicts_with = "each")]
    pub guest: Vec<NamedGuest>,

    /// The same of the second side's host.
    #[arg(long = "with-guest", value_name = "[NAME=]REC", value_parser = named_guest, conflicts_with = "each")]
    pub with_guest: Vec<NamedGuest>,

    /// Compare each recording with the first, in one table with a column for each.
    #[arg(long, conflicts_with = "with")]
    pub each: bool,

    /// With --each, show results that you measured yourself, such as a benchmark's: NAME=VALUE,VALUE,... with a value
    /// for each recording in order; NAME=VALUE where NAME is the letter of one recording or a part of its path; or a
    /// FILE with one line for each NAME and its values. May be repeated.
    #[arg(long, value_name = "FILE|NAME=VALUE", requires = "each")]
    pub score: Vec<String>,

    /// Show changes that are more than noise with at least this confidence, 0 to 1.
    #[arg(long, value_name = "P", default_value_t = 0.99, value_parser = crate::options::values::share)]
    pub confidence: f64,

    /// Count units of work by the events that have NAME in their names. Without it, work is counted by packets or I/Os
    /// where both sides recorded such events, and by guest time.
    #[arg(long, value_name = "NAME")]
    pub work: Option<String>,

    /// Show also changes that are small or may be noise.
    #[arg(long)]
    pub all: bool,

    /// Show at most N changes.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Name kernel functions with FILE, a copy of the host's /proc/kallsyms made by root, where the recording has no
    /// symbols itself. Without FILE, names are of this machine's kernel, or of a file, that has the build id.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// Name functions of guests' kernels in samples with FILE, a copy of a guest's /proc/kallsyms made by root.
    #[arg(long, value_name = "FILE")]
    pub guest_kallsyms: Option<PathBuf>,

    /// The definition of the guest on both sides, as diagnose takes it; --a-domain and --b-domain where each has its
    /// own.
    #[arg(long, value_name = "FILE", conflicts_with = "each")]
    pub domain: Option<PathBuf>,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub beside: BesideArgs,

    #[command(flatten)]
    pub common: Common,
}

const INPUTS: &str = "Two recordings, or, with --with, the first group of recordings. The printed output of perf kvm \
                      stat report, perf sched latency or perf stat can stand for a recording; FILE:LINE names one \
                      table of several, and a file with two of one kind is both sides. Or two or more results of \
                      'trapline bench', which stand side by side";

const COMPARE_HELP: &str = "Rates are per second recorded, and per unit of work where both sides count the same work. \
The number in brackets is the confidence that a change is more than the noise within the recordings. It is found by \
resampling slices of time; with several recordings on a side, differences from run to run count as noise too; and it \
is corrected for the number of things compared. Changes that are only likely (confidence 0.8 or more) stand below \
those that are certain. With recordings of guests on both sides, what the guests did is compared too. Two printed \
tables are compared by their counts, which are assumed to come in bursts of ten. A recording and a printed table are \
compared by shares and means only. Counters are compared for each unit of work. Results of a benchmark on both sides \
(--a-score, --b-score) stand first, and a rate among them counts work.

Examples:
  trapline compare before.dat after.dat
  trapline compare a1.data a2.data a3.data --with b1.data b2.data b3.data
  trapline compare vmexit-before.txt ioport-before.txt --with vmexit-after.txt
  trapline compare --each a.dat b.dat c.dat --score sysbench=287.6,286.6,280.8
  trapline compare a.data b.data --a-score sysbench-a.txt --b-score sysbench-b.txt
  trapline compare a.txt b.txt --a-domain a.xml --b-domain b.xml --a-facts a.json --b-facts b.json
  trapline compare a.dat b.dat a-guest.dat b-guest.dat
  trapline compare a.data b.data --guest a-guest.data --with-guest b-guest.data
  trapline compare default.json haltpoll.json idle-poll.json
  trapline compare --work block_rq_complete --format json a.data b.data";
