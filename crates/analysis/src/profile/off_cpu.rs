//! What threads wait for without a CPU: from the switch away from it to the switch to it, by the stack with which they
//! left.
//!
//! What is a wait for a CPU, and from when on, [`model::TaskStates`] says, as it does to [`crate::SchedLatencies`], so
//! that the sums of both are equal.

use model::{BySlot, RetiredThreads, RunState, SpanEnd, TaskSpan, TaskStates};
use stacks::{ROOT, Weight};

use super::calls::{Calls, Mode, NOBODY, StackRow};
use super::doing::ThreadState;
use crate::chosen::Window;

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

/// What is known of one thread beside what it does.
#[derive(Debug, Clone)]
struct OffCpuTask {
    /// Whether it was last seen getting a CPU.
    runs: bool,
    /// Where no switch was recorded, but samples: when the first and the last one was. It runs up to there at least.
    sampled: Option<(u64, u64)>,
    /// Its number when it left, and the stack with which it did.
    thread: u32,
    stack: u32,
    waker: Waker,
    /// How long it had CPUs.
    on_cpu_ns: u64,
}

impl Default for OffCpuTask {
    fn default() -> OffCpuTask {
        OffCpuTask {
            runs: false,
            sampled: None,
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
    tasks: BySlot<OffCpuTask>,
    /// Whether wakers are kept.
    pub wakers: bool,
    /// The waits that ended with the last event, by the number of their row; `None` where nobody takes them.
    pub ended: Option<Vec<(u32, Weight)>>,
    pub switches: u64,
    /// The time of the last event.
    pub end: u64,
    /// Slots of threads that were away from their CPU still when the recording ended, and for how long.
    pub still: Vec<(u32, u64)>,
}

impl OffCpu {
    fn task(&mut self, slot: u32) -> &mut OffCpuTask {
        self.tasks.entry(slot, OffCpuTask::default)
    }

    /// Forgets threads that are not kept apart any more. What their stacks weigh stays.
    pub(super) fn retire(&mut self, retired: &RetiredThreads) {
        for slot in retired.slots() {
            self.tasks.remove(slot);
        }
    }

    /// A thread leaves its CPU.
    pub(super) fn leaves(&mut self, slot: u32, thread: u32, time: u64) {
        self.switches += 1;
        let task = self.task(slot);
        if let Some((since, _)) = task.sampled {
            task.ran(time.saturating_sub(since));
        }
        *task = OffCpuTask {
            on_cpu_ns: task.on_cpu_ns,
            thread,
            ..OffCpuTask::default()
        };
    }

    /// A thread is sampled on a CPU. That shows those that had theirs before the first switch, or all the time.
    pub(super) fn is_sampled(&mut self, slot: u32, time: u64, tasks: &TaskStates) {
        let left = tasks
            .open(slot, time)
            .is_some_and(|span| span.left.is_some());
        let task = self.task(slot);
        if let Some((_, last)) = &mut task.sampled {
            *last = time;
        } else if !task.runs && !left {
            (task.runs, task.sampled) = (true, Some((time, time)));
        }
    }

    /// The stack is known with which a thread has just left its CPU.
    pub(super) fn left_with(&mut self, slot: u32, stack: u32) {
        if stack != ROOT {
            self.task(slot).stack = stack;
        }
    }

    /// A thread is woken.
    pub(super) fn wakes(&mut self, slot: u32, thread: u32) {
        let task = self.task(slot);
        if task.thread == NOBODY {
            task.thread = thread;
        }
    }

    /// Says by whom a thread is woken.
    pub(super) fn woken_by(&mut self, slot: u32, waker: Waker) {
        let task = self.task(slot);
        if !task.runs && task.waker == NO_WAKER {
            task.waker = waker;
        }
    }

    /// Says of the thread that is being woken with which stack it is.
    pub(super) fn woken_with(&mut self, slot: u32, stack: u32) {
        let task = self.task(slot);
        if !task.runs && task.waker.stack == ROOT {
            task.waker.stack = stack;
        }
    }

    /// A thread gets a CPU.
    pub(super) fn gets(&mut self, slot: u32, thread: u32) {
        let task = self.task(slot);
        *task = OffCpuTask {
            runs: true,
            on_cpu_ns: task.on_cpu_ns,
            thread,
            ..OffCpuTask::default()
        };
    }

    /// A thread did something until now, when it got a CPU or left it.
    pub(super) fn did(&mut self, span: &TaskSpan, thread: u32, window: &Window, calls: &mut Calls) {
        let wakers = self.wakers;
        let began = window.has(span.since, span.began_on);
        let task = self.task(span.thread);
        match span.ended_by {
            SpanEnd::LeftCpu if began => task.ran(span.whole_ns()),
            SpanEnd::GotCpu => {
                if task.thread == NOBODY {
                    task.thread = thread;
                }
                let ended = task.record(&Wait::of(span, window), wakers, calls);
                self.note(ended);
            }
            _ => {}
        }
    }

    /// Keeps waits that have ended, and returns how long they were.
    fn note(&mut self, ended: EndedWaits) -> u64 {
        if let Some(kept) = &mut self.ended {
            kept.extend(ended.rows.into_iter().flatten());
        }
        ended.ns
    }

    /// Counts what went on when what was asked for ended: what an event behind that has ended, or none.
    pub(super) fn still(&mut self, span: &TaskSpan, window: &Window, calls: &mut Calls) {
        if !window.has_time(span.start) || self.tasks.get(span.thread).is_none() {
            return;
        }
        let (wakers, end) = (self.wakers, self.end);
        let span = TaskSpan { end, ..*span };
        let task = self.task(span.thread);
        if task.sampled.is_some() {
            return;
        }
        if span.state == RunState::Running {
            if window.has(span.since, span.began_on) {
                task.ran(span.whole_ns());
            }
            return;
        }
        let ended = task.record(&Wait::of(&span, window), wakers, calls);
        let ns = self.note(ended);
        if ns > 0 {
            self.still.push((span.thread, ns));
        }
    }

    /// Ends the walk: what goes on ends with the recording.
    pub(super) fn finish(&mut self, tasks: &TaskStates, window: &Window, calls: &mut Calls) {
        let slots: Vec<u32> = self.tasks.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            if let Some(span) = tasks.open(slot, self.end) {
                self.still(&span, window, calls);
            }
            let task = self.task(slot);
            if let Some((since, last)) = task.sampled.take() {
                task.ran(last.saturating_sub(since));
            }
        }
    }

    /// Returns how long threads had CPUs, by slot.
    pub(super) fn on_cpu(&self) -> impl Iterator<Item = (u32, u64)> {
        let all = self.tasks.iter();
        all.map(|(slot, task)| (slot, task.on_cpu_ns))
    }
}

/// What a time without a CPU was counted as.
struct EndedWaits {
    /// The parts of it, by the number of their row.
    rows: [Option<(u32, Weight)>; 2],
    /// How long all of it was.
    ns: u64,
}

/// A time without a CPU.
struct Wait {
    /// When the thread left its CPU, and what it does since, if that was asked for.
    left: Option<(u64, ThreadState)>,
    /// When it was woken.
    woken: Option<u64>,
    /// When it is over.
    end: u64,
}

impl Wait {
    fn of(span: &TaskSpan, window: &Window) -> Wait {
        let left = span.left.filter(|&(time, cpu)| window.has(time, cpu));
        let left = left.and_then(|(time, _)| Some((time, ThreadState::of(span.left_as)?)));
        let woken = span.state == RunState::Woken && window.has(span.since, span.began_on);
        Wait {
            left,
            woken: woken.then_some(span.since),
            end: span.end,
        }
    }
}

impl OffCpuTask {
    /// Counts the time that it has had a CPU.
    fn ran(&mut self, ns: u64) {
        self.on_cpu_ns = self.on_cpu_ns.saturating_add(ns);
    }

