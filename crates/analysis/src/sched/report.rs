//! What was found of the tasks, made ready to print.

use std::collections::BTreeMap;
use std::sync::Arc;

use doubts::{DoubtKind, Doubts};
use event::{Kind, index_of};
use model::Threads;
use symbols::KernelFunctions;

use super::task::{OtherTasks, SchedSums};
use super::{DelayConvention, Function, SchedLatencies, WorkSums};
use crate::analysis::{AccountScope, AccountedEvents, EventAccount};
use crate::continuity::Turns;
use crate::{OTHERS, Stats};

/// Wakers and preempting tasks that a row lists; what is beyond is summed up in the last one.
const LISTED: usize = 8;

/// Whether threads of one name are one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    /// A row for each thread, as `perf sched latency -p`.
    #[default]
    No,
    /// A row for each name, as `perf sched latency`.
    ByComm,
}

/// Another task, and what it did to this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherTask {
    /// Its thread id; 0 is the idle task, on behalf of which interrupts of an idle CPU are taken. `None` for the
    /// sum of what is not listed.
    pub tid: Option<i32>,
    /// Its name, if known.
    pub comm: Option<Arc<str>>,
    /// How often.
    pub count: u64,
    /// How long this task then waited.
    pub ns: u64,
}

/// A task's longest wait for a CPU, after a wake-up or a preemption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongestWait {
    /// How long.
    pub ns: u64,
    /// Since when.
    pub since: u64,
    /// The task that had the CPU when the wait ended: its thread id (0 is the idle task), and its name, if known.
    pub behind: Option<(i32, Option<Arc<str>>)>,
}

/// One task, or all of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// Its name; `:TID` where it is not known, as perf prints.
    pub comm: String,
    /// Its thread id.
    pub tid: i32,
    /// Its process, if known.
    pub pid: Option<i32>,
    /// How many threads the row is of.
    pub threads: u64,
    /// Time that it ran, by `sched_stat_runtime`.
    pub runtime_ns: u64,
    /// Time it had a CPU, from `sched_switch`.
    pub on_cpu_ns: u64,
    /// Time it had none, from `sched_switch`: asleep, or waiting for one; up to the end of the recording.
    pub off_cpu_ns: u64,
    /// Delays as perf counts them.
    pub delays: Stats,
    /// When the longest began.
    pub delay_max_at: u64,
    /// Waits after it was woken: from `sched_wakeup`, and where that is not recorded from `sched_waking`, which
    /// perf does not count.
    pub woken_waits: Stats,
    /// Waits after it was preempted, or yielded.
    pub preempted: Stats,
    /// By whom.
    pub preempted_by: Vec<OtherTask>,
    /// The longest wait for a CPU; `None` where there was none, and of printed tables.
    pub longest_wait: Option<LongestWait>,
    /// Who woke it.
    pub woken_by: Vec<OtherTask>,
    /// Times it was moved to another CPU.
    pub migrations: u64,
}

impl TaskRow {
    /// Returns whether this is the row of all that have none: its name is "others", its thread id -1.
    pub fn is_others(&self) -> bool {
        self.tid == -1 && self.comm == OTHERS
    }
}

/// One CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuRow {
    /// Its number.
    pub cpu: u32,
    /// Switches from one task to another.
    pub switches: u64,
    /// Time it ran tasks, between its first switch and the last event.
    pub busy_ns: u64,
    /// Time it was idle.
    pub idle_ns: u64,
    /// Time that is neither, because a switch was missed in it.
    pub unknown_ns: u64,
    /// Switches away from another task than the one before had switched to.
    pub unseen: u64,
    /// Tasks that were woken for it; `None` where no wake-ups are recorded.
    pub wakeups: Option<u64>,
    /// Delays of the tasks that got it.
    pub delays: Stats,
    /// When the longest began.
    pub delay_max_at: u64,
    /// Whose that was.
    pub worst: Option<OtherTask>,
}

