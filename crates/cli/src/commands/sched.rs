//! `trapline sched`: scheduling latency of tasks and CPUs.

use std::cmp::Reverse;

use analysis::{Merge, Sched, TaskRow};
use anyhow::{Result, bail};
use render::{json, quality, sched};
use source::Recording;

use crate::args::{Format, SchedArgs, SchedBy, SchedSort};
use crate::commands::VERSION;
use crate::filter::Scope;
use crate::{input, output};

/// Runs the command.
pub fn run(args: &SchedArgs) -> Result<()> {
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let recording = Recording::open(&args.recording)?;
    // Symbols name the functions of kworkers.
    let reader = recording.reader(lender.options(true))?;
    let name = input::name(&args.recording);
    let filters = input::Filter::new(&args.common.filter, &facts, &reader, &name)?;
    let mut sink = Sched::new();
    sink.saved_names(input::saved_names(&reader));
    sink.told(&facts.told_of(&reader));
    let formats = reader.formats();
    sink.caller_at(formats.and_then(|formats| formats.kallsyms.range(Sched::caller())));
    let mut outcome = filters.walk(&reader, &mut sink, Scope::Window);
    if !sink.saw_switches() {
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
            "{name}: holds no sched_switch events, which scheduling latencies are made of; record with \
             'perf sched record' or 'trace-cmd record -e sched'"
        );
    }
    let merge = match args.by {
        SchedBy::Comm => Merge::ByComm,
        SchedBy::Task | SchedBy::Cpu => Merge::No,
    };
    let symbol = |address: u64| {
        let (name, _) = reader.formats()?.kallsyms.lookup(address)?;
        Some(name.to_owned())
    };
    let mut report = sink.report(merge, &|tid, pid| filters.keeps(tid, pid), &symbol);
    sort(&mut report.rows, args.sort);
    facts.warn(&mut outcome.quality);
    filters.warn(&mut outcome.quality);
    for lack in &report.lacks {
        outcome.quality.warn(*lack);
    }
    if outcome.quality.lost_events > 0 {
        outcome.quality.warn(
            "Events were lost: a delay may have begun or ended with one of them, in perf sched latency too.",
        );
    }
    match args.common.format {
        Format::Table => {
            let layout = sched::Layout {
                limit: args.limit.unwrap_or(usize::MAX),
                nanoseconds: input::nanoseconds(reader.header()),
                threads: merge == Merge::No,
                runtimes: report.rows.iter().any(|row| row.runtime_ns > 0),
            };
            let mut text = match args.by {
                SchedBy::Cpu => sched::cpus(&report, layout),
                SchedBy::Task | SchedBy::Comm => sched::table(&report, layout),
            };
            text.push('\n');
            if args.histogram {
                text.push_str(&sched::histogram(&report, layout));
                text.push('\n');
            }
            text.push_str(&quality::lines(&name, &outcome.quality, output::width()));
            output::print(&text)
        }
        Format::Json => {
            let mut document = json::envelope(VERSION, "sched", &[name], &outcome.quality);
            sched::json(&mut document, &report);
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&match args.by {
            SchedBy::Cpu => sched::cpus_csv(&report),
            SchedBy::Task | SchedBy::Comm => sched::csv(&report),
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
