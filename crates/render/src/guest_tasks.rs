//! What a guest did on a vCPU, where its own recording says so.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use analysis::{
    GuestContext, GuestTask, GuestTasksReport, NamedContext, Unknowable, VcpusReport, known_amount,
};
use model::{State, Times};
use serde_json::Value;

use crate::html::Frame;
use crate::schema::Shape;
use crate::table::{Table, Unit, Views};
use crate::{Layout, neutral, vms};

/// Returns what kind of thing it is.
pub(crate) fn what(doing: GuestContext) -> &'static str {
    match doing {
        GuestContext::Task(_) => "task",
        GuestContext::Idle => "idle",
        GuestContext::Softirq(_) => "softirq",
        GuestContext::Interrupt(_) => "interrupt",
        GuestContext::Unknown => "unknown",
    }
}

/// Returns what tables call it: `ping:433`, `softirq NET_RX`, `idle`.
pub fn called(who: &NamedContext) -> String {
    // A guest may call its threads anything, line breaks included.
    let name = who.name.as_deref().map(neutral::name);
    let name = name.as_deref();
    match who.doing {
        GuestContext::Task(tid) => format!("{}:{tid}", name.unwrap_or("")),
        GuestContext::Idle => "idle".to_owned(),
        GuestContext::Softirq(_) => format!("softirq {}", name.unwrap_or("?")),
        GuestContext::Interrupt(_) => format!("interrupt {}", name.unwrap_or("?")),
        GuestContext::Unknown => "unknown".to_owned(),
    }
}

/// What waited while its vCPU had no CPU.
const STEAL: Views = Views::own(0);

/// Columns of a row's tasks.
pub(crate) fn columns(unknowable: &[Unknowable]) -> Table<'_, GuestTask> {
    columns_of(unknowable, |task| task, |task| called(&task.who))
}

/// Columns of what a guest did, for rows that have it and call it somehow. `unknowable` is what the host's recording
/// does not show.
fn columns_of<R: 'static>(
    unknowable: &[Unknowable],
    of: fn(&R) -> &GuestTask,
    named: fn(&R) -> String,
) -> Table<'_, R> {
    use Unit::{Count, Name, Nanoseconds, Number, Text};
    let all = Views::TERMINAL | Views::TICKET;
    let sum = |column: &'static str, states: &'static [State]| {
        move |row: &R| {
            let ns = states.iter().map(|state| of(row).times.get(*state));
            known_amount(unknowable, column, ns.fold(0, u64::saturating_add))
        }
    };
    Table::new()
        .column("what", Text, move |row: &R| what(of(row).who.doing))
        .page("that is")
        .after("called")
        .column("name", Name, move |row| of(row).who.name.clone())
        .column("called", Name, named)
        .text_only()
        .left("  the guest did", 30)
        .views(Views::TERMINAL | STEAL)
        .page("the guest did")
        .show(move |row, _| format!("  {}", named(row)))
        .column("tid", Number, move |row| match of(row).who.doing {
            GuestContext::Task(tid) => Some(tid),
            _ => None,
        })
        .column("guest_ns", Nanoseconds, sum("guest_ns", &[State::Guest]))
        .heading("guest", 9)
        .views(all | STEAL)
        .page("in the guest")
        .column(
            "kernel_ns",
            Nanoseconds,
            sum("kernel_ns", &[State::Kernel, State::KernelBlocked]),
        )
        .heading("kernel", 9)
        .views(all)
        .page("in KVM")
        .column(
            "user_ns",
            Nanoseconds,
            sum("user_ns", &[State::User, State::UserBlocked]),
        )
        .heading("user", 9)
        .views(all)
        .page("in the VMM")
        .column("poll_ns", Nanoseconds, sum("poll_ns", &[State::Poll]))
        .page("polling")
        .column("halted_ns", Nanoseconds, sum("halted_ns", &[State::Halted]))
        .page("halted")
        .column(
            "runnable_ns",
            Nanoseconds,
            sum("runnable_ns", &[State::Runnable]),
        )
        .heading("runnable", 9)
        .views(all | STEAL)
        .page("runnable")
        .column(
            "unknown_ns",
            Nanoseconds,
            sum("unknown_ns", &[State::Unknown]),
        )
        .page("unknown")
        .column("exits", Count, move |row| {
            known_amount(unknowable, "exits", of(row).exits)
        })
        .heading("exits", 7)
        .views(all)
        .page("exits")
}

