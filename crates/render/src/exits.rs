//! Exit statistics.

use std::fmt::Write;

use analysis::{
    ExitRow, ExitTable, ExitsReport, GuestCode, GuestDoing, GuestFunction, HandledBy, Stats,
    Unknowable,
};
use event::Isa;
use serde::Serialize;
use serde_json::Value;

use crate::html::Frame;
use crate::table::{Shown, Table, Unit, more};
use crate::times;
use crate::{ClockUnit, Layout, guest_tasks, quality, vms};

/// A row of a table of exits.
pub(crate) struct Exit<'r> {
    isa: Option<Isa>,
    report: &'r ExitsReport,
    row: &'r ExitRow,
    unknowable: &'r [Unknowable],
}

impl Exit<'_> {
    fn handled_by(&self) -> Option<HandledBy> {
        self.row.handled_by(self.report.seen.as_ref()?)
    }
}

/// Columns of the tables of exits.
pub(crate) fn columns<'r>() -> Table<'r, Exit<'r>> {
    use Unit::{Count, Flag, Nanoseconds, Number, Share, Text};
    Table::new()
        .column("event", Text, |e: &Exit<'_>| e.report.table.name())
        .csv_only()
        .column("isa", Text, |e| e.isa.map(Isa::name))
        .csv_only()
        .column("vm", Text, |e| {
            vms::cell(e.row.vm_name.as_deref().unwrap_or_default(), e.row.vm_pid)
        })
        .text_only()
        .heading("VM", VM_WIDTH)
        .only_if(is_grouped, |table| {
            table
                .column("vm_pid", Number, |e| e.row.vm_pid)
                .column("vcpu", Number, |e| e.row.vcpu)
                .heading("vCPU", VCPU_WIDTH)
                .gap(" ")
        })
        .column("reason", Text, narrow_key)
        .text_only()
        .left("", KEY_WIDTH)
        .gap(" ")
        .column("key", Text, |e| e.row.key.as_str())
        .left("", KEY_WIDTH)
        .gap(" ")
        .column("name", Text, |e| {
            e.row.name.as_ref().unwrap_or(&e.row.key).as_str()
        })
        .column("waiting", Flag, |e| e.row.waiting)
        .column("count", Count, |e| e.row.stats.count())
        .heading("count", 9)
        .column("share", Share, |e| {
            share(e.row.stats.count(), e.report.total_count)
        })
        .heading("count%", 7)
        .column("total_ns", Nanoseconds, |e| e.row.stats.total())
        .heading("time", 9)
        .column("total_share", Share, |e| {
            share(e.row.stats.total(), e.report.total_ns)
        })
        .text_only()
        .heading("time%", 6)
        .column("min_ns", Nanoseconds, |e| e.row.stats.min())
        .heading("min", 9)
        .column("mean_ns", Nanoseconds, |e| e.row.stats.mean())
        .heading("mean", 9)
        .column("max_ns", Nanoseconds, |e| e.row.stats.max())
        .heading("max", 9)
        .column("p50_ns", Nanoseconds, |e| percentile(&e.row.stats, 0.5))
        .heading("p50", 9)
        .column("p90_ns", Nanoseconds, |e| percentile(&e.row.stats, 0.9))
        .heading("p90", 9)
        .column("p99_ns", Nanoseconds, |e| percentile(&e.row.stats, 0.99))
        .heading("p99", 9)
        .only_if(is_split, |table| {
            times::columns(table, |e| (e.row.times.unwrap_or_default(), e.unknowable))
                .column("user_count", Count, |e| e.row.user_count)
                .column("handled_by", Text, |e| {
                    e.handled_by().map(|by| match by {
                        HandledBy::Kernel => "kernel",
                        HandledBy::User => "user",
                        HandledBy::Both => "both",
                    })
                })
                .left("by", 0)
                .gap("  ")
                .show(|e, _| {
                    let by = e.handled_by().map(|by| match by {
                        HandledBy::Kernel => "KVM",
                        HandledBy::User => "VMM",
                        HandledBy::Both => "both",
                    });
                    by.unwrap_or_default().to_owned()
                })
        })
        .only_if(is_grouped, |table| {
            table.column("vm_name", Text, |e| e.row.vm_name.as_deref())
        })
        .only_if(|e| e.row.task.is_some(), task_columns)
        .only_if(|e| e.row.function.is_some(), function_columns)
}

