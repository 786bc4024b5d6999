//! Exit statistics.

use std::fmt::Write;

use analysis::{ExitRow, ExitTable, ExitsReport, HandledBy, Stats};
use event::Isa;
use model::{Seen, Times};
use serde_json::{Map, Value, json};
use words::{duration, share};

use crate::times::{COLUMNS, time_fields, unknowable_json};
use crate::{csv, vms};

/// Appends the contract's fields of one table to a JSON document.
pub fn json(document: &mut Map<String, Value>, isa: Option<Isa>, report: &ExitsReport) {
    document.insert("event".to_owned(), json!(report.table.name()));
    document.insert("isa".to_owned(), json!(isa.map(Isa::name)));
    let rows: Vec<Value> = report
        .rows
        .iter()
        .map(|row| row_json(row, report))
        .collect();
    document.insert("rows".to_owned(), Value::Array(rows));
    document.insert("total_count".to_owned(), json!(report.total_count));
    document.insert("total_ns".to_owned(), json!(report.total_ns));
    document.insert("handling_ns".to_owned(), json!(report.handling_ns));
    if let Some(seen) = &report.seen {
        let list = analysis::unknowable(seen);
        document.insert("unknowable".to_owned(), unknowable_json(&list));
    }
}

fn row_json(row: &ExitRow, report: &ExitsReport) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| {
        out.insert(name.to_owned(), value);
    };
    if row.vm_name.is_some() {
        put("vm_pid", json!(row.vm_pid));
        put("vcpu", json!(row.vcpu));
    }
    let stats = &row.stats;
    put("key", json!(row.key));
    put("name", json!(row.name.as_ref().unwrap_or(&row.key)));
    put("waiting", json!(row.waiting));
    put("count", json!(stats.count()));
    put("share", json!(share(stats.count(), report.total_count)));
    put("total_ns", json!(stats.total()));
    put("min_ns", json!(stats.min()));
    put("mean_ns", json!(stats.mean()));
    put("max_ns", json!(stats.max()));
    put("p50_ns", json!(percentile(stats, 0.5)));
    put("p90_ns", json!(percentile(stats, 0.9)));
    put("p99_ns", json!(percentile(stats, 0.99)));
    if let (Some(times), Some(seen)) = (&row.times, &report.seen) {
        for (name, ns) in time_fields(times) {
            put(&name, json!(ns));
        }
        put("user_count", json!(row.user_count));
        put("handled_by", json!(row.handled_by(seen).map(handler)));
    }
    if row.vm_name.is_some() {
        out.insert("vm_name".to_owned(), json!(row.vm_name));
    }
    Value::Object(out)
}

/// Returns a percentile; `None` for sums that a tool printed, which have none.
fn percentile(stats: &Stats, share: f64) -> Option<u64> {
    stats.has_percentiles().then(|| stats.percentile(share))
}

/// Returns what documents call it.
fn handler(by: HandledBy) -> &'static str {
    match by {
        HandledBy::Kernel => "kernel",
        HandledBy::User => "user",
        HandledBy::Both => "both",
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Returns tables as rows, one header for all.
pub fn csv(isa: Option<Isa>, reports: &[ExitsReport]) -> String {
    let mut out = String::new();
    let mut header: Vec<String> = [
        "event", "isa", "vm_pid", "vcpu", "key", "name", "waiting", "count", "share", "total_ns",
        "min_ns", "mean_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns",
    ]
    .map(str::to_owned)
    .to_vec();
    let times = time_fields(&Times::default()).into_iter();
    header.extend(times.map(|(name, _)| name));
    header.extend(["user_count", "handled_by", "vm_name"].map(str::to_owned));
    csv::row(&mut out, header);
    for report in reports {
        for row in &report.rows {
            let stats = &row.stats;
            let option = |value: Option<i64>| value.map(|v| v.to_string()).unwrap_or_default();
            let rank = |share: f64| {
                let value = percentile(stats, share);
                value.map(|v| v.to_string()).unwrap_or_default()
            };
            let mut fields = vec![
                report.table.name().to_owned(),
                isa.map_or("", Isa::name).to_owned(),
                option(row.vm_pid.map(i64::from)),
                option(row.vcpu.map(i64::from)),
                row.key.clone(),
                row.name.as_ref().unwrap_or(&row.key).clone(),
                row.waiting.to_string(),
                stats.count().to_string(),
                share(stats.count(), report.total_count).to_string(),
                stats.total().to_string(),
                stats.min().to_string(),
                stats.mean().to_string(),
                stats.max().to_string(),
                rank(0.5),
                rank(0.9),
                rank(0.99),
            ];
            let times = time_fields(&row.times.unwrap_or_default()).into_iter();
            let known = row.times.is_some();
            let text = |value: String| if known { value } else { String::new() };
            fields.extend(times.map(|(_, ns)| text(ns.to_string())));
            fields.push(text(row.user_count.to_string()));
            let by = report.seen.as_ref().and_then(|seen| row.handled_by(seen));
            fields.push(by.map_or("", handler).to_owned());
            fields.push(row.vm_name.clone().unwrap_or_default());
            csv::row(&mut out, fields);
        }
    }
    out
}

/// Columns of the key. A name stands behind it where both fit; else on a line of its own, in the wide form
/// at the line's end.
const KEY_WIDTH: usize = 20;

/// How a table is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// All columns, however wide that is; the narrow form fits 80.
    pub wide: bool,
    /// Rows at most.
    pub limit: usize,
    /// Whether the times are nanoseconds; ticks of unknown rate are printed as numbers.
    pub nanoseconds: bool,
    /// Below the table, where the time of each row went.
    pub split: bool,
}

