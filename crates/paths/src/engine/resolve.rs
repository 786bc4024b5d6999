//! Interrupts: for which vCPU they are, and what that changes for instances that wait to know.

use event::{Data, index_of};
use model::{Halt, Machine, State, Threads};

use super::seen_vcpus::{self, FEW};
use super::{EventContext, Paths};
use crate::interrupts::{TicketAnswer, UNRESOLVED};
use crate::tally::DropReason;

impl Paths {
    /// An interrupt is accepted for the vCPU of a number.
    pub(super) fn accept(
        &mut self,
        now: &mut EventContext<'_, '_>,
        vcpu: u64,
        vector: u64,
        machine: &mut Machine,
    ) {
        let (Ok(vcpu), Ok(vector)) = (u32::try_from(vcpu), u32::try_from(vector)) else {
            return;
        };
        self.tasks.entry(now.thread, machine.threads());
        let only = self.tasks.only_vcpu(vcpu);
        let tid = only
            .and_then(|slot| machine.threads().at(slot))
            .map(|(tid, _)| tid);
        let track = tid.and_then(|tid| machine.vcpu_of(tid));
        let polls = track.and_then(|track| machine.halt(track)) == Some(Halt::Running);
        let target = self.interrupts.accept(
            now.thread,
            vcpu,
            vector,
            &self.tasks,
            machine.threads(),
            |_| polls,
        );
        now.target = Some(target);
        self.last_target.insert(now.thread, target);
        self.see_vcpus((target, vcpu), now.event.time, machine);
    }

    /// Keeps what the vCPUs do that an interrupt may be for.
    fn see_vcpus(&mut self, (target, number): (u64, u32), time: u64, machine: &mut Machine) {
        if target & UNRESOLVED == 0 {
            return;
        }
        let mut few = self.interrupts.few_of(target, &self.tasks, FEW);
        if few.is_empty() {
            // The only vCPU of all, whose number is not known.
            few.extend(self.tasks.only_vcpu(number));
        }
        let seen = few.into_iter().map(|slot| {
            let run = self.tasks.entry(slot, machine.threads()).run;
            (slot, seen_vcpus::seen(slot, run, machine))
        });
        let seen = seen.collect();
        self.seen_vcpus.accept(target, time, seen);
    }

    /// Takes what the event shows of interrupts of which it is not known whose they are.
    pub(super) fn settle(&mut self, now: &EventContext<'_, '_>, threads: &Threads) {
        match now.data {
            Data::SchedWaking(_) => {}
            Data::SchedWakeup(_) if !self.wakings => {}
            Data::SchedSwitch(_) => {
                self.interrupts.goes_on(now.thread, &self.tasks, threads);
                if let Some(next) = now.task {
                    self.interrupts.acts(next, &self.tasks, threads);
                }
            }
            Data::KvmExit(_) | Data::KvmEntry(_) | Data::KvmVcpuWakeup(_) => {
                self.interrupts.goes_on(now.thread, &self.tasks, threads);
                self.interrupts.acts(now.thread, &self.tasks, threads);
            }
            // The thread that accepts an interrupt wakes the vCPU before anything else.
            _ => self.interrupts.goes_on(now.thread, &self.tasks, threads),
        }
    }

    /// Returns whether a thread is a vCPU's that is in its guest.
    pub(super) fn in_guest(&self, slot: u32, machine: &mut Machine) -> bool {
        let tid = machine.threads().at(slot).map(|(tid, _)| tid);
        let vcpu = tid.and_then(|tid| machine.vcpu_of(tid));
        vcpu.is_some_and(|vcpu| machine.state(vcpu) == State::Guest)
    }

    /// A ticket's vCPU is known, or will never be.
    pub(super) fn resolve(
        &mut self,
        found: TicketAnswer,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        let (ticket, slot, passed) = match found {
            TicketAnswer::Target {
                ticket,
                slot,
                by,
                passed,
            } => {
                let ticket = UNRESOLVED | ticket;
                // It may be posted yet, after something on another CPU has shown whose it is.
                if let Some(last) = self.last_target.get_mut(&by)
                    && *last == ticket
                {
                    *last = u64::from(slot);
                }
                (ticket, Some(slot), passed)
            }
            TicketAnswer::Nothing(ticket) => (UNRESOLVED | ticket, None, false),
        };
        self.seen_vcpus.resolve(ticket, slot);
        let mut waiting = self.tickets.remove(&ticket).unwrap_or_default();
        // An instance is here twice if two of its roles hold the ticket.
        waiting.dedup();
        for at in waiting {
            // It may have ended, or one that went on before has given it up.
            let live = &self.live[index_of(at)];
            if !live.live || !live.roles_hold(ticket) {
                continue;
            }
            match slot {
                // What it has reached may be enough.
                None if self.is_open(&self.live[index_of(at)]) => {
                    self.unregister(at);
                    self.complete(at);
                }
                None => self.give_up(at, Some(DropReason::Unresolved)),
                Some(slot) => {
                    // One of them may have displaced another.
                    let live = &mut self.live[index_of(at)];
                    if !live.live || !live.roles_hold(ticket) {
                        continue;
                    }
                    live.replace(ticket, u64::from(slot));
                    self.unregister(at);
                    let step = self.live[index_of(at)].last().step as usize;
                    if !self.occupy(at, step) {
                        continue;
                    }
                    self.notice(at, now, machine);
                    self.register(at);
                    // It has gone on already: with the entry before that was known.
                    let entered = self.tasks.get(slot).entry_at;
                    if entered > self.live[index_of(at)].last().time
                        && self.waits_for_entry(at, passed)
                    {
                        if self.is_open(&self.live[index_of(at)]) {
                            self.unregister(at);
                            self.complete(at);
                        } else {
                            self.give_up(at, Some(DropReason::Unresolved));
                        }
                    }
                }
            }
        }
        self.seen_vcpus.resolved();
    }
}
