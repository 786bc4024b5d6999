//! Scheduling latency: how long tasks waited for a CPU, who woke them, who ran in their place.
//!
//! Count, mean and maximum of a task's delays, and its run time, are those of `perf sched latency`
//! (`tools/perf/builtin-sched.c`, 6.1): a delay is from `sched_wakeup`, or from leaving a CPU with state 0, to
//! getting one; a task that is seen getting its CPU first counts a delay of nothing. What perf leaves out, the waits
//! of tasks that were preempted, is told apart from that.

mod report;
mod task;

use std::ops::ControlFlow;

use event::{Body, Data, Event, EventType, Kind, Side, Sink};
use model::{Threads, Told};
use rustc_hash::FxHashMap;
use task::Task;

pub use report::{CpuRow, Merge, Other, SchedReport, TaskRow, WorkRow};

use crate::Stats;

/// CPUs beyond this are not followed: the kernel has fewer.
const MAX_CPUS: usize = 1 << 16;
/// Functions of work items that are told apart; a kernel has some thousand.
const MAX_FUNCTIONS: usize = 1 << 14;

/// One CPU.
#[derive(Debug, Clone, Default)]
struct Cpu {
    switches: u64,
    /// Task that runs, and since when.
    current: Option<(u32, u64)>,
    busy_ns: u64,
    idle_ns: u64,
    wakeups: u64,
    delays: Stats,
    /// The task that waited longest, and since when.
    worst: Option<(u32, u64)>,
}

/// What a work item's function is called: the recording has its address, a text its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Function {
    Address(u64),
    Name(Box<str>),
}

/// Which kinds of events there are.
#[derive(Debug, Clone, Copy, Default)]
struct Has {
    switches: bool,
    wakeups: bool,
    wakings: bool,
    runtimes: bool,
    migrations: bool,
}

/// Collects scheduling latencies.
#[derive(Debug, Default)]
pub struct Sched {
    threads: Threads,
    /// By thread slot.
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    functions: FxHashMap<Function, u32>,
    work: Vec<Stats>,
    has: Has,
    end: u64,
}

impl Sched {
    /// Returns a collector that has seen nothing.
    pub fn new() -> Sched {
        Sched::default()
    }

