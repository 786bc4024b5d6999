//! `trapline exits`: how often and for how long vCPUs were out of their guest, and why.

use std::cmp::Reverse;

use analysis::{
    By, Convention, ExitRow, ExitTable, Exits, ExitsReport, GuestStarts, Options, Picture,
};
use anyhow::{Context, Result, bail};
use doubts::Concern;
use event::{Isa, Quality};
use render::ClockUnit;
use render::{exits, perf_kvm};
use session::{Input, Wanted};

use crate::answer::Answer;
use crate::args::{ExitsArgs, GroupBy, Sort, Table, TimesAs};
use crate::opening::{self, Beside};
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &ExitsArgs) -> Result<()> {
    let beside = Beside {
        with_guests: true,
        mtree: args.mtree.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        guest_modules: args.guest_modules.as_deref(),
        ..Beside::default()
    };
    let inputs = args.guests.inputs(&args.recording);
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&args.recording, &args.guests.told())?;
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
            "--by function takes symbols of the guest's kernel: a copy of its /proc/kallsyms, read by root in the guest (--guest-kallsyms FILE), or \
             the guest's own trace.dat, which has them",
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
        sort(&mut report.rows, args.sort);
    }
    let isa = exits.isa();
    session.devices().name_rows(isa, &mut reports);
    let (names, quality) = (host.names(), answers.quality);
    let clock = ClockUnit::of(recording.nanoseconds());
    print(args, &names, isa, &reports, &quality, clock)
}

/// Returns what is to be counted. Tasks and functions of several guests may have the same names, so it is told of which VM they are.
fn options(args: &ExitsArgs, guests: usize, starts: GuestStarts) -> Options {
    let perf = args.convention == Some(TimesAs::Perf);
    let by = |what| args.by.contains(&what);
    let task = by(GroupBy::Task) || (args.by.is_empty() && guests > 0 && !perf);
    let function = by(GroupBy::Function);
    Options {
        tables: args.event.iter().map(|t| table(*t)).collect(),
        convention: if perf {
            Convention::Perf
        } else {
            Convention::Handling
        },
        by: By {
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

/// Prints what perf printed, in the layout of all tables.
fn of_tables(args: &ExitsArgs, input: &Input<'_>, pictures: Vec<Picture>) -> Result<()> {
    let name = input.name().to_owned();
    if !args.by.is_empty() {
        bail!("{name}: --by takes a recording: printed tables have sums over all VMs and vCPUs");
    }
    let described: Vec<String> = pictures.iter().map(session::describe).collect();
    let mut with_exits = pictures.into_iter().filter(|one| !one.exits.is_empty());
    let Some(mut picture) = with_exits.next() else {
        return Err(input.wrong(Wanted::Exits).into());
    };
    if with_exits.next().is_some() {
        bail!(
            "{name}: holds several tables of one kind ({}); put the one that is meant into a file of its own",
            described.join(", ")
        );
    }
    let asked = |report: &ExitsReport| args.event.iter().any(|t| table(*t) == report.table);
    // A file of one table need not be told which one that is.
    if picture.exits.iter().any(asked) {
        picture.exits.retain(asked);
    }
    let mut reports = in_order(picture.exits, &args.event);
    for report in &mut reports {
        sort(&mut report.rows, args.sort);
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
    let in_guest = rows
        .into_iter()
        .any(|row| row.task.is_some() || row.function.is_some());
    let answer = Answer {
        format: args.common.format,
        command: "exits",
        inputs,
        quality,
        clock,
    };
    answer.print(
        || {
            let layout = answer.layout(usize::MAX);
            let mut text = String::new();
            for report in reports {
                if args.convention == Some(TimesAs::Perf) {
                    text.push_str(&perf_kvm::table(report, args.common.filter.vcpu));
                } else {
                    text.push_str(&exits::table(isa, report, args.wide, layout));
                    // With tasks and functions it is wider than a terminal.
                    if args.wide || !in_guest {
                        text.push_str(&exits::split(report, layout));
                    }
                    text.push('\n');
                }
            }
            text.push_str(&output::quality(&inputs.join(", "), quality));
            text
        },
        || exits::document(isa, reports),
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

/// Sorts rows, largest first; equal ones keep the order by count.
pub(crate) fn sort(rows: &mut [ExitRow], by: Sort) {
    match by {
        Sort::Count => {}
        Sort::Time => rows.sort_by_key(|r| Reverse(r.stats.total())),
        Sort::Mean => rows.sort_by_key(|r| Reverse(r.stats.mean())),
        Sort::Max => rows.sort_by_key(|r| Reverse(r.stats.max())),
    }
}
