//! Lanes of CPUs and of threads, from the events of the scheduler.
//!
//! What CPUs and threads do [`model::TaskStates`] says. A thread has a lane from its first span on.

use event::{NONE, index_of};
use model::{CpuSpan, Machine, RunState, SpanEnd, TaskChanges, TaskSpan, Threads};
use rustc_hash::FxHashSet;

use super::cell::{NOBODY, Stretch};
use super::class::{BACK_END, CPU_UNKNOWN, OTHER, Processes, class};
use super::lane::{Lane, Ranges};
use crate::chosen::Window;

/// Threads that are followed at once. When there are more, the half that ran least is given up.
const MAX_THREADS: usize = 512;
/// Stands for a thread that is not followed.
const NO_ONE: u32 = u32::MAX;

/// States of threads.
pub(crate) const RUNNING: u8 = 0;
const RUNNABLE: u8 = 1;
const SLEEPING: u8 = 2;
const BLOCKED: u8 = 3;
const THREAD_UNKNOWN: u8 = 4;

/// The bit of a task that sleeps uninterruptibly (`TASK_UNINTERRUPTIBLE`, `include/linux/sched.h`).
const UNINTERRUPTIBLE: u64 = 2;

/// How lanes are kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Caps {
    pub cpus: usize,
    pub threads: usize,
}

/// A CPU.
#[derive(Debug, Clone, Default)]
pub(super) struct CpuLane {
    pub lane: Lane,
}

/// A thread.
#[derive(Debug, Clone)]
pub(crate) struct ThreadLane {
    pub slot: u32,
    pub lane: Lane,
    /// How long it ran.
    pub ran_ns: u64,
    /// Whether an instance of a path went through it.
    pub takes_part: bool,
}

/// CPUs and threads.
#[derive(Debug, Default)]
pub(crate) struct TaskLanes {
    pub(super) cpus: Vec<CpuLane>,
    /// By thread slot, where it is in the list.
    places: Vec<u32>,
    pub(super) threads: Vec<ThreadLane>,
    pub(super) processes: Processes,
    /// Threads that were given up.
    pub given_up: u64,
    /// Time of the last event.
    pub(super) end: u64,
    /// The threads and CPUs that are wanted, where only parts are.
    pub(super) only: Option<Box<LaneRanges>>,
}

/// Parts that are wanted.
#[derive(Debug, Default)]
pub(crate) struct LaneRanges {
    pub cpus: rustc_hash::FxHashMap<i32, Ranges>,
    pub threads: rustc_hash::FxHashMap<i32, Ranges>,
}

/// Returns how a stretch of a CPU's lane is summed.
fn settled(one: &Stretch, threads: &Threads, of_vms: &FxHashSet<i32>) -> u8 {
    match one.kind {
        CPU_UNKNOWN => CPU_UNKNOWN,
        _ => class(one.what, threads, of_vms),
    }
}

/// A thread's stretches are summed as what they are.
fn as_is(one: &Stretch) -> u8 {
    one.kind
}

impl TaskLanes {
    /// Returns one that looks at parts only.
    pub(crate) fn of_parts(only: LaneRanges) -> TaskLanes {
        TaskLanes {
            only: Some(Box::new(only)),
            ..TaskLanes::default()
        }
    }