    /// Takes thread names that the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl IntoIterator<Item = (i32, &'n str)>) {
        self.threads.saved_names(names);
    }

    /// Takes what is told beside the recording, before its events.
    pub fn told(&mut self, told: &Told) {
        self.threads.told(told);
    }

    /// Returns whether any task was seen getting a CPU.
    pub fn saw_switches(&self) -> bool {
        self.has.switches
    }

    fn task(&mut self, slot: u32) -> &mut Task {
        let index = slot as usize;
        if self.tasks.len() <= index {
            self.tasks.resize_with(index + 1, Task::default);
        }
        &mut self.tasks[index]
    }

    fn cpu(&mut self, cpu: i32) -> Option<&mut Cpu> {
        let index = usize::try_from(cpu).ok().filter(|&cpu| cpu < MAX_CPUS)?;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, Cpu::default);
        }
        self.cpus.get_mut(index)
    }

    fn switch(&mut self, event: &Event<'_>, switch: &event::sched::SchedSwitch) {
        self.has.switches = true;
        let prev = self.threads.acts_as(switch.prev_tid, &switch.prev_comm);
        let next = self.threads.acts_as(switch.next_tid, &switch.next_comm);
        let time = event.time;
        self.task(prev).leaves(time, switch.prev_state, next);
        let delay = self.task(next).gets(time, event.cpu);
        let next_idle = switch.next_tid == 0;
        let prev_idle = switch.prev_tid == 0;
        let Some(cpu) = self.cpu(event.cpu) else {
            return;
        };
        cpu.switches += 1;
        if let Some((_, since)) = cpu.current {
            let ns = time.saturating_sub(since);
            if prev_idle {
                cpu.idle_ns = cpu.idle_ns.saturating_add(ns);
            } else {
                cpu.busy_ns = cpu.busy_ns.saturating_add(ns);
            }
        }
        cpu.current = Some((next, time));
        if let Some(delay) = delay
            && !next_idle
        {
            if delay > cpu.delays.max() || cpu.worst.is_none() {
                cpu.worst = Some((next, time - delay));
            }
            cpu.delays.add(delay);
        }
    }

    fn wakes(&mut self, event: &Event<'_>, wakeup: &event::sched::SchedWakeup, waking: bool) {
        let task = self.threads.named(wakeup.tid, &wakeup.comm);
        if waking {
            self.has.wakings = true;
        } else {
            self.has.wakeups = true;
            self.task(task).woken(event.time);
            if let Some(cpu) = wakeup.target_cpu.and_then(|cpu| self.cpu(cpu)) {
                cpu.wakeups += 1;
            }
        }
        // A remote wake-up is finished on the CPU of the task that is woken: who began it sched_waking knows.
        if waking || !self.has.wakings {
            let waker = self.threads.slot(event.tid);
            self.task(task).woken_by(waker);
        }
    }

    fn work_begins(&mut self, event: &Event<'_>, function: Function) {
        let known = self.functions.len();
        let number = match self.functions.get(&function) {
            Some(&number) => number,
            None if known < MAX_FUNCTIONS => {
                self.functions.insert(function, known as u32);
                self.work.push(Stats::default());
                known as u32
            }
            None => return,
        };
        let slot = self.threads.slot(event.tid);
        self.task(slot).work = Some((event.time, number));
    }

    fn work_ends(&mut self, event: &Event<'_>) {
        let slot = self.threads.slot(event.tid);
        if let Some((since, function)) = self.task(slot).work.take()
            && let Some(stats) = self.work.get_mut(function as usize)
        {
            stats.add(event.time.saturating_sub(since));
        }
    }
}

/// Returns the function that a text of `workqueue_execute_start` names.
fn function_in(text: &str) -> Option<&str> {
    let rest = text.split("function ").nth(1)?;
    rest.split_whitespace().next()
}

impl Sink for Sched {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        match ty.kind {
            Kind::SchedWaking => self.has.wakings |= ty.recorded,
            Kind::SchedMigrateTask => self.has.migrations |= ty.recorded,
            Kind::SchedStatRuntime => self.has.runtimes |= ty.recorded,
            Kind::WorkqueueExecuteStart | Kind::WorkqueueExecuteEnd => {}
            kind => return kind.is_sched(),
        }
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.take(event, &event.data());
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.threads.side(side);
    }
}

impl Sched {
    /// Takes an event that has been decoded.
    pub fn take(&mut self, event: &Event<'_>, data: &Data) {
        self.end = self.end.max(event.time);
        match data {
            Data::SchedSwitch(switch) => self.switch(event, switch),
            Data::SchedWaking(wakeup) => self.wakes(event, wakeup, true),
            Data::SchedWakeup(wakeup) => self.wakes(event, wakeup, false),
            Data::SchedStatRuntime(runtime) => {
                self.has.runtimes = true;
                let slot = self.threads.named(runtime.tid, &runtime.comm);
                self.task(slot).ran(event.time, runtime.runtime_ns);
            }
            Data::SchedMigrateTask(migrate) => {
                self.has.migrations = true;
                let slot = self.threads.slot(migrate.tid);
                self.task(slot).migrations += 1;
            }
            Data::WorkqueueExecuteStart { function, .. } => {
                self.work_begins(event, Function::Address(*function));
            }
            Data::WorkqueueExecuteEnd { .. } => self.work_ends(event),
            _ => {
                self.threads.sched(data);
                if let Body::Text { text, .. } = event.body {
                    match event.ty.kind {
                        Kind::WorkqueueExecuteStart => {
                            if let Some(name) = function_in(text) {
                                self.work_begins(event, Function::Name(name.into()));
                            }
                        }
                        Kind::WorkqueueExecuteEnd => self.work_ends(event),
                        _ => {}
                    }
                }
            }
        }
    }
}
