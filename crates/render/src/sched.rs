//! Scheduling latencies.

use std::fmt::Write;

use analysis::{CpuRow, DelayConvention, OtherTask, SchedKinds, SchedReport, Stats, TaskRow};
use doubts::Doubts;
use serde::Serialize;
use serde_json::Value;

use crate::amounts::{of_any, percentile, share};
use crate::row_doubts::{RowScope, with_doubts};
use crate::schema::HasShape;
use crate::shape;
use crate::table::{DocumentRows, Table, Unit, UnknownColumn, Views, reorder};
use crate::{ClockUnit, Layout, clean, json, sched_waits};

pub use crate::guest_tasks::{steal_json, steal_shape, steal_text};

/// A row of the table of tasks.
pub(crate) struct Task<'r> {
    row: &'r TaskRow,
    /// Whether perf printed the table, which then has fewer figures.
    printed: bool,
    kinds: SchedKinds,
}

/// What perf's printed table does not have.
fn of_task<'r, V>(value: impl Fn(&TaskRow) -> V + 'static) -> impl Fn(&Task<'r>) -> Option<V> {
    move |task| (!task.printed).then(|| value(task.row))
}

/// What no recording without wake-ups has.
fn woken<'r, V>(value: impl Fn(&TaskRow) -> V + 'static) -> impl Fn(&Task<'r>) -> Option<V> {
    move |task| (!task.printed && task.kinds.wakeups).then(|| value(task.row))
}

