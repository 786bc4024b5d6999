//! `trapline diagnose`.

use std::path::PathBuf;

use clap::Args;

use super::Common;
use super::rules::parse_rule;

/// `trapline diagnose`.
#[derive(Debug, Args)]
#[command(after_help = DIAGNOSE_HELP)]
pub(crate) struct DiagnoseArgs {
    /// Recordings of one situation, or what perf kvm stat report or perf sched latency printed of it; - is
    /// standard input.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,

    /// The guest's definition, as 'virsh dumpxml' prints it.
    #[arg(long, value_name = "FILE")]
    pub domain: Option<PathBuf>,

    /// Print the change of the definition that findings ask for, as a unified diff, and nothing else.
    #[arg(long, requires = "domain")]
    pub patch: bool,

    /// Name functions after a copy of the host's /proc/kallsyms that root made, where the recording has no
    /// symbols itself.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// Only what this rule says. May be repeated.
    #[arg(long, value_name = "ID", value_parser = parse_rule)]
    pub rule: Vec<String>,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after the text of it in --facts, or after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const DIAGNOSE_HELP: &str = "Findings are ranked by the time they cost. What a rule would need to know and the recording \
does not have is told below them; what was looked for and is not there as well. 'trapline rules ID' explains a rule.

Recordings that tell most: 'trace-cmd record -e kvm -e sched -e irq', or
'perf record -a -e \"kvm:*\" -e \"sched:*\"'; 'trapline facts --format json' on the host beside it.

Examples:
  trapline diagnose perf.data.guest
  trapline diagnose --facts facts.json --domain dom.xml trace.dat
  trapline diagnose vmexit.txt ioport.txt       tables that perf kvm stat report printed
  trapline diagnose --domain win.xml --patch vmexit.txt ioport.txt | patch win.xml
  virsh dumpxml web | trapline diagnose --domain - --format json trace.dat";
