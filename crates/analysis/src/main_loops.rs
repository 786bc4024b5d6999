//! What wakes the main thread of a VMM: timers at a steady rate, or other threads.
//!
//! A wake-up is recorded where it is made (`sched_waking`). One by a timer or a device comes in an interrupt, which the
//! event's flags say (`TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ`, `include/linux/trace_events.h`), or else the task
//! that was interrupted: the idle one. Timers of devices that a VMM emulates come at a steady rate, and mostly the
//! guest hears nothing of them: after such a wake-up the thread neither wakes anybody nor raises an interrupt.

use event::sched::Leaves;
use event::{Data, Event, EventType, Kind, index_of};
use model::{ByNumber, BySlot, Machine, NamedRole, RetiredThreads, TaskChanges};

use crate::Stats;
use crate::analysis::{Analysis, Context, EventDetail, Needs};
use crate::record::{Number, Radix};

/// `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ` in an event's `common_flags`.
const IN_INTERRUPT: u64 = 0x08 | 0x10;
/// The lines of the emulated timers: IRQ 8 of the RTC, IRQ 0 of the PIT (which the IOAPIC has as 2).
const RTC: u64 = 8;
const PIT: [u64; 2] = [0, 2];

/// The main thread of a process that may be a VMM.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MainLoopRow {
    /// Its id.
    pub tid: i32,
    /// Its name, if known.
    pub comm: Option<String>,
    /// Times that an interrupt woke it, of a timer or a device.
    pub by_interrupts: u64,
    /// Times that other threads woke it.
    pub by_threads: u64,
    /// Times that it woke a thread or raised an interrupt of a guest, of those in which an interrupt had woken it.
    pub served: u64,
    /// Interrupts of the emulated RTC, and of the PIT, that it raised.
    pub rtc: u64,
    /// Interrupts of the emulated PIT that it raised.
    pub pit: u64,
    /// From one wake-up by an interrupt to the next.
    pub intervals: Stats,
}

#[derive(Debug, Default)]
struct MainLoop {
    slot: u32,
    row: MainLoopRow,
    /// When an interrupt woke it last.
    last: Option<u64>,
    /// Whether it sleeps and nobody has woken it.
    asleep: bool,
    /// Whether an interrupt woke it, and whether it has done something for a guest since.
    by_interrupt: bool,
    served: bool,
}

/// What a kind of events is here.
#[derive(Debug)]
enum LoopEvent {
    /// A wake-up, with its flags.
    Wakeup(Option<Number>),
    /// An interrupt of a guest, with its line where it has one.
    Interrupt(Option<Number>),
}

/// Follows main threads.
#[derive(Debug, Default)]
pub struct MainLoops {
    kinds: Vec<Option<LoopEvent>>,
    loops: ByNumber<MainLoop>,
    /// By thread slot: whether it is known to be none.
    others: BySlot<()>,
    wakings: bool,
}

impl MainLoops {
    /// Returns one that has seen nothing.
    pub fn new() -> MainLoops {
        MainLoops::default()
    }

    /// Returns what was found, by thread.
    pub fn report(&self, machine: &Machine) -> Vec<MainLoopRow> {
        let rows = self.loops.values().map(|one| {
            let thread = machine.threads().at(one.slot).map(|(_, thread)| thread);
            MainLoopRow {
                comm: thread.and_then(|thread| thread.comm.as_deref().map(str::to_owned)),
                ..one.row.clone()
            }
        });
        let mut rows: Vec<MainLoopRow> = rows.collect();
        rows.sort_by_key(|row| row.tid);
        rows
    }

