//! `trapline why`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::options::values::seconds;

/// `trapline why`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    /// Look at this VM only, by its name as QEMU, libvirt, Proxmox or KubeVirt has it; a Proxmox VM's number will do.
    #[arg(long, value_name = "NAME")]
    pub vm: Option<String>,

    /// The same, by the process of its VMM.
    #[arg(long, value_name = "PID", conflicts_with = "vm")]
    pub pid: Option<i32>,

    /// Record for so many seconds. Ctrl-C ends it sooner, and what was recorded until then is reported.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub seconds: Duration,

    /// Write to this folder, which must not be there yet: perf.data, facts.json and report.html. The default is the
    /// first of trapline-1, trapline-2... that is free.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Let recording take so much of a CPU's time at most: where one second of counting shows that it would take more,
    /// less is recorded.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = crate::options::values::share)]
    pub budget: f64,

    /// Record nothing: say what is missing here, which VMs there are, and which commands would be run.
    #[arg(long)]
    pub dry_run: bool,
}

const EXAMPLES: &str = "It counts for a second what the vCPUs do, chooses events by that, records them as \
'trapline record' does, prints the first screen of 'trapline report', writes its page, and says what to change or what \
to look at next. Each command that it stands for is printed, so that every step can be repeated by hand. Nothing is \
left behind but the folder.

It needs root, or CAP_PERFMON and tracefs; CAP_BPF lets the kernel count. What is missing is said with its remedy, and \
what works without it is done: where nothing can be recorded, the definitions of the VMs are reported, and the host's \
settings written.

Examples:
  sudo trapline why                        all VMs of this host
  sudo trapline why --vm web --seconds 30  one VM, for half a minute
  trapline why --dry-run                   what it would do";
