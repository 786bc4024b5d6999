//! Events that are being recorded, and what the kernel says of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rings::{WrittenBytes, record_type};

use crate::RecordError;
use crate::compact::OpenCompact;
use crate::counters::ThreadCounters;
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
            live.gather();
            while live.make() {
                live.take_made(u64::MAX, 0);
            }
        }
        live.stop()?;
        Ok((live.summary()?, began.elapsed()))
    }
}

/// How long is waited at most where programs write records: they wake nobody, and go on over what is old.
const COMPACT_TURN: Duration = Duration::from_millis(20);

/// Events that are being recorded.
#[derive(Debug)]
pub(crate) struct LiveRecording {
    pub(crate) opened: OpenedEvents,
    bytes: u64,
    samples: u64,
    /// Records that were put together here and wait to be written.
    made: Vec<u8>,
    /// How much of the rings was looked at for that, where programs write records: all of it without.
    seen: Vec<usize>,
}

impl LiveRecording {
    /// Lets the events be recorded.
    pub(crate) fn begin(mut opened: OpenedEvents) -> Result<LiveRecording, RecordError> {
        opened.enable(true).map_err(RecordError::Wait)?;
        Ok(LiveRecording {
            opened,
            bytes: 0,
            samples: 0,
            made: Vec::new(),
            seen: Vec::new(),
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
        let at_most = match self.opened.compact {
            // Programs wake nobody.
            Some(_) => at_most.min(COMPACT_TURN),
            None => at_most,
        };
        rings::wait_for(&files, at_most).map_err(RecordError::Wait)?;
        Ok(())
    }

    /// Returns what the rings have, as pieces of whole records: ring after ring.
    pub(crate) fn written(&self) -> Vec<WrittenBytes<'_>> {
        let rings = self.opened.rings.iter().enumerate();
        rings
            .map(|(at, one)| {
                let written = one.ring.written();
                let seen = self.seen.get(at).copied().unwrap_or(usize::MAX);
                written.up_to(seen)
            })
            .collect()
    }

    /// Reads what programs in the kernel have written.
    pub(crate) fn gather(&mut self) {
        for pair in &mut self.opened.pairs {
            pair.take(&mut self.made);
        }
        let Some(compact) = &mut self.opened.compact else {
            return;
        };
        compact.read();
        // Names that threads had at that time have come by now. What comes from here on is looked at next time.
        let mut named = Vec::new();
        self.seen.clear();
        for one in &self.opened.rings {
            let written = one.ring.written();
            self.seen.push(written.len());
            let others = written
                .records()
                .filter(|one| one.kind() != record_type::SAMPLE);
            named.extend(others.map(|one| [one.first, one.second].concat()));
        }
        compact.learn(&named);
    }

    /// Puts perf's records together of a piece of what was read, where nothing that was put together waits. Returns
    /// whether there are any.
    pub(crate) fn make(&mut self) -> bool {
        match &mut self.opened.compact {
            Some(compact) if self.made.is_empty() => compact.take(&mut self.made),
            _ => !self.made.is_empty(),
        }
    }

    /// Takes what the rings have and what programs wrote, and appends all of it to records.
    pub(crate) fn drain(&mut self, records: &mut Vec<u8>) {
        self.gather();
        let before = records.len();
        let written = self.written();
        let had: Vec<usize> = written.iter().map(WrittenBytes::len).collect();
        let samples = written.iter().map(WrittenBytes::samples).sum();
        for one in &written {
            records.extend_from_slice(one.first);
            records.extend_from_slice(one.second);
        }
        self.take(&had, (records.len() - before) as u64, samples);
        while self.make() {
            records.extend_from_slice(&self.made);
            let made = WrittenBytes {
                first: &self.made,
                second: &[],
            };
            let samples = made.samples();
            self.take_made(u64::MAX, samples);
        }
    }

    /// Returns the records that were put together and wait to be written.
    pub(crate) fn made(&self) -> &[u8] {
        &self.made
    }

    /// So many bytes of [`LiveRecording::made`] were written, with so many samples.
    pub(crate) fn take_made(&mut self, bytes: u64, samples: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let bytes = bytes.min(self.made.len());
        self.made.drain(..bytes);
        self.bytes += bytes as u64;
        self.samples += samples;
    }

    /// Learns what threads are called from the records that stand before those of the kernel.
    pub(crate) fn learn(&mut self, side: &[u8]) {
        if let Some(compact) = &mut self.opened.compact {
            compact.begin(side);
        }
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
        for (id, lost) in self.opened.compact.iter().flat_map(OpenCompact::losses) {
            lost_samples(&mut out, lost, 0, id);
        }
        Ok(out)
    }

    /// Returns how many bytes the rings hold at most, and what is said of losses at the end.
    pub(crate) fn at_most(&self) -> u64 {
        let rings = self.opened.rings.iter().map(|one| one.ring.size() as u64);
        let of_pairs = self.opened.pairs.iter().flat_map(OpenPair::rings);
        let of_pairs = of_pairs.map(|ring| ring.size() as u64);
        let losses = self.opened.events.iter().map(|one| one.on.len() as u64);
        let counters = self.opened.counters.as_ref();
        let counters = counters.map_or(0, ThreadCounters::at_most);
        let rings = rings.chain(of_pairs).sum::<u64>();
        rings + losses.sum::<u64>() * u64::from(LOST_BYTES) + counters
    }

    /// Returns the records of what threads' counters counted since they were read last: at the end, or if that is long
    /// enough ago.
    pub(crate) fn counters(&mut self, at_end: bool) -> Result<Vec<u8>, RecordError> {
        let Some(counters) = &mut self.opened.counters else {
            return Ok(Vec::new());
        };
        let read = match at_end {
            true => counters.read(),
            false => counters.due(),
        };
        read.map_err(RecordError::Wait)
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
        if let Some(compact) = &self.opened.compact {
            summary.events.extend(compact.recorded());
        }
        summary.lost_by_cpu.retain(|(_, lost)| *lost > 0);
        summary.lost_by_cpu.sort_unstable();
        Ok(summary)
    }
}

/// Bytes of a record of losses: header, count, and thread, time, CPU and id as all events have them behind records that
/// are no samples.
const LOST_BYTES: u16 = 8 + 8 + 4 * 8;

fn lost_samples(out: &mut Vec<u8>, lost: u64, cpu: u32, id: u64) {
    out.extend(record_type::LOST_SAMPLES.to_ne_bytes());
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