/// Columns of the table of tasks.
pub(crate) fn tasks<'r>() -> Table<'r, Task<'r>> {
    use Unit::{Count, Name, Nanoseconds, Nested, Number};
    let table = Table::new()
        .column("task", Name, |t: &Task<'_>| called(t.row))
        .text_only()
        .left("", 24)
        .column("comm", Name, |t| t.row.comm.as_str())
        .page("task")
        .column("pid", Number, |t| t.row.tid)
        .page("thread")
        .column("runtime_ns", Nanoseconds, |t| {
            t.kinds.runtimes.then_some(t.row.runtime_ns)
        })
        .page("runtime")
        .column("ran", Nanoseconds, |t| match t.kinds.runtimes {
            true => t.row.runtime_ns,
            false => t.row.on_cpu_ns,
        })
        .text_only()
        .heading("runtime", 9)
        .column("switches", Count, |t| t.row.delays.count())
        .heading("switches", 9)
        .page("switches")
        .column("delay_mean_ns", Nanoseconds, |t| mean(&t.row.delays))
        .heading("mean", 9)
        .show(|t, layout| layout.mean(&t.row.delays))
        .page("delay mean")
        .column("delay_max_ns", Nanoseconds, |t| {
            of_any(&t.row.delays, Stats::max)
        })
        .heading("max", 9)
        .page("delay max")
        .column("delay_max_at_ns", Nanoseconds, |t| {
            // Where nothing was delayed there is no such time, and perf prints none of it in short tables.
            let known = t.row.delays.max() > 0 && (t.row.delay_max_at > 0 || !t.printed);
            known.then_some(t.row.delay_max_at)
        })
        .page("delay max at")
        .column("process", Number, |t| t.row.pid)
        .page("process")
        .after("pid")
        .column("threads", Count, |t| t.row.threads)
        .page("threads")
        .after("process")
        .column("on_cpu_ns", Nanoseconds, of_task(|r| r.on_cpu_ns))
        .page("on CPU")
        .after("runtime_ns")
        .column("delay_total_ns", Nanoseconds, |t| t.row.delays.total())
        .json_only()
        .page("delays")
        .after("migrations")
        .column("delay_p50_ns", Nanoseconds, |t| {
            percentile(&t.row.delays, 0.5)
        })
        .page("delay p50")
        .after("delay_mean_ns")
        .column("delay_p90_ns", Nanoseconds, |t| {
            percentile(&t.row.delays, 0.9)
        })
        .json_only()
        .page("delay p90")
        .after("delay_p50_ns")
        .column("delay_p99_ns", Nanoseconds, |t| {
            percentile(&t.row.delays, 0.99)
        })
        .page("delay p99")
        .after("delay_p90_ns");
    waits(table)
        .column("preempted_by", Nested, |t| {
            others(&t.row.preempted_by, true)
        })
        .within(Vec::<Peer<'static>>::shape())
        .column("woken_by", Nested, |t| others(&t.row.woken_by, false))
        .within(Vec::<Peer<'static>>::shape())
        .column("migrations", Count, of_task(|r| r.migrations))
        .page("migrations")
        .after("switches")
        .column("off_cpu_ns", Nanoseconds, of_task(|r| r.off_cpu_ns))
        .json_only()
        .page("off CPU")
        .after("on_cpu_ns")
        .column("histogram", Nested, |t| json::list(octaves(&t.row.delays)))
        .within(Vec::<Octave>::shape())
}

/// Columns of waits for a CPU, after a wake-up and after preemption.
fn waits<'r>(table: Table<'r, Task<'r>>) -> Table<'r, Task<'r>> {
    use Unit::{Count, Name, Nanoseconds, Number};
    table
        .column("woken_waits", Count, woken(|r| r.woken_waits.count()))
        .page("waits when woken")
        .column(
            "woken_wait_ns",
            Nanoseconds,
            woken(|r| r.woken_waits.total()),
        )
        .heading("woken", 9)
        .page("waited when woken")
        .column("woken_wait_p99_ns", Nanoseconds, |t| {
            percentile(&t.row.woken_waits, 0.99)
        })
        .json_only()
        .page("that p99")
        .column("woken_wait_max_ns", Nanoseconds, |t| {
            of_any(&t.row.woken_waits, Stats::max)
        })
        .json_only()
        .page("that max")
        .column("preempted", Count, of_task(|r| r.preempted.count()))
        .page("preempted")
        .column(
            "preempted_wait_ns",
            Nanoseconds,
            of_task(|r| r.preempted.total()),
        )
        .heading("preempted", 10)
        .page("waited when preempted")
        .column("preempted_max_ns", Nanoseconds, |t| {
            of_any(&t.row.preempted, Stats::max)
        })
        .json_only()
        .page("that max")
        .column("longest_wait_ns", Nanoseconds, |t| {
            Some(t.row.longest_wait.as_ref()?.ns)
        })
        .column("longest_wait_at_ns", Nanoseconds, |t| {
            Some(t.row.longest_wait.as_ref()?.since)
        })
        .column("longest_wait_behind", Name, |t| {
            sched_waits::behind(t.row.longest_wait.as_ref()?)?.1
        })
        .column("longest_wait_behind_pid", Number, |t| {
            Some(sched_waits::behind(t.row.longest_wait.as_ref()?)?.0)
        })
}

pub(crate) fn task_rows(report: &SchedReport) -> impl Iterator<Item = Task<'_>> {
    let printed = is_printed(report);
    report.rows.iter().map(move |row| Task {
        row,
        printed,
        kinds: report.kinds,
    })
}

/// Returns a time of a CPU; `None` where no switch shows what it did.
fn switched(row: &CpuRow, ns: u64) -> Option<u64> {
    (row.switches > 0).then_some(ns)
}

/// Columns of the table of CPUs.
pub(crate) fn cpu_columns() -> Table<'static, CpuRow> {
    use Unit::{Count, Name, Nanoseconds, Number, Share};
    Table::new()
        .column("cpu", Number, |r: &CpuRow| r.cpu)
        .heading("CPU", 4)
        .page("CPU")
        .column("switches", Count, |r| r.switches)
        .heading("switches", 9)
        .page("switches")
        .after("busy")
        .column("busy_ns", Nanoseconds, |r| switched(r, r.busy_ns))
        .heading("busy", 9)
        .page("busy")
        .column("idle_ns", Nanoseconds, |r| switched(r, r.idle_ns))
        .page("idle")
        .column("busy", Share, |r| {
            share(r.busy_ns, r.busy_ns.saturating_add(r.idle_ns))
        })
        .text_only()
        .heading("busy%", 7)
        .column("unknown_ns", Nanoseconds, |r| switched(r, r.unknown_ns))
        .json_only()
        .page("unknown")
        .column("unseen_switches", Count, |r| r.unseen)
        .json_only()
        .page("switches not seen")
        .column("wakeups", Count, |r| r.wakeups)
        .heading("woken", 8)
        .page("wakeups")
        .column("delays", Count, |r| r.delays.count())
        .page("delays")
        .column("delay_mean_ns", Nanoseconds, |r| mean(&r.delays))
        .heading("mean", 9)
        .show(|r, layout| layout.mean(&r.delays))
        .page("delay mean")
        .column("delay_max_ns", Nanoseconds, |r| {
            of_any(&r.delays, Stats::max)
        })
        .heading("max", 9)
        .page("delay max")
        .column("delay_max_at_ns", Nanoseconds, |r| {
            of_any(&r.delays, |_| r.delay_max_at)
        })
        .page("delay max at")
        .column("delay_max_comm", Name, |r| {
            r.worst.as_ref()?.comm.as_deref().map(str::to_owned)
        })
        .json_only()
        .page("whose")
        .column("delay_max_pid", Number, |r| r.worst.as_ref()?.tid)
        .json_only()
        .page("its thread")
        .column("whose", Name, |r| {
            r.worst.as_ref().map(name).unwrap_or_default()
        })
        .text_only()
        .left("whose", 0)
        .gap("  ")
}

