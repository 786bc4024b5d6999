//! The merge: records go out in time order.

use std::ops::ControlFlow;

use super::Walk;
use super::prefetch::prefetch;
use super::unordered::Want;
use super::visitor::Visitor;
use crate::merge::{Entry, Run};
use crate::record::{HEADER, Header, LostSource, SideRecord, kind, parse_side};
use crate::sample::{Sample, tid_of};

/// The kernel maps file pages in blocks of this many bytes around the one that is touched (fault-around).
const BLOCK_SHIFT: u32 = 16;
/// Blocks told apart, a power of two, and how many may be in use again before they are released.
pub(super) const BLOCKS: usize = 1024;
const MAX_BLOCKS: usize = 160;

/// Records that the merge looks ahead: in the file they are anywhere.
const AHEAD: usize = 8;
/// Bytes of a line of the processor's cache, of which a sample has two.
const LINE: usize = 64;

impl<V: Visitor, const BIG: bool> Walk<'_, '_, V, BIG> {
    /// Pushes everything up to and including `limit`.
    pub(super) fn flush(&mut self, limit: u64) {
        self.unordered.begin_flush();
        self.flush_queue(limit);
        self.push_threads(limit, usize::MAX);
        let newest = self.unordered.settle(limit, self.queue.next_seq());
        self.last_out = self.last_out.max(newest);
    }

    fn flush_queue(&mut self, limit: u64) {
        while let Some(&run) = self.queue.first() {
            if run.time > limit || self.stop {
                break;
            }
            let chunk = self.chunks.get(run.buffer);
            let data: &[u8] = match &chunk {
                Some(chunk) => chunk,
                None if run.buffer == 0 => self.recording.data,
                None => &[],
            };
            let rest = if run.entry < run.entry_end {
                self.push_indexed(data, run, limit)
            } else {
                self.push_range(data, run, limit)
            };
            match rest {
                Some(rest) => self.queue.replace_first(rest),
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
    fn push_indexed(&mut self, data: &[u8], mut run: Run, limit: u64) -> Option<Run> {
        let second = self.queue.second();
        let mut entry = *self.queue.entries.get(run.entry as usize)?;
        loop {
            let at = entry.at();
            if let Some(ahead) = self.queue.entries.get(run.entry as usize + AHEAD) {
                prefetch(data, ahead.at());
                prefetch(data, ahead.at() + LINE);
            }
            let header = Header::read::<BIG>(data, at)?;
            self.push(header, data, run.buffer, at, entry.time, entry.attr());
            run.entry += 1;
            if self.stop || run.entry >= run.entry_end {
                return None;
            }
            entry = *self.queue.entries.get(run.entry as usize)?;
            if entry.time > limit || (entry.time, run.seq) > second {
                run.time = entry.time;
                run.at = entry.at();
                return Some(run);
            }
        }
    }

    /// The same for a run without an index: walks its bytes again.
    #[cold]
    fn push_range(&mut self, data: &[u8], mut run: Run, limit: u64) -> Option<Run> {
        let second = self.queue.second();
        let mut first = true;
        while run.at < run.end && !self.stop {
            let header = Header::read::<BIG>(data, run.at)?;
            let next = run.at + header.size.max(HEADER);
            let body = data.get(run.at + HEADER..next)?;
            let attr = if header.kind == kind::SAMPLE {
                self.attr_of(body)
                    .filter(|&attr| self.is_queued(body, run, attr))
            } else {
                Some(Entry::SIDE)
            };
            if let Some(attr) = attr {
                run.time = self.time_of(header, body, attr);
                if !first && (run.time > limit || (run.time, run.seq) > second) {
                    return Some(run);
                }
                first = false;
                self.push(header, data, run.buffer, run.at, run.time, attr);
            }
            run.at = next;
        }
        None
    }

    #[inline(always)]
    fn push(&mut self, header: Header, data: &[u8], buffer: u32, at: usize, time: u64, attr: u32) {
        let next = at + header.size;
        let body = data.get(at + HEADER..next).unwrap_or_default();
        if self.unordered.is_due(time) {
            self.push_threads(time, at);
        }
        if attr == Entry::SIDE {
            self.push_side(header, body, time);
        } else if self
            .push_sample(header, body, buffer, time, attr)
            .is_break()
        {
            self.stop = true;
        }
        if buffer == 0 && at < self.released {
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
            self.visitor.release(self.recording.start..self.released);
        }
    }

    #[inline(always)]
    fn push_sample(
        &mut self,
        header: Header,
        body: &[u8],
        buffer: u32,
        time: u64,
        attr: u32,
    ) -> ControlFlow<()> {
        if time < self.last_out {
            self.totals.out_of_order += 1;
        } else {
            self.last_out = time;
        }
        let attrs = &self.recording.attrs;
        let sample = Sample::of::<BIG>(attrs, self.endian, header, body, time, attr);
        let want = self.counters[attr as usize].want;
        if want == Want::OfThread && buffer == 0 {
            self.unordered.went_in_order(sample.tid);
        }
        self.visitor.sample(&sample)
    }

    /// Whether a record of a run is in the queue: it is wanted, and not among those of threads.
    #[cold]
    fn is_queued(&self, body: &[u8], run: Run, attr: u32) -> bool {
        let want = self.counters[attr as usize].want;
        let tid = tid_of::<BIG>(&self.recording.attrs, body, attr);
        let of_thread = run.buffer == 0 && self.unordered.kept(tid, run.at, run.seq);
        match want {
            Want::No | Want::AnyOrder => false,
            Want::InOrder => true,
            Want::OfThread => !of_thread,
        }
    }

    /// Pushes what threads have before a time and place, thread by thread.
    fn push_threads(&mut self, time: u64, at: usize) {
        let data: &[u8] = self.recording.data;
        let mut threads = self.unordered.take_threads();
        threads.each(time, at, |entries, next| {
            if let Some(ahead) = entries.get(next + AHEAD) {
                prefetch(data, ahead.at());
                prefetch(data, ahead.at() + LINE);
            }
            let entry = entries[next];
            let (at, attr) = (entry.at(), entry.attr());
            if self.stop {
                return;
            }
            if let Some(header) = Header::read::<BIG>(data, at) {
                let body = data.get(at + HEADER..at + header.size).unwrap_or_default();
                let attrs = &self.recording.attrs;
                let sample = Sample::of::<BIG>(attrs, self.endian, header, body, entry.time, attr);
                self.stop |= self.visitor.sample(&sample).is_break();
                if at < self.released {
                    self.read_again(at);
                }
            }
        });
        self.unordered.give_back(threads);
    }

    fn push_side(&mut self, header: Header, body: &[u8], time: u64) {
        let layout = self.trailer(body);
        let (trailer, trailer_cpu) = (usize::from(layout.trailer), layout.trailer_cpu);
        let Some(record) = parse_side(header, body, trailer, self.endian) else {
            return;
        };
        if let SideRecord::Lost { count, source } = record {
            match source {
                LostSource::Ring => {
                    self.totals.lost_ring = self.totals.lost_ring.saturating_add(count);
                    self.totals.lost_records += 1;
                }
                LostSource::Samples => {
                    self.totals.lost_samples = self.totals.lost_samples.saturating_add(count);
                }
            }
        }
        let cpu = trailer_cpu
            .and_then(|back| {
                self.endian
                    .u32(body, body.len().checked_sub(usize::from(back))?)
            })
            .map_or(-1, u32::cast_signed);
        self.visitor.side(time, cpu, header.misc, &record);
    }
}
