//! Time of the vCPUs.

use std::fmt::Write;

use analysis::{Behind, Unknowable, UserCause, VcpuRow, VcpusReport, access_key};
use model::{State, Times};
use serde_json::{Map, Value, json};
use words::duration;

use crate::times::{COLUMNS, Column, time_fields, unknowable_json};
use crate::{clean, csv, vms};

/// Appends the contract's fields to a JSON document.
pub fn json(document: &mut Map<String, Value>, report: &VcpusReport) {
    let rows = report.rows.iter().map(row_json).collect();
    document.insert("rows".to_owned(), Value::Array(rows));
    document.insert(
        "unknowable".to_owned(),
        unknowable_json(&report.unknowable()),
    );
}

fn row_json(row: &VcpuRow) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| {
        out.insert(name.to_owned(), value);
    };
    put("vm_pid", json!(row.vm_pid));
    put("vm_name", json!(row.vm_name));
    put("vcpu", json!(row.vcpu));
    put("tid", json!(row.tid));
    if row.others > 0 {
        put("others", json!(row.others));
    }
    put("from_ns", json!(row.from));
    put("to_ns", json!(row.to));
    put("observed_ns", json!(row.times.total()));
    for (name, ns) in time_fields(&row.times) {
        put(&name, json!(ns));
    }
    put("exits", json!(row.exits));
    put(
        "polls",
        json!({
            "succeeded": row.polls.succeeded,
            "succeeded_ns": row.polls.succeeded_ns,
            "failed": row.polls.failed,
            "failed_ns": row.polls.failed_ns,
        }),
    );
    put(
        "waits",
        json!({
            "count": row.waits.count(),
            "p50_ns": row.waits.percentile(0.5),
            "p90_ns": row.waits.percentile(0.9),
            "p99_ns": row.waits.percentile(0.99),
            "max_ns": row.waits.max(),
        }),
    );
    let behind = row.behind.iter().map(|task| {
        json!({
            "comm": task.comm, "tid": task.tid, "count": task.count, "ran_ns": task.ns,
        })
    });
    put("behind", behind.collect());
    let user = row.user.iter().map(|cause| {
        json!({
            "reason": cause.reason.map(|reason| reason.key()),
            "key": cause.access.as_ref().map(access_key),
            "name": cause.name,
            "count": cause.count,
            "user_ns": cause.ns,
        })
    });
    put("user", user.collect());
    if row.guessed {
        put("guessed", json!(true));
    }
    Value::Object(out)
}

/// Returns the rows as CSV.
pub fn csv(report: &VcpusReport) -> String {
    let mut out = String::new();
    let mut header: Vec<String> = ["vm_pid", "vm_name", "vcpu", "tid", "observed_ns"]
        .map(str::to_owned)
        .to_vec();
    header.extend(
        time_fields(&Times::default())
            .into_iter()
            .map(|(name, _)| name),
    );
    header.extend(
        [
            "exits",
            "polls_succeeded",
            "polls_succeeded_ns",
            "polls_failed",
            "polls_failed_ns",
            "waits",
            "wait_p50_ns",
            "wait_p99_ns",
            "wait_max_ns",
        ]
        .map(str::to_owned),
    );
    csv::row(&mut out, header);
    for row in &report.rows {
        let mut fields = vec![
            row.vm_pid.map(|pid| pid.to_string()).unwrap_or_default(),
            match row.others {
                0 => row.vm_name.clone().unwrap_or_default(),
                others => format!("{others} others"),
            },
            row.vcpu.to_string(),
            row.tid.to_string(),
            row.times.total().to_string(),
        ];
        let times = time_fields(&row.times);
        fields.extend(times.into_iter().map(|(_, ns)| ns.to_string()));
        let numbers = [
            row.exits,
            row.polls.succeeded,
            row.polls.succeeded_ns,
            row.polls.failed,
            row.polls.failed_ns,
            row.waits.count(),
            row.waits.percentile(0.5),
            row.waits.percentile(0.99),
            row.waits.max(),
        ];
        fields.extend(numbers.map(|n| n.to_string()));
        csv::row(&mut out, fields);
    }
    out
}

/// How the table is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Rows of the table.
    pub rows: usize,
    /// Items of each list below the table.
    pub limit: usize,
    /// Durations instead of shares.
    pub durations: bool,
    /// Whether the times are nanoseconds; ticks of unknown rate are printed as numbers.
    pub nanoseconds: bool,
}

/// Width of columns that hold durations.
const WIDE: usize = 10;

/// Returns the table, and below it for each vCPU behind whom it waited and what it was in the VMM for.
pub fn table(report: &VcpusReport, layout: Layout) -> String {
    let unknowable = report.unknowable();
    let mut out = summary(report, &unknowable, layout);
    for row in &report.rows {
        details(&mut out, row, layout);
    }
    out
}

