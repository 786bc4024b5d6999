//! What was counted, with the names that people have for it: VMs, vCPUs, devices.

use std::collections::{BTreeMap, HashMap};

use analysis::{
    ExitTable, LISTED, ThreadCounts, access_key, builtin_names, is_notification_register,
    name_access,
};
use event::{ExitReason, Isa};
use facts::Facts;
use model::{GuestAccess, Times};

use crate::roles::{ThreadRole, threads_of_vms};
use crate::snapshot::{
    DroppedCounts, DurationBuckets, LiveRow, LiveThread, LiveVcpu, RowSubject, SEVERAL, Snapshot,
};

/// Which vCPU, or which VM where vCPUs are added up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RowOwner {
    /// What the VM is called: its name, or its process.
    pub vm: String,
    /// Its VMM's process.
    pub vm_pid: i32,
    /// Its name, if known.
    pub vm_name: Option<String>,
    /// The vCPU's number, if known.
    pub vcpu: Option<u32>,
    /// The vCPU's thread; `None` where vCPUs are added up.
    pub tid: Option<i32>,
}

/// The kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowTable {
    /// Exits, or accesses timed as the table of this name of `trapline exits`.
    Of(ExitTable),
    /// Notifications of virtio that KVM takes itself (`kvm_fast_mmio`).
    FastMmio,
}

impl RowTable {
    /// Returns the name that documents have.
    pub fn name(self) -> &'static str {
        match self {
            RowTable::Of(table) => table.name(),
            RowTable::FastMmio => "fast_mmio",
        }
    }
}

/// Exits or accesses of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRow {
    /// Of which table.
    pub table: RowTable,
    /// Whose.
    pub whose: RowOwner,
    /// As `trapline exits` has it: `IO_INSTRUCTION`, `0x608:PIN`.
    pub key: String,
    /// Device and register, if known.
    pub name: Option<String>,
    /// Whether the guest asked to wait, so that the time is nobody's work.
    pub waiting: bool,
    /// How many and how long.
    pub durations: DurationBuckets,
    /// The shortest in nanoseconds, where it is known.
    pub min_ns: Option<u64>,
    /// How many of them the VMM handled.
    pub user_count: u64,
    /// Of ports: the time in nanoseconds of the exits that were made for it.
    pub whole_ns: u64,
    /// Of exits: what vCPUs did in them.
    pub times: Times,
}

impl NamedRow {
    /// Returns whether these are notifications of a virtio device: writes to an address that means nothing else, or to
    /// a register of that name.
    pub fn is_notification(&self) -> bool {
        let register = self.name.as_deref().unwrap_or_default();
        let written = self.table == RowTable::FastMmio
            || self.key.ends_with(":W")
            || self.key.ends_with(":POUT");
        self.table == RowTable::FastMmio || (written && is_notification_register(register))
    }
}

/// Behind whom vCPUs and other threads waited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedBehind {
    /// Whose vCPU; or of which VM the thread is that waited.
    pub whose: RowOwner,
    /// The name of the thread that waited, where it is no vCPU.
    pub thread: Option<String>,
    /// The other task's name, if known; `None` with no thread: the sum of what is not listed.
    pub comm: Option<String>,
    /// Its thread; `None` where several of this name are added up. 0 is the idle task.
    pub by_tid: Option<i32>,
    /// If it is a vCPU of a VM that is watched, which VM's.
    pub vm: Option<String>,
    /// How often.
    pub count: u64,
    /// For how long, in nanoseconds.
    pub ns: u64,
}

/// A thread that works for a VM, with its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedThread {
    /// Of which VM.
    pub whose: RowOwner,
    /// Its name, if known.
    pub comm: Option<String>,
    /// As what it works.
    pub role: ThreadRole,
    /// What it did.
    pub thread: LiveThread,
}

/// A vCPU with its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedVcpu {
    /// Which.
    pub whose: RowOwner,
    /// What it did.
    pub vcpu: LiveVcpu,
}

/// What counters counted of a vCPU, with its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCounters {
    /// Which.
    pub whose: RowOwner,
    /// What was counted.
    pub counts: ThreadCounts,
}

