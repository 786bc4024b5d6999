//! `trapline sched`: scheduling latency of tasks and CPUs.

use std::cmp::Reverse;

use analysis::{ContinuityReport, Merge, Picture, Sched, SchedReport, Study, TaskRow, Turns};
use anyhow::{Result, bail};
use event::Quality;
use render::{Layout, json, quality, sched};
use symbols::Functions;

use crate::args::{Format, SchedArgs, SchedBy, SchedSort};
use crate::commands::VERSION;
use crate::filter::Scope;
use crate::{input, output, tables, wrong_input};

/// Runs the command.
pub(crate) fn run(args: &SchedArgs) -> Result<()> {
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let recording = input::open(&args.recording, &args.common)?;
    let devices = input::Devices::open(None, &facts)?;
    let filtered = args.common.filter.any();
    if let Some(pictures) = tables::only(&recording, &args.recording, &lender, &devices, filtered)?
    {
        return of_tables(args, pictures, &facts);
    }
    // Symbols name the functions of kworkers.
    let reader = wrong_input::reader(&recording, lender.options(true))?;
    let name = input::name(&args.recording);
    let filters = input::Filter::new(&args.common.filter, &facts, &reader, &name)?;
    let mut sched = Sched::new();
    let formats = reader.formats();
    sched.caller_at(formats.and_then(|formats| formats.kallsyms.range(Sched::caller())));
    let mut study = Study::default().with(sched);
    study.saved_names(input::saved_names(&reader));
    study.told(&facts.told_of(&reader));
    let mut outcome = filters.walk(&reader, &mut study, Scope::Window);
    study.finish();
    let sched = study.get::<Sched>().filter(|sched| sched.saw_switches());
    let Some(sched) = sched else {
        if reader.lacks_formats() {
            bail!(
                "{name}: the part of the file that has the event formats is missing, so the scheduler's \
                 events cannot be told from others; name another recording of the same kernel with --formats"
            );
        }
        if args.common.filter.any() {
            bail!("{name}: no sched_switch event passes the filters");
        }
        bail!(
            "{name}: holds no sched_switch events, which scheduling latencies are made of ({}); record with \
             'perf sched record' or 'trace-cmd record -e sched'",
            wrong_input::holds(&reader)
        );
    };
    let merge = match args.by {
        SchedBy::Comm => Merge::ByComm,
        SchedBy::Task | SchedBy::Cpu => Merge::No,
    };
    let symbols = reader.formats().map(|formats| &formats.kallsyms);
    let functions = Functions::new(symbols, None);
    let threads = study.walked().machine.threads();
    let mut report = sched.report(
        threads,
        merge,
        &|tid, pid| filters.keeps(tid, pid),
        functions,
    );
    sort(&mut report.rows, args.sort);
    facts.warn(&mut outcome.quality);
    filters.warn(&mut outcome.quality);
    for lack in &report.lacks {
        outcome.quality.warn(*lack);
    }
    let switches = Turns {
        all: report.cpus.iter().map(|cpu| cpu.switches).sum(),
        missed: report.cpus.iter().map(|cpu| cpu.unseen).sum(),
        of: report.cpus.len() as u64,
    };
    let continuity = ContinuityReport {
        switches,
        ..ContinuityReport::default()
    };
    if let Some(warning) = continuity.warning() {
        outcome.quality.warn(warning);
    }
    if outcome.quality.lost_events > 0 {
        outcome.quality.warn(
            "Events were lost: a delay may have begun or ended with one of them, in perf sched latency too.",
        );
    }
    let nanoseconds = input::nanoseconds(reader.header());
    print(args, &name, &report, &outcome.quality, nanoseconds)
}

/// Prints what perf sched latency printed, in the layout of all tables.
fn of_tables(args: &SchedArgs, pictures: Vec<Picture>, facts: &input::Facts) -> Result<()> {
    let name = input::name(&args.recording);
    if args.by == SchedBy::Cpu || args.histogram {
        bail!(
            "{name}: --by cpu and --histogram take a recording: a printed table does not tell of CPUs and single delays"
        );
    }
    let several = pictures.iter().filter(|one| one.sched.is_some()).count() > 1;
    if several {
        bail!(
            "{name}: holds several tables of perf sched latency; put the one that is meant into a file of its own"
        );
    }
    let describe = pictures.first().map(tables::describe).unwrap_or_default();
    let found = pictures.into_iter().find(|one| one.sched.is_some());
    let Some(Picture {
        sched: Some(mut report),
        mut quality,
        ..
    }) = found
    else {
        bail!(
            "{name}: holds what {describe} printed, and no table of perf sched latency; 'trapline report {name}' shows it"
        );
    };
    sort(&mut report.rows, args.sort);
    facts.warn(&mut quality);
    print(args, &name, &report, &quality, true)
}

fn print(
    args: &SchedArgs,
    name: &str,
    report: &SchedReport,
    quality: &Quality,
    nanoseconds: bool,
) -> Result<()> {
    match args.common.format {
        Format::Table => {
            let layout = Layout {
                width: output::width(),
                limit: args.limit.unwrap_or(usize::MAX),
                nanoseconds,
            };
            let mut text = match args.by {
                SchedBy::Cpu => sched::cpus(report, layout),
                SchedBy::Task | SchedBy::Comm => sched::table(report, layout),
            };
            text.push('\n');
            if args.histogram {
                text.push_str(&sched::histogram(report, layout));
                text.push('\n');
            }
            text.push_str(&quality::lines(name, quality, output::width()));
            output::print(&text)
        }
        Format::Json => {
            let mut document = json::envelope(VERSION, "sched", &[name.to_owned()], quality);
            sched::json(&mut document, report);
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&match args.by {
            SchedBy::Cpu => sched::cpus_csv(report),
            SchedBy::Task | SchedBy::Comm => sched::csv(report),
        }),
    }
}

/// Sorts rows, largest first; equal ones keep the order by mean.
fn sort(rows: &mut [TaskRow], by: SchedSort) {
    match by {
        SchedSort::Mean => {}
        SchedSort::Max => rows.sort_by_key(|r| Reverse(r.delays.max())),
        SchedSort::Switches => rows.sort_by_key(|r| Reverse(r.delays.count())),
        SchedSort::Runtime => rows.sort_by_key(|r| Reverse((r.runtime_ns, r.on_cpu_ns))),
        SchedSort::Preempted => rows.sort_by_key(|r| Reverse(r.preempted.total())),
    }
}
