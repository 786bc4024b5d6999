//! What is kept of one task.

use event::sched::Leaves;
use model::{RetiredThreads, RunState, SpanEnd, TaskSpan};

use crate::Stats;

/// Wakers, and tasks that preempted, are kept apart up to so many for each task.
const MAX_OTHERS: usize = 64;
/// For so many more there is room once a list is full.
const OTHERS_AT_ONCE: usize = 8;

/// What a task waits for, as `perf sched latency` sees it (`enum thread_state`, `tools/perf/builtin-sched.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Atom {
    /// It had none so far.
    None,
    Sleeping,
    /// For its CPU.
    WaitCpu,
    /// It got its CPU, or its wake-up was later than that: the wait is over either way.
    Done,
}

/// Stands for no time.
const NEVER: u64 = u64::MAX;

/// Counts of others that did something to a task.
#[derive(Debug, Clone, Default)]
pub(crate) struct OtherTasks {
    /// Slot, count and time of each: a hundred thousand tasks have such a list, so it is no longer than it must be.
    list: Vec<(u32, u32, u64)>,
    /// What is beyond the list.
    rest: (u64, u64),
}

impl OtherTasks {
    fn add(&mut self, other: u32, count: u32, ns: u64) {
        if let Some(item) = self.list.iter_mut().find(|item| item.0 == other) {
            item.1 = item.1.saturating_add(count);
            item.2 = item.2.saturating_add(ns);
        } else if self.list.len() < MAX_OTHERS {
            if self.list.len() == self.list.capacity() {
                self.list.reserve_exact(OTHERS_AT_ONCE);
            }
            self.list.push((other, count, ns));
        } else {
            let count = u64::from(count);
            self.rest.0 += count;
            self.rest.1 = self.rest.1.saturating_add(ns);
        }
    }

    /// Returns slot, count and time of each, and what is not kept apart.
    pub(super) fn all(&self) -> impl Iterator<Item = (Option<u32>, u64, u64)> + '_ {
        let listed = self.list.iter();
        let listed = listed.map(|&(slot, n, ns)| (Some(slot), u64::from(n), ns));
        let rest = (self.rest.0 > 0).then_some((None, self.rest.0, self.rest.1));
        listed.chain(rest)
    }

    /// Forgets who those are that are not kept apart any more.
    fn retire(&mut self, retired: &RetiredThreads) {
        let rest = &mut self.rest;
        self.list.retain(|&(slot, count, ns)| {
            let past = retired.has_slot(slot);
            if past {
                rest.0 += u64::from(count);
                rest.1 = rest.1.saturating_add(ns);
            }
            !past
        });
    }

    /// Adds those of another task.
    pub(super) fn merge(&mut self, other: &OtherTasks) {
        for &(slot, count, ns) in &other.list {
            self.add(slot, count, ns);
        }
        self.rest.0 += other.rest.0;
        self.rest.1 = self.rest.1.saturating_add(other.rest.1);
    }
}

/// Shorter waits are nobody's longest: of most tasks nothing is kept.
const SHORT_NS: u64 = 1_000_000;

/// The longest wait for a CPU, after a wake-up or a preemption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeptWait {
    pub ns: u64,
    /// Since when.
    pub since: u64,
    /// Slot of the task that had the CPU for the longest part of it.
    pub behind: Option<u32>,
}

/// The longest waits of a task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeptWaits {
    /// The longest one that is over.
    longest: KeptWait,
    /// Of the wait that began then, the longest part behind one task.
    part: KeptWait,
}

impl KeptWaits {
    /// Takes a part of a wait, where this is the longest part of the one under way.
    fn take_part(&mut self, span: &TaskSpan) {
        if self.part.since != span.since || span.ns() > self.part.ns {
            self.part = KeptWait {
                ns: span.ns(),
                since: span.since,
                behind: span.behind,
            };
        }
    }

    fn keep(&mut self, wait: KeptWait) {
        if wait.ns > self.longest.ns {
            self.longest = wait;
        }
    }
}

/// What is counted of one task, or of several.
#[derive(Debug, Clone, Default)]
pub(crate) struct SchedSums {
    pub runtime_ns: u64,
    pub delays: Stats,
    pub delay_max_at: u64,
    pub on_cpu_ns: u64,
    pub off_cpu_ns: u64,
    /// Waits after it was woken, by whichever event says so.
    pub woken_waits: Stats,
    pub preempted: Stats,
    pub preempted_by: OtherTasks,
    /// `None` where no wait was long.
    kept_waits: Option<Box<KeptWaits>>,
    pub woken_by: OtherTasks,
    pub migrations: u64,
    pub cpu_changes: u64,
}

