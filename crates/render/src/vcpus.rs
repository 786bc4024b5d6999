//! Time of the vCPUs.

use std::borrow::Cow;
use std::fmt::Write;
use std::rc::Rc;

use analysis::{
    CpuHolder, Stats, Unknowable, UserCause, VcpuRow, VcpusReport, access_key, known_amount,
};
use doubts::Doubts;
use model::State;
use serde::Serialize;
use serde_json::Value;

use crate::amounts::{of_any, percentile};
use crate::html::Frame;
use crate::row_doubts::{RowScope, with_doubts};
use crate::schema::HasShape;
use crate::shape;
use crate::table::{DocumentRows, RowsTaker, Table, Unit, UnknownColumn, Views, reorder};
use crate::times::{self, TimesViews};
use crate::{ClockUnit, Layout, clean, guest_tasks, json, vms};

/// A row of the table.
pub(crate) struct Vcpu<'r> {
    row: &'r VcpuRow,
    unknowable: Rc<[Unknowable]>,
    /// Whether there are several VMs.
    several: bool,
}

impl Vcpu<'_> {
    fn known(&self, column: &str, amount: u64) -> Option<u64> {
        known_amount(&self.unknowable, column, amount)
    }

    fn vm_cell(&self) -> String {
        match self.row.others {
            0 if self.several || self.row.vm_name.is_some() => {
                vms::cell(&self.row.vm, self.row.vm_pid)
            }
            0 => vms::cell("", self.row.vm_pid),
            _ => "others".to_owned(),
        }
    }
}

/// Durations in place of shares.
const DURATIONS: Views = Views::own(0);

/// Columns of the table.
pub(crate) fn columns<'r>() -> Table<'r, Vcpu<'r>> {
    use Unit::{Count, Flag, Name, Nanoseconds, Nested, Number};
    let terminal = Views::TERMINAL | DURATIONS;
    let all = terminal | Views::TICKET;
    let table = Table::new()
        .column("vm", Name, |v: &Vcpu<'_>| {
            (v.row.others == 0 && !v.row.vm.is_empty()).then_some(v.row.vm.as_str())
        })
        .csv_after("wait_max_ns")
        .heading("VM", 8)
        .views(all)
        .show(|v, _| v.vm_cell())
        .column("vm_pid", Number, |v| v.row.vm_pid)
        .page("VM's process")
        .column("vm_name", Name, |v| v.row.vm_name.as_deref())
        .csv_form(|v| match v.row.others {
            0 => v.row.vm_name.clone().unwrap_or_default(),
            others => format!("{others} others"),
        })
        .page("VM")
        .after("vm")
        .column("vcpu", Number, |v| v.row.vcpu)
        .heading("vCPU", 4)
        .gap(" ")
        .views(all)
        .page("vCPU")
        .show(|v, _| match v.row.others {
            0 => v.row.vcpu.to_string(),
            others => others.to_string(),
        })
        .column("tid", Number, |v| v.row.tid)
        .views(Views::TICKET)
        .page("thread")
        .only_if(
            |v| v.row.others > 0,
            |table| {
                let table = table.column("others", Count, |v| v.row.others);
                table.json_only().page("sum of").after("to_ns")
            },
        )
        .column("from_ns", Nanoseconds, |v| v.row.from)
        .json_only()
        .page("from")
        .after("wait_max_ns")
        .column("to_ns", Nanoseconds, |v| v.row.to)
        .json_only()
        .page("to")
        .after("from_ns")
        .column("observed_ns", Nanoseconds, |v| v.row.times.total())
        .heading("observed", 9)
        .gap(" ")
        .views(all)
        .page("observed");
    let views = TimesViews {
        durations: DURATIONS,
        shares: Views::TERMINAL | Views::TICKET,
        guest: true,
    };
    let table = times::columns(table, views, |v| (v.row.times, &v.unknowable))
        .column("exits", Count, |v| v.known("exits", v.row.exits))
        .heading("exits", 8)
        .views(all)
        .page("exits");
    polls_and_waits(table)
        .column("behind", Nested, |v| json::list(&v.row.behind))
        .within(Vec::<CpuHolder>::shape())
        .column("user", Nested, |v| causes(&v.row.user))
        .within(Vec::<Cause<'static>>::shape())
        .only_if(
            |v| v.row.guest.is_some(),
            |table| {
                table
                    .column("guest", Nested, |v| {
                        guest_tasks::json(v.row.guest.as_ref(), &v.unknowable)
                    })
                    .within(guest_tasks::columns(&[]).shape().list().or_null())
                    .json_only()
            },
        )
        .only_if(
            |v| v.row.guessed,
            |table| {
                let table = table.column("guessed", Flag, |_| true);
                table.json_only().page("VM is a guess")
            },
        )
        .only_if(
            |v| v.row.presumed,
            |table| {
                let table = table.column("presumed", Flag, |_| true);
                table.json_only().page("vCPU is presumed")
            },
        )
}

