//! Which vCPU an interrupt is for.
//!
//! `kvm_apic_accept_irq` has the number of a vCPU and not whose. It is the accepting thread's own VM's, if that
//! thread belongs to one; else what happens next shows it: the same thread wakes a vCPU of that number, or a
//! vCPU of that number gets an interrupt of that vector injected of which nothing else is known; or there is only one
//! vCPU of that number, which is believed once the thread goes on to something else without having woken another one.
//! What stays unknown is said to be so: an interrupt is never given to a VM by guess.

use std::collections::VecDeque;

use model::{NamedRole, RetiredThreads, Threads};
use rustc_hash::FxHashMap;

use crate::tasks::{PathTasks, TaskKind};

/// Stands in the place of a vCPU's slot where it is not known yet which it is; the rest is the ticket.
pub(crate) const UNRESOLVED: u64 = 1 << 63;

/// In the place of a vCPU's number where the event does not say it.
pub(crate) const ANY_VCPU: u32 = u32::MAX;

/// Interrupts that wait to be resolved, at most.
const MAX_WAITING: usize = 64;

#[derive(Debug, Clone, Copy)]
struct PendingInterrupt {
    ticket: u64,
    thread: u32,
    number: u32,
    vector: u32,
    /// Whether the vector was injected into a vCPU of that number meanwhile: that may have been this interrupt.
    passed: bool,
}

/// What was found out of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TicketAnswer {
    /// The vCPU's thread, and the thread that accepted the interrupt.
    Target {
        ticket: u64,
        slot: u32,
        by: u32,
        /// Whether the same vector was injected before that was known, and it may have been this interrupt.
        passed: bool,
    },
    /// Nothing, and nothing will be.
    Nothing(u64),
}

/// Interrupts under way.
#[derive(Debug, Default)]
pub(crate) struct InterruptTargets {
    next: u64,
    waiting: VecDeque<PendingInterrupt>,
    /// Accepted for a vCPU and not injected yet: slot and vector.
    outstanding: FxHashMap<(u32, u32), ()>,
    /// Threads that are of one VM, as what they did shows: each points to another, or to itself, with how many there
    /// are below it.
    group: FxHashMap<u32, (u32, u32)>,
    /// vCPUs of a group, by its root and their number.
    members: FxHashMap<u32, FxHashMap<u32, u32>>,
    /// What was found out by the event now.
    pub found: Vec<TicketAnswer>,
}

impl InterruptTargets {
    fn root(&self, mut slot: u32) -> u32 {
        // The smaller group joins the larger one, so that no chain is longer than the bits of a count.
        while let Some(&(up, _)) = self.group.get(&slot)
            && up != slot
        {
            slot = up;
        }
        slot
    }

    /// Two threads turn out to be of one VM.
    fn join(&mut self, a: u32, b: u32, tasks: &PathTasks) {
        let (a, b) = (self.root(a), self.root(b));
        for slot in [a, b] {
            if let std::collections::hash_map::Entry::Vacant(place) = self.group.entry(slot) {
                place.insert((slot, 1));
                self.member(slot, tasks);
            }
        }
        if a == b {
            return;
        }
        let size = |slot: u32| self.group.get(&slot).map_or(1, |(_, size)| *size);
        let (sum, larger, smaller) = match (size(a), size(b)) {
            (x, y) if x >= y => (x.saturating_add(y), a, b),
            (x, y) => (x.saturating_add(y), b, a),
        };
        self.group.insert(larger, (larger, sum));
        self.group.insert(smaller, (larger, 0));
        if let Some(moved) = self.members.remove(&smaller) {
            self.members.entry(larger).or_default().extend(moved);
        }
    }