impl SchedSums {
    /// Adds those of another task.
    pub(super) fn merge(&mut self, other: &SchedSums) {
        self.runtime_ns = self.runtime_ns.saturating_add(other.runtime_ns);
        if other.delays.max() > self.delays.max() {
            self.delay_max_at = other.delay_max_at;
        }
        self.delays.merge(&other.delays);
        self.on_cpu_ns = self.on_cpu_ns.saturating_add(other.on_cpu_ns);
        self.off_cpu_ns = self.off_cpu_ns.saturating_add(other.off_cpu_ns);
        self.woken_waits.merge(&other.woken_waits);
        self.preempted.merge(&other.preempted);
        self.preempted_by.merge(&other.preempted_by);
        if let Some(wait) = other.longest_wait() {
            self.kept_waits.get_or_insert_default().keep(wait);
        }
        self.woken_by.merge(&other.woken_by);
        self.migrations += other.migrations;
        self.cpu_changes += other.cpu_changes;
    }

    /// Returns the longest wait that is over.
    pub(super) fn longest_wait(&self) -> Option<KeptWait> {
        let kept = self.kept_waits.as_deref().map(|kept| kept.longest);
        kept.filter(|wait| wait.ns > 0)
    }

    /// Takes a part of a wait.
    #[inline]
    fn waits(&mut self, span: &TaskSpan) {
        if span.ns() >= SHORT_NS {
            self.kept_waits.get_or_insert_default().take_part(span);
        }
    }

    /// A wait is over.
    #[inline]
    fn waited(&mut self, span: &TaskSpan) {
        let ns = span.whole_ns();
        if ns < SHORT_NS {
            return;
        }
        let kept = self.kept_waits.get_or_insert_default();
        let part = match kept.part.since == span.since {
            true => kept.part.behind,
            false => span.behind,
        };
        kept.keep(KeptWait {
            ns,
            since: span.since,
            behind: part,
        });
    }

    /// Forgets who those are that are not kept apart any more.
    pub(super) fn retire(&mut self, retired: &RetiredThreads) {
        self.preempted_by.retire(retired);
        self.woken_by.retire(retired);
        let past = |wait: &mut KeptWait| {
            wait.behind = wait.behind.filter(|slot| !retired.has_slot(*slot));
        };
        if let Some(kept) = &mut self.kept_waits {
            past(&mut kept.longest);
            past(&mut kept.part);
        }
    }
}

/// What perf thinks that one task does, and what is counted of it.
#[derive(Debug, Clone)]
pub(crate) struct SchedTask {
    /// Since when it waits, if it does.
    atom_since: u64,
    /// Time of its last atom.
    atom_at: u64,
    /// Since when it runs a work item.
    work_since: u64,
    /// The function of the work item a kworker runs.
    work: u32,
    /// The CPU it ran on last.
    cpu: i32,
    atom: Atom,
    /// What is counted of it.
    pub own: Box<SchedSums>,
}

impl Default for SchedTask {
    fn default() -> SchedTask {
        SchedTask {
            atom_since: 0,
            atom_at: 0,
            work_since: NEVER,
            work: 0,
            cpu: event::NONE,
            atom: Atom::None,
            own: Box::default(),
        }
    }
}

/// Returns what stands in for no time.
fn known(time: u64) -> Option<u64> {
    (time != NEVER).then_some(time)
}

impl SchedTask {
    /// Whether it had any event that perf would have a row for.
    pub(super) fn has_atoms(&self) -> bool {
        self.atom != Atom::None
    }

    fn wait(&mut self, atom: Atom, since: u64, at: u64) {
        (self.atom, self.atom_since, self.atom_at) = (atom, since, at);
    }

    /// It leaves its CPU, and wants it back if it is `runnable`.
    pub(super) fn leaves(&mut self, time: u64, runnable: bool) {
        let atom = match runnable {
            true => Atom::WaitCpu,
            false => Atom::Sleeping,
        };
        self.wait(atom, time, time);
    }

    /// It gets a CPU. Returns how long it waited for it, where perf counts that.
    pub(super) fn gets(&mut self, time: u64, cpu: i32) -> Option<u64> {
        let sums = &mut *self.own;
        if self.cpu != cpu && self.cpu != event::NONE {
            sums.cpu_changes += 1;
        }
        self.cpu = cpu;
        let since = match self.atom {
            Atom::None => {
                self.atom_at = time;
                time
            }
            Atom::WaitCpu => self.atom_since,
            Atom::Sleeping | Atom::Done => return None,
        };
        self.atom = Atom::Done;
        let delay = time.checked_sub(since)?;
        if delay > sums.delays.max() {
            sums.delay_max_at = since;
        }
        sums.delays.add(delay);
        Some(delay)
    }

