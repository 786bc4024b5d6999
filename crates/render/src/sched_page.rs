//! Scheduling, as tables of a page.

use analysis::{OtherTask, SchedReport, Stats, TaskRow, WorkRow};

use crate::amounts::of_any;
use crate::html::Frame;
use crate::sched::{Octave, cpu_columns, is_printed, octaves, preemptor, task_rows, tasks, title};
use crate::table::{Table, Unit};

/// Returns the table of tasks for a page.
pub fn html(report: &SchedReport, frame: &Frame<'_>) -> String {
    tasks().html(task_rows(report), frame)
}

/// Returns the table of CPUs for a page.
pub fn cpus_html(report: &SchedReport, frame: &Frame<'_>) -> String {
    cpu_columns().html(&report.cpus, frame)
}

/// Returns for a page who preempted tasks, those first that waited longest; nothing where nobody did.
pub fn preempted_html(report: &SchedReport, frame: &Frame<'_>) -> String {
    use Unit::{Count, Name, Nanoseconds, Number};
    let mut rows: Vec<&TaskRow> = report.rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.preempted.total()));
    let all = rows.into_iter();
    let all = all.flat_map(|row| row.preempted_by.iter().map(move |other| (row, other)));
    let all: Vec<(&TaskRow, &OtherTask)> = all.collect();
    if all.is_empty() {
        return String::new();
    }
    let table = Table::new()
        .column("task", Name, |(row, _): &(&TaskRow, &OtherTask)| title(row))
        .page("task")
        .column("task_pid", Number, |(row, _)| row.tid)
        .page("thread")
        .column("by", Name, |(_, other)| preemptor(other))
        .page("preempted by")
        .column("pid", Number, |(_, other)| other.tid)
        .page("its thread")
        .column("count", Count, |(_, other)| other.count)
        .page("times")
        .column("wait_ns", Nanoseconds, |(_, other)| other.ns)
        .page("waited");
    table.html(all, frame)
}

/// Returns for a page what kworkers ran; nothing where they ran nothing.
pub fn work_html(report: &SchedReport, frame: &Frame<'_>) -> String {
    use Unit::{Count, Nanoseconds, Text};
    if report.work.is_empty() {
        return String::new();
    }
    let recorded = report.kinds.work;
    let table = Table::new()
        .column("function", Text, |row: &WorkRow| row.function.clone())
        .page("function")
        .column("count", Count, move |row| {
            recorded.then_some(row.stats.count())
        })
        .page("runs")
        .column("total_ns", Nanoseconds, |row| {
            of_any(&row.stats, Stats::total)
        })
        .page("time")
        .column("mean_ns", Nanoseconds, |row| {
            of_any(&row.stats, Stats::mean)
        })
        .show(|row, layout| layout.mean(&row.stats))
        .page("mean")
        .column("max_ns", Nanoseconds, |row| of_any(&row.stats, Stats::max))
        .page("max")
        .column("stacks", Count, |row| row.stacks)
        .page("stacks with it");
    table.html(&report.work, frame)
}

/// Returns for a page how long delays were, by powers of two.
pub fn delays_html(report: &SchedReport, frame: &Frame<'_>) -> String {
    use Unit::{Count, Nanoseconds};
    let rows: Vec<Octave> = octaves(&report.delays).collect();
    if rows.is_empty() || is_printed(report) {
        return String::new();
    }
    let table = Table::new()
        .column("delay_from_ns", Nanoseconds, |row: &Octave| row.from_ns)
        .page("from")
        .column("delay_below_ns", Nanoseconds, |row| row.below_ns)
        .page("to below")
        .column("count", Count, |row| row.count)
        .page("delays");
    table.html(rows, frame)
}
