//! The scheduler's state: what every task does, and who has which CPU.
//!
//! A task is runnable from the moment it is on a run queue: from `sched_wakeup`, where that is recorded, and from
//! `sched_waking` where it is not, or from leaving its CPU while it could go on, to the `sched_switch` to it. Nothing
//! is made up: what a task or CPU does between two events of which the second does not follow from the first ends as
//! missed.

mod span;

pub use span::{CpuSpan, CpuSwitch, RunState, SpanEnd, TaskChanges, TaskSpan, TaskWakeup};

use event::sched::{Leaves, TaskState};
use event::{Data, Event, Kind, NONE, cpu_index};

use crate::Tasks;
use crate::by_slot::BySlot;
use crate::retired::RetiredThreads;

/// Tasks that wait for one CPU at once, of which it is kept behind whom. More of them are as long on a run queue, and
/// nobody says what they wait for: each switch would cost as much as there are of them.
const MAX_WAITING: usize = 1 << 8;

/// `TASK_STOPPED` and `TASK_TRACED` (`include/linux/sched.h`).
const STOPPED: u64 = 0xc;

/// Stands for no time, and for no task.
const NEVER: u64 = u64::MAX;
const NOBODY: u32 = u32::MAX;

/// What a wake-up says, by its kind and by the kinds that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WakeRule {
    /// The task is on a run queue now: `sched_wakeup` knows that, and `sched_waking` stands in where it is not
    /// recorded.
    pub queues: bool,
    /// It is the first `sched_wakeup`: a `sched_waking` that was taken for one before it came too early.
    pub corrects: bool,
    /// The thread that makes the event is the waker: `sched_waking` knows that, since a remote wake-up is finished on
    /// the CPU of the task that is woken; `sched_wakeup` stands in where it is not recorded.
    pub wakes: bool,
}

/// One task.
#[derive(Debug, Clone)]
struct FollowedTask {
    state: RunState,
    /// Since when it is in its state, up to when that was handed out, and the CPU of the event that began it.
    since: u64,
    at: u64,
    began_on: i32,
    cpu: i32,
    /// When and where it left its last CPU, in which state, and who got it.
    left: u64,
    left_on: i32,
    left_as: TaskState,
    taken_by: u32,
    waker: u32,
    /// For how long it has run, and waited for a CPU, up to `at`.
    busy_ns: u64,
}

impl Default for FollowedTask {
    fn default() -> FollowedTask {
        FollowedTask {
            state: RunState::Unknown,
            since: NEVER,
            at: NEVER,
            began_on: NONE,
            cpu: NONE,
            left: NEVER,
            left_on: NONE,
            left_as: TaskState(0),
            taken_by: NOBODY,
            waker: NOBODY,
            busy_ns: 0,
        }
    }
}

/// One CPU.
#[derive(Debug, Clone, Default)]
struct TaskCpu {
    /// The task that it runs, whether that is the idle task, and since when.
    current: Option<(u32, bool, u64)>,
    /// Whether its events were lost since then.
    lost: bool,
    /// Tasks on its run queue; some may have left it.
    waiting: Vec<u32>,
}

/// Follows all tasks and CPUs by the events of the scheduler.
///
/// Tasks are known by their slots in [`crate::Threads`]. Who has which CPU is always known; what tasks do, if
/// [`TaskStates::follow`] asks for it.
#[derive(Debug, Clone, Default)]
pub struct TaskStates {
    tasks: BySlot<FollowedTask>,
    cpus: Vec<TaskCpu>,
    /// Whether tasks are followed.
    follows: bool,
    /// Kinds of wake-ups that are recorded, and whether any event was taken.
    wakeups: bool,
    wakings: bool,
    begun: bool,
    /// What the last event changed.
    changes: TaskChanges,
}

impl FollowedTask {
    /// Returns what it has done up to a time.
    fn span(&self, thread: u32, end: u64, ended_by: SpanEnd, behind: Option<u32>) -> TaskSpan {
        let known = |slot: u32| (slot != NOBODY).then_some(slot);
        TaskSpan {
            thread,
            state: self.state,
            start: self.at,
            end,
            ended_by,
            since: self.since,
            began_on: self.began_on,
            cpu: self.cpu,
            left: (self.left != NEVER).then_some((self.left, self.left_on)),
            left_as: self.left_as,
            taken_by: known(self.taken_by),
            waker: known(self.waker),
            behind: behind.filter(|_| self.state.is_runnable()),
        }
    }