/// Columns of what the guest did.
fn task_columns<'r>(table: Table<'r, Exit<'r>>) -> Table<'r, Exit<'r>> {
    use Unit::{Number, Text};
    table
        .column("task", Text, |e: &Exit<'_>| {
            e.row.task.as_ref().map(guest_tasks::called)
        })
        .text_only()
        .left("", TASK_WIDTH)
        .gap(" ")
        .column("task_what", Text, |e| {
            let task = e.row.task.as_ref();
            task.map(|task| guest_tasks::what(task.doing))
        })
        .column("task_name", Text, |e| {
            let task = e.row.task.as_ref();
            task.and_then(|task| task.name.as_deref())
        })
        .column("task_tid", Number, |e| {
            match e.row.task.as_ref().map(|task| task.doing) {
                Some(GuestDoing::Task(tid)) => Some(tid),
                _ => None,
            }
        })
}

/// Columns of the guest's function.
fn function_columns<'r>(table: Table<'r, Exit<'r>>) -> Table<'r, Exit<'r>> {
    use Unit::{Number, Text};
    let start = |e: &Exit<'_>| {
        let function = e.row.function.as_ref()?;
        match function.code {
            GuestCode::Kernel { start, .. } if function.name.is_some() => Some(start),
            _ => None,
        }
    };
    table
        .column("function", Text, |e: &Exit<'_>| {
            e.row.function.as_ref().map(function)
        })
        .left("guest's function", 0)
        .gap("  ")
        .column("function_address", Number, start)
}

/// Returns what a place in a guest is called.
fn function(function: &GuestFunction) -> String {
    match (&function.name, function.code) {
        (Some(name), _) => name.clone(),
        (None, GuestCode::Kernel { .. }) => "[kernel]".to_owned(),
        (None, GuestCode::User) => "[user]".to_owned(),
        (None, GuestCode::Unknown) => "[unknown]".to_owned(),
    }
}

/// Columns of the narrow table, which fits 80, and of the wide one; those of the VM stand before them.
pub(crate) const NARROW: [&str; 8] = [
    "reason",
    "count",
    "total_ns",
    "total_share",
    "mean_ns",
    "p50_ns",
    "p99_ns",
    "max_ns",
];
pub(crate) const WIDE: [&str; 11] = [
    "reason",
    "count",
    "share",
    "total_ns",
    "total_share",
    "min_ns",
    "mean_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
];

/// Columns of a ticket.
const MARKDOWN: [&str; 9] = [
    "key",
    "name",
    "count",
    "total_ns",
    "total_share",
    "mean_ns",
    "p50_ns",
    "p99_ns",
    "max_ns",
];

fn is_grouped(exit: &Exit<'_>) -> bool {
    exit.row.vm_name.is_some()
}

fn is_split(exit: &Exit<'_>) -> bool {
    exit.row.times.is_some() && exit.report.seen.is_some()
}

/// Columns of the key.
const KEY_WIDTH: usize = 20;

/// Columns of the VM and the vCPU.
const VM_WIDTH: usize = vms::WIDTH;
const VCPU_WIDTH: usize = 4;

/// Column of the guest's task.
const TASK_WIDTH: usize = 19;

/// Columns of the narrow table with one of them, or both.
const IN_GUEST: [&str; 5] = ["reason", "count", "total_ns", "total_share", "mean_ns"];

/// Returns the key, and a name behind it where both fit; else the name has a line of its own, in the wide form the line's end.
fn narrow_key(exit: &Exit<'_>) -> String {
    let row = exit.row;
    let name = row.name.as_deref().unwrap_or_default();
    if row.waiting {
        format!("{} (waiting)", row.key)
    } else if !name.is_empty() && row.key.len() + 1 + name.len() < KEY_WIDTH {
        format!("{} {name}", row.key)
    } else {
        row.key.clone()
    }
}

/// Returns a percentile; `None` for sums that a tool printed, which have none.
fn percentile(stats: &Stats, share: f64) -> Option<u64> {
    stats.has_percentiles().then(|| stats.percentile(share))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn rows<'r>(
    isa: Option<Isa>,
    report: &'r ExitsReport,
    unknowable: &'r [Unknowable],
) -> impl Iterator<Item = Exit<'r>> {
    report.rows.iter().map(move |row| Exit {
        isa,
        report,
        row,
        unknowable,
    })
}

/// The fields of a document: those of the first table, and the list of all where there are several.
#[derive(Debug, Serialize)]
pub struct Document {
    #[serde(flatten)]
    first: Option<OneTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<Vec<OneTable>>,
}

/// A table in a document.
#[derive(Debug, Serialize)]
pub struct OneTable {
    event: &'static str,
    isa: Option<&'static str>,
    rows: Value,
    total_count: u64,
    total_ns: u64,
    handling_ns: u64,
    /// Left out where rows do not say where their time went.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknowable: Option<Vec<Unknowable>>,
}

