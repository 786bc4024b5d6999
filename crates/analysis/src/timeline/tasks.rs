//! Lanes of CPUs and of threads, from the events of the scheduler.
//!
//! What a CPU ran is known from the switch that ends it: a switch away from another task than the one that the CPU had switched to
//! shows that one was missed, as [`crate::Sched`] has it. A thread is followed from its first event of the scheduler. A
//! runnable thread waits behind each task that its CPU runs meanwhile, as [`model::Machine`] has it for vCPUs.

use event::sched::{Leaves, TaskState};
use event::{Data, Event, Kind, NONE};
use model::{Machine, Threads};
use rustc_hash::FxHashSet;

use super::cell::{NOBODY, Stretch};
use super::class::{BACK_END, CPU_UNKNOWN, OTHER, Processes, class};
use super::lane::{Lane, Ranges};
use crate::chosen::Window;

/// Threads that are followed at once. When there are more, the half that ran least is given up.
const MAX_THREADS: usize = 512;
/// Threads that wait for one CPU at once, of which it is kept behind whom.
const MAX_WAITING: usize = 1 << 8;
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
pub(super) struct Cpu {
    pub lane: Lane,
    /// Task that runs, and since when.
    pub current: Option<(u32, u64)>,
    /// Threads on its run queue.
    pub waiting: Vec<u32>,
}

/// A thread.
#[derive(Debug, Clone)]
pub(crate) struct Followed {
    pub slot: u32,
    pub lane: Lane,
    /// What it does, and since when; [`THREAD_UNKNOWN`] where that is not known.
    pub(super) state: u8,
    pub(super) since: u64,
    /// The CPU it runs on, ran on last, or waits for.
    pub(super) cpu: i32,
    /// How long it ran.
    pub ran_ns: u64,
    /// Whether an instance of a path went through it.
    pub takes_part: bool,
}

/// CPUs and threads.
#[derive(Debug, Default)]
pub(crate) struct Scheduled {
    pub(super) cpus: Vec<Cpu>,
    /// By thread slot, where it is in the list.
    places: Vec<u32>,
    pub(super) threads: Vec<Followed>,
    pub(super) processes: Processes,
    /// Threads that were given up.
    pub given_up: u64,
    /// There are sched_wakeup events, which say when a thread is on a run queue.
    pub(super) wakeups: bool,
    /// Time of the last event.
    pub(super) end: u64,
    /// The threads and CPUs that are wanted, where only parts are.
    pub(super) only: Option<Box<Only>>,
}

/// Parts that are wanted.
#[derive(Debug, Default)]
pub(crate) struct Only {
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

impl Scheduled {
    /// Returns one that looks at parts only.
    pub(crate) fn of_parts(only: Only) -> Scheduled {
        Scheduled {
            only: Some(Box::new(only)),
            ..Scheduled::default()
        }
    }

