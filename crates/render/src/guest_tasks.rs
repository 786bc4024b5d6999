//! What a guest did on a vCPU, where its own recording says so.

use std::fmt::Write;

use analysis::{GuestDoing, GuestTask, GuestTasksReport, GuestWho};
use model::State;
use serde_json::Value;

use crate::Layout;
use crate::table::{Table, Unit};

/// Returns what kind of thing it is.
pub(crate) fn what(doing: GuestDoing) -> &'static str {
    match doing {
        GuestDoing::Task(_) => "task",
        GuestDoing::Idle => "idle",
        GuestDoing::Softirq(_) => "softirq",
        GuestDoing::Interrupt(_) => "interrupt",
        GuestDoing::Unknown => "unknown",
    }
}

/// Returns what it is called.
pub(crate) fn called(who: &GuestWho) -> String {
    let name = who.name.as_deref();
    match who.doing {
        GuestDoing::Task(tid) => format!("{}:{tid}", name.unwrap_or("")),
        GuestDoing::Idle => "idle".to_owned(),
        GuestDoing::Softirq(_) => format!("softirq {}", name.unwrap_or("?")),
        GuestDoing::Interrupt(_) => format!("interrupt {}", name.unwrap_or("?")),
        GuestDoing::Unknown => "unknown".to_owned(),
    }
}

/// Columns of a row's tasks.
pub(crate) fn columns() -> Table<'static, GuestTask> {
    use Unit::{Count, Nanoseconds, Number, Text};
    let sum = |states: &'static [State]| {
        move |task: &GuestTask| -> u64 { states.iter().map(|state| task.times.get(*state)).sum() }
    };
    Table::new()
        .column("what", Text, |task: &GuestTask| what(task.who.doing))
        .column("name", Text, |task: &GuestTask| task.who.name.clone())
        .column("called", Text, |task: &GuestTask| called(&task.who))
        .text_only()
        .left("  the guest did", 30)
        .show(|task, _| format!("  {}", called(&task.who)))
        .column("tid", Number, |task| match task.who.doing {
            GuestDoing::Task(tid) => Some(tid),
            _ => None,
        })
        .column("guest_ns", Nanoseconds, sum(&[State::Guest]))
        .heading("guest", 9)
        .column(
            "kernel_ns",
            Nanoseconds,
            sum(&[State::Kernel, State::KernelBlocked]),
        )
        .heading("kernel", 9)
        .column(
            "user_ns",
            Nanoseconds,
            sum(&[State::User, State::UserBlocked]),
        )
        .heading("user", 9)
        .column("poll_ns", Nanoseconds, sum(&[State::Poll]))
        .column("halted_ns", Nanoseconds, sum(&[State::Halted]))
        .column("runnable_ns", Nanoseconds, sum(&[State::Runnable]))
        .heading("runnable", 9)
        .column("unknown_ns", Nanoseconds, sum(&[State::Unknown]))
        .column("exits", Count, |task| task.exits)
        .heading("exits", 7)
}

/// Returns them as JSON: all of them.
pub(crate) fn json(report: Option<&GuestTasksReport>) -> Value {
    report.map_or(Value::Null, |report| columns().json(&report.tasks))
}

/// Returns them as text, with as many rows as the layout's limit.
pub(crate) fn text(report: &GuestTasksReport, layout: Layout) -> String {
    let columns = columns();
    let view = columns.view([
        "called",
        "guest_ns",
        "kernel_ns",
        "user_ns",
        "runnable_ns",
        "exits",
    ]);
    let known = |task: &&GuestTask| task.who.doing != GuestDoing::Unknown;
    let mut out = view.text(report.tasks.iter().filter(known), layout);
    if let Some(unknown) = report.tasks.iter().find(|task| !known(task)) {
        let _ = writeln!(
            out,
            "  Of {} the guest's recording does not say what it did.",
            layout.time(unknown.times.total())
        );
    }
    let missing: Vec<&str> = [
        (report.interrupts, "interrupts"),
        (report.softirqs, "softirqs"),
    ]
    .iter()
    .filter(|(there, _)| !there)
    .map(|(_, name)| *name)
    .collect();
    if !missing.is_empty() {
        let _ = writeln!(
            out,
            "  The guest's recording has no {}: they are in what they interrupted.",
            missing.join(" and no ")
        );
    }
    out
}
