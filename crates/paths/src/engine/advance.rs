//! Instances begin and go on.

use event::index_of;
use model::Machine;

use super::bind::{AttributeReader, BoundAlternative};
use super::instance::{LiveInstance, ReachedStep, memory_key};
use super::nexts::key_of;
use super::plan::one;
use super::{EventContext, MAX_LIVE, Paths};
use crate::interrupts::UNRESOLVED;
use crate::lang::MAX_ROLES;
use crate::tally::DropReason;
use crate::tasks::TaskKind;

impl Paths {
    /// The event may be this alternative of a step.
    pub(super) fn alternative(
        &mut self,
        bound: &BoundAlternative,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        if !self.is_meant(bound, now, machine) {
            return;
        }
        if !bound.joins {
            let (chain, step) = (bound.chain, bound.step);
            let yields = self.index.steps[index_of(bound.number)].yields;
            if self.advanced != Some((chain, step))
                && yields.is_none_or(|to| self.advanced != Some((chain, to)))
                && (0..step).all(|before| {
                    self.can_begin_behind(self.index.number(chain, before), now.thread)
                })
            {
                self.begin(bound, chain, step, now, machine);
            }
            return;
        }
        let values = bound.keys.iter();
        let Some(key) = key_of(values.map(|(read, _)| self.read(read, now, machine))) else {
            return;
        };
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.waiting.get(bound.alt, key, &mut found);
        if found.len() > 1 {
            found.sort_by_key(|at| self.live[index_of(*at)].born);
        }
        for &at in &found {
            // What another one of them displaced is gone, and its place may hold another instance.
            let here = &self.live[index_of(at)];
            if !here.live || !here.waits.contains(&(bound.alt, key)) {
                continue;
            }
            // One event takes an instance one step on, not back again.
            if self.fits(here, bound, now, machine) && here.seq != self.seq {
                self.go_on(at, bound, now, machine);
            }
        }
        self.found = found;
    }

    /// Returns whether the event is what an alternative that still counts asks for, whoever waits for it.
    #[inline]
    fn is_meant(
        &mut self,
        bound: &BoundAlternative,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) -> bool {
        if self.disabled[index_of(bound.number)] || self.disabled_alts[index_of(bound.alt)] {
            return false;
        }
        let functions = bound.functions.as_ref();
        functions.is_none_or(|functions| functions.called(now.event, now.data))
            && bound.asks.iter().all(|ask| self.ask(ask, now, machine))
    }

    /// An instance goes on by the event, or by one of its own for each event that can follow; or it learns from it.
    #[inline]
    fn go_on(
        &mut self,
        at: u32,
        bound: &BoundAlternative,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        if self.index.alts[index_of(bound.alt)].only_binds {
            self.learn(at, bound, now, machine);
            return;
        }
        let (chain, step) = (bound.chain, bound.step);
        let yields = self.index.steps[index_of(bound.number)].yields;
        if yields.is_some_and(|to| self.advanced == Some((chain, to))) {
            self.give_up(at, None);
            return;
        }
        self.advanced = Some((chain, step));
        let at = if self.index.steps[index_of(bound.number)].each {
            match self.fork(at) {
                Some(child) => child,
                None => return,
            }
        } else {
            self.unregister(at);
            at
        };
        self.reach(at, bound, step, now, machine);
    }

    /// Returns whether an instance that waits for the alternative has what it compares.
    #[inline]
    fn fits(
        &self,
        live: &LiveInstance,
        bound: &BoundAlternative,
        now: &EventContext<'_, '_>,
        machine: &Machine,
    ) -> bool {
        let fits = bound.checks.iter().all(|(read, role, differs)| {
            match (self.read(read, now, machine), live.role(*role)) {
                (Some(value), Some(held)) => (value == held) != *differs,
                _ => false,
            }
        });
        let awake = !bound.awake || self.tasks.get(now.thread).idle_until <= live.last().time;
        let since = now.event.time.saturating_sub(live.last().time);
        let within = bound.within.as_ref();
        let ago = within.map(|read| self.read(read, now, machine));
        fits && awake && ago.is_none_or(|most| most.is_some_and(|ns| since <= ns))
    }

