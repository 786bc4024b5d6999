//! Which vCPU an interrupt is for.
//!
//! `kvm_apic_accept_irq` tells the number of a vCPU and not whose. It is the accepting thread's own VM's, if that
//! thread belongs to one; else what happens next tells: the same thread wakes a vCPU of that number, or a
//! vCPU of that number gets an interrupt of that vector injected of which nothing else is known; or there is only one vCPU
//! of that number, which is believed once the thread goes on to something else without having woken another one. What stays
//! unknown is said to be so: an interrupt is never given to a VM by guess.

use std::collections::VecDeque;

use model::Threads;
use rustc_hash::FxHashMap;

use crate::tasks::{Tasks, What};

/// Stands in the place of a vCPU's slot where it is not known yet which it is; the rest is the ticket.
pub(crate) const UNRESOLVED: u64 = 1 << 63;

/// Interrupts that wait to be resolved, at most.
const MAX_WAITING: usize = 64;
/// Interrupts that are accepted and not injected, at most.
const MAX_OUTSTANDING: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    ticket: u64,
    thread: u32,
    number: u32,
    vector: u32,
}

/// What was found out of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The vCPU's thread.
    Target(u64, u32),
    /// Nothing, and nothing will be.
    Nothing(u64),
}

/// Interrupts under way.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    next: u64,
    waiting: VecDeque<Waiting>,
    /// Accepted for a vCPU and not injected yet: slot and vector.
    outstanding: FxHashMap<(u32, u32), ()>,
    /// Threads that are of one VM, as what they did tells: each points to another, or to itself.
    group: FxHashMap<u32, u32>,
    /// vCPUs of a group: its root and the number.
    members: FxHashMap<(u32, u32), u32>,
    /// What was found out by the event now.
    pub found: Vec<Found>,
}

impl Interrupts {
    fn root(&self, mut slot: u32) -> u32 {
        // Short chains: a VM has few threads that count here.
        for _ in 0..64 {
            match self.group.get(&slot) {
                Some(&up) if up != slot => slot = up,
                _ => break,
            }
        }
        slot
    }

    /// Two threads turn out to be of one VM.
    fn join(&mut self, a: u32, b: u32, tasks: &Tasks) {
        let (a, b) = (self.root(a), self.root(b));
        self.group.entry(a).or_insert(a);
        if a != b {
            self.group.insert(b, a);
            let moved: Vec<_> = self
                .members
                .iter()
                .filter(|((root, _), _)| *root == b)
                .map(|((_, number), slot)| (*number, *slot))
                .collect();
            for (number, slot) in moved {
                self.members.remove(&(b, number));
                self.members.insert((a, number), slot);
            }
        }
        for slot in [a, b] {
            if let Some(number) = tasks.get(slot).vcpu {
                self.members.insert((a, number), slot);
            }
        }
    }

    /// Remembers a vCPU with its group.
    fn member(&mut self, slot: u32, tasks: &Tasks) {
        let root = self.root(slot);
        if let Some(number) = tasks.get(slot).vcpu {
            self.members.insert((root, number), slot);
        }
    }

    /// The vCPU of that number in the VM that a thread belongs to, where that is certain.
    fn known(&self, thread: u32, number: u32, tasks: &Tasks, threads: &Threads) -> Option<u32> {
        let task = tasks.get(thread);
        if task.what == What::Vcpu && task.vcpu == Some(number) {
            return Some(thread);
        }
        if matches!(task.what, What::Vcpu | What::Vhost)
            && let Some(&slot) = self.members.get(&(self.root(thread), number))
        {
            return Some(slot);
        }
        let pid = process(thread, threads)?;
        let mut all = threads.iter().zip(0u32..).filter(|((_, other), slot)| {
            other.pid == Some(pid)
                && tasks.get(*slot).what == What::Vcpu
                && tasks.get(*slot).vcpu.or(other.vcpu) == Some(number)
                && !other.ended
        });
        let found = all.next()?.1;
        all.next().is_none().then_some(found)
    }

    /// Returns whether there are any of which it is not known whose they are.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A thread goes on: of interrupts that it accepted, those that can only be for one vCPU are for that one.
    pub fn goes_on(&mut self, thread: u32, tasks: &Tasks) {
        if !self.waiting.is_empty() {
            self.settle(tasks, |waiting, _| waiting.thread == thread);
        }
    }

    /// A vCPU's thread gets its CPU, or does something on it.
    pub fn acts(&mut self, slot: u32, tasks: &Tasks) {
        if !self.waiting.is_empty() {
            self.settle(tasks, |_, only| only == slot);
        }
    }