    /// Returns whether only parts are wanted, and all of them are past.
    pub(crate) fn is_past(&self) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|only| only.cpus.is_empty() && only.threads.is_empty())
            && self.cpus.iter().all(|cpu| cpu.lane.is_past())
            && self.threads.iter().all(|one| one.lane.is_past())
    }

    /// Says that an instance of a path went through a thread.
    pub(crate) fn takes_part(&mut self, slot: u32) {
        if let Some(one) = followed(&mut self.threads, &self.places, slot) {
            one.takes_part = true;
        }
    }

    /// Takes what an event of the scheduler has ended.
    #[inline]
    pub(crate) fn take(
        &mut self,
        changes: &TaskChanges,
        machine: &Machine,
        window: &Window,
        caps: Caps,
    ) {
        if changes.switch.is_some() {
            self.processes.learn(machine);
        }
        if let Some(span) = &changes.cpu {
            self.ran(span, machine.threads(), window, caps);
        }
        for span in &changes.tasks {
            if let Some(one) = self.follow(span.thread, machine.threads()) {
                one.push(span, window, caps);
            }
        }
    }

    pub(super) fn cpu(&mut self, cpu: i32) -> Option<&mut CpuLane> {
        let index = event::cpu_index(cpu)?;
        while self.cpus.len() <= index {
            let mut new = CpuLane::default();
            if let Some(only) = &mut self.only {
                let number = i32::try_from(self.cpus.len()).unwrap_or(NONE);
                new.lane = Lane::of_ranges(only.cpus.remove(&number).unwrap_or_default());
            }
            self.cpus.push(new);
        }
        self.cpus.get_mut(index)
    }

    /// A CPU ran a task.
    fn ran(&mut self, span: &CpuSpan, threads: &Threads, window: &Window, caps: Caps) {
        let one = Stretch {
            start: span.start,
            end: span.end,
            kind: span.thread.map_or(CPU_UNKNOWN, |_| OTHER),
            cpu: span.cpu,
            what: span.thread.unwrap_or(NOBODY),
            behind: NOBODY,
        };
        // It has a lane, if nothing in it.
        let at = self.cpu(span.cpu).and(usize::try_from(span.cpu).ok());
        let of_vms = &self.processes.of_vms;
        if let Some(one) = window_of(window, one)
            && let Some(cpu) = at.and_then(|at| self.cpus.get_mut(at))
        {
            cpu.lane
                .push(one, caps.cpus, &|one| settled(one, threads, of_vms));
        }
    }

    /// Returns a thread that is to have a lane: not the idle task, and no vCPU's, which have lanes of their own.
    #[inline]
    pub(super) fn follow(&mut self, slot: u32, threads: &Threads) -> Option<&mut ThreadLane> {
        let index = index_of(slot);
        let known = self.places.get(index).is_some_and(|at| *at != NO_ONE);
        if !known && !self.meet(slot, threads) {
            return None;
        }
        followed(&mut self.threads, &self.places, slot)
    }

    /// Begins to follow a thread, if it is to have a lane.
    #[cold]
    fn meet(&mut self, slot: u32, threads: &Threads) -> bool {
        let Some((tid, thread)) = threads.at(slot) else {
            return false;
        };
        if tid <= 0 || thread.is_vcpu {
            return false;
        }
        let lane = match &mut self.only {
            None => Lane::default(),
            // A thread id that is used again is another thread's.
            Some(only) => match only.threads.remove(&tid) {
                Some(ranges) => Lane::of_ranges(ranges),
                None => return false,
            },
        };
        if self.threads.len() >= MAX_THREADS {
            self.give_up(threads);
        }
        let index = index_of(slot);
        if self.places.len() <= index {
            self.places.resize(index + 1, NO_ONE);
        }
        if let Some(place) = self.places.get_mut(index) {
            *place = self.threads.len() as u32;
        }
        self.threads.push(ThreadLane {
            slot,
            lane,
            ran_ns: 0,
            takes_part: false,
        });
        true
    }

    /// Gives up the half that ran least; back ends, and those that instances of paths went through, last.
    fn give_up(&mut self, threads: &Threads) {
        let mut all = std::mem::take(&mut self.threads);
        all.retain(|one| {
            threads
                .at(one.slot)
                .is_some_and(|(_, known)| !known.is_vcpu)
        });
        let of_vms = &self.processes.of_vms;
        all.sort_by_key(|one| std::cmp::Reverse(one.rank(class(one.slot, threads, of_vms))));
        self.given_up += all.len().saturating_sub(MAX_THREADS / 2) as u64;
        all.truncate(MAX_THREADS / 2);
        self.threads = all;
        self.find_places();
    }

    /// Finds out where each thread is in the list.
    pub(super) fn find_places(&mut self) {
        self.places.fill(NO_ONE);
        for (one, at) in self.threads.iter().zip(0u32..) {
            let slot = index_of(one.slot);
            if self.places.len() <= slot {
                self.places.resize(slot + 1, NO_ONE);
            }
            if let Some(place) = self.places.get_mut(slot) {
                *place = at;
            }
        }
    }

    /// Takes note of the time of an event.
    pub(crate) fn passes(&mut self, time: u64) {
        self.end = self.end.max(time);
    }

    /// Ends all lanes: what a CPU or thread was last seen doing, it did until the last event.
    pub(crate) fn finish(&mut self, machine: &Machine, window: &Window, caps: Caps) {
        let tasks = machine.task_states();
        for one in &mut self.threads {
            if let Some(span) = tasks.open(one.slot, self.end) {
                one.push(&span, window, caps);
            }
            one.lane.finish(caps.threads, &as_is);
        }
        for span in tasks.running(self.end) {
            self.ran(&span, machine.threads(), window, caps);
        }
        let of_vms = &self.processes.of_vms;
        let settle = |one: &Stretch| settled(one, machine.threads(), of_vms);
        for cpu in &mut self.cpus {
            cpu.lane.finish(caps.cpus, &settle);
        }
    }

    /// Returns how many cells each lane has: CPUs', and threads'.
    pub(crate) fn cells(&self) -> (impl Iterator<Item = usize>, impl Iterator<Item = usize>) {
        let cpus = self.cpus.iter().map(|cpu| cpu.lane.len());
        (cpus, self.threads.iter().map(|one| one.lane.len()))
    }

    /// Takes the lanes of CPUs out, each made to fit into a number, with what their tasks are to them.
    pub(crate) fn take_cpus(&mut self, cap: usize, machine: &Machine) -> Vec<Lane> {
        self.processes.learn(machine);
        let of_vms = &self.processes.of_vms;
        let threads = machine.threads();
        let mut lanes: Vec<Lane> = Vec::new();
        for cpu in std::mem::take(&mut self.cpus) {
            let mut lane = cpu.lane;
            lane.fit(cap, &|one| settled(one, threads, of_vms));
            lanes.push(lane);
        }
        lanes
    }

    /// Takes the threads out that ran, those that come first before the others, with whether they are back ends.
    pub(crate) fn take_threads(&mut self, machine: &Machine) -> Vec<(ThreadLane, bool)> {
        self.processes.learn(machine);
        let of_vms = &self.processes.of_vms;
        let threads = machine.threads();
        let mut all: Vec<(ThreadLane, u8)> = std::mem::take(&mut self.threads)
            .into_iter()
            .filter(|one| one.lane.len() > 0)
            .filter(|one| {
                threads
                    .at(one.slot)
                    .is_some_and(|(_, known)| !known.is_vcpu)
            })
            .map(|one| {
                let class = class(one.slot, threads, of_vms);
                (one, class)
            })
            .collect();
        all.sort_by_key(|(one, class)| std::cmp::Reverse(one.rank(*class)));
        all.into_iter()
            .map(|(one, class)| (one, class == BACK_END))
            .collect()
    }

    /// Returns what a task that runs is to a CPU.
    pub(crate) fn class(&self, slot: u32, threads: &Threads) -> u8 {
        class(slot, threads, &self.processes.of_vms)
    }
}

