//! Events that are being recorded, and what the kernel says of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rings::WrittenBytes;

use crate::RecordError;
use crate::opened::OpenedEvents;
use crate::pairs::OpenPair;
use crate::summary::{RecordSummary, RecordedCount};

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
            let of_pairs = live.of_pairs().len() as u64;
            live.take_pairs(of_pairs);
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
    /// Records of pairs that wait to be written.
    of_pairs: Vec<u8>,
}

impl LiveRecording {
    /// Lets the events be recorded.
    pub(crate) fn begin(mut opened: OpenedEvents) -> Result<LiveRecording, RecordError> {
        opened.enable(true).map_err(RecordError::Wait)?;
        Ok(LiveRecording {
            opened,
            bytes: 0,
            samples: 0,
            of_pairs: Vec::new(),
        })
    }

    /// Waits until a ring has enough to be worth a look, or another file has something to read, at most for a time.
    pub(crate) fn wait(
        &self,
        or: Option<BorrowedFd<'_>>,
        at_most: Duration,
    ) -> Result<(), RecordError> {
        let rings = self.opened.rings.iter().map(|one| one.ring.as_fd());
        let of_pairs = self.opened.pairs.iter().flat_map(OpenPair::rings);
        let of_pairs = of_pairs.map(AsFd::as_fd);
        let files: Vec<_> = rings.chain(of_pairs).chain(or).collect();
        rings::wait_for(&files, at_most).map_err(RecordError::Wait)?;
        Ok(())
    }

    /// Returns what the rings have, as pieces of whole records: ring after ring.
    pub(crate) fn written(&self) -> Vec<WrittenBytes<'_>> {
        let rings = self.opened.rings.iter();
        rings.map(|one| one.ring.written()).collect()
    }

    /// Returns the records of pairs that wait to be written: those that have come with them.
    pub(crate) fn of_pairs(&mut self) -> &[u8] {
        for pair in &mut self.opened.pairs {
            pair.take(&mut self.of_pairs);
        }
        &self.of_pairs
    }

    /// So many bytes of [`LiveRecording::of_pairs`] were written.
    pub(crate) fn take_pairs(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let bytes = bytes.min(self.of_pairs.len());
        self.of_pairs.drain(..bytes);
        self.bytes += bytes as u64;
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
        for (cpu, one) in self.opened.pairs.iter().flat_map(OpenPair::outputs) {
            let counts = one.counts().map_err(RecordError::Wait)?;
            if let Some(lost @ 1..) = counts.lost {
                lost_samples(&mut out, lost, *cpu, one.id());
            }
        }
        Ok(out)
    }

    /// Returns how many bytes the rings hold at most, and what is said of losses at the end.
    pub(crate) fn at_most(&self) -> u64 {
        let rings = self.opened.rings.iter().map(|one| one.ring.size() as u64);
        let of_pairs = self.opened.pairs.iter().flat_map(OpenPair::rings);
        let of_pairs = of_pairs.map(|ring| ring.size() as u64);
        let losses = self.opened.events.iter().map(|one| one.on.len() as u64);
        rings.chain(of_pairs).sum::<u64>() + losses.sum::<u64>() * u64::from(LOST_BYTES)
    }

    /// Stops the events: what is in the rings stays there.
    pub(crate) fn stop(&mut self) -> Result<(), RecordError> {
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
                kept: false,
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
        for pair in &self.opened.pairs {
            summary.events.extend(pair.recorded()?);
            summary.pairs.push(pair.summary());
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
