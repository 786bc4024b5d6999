//! What was recorded.

use crate::pairs::PairSummary;
use crate::plan::ProbeKind;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedCount {
    /// Its name.
    pub name: String,
    /// The filter that chose its records.
    pub filter: Option<String>,
    /// As what it was made for this recording.
    pub probe: Option<ProbeKind>,
    /// Whether programs in the kernel keep the last of its records, and write those that are wanted.
    pub kept: bool,
    /// Whether its records hold the call chain.
    pub chain: bool,
    /// Whether it is not recorded each time: then its count is no number of records.
    pub sampled: bool,
    /// How often the kernel counted it, on all CPUs: what a filter left out is not in it.
    pub count: u64,
    /// The same by CPU; of an event that programs keep, how often it came.
    pub by_cpu: Vec<(u32, u64)>,
    /// How many of these found no room in a ring; `None` where the kernel does not say (before 6.0).
    pub lost: Option<u64>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordSummary {
    /// Bytes of records.
    pub bytes: u64,
    /// Events that were taken out of the rings.
    pub samples: u64,
    /// Events, as the kernel counted them.
    pub events: Vec<RecordedCount>,
    /// Pairs of events.
    pub pairs: Vec<PairSummary>,
    /// Records that found no room in the ring of a CPU, by CPU, where any did.
    pub lost_by_cpu: Vec<(u32, u64)>,
}

impl RecordSummary {
    /// Returns how many records were lost; `None` where the kernel does not say.
    pub fn lost(&self) -> Option<u64> {
        self.events.iter().map(|one| one.lost).sum()
    }

    /// Returns how many events the kernel counted and neither wrote nor counted as lost; `None` where it does not say
    /// what was lost, or samples were taken too, whose number is not known.
    ///
    /// Kernels since February 2026 (stable ones too: 6.18.44 does it) count an event before they look whether it may be
    /// written, which it may not while its CPU's events are being put on and off (`perf_swevent_event` in
    /// `kernel/events/core.c`).
    pub fn withheld(&self) -> Option<u64> {
        self.withheld_of(self.count())
    }

    /// Returns how often the kernel counted the events, all together.
    pub fn count(&self) -> u64 {
        let counts = self.events.iter().map(|one| one.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Returns how many of so many events, counted before the rings were read last, the kernel neither wrote nor
    /// counted as lost: at least so many, as what was written or lost since then is taken for some of them. `None` as
    /// in [`RecordSummary::withheld`].
    pub fn withheld_of(&self, count: u64) -> Option<u64> {
        if self.events.iter().any(|one| one.sampled) {
            return None;
        }
        Some(
            count
                .saturating_sub(self.lost()?)
                .saturating_sub(self.samples),
        )
    }
}
