//! Where the vCPUs' time went.

use analysis::{Unknowable, VcpuRow, VcpusReport};
use model::Times;
use words::share;

use super::input::ScreenInput;
use super::line::{Line, Tone, fit};
use crate::{times, vcpus};

/// vCPUs that have a row each; with more there is one for each VM.
const ROWS: usize = 6;

/// Returns all vCPUs' time together, if any was observed.
fn together(input: &ScreenInput<'_>) -> Option<(Times, Vec<Unknowable>)> {
    let report = input.picture.vcpus.as_ref()?;
    let mut all = Times::default();
    for row in &report.rows {
        all.merge(&row.times);
    }
    (all.total() > 0).then(|| (all, report.unknowable()))
}

/// Returns the shares of all vCPUs' time that are known and not zero, most first, each with what it was spent on.
fn shares(input: &ScreenInput<'_>) -> Vec<(f64, &'static str, u64)> {
    let Some((all, unknowable)) = together(input) else {
        return Vec::new();
    };
    let known = times::known((all, &unknowable));
    let mut known: Vec<_> = known
        .filter_map(|(state, ns)| Some((state, ns?)))
        .filter(|(_, ns)| *ns > 0)
        .map(|(state, ns)| (ns as f64 / all.total() as f64, state, ns))
        .collect();
    known.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    known
}

/// Returns what the vCPUs did, in one sentence.
pub(crate) fn spent(input: &ScreenInput<'_>) -> Option<String> {
    let shares = shares(input);
    let rows = &input.picture.vcpus.as_ref()?.rows;
    let parts: Vec<(String, &str)> = shares
        .iter()
        .take(3)
        .map(|(part, state, _)| (share::tenths(*part), spent_on(state)))
        .collect();
    let (first, others) = parts.split_first()?;
    let count: u64 = rows
        .iter()
        .map(|row| u64::from(row.others.max(1)))
        .fold(0, u64::saturating_add);
    let mut who = words::plural(count, "vCPU");
    let vms = input.picture.info.vms.len();
    if vms > 1 {
        who.push_str(&format!(" of {vms} VMs"));
    }
    let time = if count == 1 { "its" } else { "their" };
    let others = others.iter();
    let first = [format!("{} of {time} time {}", first.0, first.1)].into_iter();
    let parts: Vec<String> = first
        .chain(others.map(|(part, state)| format!("{part} {state}")))
        .collect();
    Some(format!("{who} spent {}.", words::list(&parts)))
}

/// Returns what the time in a state was spent on.
fn spent_on(state: &str) -> &'static str {
    match state {
        "guest" => "in the guest",
        "kernel" => "in KVM",
        "user" => "in the VMM",
        "poll" => "polling",
        "halted" => "halted",
        "runnable" => "waiting for a CPU",
        _ => "in ways that are not known",
    }
}

/// Returns all vCPUs' time by state in one line, as far as it is known: the states with most of it.
pub(crate) fn short(input: &ScreenInput<'_>, width: usize) -> Option<String> {
    let shares = shares(input);
    let part = |(part, state, _): &(f64, &str, u64)| format!("{state} {}", share::cell(*part));
    let parts: Vec<String> = shares.iter().map(part).collect();
    let (first, others) = parts.split_first()?;
    let mut out = format!("vcpus (%): {first}");
    fit(&mut out, ", ", others, width);
    Some(out)
}

/// Returns a row for each vCPU, or where there are many for each VM.
pub(crate) fn lines(input: &ScreenInput<'_>, width: usize) -> Vec<Line> {
    let Some(report) = input.picture.vcpus.as_ref().filter(|r| !r.rows.is_empty()) else {
        return Vec::new();
    };
    let unknowable = report.unknowable();
    let layout = input.layout(width, ROWS);
    let (title, table) = if report.rows.len() <= ROWS {
        let table = vcpus::summary(report, &unknowable, false, layout);
        ("vcpus: per cent of each vCPU's time by state", table)
    } else {
        let by_vm = VcpusReport {
            rows: by_vm(&report.rows),
            seen: report.seen,
        };
        let table = vcpus::summary(&by_vm, &unknowable, false, layout);
        (
            "vcpus: per cent of the time of each VM's vCPUs, and how many it has",
            table,
        )
    };
    let mut out = vec![Line::new(Tone::Strong, title)];
    let rows = || table.lines().skip(1);
    // Times that are ticks can be wider than their column; the first one has room.
    let widest = rows().map(str::len).max().unwrap_or(0);
    let spare = rows().map(|row| row.len() - row.trim_start().len()).min();
    let off = widest.saturating_sub(width).min(spare.unwrap_or(0));
    out.extend(rows().map(|row| Line::new(Tone::Plain, &row[off..])));
    if !unknowable.is_empty() {
        let why = "-: not known; 'trapline vcpus' says which events are missing";
        out.push(Line::new(Tone::Warning, why));
    }
    out
}

/// Returns the sum of each VM's vCPUs, those with most exits first; beyond what has room they are one row.
fn by_vm(rows: &[VcpuRow]) -> Vec<VcpuRow> {
    let mut sums: Vec<(u32, VcpuRow)> = Vec::new();
    for row in rows {
        let of = |sum: &&mut (u32, VcpuRow)| {
            (sum.1.vm_pid, &sum.1.vm, sum.1.others > 0) == (row.vm_pid, &row.vm, row.others > 0)
        };
        match sums.iter_mut().find(of) {
            Some((count, sum)) => {
                *count += 1;
                add(sum, row);
            }
            None => sums.push((row.others.max(1), row.clone())),
        }
    }
    sums.sort_by_key(|(_, sum)| (sum.others > 0, std::cmp::Reverse(sum.exits)));
    if sums.len() > ROWS {
        let beyond = sums.split_off(ROWS - 1);
        let mut beyond = beyond.into_iter();
        if let Some((mut count, mut sum)) = beyond.next() {
            for (more, row) in beyond {
                count += more;
                add(&mut sum, &row);
            }
            sum.others = count;
            sums.push((count, sum));
        }
    }
    let one = |(count, mut sum): (u32, VcpuRow)| {
        sum.vcpu = count;
        sum
    };
    sums.into_iter().map(one).collect()
}

fn add(sum: &mut VcpuRow, row: &VcpuRow) {
    sum.times.merge(&row.times);
    sum.exits = sum.exits.saturating_add(row.exits);
}