impl ThreadLane {
    /// What comes first: those that work for VMs, of them those that ran most.
    fn rank(&self, class: u8) -> (bool, u64, std::cmp::Reverse<u32>) {
        let first = self.takes_part || class == BACK_END;
        (first, self.ran_ns, std::cmp::Reverse(self.slot))
    }

    /// Adds what it did.
    fn push(&mut self, span: &TaskSpan, window: &Window, caps: Caps) {
        let kind = match span.state {
            // An event was not seen that would say until when it did so.
            _ if span.ended_by == SpanEnd::Missed => THREAD_UNKNOWN,
            RunState::Unknown => THREAD_UNKNOWN,
            RunState::Running => RUNNING,
            RunState::Preempted | RunState::Woken => RUNNABLE,
            _ if span.left_as.0 & UNINTERRUPTIBLE != 0 => BLOCKED,
            RunState::Asleep | RunState::Stopped => SLEEPING,
        };
        let one = Stretch {
            start: span.start,
            end: span.end,
            kind,
            cpu: span.cpu,
            what: 0,
            behind: span.behind.filter(|_| kind == RUNNABLE).unwrap_or(NOBODY),
        };
        if let Some(one) = window_of(window, one) {
            if kind == RUNNING {
                self.ran_ns = self.ran_ns.saturating_add(one.ns());
            }
            self.lane.push(one, caps.threads, &as_is);
        }
    }
}

/// Returns a thread that is followed.
#[inline]
fn followed<'t>(
    list: &'t mut [ThreadLane],
    places: &[u32],
    slot: u32,
) -> Option<&'t mut ThreadLane> {
    let at = *places.get(index_of(slot))?;
    list.get_mut(index_of(at))
}

/// Returns the part of a stretch that is in the window; `None` if nothing is.
#[inline]
pub(crate) fn window_of(window: &Window, one: Stretch) -> Option<Stretch> {
    let mut one = one;
    if let Some((from, to)) = window.time {
        one.start = one.start.max(from);
        one.end = one.end.min(to);
    }
    (one.start < one.end && window.has_cpu(one.cpu)).then_some(one)
}