/// A function that kworkers ran.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkRow {
    /// Its name, or its address where the recording has no symbols.
    pub function: String,
    /// How long it took, each time.
    pub stats: Stats,
    /// Stacks that show it, where the recording has stacks.
    pub stacks: u64,
}

/// Which kinds of events scheduling was found from: of what the others would show, nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedKinds {
    /// `sched_stat_runtime`.
    pub runtimes: bool,
    /// `sched_wakeup`, or `sched_waking` in its place.
    pub wakeups: bool,
    /// `workqueue_execute_start`.
    pub work: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedReport {
    /// Whose delays are counted; `None` of a printed table, which does not say which perf printed it.
    pub delays_as: Option<DelayConvention>,
    /// From which kinds of events.
    pub kinds: SchedKinds,
    /// Whether all tasks have rows. A printed table may be the first rows of one: a task that is not in it may have
    /// been below the cut.
    pub is_whole: bool,
    /// Tasks, longest mean delay first, as perf sorts them.
    pub rows: Vec<TaskRow>,
    /// CPUs by number.
    pub cpus: Vec<CpuRow>,
    /// Functions of kworkers, most time first.
    pub work: Vec<WorkRow>,
    /// Delays of all tasks.
    pub delays: Stats,
}

/// Whether a function that stacks show where those of work items are is one: between two items a kworker may lose
/// its CPU, or take an interrupt.
fn is_work(function: &str) -> bool {
    const BETWEEN: [&str; 6] = [
        "__cond_resched",
        "_cond_resched",
        "preempt_schedule",
        "schedule",
        "asm_",
        "el1",
    ];
    !BETWEEN.iter().any(|begin| function.starts_with(begin))
}

/// Tasks that are one row.
struct RowTasks {
    tid: i32,
    pid: Option<i32>,
    /// How many.
    threads: u64,
    sums: SchedSums,
}

/// Another task before it has a name, since most of them get none.
struct UnnamedTask {
    slot: Option<u32>,
    tid: Option<i32>,
    count: u64,
    ns: u64,
}

/// Returns the most of a list, by name.
fn others_of(
    others: &OtherTasks,
    threads: &Threads,
    by: fn(&UnnamedTask) -> u64,
) -> Vec<OtherTask> {
    let mut list: Vec<UnnamedTask> = others
        .all()
        .map(|(slot, count, ns)| UnnamedTask {
            slot,
            tid: slot.and_then(|slot| Some(threads.at(slot)?.0)),
            count,
            ns,
        })
        .collect();
    list.sort_by(|a, b| {
        (a.tid.is_none().cmp(&b.tid.is_none()))
            .then(by(b).cmp(&by(a)))
            .then(a.tid.cmp(&b.tid))
    });
    if list.len() > LISTED {
        let rest = list.drain(LISTED - 1..);
        let sum = rest.fold((0u64, 0u64), |(count, ns), other| {
            (
                count.saturating_add(other.count),
                ns.saturating_add(other.ns),
            )
        });
        list.push(UnnamedTask {
            slot: None,
            tid: None,
            count: sum.0,
            ns: sum.1,
        });
    }
    // Of each of many tasks: only what is listed takes memory.
    let mut out = Vec::with_capacity(list.len());
    out.extend(list.into_iter().map(|other| {
        let thread = other.slot.and_then(|slot| threads.at(slot));
        OtherTask {
            tid: other.tid,
            comm: thread.and_then(|(_, thread)| thread.comm.clone()),
            count: other.count,
            ns: other.ns,
        }
    }));
    out
}

