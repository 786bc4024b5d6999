//! Scheduling latencies.

use std::fmt::Write;

use analysis::{CpuRow, Other, SchedReport, Stats, TaskRow};
use serde_json::{Map, Value, json};
use words::{duration, share};

use crate::{clean, csv};

/// Appends the contract's fields, and what is told beside them, to a JSON document.
pub fn json(document: &mut Map<String, Value>, report: &SchedReport) {
    let mut rows: Vec<Value> = report.rows.iter().map(row_json).collect();
    if is_printed(report) {
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            for name in UNTOLD {
                row.insert(name.to_owned(), Value::Null);
            }
        }
    }
    document.insert("rows".to_owned(), Value::Array(rows));
    let cpus = report.cpus.iter().map(cpu_json).collect();
    document.insert("cpus".to_owned(), Value::Array(cpus));
    let work = report.work.iter().map(|row| {
        json!({
            "function": row.function,
            "count": row.stats.count(),
            "total_ns": row.stats.total(),
            "mean_ns": row.stats.mean(),
            "max_ns": row.stats.max(),
            "stacks": row.stacks,
        })
    });
    document.insert("work".to_owned(), work.collect());
    document.insert("delays".to_owned(), histogram_json(&report.delays));
}

/// What perf's table does not tell.
const UNTOLD: [&str; 12] = [
    "on_cpu_ns",
    "delay_p50_ns",
    "delay_p90_ns",
    "delay_p99_ns",
    "woken_waits",
    "woken_wait_ns",
    "woken_wait_p99_ns",
    "woken_wait_max_ns",
    "preempted",
    "preempted_wait_ns",
    "preempted_max_ns",
    "migrations",
];

fn row_json(row: &TaskRow) -> Value {
    let delays = &row.delays;
    let whole = delays.total() / delays.count().max(1);
    json!({
        "comm": row.comm,
        "pid": row.tid,
        "runtime_ns": row.runtime_ns,
        "switches": delays.count(),
        "delay_mean_ns": whole,
        "delay_max_ns": delays.max(),
        "delay_max_at_ns": row.delay_max_at,
        "process": row.pid,
        "threads": row.threads,
        "on_cpu_ns": row.on_cpu_ns,
        "delay_total_ns": delays.total(),
        "delay_p50_ns": delays.percentile(0.5),
        "delay_p90_ns": delays.percentile(0.9),
        "delay_p99_ns": delays.percentile(0.99),
        "woken_waits": row.woken_waits.count(),
        "woken_wait_ns": row.woken_waits.total(),
        "woken_wait_p99_ns": row.woken_waits.percentile(0.99),
        "woken_wait_max_ns": row.woken_waits.max(),
        "preempted": row.preempted.count(),
        "preempted_wait_ns": row.preempted.total(),
        "preempted_max_ns": row.preempted.max(),
        "preempted_by": row.preempted_by.iter().map(|o| other_json(o, true)).collect::<Value>(),
        "woken_by": row.woken_by.iter().map(|o| other_json(o, false)).collect::<Value>(),
        "migrations": row.migrations,
        "histogram": histogram_json(delays),
    })
}

fn other_json(other: &Other, waited: bool) -> Value {
    let mut out = Map::new();
    out.insert("comm".to_owned(), json!(other.comm));
    out.insert("pid".to_owned(), json!(other.tid));
    out.insert("count".to_owned(), json!(other.count));
    if waited {
        out.insert("wait_ns".to_owned(), json!(other.ns));
    }
    Value::Object(out)
}

fn cpu_json(row: &CpuRow) -> Value {
    json!({
        "cpu": row.cpu,
        "switches": row.switches,
        "busy_ns": row.busy_ns,
        "idle_ns": row.idle_ns,
        "unknown_ns": row.unknown_ns,
        "unseen_switches": row.unseen,
        "wakeups": row.wakeups,
        "delays": row.delays.count(),
        "delay_mean_ns": row.delays.total() / row.delays.count().max(1),
        "delay_max_ns": row.delays.max(),
        "delay_max_at_ns": row.delay_max_at,
        "delay_max_comm": row.worst.as_ref().and_then(|o| o.comm.clone()),
        "delay_max_pid": row.worst.as_ref().and_then(|o| o.tid),
    })
}

fn histogram_json(stats: &Stats) -> Value {
    let buckets = stats.octaves().into_iter();
    buckets
        .map(|(from, to, count)| json!({"from_ns": from, "below_ns": to, "count": count}))
        .collect()
}

