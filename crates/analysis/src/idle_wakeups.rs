//! What it takes an idle CPU to run a thread of a VM that was woken for it: above all to leave its idle state.
//!
//! `power:cpu_idle` (`include/trace/events/power.h`) comes when a CPU enters an idle state, with the state's number,
//! and when it has left it, with [`IDLE_EXIT`]; the latter before interrupts are on again, so before whatever the
//! wake-up then does there (`cpuidle_enter_state` in `drivers/cpuidle/cpuidle.c`). A wake-up begins with
//! `sched_waking`, on the waker's CPU. `sched_wakeup` of a task for an idle CPU mostly comes from that CPU, when it has
//! left its state (`ttwu_queue_cond` in `kernel/sched/core.c`), so it is no beginning here where there is the other.
//!
//! An interrupt for an idle CPU waits for the same, before any event: what a timer or a device wakes there has no
//! beginning that is recorded, and is not counted.

use event::{Data, Event, EventType, Kind, cpu_index, index_of};
use model::{ByNumber, BySlot, Machine, RetiredThreads, TaskChanges};

use crate::Stats;
use crate::analysis::{Analysis, Context, EventDetail, Needs};
use crate::record::{Number, Radix};

/// The state in the event of a CPU that has left one: `PWR_EVENT_EXIT`, -1 in 32 bits
/// (`include/trace/events/power.h`).
const IDLE_EXIT: u64 = u32::MAX as u64;
/// Idle states of a CPU that are counted apart: `CPUIDLE_STATE_MAX` (`include/linux/cpuidle.h`) is 10. What is beyond
/// is counted with the last.
const MOST_STATES: usize = 16;
/// Stands for no time.
const NEVER: u64 = u64::MAX;

/// A thread of a VM, or one that works for VMs, that was woken for idle CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdleWakeupsRow {
    /// Its id.
    pub tid: i32,
    /// Its name, if known.
    pub comm: Option<String>,
    /// Whether it is a vCPU's.
    pub is_vcpu: bool,
    /// Times that it was woken for a CPU that was idle until it ran.
    pub count: u64,
    /// What that took in all, from the wake-up to when it ran.
    pub ns: u64,
    /// Times that the CPU was in an idle state other than 0 after the wake-up.
    pub deep_count: u64,
    /// How long the CPU was in it then, up to when it had left it.
    pub deep_ns: u64,
    /// The longest of these: from when until when.
    pub longest: Option<(u64, u64)>,
    /// The longest of all: from the wake-up until it ran.
    pub longest_wait: Option<(u64, u64)>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IdleWakeupsReport {
    /// By thread, those that waited longest for idle states first.
    pub rows: Vec<IdleWakeupsRow>,
    /// From the wake-up to when the thread ran, on CPUs that were idle until then.
    pub waits: Stats,
    /// By idle state, how long CPUs were still in it after the wake-up.
    pub states: Vec<(u32, Stats)>,
    /// Whether idle states were recorded (`power:cpu_idle`).
    pub has_states: bool,
    /// Whether the beginnings of wake-ups were recorded (`sched_waking`).
    pub has_wakings: bool,
}

/// The idle state of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct CpuState {
    /// The state that it is in, and since when.
    now: Option<(usize, u64)>,
    /// The one that it left last: which, from when, until when.
    last: Option<(usize, u64, u64)>,
}

/// Follows CPUs into their idle states and out of them.
#[derive(Debug, Default)]
pub struct IdleWakeups {
    /// By kind of event: state and CPU of `power:cpu_idle`.
    kinds: Vec<Option<(Number, Number)>>,
    cpus: Vec<CpuState>,
    /// By thread slot, when it was woken, if it has not run since.
    woken: BySlot<u64>,
    rows: ByNumber<(u32, IdleWakeupsRow)>,
    waits: Stats,
    states: [Stats; MOST_STATES],
    has_states: bool,
    has_wakings: bool,
}

impl IdleWakeups {
    /// Returns one that has seen nothing.
    pub fn new() -> IdleWakeups {
        IdleWakeups::default()
    }

