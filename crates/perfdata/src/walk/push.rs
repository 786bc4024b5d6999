//! The merge: records go out in time order.

use std::sync::Arc;

use super::barriers::{Barrier, OrderKey};
use super::out::{RecordOrigin, RecordOutlet};
use super::prefetch::{LINE, prefetch};
use super::visitor::SampleWish;
use super::{PerfWalk, counted};
use crate::byte_source::{ByteWindow, ScannedPieces};
use crate::chunks::Chunks;
use crate::file::PerfRecording;
use crate::merge::{MergeRecord, MergeStretch, RecordRun};
use crate::record::{HEADER, PerfRecordHeader, kind};
use tracefmt::index_of;

/// The kernel maps file pages in blocks of this many bytes around the one that is touched (fault-around).
const BLOCK_SHIFT: u32 = 16;
/// Blocks distinguished, a power of two, and how many may be in use again before they are released.
pub(super) const BLOCKS: usize = 1024;
const MAX_BLOCKS: usize = 160;

/// Bytes of the input that are read at once for a run: the longest record has as many. And runs that have such a piece
/// at most: what is beyond is looked at in the map.
const WINDOW: usize = 64 << 10;
const MAX_WINDOWS: usize = 256;

/// Stretches, and records of one, that the merge looks ahead: in the file they are anywhere.
const AHEAD: usize = 12;
const AHEAD_IN_RUN: u32 = 12;

/// What is left of a run without an index: when it goes on, and where in the bytes.
#[derive(Debug, Clone, Copy)]
struct RunRest {
    time: u64,
    at: usize,
}

/// A piece of the input that a run is read from: one that was scanned, or one of its own.
#[derive(Debug, Default)]
pub(super) struct RunWindow {
    scanned: Option<Arc<ByteWindow>>,
    own: ByteWindow,
}

impl RunWindow {
    #[inline(always)]
    fn now(&self) -> &ByteWindow {
        match &self.scanned {
            Some(scanned) => scanned,
            None => &self.own,
        }
    }

    /// Takes the piece that has the record at a place.
    #[inline(never)]
    fn find<const BIG: bool>(
        &mut self,
        recording: &PerfRecording<'_>,
        pieces: &ScannedPieces,
        at: usize,
    ) {
        self.scanned = pieces.with(at, HEADER).map(Arc::clone);
        if let Some(scanned) = &self.scanned
            && scanned.has_record::<BIG>(at)
        {
            return;
        }
        self.scanned = None;
        if let Some(source) = recording.source
            && !self.own.has_record::<BIG>(at)
        {
            // A record has no more bytes than that.
            self.own.fill(source, at, WINDOW);
        }
    }
}

/// What the records of runs are read from.
#[derive(Debug, Default)]
pub(super) struct RunSources {
    /// Of runs in the input, by slot.
    windows: Vec<RunWindow>,
    /// What was unpacked or copied, while records go out.
    chunks: Chunks,
}

/// Where a record is: the buffer, the slot of its run, and its place in the buffer.
type RecordSpot = (u32, usize, usize);

impl RunSources {
    /// Lets pieces go: they are not needed for longer than they are kept.
    fn forget(&mut self) {
        for window in &mut self.windows {
            window.scanned = None;
        }
    }

    /// Returns the window of a slot, if records of the input are read by pieces, which they are where runs are few.
    #[inline(always)]
    fn window(&self, recording: &PerfRecording<'_>, slot: usize) -> Option<&RunWindow> {
        let by_pieces = recording.source.is_some() && slot < MAX_WINDOWS;
        self.windows.get(slot).filter(|_| by_pieces)
    }

    /// Makes the bytes ready that a record is in.
    #[inline(always)]
    fn find<const BIG: bool>(
        &mut self,
        recording: &PerfRecording<'_>,
        pieces: &ScannedPieces,
        (buffer, slot, at): RecordSpot,
    ) {
        if buffer == 0 && recording.source.is_some() && slot < MAX_WINDOWS {
            if self.windows.len() <= slot {
                self.windows.resize_with(slot + 1, RunWindow::default);
            }
            let window = &mut self.windows[slot];
            if !window.now().has_record::<BIG>(at) {
                window.find::<BIG>(recording, pieces, at);
            }
        }
    }