    /// Returns for how long it has run, and waited for a CPU, up to a time.
    #[inline]
    fn busy_until(&self, time: u64) -> u64 {
        let busy = self.state == RunState::Running || self.state.is_runnable();
        let ns = if busy {
            time.saturating_sub(self.at)
        } else {
            0
        };
        self.busy_ns.saturating_add(ns)
    }

    /// It does something else from now on.
    fn becomes(&mut self, state: RunState, time: u64, event_cpu: i32) {
        (self.state, self.since, self.at) = (state, time, time);
        self.began_on = event_cpu;
    }
}

impl TaskStates {
    /// Has tasks followed, not CPUs alone.
    pub fn follow(&mut self) {
        self.follows = true;
    }

    /// Returns whether tasks are followed.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Returns about how many things it follows.
    pub fn len(&self) -> usize {
        let waiting = self.cpus.iter().map(|cpu| 1 + cpu.waiting.len());
        self.tasks.len() + waiting.sum::<usize>()
    }

    /// Returns whether it follows nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says that events of a kind are recorded. A text asks when it comes upon the first one, and others ask before
    /// they begin: only they know before the first wake-up.
    pub fn recorded(&mut self, kind: Kind) {
        match kind {
            Kind::SchedWakeup => self.wakeups |= !self.begun,
            Kind::SchedWaking => self.wakings = true,
            _ => {}
        }
    }

    /// Returns what a wake-up of a kind says, and takes note that there is one. That of a new task
    /// (`sched_wakeup_new`) says nothing
    /// of others: `perf sched record` takes it along with `sched_waking`.
    pub(crate) fn wake_rule(&mut self, kind: Kind) -> WakeRule {
        match kind {
            Kind::SchedWaking => {
                self.wakings = true;
                WakeRule {
                    queues: !self.wakeups,
                    corrects: false,
                    wakes: true,
                }
            }
            Kind::SchedWakeup | Kind::SchedWakeupNew => {
                let of_all = kind == Kind::SchedWakeup;
                let corrects = of_all && !self.wakeups;
                self.wakeups |= of_all;
                WakeRule {
                    queues: true,
                    corrects,
                    wakes: !self.wakings,
                }
            }
            _ => WakeRule::default(),
        }
    }

    /// Takes an event of the scheduler, which is about these tasks. `waker` is the slot of the thread that makes it,
    /// and `rule` what a wake-up says.
    #[inline]
    pub(crate) fn take(
        &mut self,
        event: &Event<'_>,
        data: &Data,
        tasks: Tasks,
        rule: WakeRule,
        waker: Option<u32>,
    ) {
        self.begun = true;
        self.changes.clear();
        match data {
            Data::SchedSwitch(switch) => {
                let change = CpuSwitch {
                    time: event.time,
                    cpu: event.cpu,
                    prev: tasks.prev,
                    next: tasks.task,
                    prev_idle: switch.prev_tid == 0,
                    next_idle: switch.next_tid == 0,
                    left_as: switch.prev_state,
                };
                self.switch(change);
            }
            Data::SchedWakeup(wakeup) | Data::SchedWaking(wakeup) => {
                let change = TaskWakeup {
                    task: tasks.task,
                    waker,
                    time: event.time,
                    waking: event.ty.kind == Kind::SchedWaking,
                    of_new: event.ty.kind == Kind::SchedWakeupNew,
                    target_cpu: wakeup.target_cpu,
                };
                self.changes.wakeup = Some(change);
                if self.follows {
                    self.wake(change, event.cpu, rule);
                }
            }
            Data::SchedMigrateTask(migrate) if self.follows => {
                self.moves(tasks.task, event.time, migrate.dest_cpu);
            }
            _ => {}
        }
    }

    /// Events of a CPU were lost; [`event::NONE`] stands for all.
    pub(crate) fn lost(&mut self, lost: i32) {
        for (cpu, number) in self.cpus.iter_mut().zip(0i32..) {
            cpu.lost |= lost == NONE || lost == number;
        }
    }

