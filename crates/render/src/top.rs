//! What `trapline top` counted in an interval.

use std::fmt::Write;

use counts::{
    CountingWay, DurationBuckets, NamedBehind, NamedCounters, NamedCounts, NamedRow, NamedThread,
    NamedVcpu, RowOwner,
};
use serde::Serialize;
use serde_json::Value;

use crate::amounts::share;
use crate::counters::{self, GUEST_NAMES, HOST_NAMES};
use crate::shape;
use crate::table::{Table, Unit, Views};
use crate::times::{self, TimesViews};
use crate::{Layout, clean};

/// Longest name of a VM on a terminal.
const NAME: usize = 12;

/// Exits and accesses that are notifications.
const NOTIFICATIONS: Views = Views::own(0);
/// Every view.
const ALL: Views = Views::TERMINAL.and(NOTIFICATIONS);

/// A row with the interval that it is of, for what there was of it in a second and in a whole.
#[derive(Debug)]
pub(crate) struct IntervalRow<'r, R> {
    row: &'r R,
    interval_ns: u64,
}

/// Returns how many there are in a second; `None` of an interval of no length.
fn rate(count: u64, interval_ns: u64) -> Option<f64> {
    (interval_ns > 0).then(|| count as f64 * 1e9 / interval_ns as f64)
}

/// Returns something of durations; `None` where there are none.
fn of_any(durations: &DurationBuckets, of: impl Fn(&DurationBuckets) -> u64) -> Option<u64> {
    (durations.count > 0).then(|| of(durations))
}

/// Returns a mean as it is printed, rounded once: times the number it is the total.
fn mean(durations: &DurationBuckets) -> String {
    match durations.count {
        0 => "-".to_owned(),
        count => words::duration::mean(durations.total_ns as f64 / count as f64),
    }
}

/// What a VM is called, as far as a column has room.
fn vm(whose: &RowOwner) -> String {
    let name = clean(&whose.vm);
    match name.char_indices().nth(NAME) {
        Some(_) => name.chars().take(NAME - 1).chain(['~']).collect(),
        None => name,
    }
}

