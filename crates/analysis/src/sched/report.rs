//! What was found of the tasks, made ready to print.

use std::collections::BTreeMap;

use doubts::{DoubtKind, Doubts};
use event::{Kind, index_of};
use model::Threads;
use symbols::KernelFunctions;

use super::task::{KeptWait, OtherTasks, SchedSums};
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
    pub comm: Option<String>,
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
    pub behind: Option<(i32, Option<String>)>,
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
    /// Keeps the longest wait of a task that is counted in this row.
    fn keep_wait(&mut self, wait: KeptWait, threads: &Threads) {
        if wait.ns > self.longest_wait.as_ref().map_or(0, |longest| longest.ns) {
            let behind = wait.behind.and_then(|slot| threads.at(slot));
            self.longest_wait = Some(LongestWait {
                ns: wait.ns,
                since: wait.since,
                behind: behind
                    .map(|(tid, thread)| (tid, thread.comm.as_deref().map(str::to_owned))),
            });
        }
    }

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

/// Returns a row that counts nothing yet.
fn empty(comm: String, tid: i32, pid: Option<i32>) -> TaskRow {
    TaskRow {
        comm,
        tid,
        pid,
        threads: 0,
        runtime_ns: 0,
        on_cpu_ns: 0,
        off_cpu_ns: 0,
        delays: Stats::default(),
        delay_max_at: 0,
        woken_waits: Stats::default(),
        preempted: Stats::default(),
        preempted_by: Vec::new(),
        longest_wait: None,
        woken_by: Vec::new(),
        migrations: 0,
    }
}

/// Returns the most of a list, by name.
fn others_of(
    others: &OtherTasks,
    threads: &Threads,
    by: impl Fn(&OtherTask) -> u64,
) -> Vec<OtherTask> {
    let mut list: Vec<OtherTask> = others
        .all()
        .map(|(slot, count, ns)| {
            let thread = slot.and_then(|slot| threads.at(slot));
            OtherTask {
                tid: thread.map(|(tid, _)| tid),
                comm: thread.and_then(|(_, t)| t.comm.as_deref().map(str::to_owned)),
                count,
                ns,
            }
        })
        .collect();
    list.sort_by(|a, b| {
        (a.tid.is_none().cmp(&b.tid.is_none()))
            .then(by(b).cmp(&by(a)))
            .then(a.tid.cmp(&b.tid))
    });
    if list.len() > LISTED {
        let rest = list.split_off(LISTED - 1);
        list.push(OtherTask {
            tid: None,
            comm: None,
            count: rest
                .iter()
                .map(|other| other.count)
                .fold(0, u64::saturating_add),
            ns: rest
                .iter()
                .map(|other| other.ns)
                .fold(0, u64::saturating_add),
        });
    }
    list
}

impl SchedLatencies {
    /// Returns what was found. `keep` says which threads are wanted, by thread id and process; `functions`
    /// names the kernel's.
    pub fn report(
        &self,
        threads: &Threads,
        merge: Merge,
        keep: &dyn Fn(i32, Option<i32>) -> bool,
        functions: KernelFunctions<'_>,
    ) -> SchedReport {
        let mut rows: BTreeMap<(String, i32, u32), (TaskRow, OtherTasks, OtherTasks)> =
            BTreeMap::new();
        let mut delays = Stats::default();
        for (slot, task) in self.tasks.iter() {
            let Some((tid, thread)) = threads.at(slot) else {
                continue;
            };
            let sums = &task.own;
            // The idle task waits for nothing.
            if tid == 0 || !task.has_atoms() || !keep(tid, thread.pid) {
                continue;
            }
            let comm = thread
                .comm
                .as_deref()
                .map_or_else(|| format!(":{tid}"), str::to_owned);
            let key = match merge {
                Merge::No => (comm.clone(), tid, slot),
                Merge::ByComm => (comm.clone(), 0, 0),
            };
            let (row, woken_by, preempted_by) = rows.entry(key).or_insert_with(|| {
                let row = empty(comm, tid, thread.pid);
                (row, OtherTasks::default(), OtherTasks::default())
            });
            self.add(row, sums);
            if let Some(wait) = sums.longest_wait() {
                row.keep_wait(wait, threads);
            }
            delays.merge(&sums.delays);
            woken_by.merge(&sums.woken_by);
            preempted_by.merge(&sums.preempted_by);
        }
        // Whose they are is not known any more.
        let beyond = self.other_tasks;
        if beyond > 0 && keep(-1, None) {
            let mut row = empty(OTHERS.to_owned(), -1, None);
            self.add(&mut row, &self.others);
            row.threads = beyond;
            delays.merge(&self.others.delays);
            let (woken_by, preempted_by) = (&self.others.woken_by, &self.others.preempted_by);
            let row = (row, woken_by.clone(), preempted_by.clone());
            rows.insert((OTHERS.to_owned(), -1, u32::MAX), row);
        }
        let mut rows: Vec<TaskRow> = rows
            .into_values()
            .map(|(row, woken_by, preempted_by)| TaskRow {
                woken_by: others_of(&woken_by, threads, |other| other.count),
                preempted_by: others_of(&preempted_by, threads, |other| other.ns),
                ..row
            })
            .collect();
        rows.sort_by(|a, b| {
            let mean = |row: &TaskRow| row.delays.total() / row.delays.count().max(1);
            (mean(b).cmp(&mean(a)))
                .then(b.delays.max().cmp(&a.delays.max()))
                .then(b.delays.count().cmp(&a.delays.count()))
                .then(b.runtime_ns.cmp(&a.runtime_ns))
                .then(a.tid.cmp(&b.tid))
        });
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

    /// Adds a task to a row.
    fn add(&self, row: &mut TaskRow, task: &SchedSums) {
        row.threads += 1;
        row.runtime_ns = row.runtime_ns.saturating_add(task.runtime_ns);
        row.on_cpu_ns = row.on_cpu_ns.saturating_add(task.on_cpu_ns);
        row.off_cpu_ns = row.off_cpu_ns.saturating_add(task.off_cpu_ns);
        if task.delays.max() > row.delays.max() {
            row.delay_max_at = task.delay_max_at;
        }
        row.delays.merge(&task.delays);
        row.preempted.merge(&task.preempted);
        row.woken_waits.merge(&task.woken_waits);
        row.migrations += if self.has.migrations {
            task.migrations
        } else {
            task.cpu_changes
        };
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
                    comm: thread.comm.as_deref().map(str::to_owned),
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
