//! Printed tables as pictures.

use std::collections::{HashMap, HashSet};

use doubts::DoubtKind;
use event::{ExitReason, Isa};
use perftables::{
    CountPrinter, KvmRow, KvmStat, KvmStatEvent, PerfTable, SchedLatency, SchedPrinter, SchedRow,
    StatCount, SyscallRow,
};

use crate::map_keys::reasons_of_maps;
use crate::printed_shares::is_by_function;
use crate::{
    ExitRow, ExitSum, ExitTable, ExitsReport, Origin, Picture, PrintedInterrupts, SchedKinds,
    SchedReport, Stats, TaskRow,
};

/// Returns what tables tell, each with the name of its file. Tables of one kind are of different recordings, so each
/// begins another picture; tables of different kinds go together, as those that perf printed of one recording. Where a
/// table fits several pictures, one that has another table of its file gets it. In a file with several tables of one
/// kind a table goes with the one before it, and only if it has no heading of its own.
pub fn of_tables(tables: Vec<(String, PerfTable)>) -> Vec<Picture> {
    let mut out: Vec<Picture> = Vec::new();
    let several = files_with_several(&tables);
    for (name, table) in tables {
        let of_file = |one: &Picture| one.names.contains(&name);
        let fits = |one: &Picture| !has(one, &table);
        let at = match several.contains(&name) {
            true => {
                let last = out.iter().rposition(of_file);
                last.filter(|at| table.label().is_none() && fits(&out[*at]))
            }
            false => (out.iter().position(|one| of_file(one) && fits(one))).or_else(|| {
                out.iter()
                    .position(|one| fits(one) && !is_reading(one, &table))
            }),
        };
        let picture = match at {
            Some(at) => &mut out[at],
            None => {
                out.push(Picture {
                    origin: Origin::Printed,
                    ..Picture::default()
                });
                let last = out.len() - 1;
                &mut out[last]
            }
        };
        if !picture.names.contains(&name) {
            picture.names.push(name);
        }
        picture.places.push(place(&table));
        picture.first_line = picture.first_line.or(Some(table.line()));
        add(picture, table);
    }
    out
}

/// Returns the files that have several tables of one kind.
fn files_with_several(tables: &[(String, PerfTable)]) -> HashSet<String> {
    let mut seen: HashMap<(&str, Option<TableKind>), u64> = HashMap::new();
    // Two readings of interrupts are of one situation, whatever stands between them.
    let apart = |table: &PerfTable| kind_of(table) != Some(TableKind::Interrupts);
    // A file that is given twice has each of its tables twice.
    let again = tables
        .iter()
        .filter(|(_, table)| apart(table))
        .filter(|(name, table)| {
            let first = seen
                .entry((name.as_str(), kind_of(table)))
                .or_insert(table.line());
            *first != table.line()
        });
    again.map(|(name, _)| name.clone()).collect()
}

/// What a table is of: a picture has one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TableKind {
    /// Exits, as this table of them.
    Exits(ExitTable),
    /// Scheduling latencies.
    Latencies,
    /// Counts.
    Counts,
    /// Shares of samples, by function or by task alone.
    Shares { by_function: bool },
    /// Interrupts by CPU, once or twice.
    Interrupts,
    /// Queues of virtio devices.
    Virtio,
    /// What CPUs did.
    CpuUsage,
}

/// Returns what a table is of; none if no picture has it.
fn kind_of(table: &PerfTable) -> Option<TableKind> {
    match table {
        PerfTable::KvmStat(stat) => table_of(stat.event).map(TableKind::Exits),
        PerfTable::SchedLatency(_) => Some(TableKind::Latencies),
        PerfTable::PerfStat(_) | PerfTable::KvmTotals(_) | PerfTable::SyscallTotals(_) => {
            Some(TableKind::Counts)
        }
        PerfTable::SampledShares(table) => Some(TableKind::Shares {
            by_function: is_by_function(table),
        }),
        PerfTable::InterruptCounts(_) => Some(TableKind::Interrupts),
        PerfTable::VirtioTraffic(_) => Some(TableKind::Virtio),
        PerfTable::CpuUsage(_) => Some(TableKind::CpuUsage),
        _ => None,
    }
}

/// Returns the first of a text's tables and those behind it that go with it: of other kinds, and without headings of
/// their own.
pub fn first_group(tables: Vec<PerfTable>) -> Vec<PerfTable> {
    let mut group: Vec<PerfTable> = Vec::new();
    for table in tables {
        let has = |one: &PerfTable| kind_of(one) == kind_of(&table);
        if !group.is_empty() && (table.label().is_some() || group.iter().any(has)) {
            break;
        }
        group.push(table);
    }
    group
}

