//! Where threads were and what they waited for, as stacks: on their CPUs when perf sampled them, without a CPU from one
//! switch to the next.
//!
//! A sample is of the host's kernel or user space, or of a guest that ran there (`perf kvm --guest record`). Of a guest
//! there is an address and no stack: the kernel samples its own stacks alone (`perf_callchain` in
//! `kernel/events/core.c`).
//!
//! A stack comes with its event (`perf record -g`), as an event behind it (ftrace's `options/stacktrace`), or line by
//! line below it (texts of either).

mod build;
mod calls;
mod deferred;
mod doing;
mod log;
mod naming;
mod off_cpu;
mod off_cpu_sums;
mod options;
mod report;
mod share;
mod splice;
mod sums;
mod user;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use doubts::{Concern, Concerns};
use event::{
    Body, CallChain, Data, Event, EventType, KERNEL_STACK, Kind, NONE, Side, StackFrame,
    kernel_stack,
};
use model::{Machine, RetiredThreads, TaskChanges};
use rustc_hash::FxHashMap;
use stacks::{ROOT, Weight};
use symbols::{CpuMode, KernelFile, ThreadName, UserUnwinder};

use crate::analysis::{Analysis, Context, EventDetail, FilterScope, Needs};
use crate::chosen::Window;
use calls::{Calls, CodePlace, Comm, Mode, NOBODY, StackRow};
use deferred::{DeferredSample, DeferredSamples};
pub use doing::ThreadState;
pub use naming::FunctionNamer;
pub(crate) use naming::is_idle_function;
use off_cpu::{OffCpu, Waker};
pub use off_cpu_sums::{OffCpuRow, OffCpuSums, WaitedTime};
pub use options::{ProfileBy, ProfileOf, ProfileOptions};
pub use report::{ProfileContext, ProfileReport, ProfileRow, ProfileUnit, ProfileVm};
pub use splice::{GuestSide, SplicedVcpu, VcpuBy, VcpuThread};
pub(crate) use sums::unit_of;
pub use sums::{ProfileSums, ProfileThread, SampleUnit, SampledTime, is_function, plain};

/// What a stack is of that has yet to come.
#[derive(Debug, Clone, Copy)]
enum Waiting {
    /// A sample of an event and of a thread.
    Sample(u32, u32, Mode, Weight),
    /// The thread in a slot, which has left its CPU.
    Left(u32),
    /// The thread in a slot, which is being woken.
    Woken(u32),
}

/// Collects stacks.
#[derive(Debug)]
pub struct Profile {
    options: ProfileOptions,
    calls: Calls,
    off: OffCpu,
    /// The events that were sampled, in the order in which they were met: number, name, samples.
    events: Vec<(u32, String, Weight)>,
    /// Exits that do not say where the guest was.
    nowhere: u64,
    /// By CPU, the thread of the last event, and what the stack is of that may follow as an event.
    stack_event: FxHashMap<i32, (i32, Waiting)>,
    /// Samples whose callers in user space have yet to come.
    deferred: DeferredSamples,
    /// What the lines of a stack are of that may follow: CPU and thread of its event.
    lines: Option<(i32, i32, Waiting)>,
    /// The row of the last sample, and what it weighed.
    last: Option<(u32, Weight)>,
}