/// How it was counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CountingWay {
    /// By BPF programs in the kernel.
    #[default]
    Bpf,
    /// Out of events that the kernel wrote to rings.
    Events {
        /// Why not in the kernel; `None` where the user wanted it so.
        why: Option<String>,
    },
}

impl CountingWay {
    /// Returns what it is called in documents and metrics: `bpf` or `events`.
    pub fn name(&self) -> &'static str {
        match self {
            CountingWay::Bpf => "bpf",
            CountingWay::Events { .. } => "events",
        }
    }
}

/// What was counted in an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamedCounts {
    /// How long it was, in nanoseconds.
    pub interval_ns: u64,
    /// How it was counted.
    pub way: CountingWay,
    /// Whose table of reasons exits are of.
    pub isa: Option<Isa>,
    /// vCPUs, by VM and number.
    pub vcpus: Vec<NamedVcpu>,
    /// Other threads that work for VMs, those first that ran or waited longest.
    pub threads: Vec<NamedThread>,
    /// Exits and accesses, most time first.
    pub rows: Vec<NamedRow>,
    /// Behind whom vCPUs and threads waited, most time first: of each at most [`LISTED`] rows, the last of which is the
    /// sum of the others.
    pub behind: Vec<NamedBehind>,
    /// What counters counted of vCPUs, by VM and number, where that is asked for.
    pub counters: Vec<NamedCounters>,
    /// What found no room.
    pub dropped: DroppedCounts,
}

/// Which rows are wanted, and how far they are added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The VM of this name alone.
    pub vm: Option<String>,
    /// The VM of this process alone.
    pub pid: Option<i32>,
    /// Rows of a VM's vCPUs are added up.
    pub by_vm: bool,
    /// All tasks that had a CPU meanwhile have a row, so that no sum ever falls.
    pub all_behind: bool,
}

impl Choice {
    fn takes(&self, whose: &RowOwner) -> bool {
        let named = |name: &String| whose.vm_name.as_ref() == Some(name) || *name == whose.vm;
        self.vm.as_ref().is_none_or(named) && self.pid.is_none_or(|pid| pid == whose.vm_pid)
    }
}

fn row_key(what: RowSubject) -> (RowTable, String, Option<ExitReason>, Option<GuestAccess>) {
    match what {
        RowSubject::Exit(reason) => (
            RowTable::Of(ExitTable::Vmexit),
            reason.key().into_owned(),
            Some(reason),
            None,
        ),
        RowSubject::Access(access) => {
            let table = match access {
                GuestAccess::Port { .. } => ExitTable::Ioport,
                GuestAccess::Mmio { .. } => ExitTable::Mmio,
                GuestAccess::Msr { .. } => ExitTable::Msr,
            };
            (RowTable::Of(table), access_key(&access), None, Some(access))
        }
        RowSubject::FastMmio { gpa } => {
            let access = GuestAccess::Mmio { gpa, write: true };
            (RowTable::FastMmio, access_key(&access), None, Some(access))
        }
    }
}

/// What the VMs of a host are called.
struct Vms<'f> {
    names: HashMap<i32, &'f str>,
}

