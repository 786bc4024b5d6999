//! That events happened, whatever they say: how many, how long a CPU had none, and how soon one thread's next came.
//!
//! A reader that finds events of one CPU behind each other can follow that where it finds them, whoever looks at what
//! they say and when ([`crate::Sink::tallies`]).

use tracefmt::index_of;

/// No event of a CPU for so long is silence. A running task has an event at every tick of the scheduler.
pub const SILENCE_NS: u64 = 20_000_000;
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

/// What an event says of the time before it on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPause {
    /// It is silence, from one time to another, and perhaps one thread's gap.
    Silence {
        /// When the CPU had its last event.
        from: u64,
        /// When it had the next.
        to: u64,
        /// Whether both are one thread's, and none is a sample.
        is_gap: bool,
    },
    /// So long it was to the thread's next event, in nanoseconds.
    Gap(u64),
}

/// Follows when CPUs had events, and whose they were.
#[derive(Debug, Clone, Default)]
pub struct CpuPauses {
    /// By CPU.
    last: Vec<LastEvent>,
    seen_gaps: u64,
    fine: bool,
}

impl CpuPauses {
    /// Takes an event; those of each CPU come in order. What is `sampled` came when its counter was full: the time to
    /// the next of them is the period. Of many gaps a part is returned, which says as much.
    #[inline(always)]
    pub fn happened(
        &mut self,
        time: u64,
        (cpu, tid): (i32, i32),
        sampled: bool,
    ) -> Option<CpuPause> {
        if !self.fine {
            self.fine = !time.is_multiple_of(1_000);
        }
        let index = cpu.cast_unsigned() as usize;
        let now = LastEvent {
            time,
            tid,
            known: true,
            sampled,
        };
        let Some(last) = self.last.get_mut(index) else {
            self.meet(index, now);
            return None;
        };
        let before = std::mem::replace(last, now);
        let ns = time.saturating_sub(before.time);
        let same = before.tid == tid && before.known && !before.sampled && !sampled;
        self.seen_gaps += u64::from(same);
        let is_gap = same && self.gap_counts();
        if !before.known {
            return None;
        }
        pause(time, ns, is_gap)
    }

    /// Returns whether the last gap is one of those that are looked at.
    #[inline(always)]
    fn gap_counts(&self) -> bool {
        self.seen_gaps.is_multiple_of(ONE_GAP_IN) || self.seen_gaps <= ALL_GAPS
    }

    /// Returns whether an event of the thread that had its CPU's last one, so long after that, is one of those that
    /// [`CpuPauses::of_streak`] returns something for.
    #[inline(always)]
    fn is_remarkable(&mut self, time: u64, ns: u64) -> bool {
        if !self.fine {
            self.fine = !time.is_multiple_of(1_000);
        }
        self.seen_gaps += 1;
        self.gap_counts() || ns >= SILENCE_NS
    }

    /// Returns what such an event at a time says.
    fn of_streak(&self, time: u64, ns: u64) -> Option<CpuPause> {
        pause(time, ns, self.gap_counts())
    }

    /// A CPU's last thread had more events, up to a time.
    fn went_on(&mut self, cpu: i32, time: u64) {
        if let Some(last) = self.last.get_mut(cpu.cast_unsigned() as usize) {
            last.time = time;
        }
    }

    #[cold]
    fn meet(&mut self, cpu: usize, now: LastEvent) {
        if cpu < crate::MAX_CPUS {
            self.last.resize(cpu + 1, LastEvent::default());
            self.last[cpu] = now;
        }
    }

    /// Events of a CPU were lost, or of all for -1: nobody knows what there was.
    pub fn lost(&mut self, lost: i32) {
        for (last, cpu) in self.last.iter_mut().zip(0i32..) {
            last.known &= lost >= 0 && lost != cpu;
        }
    }

    /// Returns when each CPU had its last event, where none was lost since.
    pub fn last(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        let last = self.last.iter();
        last.map(|last| last.known.then_some(last.time))
    }

    /// Returns the same of one CPU.
    pub fn last_of(&self, cpu: usize) -> Option<u64> {
        let last = self.last.get(cpu)?;
        last.known.then_some(last.time)
    }

    /// Returns whether time stamps say more than microseconds.
    pub fn is_fine(&self) -> bool {
        self.fine
    }
}

/// Returns what an event at a time says of the time before it.
#[inline(always)]
fn pause(time: u64, ns: u64, is_gap: bool) -> Option<CpuPause> {
    match ns >= SILENCE_NS {
        true => Some(CpuPause::Silence {
            from: time - ns,
            to: time,
            is_gap,
        }),
        false => is_gap.then_some(CpuPause::Gap(ns)),
    }
}

/// Events of one thread on one CPU behind each other, of which only the last is of interest.
#[derive(Debug, Clone, Copy)]
struct HeadStreak {
    cpu: i32,
    tid: i32,
    first: u64,
    last: u64,
    /// How many beyond the first, which was taken by itself.
    more: u64,
}