/// Returns the rows as CSV.
pub fn csv(report: &SchedReport) -> String {
    let mut out = String::new();
    let head = [
        "comm",
        "pid",
        "runtime_ns",
        "switches",
        "delay_mean_ns",
        "delay_max_ns",
        "delay_max_at_ns",
        "process",
        "threads",
        "on_cpu_ns",
        "delay_p50_ns",
        "delay_p99_ns",
        "woken_waits",
        "woken_wait_ns",
        "preempted",
        "preempted_wait_ns",
        "migrations",
    ];
    csv::row(&mut out, head);
    let printed = is_printed(report);
    for row in &report.rows {
        let delays = &row.delays;
        let numbers = [
            row.runtime_ns,
            delays.count(),
            delays.total() / delays.count().max(1),
            delays.max(),
            row.delay_max_at,
        ];
        let mut fields = vec![row.comm.clone(), row.tid.to_string()];
        fields.extend(numbers.map(|n| n.to_string()));
        fields.push(row.pid.map(|pid| pid.to_string()).unwrap_or_default());
        let numbers = [
            row.threads,
            row.on_cpu_ns,
            delays.percentile(0.5),
            delays.percentile(0.99),
            row.woken_waits.count(),
            row.woken_waits.total(),
            row.preempted.count(),
            row.preempted.total(),
            row.migrations,
        ];
        fields.extend(numbers.map(|n| n.to_string()));
        // What a printed table does not have is no 0, as in JSON it is null.
        for (name, field) in head.iter().zip(&mut fields) {
            if printed && UNTOLD.contains(name) {
                field.clear();
            }
        }
        csv::row(&mut out, fields);
    }
    out
}

/// Returns the CPUs as CSV.
pub fn cpus_csv(report: &SchedReport) -> String {
    let mut out = String::new();
    csv::row(
        &mut out,
        [
            "cpu",
            "switches",
            "busy_ns",
            "idle_ns",
            "wakeups",
            "delays",
            "delay_mean_ns",
            "delay_max_ns",
            "delay_max_at_ns",
        ],
    );
    for row in &report.cpus {
        let numbers = [
            u64::from(row.cpu),
            row.switches,
            row.busy_ns,
            row.idle_ns,
            row.wakeups,
            row.delays.count(),
            row.delays.total() / row.delays.count().max(1),
            row.delays.max(),
            row.delay_max_at,
        ];
        csv::row(&mut out, numbers.map(|n| n.to_string()));
    }
    out
}

/// How the tables are laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Rows at most.
    pub limit: usize,
    /// Whether the times are nanoseconds; ticks of unknown rate are printed as numbers.
    pub nanoseconds: bool,
    /// Whether rows are threads, not names.
    pub threads: bool,
    /// Whether `sched_stat_runtime` told run times.
    pub runtimes: bool,
}

/// Tasks that the list of preempted ones shows.
const PREEMPTED: usize = 5;
/// Others that one line names.
const NAMED: usize = 3;

/// Returns the table of tasks, whom they were preempted by, and the functions of kworkers.
pub fn table(report: &SchedReport, layout: Layout) -> String {
    let mut out = summary(report, layout);
    preempted(&mut out, report, layout);
    wakers(&mut out, report);
    work(&mut out, report, layout);
    out
}

/// Returns whether a report is of a table that perf printed: of CPUs it tells nothing.
fn is_printed(report: &SchedReport) -> bool {
    report.cpus.is_empty() && !report.delays.has_percentiles()
}

/// Returns the table of tasks alone.
pub fn summary(report: &SchedReport, layout: Layout) -> String {
    let time = |value: u64| duration::of(value, layout.nanoseconds);
    let printed = is_printed(report);
    let told = |value: u64| if printed { "-".to_owned() } else { time(value) };
    let others = report.rows.iter().find(|row| row.is_others());
    let tasks = report.rows.len() as u64 + others.map_or(0, |row| row.threads.saturating_sub(1));
    let mut out = format!(
        "sched: {}, {} delays, mean {}, p99 {}, max {}\n",
        words::plural(tasks, "task"),
        report.delays.count(),
        time(report.delays.mean()),
        told(report.delays.percentile(0.99)),
        time(report.delays.max())
    );
    let _ = writeln!(
        out,
        "{:<24}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}",
        "", "runtime", "switches", "mean", "max", "woken", "preempted"
    );
    for row in report.rows.iter().take(layout.limit) {
        let runtime = if layout.runtimes {
            row.runtime_ns
        } else {
            row.on_cpu_ns
        };
        let delays = &row.delays;
        let name = if layout.threads || row.threads == 1 {
            title(row)
        } else {
            format!("{}:({})", row.comm, row.threads)
        };
        let _ = writeln!(
            out,
            "{:<24}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}",
            clean(&name),
            time(runtime),
            delays.count(),
            time(delays.total() / delays.count().max(1)),
            time(delays.max()),
            told(row.woken_waits.total()),
            told(row.preempted.total()),
        );
    }
    if report.rows.len() > layout.limit {
        let _ = writeln!(out, "... and {} more", report.rows.len() - layout.limit);
    }
    out
}

