//! `trapline exits`: how often and for how long vCPUs were out of their guest, and why.

use std::path::PathBuf;

use analysis::{
    Convention, ExitOptions, ExitTable, Exits, ExitsReport, GuestStarts, Picture, RowSplit,
};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use doubts::Concern;
use event::{Isa, Quality};
use render::{ClockUnit, exits, exits_document, perf_kvm};
use session::{Input, InputPurpose};

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GuestArgs, RowLimit, sort_by};
use crate::output;

/// `trapline exits`.
#[derive(Debug, Args)]
#[command(after_help = EXITS_HELP)]
#[command(mut_arg("recordings", |words| words.help(INPUT)))]
pub(crate) struct ExitsArgs {
    #[command(flatten)]
    pub guests: GuestArgs,

    /// Show these tables: exits by reason, I/O ports, memory-mapped I/O, model-specific registers.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "TABLES",
        default_value = "vmexit"
    )]
    pub event: Vec<Table>,

    /// Give each VM, each vCPU, each task of a guest, or each function of a guest's kernel, rows of its own. With
    /// guests' recordings that is 'task' unless something else is asked for.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub by: Vec<GroupBy>,

    /// Time exits as this tool does, and print its table. On arm64, perf measures from entry to exit: the guest's time.
    #[arg(long = "as", value_enum, value_name = "TOOL")]
    pub convention: Option<TimesAs>,

    /// Show all columns, for terminals wider than 80 columns.
    #[arg(long)]
    pub wide: bool,

    /// Sort rows by a column, largest first: count, time, mean, max or p99, or any other by what stands above it or by
    /// its name in CSV.
    #[arg(long, value_name = "COLUMN", default_value = "count")]
    pub sort: String,

    #[command(flatten)]
    pub limit: RowLimit,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    /// Name functions of guests' kernels with FILE, a copy of a guest's /proc/kallsyms made by root, where the guest's
    /// own recording has no symbols or is not given.
    #[arg(long, value_name = "FILE")]
    pub guest_kallsyms: Option<PathBuf>,

    /// Read where modules of guests' kernels are from FILE, a copy of a guest's /proc/modules made by root.
    #[arg(long, value_name = "FILE")]
    pub guest_modules: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

const INPUT: &str = "Recording, or the printed output of perf kvm stat report, or - for standard input, and behind it \
                     recordings (GUEST) that were made in its guests at the same time";

const EXITS_HELP: &str = "An exit is timed from kvm_exit to the next kvm_entry of the same thread. Accesses to ports \
and registers are timed from their own event to that entry, MMIO reads from the exit to the event with the value. \
Exits in which the guest asked to wait (HLT, WFx) are marked, and are not part of the handling time.

Examples:
  trapline exits perf.data.guest
  trapline exits --event vmexit,ioport,mmio,msr --format json trace.dat
  trapline exits --by vcpu --sort time --wide perf.data
  trapline exits --event mmio --wide --mtree mtree.txt perf.data
  trapline exits --as perf perf.data.guest  the table of perf kvm stat report
  trapline exits host.dat guest.dat         which of the guest's tasks made them
  trapline exits --by function --guest-kallsyms kallsyms --event mmio host.dat
                                            which of the guest's functions made them
  trapline exits --sort time vmexit.txt     a table that perf printed";

/// Whose way of timing exits to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimesAs {
    /// As perf kvm stat does.
    Perf,
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

/// What separates rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    /// VMs.
    Vm,
    /// vCPUs.
    Vcpu,
    /// Tasks, interrupts and softirqs of guests whose recordings are given.
    Task,
    /// Functions of the guest's kernel in which it was when it left.
    Function,
}