    /// Forgets threads that are not kept apart any more: of each group those are left that are.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        let past = |slot: u32| retired.has_slot(slot);
        self.outstanding.retain(|(slot, _), ()| !past(*slot));
        let left = self.group.keys().copied().filter(|slot| !past(*slot));
        let mut left: Vec<(u32, u32)> = left.map(|slot| (self.root(slot), slot)).collect();
        left.sort_unstable();
        let mut group = FxHashMap::default();
        let mut members = FxHashMap::default();
        for of_root in left.chunk_by(|a, b| a.0 == b.0) {
            let Some((root, first)) = of_root.first().copied() else {
                continue;
            };
            group.extend(of_root.iter().map(|(_, slot)| (*slot, (first, 0))));
            let many = u32::try_from(of_root.len()).unwrap_or(u32::MAX);
            group.insert(first, (first, many));
            if let Some(mut of_group) = self.members.remove(&root) {
                of_group.retain(|_, slot| !past(*slot));
                members.insert(first, of_group);
            }
        }
        (self.group, self.members) = (group, members);
    }

    /// Remembers a vCPU with its group.
    fn member(&mut self, slot: u32, tasks: &PathTasks) {
        let root = self.root(slot);
        if let Some(number) = tasks.get(slot).vcpu {
            self.members.entry(root).or_default().insert(number, slot);
        }
    }

    /// The vCPU of that number in the VM that a thread belongs to, where that is certain.
    fn known(&self, thread: u32, number: u32, tasks: &PathTasks, threads: &Threads) -> Option<u32> {
        let task = tasks.get(thread);
        if task.what == TaskKind::Vcpu && task.vcpu == Some(number) {
            return Some(thread);
        }
        if matches!(task.what, TaskKind::Vcpu | TaskKind::Vhost)
            && let Some(members) = self.members.get(&self.root(thread))
            && let Some(&slot) = members.get(&number)
        {
            return Some(slot);
        }
        let pid = process(thread, threads)?;
        let mut all = tasks.vcpus(number).filter(|slot| {
            let of = threads.at(*slot);
            of.is_some_and(|(_, other)| other.pid == Some(pid) && !other.ended)
        });
        let found = all.next()?;
        all.next().is_none().then_some(found)
    }

    /// The only vCPU of that number, if a thread's interrupt may be for it.
    fn only(thread: u32, number: u32, tasks: &PathTasks, threads: &Threads) -> Option<u32> {
        let only = tasks.only_vcpu(number)?;
        may_be_for(thread, only, tasks, threads).then_some(only)
    }

    /// Returns whether there are any of which it is not known whose they are.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A thread goes on: of interrupts that it accepted, those that can only be for one vCPU are for that one.
    pub(crate) fn goes_on(&mut self, thread: u32, tasks: &PathTasks, threads: &Threads) {
        self.settle(tasks, threads, |waiting| waiting.thread == thread);
    }

    /// A vCPU's thread gets its CPU, or does something on it.
    pub(crate) fn acts(&mut self, slot: u32, tasks: &PathTasks, threads: &Threads) {
        self.settle(tasks, threads, |waiting| {
            tasks.only_vcpu(waiting.number) == Some(slot)
        });
    }

    fn settle(
        &mut self,
        tasks: &PathTasks,
        threads: &Threads,
        fits: impl Fn(&PendingInterrupt) -> bool,
    ) {
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at).copied() {
            let only = fits(&waiting)
                .then(|| InterruptTargets::only(waiting.thread, waiting.number, tasks, threads))
                .flatten();
            match only {
                Some(only) => {
                    self.waiting.remove(at);
                    self.resolve(waiting, only, tasks);
                }
                None => at += 1,
            }
        }
    }

    /// Returns the vCPU that an interrupt which waits to be resolved is for, if it can be for one only.
    pub(crate) fn only_of(&self, ticket: u64, tasks: &PathTasks, threads: &Threads) -> Option<u32> {
        let waiting = self
            .waiting
            .iter()
            .find(|w| UNRESOLVED | w.ticket == ticket)?;
        InterruptTargets::only(waiting.thread, waiting.number, tasks, threads)
    }

    /// Returns whether an interrupt that waits to be resolved can be for one vCPU only.
    pub(crate) fn has_one(&self, ticket: u64, tasks: &PathTasks, threads: &Threads) -> bool {
        self.only_of(ticket, tasks, threads).is_some()
    }

    /// Returns the vCPUs that an interrupt which waits to be resolved may be for: at most so many, and none of them if
    /// there are more.
    pub(crate) fn few_of(&self, ticket: u64, tasks: &PathTasks, most: usize) -> Vec<u32> {
        let mut waiting = self.waiting.iter();
        let one = waiting.find(|one| UNRESOLVED | one.ticket == ticket);
        let all = one.into_iter().flat_map(|one| tasks.vcpus(one.number));
        let mut few: Vec<u32> = all.take(most + 1).collect();
        if few.len() > most {
            few.clear();
        }
        few
    }

    /// Returns the interrupts that wait to be resolved and may be for a vCPU on a CPU.
    pub(crate) fn maybe_on(&self, cpu: i32, tasks: &PathTasks) -> Vec<u64> {
        let all = self.waiting.iter();
        let there = |slot: u32| tasks.get(slot).cpu == cpu;
        all.filter(|w| tasks.vcpus(w.number).any(there))
            .map(|w| UNRESOLVED | w.ticket)
            .collect()
    }

    /// An interrupt is accepted for the vCPU of that number. Returns its thread's slot, or a ticket.
    pub(crate) fn accept(
        &mut self,
        thread: u32,
        number: u32,
        vector: u32,
        tasks: &PathTasks,
        threads: &Threads,
        polls: impl FnOnce(u32) -> bool,
    ) -> u64 {
        // A vCPU that polls is not woken, so nothing more will tell.
        let known = self.known(thread, number, tasks, threads);
        let only = || InterruptTargets::only(thread, number, tasks, threads);
        let slot = known.or_else(|| only().filter(|slot| polls(*slot)));
        if let Some(slot) = slot {
            if tasks.get(thread).what == TaskKind::Vcpu || tasks.get(thread).what == TaskKind::Vhost
            {
                self.join(thread, slot, tasks);
                self.member(slot, tasks);
            }
            self.stays(slot, vector);
            return u64::from(slot);
        }
        self.next += 1;
        if self.waiting.len() == MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.found.push(TicketAnswer::Nothing(oldest.ticket));
        }
        self.waiting.push_back(PendingInterrupt {
            ticket: self.next,
            thread,
            number,
            vector,
            passed: false,
        });
        UNRESOLVED | self.next
    }

    /// A thread wakes a vCPU's.
    pub(crate) fn wakes(&mut self, thread: u32, task: u32, tasks: &PathTasks) {
        if self.waiting.is_empty() || tasks.get(task).what != TaskKind::Vcpu {
            return;
        }
        let number = tasks.get(task).vcpu;
        // The last one: what a thread does not wake a vCPU for before it accepts the next is for one that runs. Where
        // vCPUs' numbers are not known, as on arm64 without names, the wake-up behind the interrupt does.
        let at = self.waiting.iter().rposition(|w| {
            w.thread == thread
                && (w.number == ANY_VCPU || number.is_none_or(|number| w.number == number))
        });
        if let Some(found) = at.and_then(|at| self.waiting.remove(at)) {
            self.resolve(found, task, tasks);
        }
    }

    /// A vCPU gets an interrupt injected.
    pub(crate) fn injects(&mut self, slot: u32, vector: u32, tasks: &PathTasks, threads: &Threads) {
        let known = self.outstanding.remove(&(slot, vector)).is_some();
        if self.waiting.is_empty() {
            return;
        }
        let Some(number) = tasks.get(slot).vcpu else {
            return;
        };
        let fits = |w: &PendingInterrupt| {
            let same = w.number == number && w.vector == vector;
            same && may_be_for(w.thread, slot, tasks, threads)
        };
        let mut by = self.waiting.iter().filter(|w| fits(w)).map(|w| w.thread);
        let Some(first) = by.next() else {
            return;
        };
        if known || by.any(|thread| thread != first) {
            let waiting = self.waiting.iter_mut().filter(|w| fits(w));
            waiting.for_each(|w| w.passed = true);
            return;
        }
        while let Some(at) = self.waiting.iter().position(fits) {
            if let Some(found) = self.waiting.remove(at) {
                self.resolve(found, slot, tasks);
            }
        }
        self.outstanding.remove(&(slot, vector));
    }

    /// An interrupt waits to be injected. Only those of x86 are: they have 256 vectors.
    fn stays(&mut self, slot: u32, vector: u32) {
        if vector < 256 {
            self.outstanding.insert((slot, vector), ());
        }
    }

    fn resolve(&mut self, found: PendingInterrupt, slot: u32, tasks: &PathTasks) {
        if matches!(
            tasks.get(found.thread).what,
            TaskKind::Vcpu | TaskKind::Vhost
        ) {
            self.join(found.thread, slot, tasks);
        }
        self.member(slot, tasks);
        self.stays(slot, found.vector);
        self.found.push(TicketAnswer::Target {
            ticket: found.ticket,
            slot,
            by: found.thread,
            passed: found.passed,
        });
    }
}

/// Returns whether an interrupt that a thread accepts may be for a vCPU: one VM's vCPUs and vhost workers are not
/// another's. Any other thread may be of a process that shares eventfds with the VMM.
fn may_be_for(thread: u32, vcpu: u32, tasks: &PathTasks, threads: &Threads) -> bool {
    if !matches!(tasks.get(thread).what, TaskKind::Vcpu | TaskKind::Vhost) {
        return true;
    }
    let other = threads.at(vcpu).and_then(|(_, vcpu)| vcpu.pid);
    match (process(thread, threads), other) {
        (Some(mine), Some(other)) => mine == other,
        _ => true,
    }
}

/// The process of a VMM that a thread works for: its own, or the one a vhost worker has in its name.
pub(crate) fn process(thread: u32, threads: &Threads) -> Option<i32> {
    let (_, thread) = threads.at(thread)?;
    match thread.named_role() {
        NamedRole::Vhost(process) => process,
        _ => thread.pid.filter(|pid| *pid > 0),
    }
}
