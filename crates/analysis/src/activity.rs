//! What events tell by themselves, whatever they say: how long a CPU had none, and how soon one thread's next one came.
//! Watched once a walk, for all who ask.

use std::collections::VecDeque;

use event::{LostKind, NONE, Side};

use crate::Stats;

/// No event of a CPU for so long is silence. A running task has an event at every tick of the scheduler.
const SILENCE_NS: u64 = 20_000_000;
/// Silences that are remembered of each CPU.
const SILENCES: usize = 8;
/// Gaps that are all looked at, and one in how many of those beyond.
const ALL_GAPS: u64 = 1 << 14;
const ONE_GAP_IN: u64 = 8;

/// The last event of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct LastEvent {
    time: u64,
    tid: i32,
    /// Whether there was one since events were last lost.
    known: bool,
    sampled: bool,
}

/// When CPUs had events, and whose they were.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// By CPU.
    last: Vec<LastEvent>,
    /// The latest silences of each CPU.
    silences: Vec<VecDeque<(u64, u64)>>,
    gaps: Stats,
    seen_gaps: u64,
    fine: bool,
}

impl Activity {
    /// Takes an event. A `sampled` one came when its counter was full: the time to the next of them is the period.
    #[inline]
    pub(crate) fn take(&mut self, time: u64, cpu: i32, tid: i32, sampled: bool) {
        if !self.fine {
            self.fine = !time.is_multiple_of(1_000);
        }
        let Ok(index) = usize::try_from(cpu) else {
            return;
        };
        let now = LastEvent {
            time,
            tid,
            known: true,
            sampled,
        };
        let Some(last) = self.last.get_mut(index) else {
            self.meet(index, now);
            return;
        };
        let last = std::mem::replace(last, now);
        if !last.known {
            return;
        }
        let ns = time.saturating_sub(last.time);
        if ns >= SILENCE_NS {
            self.silent(index, last.time, time);
        }
        if last.tid == tid && !last.sampled && !sampled {
            // Of many gaps a part says as much.
            self.seen_gaps += 1;
            if self.seen_gaps.is_multiple_of(ONE_GAP_IN) || self.seen_gaps <= ALL_GAPS {
                self.gaps.add(ns);
            }
        }
    }

    #[cold]
    fn meet(&mut self, cpu: usize, now: LastEvent) {
        if cpu < event::MAX_CPUS {
            self.last.resize(cpu + 1, LastEvent::default());
            self.last[cpu] = now;
        }
    }

    #[cold]
    fn silent(&mut self, cpu: usize, from: u64, to: u64) {
        if self.silences.len() <= cpu {
            self.silences.resize_with(cpu + 1, VecDeque::new);
        }
        let silences = &mut self.silences[cpu];
        if silences.len() == SILENCES {
            silences.pop_front();
        }
        silences.push_back((from, to));
    }

    /// Takes a side record: where events were lost, nobody knows what there was.
    pub(crate) fn side(&mut self, side: &Side<'_>) {
        if let Side::Lost {
            cpu: lost,
            kind: LostKind::Ring,
            ..
        } = *side
        {
            for (last, cpu) in self.last.iter_mut().zip(0i32..) {
                last.known &= lost != NONE && lost != cpu;
            }
        }
    }

    /// Returns the longest time without an event of a CPU within a time, in nanoseconds; of the latest that were
    /// 20 ms or longer.
    pub fn silence_ns(&self, cpu: i32, from: u64, to: u64) -> u64 {
        let silences = usize::try_from(cpu).ok();
        let silences = silences.and_then(|cpu| self.silences.get(cpu));
        let within = silences
            .into_iter()
            .flatten()
            .map(|(a, b)| (*b).min(to).saturating_sub((*a).max(from)));
        within.max().unwrap_or(0)
    }

    /// Returns how long it was from one event of a thread to its next on the same CPU, with no other thread's and no
    /// sample between.
    pub fn gaps(&self) -> &Stats {
        &self.gaps
    }

    /// Returns whether time stamps tell more than microseconds.
    pub fn is_fine(&self) -> bool {
        self.fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn silences_are_of_their_cpu_and_of_what_was_not_lost() {
        let mut activity = Activity::default();
        for (time, cpu) in [(1, 0), (2, 1), (31, 0), (32, 1), (100, 1)] {
            activity.take(time * MS, cpu, 7, false);
        }
        assert_eq!(activity.silence_ns(0, 0, 200 * MS), 30 * MS);
        assert_eq!(activity.silence_ns(1, 0, 200 * MS), 68 * MS);
        assert_eq!(activity.silence_ns(1, 40 * MS, 50 * MS), 10 * MS);
        assert_eq!(activity.silence_ns(2, 0, 200 * MS), 0);
        activity.side(&Side::Lost {
            time: 120 * MS,
            cpu: 1,
            buffer: 0,
            count: None,
            kind: LostKind::Ring,
        });
        for cpu in [0, 1] {
            activity.take(200 * MS, cpu, 7, false);
        }
        assert_eq!(activity.silence_ns(0, 0, 200 * MS), 169 * MS);
        assert_eq!(activity.silence_ns(1, 0, 200 * MS), 68 * MS);
    }

    #[test]
    fn gaps_are_between_events_of_one_thread() {
        let mut activity = Activity::default();
        let events = [
            (1_000, 0, 7),
            (2_000, 0, 7),
            (3_000, 0, 8),
            (5_000, 0, 7),
            (9_000, 1, 7),
            (12_000, 1, 7),
        ];
        for (time, cpu, tid) in events {
            activity.take(time, cpu, tid, false);
        }
        let gaps = activity.gaps();
        assert_eq!((gaps.count(), gaps.min(), gaps.max()), (2, 1_000, 3_000));
        assert!(!activity.is_fine());
        // From one sample to the next it is a period of the counter.
        for time in [20_000, 20_100, 20_200] {
            activity.take(time, 1, 7, true);
        }
        activity.take(20_300, 1, 7, false);
        assert_eq!(activity.gaps().count(), 2);
        activity.take(12_001, 0, 7, false);
        assert!(activity.is_fine());
        // CPUs that there cannot be, and events of none.
        activity.take(12_002, NONE, 7, false);
        activity.take(12_003, i32::MAX, 7, false);
    }
}