    /// Returns them.
    #[inline(always)]
    fn origin<'d>(
        &'d self,
        recording: &PerfRecording<'d>,
        (buffer, slot, _): RecordSpot,
    ) -> RecordOrigin<'d> {
        if buffer != 0 {
            return RecordOrigin::of_piece(buffer, self.chunks.get(buffer));
        }
        let window = self.window(recording, slot);
        let (data, base) = window.map_or((recording.data, 0), |window| window.now().bytes());
        RecordOrigin {
            data,
            base,
            buffer,
            piece: None,
        }
    }
}

/// A run that goes out by itself between barriers.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuRun {
    /// Its next record.
    key: OrderKey,
    run: RecordRun,
}

impl CpuRun {
    fn new((time, run): (u64, RecordRun)) -> CpuRun {
        CpuRun {
            key: (time, run.seq),
            run,
        }
    }

    fn goes_on(&mut self, entry: u32, time: u64) {
        self.run.entry = entry;
        self.key.0 = time;
    }

    /// Nothing of it is left.
    fn ends(&mut self, entry: u32) {
        self.run.entry = entry;
        self.key = (u64::MAX, u64::MAX);
    }

    fn is_over(&self) -> bool {
        self.run.entry >= self.run.entry_end
    }
}

impl<O: RecordOutlet, const BIG: bool> PerfWalk<'_, '_, '_, O, BIG> {
    /// Pushes everything up to and including `limit`.
    pub(super) fn flush(&mut self, limit: u64) {
        self.tell_counts();
        self.flush_queue(limit);
        let newest = self.unordered.settle(limit);
        self.last_out = self.last_out.max(newest);
    }

    /// Says what was counted until now.
    pub(super) fn tell_counts(&mut self) {
        let (counters, unordered, totals) = (&self.counters, &self.unordered, &self.totals);
        let flow = self.out.counted(|| counted(counters, unordered, totals));
        self.stop |= flow.is_break();
    }

    /// Pushes everything up to and including `limit` that waits.
    pub(super) fn flush_queue(&mut self, limit: u64) {
        if let Some(tally) = &mut self.tally {
            self.stop |= self.out.tallied(tally).is_break();
        }
        self.copies.settle(&mut self.chunks);
        let barriers = self.barriers.list(limit, &self.queue);
        match &barriers {
            Some(barriers) => self.push_by_cpu(barriers, limit),
            None => self.push_merged(limit),
        }
        self.sources.forget();
        self.copies.has_room();
        let newest = self.queue.newest;
        self.barriers.settle(limit, newest, barriers);
    }

    /// Pushes what waits run by run, as far as the next barrier each.
    fn push_by_cpu(&mut self, barriers: &[Barrier], limit: u64) {
        let mut runs = std::mem::take(&mut self.cpu_runs);
        runs.clear();
        runs.extend(self.queue.take_runs().into_iter().map(CpuRun::new));
        let mut sources = self.take_sources();
        let sent = self.last_out;
        for barrier in barriers {
            for (slot, run) in runs.iter_mut().enumerate() {
                if run.key < barrier.key {
                    self.push_run(run, (&mut sources, slot), (barrier.key, sent));
                }
            }
            if barrier.takes {
                let at = runs.binary_search_by_key(&barrier.key.1, |run| run.run.seq);
                if let Ok(slot) = at
                    && let Some(run) = runs.get_mut(slot)
                {
                    self.push_ordered(run, (&mut sources, slot), (barrier.key, sent));
                }
            }
            if self.stop {
                break;
            }
        }
        let end = (limit, u64::MAX);
        for (slot, run) in runs.iter_mut().enumerate() {
            if run.key <= end && !self.stop {
                self.push_run(run, (&mut sources, slot), (end, sent));
            }
        }
        self.give_back(sources);
        let left = runs.iter().filter(|run| !run.is_over());
        self.queue.put_back(left.map(|run| (run.key.0, run.run)));
        for run in runs.iter().filter(|run| run.is_over()) {
            if run.run.buffer != 0 {
                self.chunks.unused(run.run.buffer);
            }
        }
        self.cpu_runs = runs;
    }

    fn take_sources(&mut self) -> RunSources {
        let mut sources = std::mem::take(&mut self.sources);
        sources.chunks = std::mem::take(&mut self.chunks);
        sources
    }

    fn give_back(&mut self, mut sources: RunSources) {
        self.chunks = std::mem::take(&mut sources.chunks);
        self.sources = sources;
    }

    /// Makes the bytes ready that a record is in. Without a reader those of the input do not matter.
    #[inline(always)]
    fn find_bytes(&self, sources: &mut RunSources, spot: RecordSpot) {
        if O::READS {
            sources.find::<BIG>(self.reading.recording, &self.pieces, spot);
        }
    }

    /// Pushes what a run has before a place.
    #[inline]
    fn push_run(
        &mut self,
        run: &mut CpuRun,
        (sources, slot): (&mut RunSources, usize),
        (until, sent): (OrderKey, u64),
    ) {
        let recording = self.reading.recording;
        let mut from = RecordOrigin::of_input(&[]);
        let mut next = run.run.entry;
        while let Some(&entry) = self.queue.entries.get(index_of(next)) {
            if next >= run.run.entry_end || self.stop {
                break;
            }
            if (entry.time, run.key.1) >= until {
                return run.goes_on(next, entry.time);
            }
            let spot = (run.run.buffer, slot, entry.at());
            if from.buffer != spot.0 || O::READS && !from.has_record::<BIG>(spot.2) {
                self.find_bytes(sources, spot);
                from = sources.origin(recording, spot);
            }
            self.push(from, entry, sent);
            next += 1;
        }
        run.ends(next);
    }

    /// Pushes the next record of a run that is wanted in time order, if it is of this time, and what stands before it.
    fn push_ordered(
        &mut self,
        run: &mut CpuRun,
        (sources, slot): (&mut RunSources, usize),
        (key, sent): (OrderKey, u64),
    ) {
        while run.key == key && !self.stop {
            let entry = self.queue.entries.get(index_of(run.run.entry)).copied();
            let Some(entry) = entry else {
                return run.ends(run.run.entry);
            };
            let counter = self.counters.get(index_of(entry.attr()));
            let in_order = counter.is_none_or(|counter| counter.want == SampleWish::InOrder);
            let spot = (run.run.buffer, slot, entry.at());
            self.find_bytes(sources, spot);
            let from = sources.origin(self.reading.recording, spot);
            self.push(from, entry, sent);
            let next = run.run.entry + 1;
            match self.queue.entries.get(index_of(next)) {
                Some(entry) if next < run.run.entry_end => run.goes_on(next, entry.time),
                _ => run.ends(next),
            }
            if in_order {
                return;
            }
        }
    }

    /// Pushes everything up to and including `limit` through the merge.
    fn push_merged(&mut self, limit: u64) {
        let sent = self.last_out;
        let mut batch = std::mem::take(&mut self.batch);
        while !self.stop {
            self.queue.take_batch(limit, &mut batch);
            if !batch.stretches.is_empty() {
                self.push_batch(&batch.stretches, sent);
                for buffer in batch.over.drain(..) {
                    self.chunks.unused(buffer);
                }
                continue;
            }
            // What is next has no index, if there is anything.
            let Some((time, _, &run)) = self.queue.first().filter(|(time, ..)| *time <= limit)
            else {
                break;
            };
            match self.push_range(run, (time, limit), sent) {
                Some(RunRest { time, at }) => self.queue.first_goes_on(time, run.entry, at),
                None => {
                    self.queue.remove_first();
                    if run.buffer != 0 {
                        self.chunks.unused(run.buffer);
                    }
                }
            }
        }
        self.batch = batch;
    }

    /// Pushes stretches in their order.
    fn push_batch(&mut self, stretches: &[MergeStretch], sent: u64) {
        let mut sources = self.take_sources();
        for (number, stretch) in stretches.iter().enumerate() {
            if self.stop {
                break;
            }
            if let Some(ahead) = stretches.get(number + AHEAD) {
                self.ask_for(&sources, ahead.entry, (ahead.buffer, ahead.slot));
            }
            self.push_stretch(*stretch, &mut sources, sent);
        }
        self.give_back(sources);
    }

    /// Pushes records of a run.
    #[inline(always)]
    fn push_stretch(&mut self, stretch: MergeStretch, sources: &mut RunSources, sent: u64) {
        let recording = self.reading.recording;
        let from_map = recording.source.is_none();
        let mut from = RecordOrigin::of_input(&[]);
        let mut is_new = true;
        for next in stretch.entry..stretch.entry_end {
            let Some(&entry) = self.queue.entries.get(index_of(next)) else {
                return;
            };
            // What is read by pieces comes behind each other.
            if from_map && next + AHEAD_IN_RUN < stretch.entry_end {
                let place = (stretch.buffer, stretch.slot);
                self.ask_for(sources, next + AHEAD_IN_RUN, place);
            }
            let spot = (stretch.buffer, index_of(stretch.slot), entry.at());
            if std::mem::take(&mut is_new) || O::READS && !from.has_record::<BIG>(spot.2) {
                self.find_bytes(sources, spot);
                from = sources.origin(recording, spot);
            }
            self.push(from, entry, sent);
            if self.stop {
                return;
            }
        }
    }

    /// Asks the processor for the bytes of a record that comes soon.
    #[inline(always)]
    fn ask_for(&self, sources: &RunSources, entry: u32, (buffer, slot): (u32, u32)) {
        let Some(entry) = self.queue.entries.get(index_of(entry)) else {
            return;
        };
        if O::READS {
            let spot = (buffer, index_of(slot), entry.at());
            let from = sources.origin(self.reading.recording, spot);
            let at = spot.2.wrapping_sub(from.base);
            prefetch(from.data, at);
            prefetch(from.data, at.wrapping_add(LINE));
            prefetch(from.data, at.wrapping_add(2 * LINE));
        }
    }

    /// The same for a run without an index: walks its bytes again.
    #[cold]
    fn push_range(
        &mut self,
        run: RecordRun,
        (begins, limit): (u64, u64),
        sent: u64,
    ) -> Option<RunRest> {
        let piece = self.chunks.get(run.buffer).map(Arc::clone);
        let from = match run.buffer {
            0 => RecordOrigin::of_input(self.reading.recording.data),
            buffer => RecordOrigin::of_piece(buffer, piece.as_ref()),
        };
        let second = self.queue.second_run();
        let mut first = true;
        let mut at = run.at;
        while at < run.end && !self.stop {
            let header = PerfRecordHeader::read::<BIG>(from.data, at)?;
            if header.is_none() {
                // A hole, which is a run of its own.
                self.push(from, MergeRecord::new(begins, at, MergeRecord::SIDE), sent);
                return None;
            }
            let next = at + header.size.max(HEADER);
            let body = from.data.get(at + HEADER..next)?;
            let attr = if header.kind == kind::SAMPLE {
                let attr = self.reading.attr_of::<BIG>(body);
                attr.filter(|&attr| {
                    let want = self.counters[index_of(attr)].want;
                    matches!(want, SampleWish::InOrder | SampleWish::OfThread)
                })
            } else {
                Some(MergeRecord::SIDE)
            };
            if let Some(attr) = attr {
                let time = self.reading.time_of::<BIG>(header, body, attr);
                if !first && (time > limit || (time, run.seq) > second) {
                    return Some(RunRest { time, at });
                }
                first = false;
                self.push(from, MergeRecord::new(time, at, attr), sent);
            }
            at = next;
        }
        None
    }

    /// Pushes a record. `sent` is the newest time that had gone out before the flush: within one, times only grow.
    #[inline(always)]
    fn push(&mut self, from: RecordOrigin<'_>, entry: MergeRecord, sent: u64) {
        let at = entry.at();
        let flow = match entry.attr() {
            MergeRecord::SIDE => self.out.side(from, at, entry.time),
            attr => {
                if entry.time < sent {
                    self.out.late();
                } else {
                    self.last_out = self.last_out.max(entry.time);
                }
                self.out.sample(from, at, entry.time, attr)
            }
        };
        self.stop |= flow.is_break();
        if from.buffer == 0 && from.base == 0 && at < self.released {
            self.read_again(at);
        }
    }

    /// Keeps count of pages that were released and are in use again, and releases them before they are many:
    /// in a recording with few rounds, or none, that could be the whole file.
    #[inline]
    fn read_again(&mut self, at: usize) {
        let block = at >> BLOCK_SHIFT;
        let tag = &mut self.blocks[block & (BLOCKS - 1)];
        if *tag == block {
            return;
        }
        *tag = block;
        self.blocks_used += 1;
        if self.blocks_used >= MAX_BLOCKS {
            self.blocks_used = 0;
            self.blocks.fill(usize::MAX);
            let range = self.reading.recording.start..self.released;
            self.stop |= self.out.release(range).is_break();
        }
    }
}