/// Columns of halt polls and of waits for a CPU.
fn polls_and_waits<'r>(table: Table<'r, Vcpu<'r>>) -> Table<'r, Vcpu<'r>> {
    use Unit::{Count, Nanoseconds};
    table
        .column("polls_succeeded", Count, |v| {
            v.known("polls_succeeded", v.row.polls.succeeded)
        })
        .json_at("polls.succeeded")
        .page("polls succeeded")
        .column("polls_succeeded_ns", Nanoseconds, |v| {
            v.known("polls_succeeded_ns", v.row.polls.succeeded_ns)
        })
        .json_at("polls.succeeded_ns")
        .page("in them")
        .column("polls_failed", Count, |v| {
            v.known("polls_failed", v.row.polls.failed)
        })
        .json_at("polls.failed")
        .page("polls failed")
        .column("polls_failed_ns", Nanoseconds, |v| {
            v.known("polls_failed_ns", v.row.polls.failed_ns)
        })
        .json_at("polls.failed_ns")
        .page("burnt in them")
        .column("waits", Count, |v| v.known("waits", v.row.waits.count()))
        .json_at("waits.count")
        .page("waits for a CPU")
        .column("wait_p50_ns", Nanoseconds, |v| {
            percentile(&v.row.waits, 0.5)
        })
        .json_at("waits.p50_ns")
        .page("wait p50")
        .column("wait_p90_ns", Nanoseconds, |v| {
            percentile(&v.row.waits, 0.9)
        })
        .json_at("waits.p90_ns")
        .json_only()
        .page("wait p90")
        .column("wait_p99_ns", Nanoseconds, |v| {
            percentile(&v.row.waits, 0.99)
        })
        .json_at("waits.p99_ns")
        .page("wait p99")
        .column("wait_max_ns", Nanoseconds, |v| {
            of_any(&v.row.waits, Stats::max)
        })
        .json_at("waits.max_ns")
        .page("wait max")
}

fn rows<'r>(
    report: &'r VcpusReport,
    unknowable: &[Unknowable],
) -> impl Iterator<Item = Vcpu<'r>> + use<'r> {
    let unknowable: Rc<[Unknowable]> = unknowable.into();
    let several = (report.rows.windows(2)).any(|pair| pair[0].vm != pair[1].vm);
    report.rows.iter().map(move |row| Vcpu {
        row,
        unknowable: Rc::clone(&unknowable),
        several,
    })
}

/// What the vCPU was in the VMM for.
#[derive(Debug, Serialize)]
struct Cause<'a> {
    /// Null where the exit was not seen, and for the sum of what is not listed.
    reason: Option<Cow<'static, str>>,
    /// The access, where it was recorded.
    key: Option<String>,
    /// Device and register behind the access.
    name: Option<&'a str>,
    count: u64,
    user_ns: u64,
}

shape!(Cause<'static> { reason, key, name, count, user_ns });

fn causes(list: &[UserCause]) -> Value {
    json::list(list.iter().map(|cause| Cause {
        reason: cause.reason.map(|reason| reason.key()),
        key: cause.access.as_ref().map(access_key),
        name: cause.name.as_deref(),
        count: cause.count,
        user_ns: cause.ns,
    }))
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct VcpusDocument<'a> {
    rows: DocumentRows<'a>,
    unknowable: Vec<Unknowable>,
}

shape!(VcpusDocument<'static> {
    rows: columns_in_documents(&Doubts::default()).shape().list(),
    unknowable
});

/// Columns in documents: behind the others the doubts that are about a row and not about all.
pub(crate) fn columns_in_documents<'r>(doubts: &Doubts) -> Table<'r, Vcpu<'r>> {
    with_doubts(columns(), doubts, |v| RowScope {
        time: Some((v.row.from, v.row.to)),
        ..RowScope::of_thread(v.row.tid)
    })
}

/// Returns the fields of a document. Rows have the ids of those of the doubts that are about them.
pub fn document<'a>(report: &'a VcpusReport, doubts: &Doubts) -> VcpusDocument<'a> {
    let unknowable = report.unknowable();
    let rows = columns_in_documents(doubts).document_rows(rows(report, &unknowable));
    VcpusDocument { rows, unknowable }
}

