//! What instances wait for: the alternatives that can come next, and the place that is one instance's only.

use super::Paths;
use super::bind::Ending;
use super::instance::{Live, memory_key};
use crate::lang::{Alt, Optional, Step};
use crate::tally::Dropped;

/// The key of what has no other.
const ANY: u64 = u64::MAX;

/// Makes one key of the values that joins compare: one is itself.
pub(super) fn key_of(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let mut key: Option<u64> = None;
    for value in values {
        let value = value?;
        key = Some(match key {
            None => value,
            Some(key) => key.rotate_left(17) ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        });
    }
    Some(key.unwrap_or(ANY))
}

impl Paths {
    /// Returns a step, by chain and position.
    pub(super) fn step(&self, chain: u32, step: usize) -> &Step {
        let (path, at) = self.index.chains[chain as usize];
        &self.paths[path as usize].chains[at as usize].steps[step]
    }

    pub(super) fn steps(&self, chain: u32) -> usize {
        let (path, at) = self.index.chains[chain as usize];
        self.paths[path as usize].chains[at as usize].steps.len()
    }

    /// Whether a step can be passed over, as far as is known now.
    pub(super) fn can_skip(&self, chain: u32, step: usize) -> bool {
        let number = self.index.first_step[chain as usize] as usize + step;
        match self.step(chain, step).optional {
            Optional::Never => self.disabled[number],
            Optional::Always => true,
            Optional::Unrecorded => self.disabled[number] || !self.recorded[number],
        }
    }

    /// Whether an instance that has come so far is complete if nothing more comes.
    pub(super) fn is_open(&self, live: &Live) -> bool {
        let last = live.last().step as usize;
        live.counted
            && live.reached().len() > 1
            && (last + 1..self.steps(live.chain)).all(|step| {
                self.can_skip(live.chain, step) || is_barred(self.step(live.chain, step), live)
            })
    }

    /// The instance takes the place that its roles give it, if the step says that there is one for each. Returns
    /// whether the instance goes on.
    pub(super) fn occupy(&mut self, at: u32, step: usize) -> bool {
        let chain = self.live[at as usize].chain;
        let (path, place) = self.index.chains[chain as usize];
        let this = &self.paths[path as usize].chains[place as usize].steps[step];
        if this.unique.is_empty() {
            return true;
        }
        let coalesces = this.coalesces;
        let live = &self.live[at as usize];
        let key = live.key(&this.unique);
        let place = u32::try_from(step).unwrap_or(u32::MAX);
        let scope = self.index.first_step[chain as usize].saturating_add(place);
        self.vacate(at);
        let Some(key) = key else {
            return true;
        };
        if let Some(&other) = self.unique.get(&(scope, key))
            && other != at
        {
            if coalesces {
                let one = &mut self.live[other as usize];
                one.coalesced = one.coalesced.saturating_add(1);
                self.give_up(at, Some(Dropped::Coalesced));
                return false;
            }
            if self.is_open(&self.live[other as usize]) {
                self.unregister(other);
                self.complete(other);
            } else {
                self.give_up(other, Some(Dropped::Superseded));
            }
        }
        self.unique.insert((scope, key), at);
        self.live[at as usize].unique = Some((scope, key));
        true
    }

    pub(super) fn vacate(&mut self, at: u32) {
        if let Some(key) = self.live[at as usize].unique.take()
            && self.unique.get(&key) == Some(&at)
        {
            self.unique.remove(&key);
        }
    }

    /// Registers an instance with all that can come next.
    pub(super) fn register(&mut self, at: u32) {
        let mut waits = std::mem::take(&mut self.live[at as usize].waits);
        let live = &self.live[at as usize];
        self.waits_for_next(live, &mut waits);
        self.waits_to_go_back(live, &mut waits);
        for (alt, key) in &waits {
            self.waiting.add(*alt, *key, at);
        }
        self.live[at as usize].waits = waits;
        self.register_ends(at);
    }