/// Returns the mean as perf has it: what is left over is cut off.
fn mean(stats: &Stats) -> Option<u64> {
    stats.total().checked_div(stats.count())
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct SchedDocument<'a> {
    rows: DocumentRows<'a>,
    cpus: DocumentRows<'a>,
    work: Vec<Work<'a>>,
    delays: Vec<Octave>,
    /// Which perf's delays these are; null of a printed table.
    delays_as: Option<&'static str>,
}

shape!(SchedDocument<'static> {
    rows: tasks_in_documents(&Doubts::default()).shape().list(),
    cpus: cpus_in_documents(&Doubts::default()).shape().list(),
    work, delays, delays_as
});

/// A function of kworkers.
#[derive(Debug, Serialize)]
struct Work<'a> {
    function: &'a str,
    /// Null where runs are not recorded.
    count: Option<u64>,
    total_ns: Option<u64>,
    mean_ns: Option<u64>,
    max_ns: Option<u64>,
    /// Stacks that show it, where the recording has stacks.
    stacks: u64,
}

shape!(Work<'static> { function, count, total_ns, mean_ns, max_ns, stacks });

/// Delays from one power of two to the next.
#[derive(Debug, Serialize)]
pub(crate) struct Octave {
    pub(crate) from_ns: u64,
    pub(crate) below_ns: u64,
    pub(crate) count: u64,
}

shape!(Octave {
    from_ns,
    below_ns,
    count
});

/// Columns of tasks in documents: behind the others the doubts that are about a row and not about all.
pub(crate) fn tasks_in_documents<'r>(doubts: &Doubts) -> Table<'r, Task<'r>> {
    with_doubts(tasks(), doubts, |t| RowScope::of_thread(t.row.tid))
}

/// Columns of CPUs in documents, with the same.
pub(crate) fn cpus_in_documents<'t>(doubts: &Doubts) -> Table<'t, CpuRow> {
    with_doubts(cpu_columns(), doubts, |r| RowScope {
        cpu: Some(r.cpu),
        ..RowScope::default()
    })
}

/// Returns the fields of a document. Rows have the ids of those of the doubts that are about them.
pub fn document<'a>(report: &'a SchedReport, doubts: &Doubts) -> SchedDocument<'a> {
    let work = report.work.iter().map(|row| Work {
        function: &row.function,
        count: report.kinds.work.then_some(row.stats.count()),
        total_ns: of_any(&row.stats, Stats::total),
        mean_ns: of_any(&row.stats, Stats::mean),
        max_ns: of_any(&row.stats, Stats::max),
        stacks: row.stacks,
    });
    SchedDocument {
        rows: tasks_in_documents(doubts).document_rows(task_rows(report)),
        cpus: cpus_in_documents(doubts).document_rows(&report.cpus),
        work: work.collect(),
        delays: octaves(&report.delays).collect(),
        delays_as: report.delays_as.map(DelayConvention::name),
    }
}

pub(crate) fn octaves(stats: &Stats) -> impl Iterator<Item = Octave> {
    let octaves = stats.octaves().into_iter();
    octaves.map(|(from_ns, below_ns, count)| Octave {
        from_ns,
        below_ns,
        count,
    })
}