fn whose<'t, R: 't>(table: Table<'t, R>, of: fn(&R) -> &RowOwner) -> Table<'t, R> {
    use Unit::{Name, Number};
    table
        .column("vm", Name, move |row| vm(of(row)))
        .text_only()
        .left("VM", NAME)
        .views(ALL)
        .column("vm_pid", Number, move |row| of(row).vm_pid)
        .column("vm_name", Name, move |row| of(row).vm_name.clone())
        .column("vcpu", Number, move |row| of(row).vcpu)
        .heading("vCPU", 5)
        .views(ALL)
        .column("tid", Number, move |row| of(row).tid)
}

fn per_second<'t, R: 't>(table: Table<'t, R>, value: fn(&R) -> Option<f64>) -> Table<'t, R> {
    table
        .column("per_second", Unit::Value, value)
        .heading("/s", 9)
        .views(ALL)
        .show(move |row, _| match value(row) {
            None => "-".to_owned(),
            Some(few) if few < 9.95 => format!("{few:.1}"),
            Some(many) => format!("{many:.0}"),
        })
}

/// Columns of waits for a CPU, after a wake-up and after being preempted.
const WOKEN: [&str; 5] = [
    "woken",
    "woken_ns",
    "woken_mean_ns",
    "woken_p99_ns",
    "woken_max_ns",
];
const PREEMPTED: [&str; 5] = [
    "preempted",
    "preempted_ns",
    "preempted_mean_ns",
    "preempted_p99_ns",
    "preempted_max_ns",
];

fn waits<'t, R: 't>(
    table: Table<'t, R>,
    names: [&'static str; 5],
    of: fn(&R) -> &DurationBuckets,
) -> Table<'t, R> {
    use Unit::{Count, Nanoseconds};
    let [count, total, mean, p99, max] = names;
    table
        .column(count, Count, move |row| of(row).count)
        .column(total, Nanoseconds, move |row| of(row).total_ns)
        .column(mean, Nanoseconds, move |row| {
            of_any(of(row), DurationBuckets::mean_ns)
        })
        .column(p99, Nanoseconds, move |row| {
            of_any(of(row), |all| all.at_most_ns(0.99))
        })
        .column(max, Nanoseconds, move |row| {
            of_any(of(row), |all| all.max_ns)
        })
}

/// Columns of vCPUs.
pub(crate) fn vcpus<'r>() -> Table<'r, IntervalRow<'r, NamedVcpu>> {
    use Unit::{Count, Flag, Nanoseconds};
    type Row<'r> = IntervalRow<'r, NamedVcpu>;
    let table = whose(Table::new(), |v: &Row<'_>| &v.row.whose).column(
        "observed_ns",
        Nanoseconds,
        |v: &Row<'_>| v.row.vcpu.times.total(),
    );
    let views = TimesViews {
        shares: Views::TERMINAL,
        guest: true,
        ..TimesViews::NONE
    };
    let table = times::columns(table, views, |v| (v.row.vcpu.times, &[]))
        .column("exits", Count, |v| v.row.vcpu.exits)
        .column("exits_per_second", Unit::Value, |v| {
            rate(v.row.vcpu.exits, v.interval_ns)
        })
        .heading("exits/s", 9)
        .show(|v, _| {
            let rate = rate(v.row.vcpu.exits, v.interval_ns);
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"))
        })
        .column("polls_succeeded", Count, |v| v.row.vcpu.polls.succeeded)
        .column("polls_succeeded_ns", Nanoseconds, |v| {
            v.row.vcpu.polls.succeeded_ns
        })
        .column("polls_failed", Count, |v| v.row.vcpu.polls.failed)
        .column("polls_failed_ns", Nanoseconds, |v| {
            v.row.vcpu.polls.failed_ns
        });
    let table = waits(table, WOKEN, |v| &v.row.vcpu.woken).heading("wake max", 10);
    waits(table, PREEMPTED, |v| &v.row.vcpu.preempted)
        .heading("steal max", 10)
        .column("before_first_entry", Count, |v| {
            v.row.vcpu.before_first_entry
        })
        .column("without_entry", Count, |v| v.row.vcpu.without_entry)
        .column("ended", Flag, |v| v.row.vcpu.ended)
}

/// Columns of threads that are no vCPUs.
pub(crate) fn threads<'r>() -> Table<'r, IntervalRow<'r, NamedThread>> {
    use Unit::{Flag, Name, Nanoseconds, Number, Share, Text};
    type Row<'r> = IntervalRow<'r, NamedThread>;
    let table = Table::new()
        .column("vm", Name, |t: &Row<'_>| vm(&t.row.whose))
        .text_only()
        .left("VM", NAME)
        .column("vm_pid", Number, |t| t.row.whose.vm_pid)
        .column("vm_name", Name, |t| t.row.whose.vm_name.clone())
        .column("tid", Number, |t| t.row.thread.tid)
        .heading("thread", 8)
        .column("role", Text, |t| t.row.role.name())
        .left("role", 5)
        .gap("  ")
        .after("preempted_max_ns")
        .column("comm", Name, |t| t.row.comm.clone())
        .left("name", 0)
        .gap("  ")
        .after("role")
        .show(|t, _| clean(t.row.comm.as_deref().unwrap_or_default()))
        .column("ran_ns", Nanoseconds, |t| t.row.thread.ran_ns)
        .heading("ran", 10)
        .column("ran_share", Share, |t| {
            share(t.row.thread.ran_ns, t.interval_ns)
        })
        .heading("%", 7)
        .column("runnable_ns", Nanoseconds, |t| t.row.thread.runnable_ns)
        .heading("waited", 10)
        .column("runnable_share", Share, |t| {
            share(t.row.thread.runnable_ns, t.interval_ns)
        })
        .heading("%", 7)
        .column("slept_ns", Nanoseconds, |t| t.row.thread.slept_ns)
        .column("unknown_ns", Nanoseconds, |t| t.row.thread.unknown_ns);
    let table = waits(table, WOKEN, |t| &t.row.thread.woken).heading("wake max", 10);
    waits(table, PREEMPTED, |t| &t.row.thread.preempted)
        .heading("steal max", 10)
        .column("ended", Flag, |t| t.row.thread.ended)
}

/// Columns of exits and accesses.
pub(crate) fn exits<'r>() -> Table<'r, IntervalRow<'r, NamedRow>> {
    use Unit::{Count, Flag, Nanoseconds, Share, Text};
    type Row<'r> = IntervalRow<'r, NamedRow>;
    let table = Table::new().column("table", Text, |r: &Row<'_>| r.row.table.name());
    let table = whose(table, |r| &r.row.whose)
        .column("key", Text, |r| r.row.key.clone())
        .left("exit or access", 22)
        .gap("  ")
        .views(ALL)
        .after("max_ns")
        .column("name", Text, |r| r.row.name.clone())
        .left("name", 0)
        .gap("  ")
        .views(ALL)
        .after("key")
        .show(|r, _| match (&r.row.name, r.row.waiting) {
            (Some(name), _) => clean(name),
            (None, true) => "(waiting)".to_owned(),
            (None, false) => String::new(),
        })
        .column("waiting", Flag, |r| r.row.waiting)
        .column("count", Count, |r| r.row.durations.count);
    let table = per_second(table, |r| rate(r.row.durations.count, r.interval_ns))
        .column("total_ns", Nanoseconds, |r| r.row.durations.total_ns)
        .heading("total", 10)
        .column("share", Share, |r| {
            share(r.row.durations.total_ns, r.interval_ns)
        })
        .heading("%", 7)
        .column("min_ns", Nanoseconds, |r| r.row.min_ns)
        .column("mean_ns", Nanoseconds, |r| {
            of_any(&r.row.durations, DurationBuckets::mean_ns)
        })
        .heading("mean", 10)
        .show(|r, _| mean(&r.row.durations))
        .views(ALL)
        .column("p50_ns", Nanoseconds, |r| {
            of_any(&r.row.durations, |all| all.at_most_ns(0.5))
        })
        .column("p99_ns", Nanoseconds, |r| {
            of_any(&r.row.durations, |all| all.at_most_ns(0.99))
        })
        .heading("p99 <=", 10)
        .column("max_ns", Nanoseconds, |r| {
            of_any(&r.row.durations, |all| all.max_ns)
        })
        .heading("max", 10)
        .column("user_count", Count, |r| r.row.user_count)
        .column("whole_ns", Nanoseconds, |r| r.row.whole_ns);
    times::columns(table, TimesViews::NONE, |r| (r.row.times, &[]))
}

/// Columns of tasks that ran while vCPUs and threads waited.
pub(crate) fn behind<'r>() -> Table<'r, IntervalRow<'r, NamedBehind>> {
    use Unit::{Count, Name, Nanoseconds, Number, Share};
    type Row<'r> = IntervalRow<'r, NamedBehind>;
    whose(Table::new(), |b: &Row<'_>| &b.row.whose)
        .column("thread", Name, |b| b.row.thread.clone())
        .left("or thread", 15)
        .gap("  ")
        .show(|b, _| clean(b.row.thread.as_deref().unwrap_or_default()))
        .column("comm", Name, |b| b.row.comm.clone())
        .left("behind", 0)
        .gap("  ")
        .after("count")
        .show(|b, _| match (&b.row.comm, b.row.by_tid, &b.row.vm) {
            (_, Some(0), _) => "nothing: the CPU was idle".to_owned(),
            (Some(comm), _, Some(vm)) => clean(&format!("{comm} of {vm}")),
            (Some(comm), ..) => clean(comm),
            (None, Some(tid), _) => format!(":{tid}"),
            _ => "others".to_owned(),
        })
        .column("by_tid", Number, |b| b.row.by_tid)
        .column("by_vm", Name, |b| b.row.vm.clone())
        .column("count", Count, |b| b.row.count)
        .heading("times", 8)
        .column("ran_ns", Nanoseconds, |b| b.row.ns)
        .heading("ran", 10)
        .after("thread")
        .column("share", Share, |b| share(b.row.ns, b.interval_ns))
        .heading("%", 7)
        .after("ran_ns")
}

/// Columns of what counters counted of vCPUs.
pub(crate) fn counter_columns<'r>() -> Table<'r, IntervalRow<'r, NamedCounters>> {
    use Unit::{Count, Nanoseconds, Share};
    type Row<'r> = IntervalRow<'r, NamedCounters>;
    let table = whose(Table::new(), |c: &Row<'_>| &c.row.whose)
        .column("cpu_ns", Nanoseconds, |c| {
            counters::scaled(c.row.counts.clock)
        })
        .heading("CPU time", 10);
    let table = counters::of_mode(table, &GUEST_NAMES, |c| &c.row.counts.guest);
    counters::of_mode(table, &HOST_NAMES, |c| &c.row.counts.host)
        .column("page_faults", Count, |c| {
            counters::scaled(c.row.counts.page_faults)
        })
        .heading("faults", 8)
        .column("counted_share", Share, |c| c.row.counts.share())
        .heading("counted", 8)
}

/// What found no room.
#[derive(Debug, Serialize)]
struct DroppedCounts {
    vcpus: u64,
    rows: u64,
    behind: u64,
    threads: u64,
    events: u64,
    withheld: u64,
}

shape!(DroppedCounts {
    vcpus,
    rows,
    behind,
    threads,
    events,
    withheld
});

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct TopDocument {
    interval_ns: u64,
    counted_by: &'static str,
    counted_why: Option<String>,
    isa: Option<&'static str>,
    vcpus: Value,
    threads: Value,
    rows: Value,
    notifications: Value,
    behind: Value,
    /// What counters counted of vCPUs, where that is asked for.
    counters: Value,
    dropped: DroppedCounts,
}

shape!(TopDocument {
    interval_ns,
    counted_by,
    counted_why,
    isa,
    vcpus: vcpus().shape().list(),
    threads: threads().shape().list(),
    rows: exits().shape().list(),
    notifications: exits().shape().list(),
    behind: behind().shape().list(),
    counters: counter_columns().shape().list(),
    dropped,
});

fn all<R>(rows: &[R], interval_ns: u64) -> impl Iterator<Item = IntervalRow<'_, R>> {
    rows.iter().map(move |row| IntervalRow { row, interval_ns })
}

