//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Where did my virtual machine's time go, and what do I change?
///
/// Reads KVM recordings made by perf or trace-cmd, and their text output: perf.data (file and pipe mode,
/// compressed or not), trace.dat version 6 and 7, text of `perf script` and `trace-cmd report`, and the
/// kernel's own trace file; all of them also wrapped in gzip or zstd, and from standard input as `-`.
#[derive(Debug, Parser)]
#[command(name = "trapline", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  trapline report perf.data.guest          one screen: what is in it, where exits spent their time
  trapline exits --event ioport perf.data  which I/O ports the guest touches, and what that costs
  trapline vcpus trace.dat                 where each vCPU's time went, and behind whom it waited
  trapline diagnose trace.dat              why it is slow, and what to change
  trapline compare before.dat after.dat    what changed, largest effect on time first
  trapline sched --by cpu trace.dat        who waited for which CPU, and how long
  trapline events trace.dat | grep kvm_msr the events, as trace-cmd report -N prints them
  trapline events --console trace.dat      what guests wrote to their serial consoles
  trapline exits --facts ps.txt --vm web trace.dat  the VM that QEMU was told to call web
  trapline facts --format json > facts.json the host's own settings, for --facts
  perf record -e 'kvm:*' -a -o - sleep 5 | trapline report -

Exit status: 0 done, 1 the recording cannot be read or lacks what was asked for, 2 wrong usage.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show one screen about a recording: what is in it, exits by cost, what was lost.
    Report(ReportArgs),
    /// Find out why a VM is slow, and what to change: findings with evidence, cause, remedies and their price.
    Diagnose(DiagnoseArgs),
    /// Show what changed between two recordings, or two groups of them, largest effect on time first.
    Compare(CompareArgs),
    /// List the causes that diagnose looks for, or explain them.
    Rules(RulesArgs),
    /// Show what is in a recording: format, machine, clock, events, VMs and vCPUs, losses.
    Info(InfoArgs),
    /// Print the events in time order, as perf script or trace-cmd report -N would.
    Events(EventsArgs),
    /// Count exits and their time by reason, port, address or register.
    Exits(ExitsArgs),
    /// Show where each vCPU's time went: in guest, in KVM, in the VMM, polling, halted, waiting for a CPU.
    Vcpus(VcpusArgs),
    /// Show latency paths stage by stage, and what slow instances have in common.
    Paths(PathsArgs),
    /// Show scheduling latency per task or CPU: delays, preemption, wakers, kworkers by function.
    Sched(SchedArgs),
    /// Show the facts of this host: CPUs, clocks, settings, KVM, VMs and what they are pinned to.
    Facts(FactsArgs),
}

/// What every command understands.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Common {
    /// Output as a table for people, as JSON or as comma separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Take event formats from another recording of the same kernel, or from (a copy of) its
    /// /sys/kernel/tracing/events, for a perf.data that lost its own.
    #[arg(long, value_name = "REC|DIR")]
    pub formats: Option<PathBuf>,

    /// Take from FILE what the recording does not tell of its host: threads and VMs from the text of
    /// 'ps -eLo pid,tid,comm,args', vCPUs from 'info cpus' of QEMU's monitor or QMP's query-cpus-fast, devices
    /// from 'info mtree', or all of it and the host's settings from the JSON of 'trapline facts'. Names that the recording has stay. - is
    /// standard input. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub facts: Vec<PathBuf>,

    /// Keep no more than SIZE of a recording that is packed or comes through a pipe, as 500M or 2T: what cannot be
    /// mapped is unpacked into memory, and from 16 MiB on into the folder that TMPDIR names. By default 64G, and of what is packed
    /// no more than recordings unpack to.
    #[arg(long, value_name = "SIZE", value_parser = crate::filter::parse_size)]
    pub spool_limit: Option<u64>,

    #[command(flatten)]
    pub filter: FilterArgs,
}