    /// The alternatives of the steps that can follow the last one.
    #[inline]
    fn waits_for_next(&self, live: &Live, waits: &mut Vec<(u32, u64)>) {
        let chain = live.chain;
        let first = self.index.first_step[chain as usize] as usize;
        for step in usize::from(live.last().step) + 1..self.steps(chain) {
            let number = first + step;
            let this = self.step(chain, step);
            if self.disabled[number] || self.rules_out(this, live) {
                continue;
            }
            for alt in self.index.of_step[number].clone() {
                let (_, _, what) = &self.index.alts[alt as usize];
                if what.joins.is_empty()
                    || what.not_after.iter().any(|s| live.has(*s))
                    || what.only_after.iter().any(|s| !live.has(*s))
                    || what.instead_of.is_some()
                    || what.soon && live.late
                {
                    continue;
                }
                if let Some(key) = live.found_by(what) {
                    waits.push((alt, key));
                }
            }
            if !self.can_skip(chain, step) {
                break;
            }
        }
    }

    /// Whether what an instance has reached, or does not know, rules a step out.
    #[inline]
    fn rules_out(&self, step: &Step, live: &Live) -> bool {
        let recalled = |role: usize| {
            step.recall.iter().any(|(known, by)| {
                let by = live.key(by);
                *known == role
                    && by.is_some_and(|by| {
                        let key = memory_key(live.chain, role, by);
                        matches!(self.memory.get(&key), Some(Some(_)))
                    })
            })
        };
        let lacks = |role: &usize| live.role(*role).is_none() && !recalled(*role);
        live.late && step.soon || step.needs.iter().any(lacks) || is_barred(step, live)
    }

    /// The alternatives that take the last step back: they may be of earlier steps.
    #[inline]
    fn waits_to_go_back(&self, live: &Live, waits: &mut Vec<(u32, u64)>) {
        let mut reached = live.reached().iter().rev();
        let before = reached.nth(1).map(|reached| u32::from(reached.step));
        let first = self.index.first_step[live.chain as usize] as usize;
        for alt in &self.index.back[first + usize::from(live.last().step)] {
            let (_, step, what) = &self.index.alts[*alt as usize];
            // Steps stay in their order, and what came before the end of its time is not taken back after it.
            if live.late || before.is_some_and(|before| before >= *step) {
                continue;
            }
            if !what.joins.is_empty()
                && let Some(key) = live.found_by(what)
            {
                waits.push((*alt, key));
            }
        }
    }

    /// Registers an instance with the events that end it.
    #[inline]
    fn register_ends(&mut self, at: u32) {
        let live = &mut self.live[at as usize];
        let last = live.last();
        let first = self.index.first_step[live.chain as usize] as usize;
        let mut ends = std::mem::take(&mut live.ends);
        for (number, of, ending) in &self.index.ends[first + usize::from(last.step)] {
            let thread = match of {
                Some(role) => live.role(*role),
                None => Some(u64::from(last.thread)),
            };
            let counts = match ending {
                Ending::Late => !live.late,
                Ending::Over => true,
            };
            if let Some(thread) = thread.filter(|_| counts) {
                ends.push((*number, thread));
                self.cancels.add(*number, thread, at);
            }
        }
        live.ends = ends;
    }

    /// Whether an instance goes on when a vCPU enters its guest.
    pub(super) fn waits_for_entry(&self, at: u32) -> bool {
        let mut waits = self.live[at as usize].waits.iter();
        waits.any(|(alt, _)| {
            let (_, _, alt) = &self.index.alts[*alt as usize];
            alt.events
                .iter()
                .any(|event| event.matches("kvm", "kvm_entry"))
        })
    }

    pub(super) fn unregister(&mut self, at: u32) {
        let live = &mut self.live[at as usize];
        for (alt, key) in live.waits.drain(..) {
            self.waiting.remove(alt, key, at);
        }
        for (number, thread) in live.ends.drain(..) {
            self.cancels.remove(number, thread, at);
        }
    }
}

impl Live {
    /// What it is found by when it waits for an alternative; nothing if it does not hold what that joins.
    fn found_by(&self, alt: &Alt) -> Option<u64> {
        let same = alt.joins.iter().filter(|join| !join.differs);
        key_of(same.map(|join| self.role(join.role)))
    }
}

/// Whether the steps that an instance has reached rule another one out.
fn is_barred(step: &Step, live: &Live) -> bool {
    step.not_after.iter().any(|s| live.has(*s)) || step.only_after.iter().any(|s| !live.has(*s))
}