fn notifications(named: &NamedCounts) -> impl Iterator<Item = IntervalRow<'_, NamedRow>> {
    all(&named.rows, named.interval_ns).filter(|r| r.row.is_notification())
}

/// Returns the fields of a document.
pub fn document(named: &NamedCounts) -> TopDocument {
    let ns = named.interval_ns;
    TopDocument {
        interval_ns: ns,
        counted_by: named.way.name(),
        counted_why: match &named.way {
            CountingWay::Events { why } => why.as_deref().map(clean),
            CountingWay::Bpf => None,
        },
        isa: named.isa.map(event::Isa::name),
        vcpus: vcpus().json(all(&named.vcpus, ns)),
        threads: threads().json(all(&named.threads, ns)),
        rows: exits().json(all(&named.rows, ns)),
        notifications: exits().json(notifications(named)),
        behind: behind().json(all(&named.behind, ns)),
        counters: counter_columns().json(all(&named.counters, ns)),
        dropped: DroppedCounts {
            vcpus: named.dropped.vcpus,
            rows: named.dropped.rows,
            behind: named.dropped.behind,
            threads: named.dropped.threads,
            events: named.dropped.events,
            withheld: named.dropped.withheld,
        },
    }
}

/// Returns exits and accesses as CSV.
pub fn csv(named: &NamedCounts) -> String {
    exits().csv(all(&named.rows, named.interval_ns))
}

