//! What is kept of one task.

use event::sched::{Leaves, TaskState};

use crate::Stats;

/// Wakers, and tasks that preempted, are kept apart up to so many for each task.
const MAX_OTHERS: usize = 64;

/// What a task waits for, as `perf sched latency` sees it (`enum thread_state`, `tools/perf/builtin-sched.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Atom {
    Sleeping,
    /// For its CPU, since when.
    WaitCpu(u64),
    /// It got its CPU, or its wake-up was later than that: the wait is over either way.
    Done,
}

/// Counts of others that did something to a task.
#[derive(Debug, Clone, Default)]
pub(crate) struct Others {
    list: Vec<(u32, u64, u64)>,
    /// What is beyond the list.
    rest: (u64, u64),
}

impl Others {
    fn add(&mut self, other: u32, count: u64, ns: u64) {
        if let Some(item) = self.list.iter_mut().find(|item| item.0 == other) {
            item.1 += count;
            item.2 = item.2.saturating_add(ns);
        } else if self.list.len() < MAX_OTHERS {
            self.list.push((other, count, ns));
        } else {
            self.rest.0 += count;
            self.rest.1 = self.rest.1.saturating_add(ns);
        }
    }

    /// Returns slot, count and time of each, and what is not kept apart.
    pub fn all(&self) -> impl Iterator<Item = (Option<u32>, u64, u64)> + '_ {
        let listed = self.list.iter().map(|&(slot, n, ns)| (Some(slot), n, ns));
        let rest = (self.rest.0 > 0).then_some((None, self.rest.0, self.rest.1));
        listed.chain(rest)
    }

    /// Adds those of another task.
    pub fn merge(&mut self, other: &Others) {
        for &(slot, count, ns) in &other.list {
            self.add(slot, count, ns);
        }
        self.rest.0 += other.rest.0;
        self.rest.1 = self.rest.1.saturating_add(other.rest.1);
    }
}

/// One task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// Time of its last atom; `None` before it had one.
    atom: Option<(Atom, u64)>,
    pub runtime_ns: u64,
    pub delays: Stats,
    pub delay_max_at: u64,
    /// Since when it runs.
    running: Option<u64>,
    pub on_cpu_ns: u64,
    /// Since when it waits after it was preempted, and by whom.
    preempted_since: Option<(u64, u32)>,
    /// Since when it waits after it was woken.
    woken_since: Option<u64>,
    /// Waits after it was woken, by whichever event says so.
    pub woken_waits: Stats,
    pub preempted: Stats,
    pub preempted_by: Others,
    pub woken_by: Others,
    pub migrations: u64,
    /// The CPU it ran on last.
    cpu: i32,
    pub cpu_changes: u64,
    /// The work item a kworker runs: since when, and which function.
    pub work: Option<(u64, u32)>,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            atom: None,
            runtime_ns: 0,
            delays: Stats::default(),
            delay_max_at: 0,
            running: None,
            on_cpu_ns: 0,
            preempted_since: None,
            woken_since: None,
            woken_waits: Stats::default(),
            preempted: Stats::default(),
            preempted_by: Others::default(),
            woken_by: Others::default(),
            migrations: 0,
            cpu: event::NONE,
            cpu_changes: 0,
            work: None,
        }
    }
}

impl Task {
    /// Whether anything was told of it that perf would have a row for.
    pub fn has_atoms(&self) -> bool {
        self.atom.is_some()
    }

    /// It leaves its CPU, which `next` gets.
    pub fn leaves(&mut self, time: u64, state: TaskState, next: u32) {
        // perf looks at the state as a whole: a task that is preempted, which has a bit of its own since 4.14, is
        // no runnable one to it.
        self.atom = Some(if state.0 == 0 {
            (Atom::WaitCpu(time), time)
        } else {
            (Atom::Sleeping, time)
        });
        if let Some(since) = self.running.take() {
            self.on_cpu_ns = self.on_cpu_ns.saturating_add(time.saturating_sub(since));
        }
        self.woken_since = None;
        let runnable = state.leaves() == Leaves::Runnable;
        self.preempted_since = runnable.then_some((time, next));
    }

