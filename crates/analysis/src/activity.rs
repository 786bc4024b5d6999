//! What events show by themselves, whatever they say: how long a CPU had none, and how soon one thread's next one came.
//! Watched once a walk, for all who ask: by the reader where it can ([`HeadTally`]), else here.

use std::collections::VecDeque;

use event::{CpuPause, CpuPauses, HeadTally, LostKind, SILENCE_NS, Side};

use crate::Stats;

/// Silences that are remembered of each CPU. A reader may be some rounds ahead of the events that it hands out.
const SILENCES: usize = 256;

/// When CPUs had events, and whose they were.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    pauses: CpuPauses,
    /// By CPU, when it had its last event, where the reader follows that.
    last: Vec<Option<u64>>,
    /// The latest silences of each CPU.
    silences: Vec<VecDeque<(u64, u64)>>,
    gaps: Stats,
    fine: bool,
}

impl Activity {
    /// Takes an event that the reader does not follow.
    #[inline(always)]
    pub(crate) fn happened(&mut self, time: u64, place: (i32, i32), sampled: bool) {
        if let Some(pause) = self.pauses.happened(time, place, sampled) {
            self.pause(place.0.unsigned_abs(), pause);
        }
    }

    #[inline(never)]
    fn pause(&mut self, cpu: u32, pause: CpuPause) {
        match pause {
            CpuPause::Gap(ns) => self.gaps.add(ns),
            CpuPause::Silence { from, to, is_gap } => {
                if is_gap {
                    self.gaps.add(to - from);
                }
                self.silent(cpu, from, to);
            }
        }
    }

    /// Takes what a reader has followed.
    pub(crate) fn tallied(&mut self, tally: &HeadTally) {
        for ns in &tally.gaps {
            self.gaps.add(*ns);
        }
        for (cpu, from, to) in &tally.silences {
            self.silent(*cpu, *from, *to);
        }
        self.last.clear();
        self.last.extend(tally.pauses().last());
        self.fine |= tally.pauses().is_fine();
    }

    #[cold]
    fn silent(&mut self, cpu: u32, from: u64, to: u64) {
        let Some(cpu) = i32::try_from(cpu).ok().and_then(event::cpu_index) else {
            return;
        };
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
            cpu,
            kind: LostKind::Ring,
            ..
        } = *side
        {
            self.pauses.lost(cpu);
        }
    }

    /// Returns when the newest event was, of those that no lost ones of their CPU followed.
    pub fn newest(&self) -> Option<u64> {
        let followed = self.last.iter().copied().chain(self.pauses.last());
        followed.flatten().max()
    }

    /// Returns the longest time without an event of a CPU within a time, in nanoseconds; of the latest that were
    /// 20 ms or longer, up to the end of that time. What comes behind that is the same to it.
    pub fn silence_ns(&self, cpu: i32, from: u64, to: u64) -> u64 {
        let Ok(cpu) = usize::try_from(cpu) else {
            return 0;
        };
        let silences = self.silences.get(cpu).into_iter().flatten().copied();
        let last = self.last.get(cpu).copied().flatten();
        let last = last.or_else(|| self.pauses.last_of(cpu));
        let open = last.map(|last| (last, u64::MAX));
        let within = silences
            .chain(open)
            .map(|(a, b)| (a, b.min(to)))
            .filter(|(a, b)| b.saturating_sub(*a) >= SILENCE_NS)
            .map(|(a, b)| b.saturating_sub(a.max(from)));
        within.max().unwrap_or(0)
    }

    /// Returns how long it was from one event of a thread to its next on the same CPU, with no other thread's and no
    /// sample between.
    pub fn gaps(&self) -> &Stats {
        &self.gaps
    }

    /// Returns whether time stamps tell more than microseconds.
    pub fn is_fine(&self) -> bool {
        self.fine || self.pauses.is_fine()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// What happened at which millisecond on which CPU.
    const EVENTS: [(u64, i32); 5] = [(1, 0), (2, 1), (31, 0), (32, 1), (100, 1)];

    #[test]
    fn silences_are_of_their_cpu_and_of_what_was_not_lost() {
        let mut activity = Activity::default();
        for (time, cpu) in EVENTS {
            activity.happened(time * MS, (cpu, 7), false);
        }
        assert_eq!(activity.silence_ns(0, 0, 31 * MS), 30 * MS);
        assert_eq!(activity.silence_ns(1, 0, 100 * MS), 68 * MS);
        assert_eq!(activity.silence_ns(1, 40 * MS, 52 * MS), 12 * MS);
        assert_eq!(
            activity.silence_ns(1, 40 * MS, 51 * MS),
            0,
            "less than 20 ms of silence"
        );
        assert_eq!(activity.silence_ns(2, 0, 200 * MS), 0);
        // One goes on.
        assert_eq!(activity.silence_ns(0, 0, 200 * MS), 169 * MS);
        activity.side(&Side::Lost {
            time: 120 * MS,
            cpu: 1,
            buffer: 0,
            count: None,
            kind: LostKind::Ring,
        });
        assert_eq!(activity.silence_ns(1, 0, 200 * MS), 68 * MS);
        for cpu in [0, 1] {
            activity.happened(200 * MS, (cpu, 7), false);
        }
        assert_eq!(activity.silence_ns(0, 0, 200 * MS), 169 * MS);
        assert_eq!(activity.silence_ns(1, 0, 200 * MS), 68 * MS);
    }

    #[test]
    fn a_reader_that_is_ahead_finds_the_same() {
        let (mut here, mut ahead, mut tally) = (
            Activity::default(),
            Activity::default(),
            HeadTally::default(),
        );
        for (time, cpu) in EVENTS {
            tally.happened(0, time * MS, (cpu, 7), false);
        }
        tally.settle();
        ahead.tallied(&tally);
        for (time, cpu) in EVENTS {
            here.happened(time * MS, (cpu, 7), false);
            for cpu in 0..2 {
                let of = |one: &Activity| one.silence_ns(cpu, 0, time * MS);
                assert_eq!(of(&here), of(&ahead), "CPU {cpu} at {time} ms");
            }
        }
        assert_eq!(here.gaps().count(), ahead.gaps().count());
    }
}
