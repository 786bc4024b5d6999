//! What threads wait for without a CPU: from the switch away from it to the switch to it, by the stack with which they left.
//!
//! What is a wait for a CPU, and from when on, follows the rules of [`crate::Sched`], so that the sums of both are equal.

use event::Kind;
use event::sched::TaskState;
use stacks::{ROOT, Weight};

use super::calls::{Calls, Mode, NOBODY, Row};
use super::doing::Doing;

/// Stands for no time.
const NEVER: u64 = u64::MAX;

/// Who woke a thread, and with which stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waker {
    pub thread: u32,
    pub stack: u32,
}

/// Nobody that is known.
const NO_WAKER: Waker = Waker {
    thread: NOBODY,
    stack: ROOT,
};

/// What one thread does.
#[derive(Debug, Clone)]
struct Task {
    /// Since when it runs.
    running: u64,
    /// Where no switch has told so, but a sample: when the last one was. It runs up to there at least.
    sampled: u64,
    /// Since when it is away from its CPU, and what it does.
    left: u64,
    doing: Doing,
    /// Since when it waits after it was woken.
    woken: u64,
    /// Its number when it left, and the stack with which it did.
    thread: u32,
    stack: u32,
    waker: Waker,
    /// How long it had CPUs.
    on_cpu_ns: u64,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            running: NEVER,
            sampled: NEVER,
            left: NEVER,
            doing: Doing::Runs,
            woken: NEVER,
            thread: NOBODY,
            stack: ROOT,
            waker: NO_WAKER,
            on_cpu_ns: 0,
        }
    }
}

/// Follows all threads.
#[derive(Debug, Default)]
pub(super) struct OffCpu {
    /// By thread slot.
    tasks: Vec<Task>,
    /// Whether `sched_wakeup` was seen, which knows better than `sched_waking` when a wait for a CPU begins.
    wakeups: bool,
    /// Whether wakers are kept.
    pub wakers: bool,
    pub switches: u64,
    /// The time of the last event.
    pub end: u64,
    /// Slots of threads that were away from their CPU still when the recording ended, and for how long.
    pub still: Vec<(u32, u64)>,
}

impl OffCpu {
    fn task(&mut self, slot: u32) -> &mut Task {
        let index = slot as usize;
        if self.tasks.len() <= index {
            self.tasks.resize_with(index + 1, Task::default);
        }
        &mut self.tasks[index]
    }

    /// A thread leaves its CPU.
    pub(super) fn leaves(&mut self, slot: u32, thread: u32, time: u64, state: TaskState) {
        self.switches += 1;
        let task = self.task(slot);
        if task.running != NEVER {
            task.ran(time);
        }
        *task = Task {
            on_cpu_ns: task.on_cpu_ns,
            thread,
            ..Task::default()
        };
        if let Some(doing) = Doing::of(state) {
            (task.left, task.doing) = (time, doing);
        }
    }

    /// A thread is sampled on a CPU. That tells of those that had theirs before the first switch, or all the time.
    pub(super) fn is_sampled(&mut self, slot: u32, time: u64) {
        let task = self.task(slot);
        if task.running == NEVER && task.left == NEVER {
            (task.running, task.sampled, task.woken) = (time, time, NEVER);
        } else if task.sampled != NEVER {
            task.sampled = time;
        }
    }

    /// The stack is known with which a thread has just left its CPU.
    pub(super) fn left_with(&mut self, slot: u32, stack: u32) {
        if stack != ROOT {
            self.task(slot).stack = stack;
        }
    }

    /// A thread is woken, as an event of this kind tells it.
    pub(super) fn wakes(&mut self, slot: u32, thread: u32, time: u64, kind: Kind) {
        // On its run queue it is with sched_wakeup, if that is recorded.
        if kind == Kind::SchedWaking && self.wakeups {
            return;
        }
        // The first one corrects what its sched_waking was taken for. That of a new task says nothing of others.
        let of_all = kind == Kind::SchedWakeup;
        let again = of_all && !self.wakeups;
        self.wakeups |= of_all;
        let task = self.task(slot);
        if task.thread == NOBODY {
            task.thread = thread;
        }
        let asleep = task.running == NEVER && task.doing != Doing::Preempted;
        if asleep && (again || task.woken == NEVER) {
            task.woken = time;
        }
    }

