//! Exits, a row each.

use std::sync::Arc;

use analysis::Unknowable;
use event::ExitReason;
use model::Times;

use crate::ClockUnit;
use crate::spans::{SpanVcpu, vcpu_columns};
use crate::table::Unit::{Flag, Nanoseconds, Number, Text};
use crate::table::{CsvRows, Table};
use crate::times::{self, TimesViews};

/// An exit as a row.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitLine {
    /// Whose.
    pub vcpu: SpanVcpu,
    /// When the vCPU left its guest.
    pub start: u64,
    /// When it entered it again.
    pub end: u64,
    /// The CPU on which it did, if known.
    pub cpu: Option<i32>,
    /// Why it left.
    pub reason: ExitReason,
    /// What the guest accessed, as tables of exits call it.
    pub access: Option<Arc<str>>,
    /// Device and register behind the access.
    pub device: Option<Arc<str>>,
    /// Whether the VMM handled it, if that is known.
    pub user: Option<bool>,
    /// What the vCPU did in that time. It adds up to the exit's.
    pub times: Times,
    /// Which parts of these times cannot be known.
    pub unknowable: Arc<[Unknowable]>,
}

/// Columns of exits.
pub(crate) fn columns() -> Table<'static, ExitLine> {
    let table = vcpu_columns(|exit: &ExitLine| &exit.vcpu)
        .column("start_ns", Nanoseconds, |exit| exit.start)
        .column("end_ns", Nanoseconds, |exit| exit.end)
        .column("duration_ns", Nanoseconds, |exit| {
            exit.end.saturating_sub(exit.start)
        })
        .column("cpu", Number, |exit| exit.cpu)
        .column("reason", Text, |exit| Some(exit.reason.key()))
        .column("waiting", Flag, |exit| exit.reason.is_waiting())
        .texts("access", Text, |exit| exit.access.as_deref())
        .texts("device", Text, |exit| exit.device.as_deref())
        .column("user", Flag, |exit| exit.user);
    times::columns(table, TimesViews::NONE, |exit| {
        (exit.times, &exit.unknowable)
    })
}

/// Exits as rows of CSV.
#[derive(Debug)]
pub struct ExitList(CsvRows<'static, ExitLine>);

impl ExitList {
    /// Returns rows of exits whose times count this.
    pub fn new(clock: ClockUnit) -> ExitList {
        ExitList(columns().counted_in(clock).csv_rows())
    }

    /// Returns the names of CSV's columns as a line.
    pub fn csv_head(&self) -> String {
        self.0.head()
    }

    /// Appends an exit as a line.
    pub fn put_csv(&self, exit: &ExitLine, out: &mut String) {
        self.0.put(exit, out);
    }
}
