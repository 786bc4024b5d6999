//! What guests' own recordings say of a finding: which of their tasks, interrupts and softirqs made the exits that it
//! is about, had something to do while vCPUs waited, or could not go on.
//!
//! A finding says itself what it is about: its evidence names rows of the tables of exits, times and threads, and its
//! rule what it measures.

use std::collections::BTreeMap;

use analysis::{
    ExitRow, ExitTable, GuestContext, GuestTask, GuestTasksReport, NamedContext, VcpuRow,
};
use model::State;

use crate::evidence::{Evidence, Ns, Of, says};
use crate::{Case, Finding, TimeWindow};

/// Things that guests did which a sentence names at most, and the part of the whole that each but the first has at
/// least, in parts of a hundred.
const NAMED: usize = 3;
const LEAST_PER_CENT: u64 = 10;
/// Nothing is said of fewer exits: which task made them is chance.
const FEW: u64 = 10;
/// Rows that a sentence names.
const KEYS: usize = 2;
/// What rules measure that are about vCPUs that wait for a CPU.
const WAITING: &str = "vcpus runnable";

/// Adds to a finding what guests' own recordings say of it.
pub(crate) fn tell(case: &Case<'_>, finding: &mut Finding) {
    let mut more = exits(case, finding);
    if finding.rule.measures.contains(&WAITING) {
        more.extend(waits(case));
    }
    more.extend(held(case, finding));
    finding.evidence.extend(more);
}

/// What a guest did, and of which VM it is where there are several.
type GuestShare<'a> = (Option<&'a str>, &'a NamedContext);

/// Parts of a whole by what guests did.
#[derive(Default)]
struct GuestParts<'a> {
    known: BTreeMap<GuestShare<'a>, u64>,
}

