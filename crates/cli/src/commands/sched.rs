//! `trapline sched`: scheduling latency of tasks and CPUs.

use std::cmp::Reverse;

use analysis::{
    ContinuityReport, LeftOut, Merge, Picture, Sched, SchedReport, Study, TaskRow, Turns,
};
use anyhow::{Result, bail};
use event::Quality;
use render::sched;
use session::{HostFacts, Input, Scope, Wanted};

use crate::answer::Answer;
use crate::args::{SchedArgs, SchedBy, SchedSort};
use crate::opening::{self, Beside};
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &SchedArgs) -> Result<()> {
    let session = opening::session(&args.common, &Beside::default(), &[&args.recording])?;
    let input = session.input(&args.recording)?;
    if let Some(pictures) = input.tables()? {
        return of_tables(args, &input, pictures, session.host_facts());
    }
    // Symbols name the functions of kworkers.
    let recording = input.recording_with_symbols()?;
    let name = recording.name().to_owned();
    let mut sched = Sched::new();
    let functions = recording.functions();
    sched.caller_at(functions.range(Sched::caller()));
    let mut study = Study::default().with(sched);
    study = study.choose(recording.window(), LeftOut::default());
    study.saved_names(recording.saved_names());
    study.told(recording.thread_facts());
    let mut outcome = recording.walk_filtered(&mut study, Scope::Time);
    study.finish();
    let Some(sched) = study.get::<Sched>() else {
        return Ok(());
    };
    recording.require_switches(sched.saw_switches())?;
    let merge = match args.by {
        SchedBy::Comm => Merge::ByComm,
        SchedBy::Task | SchedBy::Cpu => Merge::No,
    };
    let threads = study.walked().machine.threads();
    let mut report = sched.report(
        threads,
        merge,
        &|tid, pid| recording.keeps(tid, pid),
        functions,
    );
    sort(&mut report.rows, args.sort);
    session.host_facts().warn(&mut outcome.quality);
    recording.warn_of_guess(&mut outcome.quality);
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
    let nanoseconds = recording.nanoseconds();
    print(args, &name, &report, &outcome.quality, nanoseconds)
}

/// Prints what perf sched latency printed, in the layout of all tables.
fn of_tables(
    args: &SchedArgs,
    input: &Input<'_>,
    pictures: Vec<Picture>,
    facts: &HostFacts,
) -> Result<()> {
    let name = input.name().to_owned();
    if args.by == SchedBy::Cpu || args.histogram {
        bail!(
            "{name}: --by cpu and --histogram take a recording: a printed table has neither CPUs nor single delays"
        );
    }
    let several = pictures.iter().filter(|one| one.sched.is_some()).count() > 1;
    if several {
        bail!(
            "{name}: holds several tables of perf sched latency; put the one that is meant into a file of its own"
        );
    }
    let found = pictures.into_iter().find(|one| one.sched.is_some());
    let Some(Picture {
        sched: Some(mut report),
        mut quality,
        ..
    }) = found
    else {
        return Err(input.wrong(Wanted::Latencies).into());
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
    let inputs = [name.to_owned()];
    let answer = Answer {
        format: args.common.format,
        command: "sched",
        inputs: &inputs,
        quality,
    };
    answer.print(
        || {
            let layout = output::layout(args.limit.unwrap_or(usize::MAX), nanoseconds);
            let mut text = match args.by {
                SchedBy::Cpu => sched::cpus(report, layout),
                SchedBy::Task | SchedBy::Comm => sched::table(report, layout),
            };
            text.push('\n');
            if args.histogram {
                text.push_str(&sched::histogram(report, layout));
                text.push('\n');
            }
            text.push_str(&output::quality(name, quality));
            text
        },
        || sched::document(report),
        || match args.by {
            SchedBy::Cpu => sched::cpus_csv(report),
            SchedBy::Task | SchedBy::Comm => sched::csv(report),
        },
    )
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