    fn settle(&mut self, tasks: &Tasks, fits: impl Fn(&Waiting, u32) -> bool) {
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at).copied() {
            match tasks.only_vcpu(waiting.number) {
                Some(only) if fits(&waiting, only) => {
                    self.waiting.remove(at);
                    self.resolve(waiting, only, tasks);
                }
                _ => at += 1,
            }
        }
    }

    /// Returns the vCPU that an interrupt which waits to be resolved is for, if it can be for one only.
    pub fn only(&self, ticket: u64, tasks: &Tasks) -> Option<u32> {
        let waiting = self
            .waiting
            .iter()
            .find(|w| UNRESOLVED | w.ticket == ticket)?;
        tasks.only_vcpu(waiting.number)
    }

    /// Returns whether an interrupt that waits to be resolved may be for a vCPU on a CPU.
    pub fn may_be_on(&self, ticket: u64, cpu: i32, tasks: &Tasks) -> bool {
        self.waiting
            .iter()
            .any(|w| UNRESOLVED | w.ticket == ticket && tasks.any_on(w.number, cpu))
    }

    /// An interrupt is accepted for the vCPU of that number. Returns its thread's slot, or a ticket.
    pub fn accept(
        &mut self,
        thread: u32,
        number: u32,
        vector: u32,
        tasks: &Tasks,
        threads: &Threads,
        polls: impl FnOnce(u32) -> bool,
    ) -> u64 {
        // A vCPU that polls is not woken, so nothing more will tell.
        let known = self.known(thread, number, tasks, threads);
        let slot = known.or_else(|| tasks.only_vcpu(number).filter(|slot| polls(*slot)));
        if let Some(slot) = slot {
            if tasks.get(thread).what == What::Vcpu || tasks.get(thread).what == What::Vhost {
                self.join(thread, slot, tasks);
                self.member(slot, tasks);
            }
            self.waits(slot, vector);
            return u64::from(slot);
        }
        self.next += 1;
        if self.waiting.len() == MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.found.push(Found::Nothing(oldest.ticket));
        }
        self.waiting.push_back(Waiting {
            ticket: self.next,
            thread,
            number,
            vector,
        });
        UNRESOLVED | self.next
    }

    /// A thread wakes a vCPU's.
    pub fn wakes(&mut self, thread: u32, task: u32, tasks: &Tasks) {
        if self.waiting.is_empty() || tasks.get(task).what != What::Vcpu {
            return;
        }
        let Some(number) = tasks.get(task).vcpu else {
            return;
        };
        // The last one: what a thread does not wake a vCPU for before it accepts the next is for one that runs.
        let at = self
            .waiting
            .iter()
            .rposition(|w| w.thread == thread && w.number == number);
        if let Some(found) = at.and_then(|at| self.waiting.remove(at)) {
            self.resolve(found, task, tasks);
        }
    }

    /// A vCPU gets an interrupt injected.
    pub fn injects(&mut self, slot: u32, vector: u32, tasks: &Tasks) {
        if self.outstanding.remove(&(slot, vector)).is_some() || self.waiting.is_empty() {
            return;
        }
        let Some(number) = tasks.get(slot).vcpu else {
            return;
        };
        let fits = |w: &Waiting| w.number == number && w.vector == vector;
        let mut threads = self.waiting.iter().filter(|w| fits(w)).map(|w| w.thread);
        let Some(first) = threads.next() else {
            return;
        };
        if threads.any(|thread| thread != first) {
            return;
        }
        while let Some(at) = self.waiting.iter().position(fits) {
            if let Some(found) = self.waiting.remove(at) {
                self.resolve(found, slot, tasks);
            }
        }
        self.outstanding.remove(&(slot, vector));
    }

    /// An interrupt waits to be injected.
    fn waits(&mut self, slot: u32, vector: u32) {
        // A vCPU has 256 vectors. Where nothing tells of injections, nothing is asked of these.
        if self.outstanding.len() >= MAX_OUTSTANDING {
            self.outstanding.clear();
        }
        self.outstanding.insert((slot, vector), ());
    }

    fn resolve(&mut self, found: Waiting, slot: u32, tasks: &Tasks) {
        if matches!(tasks.get(found.thread).what, What::Vcpu | What::Vhost) {
            self.join(found.thread, slot, tasks);
        }
        self.member(slot, tasks);
        self.waits(slot, found.vector);
        self.found.push(Found::Target(found.ticket, slot));
    }
}

/// The process of a VMM that a thread works for: its own, or the one a vhost worker has in its name.
fn process(thread: u32, threads: &Threads) -> Option<i32> {
    let (_, thread) = threads.at(thread)?;
    let named = || thread.comm.as_deref()?.strip_prefix("vhost-")?.parse().ok();
    match thread.comm.as_deref() {
        Some(comm) if comm.starts_with("vhost-") => named(),
        _ => thread.pid.filter(|pid| *pid > 0),
    }
}