/// Returns the fields of a document.
pub fn document(isa: Option<Isa>, reports: &[ExitsReport]) -> Document {
    Document {
        first: reports.first().map(|report| one_table(isa, report)),
        tables: (reports.len() > 1).then(|| tables(isa, reports)),
    }
}

/// Returns the tables of a document.
pub fn tables(isa: Option<Isa>, reports: &[ExitsReport]) -> Vec<OneTable> {
    let reports = reports.iter();
    reports.map(|report| one_table(isa, report)).collect()
}

fn one_table(isa: Option<Isa>, report: &ExitsReport) -> OneTable {
    let seen = report.seen.as_ref();
    OneTable {
        event: report.table.name(),
        isa: isa.map(Isa::name),
        rows: columns().json(rows(isa, report, &[])),
        total_count: report.total_count,
        total_ns: report.total_ns,
        handling_ns: report.handling_ns,
        unknowable: seen.map(analysis::unknowable),
    }
}

/// Returns tables as CSV, one line of names for all.
pub fn csv(isa: Option<Isa>, reports: &[ExitsReport], clock: ClockUnit) -> String {
    let all = reports.iter().flat_map(|report| rows(isa, report, &[]));
    columns().counted_in(clock).csv(all)
}

/// Returns one table as text; `wide` has all columns, however wide that is.
pub fn table(isa: Option<Isa>, report: &ExitsReport, wide: bool, layout: Layout) -> String {
    let mut out = headline(isa, report, layout);
    if report.rows.is_empty() {
        return out;
    }
    let columns = columns();
    let (vm, vm_width) = vm_columns(report);
    let (task, function) = in_guest(report);
    let rest = match (wide, task, function) {
        (true, ..) => &WIDE[..],
        (false, None, None) => &NARROW,
        // With VMs too there is no room for all.
        (false, _, None) if vm.is_empty() => &IN_GUEST,
        (false, _, None) => &IN_GUEST[..4],
        (false, _, Some(_)) => &IN_GUEST[..4],
    };
    let names = vm.iter().copied().chain(task);
    // Names of functions are of any length, so they stand last.
    let view = columns.view(names.chain(rest.iter().copied()).chain(function));
    let indent = " ".repeat(vm_width + task.map_or(0, |_| TASK_WIDTH + 1));
    let _ = writeln!(out, "{}", view.head());
    for exit in rows(isa, report, &[]).take(layout.limit) {
        out.push_str(&view.line(&exit, layout));
        let name = exit.row.name.as_deref().unwrap_or_default();
        if wide && !name.is_empty() {
            let _ = write!(out, "  {name}");
        }
        out.push('\n');
        if !wide && !name.is_empty() && !narrow_key(&exit).ends_with(name) {
            let _ = writeln!(out, "{indent}  {name}");
        }
    }
    out.push_str(&more(report.rows.len().saturating_sub(layout.limit)));
    out
}

/// Returns the headline of one table.
pub fn title(isa: Option<Isa>, report: &ExitsReport, layout: Layout) -> String {
    headline(isa, report, layout).trim_end().to_owned()
}

/// Returns one table as Markdown.
pub fn markdown(report: &ExitsReport, layout: Layout) -> String {
    let rows: Vec<Exit<'_>> = rows(None, report, &[]).collect();
    let names = MARKDOWN.iter().copied();
    // Exit reasons have no other name.
    let names = names.filter(|name| *name != "name" || report.table != ExitTable::Vmexit);
    columns().markdown(&names.collect::<Vec<_>>(), &rows, layout)
}

/// Returns the columns that tell VMs and vCPUs apart, where rows do, and how wide they are.
fn vm_columns(report: &ExitsReport) -> (&'static [&'static str], usize) {
    let any = |has: fn(&ExitRow) -> bool| report.rows.iter().any(has);
    if any(|row| row.vcpu.is_some()) {
        (&["vm", "vcpu"], VM_WIDTH + 1 + VCPU_WIDTH + 1)
    } else if any(|row| row.vm_name.is_some()) {
        (&["vm"], VM_WIDTH + 1)
    } else {
        (&[], 0)
    }
}

/// Returns the columns that tell apart what guests did and where they were, where rows do.
fn in_guest(report: &ExitsReport) -> (Option<&'static str>, Option<&'static str>) {
    let any = |has: fn(&ExitRow) -> bool| report.rows.iter().any(has);
    (
        any(|row| row.task.is_some()).then_some("task"),
        any(|row| row.function.is_some()).then_some("function"),
    )
}