/// Returns what counters counted of vCPUs as CSV.
pub fn counters_csv(named: &NamedCounts) -> String {
    counter_columns().csv(all(&named.counters, named.interval_ns))
}

/// A part of what a terminal shows: headings, and a line for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub title: &'static str,
    /// The headings of its columns.
    pub head: String,
    /// Its rows, in the order of [`NamedCounts`].
    pub lines: Vec<String>,
}

/// Returns the parts: vCPUs, their counters, exits and accesses, notifications, other threads, tasks that ran while
/// vCPUs and threads waited.
pub fn parts(named: &NamedCounts, layout: Layout) -> [Part; 6] {
    let ns = named.interval_ns;
    let (of_vcpus, of_exits, of_behind) = (vcpus(), exits(), behind());
    let of_threads = threads();
    let others = of_threads.view(Views::TERMINAL);
    let states = of_vcpus.view(Views::TERMINAL);
    let rows = of_exits.view(Views::TERMINAL);
    let notifications_view = of_exits.view(NOTIFICATIONS);
    let waits = of_behind.view(Views::TERMINAL);
    let of_counters = counter_columns();
    let counts = of_counters.view(Views::TERMINAL);
    let counted = all(&named.counters, ns).map(|row| counts.line(&row, layout));
    let vcpus = all(&named.vcpus, ns).map(|row| states.line(&row, layout));
    let exits = all(&named.rows, ns).map(|row| rows.line(&row, layout));
    let notified = notifications(named).map(|row| notifications_view.line(&row, layout));
    let threads = all(&named.threads, ns).map(|row| others.line(&row, layout));
    let behind = all(&named.behind, ns).map(|row| waits.line(&row, layout));
    [
        Part {
            title: "vCPUs: per cent of time by state",
            head: states.head(),
            lines: vcpus.collect(),
        },
        Part {
            title: "cycles, instructions and cache misses of vCPUs (Mc: million cycles)",
            head: counts.head(),
            lines: counted.collect(),
        },
        Part {
            title: "exits and accesses",
            head: rows.head(),
            lines: exits.collect(),
        },
        Part {
            title: "virtio notifications",
            head: notifications_view.head(),
            lines: notified.collect(),
        },
        Part {
            title: "back ends and other threads of the VMs",
            head: others.head(),
            lines: threads.collect(),
        },
        Part {
            title: "who ran while they waited for a CPU",
            head: waits.head(),
            lines: behind.collect(),
        },
    ]
}