    /// Takes a kind of events, and returns whether it says something.
    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize_with(index + 1, || None);
        }
        self.wakings |= ty.kind == Kind::SchedWaking && ty.recorded;
        self.kinds[index] = match ty.kind {
            Kind::SchedWaking | Kind::SchedWakeup => {
                Some(LoopEvent::Wakeup(Number::of(ty, &["common_flags"], &[])))
            }
            _ => match ty.name {
                "kvm_set_irq" => Some(LoopEvent::Interrupt(Number::of(
                    ty,
                    &["gsi"],
                    &[("gsi", Radix::Any)],
                ))),
                "kvm_msi_set_irq" | "kvm_irq_line" | "vgic_update_irq_pending" => {
                    Some(LoopEvent::Interrupt(None))
                }
                _ => None,
            },
        };
        self.kinds[index].is_some()
    }

    fn take(&mut self, event: &Event<'_>, data: &Data, machine: &Machine) {
        let kind = self.kinds.get(index_of(event.ty.index));
        let Some(Some(kind)) = kind else {
            return;
        };
        match kind {
            LoopEvent::Wakeup(flags) => {
                let (Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup)) = data else {
                    return;
                };
                self.wakings |= event.ty.kind == Kind::SchedWaking;
                // sched_wakeup may come from another CPU than the waker's.
                if self.wakings && event.ty.kind != Kind::SchedWaking {
                    return;
                }
                let flags = flags.as_ref().and_then(|flags| flags.get(event));
                let by_interrupt =
                    event.tid == 0 || flags.is_some_and(|flags| flags & IN_INTERRUPT != 0);
                if let Some(one) = self.loops.get_mut(event.tid)
                    && !by_interrupt
                {
                    one.served = true;
                }
                let slot = machine.tasks().task;
                let woken = self.loops.get_mut(wakeup.tid);
                if let Some(one) = woken.filter(|one| one.slot == slot && one.asleep) {
                    one.woken(event.time, by_interrupt);
                }
            }
            LoopEvent::Interrupt(line) => {
                if let Some(one) = self.loops.get_mut(event.tid) {
                    one.served = true;
                    let line = line.as_ref().and_then(|line| line.get(event));
                    one.row.rtc += u64::from(line == Some(RTC));
                    one.row.pit += u64::from(line.is_some_and(|line| PIT.contains(&line)));
                }
            }
        }
    }

    /// Takes what an event of the scheduler changed.
    fn changed(&mut self, changes: &TaskChanges, machine: &Machine) {
        let Some(switch) = &changes.switch else {
            return;
        };
        if !switch.prev_idle && !self.is_other(switch.prev) {
            self.left(
                switch.prev,
                switch.left_as.leaves() == Leaves::Blocked,
                machine,
            );
        }
    }

    fn is_other(&self, slot: u32) -> bool {
        self.others.get(slot).is_some()
    }

    /// A thread left its CPU.
    fn left(&mut self, slot: u32, asleep: bool, machine: &Machine) {
        let Some((tid, thread)) = machine.threads().at(slot) else {
            return;
        };
        let is_main = thread.pid == Some(tid)
            || thread.pid.is_none() && thread.named_role() == NamedRole::Qemu;
        if !is_main || thread.is_vcpu {
            // What has no name and no process yet may get them.
            if thread.pid.is_some() || thread.comm.is_some() {
                self.others.entry(slot, || ());
            }
            return;
        }
        let one = self.loops.entry(tid, MainLoop::default);
        if one.slot != slot || one.row.tid != tid {
            // Another thread has the id now.
            *one = MainLoop {
                slot,
                row: MainLoopRow {
                    tid,
                    ..MainLoopRow::default()
                },
                ..MainLoop::default()
            };
        }
        one.left(asleep);
    }
}

impl MainLoop {
    fn woken(&mut self, time: u64, by_interrupt: bool) {
        self.asleep = false;
        self.by_interrupt = by_interrupt;
        self.served = false;
        if !by_interrupt {
            self.row.by_threads += 1;
            return;
        }
        self.row.by_interrupts += 1;
        if let Some(last) = self.last.replace(time) {
            self.row.intervals.add(time.saturating_sub(last));
        }
    }

    fn left(&mut self, asleep: bool) {
        if !asleep {
            return;
        }
        self.row.served += u64::from(self.by_interrupt && self.served);
        (self.asleep, self.by_interrupt) = (true, false);
    }
}

impl Analysis for MainLoops {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for slot in retired.slots() {
            self.others.remove(slot);
        }
        for tid in retired.tids() {
            self.loops.remove(tid);
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

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.follows {
            self.take(event, data, context.machine);
        }
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        if context.chosen.follows {
            self.changed(changes, context.machine);
        }
    }
}