/// Filters shared by all commands. They choose vCPUs, and what is told of them is the same as without a filter; of events
/// and info they choose events.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only vCPUs (of sched: tasks; of events and info: events) of this process or thread.
    #[arg(long, value_name = "PID")]
    pub pid: Option<i32>,

    /// Only the VM with this name, UUID or process id, or whose process has this name; of events and info: the events
    /// of its vCPUs' threads.
    #[arg(long, value_name = "NAME")]
    pub vm: Option<String>,

    /// Only the vCPU with this number, of each VM without --vm.
    #[arg(long, value_name = "N")]
    pub vcpu: Option<u32>,

    /// Only events on these CPUs, as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = crate::filter::parse_cpus)]
    pub cpu: Option<cpuset::CpuSet>,

    /// Only what happens from FROM to TO, as info and events print times: in seconds, or where the recording's clock
    /// has no decimals as whole numbers. Either may be left out.
    #[arg(long, value_name = "FROM,TO", value_parser = crate::filter::parse_time)]
    pub time: Option<crate::filter::TimeRange>,
}

impl FilterArgs {
    /// Returns whether any filter was given.
    pub(crate) fn any(&self) -> bool {
        let threads = self.pid.is_some() || self.vm.is_some() || self.vcpu.is_some();
        threads || self.cpu.is_some() || self.time.is_some()
    }
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
}

/// Whose conventions to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum As {
    /// As perf does.
    Perf,
    /// As trace-cmd does.
    #[value(name = "trace-cmd")]
    TraceCmd,
}

/// Whose way of timing exits to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimesAs {
    /// As perf kvm stat does.
    Perf,
}

/// `trapline report`.
#[derive(Debug, ClapArgs)]
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

/// `trapline diagnose`.
#[derive(Debug, ClapArgs)]
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

/// `trapline compare`.
#[derive(Debug, ClapArgs)]
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

/// Reads the name of a rule.
fn parse_rule(id: &str) -> Result<String, String> {
    match rules::rule(id) {
        Some(rule) => Ok(rule.id.to_owned()),
        None => Err("there is no such rule; 'trapline rules' lists them".to_owned()),
    }
}

/// `trapline rules`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RulesArgs {
    /// Rules to explain; none lists all.
    #[arg(value_name = "ID", value_parser = parse_rule)]
    pub rule: Vec<String>,

    /// Explain all.
    #[arg(long)]
    pub explain: bool,

    /// Output as text for people, as JSON or as comma separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `trapline info`.
#[derive(Debug, ClapArgs)]
pub(crate) struct InfoArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    #[command(flatten)]
    pub common: Common,
}

/// `trapline events`.
#[derive(Debug, ClapArgs)]
pub(crate) struct EventsArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// Only events whose name, or SYSTEM:NAME, matches; * and ? stand for anything. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub event: Vec<String>,

    /// Print what guests wrote to their serial lines instead, line by line, from the values that kvm_pio (x86) and
    /// kvm_mmio (arm64) events record.
    #[arg(long, conflicts_with_all = ["event", "convention"])]
    pub console: bool,

    /// Print lines as this tool does, whatever made the recording.
    #[arg(long = "as", value_enum, value_name = "TOOL")]
    pub convention: Option<As>,

    /// Print times to the nanosecond.
    #[arg(long)]
    pub ns: bool,

    #[command(flatten)]
    pub common: Common,
}

/// `trapline exits`.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXITS_HELP)]
pub(crate) struct ExitsArgs {
    /// Recording, or what perf kvm stat report printed; - is standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// Tables to show: exits by reason, I/O ports, memory-mapped I/O, model specific registers.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "TABLES",
        default_value = "vmexit"
    )]
    pub event: Vec<Table>,

    /// Rows apart for each VM, or each vCPU.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub by: Vec<GroupBy>,

    /// Time exits as this tool does, and print its table: perf times arm64 exits from entry to exit.
    #[arg(long = "as", value_enum, value_name = "TOOL")]
    pub convention: Option<TimesAs>,

    /// All columns, for terminals wider than 80.
    #[arg(long)]
    pub wide: bool,

    /// Sort rows by count, by time, by mean, or by the longest.
    #[arg(long, value_enum, default_value_t = Sort::Count)]
    pub sort: Sort,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after the text of it in --facts, or after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const EXITS_HELP: &str = "An exit is timed from kvm_exit to the next kvm_entry of its thread; accesses to \
ports and registers from their event to the entry, MMIO reads from the exit to the value. Exits in which the \
guest asked to wait (HLT, WFx) are marked, and kept out of the handling time.