impl<'f> Vms<'f> {
    fn of(facts: &'f Facts) -> Vms<'f> {
        let names = facts
            .vms
            .iter()
            .filter_map(|vm| Some((vm.pid?, vm.name.as_deref()?)));
        Vms {
            names: names.collect(),
        }
    }

    fn whose(&self, vm_pid: i32, vcpu: Option<u32>, tid: i32) -> RowOwner {
        let name = self.names.get(&vm_pid).copied();
        let shared = |name: &str| self.names.values().filter(|other| **other == name).count() > 1;
        let vm = match name {
            Some(name) if shared(name) => format!("{name} ({vm_pid})"),
            Some(name) => name.to_owned(),
            None => vm_pid.to_string(),
        };
        RowOwner {
            vm,
            vm_pid,
            vm_name: name.map(str::to_owned),
            vcpu,
            tid: Some(tid),
        }
    }
}

/// The vCPUs of a snapshot by their thread, with what they are called.
fn whose(snapshot: &Snapshot, facts: &Facts, vms: &Vms<'_>) -> HashMap<i32, RowOwner> {
    let numbers = facts.vms.iter().flat_map(|vm| &vm.vcpus);
    let numbers: HashMap<i32, u32> = numbers.map(|vcpu| (vcpu.tid, vcpu.id)).collect();
    let whose = snapshot.vcpus.iter().map(|vcpu| {
        let number = numbers.get(&vcpu.tid).copied().or(vcpu.number);
        (vcpu.tid, vms.whose(vcpu.pid, number, vcpu.tid))
    });
    whose.collect()
}

/// The other threads of a snapshot.
fn threads(snapshot: &Snapshot, facts: &Facts, vms: &Vms<'_>) -> Vec<NamedThread> {
    let roles = threads_of_vms(facts).into_iter();
    let roles: HashMap<i32, ThreadRole> = roles.map(|(tid, _, role)| (tid, role)).collect();
    let threads = snapshot.threads.iter().map(|thread| {
        let fact = facts.threads.get(&thread.tid);
        NamedThread {
            whose: vms.whose(thread.vm_pid, None, thread.tid),
            comm: fact.and_then(|fact| fact.comm.clone()),
            role: roles.get(&thread.tid).copied().unwrap_or(ThreadRole::Vmm),
            thread: thread.clone(),
        }
    });
    threads.collect()
}

/// Who waited, the name of the task that ran meanwhile, and its thread where that is distinguished.
type WaitKey = (Waiter, Option<String>, Option<i32>);
/// Whose vCPU, or whose thread of a name.
type Waiter = (RowOwner, Option<String>);

/// Names what was counted in an interval. `mtree` is the text of `info mtree` of QEMU's monitor, which names devices
/// beside those that are known.
pub fn named(
    interval: &Snapshot,
    facts: &Facts,
    mtree: Option<&str>,
    choice: &Choice,
) -> NamedCounts {
    let vms = Vms::of(facts);
    let everyone = whose(interval, facts, &vms);
    let of = |tid: i32| everyone.get(&tid).filter(|whose| choice.takes(whose));
    let group = |whose: &RowOwner| match choice.by_vm {
        true => RowOwner {
            vcpu: None,
            tid: None,
            ..whose.clone()
        },
        false => whose.clone(),
    };
    let isa = interval.rows.iter().find_map(|row| match row.what {
        RowSubject::Exit(reason) => Some(reason.isa),
        _ => None,
    });
    let mut named = NamedCounts {
        interval_ns: interval.to_ns.saturating_sub(interval.from_ns),
        isa,
        dropped: interval.dropped,
        ..NamedCounts::default()
    };
    let vcpus = interval.vcpus.iter().filter_map(|vcpu| {
        let (whose, vcpu) = (of(vcpu.tid)?.clone(), vcpu.clone());
        Some(NamedVcpu { whose, vcpu })
    });
    named.vcpus = vcpus.collect();
    named.vcpus.sort_by(|a, b| a.whose.cmp(&b.whose));
    named.counters = counters(interval, of);
    let mut rows: BTreeMap<(RowOwner, RowSubject), LiveRow> = BTreeMap::new();
    for row in &interval.rows {
        let Some(whose) = of(row.tid) else { continue };
        match rows.entry((group(whose), row.what)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(row.clone());
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => entry.get_mut().add(row),
        }
    }
    let mut devices = builtin_names(isa);
    if let Some(mtree) = mtree {
        devices = devices.with_mtree(mtree).0;
    }
    named.rows = rows
        .into_iter()
        .map(|((whose, what), row)| {
            let (table, key, reason, access) = row_key(what);
            NamedRow {
                table,
                whose,
                key,
                name: access.and_then(|access| name_access(&access, &devices)),
                waiting: reason.is_some_and(ExitReason::is_waiting),
                durations: row.durations,
                min_ns: row.min_ns,
                user_count: row.user_count,
                whole_ns: row.whole_ns,
                times: row.times,
            }
        })
        .collect();
    named.rows.sort_by(|a, b| {
        let order = b.durations.total_ns.cmp(&a.durations.total_ns);
        order.then_with(|| (a.table, &a.whose, &a.key).cmp(&(b.table, &b.whose, &b.key)))
    });
    named.threads = threads(interval, facts, &vms);
    named.threads.retain(|one| choice.takes(&one.whose));
    named.threads.sort_by_key(|one| {
        let busy = one.thread.ran_ns + one.thread.runnable_ns;
        (std::cmp::Reverse(busy), one.thread.tid)
    });
    let waiters = named.threads.iter().map(|one| {
        let name = one.comm.clone();
        let name = name.unwrap_or_else(|| format!(":{}", one.thread.tid));
        (one.thread.tid, (group(&one.whose), Some(name)))
    });
    let waiters: HashMap<i32, Waiter> = waiters.collect();
    let waiter = |tid: i32| {
        let vcpu = of(tid).map(|whose| (group(whose), None));
        vcpu.or_else(|| waiters.get(&tid).cloned())
    };
    named.behind = behind(interval, &everyone, waiter);
    if !choice.all_behind {
        named.behind = listed(named.behind);
    }
    named.behind.sort_by_key(|one| std::cmp::Reverse(one.ns));
    named
}

/// Returns what counters counted of the vCPUs that have an owner.
fn counters<'w>(
    interval: &Snapshot,
    of: impl Fn(i32) -> Option<&'w RowOwner>,
) -> Vec<NamedCounters> {
    let counters = interval.counters.iter().filter_map(|(tid, counts)| {
        let (whose, counts) = (of(*tid)?.clone(), *counts);
        Some(NamedCounters { whose, counts })
    });
    let mut counters: Vec<NamedCounters> = counters.collect();
    counters.sort_by(|a, b| a.whose.cmp(&b.whose));
    counters
}

