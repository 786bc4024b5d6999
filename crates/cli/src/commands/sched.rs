//! `trapline sched`: scheduling latency of tasks and CPUs.

use analysis::{
    DelayConvention, GuestTasks, Merge, Picture, SchedLatencies, SchedReport, Vcpus, VcpusReport,
};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use doubts::{Concern, Concerns};
use event::Quality;
use model::VmWorkers;
use render::{ClockUnit, sched};
use serde::Serialize;
use serde_json::Value;
use session::{Input, InputPurpose};
use std::cmp::Reverse;

use crate::answer::Answer;
use crate::commands::exits::ambiguous;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GuestArgs, RowLimit, sort_by};
use crate::output;

/// `trapline sched`.
#[derive(Debug, Args)]
#[command(after_help = SCHED_HELP)]
#[command(mut_arg("recordings", |words| words.help(INPUT)))]
pub(crate) struct SchedArgs {
    #[command(flatten)]
    pub guests: GuestArgs,

    /// Show a row for each thread, each thread name, or each CPU.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = SchedBy::Task)]
    pub by: SchedBy,

    /// Sort rows: vms has threads of VMs before all others and each by the longest delay. Else by a column, largest
    /// first: mean, max, switches, runtime, woken, preempted, or any other by what stands above it or by its name in
    /// CSV.
    #[arg(long, value_name = "COLUMN", default_value = VMS_FIRST)]
    pub sort: String,

    /// Count delays as this perf does. Since 6.9 a task that is preempted in the kernel waits, and since 6.12 a delay
    /// begins at sched_waking where that is recorded.
    #[arg(long = "as", value_enum, value_name = "PERF", default_value_t = DelaysAs::Perf61)]
    pub convention: DelaysAs,

    #[command(flatten)]
    limit: RowLimit,

    /// Show a histogram of the delays, in powers of two.
    #[arg(long)]
    pub histogram: bool,

    #[command(flatten)]
    pub common: Common,
}

const INPUT: &str = "Recording, or the printed output of perf sched latency, or - for standard input, and behind it \
                     recordings (GUEST) that were made in its guests at the same time";

const SCHED_HELP: &str = "Delays, switches and run times equal those of perf 6.1's sched latency (--as perf-6.12: of \
newer ones): --by task is its table \
with -p, --by comm its table without. The last two columns are the total time that tasks waited for a CPU after they \
were woken and after they were preempted; perf leaves the latter out. Recordings of guests (GUEST, --guest) add below \
it which of their tasks waited while their vCPU had no CPU: steal, by who suffered. --vm, --vcpu and --pid choose \
rows; --time and --cpu choose events.

Examples:
  trapline sched perf.data
  trapline sched --by cpu trace.dat
  trapline sched --vcpu 0 --histogram trace.dat
  trapline sched --sort preempted --limit 10 perf.data
  trapline sched host.dat guest-a.dat           and what waited in the guest";

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

/// The perf whose delays are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DelaysAs {
    /// Up to 6.8.
    #[value(name = "perf-6.1")]
    Perf61,
    /// Since 6.12.
    #[value(name = "perf-6.12")]
    Perf612,
}

/// The order of rows that has vCPUs and threads that work for VMs first, each by longest delay.
const VMS_FIRST: &str = "vms";

