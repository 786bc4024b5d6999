//! How many events there were: by kind, by CPU, and from when to when. EventAccount once a walk, for all who ask.

use event::{Event, cpu_index, index_of};

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
#[derive(Debug, Clone, Default)]
pub struct Counts {
    kinds: Vec<u64>,
    cpus: Vec<CpuCount>,
    span: Option<(u64, u64)>,
}

impl Counts {
    #[inline]
    pub(crate) fn take(&mut self, event: &Event<'_>, chosen: Chosen) {
        if !chosen.inside {
            return;
        }
        let counts = u64::from(chosen.counts);
        if let Some(cpu) = cpu_index(event.cpu) {
            if self.cpus.len() <= cpu {
                self.cpus.resize(cpu + 1, CpuCount::default());
            }
            let cpu = &mut self.cpus[cpu];
            cpu.inside += 1;
            cpu.chosen += counts;
        }
        if !chosen.counts {
            return;
        }
        let kind = index_of(event.ty.index);
        if self.kinds.len() <= kind {
            self.kinds.resize(kind + 1, 0);
        }
        self.kinds[kind] += 1;
        match &mut self.span {
            Some((start, end)) => {
                *start = event.time.min(*start);
                *end = event.time.max(*end);
            }
            None => self.span = Some((event.time, event.time)),
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
        self.span
    }
}
