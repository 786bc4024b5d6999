//! Sums of interrupts, without those that the recorder's own agent causes and those that come alone.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::apart::{DistanceSums, IpiDistance, IpiDistanceRow};
use crate::Stats;

/// An interrupt this close to traffic between the recorder and its agent in a guest is taken to be of the agent's
/// doing. An agent looks at each CPU's buffer once a millisecond (`trace-cmd record -s`, 1000 us as shipped), and sends
/// what it finds; its threads and the host's answer each other within a few of these periods.
const NEAR_NS: u64 = 5_000_000;
/// Interrupts that wait to be known for the agent's or not, at most.
const MAX_PENDING: usize = 1 << 14;
/// Slices of time by which it is known in how much of the recording interrupts occur: 2^24 ns, 17 ms.
const SLICE_BITS: u32 = 24;
/// Interrupts to halted vCPUs that a slice has in which they occur: 240 a second. One that comes alone keeps nobody
/// waiting again and again, and a poll would have to be as long as its slice to catch it.
const IN_SLICE: usize = 4;
/// Interrupts of the slice under way that are kept; more are counted at once.
const MAX_IN_SLICE: usize = 1 << 12;

/// Interrupts, and what they took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IpiSums {
    /// To vCPUs that were halted: from sending to the target's entry, without time in which the woken target waited for
    /// a CPU that another task had. Those that came alone are not among them.
    pub halted: Stats,
    /// Interrupts to halted vCPUs that came alone: fewer than four in 17 ms.
    pub alone: u64,
    /// Of those to halted ones, from the wake-up to the CPU, where nothing else had it.
    pub waking: Stats,
    /// To vCPUs that did not have to be woken: they were running, polling, or in a halt and not asleep yet.
    pub awake: Stats,
    /// To vCPUs that were doing something else, or of which it is not known.
    pub others: u64,
    /// How many of those to halted ones had to wait for a CPU that another task had, and for how long in all.
    pub waited: (u64, u64),
    /// Left out of all these: those that are the doing of the recorder's agent in the guest.
    pub of_agent: u64,
    /// How long the slices of time are, all together, in which a halted vCPU was interrupted.
    pub active_ns: u64,
}