/// Returns behind whom vCPUs and threads waited, by who waited.
fn behind(
    interval: &Snapshot,
    everyone: &HashMap<i32, RowOwner>,
    waiter: impl Fn(i32) -> Option<Waiter>,
) -> Vec<NamedBehind> {
    let mut behind: BTreeMap<WaitKey, (u64, u64)> = BTreeMap::new();
    for one in &interval.behind {
        let Some(waiter) = waiter(one.tid) else {
            continue;
        };
        // Threads of one name are one row, but for vCPUs, which are called alike in all VMs.
        let apart = one.by_tid == 0 || everyone.contains_key(&one.by_tid) || one.comm.is_none();
        let by = (apart && one.by_tid != SEVERAL).then_some(one.by_tid);
        let sum = behind.entry((waiter, one.comm.clone(), by)).or_default();
        sum.0 += one.count;
        sum.1 += one.ns;
    }
    let behind = behind.into_iter();
    let behind = behind.map(
        |(((whose, thread), comm, by_tid), (count, ns))| NamedBehind {
            vm: by_tid.and_then(|tid| Some(everyone.get(&tid)?.vm.clone())),
            whose,
            thread,
            comm,
            by_tid,
            count,
            ns,
        },
    );
    behind.collect()
}

/// Leaves of each that waited the tasks that ran longest, and sums up the rest in one row. Rows come by who waited.
fn listed(rows: Vec<NamedBehind>) -> Vec<NamedBehind> {
    let mut out: Vec<NamedBehind> = Vec::new();
    for of_one in rows.chunk_by(|a, b| a.whose == b.whose && a.thread == b.thread) {
        let is_rest = |one: &NamedBehind| one.comm.is_none() && one.by_tid.is_none();
        let mut reported: Vec<NamedBehind> = of_one.to_vec();
        reported.sort_by_key(|one| (is_rest(one), std::cmp::Reverse(one.ns)));
        if reported.len() > LISTED {
            let rest = reported.split_off(LISTED - 1);
            let mut sum = NamedBehind {
                whose: rest[0].whose.clone(),
                thread: rest[0].thread.clone(),
                ..NamedBehind::default()
            };
            for one in &rest {
                sum.count += one.count;
                sum.ns += one.ns;
            }
            reported.push(sum);
        }
        out.extend(reported);
    }
    out
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