    /// It leaves a CPU that was not asked for: it may be woken by what was.
    pub(super) fn leaves_elsewhere(&mut self, time: u64, leaves: Leaves) {
        self.gets_elsewhere();
        if leaves == Leaves::Blocked && self.has_atoms() {
            self.wait(Atom::Sleeping, time, time);
        }
    }

    /// It gets a CPU that was not asked for: its wait is over, and does not count.
    pub(super) fn gets_elsewhere(&mut self) {
        if self.has_atoms() {
            self.atom = Atom::Done;
        }
    }

    /// It is woken by an event that was not asked for: the wait that begins does not count.
    pub(super) fn woken_elsewhere(&mut self) {
        if self.atom == Atom::Sleeping {
            self.atom = Atom::Done;
        }
    }

    /// It ran for a while, says `sched_stat_runtime`.
    pub(super) fn ran(&mut self, time: u64, ns: u64) {
        if self.atom == Atom::None {
            self.wait(Atom::WaitCpu, time, time);
        }
        let sums = &mut *self.own;
        sums.runtime_ns = sums.runtime_ns.saturating_add(ns);
    }

    /// It is woken.
    pub(super) fn woken(&mut self, time: u64) {
        if self.atom == Atom::None {
            self.wait(Atom::Sleeping, time, time);
        }
        // One that is on a run queue already, or leaves it only later, is woken for nothing.
        if self.atom == Atom::Sleeping && self.atom_at <= time {
            (self.atom, self.atom_since) = (Atom::WaitCpu, time);
        }
    }

    /// Counts what it did, `whole` if all of it was asked for, and when it gets a CPU for how long it was away from
    /// one.
    pub(super) fn did(&mut self, span: &TaskSpan, whole: bool, away_ns: u64) {
        let sums = &mut *self.own;
        let ns = span.whole_ns();
        if span.ended_by == SpanEnd::GotCpu {
            sums.off_cpu_ns = sums.off_cpu_ns.saturating_add(away_ns);
        }
        if span.state.is_runnable() {
            sums.waits(span);
        }
        match (span.state, span.ended_by) {
            _ if !whole => {}
            (RunState::Running, SpanEnd::LeftCpu) => {
                sums.on_cpu_ns = sums.on_cpu_ns.saturating_add(ns);
            }
            (RunState::Woken, SpanEnd::GotCpu) => {
                sums.woken_waits.add(ns);
                sums.waited(span);
            }
            (RunState::Preempted, SpanEnd::GotCpu) => {
                sums.preempted.add(ns);
                sums.waited(span);
                sums.preempted_by.add(span.taken_by.unwrap_or(0), 1, ns);
            }
            _ => {}
        }
    }

    /// Counts what it does still when what was asked for ends.
    pub(super) fn does(&mut self, running_ns: u64, away_ns: u64) {
        let sums = &mut *self.own;
        sums.on_cpu_ns = sums.on_cpu_ns.saturating_add(running_ns);
        sums.off_cpu_ns = sums.off_cpu_ns.saturating_add(away_ns);
    }

    /// It is woken by another.
    pub(super) fn woken_by(&mut self, waker: u32) {
        let sums = &mut *self.own;
        sums.woken_by.add(waker, 1, 0);
    }

    /// It is moved to another CPU.
    pub(super) fn migrates(&mut self) {
        self.own.migrations += 1;
    }

    /// A kworker begins a work item of a function.
    pub(super) fn work_begins(&mut self, time: u64, function: u32) {
        (self.work_since, self.work) = (time, function);
    }

    /// It ends the work item, which it began then, and whose function that is.
    pub(super) fn work_ends(&mut self) -> Option<(u64, u32)> {
        let since = known(std::mem::replace(&mut self.work_since, NEVER))?;
        Some((since, self.work))
    }
}

#[cfg(test)]
mod tests {
    use event::NONE;

    use super::*;

    use event::sched::TaskState;

    const SLEEPS: bool = false;

    /// What a task did from 100 to 140, and before that since 90.
    fn span(state: RunState, ended_by: SpanEnd) -> TaskSpan {
        TaskSpan {
            thread: 1,
            state,
            start: 100,
            end: 140,
            ended_by,
            since: 90,
            began_on: NONE,
            cpu: 0,
            left: None,
            left_as: TaskState(0),
            taken_by: Some(7),
            waker: None,
            behind: None,
        }
    }

