//! How many events there were: by kind, by CPU, and from when to when. Counted once a walk, for all who ask.

use event::{Event, EventType, HeadTally, cpu_index, index_of};

use crate::chosen::Chosen;

/// Events on one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuCount {
    /// Those that were asked for.
    pub chosen: u64,
    /// All in the window of time and CPUs, whoever made them.
    pub inside: u64,
}

/// How many events there were.
#[derive(Debug, Clone)]
pub struct Counts {
    kinds: Vec<u64>,
    cpus: Vec<CpuCount>,
    /// The times of the first and the last one that was asked for; the first is behind the last where there is none.
    first: u64,
    last: u64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            kinds: Vec::new(),
            cpus: Vec::new(),
            first: u64::MAX,
            last: 0,
        }
    }
}

impl Counts {
    /// Makes room for a kind of events.
    pub(crate) fn announced(&mut self, ty: &EventType<'_>) {
        let kind = index_of(ty.index);
        if self.kinds.len() <= kind {
            self.kinds.resize(kind + 1, 0);
        }
    }

    /// Takes an event that was asked for, of a kind on a CPU.
    #[inline(always)]
    pub(crate) fn count(&mut self, kind: u32, cpu: i32, time: u64) {
        match self.cpus.get_mut(cpu.cast_unsigned() as usize) {
            Some(cpu) => {
                cpu.inside += 1;
                cpu.chosen += 1;
            }
            None => self.meet(cpu, 1),
        }
        if let Some(kind) = self.kinds.get_mut(index_of(kind)) {
            *kind += 1;
        }
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    /// Takes what a reader has counted.
    pub(crate) fn tallied(&mut self, tally: &HeadTally) {
        for (sum, more) in self.kinds.iter_mut().zip(&tally.kinds) {
            *sum += more;
        }
        if self.cpus.len() < tally.cpus.len() {
            self.cpus.resize(tally.cpus.len(), CpuCount::default());
        }
        for (sum, more) in self.cpus.iter_mut().zip(&tally.cpus) {
            sum.inside += more;
            sum.chosen += more;
        }
        for (kind, cpu) in &tally.given_up {
            if let Some(sum) = self.kinds.get_mut(index_of(*kind)) {
                *sum = sum.saturating_sub(1);
            }
            if let Some(sum) = self.cpus.get_mut(cpu.cast_unsigned() as usize) {
                sum.inside = sum.inside.saturating_sub(1);
                sum.chosen = sum.chosen.saturating_sub(1);
            }
        }
        if let Some((first, last)) = tally.span {
            self.first = self.first.min(first);
            self.last = self.last.max(last);
        }
    }

    /// Takes an event that may be left out.
    pub(crate) fn take(&mut self, event: &Event<'_>, chosen: Chosen) {
        if chosen.counts {
            self.count(event.ty.index, event.cpu, event.time);
        } else if chosen.inside {
            match self.cpus.get_mut(event.cpu.cast_unsigned() as usize) {
                Some(cpu) => cpu.inside += 1,
                None => self.meet(event.cpu, 0),
            }
        }
    }

    /// The first event of a CPU.
    #[cold]
    fn meet(&mut self, cpu: i32, counts: u64) {
        if let Some(cpu) = cpu_index(cpu) {
            self.cpus.resize(cpu + 1, CpuCount::default());
            self.cpus[cpu] = CpuCount {
                chosen: counts,
                inside: 1,
            };
        }
    }

    /// Returns how many events of a kind were asked for and happened, by its number in the recording.
    pub fn of_kind(&self, index: usize) -> u64 {
        self.kinds.get(index).copied().unwrap_or(0)
    }

    /// Returns how many events happened on each CPU.
    pub fn cpus(&self) -> &[CpuCount] {
        &self.cpus
    }

    /// Returns the times of the first and the last event that was asked for, as the recording prints them.
    pub fn span(&self) -> Option<(u64, u64)> {
        (self.first <= self.last).then_some((self.first, self.last))
    }
}