impl Profile {
    /// Returns a collector that has seen nothing. `known` are the kernels and modules that the recording has build ids
    /// of.
    pub fn new(options: ProfileOptions, known: &[KernelFile<'_>]) -> Profile {
        let mut off = OffCpu::default();
        off.wakers = options.wakers;
        Profile {
            options,
            calls: Calls::new(known),
            off,
            events: Vec::new(),
            nowhere: 0,
            stack_event: FxHashMap::default(),
            deferred: DeferredSamples::default(),
            lines: None,
            last: None,
        }
    }

    /// Has stacks of user space made of registers and of what was on the stack, where that was recorded.
    pub fn unwinding(mut self, unwinder: Box<dyn UserUnwinder>) -> Profile {
        self.calls.unwinder = Some(unwinder);
        self
    }

    /// Returns which part of threads' time it is of.
    pub fn of(&self) -> ProfileOf {
        self.options.of
    }

    /// Returns whether any sample has come.
    pub fn has_samples(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns the processes of the VMs of whose guests there are samples.
    pub fn guests(&self) -> Vec<i32> {
        let of_guest = self.calls.places.iter().filter_map(|place| match place {
            CodePlace::Code(code) if code.guest_of != NONE => Some(code.guest_of),
            _ => None,
        });
        let guests: BTreeSet<i32> = of_guest.collect();
        guests.into_iter().collect()
    }

    fn by_cpu(&self) -> bool {
        self.options.by == ProfileBy::Cpu
    }

    /// Counts a sample of an event, and returns the event's number here.
    fn event_number(&mut self, ty: &EventType<'_>, weight: Weight) -> u32 {
        let known = self
            .events
            .iter()
            .position(|(index, ..)| *index == ty.index);
        let at = known.unwrap_or_else(|| {
            let event = (ty.index, ty.label.to_owned(), Weight::default());
            self.events.push(event);
            self.events.len() - 1
        });
        self.events[at].2.add(weight);
        at as u32
    }

    /// Returns the number of the event that is shown: the one of time that has the most samples, if any is of time,
    /// else the first that was met.
    fn shown_event(&self) -> Option<u32> {
        let numbered = self.events.iter().zip(0u32..);
        let of_time = numbered.filter(|((_, label, _), _)| unit_of(label).is_some());
        let most = of_time.max_by_key(|((_, _, sum), number)| (sum.samples, Reverse(*number)));
        let first = (!self.events.is_empty()).then_some(0);
        most.map(|(_, number)| number).or(first)
    }

    /// Whether an event is a sample, where none was asked for by its name. A text does not say of its events which are
    /// tracepoints: perf prints a period before those that are none.
    fn is_sample(&self, event: &Event<'_>) -> bool {
        let of_text = matches!(event.body, Body::Text { .. }) && self.options.event.is_none();
        !of_text || event.sample.is_some() || unit_of(event.ty.label).is_some()
    }

    /// Takes a sample.
    fn sample(&mut self, event: &Event<'_>, machine: &mut Machine) {
        let weight = Weight {
            samples: 1,
            amount: event.sample.and_then(|sample| sample.period).unwrap_or(1),
        };
        let number = self.event_number(event.ty, weight);
        let misc = event.sample.map_or(1, |sample| sample.misc);
        let slot = machine.slot(event.tid);
        if self.options.switches() && event.tid != 0 {
            self.off.is_sampled(slot, event.time, machine.task_states());
        }
        let by_cpu = self.by_cpu();
        let (thread, space, mode) = self.calls.running(event, misc, slot, by_cpu);
        let waiting = Waiting::Sample(number, thread, Mode::of(mode), weight);
        match event.sample.filter(|sample| has_stack(sample)) {
            Some(sample) => {
                let stack = self.calls.sampled(sample, event.pid, space, mode);
                let Some(cookie) = sample.callchain.and_then(CallChain::deferred) else {
                    return self.has_stack(waiting, stack);
                };
                let one = DeferredSample {
                    of: waiting,
                    places: self.calls.places(),
                    pid: event.pid,
                    space,
                    mode,
                };
                if let Some(one) = self.deferred.keep(event.tid, cookie, one) {
                    self.has_stack(one.of, stack);
                }
            }
            None => self.awaits(event, event.tid, waiting),
        }
    }

    /// A stack is known.
    fn has_stack(&mut self, of: Waiting, stack: u32) {
        match of {
            Waiting::Sample(event, thread, mode, weight) => {
                let row = StackRow {
                    event,
                    thread,
                    doing: ThreadState::Runs,
                    mode,
                    stack,
                    waker: NOBODY,
                    waker_stack: ROOT,
                };
                self.last = self.calls.add(row, weight).map(|row| (row, weight));
            }
            Waiting::Left(slot) => self.off.left_with(slot, stack),
            Waiting::Woken(slot) => self.off.woken_with(slot, stack),
        }
    }

    /// The stack of an event may follow, if it did not come with it. `tid` is the thread that it is of.
    fn awaits(&mut self, event: &Event<'_>, tid: i32, of: Waiting) {
        if let Body::Text { text, .. } = event.body {
            self.calls.begin_lines();
            // A sample without a stack has its place in its own line.
            let own = event.sample.and_then(|_| StackFrame::parse(text));
            if let Some(frame) = own {
                self.calls.line(&frame);
            }
            self.lines = Some((event.cpu, tid, of));
        } else if matches!(event.body, Body::Raw(_)) && event::cpu_index(event.cpu).is_some() {
            self.stack_event.insert(event.cpu, (tid, of));
        } else {
            self.has_stack(of, ROOT);
        }
    }

    /// The lines of a stack end with the next event.
    fn lines_end(&mut self) {
        if let Some((cpu, tid, of)) = self.lines.take() {
            // Between an event and the stack that ftrace writes behind it others may come, from other CPUs.
            if !self.calls.has_lines() && cpu != NONE {
                self.stack_event.insert(cpu, (tid, of));
                return;
            }
            let stack = self.calls.end_lines();
            let of = match of {
                Waiting::Sample(event, thread, _, weight) => {
                    Waiting::Sample(event, thread, self.calls.mode_of(stack), weight)
                }
                other => other,
            };
            self.has_stack(of, stack);
        }
    }

    /// Another event follows on a CPU: the one before it has no stack, or this is it.
    fn stack_event_ends(&mut self, event: &Event<'_>) -> bool {
        let is_stack = event.ty.name == KERNEL_STACK;
        if let Some((tid, of)) = self.stack_event.remove(&event.cpu) {
            let its = is_stack && tid == event.tid;
            if its && matches!(event.body, Body::Text { .. }) {
                self.calls.begin_lines();
                // If no lines follow, it has no stack.
                self.lines = Some((NONE, tid, of));
                return true;
            }
            let stack = match its {
                true => self.calls.kernel(kernel_stack(event)),
                false => ROOT,
            };
            self.has_stack(of, stack);
        }
        is_stack
    }

    /// Takes an event that has a stack of its own, if it has one, else it may follow.
    fn stack_of(&mut self, event: &Event<'_>, tid: i32, of: Waiting, space: Space) {
        match event.sample.filter(|sample| has_stack(sample)) {
            Some(sample) => {
                let mode = CpuMode::of(sample.misc);
                let stack = self.calls.sampled(sample, event.pid, space, mode);
                // A wait is over, or goes on, before its callers come.
                self.deferred.without +=
                    u64::from(sample.callchain.and_then(CallChain::deferred).is_some());
                self.has_stack(of, stack);
            }
            None => self.awaits(event, tid, of),
        }
    }

    fn switch(
        &mut self,
        event: &Event<'_>,
        switch: &event::sched::SchedSwitch,
        machine: &Machine,
        window: &Window,
    ) {
        let model::Tasks { prev, task: next } = machine.tasks();
        let cpu = if self.by_cpu() { event.cpu } else { NONE };
        let misc = event.sample.map_or(1, |sample| sample.misc);
        let space = self
            .calls
            .addresses
            .running(CpuMode::of(misc), event.pid, event.tid)
            .1;
        let spans = &machine.task_states().changes().tasks;
        let did = |slot: u32, thread: u32, off: &mut OffCpu, calls: &mut Calls| {
            for span in spans.iter().filter(|span| span.thread == slot) {
                off.did(span, thread, window, calls);
            }
        };
        if switch.next_tid != 0 {
            let comm = Comm::named(switch.next_comm.as_bytes(), switch.next_tid);
            let thread = self.calls.thread(next, &comm, cpu);
            did(next, thread, &mut self.off, &mut self.calls);
            self.off.gets(next, thread);
        }
        if switch.prev_tid != 0 {
            let comm = Comm::named(switch.prev_comm.as_bytes(), switch.prev_tid);
            let thread = self.calls.thread(prev, &comm, cpu);
            did(prev, thread, &mut self.off, &mut self.calls);
            self.off.leaves(prev, thread, event.time);
            self.stack_of(event, switch.prev_tid, Waiting::Left(prev), space);
        }
    }

    fn wakeup(
        &mut self,
        event: &Event<'_>,
        wakeup: &event::sched::SchedWakeup,
        machine: &mut Machine,
    ) {
        if wakeup.tid == 0 {
            return;
        }
        let slot = machine.tasks().task;
        let cpu = if self.by_cpu() { event.cpu } else { NONE };
        let comm = Comm::named(wakeup.comm.as_bytes(), wakeup.tid);
        let thread = self.calls.thread(slot, &comm, cpu);
        self.off.wakes(slot, thread);
        if !self.off.wakers {
            return;
        }
        let waker_slot = machine.slot(event.tid);
        let misc = event.sample.map_or(1, |sample| sample.misc);
        let (waker, space, _) = self.calls.running(event, misc, waker_slot, false);
        let by = Waker {
            thread: waker,
            stack: ROOT,
        };
        self.off.woken_by(slot, by);
        self.stack_of(event, event.tid, Waiting::Woken(slot), space);
    }

    /// Takes where a guest was when it exited.
    fn exit(&mut self, event: &Event<'_>, exit: &event::KvmExit, machine: &mut Machine) {
        let Some(pc) = exit.guest_pc else {
            self.nowhere += 1;
            return;
        };
        let weight = Weight {
            samples: 1,
            amount: 1,
        };
        let number = self.event_number(event.ty, weight);
        let slot = machine.slot(event.tid);
        let (thread, ..) = self
            .calls
            .running(event, 1, slot, self.options.by == ProfileBy::Cpu);
        let stack = self.calls.exited(exit.reason, pc, event.pid);
        self.has_stack(Waiting::Sample(number, thread, Mode::Guest, weight), stack);
    }

    fn take(&mut self, event: &Event<'_>, data: &Data, machine: &mut Machine, window: &Window) {
        self.lines_end();
        if self.stack_event_ends(event) {
            return;
        }
        let mut is_sample = self.options.samples();
        if self.options.switches() {
            self.off.end = self.off.end.max(event.time);
            match data {
                Data::SchedSwitch(switch) => self.switch(event, switch, machine, window),
                Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => {
                    self.wakeup(event, wakeup, machine);
                }
                _ => {}
            }
            is_sample &= !event.ty.kind.is_sched();
        }
        if is_sample && self.is_sample(event) {
            self.sample(event, machine);
        } else if let Data::KvmExit(exit) = data
            && self.options.of == ProfileOf::Exits
        {
            self.exit(event, exit, machine);
        }
    }
}

/// What a process has mapped, if that is known.
type Space = Option<symbols::SpaceId>;

/// Whether a sample has a stack, or at least an address that is its own.
fn has_stack(sample: &event::EventSample<'_>) -> bool {
    let own = |_: &u64| !sample.tracepoint;
    sample.callchain.is_some() || sample.ip.as_ref().is_some_and(own)
}

impl Analysis for Profile {
    fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
        self.off.retire(retired);
        self.calls.retire(retired, machine);
    }

    fn filter_scope(&self) -> Option<FilterScope> {
        Some(match self.options.switches() {
            true => FilterScope::Window,
            false => FilterScope::Events,
        })
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::Stacks])
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            task_spans: self.options.switches(),
            samples: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let sampled = match &self.options.event {
            Some(name) => is_called(ty, name),
            // What has neither a format nor a subsystem is no tracepoint.
            None => ty.format.is_none() && ty.system.is_empty() && ty.kind == Kind::Other,
        };
        let switches = matches!(
            ty.kind,
            Kind::SchedSwitch | Kind::SchedWaking | Kind::SchedWakeup | Kind::SchedWakeupNew
        );
        let wanted = ty.name == KERNEL_STACK
            || self.options.samples() && sampled
            || self.options.switches() && switches
            || self.options.of == ProfileOf::Exits && ty.kind == Kind::KvmExit;
        match wanted {
            true => EventDetail::Order,
            // Until when threads were watched.
            false if self.options.switches() && ty.kind.is_sched() => EventDetail::Head,
            false => EventDetail::Nothing,
        }
    }

    fn head(&mut self, event: &Event<'_>, context: &mut Context<'_>) {
        if context.chosen.inside {
            self.off.end = self.off.end.max(event.time);
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        // A thread is followed whoever's event it is in.
        let chosen = match self.options.switches() {
            true => context.chosen.inside,
            false => context.chosen.counts,
        };
        if chosen {
            self.take(event, data, context.machine, context.window);
        }
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        if !context.chosen.in_time {
            for span in &changes.tasks {
                self.off.still(span, context.window, &mut self.calls);
            }
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        match side {
            Side::StackLine(frame) if self.lines.is_some() => self.calls.line(frame),
            Side::DeferredStack {
                tid, cookie, chain, ..
            } => {
                for one in self.deferred.take(*tid, *cookie) {
                    let stack = self.calls.joined(&one, *chain);
                    self.has_stack(one.of, stack);
                }
            }
            _ => self.calls.side(side),
        }
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.lines_end();
        for one in self.deferred.rest() {
            let stack = self.calls.joined(&one, CallChain::new(&[], false));
            self.has_stack(one.of, stack);
        }
        let left: Vec<Waiting> = self.stack_event.drain().map(|(_, (_, of))| of).collect();
        for of in left {
            self.has_stack(of, ROOT);
        }
        let tasks = context.machine.task_states();
        self.off.finish(tasks, context.window, &mut self.calls);
    }
}

/// Whether a kind of events is meant by a name: as the recording calls it, without modifiers, or by the event's name
/// alone.
fn is_called(ty: &EventType<'_>, name: &str) -> bool {
    let without = ty.label.split_once(':').map_or(ty.label, |(name, _)| name);
    let full = !ty.system.is_empty() && name == format!("{}:{}", ty.system, ty.name);
    full || [ty.label, ty.name].contains(&name) || ty.system.is_empty() && without == name
}