Examples:
  trapline exits perf.data.guest
  trapline exits --event vmexit,ioport,mmio,msr --format json trace.dat
  trapline exits --by vcpu --sort time --wide perf.data
  trapline exits --event mmio --wide --mtree mtree.txt perf.data
  trapline exits --as perf perf.data.guest  the table perf kvm stat report prints
  trapline exits --sort time vmexit.txt     a table that perf kvm stat report printed";

/// `trapline vcpus`.
#[derive(Debug, ClapArgs)]
#[command(after_help = VCPUS_HELP)]
pub(crate) struct VcpusArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// Durations instead of shares, and all of the lists, for terminals wider than 80.
    #[arg(long)]
    pub wide: bool,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const VCPUS_HELP: &str =
    "Each instant of a vCPU is in one state, so that a row adds up to the time it was \
observed: from its first exit or entry to the end of the recording.

  guest     it runs the guest
  kernel    KVM handles an exit
  user      the VMM handles an exit
  poll      its guest halted, and KVM polls before it gives the CPU away (halt_poll_ns)
  halted    its guest halted
  runnable  it could go on and another task has the CPU
  unknown   events that would tell were lost or not recorded

That takes the events of kvm and sched: 'trace-cmd record -e kvm -e sched' or
'perf record -a -e \"kvm:*\" -e \"sched:*\"'. What lacks is told below the table.

Examples:
  trapline vcpus trace.dat
  trapline vcpus --wide --vcpu 1 perf.data
  trapline vcpus --time 12.5,13 --format json trace.dat";

/// `trapline sched`.
#[derive(Debug, ClapArgs)]
#[command(after_help = SCHED_HELP)]
pub(crate) struct SchedArgs {
    /// Recording, or what perf sched latency printed; - is standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// Rows for each thread, for each name, or for each CPU.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = SchedBy::Task)]
    pub by: SchedBy,

    /// Sort rows by mean or longest delay, by switches, by run time, or by time waited after preemption.
    #[arg(long, value_enum, default_value_t = SchedSort::Mean)]
    pub sort: SchedSort,

    /// Show N rows at most.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Show how many delays there are of each length, in powers of two.
    #[arg(long)]
    pub histogram: bool,

    #[command(flatten)]
    pub common: Common,
}

const SCHED_HELP: &str = "Delays, switches and run times are those of perf sched latency: --by task has its \
table with -p, --by comm the one without. The last two columns are how long tasks waited for a CPU in all: after \
they were woken, and, which perf leaves out, after they were preempted. --vm, --vcpu and --pid choose rows; --time and --cpu choose events.

Examples:
  trapline sched perf.data
  trapline sched --by cpu trace.dat
  trapline sched --vcpu 0 --histogram trace.dat
  trapline sched --sort preempted --limit 10 perf.data";

/// `trapline paths`.
#[derive(Debug, ClapArgs)]
#[command(after_help = PATHS_HELP)]
pub(crate) struct PathsArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    pub recording: PathBuf,

    /// A built-in path, or a file of one; all built-in paths without it. May be repeated.
    #[arg(long, value_name = "NAME|FILE")]
    pub path: Vec<String>,

    /// From this event, as NAME, SYSTEM:NAME or fn:FUNCTION, with conditions behind it: kvm_pio[port==0x3f8,write==1].
    #[arg(long, value_name = "EVENT[COND]", requires = "to")]
    pub from: Option<String>,

    /// To this event; it is joined to the nearest one before it that --from means.
    #[arg(long, value_name = "EVENT[COND]", requires = "from")]
    pub to: Option<String>,

    /// What both events have the same of: thread, cpu, vcpu, the name of a field, or any.
    #[arg(long, value_name = "WHAT", default_value = "thread", requires = "from")]
    pub join: String,

    /// Take instances for slow from this total on (as 250us, 5ms), instead of finding a threshold.
    #[arg(long, value_name = "TIME", value_parser = crate::filter::parse_duration)]
    pub slow: Option<u64>,

    /// Print every instance: when it reached which step, and what else is known of it.
    #[arg(long, conflicts_with = "instance")]
    pub each: bool,

    /// Print one instance of a path: its steps, what was going on, its events, and a sequence diagram.
    #[arg(long, value_name = "N")]
    pub instance: Option<u64>,

    /// Draw the instance's sequence diagram as text, or for Mermaid.
    #[arg(long, value_enum, value_name = "AS", default_value_t = Diagram::Text)]
    pub diagram: Diagram,

    /// Name I/O ports and MMIO addresses after what QEMU's monitor printed for 'info mtree'; without it,
    /// after where QEMU's machines have their devices by default.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const PATHS_HELP: &str = "Built-in paths:
  halt-wake  a halted vCPU is woken, gets a CPU, and enters its guest
  irqfd      an interrupt that a back end raises through an eventfd, up to the guest
  ipi        one vCPU interrupts another
  timer      a vCPU's own timer interrupts its guest
  kick       the guest notifies a device; its back end works, and answers
  user-exit  an exit that the VMM handles