impl SchedLatencies {
    /// Returns what was found. `keep` says which threads are wanted, by thread id and process; `functions`
    /// names the kernel's.
    ///
    /// What was kept of a task becomes its row, so that a hundred thousand tasks are there once.
    pub fn report(
        mut self,
        threads: &Threads,
        merge: Merge,
        keep: &dyn Fn(i32, Option<i32>) -> bool,
        functions: KernelFunctions<'_>,
    ) -> SchedReport {
        let tasks = std::mem::take(&mut self.tasks);
        let mut rows = Vec::with_capacity(match merge {
            Merge::No => tasks.len() + 1,
            Merge::ByComm => 0,
        });
        let mut by_comm: BTreeMap<String, RowTasks> = BTreeMap::new();
        for (slot, task) in tasks.into_all() {
            let Some((tid, thread)) = threads.at(slot) else {
                continue;
            };
            // The idle task waits for nothing.
            if tid == 0 || !task.has_atoms() || !keep(tid, thread.pid) {
                continue;
            }
            let comm = thread
                .comm
                .as_deref()
                .map_or_else(|| format!(":{tid}"), str::to_owned);
            let of = RowTasks {
                tid,
                pid: thread.pid,
                threads: 1,
                sums: *task.own,
            };
            match (merge, by_comm.get_mut(&comm)) {
                (Merge::No, _) => rows.push(self.row(comm, of, threads)),
                (Merge::ByComm, None) => {
                    by_comm.insert(comm, of);
                }
                (Merge::ByComm, Some(row)) => {
                    row.threads += 1;
                    row.sums.merge(&of.sums);
                }
            }
        }
        let by_comm = by_comm.into_iter();
        rows.extend(by_comm.map(|(comm, of)| self.row(comm, of, threads)));
        // Whose they are is not known any more.
        let beyond = self.other_tasks;
        if beyond > 0 && keep(-1, None) {
            let of = RowTasks {
                tid: -1,
                pid: None,
                threads: beyond,
                sums: std::mem::take(&mut self.others),
            };
            rows.push(TaskRow {
                longest_wait: None,
                ..self.row(OTHERS.to_owned(), of, threads)
            });
        }
        rows.sort_by(|a, b| {
            let mean = |row: &TaskRow| row.delays.total() / row.delays.count().max(1);
            (mean(b).cmp(&mean(a)))
                .then(b.delays.max().cmp(&a.delays.max()))
                .then(b.delays.count().cmp(&a.delays.count()))
                .then(b.runtime_ns.cmp(&a.runtime_ns))
                .then(a.tid.cmp(&b.tid))
                .then_with(|| a.comm.cmp(&b.comm))
        });
        let mut delays = Stats::default();
        for row in &rows {
            delays.merge(&row.delays);
        }
        SchedReport {
            delays_as: Some(self.convention),
            kinds: self.kinds(),
            is_whole: true,
            rows,
            cpus: self.cpu_rows(threads),
            work: self.work_rows(functions),
            delays,
        }
    }

    /// Returns which kinds of events there are.
    fn kinds(&self) -> SchedKinds {
        SchedKinds {
            runtimes: self.has.runtimes,
            wakeups: self.has.wakeups || self.has.wakings,
            work: self.has.work,
        }
    }

    /// Makes the row of tasks.
    fn row(&self, comm: String, of: RowTasks, threads: &Threads) -> TaskRow {
        let sums = of.sums;
        let longest_wait = sums.longest_wait().map(|wait| {
            let behind = wait.behind.and_then(|slot| threads.at(slot));
            LongestWait {
                ns: wait.ns,
                since: wait.since,
                behind: behind.map(|(tid, thread)| (tid, thread.comm.clone())),
            }
        });
        TaskRow {
            comm,
            tid: of.tid,
            pid: of.pid,
            threads: of.threads,
            runtime_ns: sums.runtime_ns,
            on_cpu_ns: sums.on_cpu_ns,
            off_cpu_ns: sums.off_cpu_ns,
            delay_max_at: sums.delay_max_at,
            preempted_by: others_of(&sums.preempted_by, threads, |other| other.ns),
            longest_wait,
            woken_by: others_of(&sums.woken_by, threads, |other| other.count),
            migrations: match self.has.migrations {
                true => sums.migrations,
                false => sums.cpu_changes,
            },
            delays: sums.delays,
            woken_waits: sums.woken_waits,
            preempted: sums.preempted,
        }
    }