    /// Fills roles that an instance does not hold yet from an event that is no step of it.
    fn learn(
        &mut self,
        at: u32,
        bound: &BoundAlternative,
        now: &EventContext<'_, '_>,
        machine: &Machine,
    ) {
        let unknown =
            |(role, _): &&(usize, AttributeReader)| self.live[index_of(at)].role(*role).is_none();
        let new: Vec<(usize, u64)> = bound
            .binds
            .iter()
            .filter(unknown)
            .filter_map(|(role, read)| Some((*role, self.read(read, now, machine)?)))
            .collect();
        if new.is_empty() {
            return;
        }
        self.unregister(at);
        let live = &mut self.live[index_of(at)];
        for (role, value) in new {
            live.set(role, value);
        }
        // What it is unique by may be known now.
        let chain = live.chain;
        let steps = live.reached().iter().rev().map(|r| usize::from(r.step));
        let unique = steps
            .into_iter()
            .find(|step| !self.index.step(chain, *step).unique.is_empty());
        if unique.is_none_or(|step| self.occupy(at, step)) {
            self.register(at);
        }
    }

    fn begin(
        &mut self,
        bound: &BoundAlternative,
        chain: u32,
        step: usize,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        let Some(at) = self.allocate(chain) else {
            return;
        };
        if self.index.steps[index_of(bound.number)].from_exit {
            self.reach_exit(at, step, now);
        }
        self.reach(at, bound, step, now, machine);
    }

    /// An instance that a vCPU's event begins begins with the exit that the vCPU is in, if that was recorded.
    fn reach_exit(&mut self, at: u32, step: usize, now: &EventContext<'_, '_>) {
        let task = self.tasks.get(now.thread);
        let in_exit = task.what == TaskKind::Vcpu && task.exit_at > 0;
        // An entry since then: the exit was lost, or KVM makes the event of it after it has
        // handled the ICR's write (a fast path that comes before `trace_kvm_exit`).
        if !in_exit || task.exit_at < task.entry_at || task.exit_at > now.event.time {
            return;
        }
        let exit = ReachedStep {
            step: u8::try_from(step - 1).unwrap_or(u8::MAX),
            machine: now.event.machine(),
            time: task.exit_at,
            cpu: now.event.cpu,
            thread: now.thread,
            task: None,
            switch: false,
        };
        self.live[index_of(at)].reach(exit, 0);
        self.begin_account(at, exit.time);
    }