/// Runs the command.
pub(crate) fn run(args: &ExitsArgs) -> Result<()> {
    let beside = AccompanyingFiles {
        with_guests: true,
        mtree: args.mtree.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        guest_modules: args.guest_modules.as_deref(),
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let input = host.input();
    if !host.has_guests()
        && let Some(pictures) = input.tables()?
    {
        return of_tables(args, input, pictures);
    }
    let recording = input.recording()?;
    let paired = host.paired(&recording)?;
    let guests = &paired.guests;
    if args.by.contains(&GroupBy::Task) && guests.is_empty() {
        bail!(
            "--by task takes recordings of guests: which task made an exit stands in the guest's own recording"
        );
    }
    let functions = args.by.contains(&GroupBy::Function);
    let starts = match functions {
        true => recording.guest_starts(guests).context(
            "--by function takes symbols of the guest's kernel: a copy of its /proc/kallsyms, read by root in the \
             guest (--guest-kallsyms FILE), or the guest's own trace.dat, which has them",
        )?,
        false => GuestStarts::default(),
    };
    let mut question = recording.question(&paired);
    let asked = question.add(Exits::new(options(args, guests.len(), starts)));
    if !args.by.is_empty() {
        question.showing(Concern::Vms);
    }
    let mut answers = question.walk();
    let exits = answers.take(asked);
    recording.require_exits(exits.saw_exits())?;
    let mut reports = in_order(exits.reports(answers.walked().machine), &args.event);
    if functions {
        recording.name_guest_functions(&mut reports, guests, &mut answers.quality);
    }
    for report in &mut reports {
        sort_by(&args.sort, |column| exits::sort(report, column))?;
    }
    let isa = exits.isa();
    session.devices().name_rows(isa, &mut reports);
    let (names, quality) = (host.names(), answers.quality);
    let clock = ClockUnit::of(recording.nanoseconds());
    print(args, &names, isa, &reports, &quality, clock)
}

/// Returns what is to be counted. Tasks and functions of several guests may have the same names, so each says of which
/// VM it is.
fn options(args: &ExitsArgs, guests: usize, starts: GuestStarts) -> ExitOptions {
    let perf = args.convention == Some(TimesAs::Perf);
    let by = |what| args.by.contains(&what);
    let task = by(GroupBy::Task) || (args.by.is_empty() && guests > 0 && !perf);
    let function = by(GroupBy::Function);
    ExitOptions {
        tables: args.event.iter().map(|t| table(*t)).collect(),
        convention: if perf {
            Convention::Perf
        } else {
            Convention::Handling
        },
        by: RowSplit {
            vm: by(GroupBy::Vm) || (guests > 1 && (task || function)),
            vcpu: by(GroupBy::Vcpu),
            task,
            function,
        },
        starts,
        // perf's table has no column for where the time went.
        split: !perf,
    }
}

/// Says which of several tables could be meant, and how to name one.
pub(super) fn ambiguous<'p>(
    name: &str,
    of: &str,
    pictures: impl Iterator<Item = &'p Picture>,
) -> String {
    let lines = pictures.filter_map(|one| one.first_line);
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    let first = lines.first().map_or("LINE", String::as_str);
    format!(
        "{name}: holds several tables of {of}, in lines {}: name the one that is meant as {name}:{first}",
        words::list(&lines)
    )
}

/// Prints what perf printed, in the layout of all tables.
fn of_tables(args: &ExitsArgs, input: &Input<'_>, pictures: Vec<Picture>) -> Result<()> {
    let name = input.name().to_owned();
    if !args.by.is_empty() {
        bail!("{name}: --by takes a recording: printed tables have sums over all VMs and vCPUs");
    }
    let with_exits = || pictures.iter().filter(|one| !one.exits.is_empty());
    if with_exits().count() > 1 {
        bail!("{}", ambiguous(&name, "exits", with_exits()));
    }
    let mut with_exits = pictures.into_iter().filter(|one| !one.exits.is_empty());
    let Some(mut picture) = with_exits.next() else {
        return Err(input.wrong(InputPurpose::Exits).into());
    };
    let asked = |report: &ExitsReport| args.event.iter().any(|t| table(*t) == report.table);
    // A file of one table needs no option that says which one that is.
    if picture.exits.iter().any(asked) {
        picture.exits.retain(asked);
    }
    let mut reports = in_order(picture.exits, &args.event);
    for report in &mut reports {
        sort_by(&args.sort, |column| exits::sort(report, column))?;
    }
    let clock = ClockUnit::Nanoseconds;
    print(
        args,
        &[name],
        picture.isa,
        &reports,
        &picture.quality,
        clock,
    )
}

/// Prints tables of one input.
fn print(
    args: &ExitsArgs,
    inputs: &[String],
    isa: Option<Isa>,
    reports: &[ExitsReport],
    quality: &Quality,
    clock: ClockUnit,
) -> Result<()> {
    let rows = reports.iter().flat_map(|report| &report.rows);
    let is_grouped = rows.into_iter().any(|row| {
        let in_guest = row.task.is_some() || row.function.is_some();
        in_guest || row.vm.is_some() || row.vcpu.is_some()
    });
    let answer = Answer {
        format: args.common.format,
        command: "exits",
        inputs,
        quality,
        clock,
    };
    answer.print(
        || {
            let layout = answer.layout(args.limit.rows());
            let mut text = String::new();
            for report in reports {
                if args.convention == Some(TimesAs::Perf) {
                    text.push_str(&perf_kvm::table(report, args.common.filter.vcpu));
                } else {
                    text.push_str(&exits::table(isa, report, args.wide, layout));
                    // With VMs, tasks and functions it is wider than a terminal.
                    if args.wide || !is_grouped {
                        text.push_str(&exits::split(report, layout));
                    }
                    text.push('\n');
                }
            }
            text.push_str(&output::quality(&inputs.join(", "), quality));
            text
        },
        || exits_document::document(isa, reports, &quality.all_doubts()),
        |clock| exits::csv(isa, reports, clock),
    )
}

/// Returns the table an argument names.
fn table(table: Table) -> ExitTable {
    match table {
        Table::Vmexit => ExitTable::Vmexit,
        Table::Ioport => ExitTable::Ioport,
        Table::Mmio => ExitTable::Mmio,
        Table::Msr => ExitTable::Msr,
    }
}

/// Returns the reports in the order they were asked for.
fn in_order(reports: Vec<ExitsReport>, asked: &[Table]) -> Vec<ExitsReport> {
    let mut reports = reports;
    reports.sort_by_key(|r| asked.iter().position(|t| table(*t) == r.table));
    reports
}
