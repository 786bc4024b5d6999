//! What an event is about: which tasks, which interrupt, whose.

use event::sched::{SchedSwitch, SchedWakeup};
use event::{Data, Event, FieldReader, NONE};
use model::{Machine, Threads};

use super::bind::{EventBinding, EventEffect, InterruptEvent, SGI_REGISTERS};
use super::{EventContext, Paths};

use crate::interrupts::{ANY_VCPU, UNRESOLVED, process};
use crate::shared_interrupts::FIRST_SHARED;
use crate::tasks::{self, InterruptSource};

/// Interrupts of this delivery mode and below (fixed, lowest priority) are injected by their vector.
const BY_VECTOR: u64 = 1;

/// Returns what a field of the event says, if the event has it.
#[inline]
fn number(getter: Option<&FieldReader>, now: &EventContext<'_, '_>) -> Option<u64> {
    getter.and_then(|getter| getter.number(now.event, now.data))
}

impl Paths {
    /// Finds out what the event is about.
    #[inline]
    pub(super) fn look(
        &mut self,
        now: &mut EventContext<'_, '_>,
        machine: &mut Machine,
        binding: &EventBinding,
    ) {
        self.is_called(now.event, now.thread, machine);
        match binding.effect {
            EventEffect::Crosses => self.crosses(now.data, now.thread, machine.threads()),
            EventEffect::More => self.about(now, machine),
            EventEffect::Nothing | EventEffect::Goes => {}
        }
        self.is_on(now.event, now.thread);
        // That it is posted comes between an interrupt and the wake-up.
        if self.interrupts.is_waiting() && binding.watch != InterruptEvent::Posted {
            self.settle(now, machine.threads());
        }
        if binding.watch != InterruptEvent::Nothing {
            self.interrupt(now, machine, binding);
        }
        if !self.interrupts.found.is_empty() {
            let found = std::mem::take(&mut self.interrupts.found);
            for one in found {
                self.resolve(one, now, machine);
            }
        }
    }

    /// Takes what an event says of the thread that makes it: its name, where a text has one, and its CPU.
    #[inline]
    pub(super) fn sees(&mut self, event: &Event<'_>, thread: u32, machine: &Machine) {
        self.is_called(event, thread, machine);
        self.is_on(event, thread);
    }

    #[inline]
    fn is_called(&mut self, event: &Event<'_>, thread: u32, machine: &Machine) {
        if let Some(comm) = event.comm
            && thread < tasks::IDLE
        {
            let threads = machine.threads();
            self.tasks.called(thread, event.tid, comm, threads);
        }
    }

    #[inline]
    fn is_on(&mut self, event: &Event<'_>, thread: u32) {
        if thread < tasks::IDLE && event.cpu != NONE {
            self.tasks.seen_on(thread, event.cpu);
        }
    }

    /// Which tasks the event is about, and what it says of them.
    #[inline]
    fn about(&mut self, now: &mut EventContext<'_, '_>, machine: &mut Machine) {
        match now.data {
            Data::SchedSwitch(switch) => self.switches(switch, now, machine),
            Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => {
                self.wakes(wakeup, now, machine);
            }
            Data::SchedMigrateTask(migrate) => now.task = Some(machine.slot(migrate.tid)),
            Data::TaskRename(task) => now.task = Some(machine.slot(task.tid)),
            _ => self.crosses(now.data, now.thread, machine.threads()),
        }
    }

    /// A thread leaves its guest, or enters it: it is a vCPU's.
    #[inline]
    pub(super) fn crosses(&mut self, data: &Data, thread: u32, threads: &Threads) {
        match data {
            Data::KvmExit(exit) => {
                self.isa = Some(exit.reason.isa);
                self.tasks.is_vcpu(thread, exit.vcpu, threads);
            }
            Data::KvmEntry(entry) => self.tasks.is_vcpu(thread, entry.vcpu, threads),
            _ => {}
        }
    }

    #[inline]
    fn switches(
        &mut self,
        switch: &SchedSwitch,
        now: &mut EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        let slot = |tid: i32, machine: &mut Machine| match tid {
            0 => tasks::idle(now.event.cpu),
            tid => machine.slot(tid),
        };
        let prev = slot(switch.prev_tid, machine);
        let next = slot(switch.next_tid, machine);
        let threads = machine.threads();
        self.tasks
            .named(prev, switch.prev_tid, &switch.prev_comm, threads);
        self.tasks
            .named(next, switch.next_tid, &switch.next_comm, threads);
        now.prev = Some(prev);
        now.task = Some(next);
    }

    #[inline]
    fn wakes(
        &mut self,
        wakeup: &SchedWakeup,
        now: &mut EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        let task = machine.slot(wakeup.tid);
        let threads = machine.threads();
        self.tasks.named(task, wakeup.tid, &wakeup.comm, threads);
        self.tasks.entry(now.thread, threads);
        now.task = Some(task);
        // A wake-up by another CPU's interrupt does not say who asked for it.
        let waking = matches!(now.data, Data::SchedWaking(_));
        self.wakings |= waking;
        if waking || !self.wakings {
            self.interrupts.wakes(now.thread, task, &self.tasks);
            if let Some(vcpu) = self.tasks.get(task).vcpu {
                self.shared.wakes(now.thread, vcpu, now.event.time);
            }
            now.raised = self.accepted.get(&now.thread).copied().unwrap_or_default();
        }
    }