and, where it is asked for by name,
  device-irq a device's interrupt, from whoever raises it, up to the guest

They are files in the language of --path (docs/paths.md); what they find depends on what was recorded: events of \
kvm and sched, and probes on eventfd_signal and irqfd_wakeup for where interrupts come from. --vm, --vcpu and --pid choose \
which vCPUs instances are about; --time chooses when they begin.

Examples:
  trapline paths trace.dat
  trapline paths --path irqfd --slow 5ms trace.dat
  trapline paths --path irqfd --instance 33 trace.dat
  trapline paths --path irqfd --each --format csv trace.dat
  trapline paths --from 'kvm_exit[reason==HLT]' --to kvm_entry --join vcpu perf.data  on AMD reason==hlt
  trapline paths --from netdev_rxq_recv --to netdev_send__return ovs.perf.data";

/// `trapline facts`.
#[derive(Debug, ClapArgs)]
#[command(after_help = FACTS_HELP)]
pub(crate) struct FactsArgs {
    /// Show what these files tell (see --facts of the other commands) instead of looking at a host; - is standard
    /// input.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read the host's files below DIR: those of another host, as a container has them mounted or as
    /// sosreport copied them.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        conflicts_with = "files"
    )]
    pub root: PathBuf,

    /// Output as a table for people, as JSON or as comma separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// All of the lists in the table.
    #[arg(long)]
    pub wide: bool,
}

const FACTS_HELP: &str = "Reads files of /proc, /sys and /boot, and changes nothing; as root it sees more, KVM's counters \
first of all. What cannot be read is listed. The environment of processes is never read, and values of command lines \
that are or may be secret are masked (***).

Examples:
  trapline facts
  trapline facts --format json > facts.json      to be given to other commands with --facts
  trapline vcpus --facts facts.json trace.dat
  trapline facts --root /proc/1/root             the host, from inside a container
  trapline facts --root sosreport-web1/
  trapline facts facts.json                      what the file tells
  trapline facts --format csv | grep halt_poll";

/// Notations of sequence diagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Diagram {
    /// Columns of text.
    Text,
    /// Mermaid's sequenceDiagram.
    Mermaid,
}

/// What rows of scheduling latencies are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchedBy {
    /// Threads.
    Task,
    /// All threads of one name.
    Comm,
    /// CPUs.
    Cpu,
}

/// Orders of rows of scheduling latencies, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchedSort {
    /// Mean delay.
    Mean,
    /// Longest delay.
    Max,
    /// Switches.
    Switches,
    /// Run time.
    Runtime,
    /// Time waited after preemption.
    Preempted,
}

/// Tables of exit statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// Exits by reason.
    Vmexit,
    /// I/O ports.
    Ioport,
    /// Memory-mapped I/O.
    Mmio,
    /// Model specific registers.
    Msr,
}

/// What rows are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    /// VMs.
    Vm,
    /// vCPUs.
    Vcpu,
}

/// Orders of rows, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Count.
    Count,
    /// Total time.
    Time,
    /// Mean time.
    Mean,
    /// Longest time.
    Max,
}