/// What guests did on all vCPUs of a VM together.
#[derive(Debug, Clone)]
pub(crate) struct TaskSum {
    /// What stands for the VM in a column, where there are several.
    vm: Option<String>,
    pub(crate) task: GuestTask,
}

/// Returns what guests did on all their vCPUs together, the heaviest first. Idle time and what is not known are left
/// out.
pub(crate) fn summed(report: &VcpusReport) -> Vec<TaskSum> {
    let mut sums: BTreeMap<(&str, &NamedContext), (Times, u64)> = BTreeMap::new();
    let mut cells: BTreeMap<&str, String> = BTreeMap::new();
    for row in &report.rows {
        let cell = || vms::cell(&row.vm, row.vm_pid);
        cells.entry(&row.vm).or_insert_with(cell);
        for task in row.guest.iter().flat_map(|guest| &guest.tasks) {
            if !matches!(task.who.doing, GuestContext::Idle | GuestContext::Unknown) {
                let sum = sums.entry((&row.vm, &task.who)).or_default();
                sum.0.merge(&task.times);
                sum.1 = sum.1.saturating_add(task.exits);
            }
        }
    }
    let first = sums.keys().next().map(|(vm, _)| *vm);
    let several = sums.keys().any(|(vm, _)| Some(*vm) != first);
    let tasks = sums.into_iter().map(|((vm, who), (times, exits))| TaskSum {
        vm: cells.get(vm).filter(|_| several).cloned(),
        task: GuestTask {
            who: who.clone(),
            times,
            exits,
        },
    });
    let mut tasks: Vec<TaskSum> = tasks.collect();
    tasks.sort_by_key(|one| Reverse(one.task.times.total()));
    tasks
}

/// Returns for how long guests' recordings do not say what guests did, and of how much time of their vCPUs.
pub(crate) fn unknown(report: &VcpusReport) -> (u64, u64) {
    let tasks = report.rows.iter().filter_map(|row| row.guest.as_ref());
    tasks
        .flat_map(|guest| &guest.tasks)
        .fold((0, 0), |(unknown, all), task| {
            let ns = task.times.total();
            let of = match task.who.doing {
                GuestContext::Unknown => ns,
                _ => 0,
            };
            (unknown + of, all + ns)
        })
}

impl TaskSum {
    /// Returns what it is called: among several VMs with its own.
    pub(crate) fn called(&self) -> String {
        let name = called(&self.task.who);
        match &self.vm {
            Some(vm) => format!("{vm}: {name}"),
            None => name,
        }
    }
}

/// Returns them as text.
pub(crate) fn summed_text(tasks: &[TaskSum], unknowable: &[Unknowable], layout: Layout) -> String {
    let columns = columns_of(unknowable, |one: &TaskSum| &one.task, TaskSum::called);
    columns.view(Views::TERMINAL).text(tasks, layout)
}

/// Returns them as a table of Markdown; `None` where there are none.
pub(crate) fn markdown(report: &VcpusReport, layout: Layout) -> Option<String> {
    let tasks = summed(report);
    let unknowable = report.unknowable();
    let columns = columns_of(&unknowable, |one: &TaskSum| &one.task, TaskSum::called)
        .column("guest's task", Unit::Name, TaskSum::called)
        .views(Views::TICKET)
        .after("");
    (!tasks.is_empty()).then(|| columns.markdown(Views::TICKET, &tasks, layout))
}

/// What a guest did on a vCPU.
struct OfVcpu {
    vcpu: String,
    tid: i32,
    task: GuestTask,
}

