//! The merge: records go out in time order.

use std::sync::Arc;

use super::barriers::{Barrier, OrderKey};
use super::out::{RecordOrigin, RecordOutlet};
use super::prefetch::{LINE, prefetch};
use super::visitor::SampleWish;
use super::{PerfWalk, counted};
use crate::byte_source::{ByteWindow, ScannedPieces};
use crate::file::PerfRecording;
use crate::merge::{MergeRecord, RecordRun};
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

/// Records that the merge looks ahead: in the file they are anywhere.
const AHEAD: usize = 12;

/// What is left of a run: when it goes on, and where in the index, or in the bytes if it has none.
#[derive(Debug, Clone, Copy)]
struct RunRest {
    time: u64,
    entry: u32,
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

/// What a run's records are read from.
enum RunBytes {
    /// A piece that was unpacked.
    Piece(Arc<Vec<u8>>),
    /// The input's map.
    Map,
    /// A piece of the input in memory.
    Window(RunWindow),
    /// Nothing: it is gone.
    Nothing,
}

impl RunBytes {
    /// Returns where the record at a place is read.
    #[inline(always)]
    fn origin<'d, const BIG: bool>(
        &'d mut self,
        recording: &'d PerfRecording<'_>,
        pieces: &ScannedPieces,
        (buffer, at): (u32, usize),
    ) -> RecordOrigin<'d> {
        let (data, base, piece) = match self {
            RunBytes::Piece(piece) => (piece.as_slice(), 0, Some(&*piece)),
            RunBytes::Map => (recording.data, 0, None),
            RunBytes::Window(window) => {
                if !window.now().has_record::<BIG>(at) {
                    window.find::<BIG>(recording, pieces, at);
                }
                let (bytes, start) = window.now().bytes();
                (bytes, start, None)
            }
            RunBytes::Nothing => (&[][..], 0, None),
        };
        RecordOrigin {
            data,
            base,
            buffer,
            piece,
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
        let barriers = self.barriers.list(limit, &self.queue);
        match &barriers {
            Some(barriers) => self.push_by_cpu(barriers, limit),
            None => self.push_merged(limit),
        }
        // Pieces are not needed for longer than they are kept.
        for window in &mut self.windows {
            window.scanned = None;
        }
        let newest = self.queue.newest;
        self.barriers.settle(limit, newest, barriers);
    }

    /// Pushes what waits run by run, as far as the next barrier each.
    fn push_by_cpu(&mut self, barriers: &[Barrier], limit: u64) {
        let mut runs = std::mem::take(&mut self.cpu_runs);
        runs.clear();
        runs.extend(self.queue.take_runs().into_iter().map(CpuRun::new));
        let sent = self.last_out;
        for barrier in barriers {
            for (slot, run) in runs.iter_mut().enumerate() {
                if run.key < barrier.key {
                    self.push_run(run, slot, (barrier.key, sent));
                }
            }
            if barrier.takes {
                let at = runs.binary_search_by_key(&barrier.key.1, |run| run.run.seq);
                if let Ok(slot) = at
                    && let Some(run) = runs.get_mut(slot)
                {
                    self.push_ordered(run, slot, (barrier.key, sent));
                }
            }
            if self.stop {
                break;
            }
        }
        let end = (limit, u64::MAX);
        for (slot, run) in runs.iter_mut().enumerate() {
            if run.key <= end && !self.stop {
                self.push_run(run, slot, (end, sent));
            }
        }
        let left = runs.iter().filter(|run| !run.is_over());
        self.queue.put_back(left.map(|run| (run.key.0, run.run)));
        for run in runs.iter().filter(|run| run.is_over()) {
            if run.run.buffer != 0 {
                self.chunks.unused(run.run.buffer);
            }
        }
        self.cpu_runs = runs;
    }

    /// Takes what a run's records are read from. Those of the input are read by pieces where they are few.
    #[inline(always)]
    fn take_bytes(&mut self, buffer: u32, slot: usize) -> RunBytes {
        let by_pieces = O::READS && self.reading.recording.source.is_some();
        if buffer != 0 || !by_pieces || slot >= MAX_WINDOWS {
            return self.whole_bytes(buffer);
        }
        if self.windows.len() <= slot {
            self.windows.resize_with(slot + 1, RunWindow::default);
        }
        RunBytes::Window(std::mem::take(&mut self.windows[slot]))
    }

    /// Returns all bytes of a buffer: of the input, or of what was unpacked.
    #[inline(always)]
    fn whole_bytes(&self, buffer: u32) -> RunBytes {
        match buffer {
            0 => RunBytes::Map,
            _ => {
                let piece = self.chunks.get(buffer);
                piece.map_or(RunBytes::Nothing, RunBytes::Piece)
            }
        }
    }

