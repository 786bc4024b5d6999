//! Exit statistics.

use std::fmt::Write;
use std::rc::Rc;

use analysis::{
    ExitRow, ExitTable, ExitsReport, GuestCode, GuestContext, GuestFunction, HandledBy, Stats,
    Unknowable, known_amount,
};
use doubts::Doubts;
use event::Isa;

use crate::amounts::{of_any, percentile, share};
use crate::html::Frame;
use crate::row_doubts::{RowScope, with_doubts};
use crate::table::{Table, Unit, UnknownColumn, Views, more, reorder};
use crate::times::{self, TimesViews};
use crate::{ClockUnit, Layout, guest_tasks, quality, vms};

/// A row of a table of exits.
pub(crate) struct Exit<'r> {
    isa: Option<Isa>,
    report: &'r ExitsReport,
    row: &'r ExitRow,
    unknowable: Rc<[Unknowable]>,
    /// Whether shares of the report's sums can be computed.
    has_shares: bool,
}

impl Exit<'_> {
    /// Returns a share of the table's sums, where the row's numbers do not contradict others.
    fn share(&self, part: u64, all: u64) -> Option<f64> {
        let known = self.has_shares && !self.row.contradicts;
        known.then(|| share(part, all)).flatten()
    }

    fn handled_by(&self) -> Option<HandledBy> {
        self.row.handled_by(self.report.seen.as_ref()?)
    }
}

/// Tables by what the guest did, which leave room for that, and those of several VMs besides.
const IN_GUEST: Views = Views::own(0);
const IN_GUESTS: Views = Views::own(1);
/// Where the time of each row went.
const SPLIT: Views = Views::own(2);
/// A ticket's table of exits: their reasons have no other name.
const REASONS_TICKET: Views = Views::own(3);

/// Tables by VM and vCPU, which leave room for that.
const GROUPED: Views = Views::own(4);

/// Columns of the tables of exits.
pub(crate) fn columns<'r>() -> Table<'r, Exit<'r>> {
    use Unit::{Count, Flag, Name, Nanoseconds, Number, Share, Text};
    let narrow = Views::TERMINAL | Views::WIDE | GROUPED;
    let tickets = Views::TICKET | REASONS_TICKET;
    let all = narrow | tickets;
    let listed = narrow | IN_GUEST | IN_GUESTS;
    let table = Table::new()
        .column("event", Text, |e: &Exit<'_>| e.report.table.name())
        .csv_only()
        .column("isa", Text, |e| e.isa.map(Isa::name))
        .csv_only()
        .only_if(is_grouped, |table| {
            table
                .column("vm_pid", Number, |e| e.row.vm_pid)
                .page("VM's process")
                .column("vcpu", Number, |e| e.row.vcpu)
                .heading("vCPU", 4)
                .gap(" ")
                .views(listed | SPLIT)
                .where_known()
                .page("vCPU")
        })
        .column("reason", Text, narrow_key)
        .text_only()
        .left("", KEY_WIDTH)
        .gap(" ")
        .views(listed)
        .column("key", Text, |e| e.row.key.as_str())
        .left("", KEY_WIDTH)
        .gap(" ")
        .views(tickets | SPLIT)
        .page("key")
        .column("name", Text, |e| {
            e.row.name.as_ref().unwrap_or(&e.row.key).as_str()
        })
        .views(Views::TICKET)
        .page("name")
        .column("waiting", Flag, |e| e.row.waiting)
        .page("guest waits")
        .column("count", Count, |e| e.row.count())
        .heading("count", 9)
        .views(all | listed)
        .page("count")
        .column("share", Share, |e| {
            e.share(e.row.count(), e.report.total_count)
        })
        .heading("count%", 7)
        .views(Views::WIDE)
        .page("of all")
        .column("total_ns", Nanoseconds, |e| e.row.total_ns())
        .heading("time", 9)
        .views(all | listed | SPLIT)
        .page("time")
        .column("total_share", Share, |e| {
            e.share(e.row.stats.total(), e.report.total_ns)
        })
        .text_only()
        .heading("time%", 6)
        .views(Views::TERMINAL | Views::WIDE | tickets | IN_GUEST | IN_GUESTS)
        .page("of the time");
    durations(table)
        .only_if(is_split, split_columns)
        .only_if(is_grouped, |table| {
            table
                .column("vm_name", Name, |e| e.row.vm_name.as_deref())
                .column("vm", Name, |e| e.row.vm.as_deref())
                .heading("VM", vms::WIDTH)
                .views(listed | SPLIT)
                .where_known()
                .show(|e, _| vms::cell(e.row.vm.as_deref().unwrap_or_default(), e.row.vm_pid))
                .page("VM")
                .after("isa")
        })
        .only_if(|e| e.row.task.is_some(), task_columns)
        .only_if(|e| e.row.function.is_some(), function_columns)
}