    /// Says that there are sched_wakeup events.
    pub(crate) fn has_wakeups(&mut self) {
        self.wakeups |= self.end == 0;
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

    /// Takes an event of the scheduler, which the machine has taken.
    #[inline]
    pub(crate) fn take(
        &mut self,
        event: &Event<'_>,
        data: &Data,
        machine: &Machine,
        window: &Window,
        caps: Caps,
    ) {
        self.end = self.end.max(event.time);
        let tasks = machine.tasks();
        match data {
            Data::SchedSwitch(switch) => {
                self.processes.learn(machine);
                self.ran(event, tasks.prev, machine.threads(), window, caps);
                self.leaves(
                    event,
                    tasks.prev,
                    switch.prev_state,
                    machine.threads(),
                    window,
                    caps,
                );
                self.gets(
                    event,
                    (tasks.prev, tasks.task),
                    machine.threads(),
                    window,
                    caps,
                );
            }
            Data::SchedWakeup(wakeup) => {
                self.wakeups |= event.ty.kind == Kind::SchedWakeup;
                self.wakes(
                    event.time,
                    tasks.task,
                    wakeup.target_cpu,
                    machine,
                    window,
                    caps,
                );
            }
            Data::SchedWaking(wakeup) if !self.wakeups => {
                self.wakes(
                    event.time,
                    tasks.task,
                    wakeup.target_cpu,
                    machine,
                    window,
                    caps,
                );
            }
            Data::SchedMigrateTask(migrate) => {
                self.moves(event.time, tasks.task, migrate.dest_cpu, window, caps);
            }
            _ => {}
        }
    }

    pub(super) fn cpu(&mut self, cpu: i32) -> Option<&mut Cpu> {
        let index = event::cpu_index(cpu)?;
        while self.cpus.len() <= index {
            let mut new = Cpu::default();
            if let Some(only) = &mut self.only {
                let number = i32::try_from(self.cpus.len()).unwrap_or(NONE);
                new.lane = Lane::of_ranges(only.cpus.remove(&number).unwrap_or_default());
            }
            self.cpus.push(new);
        }
        self.cpus.get_mut(index)
    }

    /// A CPU ran a task until now, and whoever waited there waited behind it.
    fn ran(
        &mut self,
        event: &Event<'_>,
        prev: u32,
        threads: &Threads,
        window: &Window,
        caps: Caps,
    ) {
        let (time, number) = (event.time, event.cpu);
        let Some(cpu) = self.cpu(number) else {
            return;
        };
        let before = cpu.current.take();
        let mut waiting = std::mem::take(&mut cpu.waiting);
        if let Some((task, since)) = before {
            let kind = if task == prev { OTHER } else { CPU_UNKNOWN };
            let one = Stretch {
                start: since,
                end: time,
                kind,
                cpu: number,
                what: if kind == OTHER { task } else { NOBODY },
                behind: NOBODY,
            };
            let of_vms = &self.processes.of_vms;
            if let Some(one) = window_of(window, one)
                && let Some(cpu) = usize::try_from(number)
                    .ok()
                    .and_then(|at| self.cpus.get_mut(at))
            {
                cpu.lane
                    .push(one, caps.cpus, &|one| settled(one, threads, of_vms));
            }
        }
        waiting.retain(|slot| {
            let Some(one) = followed(&mut self.threads, &self.places, *slot) else {
                return false;
            };
            let waits = one.state == RUNNABLE && one.cpu == number;
            if waits && *slot != prev {
                one.becomes(RUNNABLE, time, number, prev, window, caps);
            }
            waits
        });
        if let Some(cpu) = self.cpu(number) {
            cpu.waiting = waiting;
        }
    }

    /// A task leaves its CPU.
    fn leaves(
        &mut self,
        event: &Event<'_>,
        slot: u32,
        state: TaskState,
        threads: &Threads,
        window: &Window,
        caps: Caps,
    ) {
        let Some(one) = self.follow(slot, threads) else {
            return;
        };
        let (time, cpu) = (event.time, event.cpu);
        if one.state != RUNNING || one.cpu != cpu {
            // It was not seen to get it.
            one.state = THREAD_UNKNOWN;
        }
        let next = match state.leaves() {
            Leaves::Runnable => RUNNABLE,
            Leaves::Blocked if state.0 & UNINTERRUPTIBLE != 0 => BLOCKED,
            Leaves::Blocked => SLEEPING,
            Leaves::Dead => THREAD_UNKNOWN,
        };
        one.becomes(next, time, cpu, NOBODY, window, caps);
        if state.leaves() == Leaves::Dead {
            one.since = u64::MAX;
        }
        if next == RUNNABLE {
            self.queue(cpu, slot);
        }
    }

    /// A task gets a CPU from another.
    fn gets(
        &mut self,
        event: &Event<'_>,
        (prev, next): (u32, u32),
        threads: &Threads,
        window: &Window,
        caps: Caps,
    ) {
        let (time, cpu) = (event.time, event.cpu);
        if let Some(one) = self.cpu(cpu) {
            one.current = Some((next, time));
        }
        let Some(one) = self.follow(next, threads) else {
            return;
        };
        if one.state == RUNNING {
            // It was not seen to leave it.
            one.state = THREAD_UNKNOWN;
        }
        let behind = if one.cpu == cpu { prev } else { NOBODY };
        one.becomes(RUNNING, time, cpu, behind, window, caps);
    }

    /// A thread that slept is on a run queue.
    fn wakes(
        &mut self,
        time: u64,
        slot: u32,
        target: Option<i32>,
        machine: &Machine,
        window: &Window,
        caps: Caps,
    ) {
        let Some(one) = self.follow(slot, machine.threads()) else {
            return;
        };
        if matches!(one.state, RUNNING | RUNNABLE) {
            return;
        }
        let cpu = target.unwrap_or(one.cpu);
        one.becomes(RUNNABLE, time, one.cpu, NOBODY, window, caps);
        one.cpu = cpu;
        self.queue(cpu, slot);
    }

    /// A thread is moved to another CPU.
    fn moves(&mut self, time: u64, slot: u32, to: i32, window: &Window, caps: Caps) {
        let Some(one) = followed(&mut self.threads, &self.places, slot) else {
            return;
        };
        // One that sleeps has an event again when it is woken.
        if one.state != RUNNABLE || one.cpu == to {
            return;
        }
        let from = one.cpu;
        let behind = self.cpu(from).and_then(|cpu| cpu.current);
        let behind = behind.map_or(NOBODY, |(task, _)| task);
        if let Some(one) = followed(&mut self.threads, &self.places, slot) {
            one.becomes(RUNNABLE, time, from, behind, window, caps);
            one.cpu = to;
        }
        self.queue(to, slot);
    }

    fn queue(&mut self, cpu: i32, slot: u32) {
        if let Some(cpu) = self.cpu(cpu)
            && cpu.waiting.len() < MAX_WAITING
            && !cpu.waiting.contains(&slot)
        {
            cpu.waiting.push(slot);
        }
    }

    /// Returns a thread that is to have a lane: not the idle task, and no vCPU's, which have lanes of their own.
    #[inline]
    pub(super) fn follow(&mut self, slot: u32, threads: &Threads) -> Option<&mut Followed> {
        let index = slot as usize;
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
        let index = slot as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, NO_ONE);
        }
        if let Some(place) = self.places.get_mut(index) {
            *place = self.threads.len() as u32;
        }
        self.threads.push(Followed {
            slot,
            lane,
            state: THREAD_UNKNOWN,
            since: u64::MAX,
            cpu: NONE,
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
            let slot = one.slot as usize;
            if self.places.len() <= slot {
                self.places.resize(slot + 1, NO_ONE);
            }
            if let Some(place) = self.places.get_mut(slot) {
                *place = at;
            }
        }
    }

