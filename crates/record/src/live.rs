//! Events that are being recorded, and what the kernel says of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rings::WrittenBytes;

use crate::RecordError;
use crate::opened::OpenedEvents;
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
    /// Whether its records hold the call chain.
    pub chain: bool,
    /// Whether it is not recorded each time: then its count is no number of records.
    pub sampled: bool,
    /// How often the kernel counted it, on all CPUs: what a filter left out is not in it.
    pub count: u64,
    /// The same by CPU.
    pub by_cpu: Vec<(u32, u64)>,
    /// How many of these found no room in a ring; `None` where the kernel does not say (before 6.0).
    pub lost: Option<u64>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordSummary {
    /// Bytes of records.
    pub bytes: u64,
    /// Events that were taken out of the rings.
    pub samples: u64,
    /// Events, as the kernel counted them.
    pub events: Vec<RecordedCount>,
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

impl OpenedEvents {
    /// Records for a time and throws the records away. Returns what the kernel counted meanwhile, and how long it was.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`].
    pub fn try_for(self, time: Duration) -> Result<(RecordSummary, Duration), RecordError> {
        let began = Instant::now();
        let mut live = LiveRecording::begin(self)?;
        while let Some(left) = time.checked_sub(began.elapsed()) {
            live.wait(None, left)?;
            let had: Vec<usize> = live.written().iter().map(WrittenBytes::len).collect();
            let all: usize = had.iter().sum();
            live.take(&had, all as u64, 0);
        }
        live.stop()?;
        Ok((live.summary()?, began.elapsed()))
    }
}

/// Events that are being recorded.
#[derive(Debug)]
pub(crate) struct LiveRecording {
    pub(crate) opened: OpenedEvents,
    bytes: u64,
    samples: u64,
}

impl LiveRecording {
    /// Lets the events be recorded.
    pub(crate) fn begin(opened: OpenedEvents) -> Result<LiveRecording, RecordError> {
        opened.enable(true).map_err(RecordError::Wait)?;
        Ok(LiveRecording {
            opened,
            bytes: 0,
            samples: 0,
        })
    }

    /// Waits until a ring has enough to be worth a look, or another file has something to read, at most for a time.
    pub(crate) fn wait(
        &self,
        or: Option<BorrowedFd<'_>>,
        at_most: Duration,
    ) -> Result<(), RecordError> {
        let rings = self.opened.rings.iter().map(|one| one.ring.as_fd());
        let files: Vec<_> = rings.chain(or).collect();
        rings::wait_for(&files, at_most).map_err(RecordError::Wait)?;
        Ok(())
    }

    /// Returns what the rings have, as pieces of whole records: ring after ring.
    pub(crate) fn written(&self) -> Vec<WrittenBytes<'_>> {
        let rings = self.opened.rings.iter();
        rings.map(|one| one.ring.written()).collect()
    }

    /// Lets the kernel write again where the first so many bytes of [`LiveRecording::written`] are, as long as these
    /// rings had them: `had` says how many each had.
    pub(crate) fn take(&mut self, had: &[usize], bytes: u64, samples: u64) {
        self.bytes += bytes;
        self.samples += samples;
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        for (one, had) in self.opened.rings.iter_mut().zip(had) {
            let of_ring = left.min(*had);
            one.ring.take(of_ring);
            left -= of_ring;
        }
    }

    /// Returns a record for each event and CPU of which the kernel lost some, as perf 6.1 and later write them at the
    /// end: the rings themselves say a loss only with the next record that has room.
    pub(crate) fn losses(&self) -> Result<Vec<u8>, RecordError> {
        let mut out = Vec::new();
        for event in &self.opened.events {
            for (cpu, one) in &event.on {
                let counts = one.counts().map_err(RecordError::Wait)?;
                if let Some(lost @ 1..) = counts.lost {
                    lost_samples(&mut out, lost, *cpu, one.id());
                }
            }
        }
        Ok(out)
    }

    /// Returns how many bytes the rings hold at most, and what is said of losses at the end.
    pub(crate) fn at_most(&self) -> u64 {
        let rings = self.opened.rings.iter().map(|one| one.ring.size() as u64);
        let losses = self.opened.events.iter().map(|one| one.on.len() as u64);
        rings.sum::<u64>() + losses.sum::<u64>() * u64::from(LOST_BYTES)
    }

    /// Stops the events: what is in the rings stays there.
    pub(crate) fn stop(&self) -> Result<(), RecordError> {
        self.opened.enable(false).map_err(RecordError::Wait)
    }

    /// Returns what was recorded so far.
    pub(crate) fn summary(&self) -> Result<RecordSummary, RecordError> {
        self.counted().map_err(RecordError::Wait)
    }

    fn counted(&self) -> io::Result<RecordSummary> {
        let mut summary = RecordSummary {
            bytes: self.bytes,
            samples: self.samples,
            ..RecordSummary::default()
        };
        for event in &self.opened.events {
            let mut sum = RecordedCount {
                name: event.name.clone(),
                filter: event.filter.clone(),
                probe: event.probe,
                chain: event.attr.sample & rings::sample::CALLCHAIN != 0 && !event.attr.frequency,
                sampled: event.attr.frequency,
                count: 0,
                by_cpu: Vec::new(),
                lost: Some(0),
            };
            for (cpu, one) in &event.on {
                let counts = one.counts()?;
                sum.count += counts.value;
                sum.by_cpu.push((*cpu, counts.value));
                sum.lost = sum.lost.zip(counts.lost).map(|(sum, one)| sum + one);
                let lost = counts.lost.unwrap_or(0);
                match summary.lost_by_cpu.iter_mut().find(|(of, _)| of == cpu) {
                    Some((_, sum)) => *sum += lost,
                    None => summary.lost_by_cpu.push((*cpu, lost)),
                }
            }
            summary.events.push(sum);
        }
        summary.lost_by_cpu.retain(|(_, lost)| *lost > 0);
        summary.lost_by_cpu.sort_unstable();
        Ok(summary)
    }
}

/// Bytes of a record of losses: header, count, and thread, time, CPU and id as all events have them behind records that
/// are no samples.
const LOST_BYTES: u16 = 8 + 8 + 4 * 8;
/// `PERF_RECORD_LOST_SAMPLES`.
const LOST_SAMPLES: u32 = 13;

fn lost_samples(out: &mut Vec<u8>, lost: u64, cpu: u32, id: u64) {
    out.extend(LOST_SAMPLES.to_ne_bytes());
    out.extend(0u16.to_ne_bytes());
    out.extend(LOST_BYTES.to_ne_bytes());
    // No thread and no time: a record without a time is read where it stands.
    for word in [lost, 0, 0] {
        out.extend(word.to_ne_bytes());
    }
    out.extend(cpu.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    out.extend(id.to_ne_bytes());
}