/// Stands for none: no thread has this id, and a damaged record that has it is earlier.
const NO_STREAK: HeadStreak = HeadStreak {
    cpu: i32::MIN,
    tid: i32::MIN,
    first: u64::MAX,
    last: u64::MAX,
    more: 0,
};

impl Default for HeadStreak {
    fn default() -> HeadStreak {
        NO_STREAK
    }
}

/// What a reader has found since it was last asked ([`crate::Sink::tallied`]).
#[derive(Debug, Clone, Default)]
pub struct HeadTally {
    pauses: CpuPauses,
    /// What goes on where the reader is.
    streak: HeadStreak,
    /// By the number of a kind, how many events.
    pub kinds: Vec<u64>,
    /// By CPU, how many.
    pub cpus: Vec<u64>,
    /// The times of the first and the last one.
    pub span: Option<(u64, u64)>,
    /// Gaps.
    pub gaps: Vec<u64>,
    /// Silences, each with its CPU.
    pub silences: Vec<(u32, u64, u64)>,
    /// Events that were counted, here or before this was cleared, and turned out to be none: kind and CPU.
    pub given_up: Vec<(u32, i32)>,
}

impl HeadTally {
    /// Takes an event of a kind; those of each CPU come in order.
    #[inline(always)]
    pub fn happened(&mut self, kind: u32, time: u64, (cpu, tid): (i32, i32), sampled: bool) {
        match self.kinds.get_mut(index_of(kind)) {
            Some(count) => *count += 1,
            None => self.meet_kind(kind),
        }
        let streak = &mut self.streak;
        if streak.cpu != cpu || streak.tid != tid || sampled || time < streak.last {
            return self.changes(time, (cpu, tid), sampled);
        }
        let ns = time - std::mem::replace(&mut streak.last, time);
        streak.more += 1;
        if self.pauses.is_remarkable(time, ns) {
            self.remark(cpu, ns);
        }
    }

    /// Another thread's event, or another CPU's.
    #[inline(never)]
    fn changes(&mut self, time: u64, (cpu, tid): (i32, i32), sampled: bool) {
        self.settle();
        match self.cpus.get_mut(cpu.cast_unsigned() as usize) {
            Some(count) => *count += 1,
            None => self.meet_cpu(cpu),
        }
        self.spans(time, time);
        if let Some(pause) = self.pauses.happened(time, (cpu, tid), sampled) {
            self.pause(cpu, pause);
        }
        if !sampled && crate::cpu_index(cpu).is_some() {
            self.streak = HeadStreak {
                cpu,
                tid,
                first: time,
                last: time,
                more: 0,
            };
        }
    }

    /// A gap that counts, or a silence, within a streak.
    #[inline(never)]
    fn remark(&mut self, cpu: i32, ns: u64) {
        if let Some(pause) = self.pauses.of_streak(self.streak.last, ns) {
            self.pause(cpu, pause);
        }
    }

    fn spans(&mut self, from: u64, to: u64) {
        self.span = Some(match self.span {
            Some((first, last)) => (first.min(from), last.max(to)),
            None => (from, to),
        });
    }

    /// Ends what goes on, so that all that happened is in the sums: before anybody looks at them.
    pub fn settle(&mut self) {
        let streak = std::mem::take(&mut self.streak);
        if streak.more == 0 {
            return;
        }
        if let Some(count) = self.cpus.get_mut(streak.cpu.cast_unsigned() as usize) {
            *count += streak.more;
        }
        self.spans(streak.first, streak.last);
        self.pauses.went_on(streak.cpu, streak.last);
    }

    #[cold]
    fn meet_kind(&mut self, kind: u32) {
        self.kinds.resize(index_of(kind) + 1, 0);
        self.kinds[index_of(kind)] = 1;
    }

    #[cold]
    fn meet_cpu(&mut self, cpu: i32) {
        if let Some(cpu) = crate::cpu_index(cpu) {
            self.cpus.resize(cpu + 1, 0);
            self.cpus[cpu] = 1;
        }
    }

    #[inline]
    fn pause(&mut self, cpu: i32, pause: CpuPause) {
        match pause {
            CpuPause::Gap(ns) => self.gaps.push(ns),
            CpuPause::Silence { from, to, is_gap } => {
                if is_gap {
                    self.gaps.push(to - from);
                }
                if crate::cpu_index(cpu).is_some() {
                    self.silences.push((cpu.unsigned_abs(), from, to));
                }
            }
        }
    }

    /// Events of a CPU were lost ([`CpuPauses::lost`]).
    pub fn lost(&mut self, cpu: i32) {
        self.settle();
        self.pauses.lost(cpu);
    }

    /// Takes that an event of a kind and a CPU that happened did not.
    pub fn given_up(&mut self, kind: u32, cpu: i32) {
        self.given_up.push((kind, cpu));
    }