    /// Takes a place for an instance.
    fn allocate(&mut self, chain: u32) -> Option<u32> {
        if self.count >= self.limit {
            let oldest = self.oldest()?;
            self.give_up(oldest, Some(DropReason::Superseded));
        }
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let at = u32::try_from(self.live.len()).ok()?;
                self.live.push(LiveInstance::default());
                at
            }
        };
        self.count += 1;
        self.born += 1;
        let live = &mut self.live[index_of(at)];
        live.clear();
        live.chain = chain;
        live.born = self.born;
        Some(at)
    }

    /// Returns the oldest instance. Many are looked up at once: as long as there are too many, each that begins takes
    /// the place of one.
    fn oldest(&mut self) -> Option<u32> {
        const AT_ONCE: usize = 4096;
        loop {
            while let Some((born, at)) = self.oldest.pop() {
                let live = self.live.get(index_of(at))?;
                if live.live && live.born == born {
                    return Some(at);
                }
            }
            let mut all: Vec<(u64, u32)> = (0u32..)
                .zip(&self.live)
                .filter(|(_, live)| live.live)
                .map(|(at, live)| (live.born, at))
                .collect();
            if all.is_empty() {
                return None;
            }
            // What begins from now on is younger than all of these.
            all.sort_unstable();
            all.truncate(AT_ONCE);
            all.reverse();
            self.oldest = all;
        }
    }

    /// Makes an instance of its own for one of several events that can follow. The one they follow stays, and is
    /// none itself: those that come of it are.
    fn fork(&mut self, parent: u32) -> Option<u32> {
        let chain = self.live[index_of(parent)].chain;
        let child = self.allocate(chain)?;
        if child == parent || !self.live[index_of(parent)].live {
            // It was the oldest, and there were too many; its place may be the child's now.
            self.release(child);
            return None;
        }
        let mut copy = self.live[index_of(parent)].clone();
        copy.waits.clear();
        copy.ends.clear();
        copy.unique = None;
        copy.notes = None;
        copy.spare = None;
        copy.born = self.live[index_of(child)].born;
        for role in 0..MAX_ROLES {
            if let Some(ticket) = copy.role(role).filter(|_| copy.is_pending(role)) {
                self.holds(child, ticket);
            }
        }
        self.live[index_of(child)] = copy;
        self.live[index_of(parent)].counted = false;
        Some(child)
    }

    /// An instance holds a ticket.
    fn holds(&mut self, at: u32, ticket: u64) {
        let all = self.tickets.entry(ticket).or_default();
        // Those that have ended make place for others.
        if all.len() >= 2 * MAX_LIVE {
            all.sort_unstable();
            all.dedup();
        }
        all.push(at);
    }

    /// An instance takes the roles that its event gives it.
    #[inline]
    fn bind_roles(
        &mut self,
        at: u32,
        bound: &BoundAlternative,
        now: &EventContext<'_, '_>,
        machine: &Machine,
    ) {
        for (role, read) in &bound.binds {
            if let Some(value) = self.read(read, now, machine) {
                let live = &mut self.live[index_of(at)];
                live.set(*role, value);
                if matches!(read, AttributeReader::Target) && value & UNRESOLVED != 0 {
                    live.pending |= 1 << role;
                    self.holds(at, value);
                }
            }
        }
    }

    /// An instance reaches a step.
    fn reach(
        &mut self,
        at: u32,
        bound: &BoundAlternative,
        step: usize,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        // A clock that runs backwards makes a stage of no length.
        let before = self.live[index_of(at)].reached().last().map(|r| r.time);
        let reached = ReachedStep {
            // At most `MAX_STEPS`.
            step: u8::try_from(step).unwrap_or(u8::MAX),
            machine: now.event.machine(),
            time: now.event.time.max(before.unwrap_or(0)),
            cpu: now.event.cpu,
            thread: now.thread,
            task: now.task,
            switch: now.guest.is_none() && matches!(now.data, event::Data::SchedSwitch(_)),
        };
        let alt = &self.index.alts[index_of(bound.alt)];
        let live = &mut self.live[index_of(at)];
        if alt.takes_back & one(live.last_step()) != 0 {
            // By these the event belongs to the instance.
            let joined = alt.found_by.iter().fold(0, |all, role| all | 1 << role);
            while alt.takes_back & one(live.last_step()) != 0 && !live.reached().is_empty() {
                live.take_back(joined);
            }
        }
        let held = live.bound;
        self.bind_roles(at, bound, now, machine);
        let this = &self.index.steps[index_of(bound.number)];
        let live = &mut self.live[index_of(at)];
        live.reach(reached, held);
        live.seq = self.seq;
        live.late = false;
        self.instances.begun += u64::from(this.counts && !live.counted);
        live.counted |= this.counts;
        for (role, by) in &this.recall {
            if live.role(*role).is_none()
                && let Some(by) = live.key(by)
                && let Some(Some(value)) = self.memory.get(&memory_key(live.chain, *role, by))
            {
                live.set(*role, *value);
            }
        }
        let ends = this.ends;
        self.account(at, bound, now, machine);
        if !self.occupy(at, step) {
            return;
        }
        self.notice(at, now, machine);
        if ends || self.is_all_of_host(at, index_of(bound.number)) {
            self.complete(at);
        } else {
            self.register(at);
        }
    }
}