/// Columns of how long exits took.
fn durations<'r>(table: Table<'r, Exit<'r>>) -> Table<'r, Exit<'r>> {
    use Unit::Nanoseconds;
    let ungrouped = Views::TERMINAL | Views::WIDE | Views::TICKET | REASONS_TICKET;
    let all = ungrouped | GROUPED;
    table
        .column("min_ns", Nanoseconds, |e| of_any(&e.row.stats, Stats::min))
        .heading("min", 9)
        .views(Views::WIDE)
        .page("min")
        .column("mean_ns", Nanoseconds, |e| {
            of_any(&e.row.stats, Stats::mean)
        })
        .heading("mean", 9)
        .show(|e, layout| layout.mean(&e.row.stats))
        .views(all | IN_GUEST)
        .page("mean")
        .column("max_ns", Nanoseconds, |e| of_any(&e.row.stats, Stats::max))
        .heading("max", 9)
        .views(all)
        .page("max")
        .after("p99_ns")
        .column("p50_ns", Nanoseconds, |e| percentile(&e.row.stats, 0.5))
        .heading("p50", 9)
        .views(ungrouped)
        .page("p50")
        .column("p90_ns", Nanoseconds, |e| percentile(&e.row.stats, 0.9))
        .heading("p90", 9)
        .views(Views::WIDE)
        .page("p90")
        .column("p99_ns", Nanoseconds, |e| percentile(&e.row.stats, 0.99))
        .heading("p99", 9)
        .views(all)
        .page("p99")
}

/// Columns of where that time went.
fn split_columns<'r>(table: Table<'r, Exit<'r>>) -> Table<'r, Exit<'r>> {
    use Unit::{Count, Text};
    let views = TimesViews {
        shares: SPLIT,
        ..TimesViews::NONE
    };
    times::columns(table, views, |e| {
        (e.row.times.unwrap_or_default(), &e.unknowable)
    })
    .column("user_count", Count, |e| {
        known_amount(&e.unknowable, "user_count", e.row.user_count)
    })
    .page("to the VMM")
    .column("handled_by", Text, |e| {
        e.handled_by().map(|by| match by {
            HandledBy::Kernel => "kernel",
            HandledBy::User => "user",
            HandledBy::Both => "both",
        })
    })
    .left("by", 0)
    .gap("  ")
    .views(SPLIT)
    .page("handled by")
    .show(|e, _| {
        let by = e.handled_by().map(|by| match by {
            HandledBy::Kernel => "KVM",
            HandledBy::User => "VMM",
            HandledBy::Both => "both",
        });
        by.unwrap_or_default().to_owned()
    })
}

