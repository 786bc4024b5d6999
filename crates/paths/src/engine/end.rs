//! Instances end: complete, or given up.

use event::index_of;
use model::Machine;

use super::bind::BoundEnd;
use super::instance::{LiveInstance, memory_key};
use super::plan::EndKind;
use super::{EventContext, MAX_REMEMBERED, Paths};
use crate::tally::{DropReason, InstanceAccount};

impl Paths {
    /// Returns what became of the instances so far.
    pub fn instance_account(&self) -> InstanceAccount {
        self.instances
    }

    /// Returns which types of the host's events are wanted, and how many of those there were.
    pub fn host_events(&self) -> (&[u32], u64) {
        (&self.host_types, self.host_events)
    }

    /// Counts an event of a type that is wanted.
    #[inline]
    pub fn count_host_event(&mut self) {
        self.host_events += 1;
    }

    /// An event by which instances of its thread end.
    pub(super) fn cancel(
        &mut self,
        cancel: &BoundEnd,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let thread = u64::from(now.thread);
        self.cancels.get(cancel.number, thread, &mut found);
        if !found.is_empty() && cancel.asks.iter().all(|ask| self.ask(ask, now, machine)) {
            self.end_all(cancel, &found, now);
        }
        self.found = found;
    }

    fn end_all(&mut self, cancel: &BoundEnd, found: &[u32], now: &EventContext<'_, '_>) {
        for &at in found {
            if !self.live[index_of(at)].live {
                continue;
            }
            // What was reached by this very event has yet to be followed.
            if self.live[index_of(at)].seq == self.seq {
                continue;
            }
            let exit_at = self.tasks.get(now.thread).exit_at;
            if cancel.anew && exit_at <= self.live[index_of(at)].last().time {
                continue;
            }
            self.unregister(at);
            if matches!(now.data, event::Data::KvmUserspaceExit(_)) {
                self.goes_to_user(at);
            }
            if cancel.ending == EndKind::Late {
                self.live[index_of(at)].late = true;
                self.register(at);
                if !self.live[index_of(at)].waits.is_empty() {
                    continue;
                }
                self.unregister(at);
            }
            if self.is_open(&self.live[index_of(at)]) {
                self.complete(at);
            } else {
                self.give_up(at, Some(DropReason::Superseded));
            }
        }
    }

    /// An instance ends without having completed.
    pub(super) fn give_up(&mut self, at: u32, why: Option<DropReason>) {
        self.unregister(at);
        self.vacate(at);
        let live = &self.live[index_of(at)];
        if live.counted {
            match why.filter(|_| self.is_wanted(live)) {
                Some(why) => {
                    let path = self.index.chains[index_of(live.chain)].0;
                    self.tallies[index_of(path)].dropped(why);
                    self.instances.dropped += 1;
                }
                None if why.is_some() => self.instances.left_out += 1,
                None => self.instances.none += 1,
            }
        }
        self.release(at);
    }

    fn is_wanted(&self, live: &LiveInstance) -> bool {
        let Some(first) = live.reached().first() else {
            return false;
        };
        let in_time = self
            .only
            .time
            .is_none_or(|(from, to)| from <= first.time && first.time <= to);
        let on_cpu = (self.only.cpus.as_ref()).is_none_or(|cpus| {
            let mut on_host = live.reached().iter().filter(|reached| reached.machine == 0);
            on_host.next().is_some_and(|reached| cpus.has(reached.cpu))
        });
        let of_thread = self.only.threads.as_ref().is_none_or(|threads| {
            let has = |slot: u32| threads.binary_search(&self.tasks.get(slot).tid).is_ok();
            match &live.notes {
                Some(notes) => has(notes.subject),
                None => live.reached().iter().any(|reached| has(reached.thread)),
            }
        });
        in_time && on_cpu && of_thread
    }

    pub(super) fn release(&mut self, at: u32) {
        self.unwatch(at);
        let live = &mut self.live[index_of(at)];
        live.live = false;
        if let Some(notes) = live.notes.take() {
            live.spare = Some(notes);
        }
        self.count -= 1;
        self.free.push(at);
    }

    /// An instance is complete.
    pub(super) fn complete(&mut self, at: u32) {
        self.vacate(at);
        if self.live[index_of(at)].counted {
            self.remember(at);
            match self.is_wanted(&self.live[index_of(at)]) {
                true => {
                    self.keep(at);
                    self.instances.complete += 1;
                }
                false => self.instances.left_out += 1,
            }
        }
        self.release(at);
    }

    /// Adds an instance to the sums, and to the list where there is one. What it had is found out only here: others
    /// need no traits.
    fn keep(&mut self, at: u32) {
        let mut traits = std::mem::take(&mut self.traits);
        traits.clear();
        self.traits(at, &mut traits);
        self.sum_up(at);
        let live = &self.live[index_of(at)];
        let (path, chain) = self.index.chains[index_of(live.chain)];
        let tally = &mut self.tallies[index_of(path)];
        let number = match self.sums {
            true => tally.add(chain, live.reached(), live.coalesced, &traits, &live.ledger),
            false => tally.count_one(),
        };
        if self.listing {
            let mut one = self.spare.pop().unwrap_or_default();
            one.path = index_of(path);
            one.chain = usize::from(chain);
            one.number = number;
            one.reached.clear();
            one.reached.extend_from_slice(live.reached());
            one.traits.clone_from(&traits);
            one.subject = live.notes.as_ref().map(|notes| notes.subject);
            self.listed.push(one);
        }
        self.traits = traits;
    }

    /// Remembers what later instances may recall.
    fn remember(&mut self, at: u32) {
        let live = &self.live[index_of(at)];
        for (role, by) in &self.index.recalled[index_of(live.chain)] {
            let (Some(value), Some(by)) = (live.known(*role), live.key(by)) else {
                continue;
            };
            if self.memory.len() >= MAX_REMEMBERED {
                self.memory.clear();
            }
            let known = self
                .memory
                .entry(memory_key(live.chain, *role, by))
                .or_insert(Some(value));
            // What is not always the same cannot be recalled.
            if *known != Some(value) {
                *known = None;
            }
        }
    }
}