/// Sorts the rows by a column: largest first, names in alphabetical order, what is not known last.
///
/// # Errors
///
/// There is no such column.
pub fn sort(report: &mut VcpusReport, column: &str) -> Result<(), UnknownColumn> {
    let unknowable = report.unknowable();
    let places = columns().order(&rows(report, &unknowable).collect::<Vec<_>>(), column)?;
    reorder(&mut report.rows, &places);
    Ok(())
}

/// Returns the rows as CSV.
pub fn csv(report: &VcpusReport, clock: ClockUnit) -> String {
    let unknowable = report.unknowable();
    columns().counted_in(clock).csv(rows(report, &unknowable))
}

/// Hands out the rows, as a store keeps them.
pub(crate) fn store(report: &VcpusReport, clock: ClockUnit, take: RowsTaker<'_>) {
    let unknowable = report.unknowable();
    let columns = columns().counted_in(clock);
    columns.store(rows(report, &unknowable), take);
}

/// Returns the table of so many vCPUs, and below it for each of them behind whom it waited and what it was in the VMM
/// for, with as many items as the layout's limit. `durations` has durations in place of shares.
pub fn table(report: &VcpusReport, durations: bool, most: usize, layout: Layout) -> String {
    let all = Layout {
        limit: most,
        ..layout
    };
    let unknowable = report.unknowable();
    let mut out = summary(report, &unknowable, durations, all);
    for row in report.rows.iter().take(most) {
        details(&mut out, row, &unknowable, layout);
    }
    out
}

/// Returns the table alone.
pub fn summary(
    report: &VcpusReport,
    unknowable: &[Unknowable],
    durations: bool,
    layout: Layout,
) -> String {
    let (view, title) = match durations {
        true => (DURATIONS, "vcpus: time of each vCPU by state\n"),
        false => (
            Views::TERMINAL,
            "vcpus: per cent of each vCPU's time by state\n",
        ),
    };
    title.to_owned() + &columns().view(view).text(rows(report, unknowable), layout)
}

/// Returns the table as Markdown: per cent of each vCPU's time by state.
pub fn markdown(report: &VcpusReport, layout: Layout) -> String {
    let unknowable = report.unknowable();
    let rows: Vec<Vcpu<'_>> = rows(report, &unknowable).collect();
    columns().markdown(Views::TICKET, &rows, layout)
}

fn details(out: &mut String, row: &VcpuRow, unknowable: &[Unknowable], layout: Layout) {
    let vm = row
        .vm_name
        .clone()
        .or_else(|| row.vm_pid.map(|pid| pid.to_string()));
    let called = match vm {
        // The name of one of several VMs distinguishes it from the others.
        Some(vm) if row.called == words::vcpu(None, row.vcpu) => format!("{} of {vm}", row.called),
        _ => row.called.clone(),
    };
    let who = match row.others {
        0 => format!("{called}, thread {}", row.tid),
        others => format!("{others} other vCPUs"),
    };
    let of_guest = row.guest.as_ref();
    let polls = &row.polls;
    let blocked = row.times.get(State::KernelBlocked) + row.times.get(State::UserBlocked);
    if polls.succeeded + polls.failed == 0
        && row.behind.is_empty()
        && row.user.is_empty()
        && blocked == 0
        && of_guest.is_none()
    {
        return;
    }
    out.push('\n');
    out.push_str(&clean(&who));
    out.push('\n');
    if polls.succeeded + polls.failed > 0 {
        let _ = writeln!(
            out,
            "  halt polls: {} succeeded in {}, {} failed and burnt {}",
            polls.succeeded,
            layout.time(polls.succeeded_ns),
            polls.failed,
            layout.time(polls.failed_ns)
        );
    }
    if blocked > 0 {
        let _ = writeln!(
            out,
            "  asleep while its exit was handled: {} in KVM, {} in the VMM",
            layout.time(row.times.get(State::KernelBlocked)),
            layout.time(row.times.get(State::UserBlocked))
        );
    }
    if row.waits.count() > 0 {
        let waits = &row.waits;
        let _ = writeln!(
            out,
            "  waited for a CPU {}: p50 {}, p99 {}, max {}, behind",
            words::times(waits.count()),
            layout.time(waits.percentile(0.5)),
            layout.time(waits.percentile(0.99)),
            layout.time(waits.max())
        );
        list(out, &row.behind, layout, |task| {
            (task.ns, task.count, behind_name(task))
        });
    }
    if !row.user.is_empty() {
        let _ = writeln!(out, "  was in the VMM for");
        list(out, &row.user, layout, |cause| {
            (cause.ns, cause.count, cause_name(cause))
        });
    }
    if let Some(report) = of_guest {
        out.push_str(&guest_tasks::text(report, unknowable, layout));
    }
}