    /// Adds a time without a CPU to what its stack weighs.
    fn record(&self, wait: &Wait, wakers: bool, calls: &mut Calls) -> EndedWaits {
        let row = |doing: ThreadState| StackRow {
            event: 0,
            thread: self.thread,
            doing,
            mode: Mode::Kernel,
            stack: self.stack,
            waker: NOBODY,
            waker_stack: ROOT,
        };
        // A wake-up may come before its thread has left, if clocks of CPUs differ.
        let woken = match wait.left {
            None => wait.woken,
            Some((left, _)) => wait.woken.map(|woken| woken.max(left)),
        };
        let mut all = 0u64;
        let mut add = |row: StackRow, ns: u64| {
            if ns == 0 {
                return None;
            }
            let weight = Weight {
                samples: 1,
                amount: ns,
            };
            all = all.saturating_add(ns);
            Some((calls.add(row, weight)?, weight))
        };
        let mut rows = [None; 2];
        if let Some((left, doing)) = wait.left {
            let sleeps = matches!(doing, ThreadState::Sleeps(_));
            let until = woken
                .filter(|_| sleeps)
                .map_or(wait.end, |woken| woken.min(wait.end));
            let woke = if wakers && sleeps {
                self.waker
            } else {
                NO_WAKER
            };
            let row = StackRow {
                waker: woke.thread,
                waker_stack: woke.stack,
                ..row(doing)
            };
            rows[0] = add(row, until.saturating_sub(left));
        }
        if let Some(woken) = woken {
            rows[1] = add(row(ThreadState::Woken), wait.end.saturating_sub(woken));
        }
        EndedWaits { rows, ns: all }
    }
}
