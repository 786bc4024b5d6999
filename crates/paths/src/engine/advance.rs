//! Instances begin, go on, and end.

use model::Machine;

use super::bind::{Ask, Bound, Cancel, Ending, Read, compare};
use super::instance::{Live, Reached};
use super::{Instance, MAX_LIVE, MAX_REMEMBERED, Now, Paths};
use crate::fields::Val;
use crate::interrupts::UNRESOLVED;
use crate::lang::{Alt, Class, MAX_ROLES, Op, Optional, Step, Value};
use crate::tally::Dropped;
use crate::tasks::{Raised, What};

/// The key of what has no other.
const ANY: u64 = u64::MAX;

/// Makes one key of the values that joins compare: one is itself.
fn key_of(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
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
    fn step(&self, chain: u32, step: usize) -> &Step {
        let (path, at) = self.index.chains[chain as usize];
        &self.paths[path as usize].chains[at as usize].steps[step]
    }

    fn steps(&self, chain: u32) -> usize {
        let (path, at) = self.index.chains[chain as usize];
        self.paths[path as usize].chains[at as usize].steps.len()
    }

    /// Whether a step can be passed over, as far as is known now.
    fn can_skip(&self, chain: u32, step: usize) -> bool {
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

    /// Returns the value of an attribute, as joins compare it.
    fn read(&self, read: &Read, now: &Now<'_, '_>) -> Option<u64> {
        match read {
            Read::Thread => Some(u64::from(now.thread)),
            Read::Task => now.task.map(u64::from),
            Read::Prev => now.prev.map(u64::from),
            Read::Cpu => Some(now.event.cpu as u32 as u64),
            Read::Any => Some(0),
            Read::Target => now.target,
            Read::Raised => Some(now.raised as u64),
            Read::Reason => None,
            Read::Field(getter) => getter.get(now.event, now.data).map(|value| value.key()),
        }
    }

    /// The thread that an attribute is, for questions about it.
    fn thread_of(&self, read: &Read, now: &Now<'_, '_>) -> Option<u32> {
        match read {
            Read::Thread => Some(now.thread),
            Read::Task => now.task,
            Read::Prev => now.prev,
            Read::Target => now
                .target
                .filter(|target| target & UNRESOLVED == 0)
                .map(|target| target as u32),
            _ => None,
        }
    }

    fn ask(&mut self, ask: &Ask, now: &Now<'_, '_>, machine: &mut Machine) -> bool {
        match ask {
            Ask::Compare(Read::Raised, op, wanted) => {
                let word = match now.raised {
                    Raised::Local => "local",
                    Raised::Ipi => "ipi",
                    Raised::Msi => "msi",
                    Raised::Pin => "pin",
                };
                compare(&Val::Text(word.into()), *op, wanted)
            }
            Ask::Compare(Read::Reason, op, wanted) => {
                let reason = match now.data {
                    event::Data::KvmExit(exit) => Some(exit.reason),
                    _ => machine
                        .vcpu_of(now.event.tid)
                        .and_then(|vcpu| machine.cause(vcpu).reason),
                };
                // HLT on Intel is hlt on AMD.
                let small = |text: &str| text.to_ascii_lowercase();
                let wanted = match wanted {
                    Value::Text(text) => &Value::Text(small(text)),
                    number => number,
                };
                let key = reason.map(|reason| small(&reason.key()));
                key.is_some_and(|key| compare(&Val::Text(key.into()), *op, wanted))
            }
            Ask::Sleeps => match now.data {
                event::Data::SchedSwitch(switch) => {
                    switch.prev_state.leaves() == event::sched::Leaves::Blocked
                }
                _ => false,
            },
            Ask::Halts => match now.data {
                event::Data::KvmExit(exit) => exit.reason.is_waiting(),
                _ => false,
            },
            Ask::Compare(Read::Field(getter), op, wanted) => getter
                .get(now.event, now.data)
                .is_some_and(|value| compare(&value, *op, wanted)),
            Ask::Compare(Read::Thread, op, wanted) => self.compare_tid(now.event.tid, *op, wanted),
            Ask::Compare(read, op, wanted) => {
                let value = match read {
                    Read::Cpu => Some(now.event.cpu as i64 as u64),
                    read => self
                        .thread_of(read, now)
                        .and_then(|slot| machine.threads().at(slot))
                        .map(|(tid, _)| tid as i64 as u64),
                };
                value.is_some_and(|value| compare(&Val::Number(value), *op, wanted))
            }
            Ask::Is(read, class, yes) => {
                // What is not known to be something is not.
                let is = self
                    .thread_of(read, now)
                    .is_some_and(|slot| self.is(slot, *class, now, machine));
                is == *yes
            }
            Ask::Within(getter, ranges) => getter
                .number(now.event, now.data)
                .is_some_and(|number| ranges.iter().any(|range| range.contains(&number))),
            Ask::Rises(level, line) => {
                let Some(level) = level.number(now.event, now.data) else {
                    return false;
                };
                let line = line.number(now.event, now.data).unwrap_or(0);
                let key = (now.event.ty.index, now.thread, line);
                // Two paths may ask about one event: the level is remembered after it.
                self.rising.push((key, level));
                level != 0 && self.levels.get(&key).copied().unwrap_or(0) == 0
            }
        }
    }

    fn compare_tid(&self, tid: i32, op: Op, wanted: &Value) -> bool {
        compare(&Val::Number(tid as i64 as u64), op, wanted)
    }

    fn is(&mut self, slot: u32, class: Class, now: &Now<'_, '_>, machine: &mut Machine) -> bool {
        use model::Halt;
        let what = self.tasks.entry(slot, machine.threads()).what;
        let halt = |machine: &mut Machine| {
            let tid = machine.threads().at(slot).map(|(tid, _)| tid);
            let vcpu = tid.and_then(|tid| machine.vcpu_of(tid));
            vcpu.and_then(|vcpu| machine.halt(vcpu))
        };
        match class {
            Class::Vcpu => what == What::Vcpu,
            Class::Kworker => what == What::Kworker,
            Class::Kernel => what == What::Kernel,
            Class::Vhost => what == What::Vhost,
            Class::Idle => what == What::Idle,
            Class::Guest => self.in_guest(slot, machine),
            Class::Halted => what == What::Vcpu && halt(machine) == Some(Halt::Asleep),
            Class::Polling => what == What::Vcpu && halt(machine) == Some(Halt::Running),
            Class::Vmm => what == What::Other && works_for(now.thread, slot, machine.threads()),
            Class::Other => what == What::Vcpu && slot != now.thread,
        }
    }

    /// The event may be this alternative of a step.
    pub(super) fn alternative(&mut self, bound: &Bound, now: &Now<'_, '_>, machine: &mut Machine) {
        let (chain, step) = (bound.chain, bound.step);
        let number = bound.number as usize;
        if self.disabled[number] || self.disabled_alts[bound.alt as usize] {
            return;
        }
        if let Some(functions) = &bound.functions
            && !functions.called(now.event, now.data)
        {
            return;
        }
        for ask in &bound.asks {
            if !self.ask(ask, now, machine) {
                return;
            }
        }
        if !bound.joins {
            if self.advanced != Some((chain, step))
                && (0..step).all(|before| self.can_skip(chain, before))
            {
                self.begin(bound, chain, step, now, machine);
            }
            return;
        }
        let values = bound.keys.iter();
        let Some(key) = key_of(values.map(|(read, _)| self.read(read, now))) else {
            return;
        };
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.waiting.get(bound.alt, key, &mut found);
        if found.len() > 1 {
            found.sort_by_key(|at| self.live[*at as usize].born);
        }
        for &at in &found {
            // What another one of them displaced is gone, and its place may hold another instance.
            let here = &self.live[at as usize];
            if !here.live || !here.waits.contains(&(bound.alt, key)) {
                continue;
            }
            let fits = bound.checks.iter().all(|(read, role, differs)| {
                let value = self.read(read, now);
                let held = self.live[at as usize].role(*role);
                match (value, held) {
                    (Some(value), Some(held)) => (value == held) != *differs,
                    _ => false,
                }
            });
            let since = now
                .event
                .time
                .saturating_sub(self.live[at as usize].last().time);
            let within = bound.within.as_ref();
            let fits = fits
                && within.is_none_or(|read| self.read(read, now).is_some_and(|ns| since <= ns));
            // One event takes an instance one step on, not back again.
            if !fits || self.live[at as usize].seq == self.seq {
                continue;
            }
            if self.index.alts[bound.alt as usize].2.only_binds {
                self.learn(at, bound, now);
                continue;
            }
            self.advanced = Some((chain, step));
            let at = if self.step(chain, step).each {
                match self.fork(at) {
                    Some(child) => child,
                    None => continue,
                }
            } else {
                self.unregister(at);
                at
            };
            self.reach(at, bound, step, now, machine);
        }
        self.found = found;
    }

    /// An event tells what an instance does not know yet, and is no step of it.
    fn learn(&mut self, at: u32, bound: &Bound, now: &Now<'_, '_>) {
        let unknown = |(role, _): &&(usize, Read)| self.live[at as usize].role(*role).is_none();
        let told: Vec<(usize, u64)> = bound
            .binds
            .iter()
            .filter(unknown)
            .filter_map(|(role, read)| Some((*role, self.read(read, now)?)))
            .collect();
        if told.is_empty() {
            return;
        }
        self.unregister(at);
        let live = &mut self.live[at as usize];
        for (role, value) in told {
            live.set(role, value);
        }
        // What it is unique by may be known now.
        let chain = live.chain;
        let steps = live.reached().iter().rev().map(|r| r.step as usize);
        let unique = steps.into_iter().find(|step| {
            let (path, place) = self.index.chains[chain as usize];
            let steps = &self.paths[path as usize].chains[place as usize].steps;
            !steps[*step].unique.is_empty()
        });
        if unique.is_none_or(|step| self.occupy(at, step)) {
            self.register(at);
        }
    }

    fn begin(
        &mut self,
        bound: &Bound,
        chain: u32,
        step: usize,
        now: &Now<'_, '_>,
        machine: &mut Machine,
    ) {
        let Some(at) = self.allocate(chain) else {
            return;
        };
        self.reach(at, bound, step, now, machine);
    }

    /// Takes a place for an instance.
    fn allocate(&mut self, chain: u32) -> Option<u32> {
        if self.count >= self.limit {
            let oldest = self.oldest()?;
            self.give_up(oldest, Some(Dropped::Superseded));
        }
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.live.push(Live::default());
                self.live.len() as u32 - 1
            }
        };
        self.count += 1;
        self.born += 1;
        let live = &mut self.live[at as usize];
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
                let live = self.live.get(at as usize)?;
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
        let chain = self.live[parent as usize].chain;
        let child = self.allocate(chain)?;
        if child == parent || !self.live[parent as usize].live {
            // It was the oldest, and there were too many; its place may be the child's now.
            self.release(child);
            return None;
        }
        let mut copy = self.live[parent as usize].clone();
        copy.waits.clear();
        copy.ends.clear();
        copy.unique = None;
        copy.notes = None;
        copy.spare = None;
        copy.born = self.live[child as usize].born;
        for role in 0..MAX_ROLES {
            if let Some(ticket) = copy.role(role).filter(|_| copy.is_pending(role)) {
                self.holds(child, ticket);
            }
        }
        self.live[child as usize] = copy;
        self.live[parent as usize].counted = false;
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

    /// An instance reaches a step.
    fn reach(
        &mut self,
        at: u32,
        bound: &Bound,
        step: usize,
        now: &Now<'_, '_>,
        machine: &mut Machine,
    ) {
        // A clock that runs backwards makes a stage of no length.
        let before = self.live[at as usize].reached().last().map(|r| r.time);
        let reached = Reached {
            step: step as u8,
            time: now.event.time.max(before.unwrap_or(0)),
            cpu: now.event.cpu,
            thread: now.thread,
            task: now.task,
            switch: matches!(now.data, event::Data::SchedSwitch(_)),
        };
        let instead_of = &self.index.alts[bound.alt as usize].2.instead_of;
        if let Some(name) = instead_of {
            let chain = self.live[at as usize].chain;
            let last = self.live[at as usize].last().step as usize;
            if self.step(chain, last).name == *name {
                self.live[at as usize].take_back();
            }
        }
        for (role, read) in &bound.binds {
            if let Some(value) = self.read(read, now) {
                let live = &mut self.live[at as usize];
                live.set(*role, value);
                if matches!(read, Read::Target) && value & UNRESOLVED != 0 {
                    live.pending |= 1 << role;
                    self.holds(at, value);
                }
            }
        }
        let chain = self.live[at as usize].chain;
        let live = &mut self.live[at as usize];
        live.reach(reached);
        live.seq = self.seq;
        live.late = false;
        let (path, place) = self.index.chains[chain as usize];
        let this = &self.paths[path as usize].chains[place as usize].steps[step];
        live.counted |= this.counts;
        for (role, by) in &this.recall {
            if live.role(*role).is_none()
                && let Some(by) = live.key(by)
                && let Some(Some(value)) = self.memory.get(&(chain, *role as u8, by))
            {
                live.set(*role, *value);
            }
        }
        let ends = this.ends || step + 1 == self.steps(chain);
        if !self.occupy(at, step) {
            return;
        }
        self.notice(at, now, machine);
        if ends {
            self.complete(at);
        } else {
            self.register(at);
        }
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
        let scope = self.index.first_step[chain as usize] + step as u32;
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

    fn vacate(&mut self, at: u32) {
        if let Some(key) = self.live[at as usize].unique.take()
            && self.unique.get(&key) == Some(&at)
        {
            self.unique.remove(&key);
        }
    }

    /// Registers an instance with all that can come next.
    pub(super) fn register(&mut self, at: u32) {
        let chain = self.live[at as usize].chain;
        let last = self.live[at as usize].last();
        let (path, place) = self.index.chains[chain as usize];
        let first = self.index.first_step[chain as usize];
        let steps = self.steps(chain);
        let mut waits = std::mem::take(&mut self.live[at as usize].waits);
        for step in last.step as usize + 1..steps {
            let number = (first as usize + step) as u32;
            if self.disabled[number as usize] {
                continue;
            }
            let this = &self.paths[path as usize].chains[place as usize].steps[step];
            let live = &self.live[at as usize];
            let recalled = |role: usize| {
                this.recall.iter().any(|(known, by)| {
                    let by = live.key(by);
                    *known == role
                        && by.is_some_and(|by| {
                            matches!(self.memory.get(&(chain, role as u8, by)), Some(Some(_)))
                        })
                })
            };
            let barred = live.late && this.soon
                || this
                    .needs
                    .iter()
                    .any(|role| live.role(*role).is_none() && !recalled(*role))
                || is_barred(this, live);
            if !barred {
                for alt in self.index.of_step[number as usize].clone() {
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
            }
            if !barred && !self.can_skip(chain, step) {
                break;
            }
        }
        // Steps that take the last one back may be earlier ones.
        let live = &self.live[at as usize];
        let before = live
            .reached()
            .iter()
            .rev()
            .nth(1)
            .map(|r| u32::from(r.step));
        for alt in &self.index.back[first as usize + last.step as usize] {
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
        for (alt, key) in &waits {
            self.waiting.add(*alt, *key, at);
        }
        self.live[at as usize].waits = waits;
        let live = &mut self.live[at as usize];
        let mut ends = std::mem::take(&mut live.ends);
        for (number, of, ending) in &self.index.ends[first as usize + last.step as usize] {
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

    /// An event by which instances of its thread end.
    pub(super) fn cancel(&mut self, cancel: &Cancel, now: &Now<'_, '_>, machine: &mut Machine) {
        if !self.cancels.any(cancel.number) {
            return;
        }
        let mut found = Vec::new();
        self.cancels
            .get(cancel.number, u64::from(now.thread), &mut found);
        if found.is_empty() || !cancel.asks.iter().all(|ask| self.ask(ask, now, machine)) {
            return;
        }
        for at in found {
            if !self.live[at as usize].live {
                continue;
            }
            // What was reached by this very event has yet to be followed.
            if self.live[at as usize].seq == self.seq {
                continue;
            }
            let exit_at = self.tasks.get(now.thread).exit_at;
            if cancel.anew && exit_at <= self.live[at as usize].last().time {
                continue;
            }
            self.unregister(at);
            if matches!(now.data, event::Data::KvmUserspaceExit(_)) {
                self.goes_to_user(at);
            }
            if cancel.ending == Ending::Late {
                self.live[at as usize].late = true;
                self.register(at);
                if !self.live[at as usize].waits.is_empty() {
                    continue;
                }
                self.unregister(at);
            }
            if self.is_open(&self.live[at as usize]) {
                self.complete(at);
            } else {
                self.give_up(at, Some(Dropped::Superseded));
            }
        }
    }

    /// An instance ends without having completed.
    pub(super) fn give_up(&mut self, at: u32, why: Option<Dropped>) {
        self.unregister(at);
        self.vacate(at);
        let live = &self.live[at as usize];
        if let Some(why) = why
            && live.counted
            && self.is_wanted(live)
        {
            let path = self.index.chains[live.chain as usize].0;
            self.tallies[path as usize].dropped(why);
        }
        self.release(at);
    }

    fn is_wanted(&self, live: &Live) -> bool {
        let Some(first) = live.reached().first() else {
            return false;
        };
        let in_time = self
            .only
            .time
            .is_none_or(|(from, to)| from <= first.time && first.time <= to);
        let on_cpu = (self.only.cpus.as_ref()).is_none_or(|cpus| cpus.has(first.cpu));
        let of_thread = self.only.threads.as_ref().is_none_or(|threads| {
            let has = |slot: u32| threads.binary_search(&self.tasks.get(slot).tid).is_ok();
            match &live.notes {
                Some(notes) => has(notes.subject),
                None => live.reached().iter().any(|reached| has(reached.thread)),
            }
        });
        in_time && on_cpu && of_thread
    }

    fn release(&mut self, at: u32) {
        self.unwatch(at);
        let live = &mut self.live[at as usize];
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
        let mut traits = std::mem::take(&mut self.traits);
        traits.clear();
        self.traits(at, &mut traits);
        let live = &self.live[at as usize];
        let (path, chain) = self.index.chains[live.chain as usize];
        if live.counted {
            self.remember(at);
        }
        if self.live[at as usize].counted && self.is_wanted(&self.live[at as usize]) {
            self.sum_up(at);
            let live = &self.live[at as usize];
            let tally = &mut self.tallies[path as usize];
            let number = tally.add(chain as usize, live.reached(), live.coalesced, &traits);
            if self.listing {
                self.listed.push(Instance {
                    path: path as usize,
                    chain: chain as usize,
                    number,
                    reached: live.reached().to_vec(),
                    traits: traits.clone(),
                    subject: live.notes.as_ref().map(|notes| notes.subject),
                });
            }
        }
        self.traits = traits;
        self.release(at);
    }

    /// Remembers what later instances may recall.
    fn remember(&mut self, at: u32) {
        let live = &self.live[at as usize];
        let (path, chain) = self.index.chains[live.chain as usize];
        for step in &self.paths[path as usize].chains[chain as usize].steps {
            for (role, by) in &step.recall {
                let (Some(value), Some(by)) = (live.role(*role), live.key(by)) else {
                    continue;
                };
                if live.is_pending(*role) {
                    continue;
                }
                if self.memory.len() >= MAX_REMEMBERED {
                    self.memory.clear();
                }
                let known = self
                    .memory
                    .entry((live.chain, *role as u8, by))
                    .or_insert(Some(value));
                // What is not always the same cannot be recalled.
                if *known != Some(value) {
                    *known = None;
                }
            }
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

/// Whether a thread belongs to the process that another one works for: its own, or the one that a vhost worker has in its
/// name. ftrace does not record processes, so that of other threads nothing is known there.
fn works_for(worker: u32, thread: u32, threads: &model::Threads) -> bool {
    let (Some((_, worker)), Some((tid, thread))) = (threads.at(worker), threads.at(thread)) else {
        return false;
    };
    let named = worker
        .comm
        .as_deref()
        .and_then(|comm| comm.strip_prefix("vhost-"));
    let process = named.and_then(|pid| pid.parse().ok()).or(worker.pid);
    match (process, thread.pid) {
        (Some(process), Some(pid)) => process == pid,
        (Some(process), None) => process == tid,
        (None, _) => false,
    }
}