fn preempted(out: &mut String, report: &SchedReport, layout: Layout) {
    let time = |value: u64| duration::of(value, layout.nanoseconds);
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
            time(row.preempted.total()),
            row.preempted.count(),
            clean(&title(row))
        );
        for other in row.preempted_by.iter().take(NAMED) {
            let _ = writeln!(
                out,
                "  {:>9} in {:>6}    {}",
                time(other.ns),
                other.count,
                clean(&name(other))
            );
        }
    }
}

fn wakers(out: &mut String, report: &SchedReport) {
    let woken = |row: &TaskRow| row.woken_by.iter().map(|o| o.count).sum::<u64>();
    let mut rows: Vec<&TaskRow> = report.rows.iter().filter(|r| woken(r) > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(woken(row)));
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nwoken most often, and by whom");
    for row in rows.iter().take(PREEMPTED) {
        let _ = writeln!(out, "  {:>8} times  {}", woken(row), clean(&title(row)));
        for other in row.woken_by.iter().take(NAMED) {
            let _ = writeln!(out, "  {:>8} times    {}", other.count, clean(&name(other)));
        }
    }
}

fn work(out: &mut String, report: &SchedReport, layout: Layout) {
    if report.work.is_empty() {
        return;
    }
    let time = |value: u64| duration::of(value, layout.nanoseconds);
    let _ = writeln!(out, "\nkworkers ran");
    for row in report.work.iter().take(layout.limit) {
        let function = clean(&row.function);
        if row.stats.count() > 0 {
            let _ = writeln!(
                out,
                "  {:>9} in {:>6} times, mean {:>9}, max {:>9}  {function}",
                time(row.stats.total()),
                row.stats.count(),
                time(row.stats.mean()),
                time(row.stats.max()),
            );
        } else {
            let _ = writeln!(out, "  in {:>6} stacks  {function}", row.stacks);
        }
    }
}

/// Returns what a row is of.
fn title(row: &TaskRow) -> String {
    if row.is_others() {
        format!("others ({})", row.threads)
    } else {
        format!("{}:{}", row.comm, row.tid)
    }
}

fn name(other: &Other) -> String {
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
    let time = |value: u64| duration::of(value, layout.nanoseconds);
    let mut out = format!("sched: {} CPUs\n", report.cpus.len());
    let _ = writeln!(
        out,
        "{:>4}{:>9}{:>9}{:>7}{:>9}{:>8}{:>9}{:>9}  whose",
        "CPU", "busy", "idle", "busy%", "switches", "woken", "mean", "max"
    );
    for row in report.cpus.iter().take(layout.limit) {
        let share = row.busy_ns as f64 / (row.busy_ns.saturating_add(row.idle_ns)).max(1) as f64;
        let whose = row.worst.as_ref().map(name).unwrap_or_default();
        let _ = writeln!(
            out,
            "{:>4}{:>9}{:>9}{:>7}{:>9}{:>8}{:>9}{:>9}  {}",
            row.cpu,
            time(row.busy_ns),
            time(row.idle_ns),
            share::cell(share),
            row.switches,
            row.wakeups,
            time(row.delays.total() / row.delays.count().max(1)),
            time(row.delays.max()),
            clean(&whose)
        );
    }
    out
}

/// Columns that the longest bar of a histogram has.
const BAR: u64 = 40;

/// Returns the delays of all tasks as a histogram.
pub fn histogram(report: &SchedReport, layout: Layout) -> String {
    let time = |value: u64| duration::of(value, layout.nanoseconds);
    let buckets = report.delays.octaves();
    let most = buckets.iter().map(|b| b.2).max().unwrap_or(0).max(1);
    let mut out = "delays\n".to_owned();
    for (from, to, count) in buckets {
        let bar = "#".repeat(count.saturating_mul(BAR).div_ceil(most) as usize);
        let line = format!("{:>9} to {:>9}{count:>9}  {bar}", time(from), time(to));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
