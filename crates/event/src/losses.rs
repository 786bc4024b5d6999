//! Which CPU's buffer lost events, and when.

use doubts::{AnswerScope, DoubtScope};

use crate::sink::{LostKind, Side};

/// Spans that are kept of a CPU; those behind them are one with the last.
const MAX_SPANS: usize = 64;

/// Events that the buffer of one CPU lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLoss {
    /// The CPU.
    pub cpu: u32,
    /// From when: the loss before it on that CPU, 0 for the first, since when the buffer was full is not recorded.
    pub from: u64,
    /// When it was noticed.
    pub to: u64,
    /// How many; where only that some were is recorded, one.
    pub events: u64,
}

impl CpuLoss {
    fn scope(&self) -> DoubtScope {
        DoubtScope {
            cpus: vec![self.cpu],
            span: Some((self.from, self.to)),
            ..DoubtScope::default()
        }
    }
}

/// The losses of which the recording says the CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuLosses(Vec<CpuLoss>);

/// A time that is not recorded may be any.
const ANY_TIME: u64 = u64::MAX;

impl CpuLosses {
    /// Takes a side record: those of losses where they happened, with their CPU, are noted.
    pub fn note(&mut self, side: &Side<'_>) {
        let Side::Lost {
            time,
            cpu,
            count,
            kind: LostKind::Ring,
            ..
        } = *side
        else {
            return;
        };
        let Ok(cpu) = u32::try_from(cpu) else {
            return;
        };
        let events = count.unwrap_or(1);
        let to = if time == 0 { ANY_TIME } else { time };
        let of_cpu = self.0.iter_mut().filter(|one| one.cpu == cpu);
        let (spans, last) = of_cpu.fold((0, None), |(spans, _), one| (spans + 1, Some(one)));
        match last {
            Some(last) if spans >= MAX_SPANS => {
                last.to = last.to.max(to);
                last.events = last.events.saturating_add(events);
            }
            last => {
                let from = last.map_or(0, |last| last.to.min(to));
                self.0.push(CpuLoss {
                    cpu,
                    from,
                    to,
                    events,
                });
            }
        }
    }

    /// Takes how many events a CPU lost in all, as the recorder says at the end. Those of them that were not noted
    /// where they happened may have been lost at any time.
    pub fn note_sum(&mut self, cpu: u32, all: u64) {
        let of_cpu = self.0.iter().filter(|one| one.cpu == cpu);
        let noted = of_cpu.fold(0u64, |sum, one| sum.saturating_add(one.events));
        if all > noted {
            self.0.push(CpuLoss {
                cpu,
                from: 0,
                to: ANY_TIME,
                events: all - noted,
            });
        }
    }

    /// Returns them, those of each CPU in order.
    pub fn iter(&self) -> std::slice::Iter<'_, CpuLoss> {
        self.0.iter()
    }

    /// Returns how many events they are.
    pub fn events(&self) -> u64 {
        let events = self.0.iter().map(|one| one.events);
        events.fold(0, u64::saturating_add)
    }

    /// Leaves out those that do not touch an answer, and returns how many events they were.
    pub(crate) fn leave_out_untouched(&mut self, shown: &AnswerScope) -> u64 {
        let before = self.events();
        self.0.retain(|one| shown.is_touched_in(&one.scope()));
        before.saturating_sub(self.events())
    }

    /// Returns the part of the recording that they are about together.
    pub(crate) fn scope(&self) -> DoubtScope {
        let mut cpus: Vec<u32> = self.0.iter().map(|one| one.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let from = self.0.iter().map(|one| one.from).min();
        let to = self.0.iter().map(|one| one.to).max();
        DoubtScope {
            cpus,
            span: from.zip(to),
            ..DoubtScope::default()
        }
    }
}

impl Extend<CpuLoss> for CpuLosses {
    fn extend<I: IntoIterator<Item = CpuLoss>>(&mut self, losses: I) {
        self.0.extend(losses);
    }
}

#[cfg(test)]
mod tests {
    use doubts::Concerns;

    use super::*;

    fn lost(time: u64, cpu: i32, count: Option<u64>) -> Side<'static> {
        let (buffer, kind) = (0, LostKind::Ring);
        Side::Lost {
            time,
            cpu,
            buffer,
            count,
            kind,
        }
    }

    fn left(losses: &CpuLosses, cpu: Option<u32>, time: Option<(u64, u64)>) -> u64 {
        let shown = AnswerScope {
            cpus: cpu.map(|cpu| vec![(cpu, cpu)]),
            time,
            ..AnswerScope::of(Concerns::everything())
        };
        let mut losses = losses.clone();
        losses.leave_out_untouched(&shown);
        losses.events()
    }

    #[test]
    fn a_loss_touches_its_cpu_and_its_time_alone() {
        let mut losses = CpuLosses::default();
        losses.note(&lost(100, 3, Some(5)));
        losses.note(&lost(200, 3, None));
        losses.note(&lost(150, 1, Some(7)));
        // Nobody knows where that was: it is none of a CPU's.
        losses.note(&lost(300, -1, Some(9)));
        assert_eq!(losses.events(), 13);
        assert_eq!(
            [0, 1, 3].map(|cpu| left(&losses, Some(cpu), None)),
            [0, 7, 6]
        );
        assert_eq!(left(&losses, Some(3), Some((101, 400))), 1);
        assert_eq!(left(&losses, None, Some((201, 400))), 0);
        assert_eq!(left(&losses, None, Some((120, 130))), 8);
        losses.note_sum(3, 16);
        assert_eq!(
            (
                left(&losses, Some(3), None),
                left(&losses, Some(3), Some((201, 400)))
            ),
            (16, 10)
        );
        assert_eq!(losses.scope().cpus, [1, 3]);
    }

    #[test]
    fn what_is_kept_of_a_cpu_is_bounded() {
        let mut losses = CpuLosses::default();
        for time in 1..=1000 {
            losses.note(&lost(time, 2, Some(1)));
        }
        assert_eq!((losses.events(), losses.iter().count()), (1000, MAX_SPANS));
        assert_eq!(
            left(&losses, None, Some((999, 1000))),
            1000 - MAX_SPANS as u64 + 1
        );
    }
}