    /// Takes note of the time of an event that tells nothing of threads.
    pub(crate) fn passes(&mut self, time: u64) {
        self.end = self.end.max(time);
    }

    /// Ends all lanes: what a CPU or thread was last seen doing, it did until the last event.
    pub(crate) fn finish(&mut self, machine: &Machine, window: &Window, caps: Caps) {
        let end = self.end;
        for one in &mut self.threads {
            let on = usize::try_from(one.cpu).ok();
            let current = on.and_then(|at| self.cpus.get(at)?.current);
            let behind = current.map_or(NOBODY, |(task, _)| task);
            let cpu = one.cpu;
            one.becomes(THREAD_UNKNOWN, end, cpu, behind, window, caps);
            one.lane.finish(caps.threads, &as_is);
        }
        let of_vms = &self.processes.of_vms;
        let settle = |one: &Stretch| settled(one, machine.threads(), of_vms);
        for (cpu, number) in self.cpus.iter_mut().zip(0i32..) {
            if let Some((task, since)) = cpu.current.take() {
                let one = Stretch {
                    start: since,
                    end,
                    kind: OTHER,
                    cpu: number,
                    what: task,
                    behind: NOBODY,
                };
                if let Some(one) = window_of(window, one) {
                    cpu.lane.push(one, caps.cpus, &settle);
                }
            }
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
    pub(crate) fn take_threads(&mut self, machine: &Machine) -> Vec<(Followed, bool)> {
        self.processes.learn(machine);
        let of_vms = &self.processes.of_vms;
        let threads = machine.threads();
        let mut all: Vec<(Followed, u8)> = std::mem::take(&mut self.threads)
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

impl Followed {
    /// What comes first: those that work for VMs, of them those that ran most.
    fn rank(&self, class: u8) -> (bool, u64, std::cmp::Reverse<u32>) {
        let first = self.takes_part || class == BACK_END;
        (first, self.ran_ns, std::cmp::Reverse(self.slot))
    }

    /// It did what it did until now, and does something else from now on. `behind` is whom it waited behind, if it waited.
    fn becomes(
        &mut self,
        state: u8,
        time: u64,
        cpu: i32,
        behind: u32,
        window: &Window,
        caps: Caps,
    ) {
        let one = Stretch {
            start: self.since,
            end: time,
            kind: self.state,
            cpu: self.cpu,
            what: 0,
            behind: if self.state == RUNNABLE {
                behind
            } else {
                NOBODY
            },
        };
        if let Some(one) = window_of(window, one) {
            if self.state == RUNNING {
                self.ran_ns = self.ran_ns.saturating_add(one.ns());
            }
            self.lane.push(one, caps.threads, &as_is);
        }
        (self.state, self.since, self.cpu) = (state, time, cpu);
    }
}

/// Returns a thread that is followed.
#[inline]
fn followed<'t>(list: &'t mut [Followed], places: &[u32], slot: u32) -> Option<&'t mut Followed> {
    let at = *places.get(slot as usize)?;
    list.get_mut(at as usize)
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
