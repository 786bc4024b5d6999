//! The merge: records go out in time order.

use super::out::{RecordOrigin, RecordOutlet};
use super::prefetch::{LINE, prefetch};
use super::visitor::SampleWish;
use super::{PerfWalk, counted};
use crate::merge::{MergeRecord, RecordRun};
use crate::record::{HEADER, PerfRecordHeader, kind};
use crate::sample::tid_of;
use tracefmt::index_of;

/// The kernel maps file pages in blocks of this many bytes around the one that is touched (fault-around).
const BLOCK_SHIFT: u32 = 16;
/// Blocks distinguished, a power of two, and how many may be in use again before they are released.
pub(super) const BLOCKS: usize = 1024;
const MAX_BLOCKS: usize = 160;

/// Records that the merge looks ahead: in the file they are anywhere.
const AHEAD: usize = 12;

/// What is left of a run: when it goes on, and where in the index, or in the bytes if it has none.
#[derive(Debug, Clone, Copy)]
struct RunRest {
    time: u64,
    entry: u32,
    at: usize,
}

impl<O: RecordOutlet, const BIG: bool> PerfWalk<'_, '_, '_, O, BIG> {
    /// Pushes everything up to and including `limit`.
    pub(super) fn flush(&mut self, limit: u64) {
        self.tell_counts();
        self.unordered.begin_flush();
        self.flush_queue(limit);
        self.push_threads(limit, usize::MAX);
        let newest = self.unordered.settle(limit, self.queue.next_seq());
        self.last_out = self.last_out.max(newest);
    }

    /// Says what was counted until now.
    pub(super) fn tell_counts(&mut self) {
        let (counters, unordered, totals) = (&self.counters, &self.unordered, &self.totals);
        let flow = self.out.counted(|| counted(counters, unordered, totals));
        self.stop |= flow.is_break();
    }

    /// Pushes everything up to and including `limit` that goes through the merge.
    pub(super) fn flush_queue(&mut self, limit: u64) {
        while let Some((time, &run)) = self.queue.first() {
            if time > limit || self.stop {
                break;
            }
            let piece = self.chunks.get(run.buffer);
            let from = RecordOrigin {
                data: match &piece {
                    Some(piece) => piece,
                    None if run.buffer == 0 => self.reading.recording.data,
                    None => &[],
                },
                buffer: run.buffer,
                piece: piece.as_ref(),
            };
            let rest = if run.entry < run.entry_end {
                self.push_indexed(from, run, limit)
            } else {
                self.push_range(from, run, (time, limit))
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
        from: RecordOrigin<'_>,
        run: RecordRun,
        limit: u64,
    ) -> Option<RunRest> {
        let second = self.queue.second();
        let mut next = run.entry;
        let mut entry = *self.queue.entries.get(index_of(next))?;
        loop {
            if O::READS
                && let Some(ahead) = self.queue.entries.get(index_of(next) + AHEAD)
            {
                prefetch(from.data, ahead.at());
                prefetch(from.data, ahead.at() + LINE);
                prefetch(from.data, ahead.at() + 2 * LINE);
            }
            self.push(from, entry.at(), entry.time, entry.attr());
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
        from: RecordOrigin<'_>,
        run: RecordRun,
        (begins, limit): (u64, u64),
    ) -> Option<RunRest> {
        let second = self.queue.second();
        let mut first = true;
        let mut at = run.at;
        while at < run.end && !self.stop {
            let header = PerfRecordHeader::read::<BIG>(from.data, at)?;
            if header.is_none() {
                // A hole, which is a run of its own.
                self.push(from, at, begins, MergeRecord::SIDE);
                return None;
            }
            let next = at + header.size.max(HEADER);
            let body = from.data.get(at + HEADER..next)?;
            let attr = if header.kind == kind::SAMPLE {
                let attr = self.reading.attr_of::<BIG>(body);
                attr.filter(|&attr| self.is_queued(body, at, &run, attr))
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
                self.push(from, at, time, attr);
            }
            at = next;
        }
        None
    }

    #[inline(always)]
    fn push(&mut self, from: RecordOrigin<'_>, at: usize, time: u64, attr: u32) {
        if self.unordered.is_due(time) {
            self.push_threads(time, at);
            if self.stop {
                return;
            }
        }
        let flow = match attr {
            MergeRecord::SIDE => self.out.side(from, at, time),
            _ => {
                self.in_order(from, at, time, attr);
                self.out.sample(from, at, time, attr)
            }
        };
        self.stop |= flow.is_break();
        if from.buffer == 0 && at < self.released {
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

    /// Takes note of a sample that goes out in order.
    #[inline(always)]
    fn in_order(&mut self, from: RecordOrigin<'_>, at: usize, time: u64, attr: u32) {
        if time < self.last_out {
            self.out.late();
        } else {
            self.last_out = time;
        }
        if self.counters[index_of(attr)].want == SampleWish::OfThread && from.buffer == 0 {
            let attrs = &self.reading.recording.attrs;
            let size =
                PerfRecordHeader::read::<BIG>(from.data, at).map_or(HEADER, |header| header.size);
            let body = from.data.get(at + HEADER..at + size).unwrap_or_default();
            let tid = tid_of::<BIG>(attrs, body, attr);
            self.unordered.went_in_order(tid);
        }
    }

    /// Whether a record of a run is in the queue: it is wanted, and not among those of threads.
    #[cold]
    fn is_queued(&self, body: &[u8], at: usize, run: &RecordRun, attr: u32) -> bool {
        let want = self.counters[index_of(attr)].want;
        let tid = tid_of::<BIG>(&self.reading.recording.attrs, body, attr);
        let of_thread = run.buffer == 0 && self.unordered.kept(tid, at, run.seq);
        match want {
            SampleWish::No | SampleWish::AnyOrder => false,
            SampleWish::InOrder => true,
            SampleWish::OfThread => !of_thread,
        }
    }

    /// Pushes what threads have before a time and place, thread by thread.
    fn push_threads(&mut self, time: u64, at: usize) {
        let from = RecordOrigin {
            data: self.reading.recording.data,
            buffer: 0,
            piece: None,
        };
        let mut threads = self.unordered.take_threads();
        threads.each(time, at, |entries, next| {
            if O::READS
                && let Some(ahead) = entries.get(next + AHEAD)
            {
                prefetch(from.data, ahead.at());
                prefetch(from.data, ahead.at() + LINE);
                prefetch(from.data, ahead.at() + 2 * LINE);
            }
            if self.stop {
                return;
            }
            let entry = entries[next];
            let at = entry.at();
            self.stop |= self
                .out
                .sample(from, at, entry.time, entry.attr())
                .is_break();
            if at < self.released {
                self.read_again(at);
            }
        });
        self.unordered.give_back(threads);
    }
}