impl IpiSums {
    /// Returns how many there were, without the agent's.
    pub fn count(&self) -> u64 {
        let known = self.halted.count().saturating_add(self.awake.count());
        known.saturating_add(self.others).saturating_add(self.alone)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Halted,
    Awake,
    Other,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SentIpi {
    pub(super) sent: u64,
    pub(super) target: Target,
    /// Process of the target, if known.
    pub(super) pid: Option<i32>,
    pub(super) ns: u64,
    pub(super) waking_ns: Option<u64>,
    pub(super) waited_ns: u64,
    /// How far its target's CPU was from its sender's, where both are known.
    pub(super) distance: Option<IpiDistance>,
}

/// Sums, and interrupts that may yet turn out to be the agent's.
#[derive(Debug, Default)]
pub(super) struct IpiTally {
    pending: VecDeque<SentIpi>,
    sums: IpiSums,
    slice: u64,
    /// Those to halted vCPUs in it.
    inside: Vec<SentIpi>,
    slices: u64,
    by_distance: DistanceSums,
}

impl IpiTally {
    pub(super) fn add(&mut self, one: SentIpi, traffic: &FxHashMap<Option<i32>, u64>) {
        let near = |at: Option<&u64>| at.is_some_and(|at| one.sent.abs_diff(*at) <= NEAR_NS);
        // A worker whose name does not say its process may be anybody's, and so may a vCPU's.
        let agent = match one.pid {
            Some(_) => near(traffic.get(&one.pid)) || near(traffic.get(&None)),
            None => traffic.values().any(|at| near(Some(at))),
        };
        if agent {
            self.sums.of_agent += 1;
            return;
        }
        if self.pending.len() == MAX_PENDING
            && let Some(first) = self.pending.pop_front()
        {
            self.count(first);
        }
        self.pending.push_back(one);
    }

    /// The recorder and its agent talk: what was sent shortly before was theirs.
    pub(super) fn traffic(&mut self, pid: Option<i32>, time: u64) {
        self.settle(time);
        let before = self.pending.len();
        self.pending.retain(|one| {
            let same = pid.is_none() || one.pid.is_none() || one.pid == pid;
            !same || one.sent.saturating_add(NEAR_NS) < time
        });
        self.sums.of_agent += (before - self.pending.len()) as u64;
    }

    /// Counts what can no longer be the agent's.
    fn settle(&mut self, time: u64) {
        while let Some(one) = self.pending.front()
            && one.sent.saturating_add(NEAR_NS) < time
        {
            let one = *one;
            self.pending.pop_front();
            self.count(one);
        }
    }

    fn count(&mut self, one: SentIpi) {
        if let Some(distance) = one.distance {
            let halted = one.target == Target::Halted;
            self.by_distance.add(distance, one.ns, halted);
        }
        match one.target {
            Target::Halted => {
                let slice = one.sent >> SLICE_BITS;
                if slice > self.slice || self.inside.len() >= MAX_IN_SLICE {
                    self.slice_ends(slice);
                }
                self.inside.push(one);
            }
            Target::Awake => self.sums.awake.add(one.ns),
            Target::Other => self.sums.others += 1,
        }
    }

    /// A slice is over, or as much of it as is kept.
    fn slice_ends(&mut self, next: u64) {
        if self.inside.len() < IN_SLICE {
            self.sums.alone += self.inside.len() as u64;
            self.inside.clear();
        } else if next > self.slice {
            self.slices += 1;
        }
        self.slice = next.max(self.slice);
        for one in self.inside.drain(..) {
            self.sums.halted.add(one.ns);
            if let Some(ns) = one.waking_ns {
                self.sums.waking.add(ns);
            }
            if one.waited_ns > 0 {
                self.sums.waited.0 += 1;
                self.sums.waited.1 = self.sums.waited.1.saturating_add(one.waited_ns);
            }
        }
    }

    /// The recording ends.
    pub(super) fn finish(&mut self) {
        self.settle(u64::MAX);
        self.slice_ends(u64::MAX);
    }

    /// Returns them by distance.
    pub(super) fn by_distance(&self) -> Vec<IpiDistanceRow> {
        self.by_distance.rows()
    }

    pub(super) fn report(&self) -> IpiSums {
        let mut sums = self.sums.clone();
        sums.active_ns = self.slices << SLICE_BITS;
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(sent: u64, target: Target, ns: u64) -> SentIpi {
        SentIpi {
            sent,
            target,
            pid: None,
            ns,
            waking_ns: Some(ns / 2),
            waited_ns: 0,
            distance: Some(IpiDistance::SameCpu),
        }
    }

    #[test]
    fn what_comes_near_the_agents_traffic_is_its_doing() {
        let mut tally = IpiTally::default();
        let mut traffic = FxHashMap::default();
        // Forty in 20 ms, and traffic in the middle of them.
        for at in 0..40u64 {
            let sent = (1 << 30) + at * 500_000;
            if at == 20 {
                traffic.insert(None, sent);
                tally.traffic(None, sent);
            }
            tally.add(one(sent, Target::Halted, 1_000), &traffic);
        }
        tally.finish();
        let sums = tally.report();
        // Ten before it, itself, and ten behind.
        assert_eq!(sums.of_agent, 21, "{sums:?}");
        assert_eq!(sums.halted.count() + sums.alone, 19, "{sums:?}");
    }

    #[test]
    fn interrupts_that_come_alone_are_counted_apart() {
        let (mut tally, traffic) = (IpiTally::default(), FxHashMap::default());
        for at in 0..30u64 {
            tally.add(one(at * 100_000_000, Target::Halted, 300_000), &traffic);
        }
        for at in 0..30u64 {
            tally.add(
                one(5_000_000_000 + at * 100_000, Target::Halted, 50_000),
                &traffic,
            );
        }
        tally.finish();
        let sums = tally.report();
        assert_eq!((sums.alone, sums.halted.count()), (30, 30));
        assert_eq!(sums.halted.percentile(0.5), 50_000);
        assert!(sums.active_ns <= 2 << SLICE_BITS, "{sums:?}");
        assert_eq!(sums.count(), 60);
    }
}