    /// What the event says of an interrupt: who raises it, and for whom it is.
    #[inline]
    fn interrupt(
        &mut self,
        now: &mut EventContext<'_, '_>,
        machine: &mut Machine,
        binding: &EventBinding,
    ) {
        let value = |now: &EventContext<'_, '_>| number(binding.number.as_ref(), now);
        match binding.watch {
            InterruptEvent::Nothing | InterruptEvent::HostIrq => {}
            InterruptEvent::Posted => self.posted(now, machine),
            InterruptEvent::Raise(raised) => {
                if raised != InterruptSource::Pin || value(now) != Some(0) {
                    // The interrupt that it makes accepted has the same vector, if it has one.
                    let vector = number(binding.vector.as_ref(), now);
                    if raised != InterruptSource::Ipi {
                        self.tasks.entry(now.thread, machine.threads()).raises = true;
                    }
                    self.raised.insert(now.thread, (raised, vector));
                }
            }
            // arm64 has no event for what the vGIC accepts: who raises it is all that is known.
            InterruptEvent::Line => {
                if value(now) != Some(0) {
                    self.tasks.entry(now.thread, machine.threads()).raises = true;
                    self.accepted.insert(now.thread, InterruptSource::Pin);
                }
            }
            InterruptEvent::Sgi => {
                if value(now).is_some_and(|register| SGI_REGISTERS.contains(&register)) {
                    self.accepted.insert(now.thread, InterruptSource::Ipi);
                }
            }
            InterruptEvent::Vgic => {
                let irq = number(binding.vector.as_ref(), now);
                let raised = value(now).is_some_and(|level| level != 0);
                if let Some(irq) = irq.filter(|_| raised) {
                    let vcpu = match irq < FIRST_SHARED {
                        true => number(binding.mode.as_ref(), now),
                        false => Some(self.shared_target(now, irq, machine)),
                    };
                    if let Some(vcpu) = vcpu {
                        self.accept(now, vcpu, irq, machine);
                    }
                }
            }
            InterruptEvent::ArmTimer => {
                if value(now) == Some(1) {
                    self.own_timer(now.thread);
                }
            }
            InterruptEvent::Accept => self.apic_accepts(now, machine, binding),
            InterruptEvent::Inject => self.injects(now, machine, binding),
        }
    }

    /// Returns the number of the vCPU that a shared interrupt goes to.
    fn shared_target(&mut self, now: &EventContext<'_, '_>, irq: u64, machine: &Machine) -> u64 {
        let process = process(now.thread, machine.threads());
        let known = self.shared.raises(now.thread, process, irq, now.event.time);
        let alone = || {
            // Of a VM with one vCPU it is that one's.
            let mut second = self.tasks.vcpus(1);
            !second.any(|slot| {
                let other = machine.threads().at(slot).and_then(|(_, vcpu)| vcpu.pid);
                process.is_none() || other.is_none() || other == process
            })
        };
        match known {
            Some(vcpu) => u64::from(vcpu),
            None if alone() => 0,
            None => u64::from(ANY_VCPU),
        }
    }

    /// The last interrupt that the thread accepted for a vCPU is posted.
    fn posted(&mut self, now: &mut EventContext<'_, '_>, machine: &mut Machine) {
        now.target = self.last_target.get(&now.thread).copied();
        // A vCPU in its guest is not woken, so nothing more will tell.
        let only = now
            .target
            .filter(|target| target & UNRESOLVED != 0)
            .and_then(|ticket| {
                self.interrupts
                    .only_of(ticket, &self.tasks, machine.threads())
            });
        if let Some(slot) = only
            && self.in_guest(slot, machine)
        {
            self.interrupts
                .goes_on(now.thread, &self.tasks, machine.threads());
            now.target = Some(u64::from(slot));
        }
    }

    /// A local APIC accepts an interrupt.
    fn apic_accepts(
        &mut self,
        now: &mut EventContext<'_, '_>,
        machine: &mut Machine,
        binding: &EventBinding,
    ) {
        self.sees_apic = true;
        let mode = number(binding.mode.as_ref(), now).unwrap_or(0);
        let (Some(vcpu), Some(vector)) = (
            number(binding.number.as_ref(), now),
            number(binding.vector.as_ref(), now),
        ) else {
            return;
        };
        let raised = match self.raised.get(&now.thread) {
            Some((raised, known)) if known.is_none_or(|known| known == vector) => *raised,
            _ => InterruptSource::Local,
        };
        now.raised = raised;
        if matches!(raised, InterruptSource::Msi | InterruptSource::Pin) {
            self.raised.remove(&now.thread);
        }
        self.accepted.insert(now.thread, raised);
        if raised == InterruptSource::Local {
            self.own_timer(now.thread);
        }
        // The others are not distinguished here.
        if mode <= BY_VECTOR {
            self.accept(now, vcpu, vector, machine);
        }
    }

    /// An interrupt is injected: its vCPU is known now.
    fn injects(&mut self, now: &EventContext<'_, '_>, machine: &Machine, binding: &EventBinding) {
        // What is injected again was accepted once.
        let again = number(binding.mode.as_ref(), now).unwrap_or(0) != 0;
        let Some(vector) = number(binding.vector.as_ref(), now).filter(|_| !again) else {
            return;
        };
        let threads = machine.threads();
        self.tasks.is_vcpu(now.thread, None, threads);
        let vector = u32::try_from(vector).unwrap_or(u32::MAX);
        self.interrupts
            .injects(now.thread, vector, &self.tasks, threads);
    }
}