/// Returns the lines of a text's tables of the first kind of which it has several; none if it has one of each.
pub fn repeated(tables: &[PerfTable]) -> Vec<u64> {
    let several = tables.iter().find_map(|table| {
        let kind = kind_of(table)?;
        let same = || tables.iter().filter(move |one| kind_of(one) == Some(kind));
        (same().count() > 1).then(|| same().map(PerfTable::line).collect())
    });
    several.unwrap_or_default()
}

/// Returns what is wrong where a text has several tables of one kind, of which nobody can say which is meant: a full
/// sentence that names them. `tables` are all of one file.
pub fn ambiguous(tables: &[PerfTable]) -> Option<String> {
    let named = |table: &PerfTable| match kind_of(table) {
        Some(TableKind::Exits(exits)) => format!("perf kvm stat ({})", exits.name()),
        _ => table.printer().to_owned(),
    };
    tables.iter().find_map(|first| {
        let kind = kind_of(first)?;
        let same = tables.iter();
        let same: Vec<&PerfTable> = same.filter(|other| kind_of(other) == Some(kind)).collect();
        if let [
            PerfTable::InterruptCounts(first),
            PerfTable::InterruptCounts(later),
        ] = same[..]
            && PrintedInterrupts::new(first.clone()).goes_on_in(later)
        {
            // Two readings of one machine are one table: what came between.
            return None;
        }
        let same: Vec<String> = same.into_iter().map(place).collect();
        (same.len() > 1).then(|| {
            format!(
                "it holds {} tables of {}, in {}: name the one that is meant as FILE:LINE",
                same.len(),
                named(first),
                same.join(", ")
            )
        })
    })
}

/// Returns where a table stands: its line, and the heading above it.
fn place(table: &PerfTable) -> String {
    match table.label() {
        Some(label) => format!("line {} ({})", table.line(), label.trim_matches(['#', ' '])),
        None => format!("line {}", table.line()),
    }
}

fn table_of(event: KvmStatEvent) -> Option<ExitTable> {
    match event {
        KvmStatEvent::Vmexit => Some(ExitTable::Vmexit),
        KvmStatEvent::Ioport => Some(ExitTable::Ioport),
        KvmStatEvent::Mmio => Some(ExitTable::Mmio),
        KvmStatEvent::Msr => Some(ExitTable::Msr),
        _ => None,
    }
}

/// Whether a table would be a later reading of a picture's interrupts: of another file it may be another machine's.
fn is_reading(picture: &Picture, table: &PerfTable) -> bool {
    picture.interrupts.is_some() && kind_of(table) == Some(TableKind::Interrupts)
}

/// Returns whether a picture has a table of this kind, or one that does not go with it.
fn has(picture: &Picture, table: &PerfTable) -> bool {
    if let (PerfTable::SampledShares(table), Some(shares)) = (table, &picture.shares) {
        return !shares.fits(table);
    }
    if let (PerfTable::InterruptCounts(table), Some(first)) = (table, &picture.interrupts) {
        return !first.goes_on_in(table);
    }
    match kind_of(table) {
        Some(TableKind::Exits(table)) => picture.table(table).is_some(),
        Some(TableKind::Latencies) => picture.sched.is_some(),
        Some(TableKind::Counts) => !picture.counts.is_empty(),
        Some(TableKind::Virtio) => !picture.virtio.is_empty(),
        Some(TableKind::CpuUsage) => !picture.cpu_usage.is_empty(),
        Some(TableKind::Shares { .. } | TableKind::Interrupts) | None => false,
    }
}

