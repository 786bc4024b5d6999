//! What is in a recording.

use std::fmt::Write;

use analysis::{EventCount, InfoReport};
use model::Vm;
use serde_json::{Map, Value, json};
use words::duration;

use crate::quality::wrap;
use crate::table::{Table, Unit};

/// Threads of a VMM that are listed.
const HELPERS: usize = 4;

/// What a recording's header tells that is printed beside the counts.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// Container and version.
    pub format: String,
    /// Architecture.
    pub arch: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// Clock of the time stamps.
    pub clock: Option<String>,
    /// Whether the time stamps count nanoseconds.
    pub nanoseconds: bool,
    /// More lines, as name and text.
    pub more: Vec<(String, String)>,
}

/// Appends the contract's fields to a JSON document.
///
/// `start_ns` and `duration_ns` are null when the clock counts ticks of unknown rate.
pub fn json(document: &mut Map<String, Value>, head: &Head, report: &InfoReport) {
    let span = report.start.zip(report.end).filter(|_| head.nanoseconds);
    document.insert("format".to_owned(), json!(head.format));
    document.insert("arch".to_owned(), json!(head.arch));
    document.insert("kernel".to_owned(), json!(head.kernel));
    document.insert(
        "cpus".to_owned(),
        json!(head.cpus.unwrap_or(report.cpus_seen)),
    );
    document.insert("start_ns".to_owned(), json!(span.map(|s| s.0)));
    document.insert("duration_ns".to_owned(), json!(span.map(|s| s.1 - s.0)));
    document.insert("events".to_owned(), columns().json(&report.events));
    document.insert(
        "vms".to_owned(),
        Value::Array(report.vms.iter().map(vm_json).collect()),
    );
}

fn vm_json(vm: &Vm) -> Value {
    let vcpus: Vec<Value> = vm
        .vcpus
        .iter()
        .map(|v| json!({"id": v.id, "tid": v.tid}))
        .collect();
    let mut out = json!({"pid": vm.pid, "name": vm.name, "vcpus": vcpus});
    if vm.guessed {
        out["guessed"] = true.into();
    }
    out
}

/// Columns of the counts of events.
pub(crate) fn columns() -> Table<'static, EventCount> {
    Table::new()
        .column("event", Unit::Text, |event: &EventCount| event.name.clone())
        .json_at("name")
        .column("count", Unit::Count, |event| event.count)
}

/// Returns events and counts as rows.
pub fn csv(report: &InfoReport) -> String {
    columns().csv(&report.events)
}

/// Returns what the recording is, in a few lines no wider than `width` where that can be.
pub fn summary(head: &Head, report: &InfoReport, width: usize) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            wrap(&mut out, &format!("{name:<10}"), text, width);
        }
    };
    line("format", &head.format);
    let machine: Vec<String> = [
        head.arch.clone(),
        head.kernel.as_ref().map(|k| format!("kernel {k}")),
        head.cpus.map(|c| words::plural(c, "CPU")),
    ]
    .into_iter()
    .flatten()
    .collect();
    line("machine", &machine.join(", "));
    for (name, text) in &head.more {
        line(name, text);
    }
    line("clock", head.clock.as_deref().unwrap_or(""));
    if let Some((start, end)) = report.start.zip(report.end) {
        let text = if head.nanoseconds {
            format!(
                "{} to {}, {}",
                duration::seconds(start),
                duration::seconds(end),
                duration::human(end - start)
            )
        } else {
            format!("{start} to {end}, {} ticks", end - start)
        };
        line("time", &text);
    }
    let total: u64 = report.events.iter().map(|e| e.count).sum();
    line(
        "events",
        &format!("{total} from {}", words::plural(report.cpus_seen, "CPU")),
    );
    for vm in &report.vms {
        let mut text = match (vm.pid, &vm.name) {
            (Some(pid), Some(name)) => format!("{name}, process {pid}"),
            (Some(pid), None) => format!("process {pid}"),
            (None, Some(name)) => format!("{name}, process not recorded"),
            (None, None) => "process not recorded".to_owned(),
        };
        if let Some(process) = vm.process.as_ref().filter(|_| vm.process != vm.name) {
            let _ = write!(text, " ({process})");
        }
        let vcpus: Vec<String> = vm
            .vcpus
            .iter()
            .map(|v| words::with_thread(&v.id.to_string(), v.tid))
            .collect();
        let _ = write!(text, "; vCPUs {}", vcpus.join(", "));
        if !vm.helpers.is_empty() {
            // An I/O thread for each disk, say: the first ones are the VMM's oldest.
            let helpers: Vec<String> = vm.helpers.iter().map(i32::to_string).collect();
            let _ = write!(
                text,
                "; with threads {}",
                words::list_first(&helpers, HELPERS)
            );
        }
        if vm.guessed {
            text.push_str(" (a guess, by the order of thread ids)");
        }
        line("VM", &text);
    }
    out
}

/// Returns the counts of events that happened, most frequent first; `limit` lines at most.
pub fn counts(report: &InfoReport, limit: usize) -> String {
    let mut out = String::new();
    let happened = report.events.iter().filter(|e| e.count > 0);
    for event in happened.clone().take(limit) {
        let _ = writeln!(out, "{:>12}  {}", event.count, crate::clean(&event.name));
    }
    let left = happened.count().saturating_sub(limit);
    if left > 0 {
        let kinds = if left == 1 { "kind" } else { "kinds" };
        let _ = writeln!(out, "{left:>12}  more {kinds}");
    }
    let never = report.events.iter().filter(|e| e.count == 0).count();
    if never > 0 && limit == usize::MAX {
        let kinds = if never == 1 { "kind" } else { "kinds" };
        let _ = writeln!(out, "{never:>12}  {kinds} of events that never happened");
    }
    out
}
