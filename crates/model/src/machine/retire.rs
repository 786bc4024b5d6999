//! When a walk follows as many threads as are kept apart, those with the least time become part of sums.

use event::NONE;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{LearnedKinds, Machine};
use crate::by_thread::ThreadHandles;
use crate::retired::{RetiredCount, RetiredThreads, StateLimits};
use crate::roles::NamedRole;
use crate::span::State;

impl Machine {
    /// Sets how many threads and vCPUs are kept apart.
    pub fn limit(&mut self, limits: StateLimits) {
        self.limits = limits;
    }

    /// Returns how many threads and vCPUs are kept apart at most.
    pub fn limits(&self) -> StateLimits {
        self.limits
    }

    /// Returns how many threads have become part of sums so far.
    pub fn retired(&self) -> RetiredCount {
        self.retired
    }

    /// Returns for how long threads were busy, or waited for a CPU, in nanoseconds: those that have become part of
    /// sums, and all. Asked at the end of a walk.
    pub fn busy_sums_ns(&self) -> (u64, u64) {
        let slots = self.threads.slots();
        let kept = slots.map(|(slot, _, _)| self.busy_ns(slot, self.end));
        let kept = kept.fold(0, u64::saturating_add);
        let retired = self.retired.busy_ns;
        (retired, kept.saturating_add(retired))
    }

    /// Returns whether there are as many as are kept apart.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.threads.count() >= self.limits.threads || self.tracks.len() >= self.limits.vcpus
    }

    /// Chooses those that are to become part of sums, if there are as many as are kept apart or as many numbers of
    /// threads. They are still there until [`Machine::retire`].
    pub fn choose_retired(&self, handles: &ThreadHandles, now: u64) -> RetiredThreads {
        let mut retired = RetiredThreads::default();
        if self.tracks.len() >= self.limits.vcpus {
            let vcpus = self.tracks.iter();
            let slots = vcpus.map(|(_, track)| track.thread).collect();
            self.least(slots, self.limits.vcpus / 2, now, &mut retired);
        }
        if self.threads.count() - retired.slots.len() >= self.limits.threads {
            let slots = self.threads.slots().map(|(slot, _, _)| slot);
            let left = slots.filter(|slot| !retired.has_slot(*slot)).collect();
            self.least(left, self.limits.threads / 2, now, &mut retired);
        }
        for (number, track) in self.tracks.iter() {
            if retired.slots.contains(&track.thread) {
                retired.vcpus.insert(number);
            }
        }
        for (slot, tid, _) in self.threads.slots() {
            if retired.has_slot(slot) && self.threads.is_now(tid, slot) {
                retired.tids.insert(tid);
            }
        }
        // Threads that made events which say nothing of threads.
        let unknown = handles
            .tids()
            .filter(|tid| self.threads.get(*tid).is_none());
        retired.tids.extend(unknown);
        let busy = retired.slots().map(|slot| self.busy_ns(slot, now));
        retired.busy_ns = busy.fold(0, u64::saturating_add);
        let numbers = retired.tids.iter().filter_map(|tid| handles.find(*tid));
        retired.handles = numbers.collect();
        retired
    }

    /// Adds those to the retired of whom so many are to be left, who had the least time.
    fn least(&self, mut slots: Vec<u32>, left: usize, now: u64, retired: &mut RetiredThreads) {
        let mut busy: FxHashSet<u32> = self.task_states.on_cpus().collect();
        busy.extend(self.last_on_cpus());
        let owners: FxHashSet<i32> = self
            .tracks
            .iter()
            .filter_map(|(_, track)| self.threads.at(track.thread)?.1.pid)
            .collect();
        slots.retain(|slot| {
            let idle = self.threads.at(*slot).is_some_and(|(tid, _)| tid == 0);
            !idle && !busy.contains(slot) && *slot != self.tasks.task && *slot != self.tasks.prev
        });
        let over = slots.len().saturating_sub(left);
        if over == 0 {
            return;
        }
        // Who shows whose a vCPU is stays longest, and of others those that came last.
        slots.sort_by_cached_key(|slot| {
            let (tid, thread) = match self.threads.at(*slot) {
                Some((tid, thread)) => (tid, Some(thread)),
                None => (0, None),
            };
            let comm = thread.and_then(|thread| thread.comm.as_deref());
            let serves = comm.is_some_and(|comm| NamedRole::from(comm).served().is_some());
            (
                owners.contains(&tid) || serves,
                self.busy_ns(*slot, now),
                *slot,
            )
        });
        retired.slots.extend(slots.iter().take(over));
    }

    /// Returns of each CPU the vCPU that did something there last: it may have begun only now.
    fn last_on_cpus(&self) -> impl Iterator<Item = u32> {
        let mut last: FxHashMap<i32, (u64, u32)> = FxHashMap::default();
        for (_, track) in self.tracks.iter() {
            let of_cpu = last.entry(track.cpu).or_default();
            *of_cpu = (*of_cpu).max((track.at, track.thread));
        }
        last.into_values().map(|(_, slot)| slot)
    }

    /// Returns for how long a thread has been busy, or waited for a CPU, so far: of a vCPU all but its halts.
    fn busy_ns(&self, slot: u32, now: u64) -> u64 {
        let vcpu = self.vcpus.get(slot).copied();
        let as_vcpu = vcpu.map_or(0, |vcpu| {
            let times = self.times_at(vcpu, now);
            times.total().saturating_sub(times.get(State::Halted))
        });
        as_vcpu.max(self.task_states.busy_ns(slot, now))
    }

    /// Forgets threads that have become part of sums.
    pub fn retire(&mut self, retired: &RetiredThreads) {
        self.retired.threads += retired.slots.len() as u64;
        self.retired.vcpus += retired.vcpus.len() as u64;
        self.retired.busy_ns = self.retired.busy_ns.saturating_add(retired.busy_ns);
        for vcpu in retired.vcpus() {
            self.leave_queue(vcpu);
            if let Some(track) = self.tracks.remove(vcpu)
                && self.by_tid.get(track.tid) == Some(&vcpu)
            {
                self.by_tid.remove(track.tid);
            }
        }
        for slot in retired.slots() {
            self.vcpus.remove(slot);
        }
        self.learned = (NONE, LearnedKinds::default());
        self.task_states.retire(retired);
        self.threads.retire(retired);
    }
}