    /// It gets a CPU. Returns how long it waited for it, where perf counts that.
    pub fn gets(&mut self, time: u64, cpu: i32) -> Option<u64> {
        if self.cpu != cpu && self.cpu != event::NONE {
            self.cpu_changes += 1;
        }
        self.cpu = cpu;
        self.running = Some(time);
        if let Some(since) = self.woken_since.take() {
            self.woken_waits.add(time.saturating_sub(since));
        }
        if let Some((since, by)) = self.preempted_since.take() {
            let ns = time.saturating_sub(since);
            self.preempted.add(ns);
            self.preempted_by.add(by, 1, ns);
        }
        let &mut (atom, at) = self.atom.get_or_insert((Atom::WaitCpu(time), time));
        let Atom::WaitCpu(since) = atom else {
            return None;
        };
        self.atom = Some((Atom::Done, at));
        let delay = time.checked_sub(since)?;
        if delay > self.delays.max() {
            self.delay_max_at = since;
        }
        self.delays.add(delay);
        Some(delay)
    }

    /// It ran for a while, says `sched_stat_runtime`.
    pub fn ran(&mut self, time: u64, ns: u64) {
        self.atom.get_or_insert((Atom::WaitCpu(time), time));
        self.runtime_ns = self.runtime_ns.saturating_add(ns);
    }

    /// It is woken.
    pub fn woken(&mut self, time: u64) {
        let atom = self.atom.get_or_insert((Atom::Sleeping, time));
        // One that is on a run queue already, or leaves it only later, is woken for nothing.
        if atom.0 == Atom::Sleeping && atom.1 <= time {
            atom.0 = Atom::WaitCpu(time);
        }
    }

    /// It is woken, as far as its own wait is concerned: it was asleep, unless it was seen to run, or to be
    /// preempted. A wake-up that is told `again` is later than was thought.
    pub fn wakes(&mut self, time: u64, again: bool) {
        let asleep = self.running.is_none() && self.preempted_since.is_none();
        if asleep && (again || self.woken_since.is_none()) {
            self.woken_since = Some(time);
        }
    }

    /// It is woken by another.
    pub fn woken_by(&mut self, waker: u32) {
        self.woken_by.add(waker, 1, 0);
    }

    /// Ends the walk: what it ran until now.
    pub fn on_cpu_ns(&self, end: u64) -> u64 {
        let running = self.running.map_or(0, |since| end.saturating_sub(since));
        self.on_cpu_ns.saturating_add(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNABLE: TaskState = TaskState(0);
    const SLEEPS: TaskState = TaskState(1);

    #[test]
    fn a_wake_up_begins_a_wait_and_a_cpu_ends_it() {
        let mut task = Task::default();
        task.leaves(100, SLEEPS, 9);
        task.woken(150);
        task.woken(160);
        assert_eq!(task.gets(190, 1), Some(40));
        task.leaves(250, SLEEPS, 9);
        task.woken(240);
        assert_eq!(task.gets(300, 2), None, "woken before it slept");
        assert_eq!((task.delays.count(), task.delays.max()), (1, 40));
        assert_eq!((task.delay_max_at, task.on_cpu_ns(310)), (150, 60 + 10));
        assert_eq!(task.cpu_changes, 1);
    }

    #[test]
    fn a_task_that_yields_waits_and_one_that_is_preempted_does_not_for_perf() {
        let mut task = Task::default();
        task.leaves(100, RUNNABLE, 7);
        assert_eq!(task.gets(130, 0), Some(30));
        task.leaves(200, TaskState::PREEMPTED, 8);
        assert_eq!(task.gets(270, 0), None);
        assert_eq!((task.preempted.count(), task.preempted.total()), (2, 100));
        let by: Vec<_> = task.preempted_by.all().collect();
        assert_eq!(by, [(Some(7), 1, 30), (Some(8), 1, 70)]);
    }

    #[test]
    fn a_task_that_is_seen_getting_a_cpu_first_has_waited_for_nothing() {
        let mut task = Task::default();
        assert_eq!(task.gets(500, 3), Some(0));
        assert_eq!((task.delays.count(), task.delays.max()), (1, 0));
    }

    #[test]
    fn others_are_kept_apart_up_to_a_limit() {
        let mut task = Task::default();
        for waker in 0..100 {
            task.woken_by(waker);
            task.woken_by(waker);
        }
        let all: Vec<_> = task.woken_by.all().collect();
        assert_eq!(all.len(), MAX_OTHERS + 1);
        assert_eq!(all.last(), Some(&(None, 72, 0)));
    }
}