/// Columns of what the guest did.
fn task_columns<'r>(table: Table<'r, Exit<'r>>) -> Table<'r, Exit<'r>> {
    use Unit::{Name, Number, Text};
    table
        .column("task", Name, |e: &Exit<'_>| {
            e.row.task.as_ref().map(guest_tasks::called)
        })
        .text_only()
        .left("", 19)
        .gap(" ")
        .views(Views::TERMINAL | Views::WIDE | IN_GUEST | IN_GUESTS | SPLIT)
        .where_known()
        .page("the guest did")
        .after("vcpu")
        .column("task_what", Text, |e| {
            let task = e.row.task.as_ref();
            task.map(|task| guest_tasks::what(task.doing))
        })
        .column("task_name", Name, |e| {
            let task = e.row.task.as_ref();
            task.and_then(|task| task.name.as_deref())
        })
        .column("task_tid", Number, |e| {
            match e.row.task.as_ref().map(|task| task.doing) {
                Some(GuestContext::Task(tid)) => Some(tid),
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
        .views(Views::TERMINAL | Views::WIDE | IN_GUEST | IN_GUESTS | SPLIT)
        .where_known()
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

fn is_grouped(exit: &Exit<'_>) -> bool {
    exit.row.vm.is_some()
}

/// Whether a row is of one VM or one vCPU: the columns that say which take the room of others.
fn is_of_vm(row: &ExitRow) -> bool {
    row.vm.is_some() || row.vcpu.is_some()
}

fn is_split(exit: &Exit<'_>) -> bool {
    exit.row.times.is_some() && exit.report.seen.is_some()
}

/// Columns of the key.
const KEY_WIDTH: usize = 20;

/// Returns the key, and a name behind it where both fit; else the name has a line of its own, in the wide form the
/// line's end.
fn narrow_key(exit: &Exit<'_>) -> String {
    let row = exit.row;
    let name = row.name.as_deref().unwrap_or_default();
    let timed = row.stats.count();
    if row.untimed > 0 && timed > 0 {
        // Who multiplies the mean has to know by what.
        format!("{} ({timed} timed)", row.key)
    } else if row.waiting {
        format!("{} (waiting)", row.key)
    } else if !name.is_empty() && row.key.len() + 1 + name.len() < KEY_WIDTH {
        format!("{} {name}", row.key)
    } else {
        row.key.clone()
    }
}

pub(crate) fn rows<'r>(
    isa: Option<Isa>,
    report: &'r ExitsReport,
    unknowable: &[Unknowable],
) -> impl Iterator<Item = Exit<'r>> + use<'r> {
    let unknowable: Rc<[Unknowable]> = unknowable.into();
    let has_shares = report.has_shares();
    report.rows.iter().map(move |row| Exit {
        isa,
        report,
        row,
        unknowable: Rc::clone(&unknowable),
        has_shares,
    })
}

/// Returns what cannot be known of where rows' time went; nothing where that was not asked for.
pub(crate) fn unknowable(report: &ExitsReport) -> Vec<Unknowable> {
    let seen = report.seen.as_ref();
    seen.map(analysis::unknowable).unwrap_or_default()
}

/// Columns in documents: behind the others the doubts that are about a row's VM or vCPU and not about all.
pub(crate) fn columns_in_documents<'r>(doubts: &Doubts) -> Table<'r, Exit<'r>> {
    with_doubts(columns(), doubts, |e| {
        RowScope::of_threads(e.row.tids.iter().copied())
    })
}

/// Sorts the rows by a column: largest first, names in alphabetical order, what is not known last.
///
/// # Errors
///
/// There is no such column.
pub fn sort(report: &mut ExitsReport, column: &str) -> Result<(), UnknownColumn> {
    let unknowable = unknowable(report);
    let places = columns().order(&rows(None, report, &unknowable).collect::<Vec<_>>(), column)?;
    reorder(&mut report.rows, &places);
    Ok(())
}

/// Returns tables as CSV, one line of names for all.
pub fn csv(isa: Option<Isa>, reports: &[ExitsReport], clock: ClockUnit) -> String {
    let unknown: Vec<Vec<Unknowable>> = reports.iter().map(unknowable).collect();
    let all = reports.iter().zip(&unknown);
    let all = all.flat_map(|(report, unknown)| rows(isa, report, unknown));
    columns().counted_in(clock).csv(all)
}

/// Returns one table as text; `wide` has all columns, however wide that is.
pub fn table(isa: Option<Isa>, report: &ExitsReport, wide: bool, layout: Layout) -> String {
    let mut out = headline(isa, report, layout);
    if report.rows.is_empty() {
        return out;
    }
    let columns = columns();
    let all: Vec<Exit<'_>> = rows(isa, report, &[]).collect();
    let has = |has: fn(&ExitRow) -> bool| report.rows.iter().any(has);
    let (task, function) = (
        has(|row| row.task.is_some()),
        has(|row| row.function.is_some()),
    );
    // With VMs, or names of functions, there is room for less.
    let view = match (wide, function || task && has(|row| row.vm.is_some())) {
        (true, _) => Views::WIDE,
        (false, true) => IN_GUESTS,
        (false, false) if task => IN_GUEST,
        (false, false) if has(is_of_vm) => GROUPED,
        (false, false) => Views::TERMINAL,
    };
    let view = columns.view(view).known_of(&all);
    let indent = " ".repeat(view.indent("reason"));
    let _ = writeln!(out, "{}", view.head());
    for exit in all.iter().take(layout.limit) {
        out.push_str(&view.line(exit, layout));
        let name = exit.row.name.as_deref().unwrap_or_default();
        if wide && !name.is_empty() {
            let _ = write!(out, "  {name}");
        }
        out.push('\n');
        if !wide && !name.is_empty() && !narrow_key(exit).ends_with(name) {
            let _ = writeln!(out, "{indent}  {name}");
        }
    }
    out.push_str(&more(report.rows.len().saturating_sub(layout.limit)));
    if let Some(note) = origin(report).or_else(|| untimed_reads(report)) {
        quality::wrap(&mut out, "", note, layout.width);
    }
    out
}

/// Returns the headline of one table.
pub fn title(isa: Option<Isa>, report: &ExitsReport, layout: Layout) -> String {
    headline(isa, report, layout).trim_end().to_owned()
}

/// Returns one table as Markdown.
pub fn markdown(report: &ExitsReport, layout: Layout) -> String {
    let rows: Vec<Exit<'_>> = rows(None, report, &[]).collect();
    let view = match report.table {
        ExitTable::Vmexit => REASONS_TICKET,
        _ => Views::TICKET,
    };
    columns().markdown(view, &rows, layout)
}

/// Returns the line above a table: what it is of, and its sums.
fn headline(isa: Option<Isa>, report: &ExitsReport, layout: Layout) -> String {
    let count = counted(isa, report);
    let mut out = report.table.name().to_owned();
    if let Some(isa) = isa {
        let _ = write!(out, " ({})", isa.name());
    }
    let total = match report.is_timed() {
        true => layout.time(report.total_ns),
        false => untimed(isa).to_owned(),
    };
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

/// Returns what is said in place of the time of accesses in a recording without exits, or without entries. Only exits
/// say the instruction set.
pub(crate) fn untimed(isa: Option<Isa>) -> &'static str {
    match isa {
        None => "not timed: there are no exits",
        Some(_) => "not timed: there are no entries",
    }
}

/// Returns how many a table counts, with what they are.
pub(crate) fn counted(isa: Option<Isa>, report: &ExitsReport) -> String {
    let (one, many) = match report.table {
        ExitTable::Vmexit => ("exit", "exits"),
        ExitTable::Ioport => ("port access", "port accesses"),
        ExitTable::Mmio => ("MMIO access", "MMIO accesses"),
        ExitTable::Msr if isa == Some(Isa::Arm64) => {
            ("system register access", "system register accesses")
        }
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
    let all: Vec<Exit<'_>> = rows(None, report, &unknowable).collect();
    let view = columns.view(SPLIT).known_of(&all);
    let mut out = format!(
        "where that time went, in per cent of each row's\n{}\n",
        view.head()
    );
    for exit in all.iter().take(layout.limit) {
        let _ = writeln!(out, "{}", view.line(exit, layout));
    }
    if let Some(note) = late_reads(report) {
        quality::wrap(&mut out, "", note, layout.width);
    }
    out
}

/// Returns what has to be known of a table beside its numbers.
pub fn note(report: &ExitsReport) -> Option<&'static str> {
    origin(report)
        .or_else(|| late_reads(report))
        .or_else(|| untimed_reads(report))
}

/// Returns why reads of emulated memory have no times, where other accesses do.
fn untimed_reads(report: &ExitsReport) -> Option<&'static str> {
    let some = report.rows.iter().any(|row| row.untimed > 0);
    let in_part = |row: &ExitRow| row.untimed > 0 && row.stats.count() > 0;
    Some(match report.rows.iter().any(in_part) {
        true => {
            "Where some are not timed, since there is no kvm_exit of theirs, time and mean are of the others."
        }
        false if some && report.is_timed() => "Reads are not timed: there is no kvm_exit.",
        false => return None,
    })
}

