//! What a timeline has under way at one moment, so that another one, of a plan, can go on from there.

use event::index_of;
use model::Threads;
use rustc_hash::FxHashMap;

use crate::open_lanes::{OpenCpu, OpenLanes, OpenThread};

use super::Timeline;
use super::cell::{NOBODY, Stretch};
use super::lane::Ranges;
use super::tasks::TaskLanes;

impl Timeline {
    /// Returns what is under way; `None` where another timeline that goes on from here may not find the same: threads
    /// were given up that it would follow, or causes were so many that they are not kept apart any more.
    pub(super) fn open(&self) -> Option<OpenLanes> {
        if self.scheduled.given_up > 0 || self.causes.are_many() {
            return None;
        }
        let vcpus = self.vcpus.iter().map(|lane| {
            let last = lane.pending()?;
            Some((last, self.causes.get(last.what).copied()))
        });
        let cpus = self.scheduled.cpus.iter().map(|cpu| OpenCpu {
            last: cpu.lane.pending(),
        });
        let threads = self.scheduled.threads.iter().map(|one| OpenThread {
            slot: one.slot,
            last: one.lane.pending(),
        });
        Some(OpenLanes {
            vcpus: vcpus.collect(),
            cpus: cpus.collect(),
            threads: threads.collect(),
            processes: self.scheduled.processes.clone(),
            end: self.scheduled.end,
        })
    }

    /// Returns whether a timeline of a plan, which has looked at everything up to now, finds all that it is to find up
    /// to a time even if it goes on at a later moment: every lane has it, or nothing was added to the lane in between.
    pub(super) fn may_skip_to(
        &self,
        open: &OpenLanes,
        time: u64,
        threads: &Threads,
        then: &Threads,
    ) -> bool {
        let of_vcpu = |at: usize| open.vcpus.get(at).and_then(Option::as_ref);
        let vcpus = self.vcpus.iter().enumerate();
        let mut vcpus =
            vcpus.map(|(at, lane)| lane.may_skip_to(of_vcpu(at).map(|one| &one.0), time));
        let cpus = self.scheduled.cpus.iter().enumerate();
        let mut cpus = cpus.map(|(at, cpu)| {
            let last = open.cpus.get(at).and_then(|cpu| cpu.last.as_ref());
            cpu.lane.may_skip_to(last, time)
        });
        if !vcpus.all(|may| may) || !cpus.all(|may| may) {
            return false;
        }
        let mut last: FxHashMap<i32, Option<&Stretch>> = FxHashMap::default();
        for one in &open.threads {
            if let Some((tid, _)) = then.at(one.slot) {
                last.entry(tid).or_insert(one.last.as_ref());
            }
        }
        let followed = self.scheduled.threads.iter();
        let mut followed = followed.map(|one| {
            let tid = threads.at(one.slot).map(|(tid, _)| tid);
            let last = tid.and_then(|tid| last.get(&tid).copied().flatten());
            one.lane.may_skip_to(last, time)
        });
        followed.all(|may| may) && !self.has_lanes_to_come(time)
    }

    /// Returns whether a lane of which something up to a time is wanted has not begun yet.
    fn has_lanes_to_come(&self, time: u64) -> bool {
        let parts = self.parts.as_ref();
        let only = self.scheduled.only.as_ref();
        let begins = |ranges: &Ranges| ranges.begins_by(time);
        parts.is_some_and(|parts| parts.all().any(begins))
            || only.is_some_and(|only| {
                only.cpus.values().any(begins) || only.threads.values().any(begins)
            })
    }

    /// Goes on at a later moment. `before` are the threads as this timeline knew them until now, and `now` those of
    /// that moment: they have other slots.
    pub(super) fn skip_to(&mut self, open: &OpenLanes, before: &Threads, now: &Threads) {
        let slots = Slots::new(before, now);
        for lane in self.vcpus.iter_mut().filter(|_| slots.differ) {
            lane.renumber(|one| one.behind = slots.of(one.behind));
        }
        for (at, last) in open.vcpus.iter().enumerate() {
            if self.vcpus.len() <= at && !self.meet(at) {
                break;
            }
            let last = last.map(|(last, cause)| Stretch {
                what: cause.map_or(0, |cause| self.causes.number(&cause)),
                ..last
            });
            if let Some(lane) = self.vcpus.get_mut(at) {
                lane.skip_to(last, self.vcpu_cap);
            }
        }
        let cap = self.caps.cpus;
        self.scheduled.skip_cpus(open, &slots, cap);
        let cap = self.caps.threads;
        self.scheduled.skip_threads(open, &slots, now, cap);
    }
}

impl TaskLanes {
    fn skip_cpus(&mut self, open: &OpenLanes, slots: &Slots, cap: usize) {
        for cpu in self.cpus.iter_mut().filter(|_| slots.differ) {
            cpu.lane.renumber(|one| one.what = slots.of(one.what));
        }
        for (then, number) in open.cpus.iter().zip(0i32..) {
            let Some(cpu) = self.cpu(number) else {
                break;
            };
            cpu.lane.skip_to(then.last, cap);
        }
        self.processes = open.processes.clone();
        self.end = open.end;
    }

    fn skip_threads(&mut self, open: &OpenLanes, slots: &Slots, threads: &Threads, cap: usize) {
        for one in self.threads.iter_mut().filter(|_| slots.differ) {
            one.slot = slots.of(one.slot);
            one.lane.renumber(|one| one.behind = slots.of(one.behind));
        }
        self.find_places();
        for then in &open.threads {
            let Some(one) = self.follow(then.slot, threads) else {
                continue;
            };
            one.lane.skip_to(then.last, cap);
        }
    }
}

/// Slots of threads by those that they had before.
struct Slots {
    slots: Vec<u32>,
    /// Whether any is another.
    differ: bool,
}

impl Slots {
    /// A thread id that is used again has the slots of its threads in their order, whoever gave them.
    fn new(before: &Threads, now: &Threads) -> Slots {
        let mut known: FxHashMap<i32, Vec<u32>> = FxHashMap::default();
        for ((tid, _), slot) in now.iter().zip(0u32..) {
            known.entry(tid).or_default().push(slot);
        }
        let mut used: FxHashMap<i32, usize> = FxHashMap::default();
        let slots = before.iter().map(|(tid, _)| {
            let nth = used.entry(tid).or_default();
            let slot = known.get(&tid).and_then(|slots| slots.get(*nth));
            *nth += 1;
            slot.copied().unwrap_or(NOBODY)
        });
        let slots: Vec<u32> = slots.collect();
        let mut numbers = slots.iter().zip(0u32..);
        Slots {
            differ: numbers.any(|(slot, number)| *slot != number),
            slots,
        }
    }

    fn of(&self, slot: u32) -> u32 {
        self.slots.get(index_of(slot)).copied().unwrap_or(slot)
    }
}