fn add(picture: &mut Picture, table: PerfTable) {
    match table {
        PerfTable::KvmStat(stat) => {
            let Some(table) = table_of(stat.event) else {
                picture
                    .quality
                    .raise(DoubtKind::TableLeftOut { line: stat.line });
                return;
            };
            if let Some(lost) = stat.lost_events {
                picture.quality.lost_events = picture.quality.lost_events.max(lost);
            }
            picture.exits_by = stat.printer;
            if table == ExitTable::Vmexit && picture.isa.is_none() {
                picture.isa = isa(&stat);
            }
            if picture.isa == Some(Isa::Arm64) {
                picture.quality.raise(DoubtKind::ArmTimesAreGuests);
            }
            let report = exits(&stat, table, picture.isa);
            picture.exits.push(report);
        }
        PerfTable::SchedLatency(latency) => {
            let lost = latency.lost_events.unwrap_or(0);
            picture.quality.lost_events = picture.quality.lost_events.max(lost);
            picture.latencies_by = latency.printer;
            picture.sched = Some(sched(&latency));
        }
        PerfTable::PerfStat(stat) => {
            for count in &stat.counts {
                if let StatCount::Count(value) = count.value {
                    picture.counts.push((count.event.clone(), value));
                }
            }
            // With -I the time of the last interval's end is how long it counted.
            let last = stat.counts.iter().filter_map(|count| count.at_ns).max();
            picture.counted_ns = stat.elapsed_ns.or(last);
            // A block without a number that could be taken still is one.
            if picture.counts.is_empty() {
                picture
                    .quality
                    .raise(DoubtKind::NoCounts { line: stat.line });
            }
        }
        PerfTable::SampledShares(table) => {
            let lost = table.lost_samples.unwrap_or(0);
            picture.quality.lost_events = picture.quality.lost_events.max(lost);
            picture.shares.get_or_insert_default().add(table);
        }
        PerfTable::InterruptCounts(table) => match &mut picture.interrupts {
            Some(first) => first.add(table),
            None => picture.interrupts = Some(PrintedInterrupts::new(table)),
        },
        PerfTable::VirtioTraffic(traffic) => picture.virtio = traffic.rows,
        PerfTable::CpuUsage(usage) => picture.cpu_usage = usage.rows,
        PerfTable::KvmTotals(mut totals) => {
            picture.counted_by = totals.printer;
            if totals.printer == CountPrinter::Bpftrace {
                totals.rows = reasons_of_maps(totals.rows, picture.isa);
            }
            if picture.isa.is_none() {
                let keys = totals.rows.iter();
                picture.isa = isa_of_names(keys.filter_map(|row| counted_reason(&row.event)));
            }
            for row in totals.rows {
                // Its tracepoints are KVM's; files of debugfs have other names, and what has a reason behind it is no
                // event of perf's.
                let tracepoint = row.event.starts_with("kvm_") && !row.event.contains('(');
                let event = match tracepoint {
                    true => format!("kvm:{}", row.event),
                    false => row.event,
                };
                let rate = row.per_second.map(|rate| (event.clone(), rate));
                picture.rates.extend(rate);
                picture.counts.push((event, row.total));
            }
        }
        PerfTable::SyscallTotals(totals) => {
            picture.counted_by = totals.printer;
            picture.counted_ns = totals.span_ns;
            let counts = totals.rows.iter();
            picture
                .counts
                .extend(counts.map(|row| (called(row), row.count)));
            picture.writes = totals.writes;
        }
        PerfTable::Distribution(distribution) => picture.distributions.push(distribution),
        _ => {}
    }
}

/// Returns the reason whose exits a count is of: of `kvm_exit(HLT)` that is `HLT`.
pub fn counted_reason(event: &str) -> Option<&str> {
    event.strip_prefix("kvm_exit(")?.strip_suffix(')')
}

/// Returns a system call with its thread as `perf trace` has both: `CPU 0/KVM/6912 ioctl(KVM_RUN)`.
fn called(row: &SyscallRow) -> String {
    match (&row.thread.comm, row.thread.tid) {
        (Some(comm), Some(tid)) => format!("{comm}/{tid} {}", row.call),
        (None, Some(tid)) => format!("{tid} {}", row.call),
        _ => row.call.clone(),
    }
}

/// What perf prints on every machine for an exit that it has no name of (`get_exit_reason`): it says nothing of which
/// machine it is.
const NO_NAME: &str = "UNKNOWN";

/// Returns the instruction set that perf names, else the one whose table knows most of the reasons.
fn isa(stat: &KvmStat) -> Option<Isa> {
    match stat.machine.as_deref() {
        Some("VMX") => return Some(Isa::Vmx),
        Some("SVM") => return Some(Isa::Svm),
        Some("arm64") => return Some(Isa::Arm64),
        _ => {}
    }
    let keys = stat.rows.iter().map(|row| row.key.as_str());
    isa_of_names(keys.filter(|key| *key != NO_NAME))
}

/// Returns the instruction set whose table knows most of the reasons.
fn isa_of_names<'k>(keys: impl Iterator<Item = &'k str> + Clone) -> Option<Isa> {
    let sets = [Isa::Vmx, Isa::Svm, Isa::Arm64, Isa::S390, Isa::Powerpc];
    let known = |isa: Isa| {
        let keys = keys.clone();
        keys.filter(|key| ExitReason::from_name(Some(isa), key).is_some())
            .count()
    };
    let best = sets.into_iter().rev().max_by_key(|isa| known(*isa))?;
    (known(best) > 0).then_some(best)
}