/// Returns by whom it was counted, and why not in the kernel.
pub fn way(named: &NamedCounts) -> String {
    match &named.way {
        CountingWay::Bpf => "in the kernel, by BPF programs".to_owned(),
        CountingWay::Events { why: None } => "out of the kernel's events".to_owned(),
        CountingWay::Events { why: Some(why) } => {
            format!("out of the kernel's events, since {}", clean(why))
        }
    }
}

/// Returns the tables; each has as many rows as the layout's limit.
pub fn table(named: &NamedCounts, layout: Layout) -> String {
    let mut out = format!(
        "top: {} counted {}\n",
        layout.time(named.interval_ns),
        way(named)
    );
    for part in parts(named, layout) {
        if part.lines.is_empty() {
            continue;
        }
        let _ = write!(out, "\n{}\n{}\n", part.title, part.head.trim_end());
        for line in part.lines.iter().take(layout.limit) {
            let _ = writeln!(out, "{}", line.trim_end());
        }
        if part.lines.len() > layout.limit {
            let _ = writeln!(out, "... and {} more", part.lines.len() - layout.limit);
        }
    }
    out
}

/// Returns the warnings about what was counted in no row.
pub fn warnings(named: &NamedCounts) -> Vec<String> {
    let dropped = named.dropped;
    let left_out = [
        (
            dropped.vcpus,
            "events are of vCPUs beyond the most that are followed",
        ),
        (
            dropped.rows,
            "exits and accesses are of kinds beyond the most rows",
        ),
        (
            dropped.behind,
            "waits were for a CPU with too many waiters, so that the task ahead is unknown",
        ),
    ];
    let left_out = left_out.into_iter().filter(|(count, _)| *count > 0);
    let left_out =
        left_out.map(|(count, what)| format!("{count} {what}, and are counted nowhere else"));
    let threads = (dropped.threads > 0).then(|| {
        let threads = dropped.threads;
        format!("{threads} threads of VMs are beyond the most that are followed")
    });
    let events = (dropped.events > 0).then(|| {
        let events = words::plural(dropped.events, "event");
        format!("{events} found no room in the kernel's rings and are counted nowhere")
    });
    let withheld = (dropped.withheld > 0).then(|| {
        let withheld = words::plural(dropped.withheld, "event");
        format!(
            "the kernel counted {withheld} that it neither wrote to its rings nor counted as lost; they are missing \
             here"
        )
    });
    left_out
        .chain(threads)
        .chain(events)
        .chain(withheld)
        .collect()
}