    #[test]
    fn what_every_task_leaves_behind_is_small() {
        assert!(size_of::<SchedTask>() <= 48, "{}", size_of::<SchedTask>());
        assert!(size_of::<SchedSums>() <= 384, "{}", size_of::<SchedSums>());
    }

    #[test]
    fn a_wake_up_begins_a_wait_and_a_cpu_ends_it() {
        let mut task = SchedTask::default();
        task.leaves(100, SLEEPS);
        task.woken(150);
        task.woken(160);
        assert_eq!(task.gets(190, 1), Some(40));
        task.leaves(250, SLEEPS);
        task.woken(240);
        assert_eq!(task.gets(300, 2), None, "woken before it slept");
        let own = &task.own;
        assert_eq!((own.delays.count(), own.delays.max()), (1, 40));
        assert_eq!((own.delay_max_at, own.cpu_changes), (150, 1));
    }

    #[test]
    fn a_task_that_yields_waits_and_one_that_is_preempted_does_not_for_perf() {
        let mut task = SchedTask::default();
        task.leaves(100, true);
        assert_eq!(task.gets(130, 0), Some(30));
        task.leaves(200, SLEEPS);
        assert_eq!(task.gets(270, 0), None);
    }

    #[test]
    fn spans_count_when_they_end_as_they_should_and_were_asked_for() {
        let mut task = SchedTask::default();
        let mut did = |state, ended_by, whole| {
            task.did(&span(state, ended_by), whole, 60);
        };
        did(RunState::Preempted, SpanEnd::GotCpu, true);
        did(RunState::Preempted, SpanEnd::Behind, true);
        did(RunState::Woken, SpanEnd::GotCpu, true);
        did(RunState::Woken, SpanEnd::GotCpu, false);
        did(RunState::Woken, SpanEnd::Missed, true);
        did(RunState::Asleep, SpanEnd::GotCpu, true);
        did(RunState::Asleep, SpanEnd::Woken, true);
        did(RunState::Running, SpanEnd::LeftCpu, true);
        did(RunState::Running, SpanEnd::LeftCpu, false);
        did(RunState::Running, SpanEnd::Missed, true);
        let own = &task.own;
        let by: Vec<_> = own.preempted_by.all().collect();
        assert_eq!(by, [(Some(7), 1, 50)]);
        let waits = (own.preempted.total(), own.woken_waits.total());
        assert_eq!(waits, (50, 50));
        assert_eq!((own.on_cpu_ns, own.off_cpu_ns), (50, 4 * 60));
    }

    #[test]
    fn a_task_that_is_seen_getting_a_cpu_first_has_waited_for_nothing() {
        let mut task = SchedTask::default();
        assert_eq!(task.gets(500, 3), Some(0));
        let own = &task.own;
        assert_eq!((own.delays.count(), own.delays.max()), (1, 0));
    }

    #[test]
    fn a_delay_counts_only_if_its_own_wake_up_and_its_own_switch_do() {
        let mut task = SchedTask::default();
        task.leaves(100, SLEEPS);
        // Woken here, it gets another CPU; much later it gets this one without having been woken here.
        task.woken(150);
        task.gets_elsewhere();
        task.leaves_elsewhere(300, Leaves::Blocked);
        task.woken_elsewhere();
        assert_eq!(task.gets(9_000, 1), None);
        // It slept elsewhere, is woken here, and gets this CPU.
        task.leaves(9_100, SLEEPS);
        task.gets_elsewhere();
        task.leaves_elsewhere(9_300, Leaves::Blocked);
        task.woken(9_400);
        assert_eq!(task.gets(9_450, 1), Some(50));
        // It was preempted elsewhere.
        task.leaves(9_500, true);
        task.gets_elsewhere();
        task.leaves_elsewhere(9_600, Leaves::Runnable);
        assert_eq!(task.gets(9_900, 1), None);
        assert_eq!(task.own.delays.max(), 50);
    }

    #[test]
    fn others_are_kept_apart_up_to_a_limit() {
        let mut task = SchedTask::default();
        for waker in 0..100 {
            task.woken_by(waker);
            task.woken_by(waker);
        }
        let own = &task.own;
        let all: Vec<_> = own.woken_by.all().collect();
        assert_eq!(all.len(), MAX_OTHERS + 1);
        assert_eq!(all.last(), Some(&(None, 72, 0)));
    }
}