/// Returns one table as text.
pub fn table(isa: Option<Isa>, report: &ExitsReport, layout: Layout) -> String {
    let time = |value: u64| duration::of(value, layout.nanoseconds);
    let mut out = String::new();
    let what = match report.table {
        ExitTable::Vmexit => "exits",
        ExitTable::Ioport => "port accesses",
        ExitTable::Mmio => "MMIO accesses",
        ExitTable::Msr => "MSR accesses",
    };
    let isa = isa
        .map(|isa| format!(" ({})", isa.name()))
        .unwrap_or_default();
    let _ = write!(
        out,
        "{}{isa}: {} {what}, {}",
        report.table.name(),
        report.total_count,
        time(report.total_ns)
    );
    let waiting = report.total_ns - report.handling_ns;
    if waiting > 0 {
        let _ = write!(
            out,
            ": handling {}, waiting {}",
            time(report.handling_ns),
            time(waiting)
        );
    }
    out.push('\n');
    if report.rows.is_empty() {
        return out;
    }
    let grouped = report.rows.iter().any(|r| r.vm_name.is_some());
    let group = |vm: &str, vcpu: &str| {
        if grouped {
            format!("{vm:>8} {vcpu:>4} ")
        } else {
            String::new()
        }
    };
    let _ = write!(out, "{}{:<20}{:>9}", group("VM", "vCPU"), "", "count");
    if layout.wide {
        let _ = write!(out, "{:>7}", "count%");
    }
    let _ = write!(out, "{:>9}{:>6}", "time", "time%");
    let columns: &[&str] = if layout.wide {
        &["min", "mean", "p50", "p90", "p99", "max"]
    } else {
        &["mean", "p50", "p99", "max"]
    };
    for column in columns {
        let _ = write!(out, "{column:>9}");
    }
    out.push('\n');
    for row in report.rows.iter().take(layout.limit) {
        let stats = &row.stats;
        let number = |value: Option<i64>| value.map_or("-".to_owned(), |v| v.to_string());
        let name = row.name.as_deref().unwrap_or_default();
        let key = if row.waiting {
            format!("{} (waiting)", row.key)
        } else if !name.is_empty() && row.key.len() + 1 + name.len() < KEY_WIDTH {
            format!("{} {name}", row.key)
        } else {
            row.key.clone()
        };
        let _ = write!(
            out,
            "{}{key:<20}{:>9}",
            group(
                &vms::cell(row.vm_name.as_deref().unwrap_or_default(), row.vm_pid),
                &number(row.vcpu.map(i64::from))
            ),
            stats.count()
        );
        if layout.wide {
            let _ = write!(
                out,
                "{:>7}",
                share::cell(share(stats.count(), report.total_count))
            );
        }
        let _ = write!(
            out,
            "{:>9}{:>6}",
            time(stats.total()),
            share::cell(share(stats.total(), report.total_ns))
        );
        let (min, mean) = (Some(stats.min()), Some(stats.mean()));
        let max = Some(stats.max());
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| percentile(stats, share));
        let values: &[Option<u64>] = if layout.wide {
            &[min, mean, p50, p90, p99, max]
        } else {
            &[mean, p50, p99, max]
        };
        for value in values {
            let text = value.map_or_else(|| "-".to_owned(), time);
            let _ = write!(out, "{text:>9}");
        }
        if layout.wide && !name.is_empty() {
            let _ = write!(out, "  {name}");
        }
        out.push('\n');
        if !layout.wide && !name.is_empty() && !key.ends_with(name) {
            let _ = writeln!(out, "{}  {name}", group("", ""));
        }
    }
    if report.rows.len() > layout.limit {
        let _ = writeln!(out, "... and {} more", report.rows.len() - layout.limit);
    }
    if layout.split
        && let Some(seen) = &report.seen
    {
        split(&mut out, report, seen, layout, &group);
    }
    out
}

/// Appends where the time of each row went, in per cent of it.
fn split(
    out: &mut String,
    report: &ExitsReport,
    seen: &Seen,
    layout: Layout,
    group: &dyn Fn(&str, &str) -> String,
) {
    if !seen.userspace_exits && !seen.switches {
        out.push_str("where that time went takes kvm_userspace_exit and sched_switch events\n");
        return;
    }
    let unknowable = analysis::unknowable(seen);
    let _ = writeln!(out, "where that time went, in per cent of each row's");
    let _ = write!(out, "{}{:<20}{:>9}", group("VM", "vCPU"), "", "time");
    for column in &COLUMNS[1..] {
        let _ = write!(out, "{:>1$}", column.name, column.width);
    }
    let _ = writeln!(out, "  by");
    for row in report.rows.iter().take(layout.limit) {
        let times = row.times.unwrap_or_default();
        let number = |value: Option<i64>| value.map_or("-".to_owned(), |v| v.to_string());
        let group = group(
            &vms::cell(row.vm_name.as_deref().unwrap_or_default(), row.vm_pid),
            &number(row.vcpu.map(i64::from)),
        );
        let total = times.total();
        let time = duration::of(total, layout.nanoseconds);
        let _ = write!(out, "{group}{:<20}{time:>9}", row.key);
        for column in &COLUMNS[1..] {
            let _ = write!(
                out,
                "{:>1$}",
                column.percent(&times, total, &unknowable),
                column.width
            );
        }
        let by = match row.handled_by(seen) {
            None => "",
            Some(HandledBy::Kernel) => "KVM",
            Some(HandledBy::User) => "VMM",
            Some(HandledBy::Both) => "both",
        };
        let _ = writeln!(out, "  {by}");
    }
}