/// Runs the command.
pub(crate) fn run(args: &SchedArgs) -> Result<()> {
    let beside = AccompanyingFiles {
        with_guests: true,
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
    // Symbols name the functions of kworkers.
    let recording = input.recording_with_symbols()?;
    let paired = host.paired(&recording)?;
    let mut sched = SchedLatencies::new();
    sched.count_as(match args.convention {
        DelaysAs::Perf61 => DelayConvention::Perf61,
        DelaysAs::Perf612 => DelayConvention::Perf612,
    });
    let functions = recording.functions();
    sched.caller_at(functions.range(SchedLatencies::caller()));
    let mut question = recording.question(&paired);
    question.all_threads();
    let sched = question.add(sched);
    let tasks = question.share_guest_tasks(GuestTasks::new(recording.window()));
    let steal = tasks.map(|tasks| (tasks, question.add(Vcpus::new(recording.window()))));
    question.showing_only(Concerns::of(&[
        Concern::Sched,
        Concern::Guests,
        Concern::Host,
    ]));
    let answers = question.walk();
    let sched = answers.take(sched);
    recording.require_switches(sched.saw_switches())?;
    let merge = match args.by {
        SchedBy::Comm => Merge::ByComm,
        SchedBy::Task | SchedBy::Cpu => Merge::No,
    };
    let walked = answers.walked();
    let keep = |tid: i32, pid: Option<i32>| recording.keeps(tid, pid);
    let mut report = sched.report(walked.machine.threads(), merge, &keep, functions);
    recording.require_choice(!report.rows.is_empty())?;
    let workers = VmWorkers::of(walked.machine.threads());
    sort(&mut report, args, &workers)?;
    let steal = steal.map(|(tasks, vcpus)| {
        let mut report = answers.take(vcpus).report(&walked);
        report.with_guests(&tasks.get(), &walked);
        report
            .rows
            .retain(|row| recording.keeps(row.tid, row.vm_pid));
        report
    });
    let found = Found {
        report: &report,
        steal,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    print(args, &host.names(), &found, &answers.quality)
}

/// What there is to print.
struct Found<'r> {
    report: &'r SchedReport,
    /// What guests did on their vCPUs, where guests' recordings were given.
    steal: Option<VcpusReport>,
    clock: ClockUnit,
}

/// The fields of a document.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    sched: sched::SchedDocument<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steal: Option<Value>,
}

#[cfg(test)]
render::shape!(Document<'static> { ..sched, steal?: sched::steal_shape() });

/// Returns what a document has.
#[cfg(test)]
pub(crate) fn shape() -> render::schema::Shape {
    <Document<'static> as render::schema::HasShape>::shape()
}

/// Prints what perf sched latency printed, in the layout of all tables.
fn of_tables(args: &SchedArgs, input: &Input<'_>, pictures: Vec<Picture>) -> Result<()> {
    let name = input.name().to_owned();
    if args.by == SchedBy::Cpu || args.histogram {
        bail!(
            "{name}: --by cpu and --histogram take a recording: a printed table has neither CPUs nor single delays"
        );
    }
    let several = || pictures.iter().filter(|one| one.sched.is_some());
    if several().count() > 1 {
        bail!("{}", ambiguous(&name, "scheduling latencies", several()));
    }
    let found = pictures.into_iter().find(|one| one.sched.is_some());
    let Some(Picture {
        sched: Some(mut report),
        quality,
        ..
    }) = found
    else {
        return Err(input.wrong(InputPurpose::Latencies).into());
    };
    sort(&mut report, args, &VmWorkers::default())?;
    let found = Found {
        report: &report,
        steal: None,
        clock: ClockUnit::Nanoseconds,
    };
    print(args, &[name], &found, &quality)
}

fn print(args: &SchedArgs, inputs: &[String], found: &Found<'_>, quality: &Quality) -> Result<()> {
    let answer = Answer {
        format: args.common.format,
        command: "sched",
        inputs,
        quality,
        clock: found.clock,
    };
    let report = found.report;
    answer.print(
        || {
            let layout = answer.layout(args.limit.rows());
            let mut text = match args.by {
                SchedBy::Cpu => sched::cpus(report, layout),
                SchedBy::Task | SchedBy::Comm => sched::table(report, layout),
            };
            text.push('\n');
            if args.histogram {
                text.push_str(&sched::histogram(report, layout));
                text.push('\n');
            }
            if let Some(steal) = &found.steal {
                text.push_str(&sched::steal_text(steal, layout));
                text.push('\n');
            }
            text.push_str(&output::quality(&inputs.join(", "), quality));
            text
        },
        || Document {
            sched: sched::document(report, &quality.all_doubts()),
            steal: found.steal.as_ref().map(sched::steal_json),
        },
        |clock| match args.by {
            SchedBy::Cpu => sched::cpus_csv(report, clock),
            SchedBy::Task | SchedBy::Comm => sched::csv(report, clock),
        },
    )
}

/// Sorts rows of tasks or of CPUs; equal ones keep the order by mean delay.
fn sort(report: &mut SchedReport, args: &SchedArgs, workers: &VmWorkers) -> Result<()> {
    if args.sort != VMS_FIRST {
        return sort_by(&args.sort, |column| match args.by {
            SchedBy::Cpu => sched::sort_cpus(report, column),
            SchedBy::Task | SchedBy::Comm => sched::sort(report, column),
        });
    }
    report.rows.sort_by_cached_key(|r| {
        let is_other = !workers.has(r.tid, &r.comm);
        (is_other, r.is_others(), Reverse(r.delays.max()))
    });
    Ok(())
}