    /// Takes a kind of events, and returns whether it is about idle states.
    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize_with(index + 1, || None);
        }
        let is_idle = ty.name == "cpu_idle" && matches!(ty.system, "power" | "");
        self.kinds[index] = is_idle
            .then(|| {
                let state = Number::of(ty, &["state"], &[("state", Radix::Any)])?;
                let cpu = Number::of(ty, &["cpu_id"], &[("cpu_id", Radix::Any)])?;
                Some((state, cpu))
            })
            .flatten();
        let is_read = self.kinds[index].is_some();
        self.has_states |= is_read && ty.recorded;
        self.has_wakings |= ty.kind == Kind::SchedWaking && ty.recorded;
        is_read
    }

    #[inline]
    fn take(&mut self, event: &Event<'_>) {
        let Some(Some((state, cpu))) = self.kinds.get(index_of(event.ty.index)) else {
            return;
        };
        let (Some(state), Some(cpu)) = (state.get(event), cpu.get(event)) else {
            return;
        };
        self.has_states = true;
        let Some(cpu) = i32::try_from(cpu).ok().and_then(cpu_index) else {
            return;
        };
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, CpuState::default());
        }
        let cpu = &mut self.cpus[cpu];
        if state == IDLE_EXIT {
            // One that it was not seen to enter is not known.
            cpu.last = cpu
                .now
                .take()
                .map(|(state, since)| (state, since, event.time));
        } else {
            let state = usize::try_from(state).unwrap_or(usize::MAX);
            cpu.now = Some((state.min(MOST_STATES - 1), event.time));
        }
    }

    /// Takes what an event of the scheduler changed.
    fn changed(&mut self, changes: &TaskChanges, machine: &Machine) {
        if let Some(wakeup) = &changes.wakeup {
            self.has_wakings |= wakeup.waking;
            let woken = self.woken(wakeup.task);
            // A task that was woken runs before it can be woken again: else its run was missed.
            if *woken == NEVER || wakeup.waking {
                *woken = wakeup.time;
            }
        }
        let Some(switch) = &changes.switch else {
            return;
        };
        if !switch.prev_idle {
            *self.woken(switch.prev) = NEVER;
        }
        if switch.next_idle {
            return;
        }
        let since = std::mem::replace(self.woken(switch.next), NEVER);
        // Another task that had the CPU meanwhile is what the thread waited for.
        let idle = (changes.cpu).filter(|cpu| cpu.idle && !cpu.lost && cpu.start <= since);
        if since == NEVER || idle.is_none() {
            return;
        }
        let Some((tid, is_vcpu)) = of_vm(machine, switch.next) else {
            return;
        };
        let state = cpu_index(switch.cpu).and_then(|cpu| self.cpus.get_mut(cpu));
        let last = state.and_then(|state| match state.now.take() {
            // It runs a task and is in an idle state: an event is missing.
            Some(_) => None,
            None => state.last,
        });
        let deep = last.filter(|(_, _, left)| (since..=switch.time).contains(left));
        let deep = deep.map(|(state, entered, left)| (state, entered.max(since), left));
        self.count((switch.next, tid, is_vcpu), (since, switch.time), deep);
    }

    fn woken(&mut self, slot: u32) -> &mut u64 {
        self.woken.entry(slot, || NEVER)
    }

    /// Counts a wait, and for how much of it the CPU was in which state.
    fn count(
        &mut self,
        (slot, tid, is_vcpu): (u32, i32, bool),
        (since, until): (u64, u64),
        deep: Option<(usize, u64, u64)>,
    ) {
        let ns = until.saturating_sub(since);
        self.waits.add(ns);
        if let Some((state, from, left)) = deep {
            self.states[state].add(left.saturating_sub(from));
        }
        let (_, row) = self.rows.entry(slot, || {
            let row = IdleWakeupsRow {
                tid,
                ..IdleWakeupsRow::default()
            };
            (slot, row)
        });
        row.is_vcpu |= is_vcpu;
        row.count += 1;
        row.ns = row.ns.saturating_add(ns);
        if ns > length(row.longest_wait) {
            row.longest_wait = Some((since, until));
        }
        if let Some((_, from, left)) = deep.filter(|(state, ..)| *state > 0) {
            let ns = left.saturating_sub(from);
            row.deep_count += 1;
            row.deep_ns = row.deep_ns.saturating_add(ns);
            if ns > length(row.longest) {
                row.longest = Some((from, left));
            }
        }
    }

    /// Returns what was found.
    pub fn report(&self, machine: &Machine) -> IdleWakeupsReport {
        let rows = self.rows.values().map(|(slot, row)| {
            let thread = machine.threads().at(*slot).map(|(_, thread)| thread);
            IdleWakeupsRow {
                comm: thread.and_then(|thread| thread.comm.as_deref().map(str::to_owned)),
                ..row.clone()
            }
        });
        let mut rows: Vec<IdleWakeupsRow> = rows.collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.deep_ns), row.tid));
        let states = self.states.iter().zip(0u32..);
        let states = states.filter(|(waits, _)| waits.count() > 0);
        IdleWakeupsReport {
            rows,
            waits: self.waits.clone(),
            states: states
                .map(|(waits, state)| (state, waits.clone()))
                .collect(),
            has_states: self.has_states,
            has_wakings: self.has_wakings,
        }
    }
}

/// How long a stretch of time is; none is shorter than any.
fn length(stretch: Option<(u64, u64)>) -> u64 {
    stretch.map_or(0, |(from, until)| until.saturating_sub(from))
}

/// Returns a thread's id and whether it is a vCPU's, if it is one or works for VMs.
fn of_vm(machine: &Machine, slot: u32) -> Option<(i32, bool)> {
    let (tid, thread) = machine.threads().at(slot)?;
    let role = thread.named_role();
    let works = role.is_helper_of_vms() || role.is_vcpu();
    (thread.is_vcpu || works).then_some((tid, thread.is_vcpu))
}

impl Analysis for IdleWakeups {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for slot in retired.slots() {
            self.woken.remove(slot);
            self.rows.remove(slot);
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            task_spans: true,
            threads: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match self.learn(ty) {
            true => EventDetail::Order,
            false => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, _: &Data, context: &mut Context<'_>) {
        if context.chosen.follows {
            self.take(event);
        }
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        if context.chosen.follows {
            self.changed(changes, context.machine);
        }
    }
}