    fn cpu_rows(&self, threads: &Threads) -> Vec<CpuRow> {
        let wakeups = self.kinds().wakeups;
        let seen = self.cpus.iter().zip(0u32..);
        let seen = seen.filter(|(cpu, _)| cpu.switches > 0 || cpu.wakeups > 0);
        let rows = seen.map(|(cpu, number)| {
            let worst = cpu.worst.and_then(|(slot, at)| {
                let (tid, thread) = threads.at(slot)?;
                let other = OtherTask {
                    tid: Some(tid),
                    comm: thread.comm.clone(),
                    count: 1,
                    ns: cpu.delays.max(),
                };
                Some((other, at))
            });
            CpuRow {
                cpu: number,
                switches: cpu.switches,
                busy_ns: cpu.busy_ns,
                idle_ns: cpu.idle_ns,
                unknown_ns: cpu.unknown_ns,
                unseen: cpu.unseen,
                wakeups: wakeups.then_some(cpu.wakeups),
                delays: cpu.delays.clone(),
                delay_max_at: worst.as_ref().map_or(0, |(_, at)| *at),
                worst: worst.map(|(other, _)| other),
            }
        });
        rows.collect()
    }

    fn work_rows(&self, functions: KernelFunctions<'_>) -> Vec<WorkRow> {
        let mut by_name: BTreeMap<String, WorkSums> = BTreeMap::new();
        for (function, &number) in &self.functions {
            let name = match function {
                Function::Name(name) => name.to_string(),
                Function::Address(address) => functions.name_or_address(*address),
            };
            if let Some(work) = self.work.get(index_of(number)) {
                let into = by_name.entry(name).or_default();
                into.stats.merge(&work.stats);
                into.stacks += work.stacks;
            }
        }
        let mut rows: Vec<WorkRow> = by_name
            .into_iter()
            .filter(|(name, work)| work.stats.count() > 0 || work.stacks > 0 && is_work(name))
            .map(|(function, work)| WorkRow {
                function,
                stats: work.stats,
                stacks: work.stacks,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.stats.total(), row.stacks)));
        rows
    }

    /// Returns how many switches are counted: on CPUs, or without one.
    pub(super) fn count_switches(&self) -> Option<EventAccount> {
        let of_cpus = self.cpus.iter().map(|cpu| cpu.switches);
        self.has.switches.then(|| EventAccount {
            which: AccountedEvents::Kinds(&[Kind::SchedSwitch]),
            name: "sched_switch",
            of: AccountScope::Inside,
            events: of_cpus.fold(self.without_cpu, u64::saturating_add),
        })
    }

    /// Raises what has to be known of all numbers.
    pub(super) fn raise(&self, doubts: &mut Doubts) {
        let kinds = self.kinds();
        if !kinds.wakeups {
            doubts.raise(DoubtKind::NoWakeups);
        } else if !self.has.wakeups {
            doubts.raise(DoubtKind::WakeupsFromWaking);
        }
        if !kinds.runtimes {
            doubts.raise(DoubtKind::NoRuntimes);
        }
        if !self.has.migrations {
            doubts.raise(DoubtKind::NoMigrations);
        }
        let chain = Turns {
            all: self
                .cpus
                .iter()
                .map(|cpu| cpu.switches)
                .fold(0, u64::saturating_add),
            missed: self
                .cpus
                .iter()
                .map(|cpu| cpu.unseen)
                .fold(0, u64::saturating_add),
            of: self.cpus.iter().filter(|cpu| cpu.switches > 0).count() as u64,
        };
        // perf record -p has the switches away from its threads, and to them only those away from another of them.
        if !self.has.from_idle && chain.missed.saturating_mul(10) >= chain.all.saturating_mul(9) {
            doubts.raise(DoubtKind::SwitchesOfSomeThreads);
        } else if chain.torn() {
            doubts.raise(DoubtKind::SwitchesMissed {
                missed: chain.missed,
                all: chain.all,
            });
        }
    }
}