impl<'a> GuestParts<'a> {
    fn add(&mut self, whose: GuestShare<'a>, amount: u64) {
        if whose.1.doing != GuestContext::Unknown && amount > 0 {
            let sum = self.known.entry(whose).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    /// Returns the largest of them, and how much is known of the whole; nothing where that is less than half of it.
    fn known_parts(&self, whole: u64) -> Option<(Vec<(String, u64)>, u64)> {
        let known: u64 = self
            .known
            .values()
            .fold(0, |sum, one| sum.saturating_add(*one));
        if known == 0 || known > whole || known < whole.div_ceil(2) {
            return None;
        }
        let mut parts: Vec<(GuestShare<'a>, u64)> = self
            .known
            .iter()
            .map(|(whose, one)| (*whose, *one))
            .collect();
        parts.sort_by_key(|(whose, one)| (std::cmp::Reverse(*one), *whose));
        let least = u128::from(whole) * u128::from(LEAST_PER_CENT);
        let known_parts = parts
            .iter()
            .zip(0..)
            .filter(|((_, one), at)| *at == 0 || *at < NAMED && u128::from(*one) * 100 >= least);
        let known_parts = known_parts.map(|((whose, one), _)| (called(*whose), *one));
        Some((known_parts.collect(), known))
    }
}

/// Returns what a guest did, as a sentence has it behind `in`.
fn called((vm, who): GuestShare<'_>) -> String {
    let name = who.name.as_deref();
    let what = match who.doing {
        GuestContext::Task(tid) => format!("task {}:{tid}", name.unwrap_or("")),
        GuestContext::Idle => "its idle task".to_owned(),
        GuestContext::Softirq(_) => format!("softirq {}", name.unwrap_or("?")),
        GuestContext::Interrupt(_) => format!("interrupt {}", name.unwrap_or("?")),
        GuestContext::Unknown => "what is not known".to_owned(),
    };
    match vm {
        Some(vm) => format!("{what} of {vm}"),
        None => what,
    }
}

/// Says how much of a whole is of what guests did, each by `part`, and of how much it is not known.
fn listed(
    begin: Evidence,
    (parts, known): &(Vec<(String, u64)>, u64),
    whole: u64,
    part: impl Fn(u64, &str) -> Evidence,
    unknown: impl Fn(u64) -> Evidence,
) -> Evidence {
    let mut out = begin;
    for ((name, amount), at) in parts.iter().zip(0..) {
        let between = match at {
            0 => says!(" "),
            _ if at + 1 == parts.len() => says!(" and "),
            _ => says!(", "),
        };
        out = out.then(between).then(part(*amount, name));
    }
    match whole.saturating_sub(*known) {
        0 => out.then(says!(".")),
        rest => out.then(unknown(rest)),
    }
}

/// Says which of guests' tasks made the exits that a finding is about.
fn exits(case: &Case<'_>, finding: &Finding) -> Vec<Evidence> {
    let rows = || finding.evidence.iter().flat_map(|one| &one.rows);
    let mut out = Vec::new();
    for table in ExitTable::ALL {
        // Accesses tell more than the reason that they share with others.
        let accesses = || rows().any(|row| row.table != ExitTable::Vmexit.name());
        if table == ExitTable::Vmexit && accesses() {
            continue;
        }
        let mut keys: Vec<&str> = Vec::new();
        for row in rows().filter(|row| row.table == table.name()) {
            if !keys.contains(&row.key.as_str()) {
                keys.push(&row.key);
            }
        }
        out.extend(of_keys(case, table, &keys));
    }
    out
}

fn of_keys(case: &Case<'_>, table: ExitTable, keys: &[&str]) -> Option<Evidence> {
    let of = |row: &&ExitRow| keys.contains(&row.key.as_str());
    let all = case.picture.rows(table).iter().filter(of);
    let whole = all.fold(0u64, |sum, row| sum.saturating_add(row.stats.count()));
    let mut parts = GuestParts::default();
    for row in case.picture.guest_rows(table).iter().filter(of) {
        if let Some(task) = &row.task {
            parts.add((row.vm.as_deref(), task), row.stats.count());
        }
    }
    let known_parts = parts.known_parts(whole).filter(|_| whole >= FEW)?;
    let what = match (table, keys.len()) {
        (ExitTable::Vmexit, 0..=KEYS) => format!("exits of {}", words::list(keys)),
        (ExitTable::Vmexit, _) => "these exits".to_owned(),
        (_, 0..=KEYS) => format!("accesses to {}", words::list(keys)),
        _ => format!("these accesses ({})", table.name()),
    };
    let begin = says!(
        "In the guest, of {whole} {what},",
        whole = whole,
        what = what
    );
    Some(listed(
        begin,
        &known_parts,
        whole,
        |count, name| {
            says!(
                "{count} ({share}) were made in {name}",
                count = count,
                share = Of(count, whole),
                name = name,
            )
        },
        |count| {
            says!(
                "; for {count} ({share}) the guest's recording does not say where.",
                count = count,
                share = Of(count, whole),
            )
        },
    ))
}

/// Returns vCPUs with what their guests did.
fn vcpus<'a>(case: &Case<'a>) -> Vec<(&'a VcpuRow, &'a GuestTasksReport)> {
    let rows = case.picture.vcpus.iter().flat_map(|report| &report.rows);
    rows.filter_map(|row| Some((row, row.guest.as_ref()?)))
        .collect()
}

/// Says which of guests' tasks had something to do while vCPUs waited for a CPU.
fn waits(case: &Case<'_>) -> Option<Evidence> {
    let rows = case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let whole = rows.fold(0u64, |sum, row| {
        sum.saturating_add(row.times.get(State::Runnable))
    });
    let vcpus = vcpus(case);
    let first = vcpus.first().map(|(row, _)| &row.vm);
    let several = vcpus.iter().any(|(row, _)| Some(&row.vm) != first);
    let mut parts = GuestParts::default();
    for (row, guest) in &vcpus {
        let vm = several.then_some(row.vm.as_str());
        for task in &guest.tasks {
            let GuestTask { who, times, .. } = task;
            parts.add((vm, who), times.get(State::Runnable));
        }
    }
    let known_parts = parts.known_parts(whole)?;
    let begin = says!(
        "In the guest, of {whole} in which vCPUs waited for a CPU (behind others, or for an idle CPU),",
        whole = Ns(whole)
    );
    Some(listed(
        begin,
        &known_parts,
        whole,
        |ns, name| {
            says!(
                "{time} ({share}) fell on {name}",
                time = Ns(ns),
                share = Of(ns, whole),
                name = name,
            )
        },
        |ns| {
            says!(
                "; for {time} ({share}) the guest's recording does not say on what.",
                time = Ns(ns),
                share = Of(ns, whole),
            )
        },
    ))
}

/// Says what a guest could not go on with while its vCPU stood still, in the longest of the times that a finding is
/// about.
fn held(case: &Case<'_>, finding: &Finding) -> Option<Evidence> {
    let vcpus = vcpus(case);
    let mut found: Option<(u64, i32, &NamedContext)> = None;
    for one in &finding.evidence {
        for window in &one.windows {
            let asked = vcpus
                .iter()
                .filter(|(row, _)| one.threads.contains(&row.tid));
            for (row, guest) in asked {
                let at_once = in_window(guest, *window);
                if let Some((ns, who)) = at_once
                    && found.is_none_or(|(longest, ..)| longest < ns)
                {
                    found = Some((ns, row.tid, who));
                }
            }
        }
    }
    let (ns, tid, who) = found?;
    Some(says!(
        "In the guest, {vcpu} was in {name} when it stalled for {time}.",
        vcpu = case.vcpu_called(tid),
        name = called((None, who)),
        time = Ns(ns),
    ))
}

/// Returns what a guest did for most of a time in which its vCPU was out of it for most of the time, and for how long
/// at once.
fn in_window(guest: &GuestTasksReport, window: TimeWindow) -> Option<(u64, &NamedContext)> {
    let length = window.end_ns.saturating_sub(window.start_ns);
    let parts = guest.held.iter().map(|one| {
        let from = one.from.max(window.start_ns);
        let to = one.to.min(window.end_ns);
        (to.saturating_sub(from), &one.who)
    });
    let (ns, who) = parts.max_by_key(|(ns, _)| *ns)?;
    let known = who.doing != GuestContext::Unknown;
    (known && ns > 0 && ns >= length / 2).then_some((ns, who))
}