    #[inline(always)]
    fn give_back(&mut self, bytes: RunBytes, slot: usize) {
        if let RunBytes::Window(window) = bytes {
            self.windows[slot] = window;
        }
    }

    /// Pushes what a run has before a place.
    #[inline]
    fn push_run(&mut self, run: &mut CpuRun, slot: usize, (until, sent): (OrderKey, u64)) {
        let mut bytes = self.take_bytes(run.run.buffer, slot);
        let mut from = RecordOrigin::of_input(&[]);
        let mut next = run.run.entry;
        while let Some(&entry) = self.queue.entries.get(index_of(next)) {
            if next >= run.run.entry_end || self.stop {
                break;
            }
            if (entry.time, run.key.1) >= until {
                run.goes_on(next, entry.time);
                return self.give_back(bytes, slot);
            }
            // Without a reader the bytes do not matter.
            if O::READS && !from.has_record::<BIG>(entry.at()) || from.buffer != run.run.buffer {
                from = bytes.origin::<BIG>(
                    self.reading.recording,
                    &self.pieces,
                    (run.run.buffer, entry.at()),
                );
            }
            self.push(from, entry, sent);
            next += 1;
        }
        self.give_back(bytes, slot);
        run.ends(next);
    }

    /// Pushes the next record of a run that is wanted in time order, if it is of this time, and what stands before it.
    fn push_ordered(&mut self, run: &mut CpuRun, slot: usize, (key, sent): (OrderKey, u64)) {
        while run.key == key && !self.stop {
            let entry = self.queue.entries.get(index_of(run.run.entry)).copied();
            let Some(entry) = entry else {
                return run.ends(run.run.entry);
            };
            let counter = self.counters.get(index_of(entry.attr()));
            let in_order = counter.is_none_or(|counter| counter.want == SampleWish::InOrder);
            let mut bytes = self.take_bytes(run.run.buffer, slot);
            let from = bytes.origin::<BIG>(
                self.reading.recording,
                &self.pieces,
                (run.run.buffer, entry.at()),
            );
            self.push(from, entry, sent);
            self.give_back(bytes, slot);
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
        while let Some((time, slot, &run)) = self.queue.first() {
            if time > limit || self.stop {
                break;
            }
            let rest = if run.entry < run.entry_end {
                let mut bytes = self.take_bytes(run.buffer, slot);
                let rest = self.push_indexed(&mut bytes, run, (limit, sent));
                self.give_back(bytes, slot);
                rest
            } else {
                self.push_range(run, (time, limit), sent)
            };
            match rest {
                Some(RunRest { time, entry, at }) => self.queue.first_goes_on(time, entry, at),
                None => {
                    self.queue.remove_first();
                    if run.buffer != 0 {
                        self.chunks.unused(run.buffer);
                    }
                }
            }
        }
    }

    /// Pushes records of a run while they are the earliest of all and not later than `limit`, and returns
    /// what is left of it.
    #[inline]
    fn push_indexed(
        &mut self,
        bytes: &mut RunBytes,
        run: RecordRun,
        (limit, sent): (u64, u64),
    ) -> Option<RunRest> {
        let second = self.queue.second();
        let mut next = run.entry;
        let mut entry = *self.queue.entries.get(index_of(next))?;
        let is_map = matches!(bytes, RunBytes::Map);
        let mut from = RecordOrigin::of_input(&[]);
        loop {
            if is_map
                && O::READS
                && let Some(ahead) = self.queue.entries.get(index_of(next) + AHEAD)
            {
                let data = self.reading.recording.data;
                prefetch(data, ahead.at());
                prefetch(data, ahead.at() + LINE);
                prefetch(data, ahead.at() + 2 * LINE);
            }
            // Without a reader the bytes do not matter.
            if O::READS && !from.has_record::<BIG>(entry.at()) || from.buffer != run.buffer {
                from = bytes.origin::<BIG>(
                    self.reading.recording,
                    &self.pieces,
                    (run.buffer, entry.at()),
                );
            }
            self.push(from, entry, sent);
            next += 1;
            if self.stop || next >= run.entry_end {
                return None;
            }
            entry = *self.queue.entries.get(index_of(next))?;
            if entry.time > limit || (entry.time, run.seq) > second {
                return Some(RunRest {
                    time: entry.time,
                    entry: next,
                    at: run.at,
                });
            }
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
        let mut bytes = self.whole_bytes(run.buffer);
        let recording = self.reading.recording;
        let from = bytes.origin::<BIG>(recording, &self.pieces, (run.buffer, run.at));
        let second = self.queue.second();
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
                    let entry = run.entry;
                    return Some(RunRest { time, entry, at });
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
