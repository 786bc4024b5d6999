//! What instances wait for: the alternatives that can come next, and the place that is one instance's only.

use event::index_of;

use super::Paths;
use super::instance::{LiveInstance, memory_key};
use super::nexts::{InstanceProgress, NextWaits, WaiterKey};
use super::plan::{AlternativePlan, EndKind, StepPlan, one};
use crate::lang::StepOption;
use crate::tally::DropReason;

impl Paths {
    /// Returns whether an instance can pass over a step, as far as is known now.
    #[inline]
    pub(super) fn can_skip(&self, number: usize, live: &LiveInstance) -> bool {
        let step = &self.index.steps[number];
        let without = match step.optional {
            StepOption::Never => self.disabled[number],
            StepOption::Always => true,
            StepOption::Unrecorded => !self.is_recorded(number, live),
        };
        let with = step.optional_with;
        without
            || with.is_some_and(|with| self.is_recorded(self.index.number(live.chain, with), live))
    }

    /// Returns whether a step's events are recorded, as far as is known now: a guest's, in the guest that the instance
    /// has to do with.
    fn is_recorded(&self, number: usize, live: &LiveInstance) -> bool {
        let step = &self.index.steps[number];
        match step.in_guest {
            true => {
                let vcpu = step.guest_of.and_then(|role| live.known(role));
                self.is_recorded_in_guest(number, vcpu)
            }
            false => self.recorded[number] && !self.disabled[number],
        }
    }

    /// Returns whether an instance that a thread's event begins can do without a step before it.
    pub(super) fn can_begin_behind(&self, number: usize, thread: u32) -> bool {
        let step = &self.index.steps[number];
        match step.optional {
            StepOption::Never => self.disabled[number],
            StepOption::Always => true,
            StepOption::Unrecorded if step.in_guest => {
                !self.is_recorded_in_guest(number, Some(u64::from(thread)))
            }
            StepOption::Unrecorded => self.disabled[number] || !self.recorded[number],
        }
    }

    /// Returns whether an instance that has come so far is complete if nothing more comes.
    pub(super) fn is_open(&self, live: &LiveInstance) -> bool {
        let first = self.index.first_step[index_of(live.chain)] as usize;
        let steps = live.last_step() + 1..self.index.lengths[index_of(live.chain)];
        live.counted
            && live.reached().len() > 1
            && steps.map(|step| first + step).all(|number| {
                self.can_skip(number, live) || self.index.steps[number].is_barred(live.steps)
            })
    }

    /// The instance takes the place that its roles give it, if the step says that there is one for each. Returns
    /// whether the instance goes on.
    #[inline]
    pub(super) fn occupy(&mut self, at: u32, step: usize) -> bool {
        let number = self.index.number(self.live[index_of(at)].chain, step);
        if self.index.steps[number].several {
            self.vacate(at);
            return true;
        }
        self.index.steps[number].unique.is_empty() || self.takes_place(at, number)
    }

    #[inline(never)]
    fn takes_place(&mut self, at: u32, number: usize) -> bool {
        let live = &self.live[index_of(at)];
        let this = &self.index.steps[number];
        let key = match this.unique.as_slice() {
            [role] => live.known(*role),
            roles => live.key(roles),
        };
        let coalesces = this.coalesces;
        self.vacate(at);
        let Some(key) = key else {
            return true;
        };
        let place = (u32::try_from(number).unwrap_or(u32::MAX), key);
        if let Some(other) = self.unique.get(place)
            && other != at
            && !self.displace(at, other, coalesces)
        {
            return false;
        }
        self.unique.put(place, at);
        self.live[index_of(at)].unique = Some(place);
        true
    }

    /// An instance takes another one's place, or is one with it. Returns whether it goes on.
    fn displace(&mut self, at: u32, other: u32, coalesces: bool) -> bool {
        if coalesces {
            let one = &mut self.live[index_of(other)];
            one.coalesced = one.coalesced.saturating_add(1);
            self.give_up(at, Some(DropReason::Coalesced));
            return false;
        }
        if self.is_open(&self.live[index_of(other)]) {
            self.unregister(other);
            self.complete(other);
        } else {
            self.give_up(other, Some(DropReason::Superseded));
        }
        true
    }

    #[inline]
    pub(super) fn vacate(&mut self, at: u32) {
        if let Some(place) = self.live[index_of(at)].unique.take() {
            self.unique.leave(place, at);
        }
    }

    /// A step's events have been seen for the first time: instances that would have passed over it wait for it.
    pub(super) fn wait_anew(&mut self) {
        for at in 0..self.live.len() {
            let live = &self.live[at];
            let Ok(at) = u32::try_from(at) else { return };
            if live.live && !live.waits.is_empty() {
                self.unregister(at);
                self.register(at);
            }
        }
    }

    /// Registers an instance with all that can come next.
    pub(super) fn register(&mut self, at: u32) {
        let live = &self.live[index_of(at)];
        let number = self.index.number(live.chain, live.last_step());
        let from = InstanceProgress {
            steps: live.steps,
            bound: live.bound,
            late: live.late,
        };
        let once;
        let next = if let Some(found) = self.nexts.find(number, from) {
            &self.nexts.0[number][found]
        } else {
            let (next, holds) = self.next(live, from);
            if holds {
                let kept = self.nexts.keep(number, next);
                &self.nexts.0[number][kept]
            } else {
                once = next;
                &once
            }
        };
        let live = &mut self.live[index_of(at)];
        for (alt, key) in &next.waits {
            let key = match key {
                WaiterKey::Role(role) => live.role(*role),
                WaiterKey::Roles => live.found_by(&self.index.alts[index_of(*alt)].found_by),
            };
            if let Some(key) = key {
                live.waits.push((*alt, key));
                self.waiting.add(*alt, key, at);
            }
        }
        for (end, of) in &next.ends {
            let thread = match of {
                Some(role) => live.role(*role),
                None => Some(u64::from(live.last().thread)),
            };
            if let Some(thread) = thread {
                live.ends.push((*end, thread));
                self.cancels.add(*end, thread, at);
            }
        }
    }