    /// Says by whom a thread is woken.
    pub(super) fn woken_by(&mut self, slot: u32, waker: Waker) {
        let task = self.task(slot);
        if task.running == NEVER && task.waker == NO_WAKER {
            task.waker = waker;
        }
    }

    /// Says of the thread that is being woken with which stack it is.
    pub(super) fn woken_with(&mut self, slot: u32, stack: u32) {
        let task = self.task(slot);
        if task.running == NEVER && task.waker.stack == ROOT {
            task.waker.stack = stack;
        }
    }

    /// A thread gets a CPU.
    pub(super) fn gets(&mut self, slot: u32, thread: u32, time: u64, calls: &mut Calls) {
        let wakers = self.wakers;
        let task = self.task(slot);
        if task.thread == NOBODY {
            task.thread = thread;
        }
        task.tell(time, wakers, calls);
        *task = Task {
            running: time,
            on_cpu_ns: task.on_cpu_ns,
            thread,
            ..Task::default()
        };
    }

    /// Ends the walk: what goes on ends with the recording.
    pub(super) fn finish(&mut self, calls: &mut Calls) {
        for (task, slot) in self.tasks.iter_mut().zip(0u32..) {
            if task.running != NEVER {
                let until = match task.sampled {
                    NEVER => self.end,
                    last => last,
                };
                task.ran(until);
                (task.running, task.sampled) = (NEVER, NEVER);
            }
            let ns = task.tell(self.end, self.wakers, calls);
            if ns > 0 {
                self.still.push((slot, ns));
            }
            (task.left, task.woken) = (NEVER, NEVER);
        }
    }

    /// Returns how long threads had CPUs, by slot.
    pub(super) fn on_cpu(&self) -> impl Iterator<Item = (u32, u64)> {
        let all = self.tasks.iter().zip(0u32..);
        all.map(|(task, slot)| (slot, task.on_cpu_ns))
    }
}

impl Task {
    /// Counts the time that it has had a CPU.
    fn ran(&mut self, until: u64) {
        let ns = until.saturating_sub(self.running);
        self.on_cpu_ns = self.on_cpu_ns.saturating_add(ns);
    }

    /// Adds the time away from a CPU, which ends now, to what its stack weighs. Returns how long it was.
    fn tell(&self, time: u64, wakers: bool, calls: &mut Calls) -> u64 {
        let row = |doing: Doing| Row {
            event: 0,
            thread: self.thread,
            doing,
            mode: Mode::Kernel,
            stack: self.stack,
            waker: NOBODY,
            waker_stack: ROOT,
        };
        // A wake-up may come before its thread has left, if clocks of CPUs differ.
        let woken = match self.left {
            NEVER => self.woken,
            left => self.woken.max(left),
        };
        let mut all = 0u64;
        let mut add = |row: Row, ns: u64| {
            if ns == 0 {
                return;
            }
            let weight = Weight {
                samples: 1,
                amount: ns,
            };
            all = all.saturating_add(ns);
            calls.add(row, weight);
        };
        if self.left != NEVER {
            let until = match self.doing {
                Doing::Sleeps(_) => woken.min(time),
                _ => time,
            };
            let row = row(self.doing);
            let woke = match wakers && matches!(self.doing, Doing::Sleeps(_)) {
                true => self.waker,
                false => NO_WAKER,
            };
            let row = Row {
                waker: woke.thread,
                waker_stack: woke.stack,
                ..row
            };
            add(row, until.saturating_sub(self.left));
        }
        if woken != NEVER && self.doing != Doing::Preempted {
            add(row(Doing::Woken), time.saturating_sub(woken));
        }
        all
    }
}