/// Returns where a table's accesses are from, where no event recorded them.
fn origin(report: &ExitsReport) -> Option<&'static str> {
    match report.missing_event()? {
        "kvm_pio" => Some(
            "From the exits' qualification: kvm_pio was not recorded. An exit counts as one access and is timed as a \
             whole; values are not recorded.",
        ),
        _ => Some(
            "From the exits' addresses: kvm_mmio was not recorded. An exit counts as one access and is timed as a \
             whole; values, and the first access to each page, are not recorded.",
        ),
    }
}

/// Returns why reads of ports seem to take no time in the VMM, where the VMM handled any: whoever sets this table
/// beside what vCPUs were in the VMM for would find that they contradict each other.
///
/// An IN that the VMM handles leaves for it before KVM has the value, and `trace_kvm_pio` follows when it has
/// (`complete_fast_pio_in` and `complete_emulated_pio` in `arch/x86/kvm/x86.c`); of an OUT it comes first.
fn late_reads(report: &ExitsReport) -> Option<&'static str> {
    let rows = &report.rows;
    let late = rows.iter().any(|row| !row.write && row.user_count > 0);
    (report.table == ExitTable::Ioport && late && !report.from_exits).then_some(
        "An IN (PIN) is timed from kvm_pio, which comes after the VMM has answered it: its time in the VMM is in its \
         exit, and in what vCPUs were in the VMM for.",
    )
}

/// Returns one table for a page, with where its time went.
pub fn html(isa: Option<Isa>, report: &ExitsReport, frame: &Frame<'_>) -> String {
    let unknowable = unknowable(report);
    columns().html(rows(isa, report, &unknowable), frame)
}

/// Returns what a table is of, and its sums, as a sentence.
pub fn summary(isa: Option<Isa>, report: &ExitsReport, layout: Layout) -> String {
    headline(isa, report, layout).trim_end().to_owned()
}