    /// Returns when CPUs had their last events, and whether time stamps say more than microseconds.
    pub fn pauses(&self) -> &CpuPauses {
        &self.pauses
    }

    /// Returns whether nothing happened since it began.
    pub fn is_empty(&self) -> bool {
        self.span.is_none() && self.streak.more == 0 && self.given_up.is_empty()
    }

    /// Begins anew, but for what CPUs had last.
    pub fn clear(&mut self) {
        self.settle();
        self.kinds.fill(0);
        self.cpus.fill(0);
        self.span = None;
        self.gaps.clear();
        self.silences.clear();
        self.given_up.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn gaps_are_between_events_of_one_thread() {
        let mut pauses = CpuPauses::default();
        let events = [
            (1_000, 0, 7),
            (2_000, 0, 7),
            (3_000, 0, 8),
            (5_000, 0, 7),
            (9_000, 1, 7),
            (12_000, 1, 7),
        ];
        let found = events.map(|(time, cpu, tid)| pauses.happened(time, (cpu, tid), false));
        let gap = |ns| Some(CpuPause::Gap(ns));
        assert_eq!(found, [None, gap(1_000), None, None, None, gap(3_000)]);
        assert!(!pauses.is_fine());
        // From one sample to the next it is a period of the counter.
        for (time, sampled) in [(20_000, true), (20_100, true), (20_300, false)] {
            assert_eq!(pauses.happened(time, (1, 7), sampled), None);
        }
        assert_eq!(pauses.happened(20_400, (1, 7), false), gap(100));
        assert!(pauses.is_fine());
        // CPUs that there cannot be, and events of none.
        assert_eq!(pauses.happened(20_500, (-1, 7), false), None);
        assert_eq!(pauses.happened(20_600, (i32::MAX, 7), false), None);
    }

    /// What a tally has, and when CPUs had their last events.
    fn sums(tally: &HeadTally) -> String {
        let HeadTally {
            kinds,
            cpus,
            span,
            gaps,
            silences,
            ..
        } = tally;
        let last: Vec<_> = tally.pauses().last().collect();
        format!("{kinds:?} {cpus:?} {span:?} {gaps:?} {silences:?} {last:?}")
    }

    #[test]
    fn streaks_are_what_each_event_by_itself_is() {
        // Threads and CPUs that change now and then, times that step back, samples, losses, and events without a CPU.
        let mut state = 1u64;
        let mut random = |most: u32| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            u32::try_from(state >> 33).unwrap_or(0) % most
        };
        for _ in 0..200 {
            let (mut whole, mut single) = (HeadTally::default(), HeadTally::default());
            let (mut time, mut place) = (50 * MS, (0, 7));
            for _ in 0..300 {
                time = match random(20) {
                    0 => time + 30 * MS,
                    1 => time - 5 * MS,
                    _ => time + u64::from(random(1_000)),
                };
                if random(6) == 0 {
                    place = (random(4).cast_signed() - 1, random(3).cast_signed());
                }
                let (kind, sampled) = (random(3), random(30) == 0);
                whole.happened(kind, time, place, sampled);
                single.happened(kind, time, place, sampled);
                single.settle();
                if random(40) == 0 {
                    let cpu = random(3).cast_signed() - 1;
                    whole.lost(cpu);
                    single.lost(cpu);
                }
            }
            whole.settle();
            assert_eq!(sums(&whole), sums(&single));
        }
    }

    #[test]
    fn what_stands_for_no_place_goes_on_from_nothing() {
        let mut tally = HeadTally::default();
        for time in [1, 2, 400, 900] {
            tally.happened(0, time * MS, (i32::MIN, i32::MIN), false);
        }
        tally.settle();
        assert_eq!(tally.span, Some((MS, 900 * MS)));
        assert!(tally.silences.is_empty() && tally.cpus.is_empty());
        assert_eq!(tally.kinds, [4]);
    }

    #[test]
    fn silences_are_of_their_cpu_and_of_what_was_not_lost() {
        let mut tally = HeadTally::default();
        for (time, cpu) in [(1, 0), (2, 1), (31, 0), (32, 1), (100, 1)] {
            tally.happened(3, time * MS, (cpu, 7), false);
        }
        tally.settle();
        let all = [
            (0, MS, 31 * MS),
            (1, 2 * MS, 32 * MS),
            (1, 32 * MS, 100 * MS),
        ];
        assert_eq!(tally.silences, all);
        assert_eq!(
            (tally.kinds.clone(), tally.cpus.clone()),
            (vec![0, 0, 0, 5], vec![2, 3])
        );
        assert_eq!(tally.span, Some((MS, 100 * MS)));
        tally.clear();
        tally.lost(1);
        for cpu in [0, 1] {
            tally.happened(3, 200 * MS, (cpu, 7), false);
        }
        tally.settle();
        assert_eq!(tally.silences, [(0, 31 * MS, 200 * MS)]);
        assert_eq!((tally.gaps.len(), tally.cpus.clone()), (1, vec![1, 1]));
    }
}