/// A task that preempted or woke the row's.
#[derive(Debug, Serialize)]
struct Peer<'a> {
    comm: Option<&'a str>,
    /// Null for the sum of what is not listed.
    pid: Option<i32>,
    count: u64,
    /// How long the row's task then waited, of one that preempted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ns: Option<u64>,
}

shape!(Peer<'static> { comm, pid, count, wait_ns? });

fn others(list: &[OtherTask], waited: bool) -> Value {
    json::list(list.iter().map(|other| Peer {
        comm: other.comm.as_deref(),
        pid: other.tid,
        count: other.count,
        wait_ns: waited.then_some(other.ns),
    }))
}

/// Sorts tasks by a column: largest first, names in alphabetical order, what is not known last.
///
/// # Errors
///
/// There is no such column.
pub fn sort(report: &mut SchedReport, column: &str) -> Result<(), UnknownColumn> {
    let places = tasks().order(&task_rows(report).collect::<Vec<_>>(), column)?;
    reorder(&mut report.rows, &places);
    Ok(())
}

/// Sorts CPUs by a column, in the same way.
///
/// # Errors
///
/// There is no such column.
pub fn sort_cpus(report: &mut SchedReport, column: &str) -> Result<(), UnknownColumn> {
    let places = cpu_columns().order(&report.cpus, column)?;
    reorder(&mut report.cpus, &places);
    Ok(())
}

/// Returns the tasks as CSV.
pub fn csv(report: &SchedReport, clock: ClockUnit) -> String {
    tasks().counted_in(clock).csv(task_rows(report))
}

/// Returns the CPUs as CSV.
pub fn cpus_csv(report: &SchedReport, clock: ClockUnit) -> String {
    cpu_columns().counted_in(clock).csv(&report.cpus)
}

/// Tasks that the list of preempted ones shows.
const PREEMPTED: usize = 5;
/// Others that one line names.
const NAMED: usize = 3;

/// Returns the table of tasks, whom they were preempted by, and the functions of kworkers.
pub fn table(report: &SchedReport, layout: Layout) -> String {
    let mut out = summary(report, layout);
    sched_waits::beyond_delays(&mut out, report, layout);
    sched_waits::longest(&mut out, report, layout);
    preempted(&mut out, report, layout);
    wakers(&mut out, report);
    work(&mut out, report, layout);
    out
}

/// Returns whether a report is of a table that perf printed: it has nothing about CPUs.
pub(crate) fn is_printed(report: &SchedReport) -> bool {
    report.cpus.is_empty() && !report.delays.has_percentiles()
}

/// Returns the table of tasks alone.
pub fn summary(report: &SchedReport, layout: Layout) -> String {
    let delays = &report.delays;
    let others = report.rows.iter().find(|row| row.is_others());
    let count = report.rows.len() as u64 + others.map_or(0, |row| row.threads.saturating_sub(1));
    let mut out = format!(
        "sched: {}, {}, mean {}, p99 {}, max {}{}\n",
        words::plural(count, "task"),
        words::plural(delays.count(), "delay"),
        layout.mean(delays),
        layout.known_time(percentile(delays, 0.99)),
        layout.known_time(of_any(delays, Stats::max)),
        report.delays_as.map_or_else(String::new, |perf| {
            format!(" ({})", perf.name().replace('-', " "))
        })
    );
    out.push_str(
        &tasks()
            .view(Views::TERMINAL)
            .text(task_rows(report), layout),
    );
    out
}

/// Returns why two columns of a page's tasks differ; nothing where there is one of them.
pub fn note(report: &SchedReport) -> Option<&'static str> {
    let counted = report.rows.iter().any(|row| row.runtime_ns > 0);
    let switched = report.rows.iter().any(|row| row.on_cpu_ns > 0);
    (counted && switched).then_some(
        "'runtime' is the kernel's own account (sched_stat_runtime), which is kept of tasks of the fair class and may \
         leave out interrupts; 'on CPU' is the time between switches, without stretches of which one end was not \
         recorded. So they differ.",
    )
}