/// Returns the table alone.
pub fn summary(report: &VcpusReport, unknowable: &[Unknowable], layout: Layout) -> String {
    let mut out = String::new();
    let width = |column: &Column| {
        if layout.durations { WIDE } else { column.width }
    };
    let _ = writeln!(
        out,
        "vcpus: {}",
        if layout.durations {
            "time of each vCPU by state"
        } else {
            "per cent of each vCPU's time by state"
        }
    );
    let _ = write!(out, "{:>8} {:>4} {:>9}", "VM", "vCPU", "observed");
    for column in &COLUMNS {
        let _ = write!(out, "{:>1$}", column.name, width(column));
    }
    let _ = writeln!(out, "{:>8}", "exits");
    let several = (report.rows.windows(2)).any(|pair| pair[0].vm != pair[1].vm);
    for row in report.rows.iter().take(layout.rows) {
        let total = row.times.total();
        let _ = write!(
            out,
            "{:>8} {:>4} {:>9}",
            match row.others {
                0 if several || row.vm_name.is_some() => vms::cell(&row.vm, row.vm_pid),
                0 => vms::cell("", row.vm_pid),
                _ => "others".to_owned(),
            },
            match row.others {
                0 => row.vcpu,
                others => others,
            },
            duration::of(total, layout.nanoseconds)
        );
        for column in &COLUMNS {
            let text = if layout.durations {
                column.duration(&row.times, unknowable, layout.nanoseconds)
            } else {
                column.percent(&row.times, total, unknowable)
            };
            let _ = write!(out, "{text:>0$}", width(column));
        }
        let _ = writeln!(out, "{:>8}", row.exits);
    }
    if report.rows.len() > layout.rows {
        let _ = writeln!(out, "... and {} more", report.rows.len() - layout.rows);
    }
    out
}

fn details(out: &mut String, row: &VcpuRow, layout: Layout) {
    let time = |value: u64| duration::of(value, layout.nanoseconds);
    let vm = row
        .vm_name
        .clone()
        .or_else(|| row.vm_pid.map(|pid| pid.to_string()));
    let called = match vm {
        // The name of one of several VMs tells it from the others.
        Some(vm) if row.called == words::vcpu(None, row.vcpu) => format!("{} of {vm}", row.called),
        _ => row.called.clone(),
    };
    let who = match row.others {
        0 => format!("{called}, thread {}", row.tid),
        others => format!("{others} other vCPUs"),
    };
    let polls = &row.polls;
    let blocked = row.times.get(State::KernelBlocked) + row.times.get(State::UserBlocked);
    if polls.succeeded + polls.failed == 0
        && row.behind.is_empty()
        && row.user.is_empty()
        && blocked == 0
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
            time(polls.succeeded_ns),
            polls.failed,
            time(polls.failed_ns)
        );
    }
    if blocked > 0 {
        let _ = writeln!(
            out,
            "  asleep while its exit was handled: {} in KVM, {} in the VMM",
            time(row.times.get(State::KernelBlocked)),
            time(row.times.get(State::UserBlocked))
        );
    }
    if row.waits.count() > 0 {
        let waits = &row.waits;
        let _ = writeln!(
            out,
            "  waited for a CPU {} times: p50 {}, p99 {}, max {}; meanwhile ran",
            waits.count(),
            time(waits.percentile(0.5)),
            time(waits.percentile(0.99)),
            time(waits.max())
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
}

fn list<T>(out: &mut String, items: &[T], layout: Layout, of: impl Fn(&T) -> (u64, u64, String)) {
    let limit = layout.limit;
    for item in items.iter().take(limit) {
        let (ns, count, name) = of(item);
        let _ = writeln!(
            out,
            "  {:>10} {count:>8} times  {}",
            duration::of(ns, layout.nanoseconds),
            clean(&name)
        );
    }
    if items.len() > limit {
        let (ns, count) = items[limit..].iter().map(&of).fold((0u64, 0), |sum, item| {
            (sum.0.saturating_add(item.0), sum.1 + item.1)
        });
        let _ = writeln!(
            out,
            "  {:>10} {count:>8} times  {} more",
            duration::of(ns, layout.nanoseconds),
            items.len() - limit
        );
    }
}

fn behind_name(task: &Behind) -> String {
    match (&task.comm, task.tid) {
        (_, Some(0)) => "nothing: the CPU was idle".to_owned(),
        (Some(comm), Some(tid)) => format!("{comm}:{tid}"),
        (None, Some(tid)) => format!(":{tid}"),
        _ => "others, or not known".to_owned(),
    }
}

fn cause_name(cause: &UserCause) -> String {
    let mut parts = Vec::new();
    match cause.reason {
        Some(reason) => parts.push(reason.key().into_owned()),
        None => parts.push("others, or not known".to_owned()),
    }
    if let Some(access) = &cause.access {
        parts.push(access_key(access));
    }
    parts.extend(cause.name.clone());
    parts.join(" ")
}
