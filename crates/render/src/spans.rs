//! Spans of vCPUs' states, a row each.

use std::sync::Arc;

use analysis::{GuestContext, NamedContext};
use event::ExitReason;
use model::State;

use crate::table::Unit::{Name, Nanoseconds, Number, Text};
use crate::table::{CsvRows, Table};
use crate::{ClockUnit, guest_tasks};

/// A vCPU in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanVcpu {
    /// Process of its VM, if known.
    pub vm_pid: Option<i32>,
    /// What its VM is called, if it is known.
    pub vm_name: Option<Arc<str>>,
    /// Its number in the VM, if known.
    pub number: Option<u32>,
    /// Its thread.
    pub tid: i32,
}

/// The task that had the CPU while a vCPU waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanHolder {
    /// Its thread id; 0 is the idle task.
    pub tid: i32,
    /// Its name, if known.
    pub comm: Option<Arc<str>>,
}

/// A span as a row.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanLine {
    /// Whose.
    pub vcpu: SpanVcpu,
    /// What it did, as sums by state have it.
    pub state: State,
    /// From when.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// The CPU it ran on or waited for, if known.
    pub cpu: Option<i32>,
    /// Why it was out of its guest.
    pub reason: Option<ExitReason>,
    /// What the guest accessed, as tables of exits call it.
    pub access: Option<Arc<str>>,
    /// Device and register behind the access.
    pub device: Option<Arc<str>>,
    /// Behind whom it waited, if it did and that is known.
    pub behind: Option<SpanHolder>,
    /// What its guest did meanwhile, where the guest's recording is known.
    pub guest: Option<NamedContext>,
}

/// Returns what a state is called in rows and tracks: as the columns of `vcpus`, where the blocked ones are part of
/// `kernel` and `user`.
pub fn state_name(state: State) -> &'static str {
    match state {
        State::Guest => "guest",
        State::Kernel => "kernel",
        State::KernelBlocked => "kernel_blocked",
        State::User => "user",
        State::UserBlocked => "user_blocked",
        State::Poll => "poll",
        State::Halted => "halted",
        State::Runnable => "runnable",
        State::Unknown => "unknown",
    }
}

/// Returns what something that a guest does is called in tracks: `bash:125`, `interrupt ttyS0`, `softirq RCU`, `idle`,
/// `unknown`.
pub fn guest_called(who: &NamedContext) -> String {
    guest_tasks::called(who)
}

/// Returns of which kind it is: `task`, `interrupt`, `softirq`, `idle` or `unknown`.
pub fn guest_what(doing: GuestContext) -> &'static str {
    guest_tasks::what(doing)
}

/// Columns of a row's vCPU.
pub(crate) fn vcpu_columns<R>(of: fn(&R) -> &SpanVcpu) -> Table<'static, R>
where
    R: 'static,
{
    Table::new()
        .column("vm_pid", Number, move |row| of(row).vm_pid)
        .texts("vm_name", Name, move |row| of(row).vm_name.as_deref())
        .column("vcpu", Number, move |row| of(row).number)
        .column("tid", Number, move |row| of(row).tid)
}

/// Columns of spans.
pub(crate) fn columns() -> Table<'static, SpanLine> {
    vcpu_columns(|span: &SpanLine| &span.vcpu)
        .column("state", Text, |span| state_name(span.state))
        .column("start_ns", Nanoseconds, |span| span.start)
        .column("end_ns", Nanoseconds, |span| span.end)
        .column("duration_ns", Nanoseconds, |span| {
            span.end.saturating_sub(span.start)
        })
        .column("cpu", Number, |span| span.cpu)
        .column("reason", Text, |span| span.reason.map(ExitReason::key))
        .texts("access", Text, |span| span.access.as_deref())
        .texts("device", Text, |span| span.device.as_deref())
        .column("behind_tid", Number, |span| {
            span.behind.as_ref().map(|behind| behind.tid)
        })
        .texts("behind", Name, |span| {
            let behind = span.behind.as_ref();
            behind.and_then(|behind| behind.comm.as_deref())
        })
}

/// Columns of spans where recordings of guests are known: what the guest did stands behind the others.
pub(crate) fn columns_with_guests() -> Table<'static, SpanLine> {
    columns().only_if(
        |span| span.guest.is_some(),
        |table| {
            table
                .column("task_what", Text, |span| {
                    let guest = span.guest.as_ref();
                    guest.map(|guest| guest_what(guest.doing))
                })
                .texts("task_name", Name, |span| {
                    let guest = span.guest.as_ref();
                    guest.and_then(|guest| guest.name.as_deref())
                })
                .column("task_tid", Number, |span| {
                    match span.guest.as_ref().map(|guest| guest.doing) {
                        Some(GuestContext::Task(tid)) => Some(tid),
                        _ => None,
                    }
                })
        },
    )
}

/// Spans as rows of CSV.
#[derive(Debug)]
pub struct Spans(CsvRows<'static, SpanLine>);

impl Spans {
    /// Returns rows of spans whose times count this.
    pub fn new(clock: ClockUnit) -> Spans {
        Spans(columns().counted_in(clock).csv_rows())
    }

    /// Returns rows that say what guests did, too.
    pub fn with_guests(clock: ClockUnit) -> Spans {
        Spans(columns_with_guests().counted_in(clock).csv_rows())
    }

    /// Returns the names of CSV's columns as a line.
    pub fn csv_head(&self) -> String {
        self.0.head()
    }

    /// Appends a span as a line.
    pub fn put_csv(&self, span: &SpanLine, out: &mut String) {
        self.0.put(span, out);
    }
}