    #[inline]
    fn cpu(&mut self, cpu: i32) -> Option<&mut TaskCpu> {
        let index = cpu_index(cpu)?;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, TaskCpu::default);
        }
        self.cpus.get_mut(index)
    }

    fn task(&mut self, thread: u32) -> &mut FollowedTask {
        self.tasks.entry(thread, FollowedTask::default)
    }

    /// Ends what a task did until now, if anything is known of it, and hands it out.
    fn end(&mut self, thread: u32, time: u64, ended_by: SpanEnd, behind: Option<u32>) {
        let task = self.task(thread);
        if task.state == RunState::Unknown {
            return;
        }
        let span = task.span(thread, time, ended_by, behind);
        task.busy_ns = task.busy_until(time);
        task.at = time;
        self.changes.tasks.push(span);
    }

    fn switch(&mut self, change: CpuSwitch) {
        let CpuSwitch {
            time,
            cpu: number,
            prev,
            next,
            prev_idle,
            next_idle,
            left_as,
        } = change;
        self.changes.switch = Some(change);
        if let Some(cpu) = self.cpu(number) {
            let before = cpu.current.replace((next, next_idle, time));
            let lost = std::mem::take(&mut cpu.lost);
            self.changes.cpu = before.map(|(task, _, since)| CpuSpan {
                cpu: number,
                thread: (task == prev).then_some(prev),
                idle: task == prev && prev_idle,
                start: since,
                end: time,
                lost,
            });
        }
        if !self.follows {
            return;
        }
        self.waited_behind(prev, number, time);
        // Every CPU has an idle task, all with one slot: they are in no state of their own.
        if !prev_idle {
            let task = self.task(prev);
            let seen = task.state == RunState::Running && task.cpu == number;
            let ended_by = if seen {
                SpanEnd::LeftCpu
            } else {
                SpanEnd::Missed
            };
            self.end(prev, time, ended_by, None);
            self.leaves(prev, change);
            if left_as.leaves() == Leaves::Runnable {
                self.queue(prev, number);
            }
        }
        if !next_idle {
            let task = self.task(next);
            let ended_by = if task.state == RunState::Running {
                SpanEnd::Missed
            } else {
                SpanEnd::GotCpu
            };
            let behind = (task.cpu == number).then_some(prev);
            self.end(next, time, ended_by, behind);
            let task = self.task(next);
            *task = FollowedTask {
                cpu: number,
                busy_ns: task.busy_ns,
                ..FollowedTask::default()
            };
            task.becomes(RunState::Running, time, number);
        }
    }

    /// A task leaves its CPU.
    fn leaves(&mut self, thread: u32, change: CpuSwitch) {
        let state = match change.left_as.leaves() {
            Leaves::Runnable => RunState::Preempted,
            Leaves::Blocked if change.left_as.0 & STOPPED != 0 => RunState::Stopped,
            Leaves::Blocked => RunState::Asleep,
            Leaves::Dead => {
                let task = self.task(thread);
                *task = FollowedTask {
                    busy_ns: task.busy_ns,
                    ..FollowedTask::default()
                };
                return;
            }
        };
        let task = self.task(thread);
        *task = FollowedTask {
            cpu: change.cpu,
            left: change.time,
            left_on: change.cpu,
            left_as: change.left_as,
            taken_by: change.next,
            busy_ns: task.busy_ns,
            ..FollowedTask::default()
        };
        task.becomes(state, change.time, change.cpu);
    }

    /// A task ran on a CPU until now: whoever waited there waited behind it.
    fn waited_behind(&mut self, prev: u32, number: i32, time: u64) {
        let Some(cpu) = self.cpu(number) else {
            return;
        };
        if cpu.waiting.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut cpu.waiting);
        waiting.retain(|&thread| {
            let task = self.task(thread);
            let waits = task.state.is_runnable() && task.cpu == number;
            // One that ran itself was not seen to get its CPU.
            if waits && thread != prev {
                self.end(thread, time, SpanEnd::Behind, Some(prev));
            }
            waits
        });
        if let Some(cpu) = self.cpu(number) {
            cpu.waiting = waiting;
        }
    }

    fn queue(&mut self, thread: u32, cpu: i32) {
        if let Some(cpu) = self.cpu(cpu)
            && cpu.waiting.len() < MAX_WAITING
            && !cpu.waiting.contains(&thread)
        {
            cpu.waiting.push(thread);
        }
    }

    /// A task is woken.
    fn wake(&mut self, change: TaskWakeup, event_cpu: i32, rule: WakeRule) {
        let (thread, time) = (change.task, change.time);
        let task = self.task(thread);
        // A task that is about to sleep may be woken before it does: it then keeps its CPU.
        if task.state == RunState::Running {
            return;
        }
        if task.waker == NOBODY {
            task.waker = change.waker.unwrap_or(NOBODY);
        }
        if !rule.queues || task.state == RunState::Preempted {
            return;
        }
        if task.state == RunState::Woken {
            // What was handed out as its sleep ended too early by a moment, which nobody can take back. And a task that
            // runs or is to run is not woken once more (`ttwu_state_match`, kernel/sched/core.c, before the event): it
            // has run and gone to sleep meanwhile, and that was not recorded.
            if rule.corrects || change.waking {
                (task.since, task.at) = (time, time);
            }
            return;
        }
        self.end(thread, time, SpanEnd::Woken, None);
        let task = self.task(thread);
        task.becomes(RunState::Woken, time, event_cpu);
        task.cpu = change.target_cpu.unwrap_or(task.cpu);
        let cpu = task.cpu;
        self.queue(thread, cpu);
    }

    /// A task is moved to another CPU. One that sleeps has an event again when it is woken.
    fn moves(&mut self, thread: u32, time: u64, to: i32) {
        let task = self.task(thread);
        let from = task.cpu;
        if !task.state.is_runnable() || from == to {
            return;
        }
        let behind = self.current(from).map(|(task, _)| task);
        self.end(thread, time, SpanEnd::Moved, behind);
        self.task(thread).cpu = to;
        self.queue(thread, to);
    }

    /// Returns what the last event of the scheduler changed.
    pub fn changes(&self) -> &TaskChanges {
        &self.changes
    }

    /// Takes that out, or puts it back.
    pub fn swap_changes(&mut self, changes: &mut TaskChanges) {
        std::mem::swap(&mut self.changes, changes);
    }

    /// Returns the tasks that CPUs run now.
    pub(crate) fn on_cpus(&self) -> impl Iterator<Item = u32> + '_ {
        let current = self.cpus.iter().filter_map(|cpu| cpu.current);
        current.map(|(task, _, _)| task)
    }

    /// Returns for how long a task has run, and waited for a CPU, up to a time.
    pub(crate) fn busy_ns(&self, thread: u32, time: u64) -> u64 {
        let task = self.tasks.get(thread);
        task.map_or(0, |task| task.busy_until(time))
    }

    /// Forgets tasks that have become part of sums.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        for slot in retired.slots() {
            self.tasks.remove(slot);
        }
        for cpu in &mut self.cpus {
            cpu.waiting.retain(|slot| !retired.has_slot(*slot));
        }
        let past = |slot: u32| slot != NOBODY && retired.has_slot(slot);
        for (_, task) in self.tasks.iter_mut() {
            if past(task.taken_by) {
                task.taken_by = NOBODY;
            }
            if past(task.waker) {
                task.waker = NOBODY;
            }
        }
    }

    /// Returns the task that a CPU runs, and since when.
    #[inline]
    pub fn current(&self, cpu: i32) -> Option<(u32, u64)> {
        let (task, _, since) = self.cpus.get(cpu_index(cpu)?)?.current?;
        Some((task, since))
    }

    /// Returns who has which CPU, as spans that are still under way at a time.
    pub fn running(&self, time: u64) -> impl Iterator<Item = CpuSpan> + '_ {
        let cpus = self.cpus.iter().zip(0i32..);
        cpus.filter_map(move |(cpu, number)| {
            let (task, idle, since) = cpu.current?;
            Some(CpuSpan {
                cpu: number,
                thread: Some(task),
                idle,
                start: since,
                end: time,
                lost: cpu.lost,
            })
        })
    }

    /// Returns what a task does, as a span that is still under way at a time; `None` if nothing is known of it.
    pub fn open(&self, thread: u32, time: u64) -> Option<TaskSpan> {
        let task = self.tasks.get(thread)?;
        if task.state == RunState::Unknown {
            return None;
        }
        let behind = self.current(task.cpu).map(|(task, _)| task);
        Some(task.span(thread, time, SpanEnd::Open, behind))
    }
}

#[cfg(test)]
mod tests;