/// Returns the line above a table: what it is of, and its sums.
fn headline(isa: Option<Isa>, report: &ExitsReport, layout: Layout) -> String {
    let count = counted(report);
    let mut out = report.table.name().to_owned();
    if let Some(isa) = isa {
        let _ = write!(out, " ({})", isa.name());
    }
    let total = layout.time(report.total_ns);
    let _ = write!(out, ": {count}, {total}");
    let waiting = report.total_ns.saturating_sub(report.handling_ns);
    if waiting > 0 {
        let _ = write!(
            out,
            ": handling {}, waiting {}",
            layout.time(report.handling_ns),
            layout.time(waiting)
        );
    }
    out.push('\n');
    out
}

/// Returns how many a table counts, with what they are.
pub(crate) fn counted(report: &ExitsReport) -> String {
    let (one, many) = match report.table {
        ExitTable::Vmexit => ("exit", "exits"),
        ExitTable::Ioport => ("port access", "port accesses"),
        ExitTable::Mmio => ("MMIO access", "MMIO accesses"),
        ExitTable::Msr => ("MSR access", "MSR accesses"),
    };
    words::counted(report.total_count, one, many)
}

/// Returns where the time of each row went, in per cent of it; nothing where that was not asked for.
pub fn split(report: &ExitsReport, layout: Layout) -> String {
    let Some(seen) = report.seen.as_ref().filter(|_| !report.rows.is_empty()) else {
        return String::new();
    };
    if !seen.userspace_exits && !seen.switches {
        return "where that time went is unknown: no kvm_userspace_exit or sched_switch events\n"
            .to_owned();
    }
    let unknowable = analysis::unknowable(seen);
    let columns = columns();
    let (task, function) = in_guest(report);
    let before = vm_columns(report)
        .0
        .iter()
        .copied()
        .chain(task)
        .chain(["key", "total_ns"]);
    // No time of an exit is in the guest.
    let states = times::names(false).skip(1);
    let view = columns.view(before.chain(states).chain(["handled_by"]).chain(function));
    let mut out = format!(
        "where that time went, in per cent of each row's\n{}\n",
        view.head()
    );
    for exit in rows(None, report, &unknowable).take(layout.limit) {
        let _ = writeln!(out, "{}", view.line(&exit, layout));
    }
    if let Some(note) = note(report) {
        quality::wrap(&mut out, "", note, layout.width);
    }
    out
}

/// Returns why reads of ports seem to take no time in the VMM, where the VMM handled any: whoever sets this table beside what vCPUs
/// were in the VMM for would find that they contradict each other.
///
/// An IN that the VMM handles leaves for it before KVM has the value, and `trace_kvm_pio` follows when it has
/// (`complete_fast_pio_in` and `complete_emulated_pio` in `arch/x86/kvm/x86.c`); of an OUT it comes first.
pub fn note(report: &ExitsReport) -> Option<&'static str> {
    let rows = &report.rows;
    let late = rows.iter().any(|row| !row.write && row.user_count > 0);
    (report.table == ExitTable::Ioport && late).then_some(
        "An IN (PIN) is timed from kvm_pio, which comes after the VMM has answered it: its time in the VMM is in its exit, and in \
         what vCPUs were in the VMM for.",
    )
}

/// Columns of a page.
const PAGE: [Shown; 27] = [
    ("vm_name", "VM"),
    ("vm_pid", "VM's process"),
    ("vcpu", "vCPU"),
    ("task", "the guest did"),
    ("key", "key"),
    ("name", "name"),
    ("waiting", "guest waits"),
    ("count", "count"),
    ("share", "of all"),
    ("total_ns", "time"),
    ("total_share", "of the time"),
    ("mean_ns", "mean"),
    ("p50_ns", "p50"),
    ("p90_ns", "p90"),
    ("p99_ns", "p99"),
    ("max_ns", "max"),
    ("min_ns", "min"),
    ("kernel_ns", "in KVM"),
    ("user_ns", "in the VMM"),
    ("poll_ns", "polling"),
    ("halted_ns", "halted"),
    ("runnable_ns", "runnable"),
    ("unknown_ns", "unknown"),
    ("kernel_blocked_ns", "asleep in KVM"),
    ("user_blocked_ns", "asleep in the VMM"),
    ("user_count", "to the VMM"),
    ("handled_by", "handled by"),
];

/// Returns one table for a page, with where its time went.
pub fn html(isa: Option<Isa>, report: &ExitsReport, frame: &Frame<'_>) -> String {
    let seen = report.seen.as_ref();
    let unknowable = seen.map(analysis::unknowable).unwrap_or_default();
    columns().html(&PAGE, rows(isa, report, &unknowable), frame)
}

/// Returns what a table is of, and its sums, as a sentence.
pub fn summary(isa: Option<Isa>, report: &ExitsReport, layout: Layout) -> String {
    headline(isa, report, layout).trim_end().to_owned()
}