fn exits(stat: &KvmStat, table: ExitTable, isa: Option<Isa>) -> ExitsReport {
    let rows: Vec<ExitRow> = stat.rows.iter().map(|row| exit(row, table, isa)).collect();
    let sum = |of: &dyn Fn(&ExitRow) -> u64| rows.iter().map(of).fold(0u64, u64::saturating_add);
    let total_count = stat
        .total_count
        .unwrap_or_else(|| sum(&|row| row.stats.count()));
    let total_ns = stat
        .total_ns
        .unwrap_or_else(|| sum(&|row| row.stats.total()));
    let waiting = sum(&|row| if row.waiting { row.stats.total() } else { 0 });
    ExitsReport {
        table,
        total_count,
        total_ns,
        // What is rounded in print may make waiting more than all there is.
        handling_ns: total_ns.saturating_sub(waiting),
        seen: None,
        from_exits: false,
        sums_of_rows: stat.total_count.is_none() || stat.total_ns.is_none(),
        rows,
    }
}

fn exit(row: &KvmRow, table: ExitTable, isa: Option<Isa>) -> ExitRow {
    let reason = match table {
        ExitTable::Vmexit => match (row.unknown_code, isa) {
            // Numbers beyond the processor's own are no exits of it with flags beside: PVM has some from 0x10000 on.
            (Some(code), Some(isa)) if code <= 0xffff => Some(ExitReason::of_number(isa, code)),
            (Some(_), _) => None,
            _ => ExitReason::from_name(isa, &row.key),
        },
        _ => None,
    };
    // A code that this table has a name of, and perf's had not, is printed by it.
    let key = match (row.unknown_code, reason) {
        (Some(code), Some(reason)) => match reason.name() {
            Some(name) => name.to_owned(),
            None => format!("{NO_NAME}({code:#x})"),
        },
        (Some(code), None) => format!("{NO_NAME}({code:#x})"),
        _ => row.key.clone(),
    };
    let access = (table != ExitTable::Vmexit)
        .then(|| access(&row.key))
        .flatten();
    ExitRow {
        key,
        name: None,
        reason,
        address: access.map(|(address, _)| address),
        write: access.is_some_and(|(_, write)| write),
        waiting: reason.is_some_and(ExitReason::is_waiting),
        vm_pid: None,
        vm: None,
        vm_name: None,
        vcpu: None,
        tids: Vec::new(),
        task: None,
        function: None,
        stats: Stats::of_sums(
            row.count,
            row.total_ns,
            row.min_ns.unwrap_or(row.mean_ns),
            row.max_ns.unwrap_or(row.mean_ns),
            row.error.unwrap_or(0.0),
        ),
        times: None,
        untimed: 0,
        contradicts: row.contradicts,
        user_count: 0,
        whole: ExitSum::default(),
    }
}

/// Returns address and direction of a key as `0x608:PIN`, `0xfed000f0:R`, `0x6e0:W`.
fn access(key: &str) -> Option<(u64, bool)> {
    let (address, direction) = key.split_once(':')?;
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    Some((address, matches!(direction, "POUT" | "W")))
}

/// Tasks that hardly wait are on every host: a table in which all wait for longer is what is above a cut.
const HARDLY_NS: u64 = 1_000_000;

/// Whether a table has all tasks: with its row of totals, or with tasks that no cut would have left.
fn is_whole(latency: &SchedLatency) -> bool {
    // Of rows of single runs, people paste a part.
    if latency.printer != SchedPrinter::Latency {
        return false;
    }
    let totals = latency.total_switches.is_some() || latency.total_runtime_ns.is_some();
    totals || latency.rows.iter().any(|row| row.delay_max_ns < HARDLY_NS)
}

fn sched(latency: &SchedLatency) -> SchedReport {
    let mut delays = Stats::default();
    let rows: Vec<TaskRow> = latency.rows.iter().map(task).collect();
    for row in &rows {
        delays.merge(&row.delays);
    }
    SchedReport {
        delays_as: None,
        kinds: SchedKinds {
            runtimes: true,
            wakeups: latency.printer.has_delays(),
            work: false,
        },
        is_whole: is_whole(latency),
        rows,
        cpus: Vec::new(),
        work: Vec::new(),
        delays,
    }
}

fn task(row: &SchedRow) -> TaskRow {
    let total = row.delay_mean_ns.saturating_mul(row.switches);
    TaskRow {
        comm: row.comm.clone(),
        tid: row.tid.unwrap_or(0),
        pid: None,
        threads: row.threads.unwrap_or(1),
        runtime_ns: row.runtime_ns,
        on_cpu_ns: 0,
        off_cpu_ns: 0,
        delays: Stats::of_sums(row.switches, total, 0, row.delay_max_ns, 0.0),
        delay_max_at: (row.delay_max_start_ns)
            .or_else(|| row.delay_max_at_ns?.checked_sub(row.delay_max_ns))
            .unwrap_or(0),
        woken_waits: Stats::default(),
        preempted: Stats::default(),
        preempted_by: Vec::new(),
        longest_wait: None,
        woken_by: Vec::new(),
        migrations: 0,
    }
}