fn list<T>(out: &mut String, items: &[T], layout: Layout, of: impl Fn(&T) -> (u64, u64, String)) {
    let limit = layout.limit;
    for item in items.iter().take(limit) {
        let (ns, count, name) = of(item);
        let _ = writeln!(
            out,
            "  {:>10} {:>14}  {}",
            layout.time(ns),
            words::times(count),
            clean(&name)
        );
    }
    if items.len() > limit {
        let (ns, count) = items[limit..].iter().map(&of).fold((0u64, 0), |sum, item| {
            (sum.0.saturating_add(item.0), sum.1 + item.1)
        });
        let _ = writeln!(
            out,
            "  {:>10} {:>14}  {} more",
            layout.time(ns),
            words::times(count),
            items.len() - limit
        );
    }
}

fn behind_name(task: &CpuHolder) -> String {
    match (&task.comm, task.tid) {
        (_, Some(0)) => "nothing: the CPU was idle".to_owned(),
        (Some(comm), Some(tid)) => format!("{comm}:{tid}"),
        (None, Some(tid)) => format!(":{tid}"),
        (Some(comm), None) => format!("{comm}, several tasks"),
        _ => "others, or unknown".to_owned(),
    }
}

fn cause_name(cause: &UserCause) -> String {
    let mut parts = Vec::new();
    match cause.reason {
        Some(reason) => parts.push(reason.key().into_owned()),
        None => parts.push("others, or unknown".to_owned()),
    }
    if let Some(access) = &cause.access {
        parts.push(access_key(access));
    }
    parts.extend(cause.name.clone());
    parts.join(" ")
}

/// Returns the table for a page.
pub fn html(report: &VcpusReport, frame: &Frame<'_>) -> String {
    let unknowable = report.unknowable();
    columns().html(rows(report, &unknowable), frame)
}

/// Returns for a page behind whom each vCPU waited for a CPU; nothing where none waited.
pub fn behind_html(report: &VcpusReport, frame: &Frame<'_>) -> String {
    use Unit::{Count, Name, Nanoseconds, Number};
    let all = report.rows.iter();
    let all = all.flat_map(|row| row.behind.iter().map(move |task| (row, task)));
    let all: Vec<(&VcpuRow, &CpuHolder)> = all.collect();
    if all.is_empty() {
        return String::new();
    }
    let table = Table::new()
        .column("vcpu", Name, |(row, _): &(&VcpuRow, &CpuHolder)| {
            row.called.as_str()
        })
        .page("vCPU")
        .column("vcpu_tid", Number, |(row, _)| row.tid)
        .page("its thread")
        .column("behind", Name, |(_, task)| behind_name(task))
        .page("what ran meanwhile")
        .column("tid", Number, |(_, task)| task.tid)
        .page("thread")
        .column("count", Count, |(_, task)| task.count)
        .page("times")
        .column("ran_ns", Nanoseconds, |(_, task)| task.ns)
        .page("ran for");
    table.html(all, frame)
}

/// Returns what guests did on all their vCPUs together as a table of Markdown; `None` where no guest's recording was
/// given.
pub fn guest_markdown(report: &VcpusReport, layout: Layout) -> Option<String> {
    guest_tasks::markdown(report, layout)
}

/// Returns for a page what the guest of each vCPU did, as its own recording says; nothing where none was given.
pub fn guest_html(report: &VcpusReport, frame: &Frame<'_>) -> String {
    guest_tasks::html(report, frame)
}

/// Returns for a page what each vCPU was in the VMM for; nothing where none was.
pub fn user_html(report: &VcpusReport, frame: &Frame<'_>) -> String {
    use Unit::{Count, Name, Nanoseconds, Number, Text};
    let all = report.rows.iter();
    let all = all.flat_map(|row| row.user.iter().map(move |cause| (row, cause)));
    let all: Vec<(&VcpuRow, &UserCause)> = all.collect();
    if all.is_empty() {
        return String::new();
    }
    let table = Table::new()
        .column("vcpu", Name, |(row, _): &(&VcpuRow, &UserCause)| {
            row.called.as_str()
        })
        .page("vCPU")
        .column("vcpu_tid", Number, |(row, _)| row.tid)
        .page("its thread")
        .column("cause", Text, |(_, cause)| cause_name(cause))
        .page("exit")
        .column("count", Count, |(_, cause)| cause.count)
        .page("times")
        .column("user_ns", Nanoseconds, |(_, cause)| cause.ns)
        .page("in the VMM");
    table.html(all, frame)
}