fn preempted(out: &mut String, report: &SchedReport, layout: Layout) {
    let mut rows: Vec<&TaskRow> = report
        .rows
        .iter()
        .filter(|r| r.preempted.total() > 0)
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.preempted.total()));
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nwaited after preemption, and for whom");
    for row in rows.iter().take(PREEMPTED) {
        let _ = writeln!(
            out,
            "  {:>9} in {:>6}  {}",
            layout.time(row.preempted.total()),
            row.preempted.count(),
            clean(&title(row))
        );
        for other in row.preempted_by.iter().take(NAMED) {
            let _ = writeln!(
                out,
                "  {:>9} in {:>6}    {}",
                layout.time(other.ns),
                other.count,
                clean(&preemptor(other))
            );
        }
    }
}

fn wakers(out: &mut String, report: &SchedReport) {
    let woken = |row: &TaskRow| {
        row.woken_by
            .iter()
            .map(|o| o.count)
            .fold(0u64, u64::saturating_add)
    };
    let mut rows: Vec<&TaskRow> = report.rows.iter().filter(|r| woken(r) > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(woken(row)));
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nwoken most often, and by whom");
    for row in rows.iter().take(PREEMPTED) {
        let _ = writeln!(
            out,
            "  {:>14}  {}",
            words::times(woken(row)),
            clean(&title(row))
        );
        for other in row.woken_by.iter().take(NAMED) {
            let _ = writeln!(
                out,
                "  {:>14}    {}",
                words::times(other.count),
                clean(&name(other))
            );
        }
    }
}

fn work(out: &mut String, report: &SchedReport, layout: Layout) {
    if report.work.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nkworkers ran");
    for row in report.work.iter().take(layout.limit) {
        let function = clean(&row.function);
        if row.stats.count() > 0 {
            let _ = writeln!(
                out,
                "  {:>9} in {:>6} runs, mean {:>9}, max {:>9}  {function}",
                layout.time(row.stats.total()),
                row.stats.count(),
                layout.mean(&row.stats),
                layout.time(row.stats.max()),
            );
        } else {
            let _ = writeln!(out, "  in {:>6} stacks  {function}", row.stacks);
        }
    }
}

/// Returns what the row of a task, or of several of one name, is called.
pub(crate) fn called(row: &TaskRow) -> String {
    match row.threads {
        threads if threads > 1 && !row.is_others() => format!("{}:({threads})", row.comm),
        _ => title(row),
    }
}

pub(crate) fn title(row: &TaskRow) -> String {
    match row.is_others() {
        true => format!("others ({})", row.threads),
        false => format!("{}:{}", row.comm, row.tid),
    }
}

/// Returns who had the CPU while a task waited that had been preempted.
pub(crate) fn preemptor(other: &OtherTask) -> String {
    match other.tid {
        Some(0) => "nobody: that CPU was idle".to_owned(),
        _ => name(other),
    }
}

/// Returns who woke a task.
fn name(other: &OtherTask) -> String {
    match (&other.comm, other.tid) {
        (_, Some(-1)) => "a task that had ended".to_owned(),
        (_, Some(0)) => "swapper: an interrupt of an idle CPU".to_owned(),
        (Some(comm), Some(tid)) => format!("{comm}:{tid}"),
        (None, Some(tid)) => format!(":{tid}"),
        _ => "others".to_owned(),
    }
}

/// Returns the table of CPUs.
pub fn cpus(report: &SchedReport, layout: Layout) -> String {
    let out = format!("sched: {} CPUs\n", report.cpus.len());
    out + &cpu_columns()
        .view(Views::TERMINAL)
        .text(&report.cpus, layout)
}

/// Columns that the longest bar of a histogram has.
const BAR: u64 = 40;

/// Returns the delays of all tasks as a histogram.
pub fn histogram(report: &SchedReport, layout: Layout) -> String {
    let buckets = report.delays.octaves();
    let most = buckets.iter().map(|b| b.2).max().unwrap_or(0).max(1);
    let mut out = "delays\n".to_owned();
    for (from, to, count) in buckets {
        let bar = "#".repeat(count.saturating_mul(BAR).div_ceil(most) as usize);
        let line = format!(
            "{:>9} to {:>9}{count:>9}  {bar}",
            layout.time(from),
            layout.time(to)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
