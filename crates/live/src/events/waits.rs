//! How long vCPUs and other threads waited for a CPU, after what, and behind whom.

use std::collections::VecDeque;

use analysis::{Analysis, Context, EventDetail, Needs, States, Turn};
use event::{Data, Event, EventType, Kind};
use model::{BySlot, Follow, Machine, Span, State};
use rustc_hash::FxHashMap;
use stats::Stats;

use crate::seeds::{Seed, ThreadSeed};

/// Wake-ups of a thread that are remembered until its spans come. The machine keeps fewer spans.
const WAKES: usize = 256;

/// What was counted of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadWaits {
    pub(super) woken: Stats,
    pub(super) preempted: Stats,
    /// Behind whom, by the thread's slot: how often, and for how long.
    pub(super) behind: FxHashMap<Option<u32>, (u64, u64)>,
    /// The wait that goes on, and whether a wake-up began it.
    wait_ns: u64,
    was_woken: bool,
    /// The state before.
    last: Option<State>,
    /// Times of wake-ups, of which the spans are still to come.
    wakes: VecDeque<u64>,
}

impl ThreadWaits {
    fn take(&mut self, span: &Span) {
        while self.wakes.front().is_some_and(|at| *at < span.start) {
            self.wakes.pop_front();
        }
        if span.state != State::Runnable {
            self.close();
        } else {
            if self.wait_ns == 0 {
                let slept = [State::Halted, State::KernelBlocked, State::UserBlocked];
                self.was_woken = self.last.is_some_and(|last| slept.contains(&last))
                    || self.wakes.front() == Some(&span.start);
            }
            self.wait_ns += span.ns();
            let sum = self.behind.entry(span.behind).or_default();
            sum.0 += 1;
            sum.1 += span.ns();
        }
        self.last = Some(span.state);
    }

    /// The wait is over, if there was one.
    fn close(&mut self) {
        let ns = std::mem::take(&mut self.wait_ns);
        if ns > 0 {
            let stats = match self.was_woken {
                true => &mut self.woken,
                false => &mut self.preempted,
            };
            stats.add(ns);
        }
    }
}

/// Counts waits for a CPU, and has threads followed that no event of KVM shows.
#[derive(Debug, Default)]
pub(super) struct WaitCounter {
    /// By the machine's number.
    waited: BySlot<ThreadWaits>,
    /// Who is to be followed, and from when on.
    seeds: Vec<(i32, i32, Follow)>,
    from: Option<u64>,
    /// The VM's process of each thread that is no vCPU.
    vms: FxHashMap<i32, i32>,
}

impl WaitCounter {
    /// Follows these threads, once it has begun.
    pub(super) fn follow(&mut self, vcpus: &[Seed], threads: &[ThreadSeed]) {
        let vcpus = vcpus.iter();
        let vcpus = vcpus.map(|one| (one.tid, one.pid, Follow::Vcpu(one.number)));
        let others = threads.iter().map(|one| {
            let (asleep, cpu) = (one.asleep, one.cpu);
            (one.tid, one.vm_pid, Follow::Other { asleep, cpu })
        });
        self.seeds.extend(vcpus.chain(others));
        self.vms
            .extend(threads.iter().map(|one| (one.tid, one.vm_pid)));
    }

    /// Begins.
    pub(super) fn begin(&mut self, from: u64) {
        self.from = Some(from);
    }

    /// Returns the process of the VM that a thread works for.
    pub(super) fn vm_of(&self, tid: i32) -> Option<i32> {
        self.vms.get(&tid).copied()
    }

    /// Returns how many things are kept.
    pub(super) fn len(&self) -> usize {
        let behind = self.waited.iter().map(|(_, one)| one.behind.len());
        self.waited.len() + behind.sum::<usize>()
    }

    fn waited(&mut self, vcpu: u32) -> &mut ThreadWaits {
        self.waited.entry(vcpu, ThreadWaits::default)
    }

    /// Returns what was counted of a thread, with the spans that the machine still keeps.
    pub(super) fn of(&self, vcpu: u32, machine: &Machine) -> ThreadWaits {
        let mut waited = self.waited.get(vcpu).cloned().unwrap_or_default();
        for span in machine.kept(vcpu) {
            waited.take(&span);
        }
        if machine.state(vcpu) != State::Runnable {
            waited.close();
        }
        waited
    }
}

impl Analysis for WaitCounter {
    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            spans: true,
            ..Needs::default()
        }
    }

    fn turn(&self) -> Turn {
        Turn::Before
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::SchedWakeup | Kind::SchedSwitch | Kind::KvmExit | Kind::KvmEntry => {
                EventDetail::Order
            }
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if let Some(from) = self.from
            && !self.seeds.is_empty()
        {
            for (tid, pid, follow) in self.seeds.drain(..) {
                context.machine.follow(tid, pid, from, follow);
            }
        }
        // Who is followed later is so from the next event on.
        self.from = self.from.map(|_| event.time);
        if let Data::SchedWakeup(wakeup) = data
            && let Some(vcpu) = context.machine.vcpu_of(wakeup.tid)
        {
            let wakes = &mut self.waited(vcpu).wakes;
            if wakes.len() == WAKES {
                wakes.pop_front();
            }
            wakes.push_back(event.time);
        }
    }

    fn spans(&mut self, spans: &[Span], _: &Context<'_>) {
        for span in spans {
            self.waited(span.vcpu).take(span);
        }
    }
}