    /// Returns what an instance waits for, and whether all that come as far do.
    #[cold]
    fn next(&self, live: &LiveInstance, from: InstanceProgress) -> (NextWaits, bool) {
        let mut next = NextWaits {
            from,
            ..NextWaits::default()
        };
        let holds = self.waits_for_next(live, &mut next.waits)
            & self.waits_to_go_back(live, &mut next.waits);
        let last = self.index.step(live.chain, live.last_step());
        for (number, of, ending) in &last.ended_by {
            let counts = match ending {
                EndKind::Late => !live.late,
                EndKind::Over => true,
            };
            if counts && of.is_none_or(|role| live.role(role).is_some()) {
                next.ends.push((*number, *of));
            }
        }
        (next, holds)
    }

    /// The alternatives of the steps that can follow the last one. Returns whether that is so for all instances that
    /// come as far: what is recalled is not the same for all.
    fn waits_for_next(&self, live: &LiveInstance, waits: &mut Vec<(u32, WaiterKey)>) -> bool {
        let mut holds = true;
        let first = self.index.first_step[index_of(live.chain)] as usize;
        for step in live.last_step() + 1..self.index.lengths[index_of(live.chain)] {
            let number = first + step;
            let this = &self.index.steps[number];
            if self.disabled[number]
                || live.late && this.soon
                || this.is_barred(live.steps)
                || self.unknown_needs(this, live, &mut holds)
            {
                continue;
            }
            for alt in &this.alts {
                let what = &self.index.alts[index_of(*alt)];
                if !self.can_come(what, live, &mut holds) {
                    continue;
                }
                let barred = what.after.is_barred(live.steps) || what.soon && live.late;
                if what.joins && !what.instead && !barred {
                    waits.extend(live.waits_by(*alt, &self.index));
                }
            }
            // What is recorded of one guest is not the same for all instances.
            let by_guest = this.in_guest && this.optional == StepOption::Unrecorded
                || this.optional_with.is_some();
            holds &= !by_guest || self.guests.is_empty();
            if !self.can_skip(number, live) {
                break;
            }
        }
        holds
    }

    /// Returns whether an alternative's events may come: a guest's do where the vCPU is one of a guest that is
    /// recorded, which is not the same for all instances.
    fn can_come(&self, alt: &AlternativePlan, live: &LiveInstance, holds: &mut bool) -> bool {
        if !alt.in_guest {
            return true;
        }
        *holds &= self.guests.is_empty();
        let thread = alt.guest_by.thread.and_then(|role| live.known(role));
        !self.guests.is_empty() && thread.is_none_or(|slot| self.guest_of(slot).is_some())
    }

    /// Returns whether an instance neither holds nor recalls a role that a step needs.
    fn unknown_needs(&self, step: &StepPlan, live: &LiveInstance, holds: &mut bool) -> bool {
        let mut recalled = |role: usize| {
            step.recall.iter().any(|(known, by)| {
                *holds &= *known != role;
                let by = live.key(by);
                *known == role
                    && by.is_some_and(|by| {
                        let key = memory_key(live.chain, role, by);
                        matches!(self.memory.get(&key), Some(Some(_)))
                    })
            })
        };
        let mut needs = step.needs.iter();
        needs.any(|role| live.role(*role).is_none() && !recalled(*role))
    }

    /// The alternatives that take the last steps back: they may be of earlier steps. Returns whether that is so for all
    /// instances that come as far.
    fn waits_to_go_back(&self, live: &LiveInstance, waits: &mut Vec<(u32, WaiterKey)>) -> bool {
        let mut holds = true;
        for alt in &self.index.step(live.chain, live.last_step()).back {
            let what = &self.index.alts[index_of(*alt)];
            // What came before the end of its time is not taken back after it, unless a guest shows that it was wrong.
            if live.late && !what.in_guest || !self.can_come(what, live, &mut holds) {
                continue;
            }
            // Steps stay in their order.
            let mut before = live
                .reached()
                .iter()
                .rev()
                .map(|reached| u32::from(reached.step));
            let before = before.find(|step| what.takes_back & one(index_of(*step)) == 0);
            if before.is_some_and(|before| before >= what.step) || !what.joins {
                continue;
            }
            waits.extend(live.waits_by(*alt, &self.index));
        }
        holds
    }

    /// Returns whether an instance goes on when a vCPU enters its guest. Where its interrupt may have been injected
    /// before (`passed`), what follows an injection counts too.
    pub(super) fn waits_for_entry(&self, at: u32, passed: bool) -> bool {
        let mut waits = self.live[index_of(at)].waits.iter();
        waits.any(|(alt, _)| {
            // One that does not exist in this recording is no way to go on.
            let exists = passed || !self.disabled_alts[index_of(*alt)];
            let mut events = self.index.alts[index_of(*alt)].said.events.iter();
            exists && events.any(|event| event.matches("kvm", "kvm_entry", None))
        })
    }

    #[inline]
    pub(super) fn unregister(&mut self, at: u32) {
        let live = &mut self.live[index_of(at)];
        for (alt, key) in &live.waits {
            self.waiting.remove(*alt, *key, at);
        }
        live.waits.clear();
        for (number, thread) in &live.ends {
            self.cancels.remove(*number, *thread, at);
        }
        live.ends.clear();
    }
}
