//! The arguments of `trapline diagnose`.

use std::path::PathBuf;

use clap::Args;

use crate::options::values::NameParser;
use crate::options::{Common, GivenRecordings, GuestOptions};

/// `trapline diagnose`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DIAGNOSE_HELP)]
#[command(mut_arg("recordings", |words| words.help(INPUTS)))]
pub(crate) struct DiagnoseArgs {
    #[command(flatten)]
    pub recordings: GivenRecordings,

    /// Read the guest's definition and check it too: the output of 'virsh dumpxml', QEMU's command line (the output of
    /// 'ps -eww -o args', or /proc/PID/cmdline), or a Proxmox VM's .conf. Without a recording only the definition is
    /// checked, and the option may be repeated.
    #[arg(long, value_name = "FILE")]
    pub domain: Vec<PathBuf>,

    /// Print only the change of the definition that the findings ask for, as a unified diff; without a recording what
    /// the remarks ask for.
    #[arg(long)]
    pub patch: bool,

    /// Name kernel functions with FILE, a copy of the host's /proc/kallsyms made by root, where the recording has no
    /// symbols itself. Without FILE, names are of this machine's kernel, or of a file, that has the build id.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// Name functions of guests' kernels in samples with FILE, a copy of a guest's /proc/kallsyms made by root.
    #[arg(long, value_name = "FILE")]
    pub guest_kallsyms: Option<PathBuf>,

    /// Name every cause that could not be checked, with what it needs, and every one that was looked for and not found,
    /// with the least that would have been found.
    #[arg(long)]
    pub full: bool,

    /// Only check this rule. May be repeated.
    #[arg(long, value_name = "ID", hide_possible_values = true, value_parser = NameParser::rule())]
    pub rule: Vec<String>,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub guests: GuestOptions,

    #[command(flatten)]
    pub common: Common,
}

const INPUTS: &str = "Recordings of one situation; the printed output of perf kvm stat report or perf sched latency; \
                      or a ticket, mail or page with several of these, definitions of guests and facts. - is standard \
                      input.";

const DIAGNOSE_HELP: &str = "Findings are ranked by the time they cost. Below them stands how many causes \
could not be checked, with the command that records what they need, and how many were looked for and not found; --full \
names them. 'trapline rules ID' explains a rule.

Record with 'trapline record', so that most rules can be checked; it puts the host's settings beside. With a recording \
of 'trace-cmd record -e kvm -e sched -e irq' add them yourself: 'trapline facts --format json > facts.json'.

Examples:
  trapline diagnose perf.data.guest
  trapline diagnose --facts facts.json --domain dom.xml trace.dat
  trapline diagnose host.dat guest-a.dat        and which of the guest's tasks it was
  trapline diagnose vmexit.txt ioport.txt       two tables that perf printed
  trapline diagnose --domain w.xml              the definition alone: remarks, of which nothing is measured
  ps -eww -o args | trapline diagnose --domain - --vm web
  trapline diagnose --domain w.xml --patch vmexit.txt ioport.txt | patch w.xml
  virsh dumpxml web | trapline diagnose --domain - --format json trace.dat";