fn of_vcpus(report: &VcpusReport) -> Vec<OfVcpu> {
    let all = report.rows.iter().flat_map(|row| {
        let tasks = row.guest.iter().flat_map(|guest| &guest.tasks);
        tasks.map(|task| OfVcpu {
            vcpu: row.called.clone(),
            tid: row.tid,
            task: task.clone(),
        })
    });
    all.collect()
}

fn vcpu_columns(unknowable: &[Unknowable]) -> Table<'_, OfVcpu> {
    use Unit::{Name, Number};
    columns_of(
        unknowable,
        |row: &OfVcpu| &row.task,
        |row| called(&row.task.who),
    )
    .column("vcpu", Name, |row: &OfVcpu| row.vcpu.clone())
    .left("  vCPU", 20)
    .views(STEAL)
    .page("vCPU")
    .after("")
    .show(|row, _| format!("  {}", row.vcpu))
    .column("vcpu_tid", Number, |row| row.tid)
    .page("its thread")
    .after("vcpu")
}

/// How long what guests did waited while their vCPUs had no CPU, most time first. Idle tasks wait as well: for what
/// wakes them.
fn stolen(report: &VcpusReport) -> Vec<OfVcpu> {
    let mut all = of_vcpus(report);
    let ns = |row: &OfVcpu| row.task.times.get(State::Runnable);
    all.retain(|row| ns(row) > 0);
    all.sort_by_key(|row| Reverse(ns(row)));
    all
}

/// Returns how long what guests did waited while their vCPUs had no CPU (steal), as JSON.
pub fn steal_json(report: &VcpusReport) -> Value {
    vcpu_columns(&report.unknowable()).json(stolen(report))
}

/// Returns what that is in a document.
pub fn steal_shape() -> Shape {
    vcpu_columns(&[]).shape().list()
}

/// Returns the same as text; nothing where no guest's recording was given.
pub fn steal_text(report: &VcpusReport, layout: Layout) -> String {
    if report.rows.iter().all(|row| row.guest.is_none()) {
        return String::new();
    }
    let unknowable = report.unknowable();
    let columns = vcpu_columns(&unknowable);
    let view = columns.view(STEAL);
    let title = "steal: how long guests' tasks waited while their vCPU had no CPU (runnable)\n";
    title.to_owned() + &view.text(stolen(report), layout)
}

/// Returns for a page what the guest of each vCPU did; nothing where no guest's recording was given.
pub(crate) fn html(report: &VcpusReport, frame: &Frame<'_>) -> String {
    let all = of_vcpus(report);
    if all.is_empty() {
        return String::new();
    }
    vcpu_columns(&report.unknowable()).html(all, frame)
}

/// Returns them as JSON: all of them.
pub(crate) fn json(report: Option<&GuestTasksReport>, unknowable: &[Unknowable]) -> Value {
    report.map_or(Value::Null, |report| {
        columns(unknowable).json(&report.tasks)
    })
}

/// Returns them as text, with as many rows as the layout's limit.
pub(crate) fn text(report: &GuestTasksReport, unknowable: &[Unknowable], layout: Layout) -> String {
    let columns = columns(unknowable);
    let view = columns.view(Views::TERMINAL);
    let known = |task: &&GuestTask| task.who.doing != GuestContext::Unknown;
    let mut out = view.text(report.tasks.iter().filter(known), layout);
    if let Some(unknown) = report.tasks.iter().find(|task| !known(task)) {
        let _ = writeln!(
            out,
            "  For {} the guest's recording does not say what it did.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_break_no_line() {
        let who = NamedContext {
            doing: GuestContext::Task(5),
            name: Some("a\nb\u{1b}[2J".to_owned()),
        };
        let called = called(&who);
        assert!(
            called.starts_with('a') && called.ends_with(":5"),
            "{called}"
        );
        assert!(!called.contains(char::is_control), "{called:?}");
    }
}
