//! The walk over the records: rounds, compressed records, and the merge into time order.
//!
//! perf reads its per-CPU buffers in rounds and writes `PERF_RECORD_FINISHED_ROUND` after each. Whatever
//! is older than the newest record of the round before the last can then no longer be overtaken, and goes
//! out in time order (`tools/perf/util/ordered-events.c`). Records of equal time keep the file's order.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use tracefmt::{Diagnostic, Endian};

use crate::attr::{Layout, Trailers};
use crate::chunks::Chunks;
use crate::compressed::ZstdStream;
use crate::file::PerfData;
use crate::ids::IdMap;
use crate::merge::{Entry, Queue, Run};
use crate::pipe::payload_behind;
use crate::record::{HEADER, Header, SideRecord, kind, parse_side, u64_at};
use crate::sample::Sample;

/// Receives a recording's records in time order.
pub trait Visitor {
    /// Takes one sample. Returning `Break` ends the walk.
    fn sample(&mut self, sample: &Sample<'_>) -> ControlFlow<()>;

    /// Takes a record that is no sample; `time` is 0 and `cpu` -1 when it carries none.
    fn side(&mut self, time: u64, cpu: i32, misc: u16, record: &SideRecord<'_>) {
        let _ = (time, cpu, misc, record);
    }

    /// Tells that this range of the input was read and is not needed for now. It may be read again, if
    /// rarely: dropping its pages costs time but nothing else.
    fn release(&mut self, range: Range<usize>) {
        let _ = range;
    }
}

/// What a walk counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples by attribute, wanted or not.
    pub samples: Vec<u64>,
    /// Events lost, as the ring buffer's own records told.
    pub lost_ring: u64,
    /// Records that told so: what perf calls lost chunks.
    pub lost_records: u64,
    /// Events lost, as the sums by event told.
    pub lost_samples: u64,
    /// Samples whose id belongs to no attribute.
    pub unknown_id: u64,
    /// Samples that came after a later one had gone out.
    pub out_of_order: u64,
    /// Bytes of AUX data, which are not read.
    pub aux_bytes: u64,
    /// Bytes skipped because no record could be found in them.
    pub skipped_bytes: u64,
    /// Whether the records end in the middle of one.
    pub truncated: bool,
    /// What was odd, with byte offsets; the first few.
    pub diagnostics: Vec<Diagnostic>,
}

/// Diagnostics kept of one walk.
const MAX_DIAGNOSTICS: usize = 32;
/// Decompressed bytes held back for the merge before it is forced on.
const MAX_HELD: usize = 48 << 20;
/// Pages are released in steps of this many bytes.
const RELEASE_STEP: usize = 4 << 20;
/// Runs held back for the merge before it is forced on: no more than 2^20 together with those that one step
/// can add, whose samples have 16 bytes at least.
const MAX_RUNS: usize = (1 << 20) - RELEASE_STEP / 16;
/// The kernel maps file pages in blocks of this many bytes around the one that is touched (fault-around).
const BLOCK_SHIFT: u32 = 16;
/// Blocks told apart, a power of two, and how many may be in use again before they are released.
const BLOCKS: usize = 1024;
const MAX_BLOCKS: usize = 160;
/// Decompressed bytes gathered before they are looked at.
const CHUNK: usize = 256 << 10;
/// How far a reader looks for the next record behind garbage, in bytes.
const MAX_RESYNC: usize = 1 << 20;

impl PerfData<'_> {
    /// Pushes all records to `visitor`, in time order.
    ///
    /// `wanted` says by attribute whether its samples are pushed; attributes beyond its end are.
    pub fn walk<V: Visitor>(&self, wanted: &[bool], visitor: &mut V) -> Totals {
        // Byte order is settled once, not at every number.
        match self.endian {
            Endian::Little => Walk::<V, false>::new(self, wanted, visitor).run(),
            Endian::Big => Walk::<V, true>::new(self, wanted, visitor).run(),
        }
    }
}

/// Samples of one attribute.
#[derive(Debug, Clone, Copy)]
struct Counter {
    count: u64,
    /// Whether they are wanted.
    wanted: bool,
}

struct Walk<'w, 'a, V: Visitor, const BIG: bool> {
    recording: &'w PerfData<'a>,
    /// By attribute.
    counters: Vec<Counter>,
    visitor: &'w mut V,
    endian: Endian,
    ids: IdMap,
    /// Where every sample has its id, if there is more than one attribute.
    id_at: Option<usize>,
    /// Where every sample has its time; `None` when that depends on the attribute.
    time_at: Option<usize>,
    trailers: Trailers,
    queue: Queue,
    /// Newest time stamp at the end of the round before.
    flush_to: u64,
    last_out: u64,
    /// The visitor wants no more.
    stop: bool,
    /// The input cannot be read on, what was read still goes out.
    stop_reading: bool,
    chunks: Chunks,
    zstd: Option<ZstdStream>,
    /// Decompressed bytes not yet cut into records, and where in the stream they begin.
    tail: Vec<u8>,
    tail_at: u64,
    /// Ends of rounds, as positions in the decompressed stream.
    rounds: VecDeque<u64>,
    released: usize,
    /// Blocks of pages in use again behind `released`, by their low bits, and how many.
    blocks: Vec<usize>,
    blocks_used: usize,
    totals: Totals,
}

impl<'w, 'a, V: Visitor, const BIG: bool> Walk<'w, 'a, V, BIG> {
    fn new(
        recording: &'w PerfData<'a>,
        wanted: &[bool],
        visitor: &'w mut V,
    ) -> Walk<'w, 'a, V, BIG> {
        let attrs = &recording.attrs;
        let layout = attrs[0].layout;
        let same_time = attrs.iter().all(|a| a.layout.time == layout.time);
        let same_id = attrs.iter().all(|a| a.layout.id == layout.id);
        let ids = match (attrs.len() > 1 && same_id, layout.id) {
            (true, Some(_)) => IdMap::new(attrs),
            _ => IdMap::Single,
        };
        Walk {
            recording,
            counters: (0..attrs.len())
                .map(|i| Counter {
                    count: 0,
                    wanted: wanted.get(i).copied().unwrap_or(true),
                })
                .collect(),
            visitor,
            endian: recording.endian,
            id_at: layout.id.map(usize::from).filter(|_| same_id),
            time_at: layout.time.map(usize::from).filter(|_| same_time),
            ids,
            trailers: Trailers::new(attrs),
            queue: Queue::new(),
            flush_to: 0,
            last_out: 0,
            stop: false,
            stop_reading: false,
            chunks: Chunks::default(),
            zstd: None,
            tail: Vec::new(),
            tail_at: 0,
            rounds: VecDeque::new(),
            released: recording.start,
            blocks: vec![usize::MAX; BLOCKS],
            blocks_used: 0,
            totals: Totals {
                samples: vec![0; attrs.len()],
                ..Totals::default()
            },
        }
    }

    fn note(&mut self, at: usize, message: String) {
        if self.totals.diagnostics.len() < MAX_DIAGNOSTICS {
            self.totals
                .diagnostics
                .push(Diagnostic::at(at as u64, message));
        }
    }

    fn run(mut self) -> Totals {
        // The input outlives the walk's own borrows.
        let data: &[u8] = self.recording.data;
        let end = self.recording.end;
        let mut at = self.recording.start;
        while at < end && !self.stop && !self.stop_reading {
            let samples_end = self.take_samples(data, at, end);
            if samples_end > at {
                at = samples_end;
                if at.saturating_sub(self.released) >= 2 * RELEASE_STEP {
                    self.release_behind(at);
                }
                self.bound_runs(at);
                continue;
            }
            let Some(header) = Header::read::<BIG>(&data[..end], at) else {
                self.cut(at, end);
                break;
            };
            if header.size < HEADER || header.kind == 0 || header.kind > kind::HIGHEST {
                let Some(next) = self.resync(data, at, end) else {
                    self.totals.truncated = true;
                    self.totals.skipped_bytes += (end - at) as u64;
                    break;
                };
                self.totals.skipped_bytes += (next - at) as u64;
                // A run is one range of bytes without gaps.
                self.queue.close();
                at = next;
                continue;
            }
            let next = at + header.size;
            if next > end {
                self.cut(at, end);
                break;
            }
            if header.kind < kind::USER_START {
                self.take(0, header, &data[at + HEADER..next], at);
            } else {
                self.control(header, &data[at + HEADER..next], at);
            }
            at = next;
            if header.kind == kind::HEADER_TRACING_DATA || header.kind == kind::AUXTRACE {
                let body = &data[at - header.size + HEADER..at];
                let behind = payload_behind(header.kind, body, self.endian);
                if header.kind == kind::AUXTRACE {
                    self.totals.aux_bytes = self.totals.aux_bytes.saturating_add(behind as u64);
                }
                at = at.saturating_add(behind);
                if at > end {
                    self.cut(end, end);
                }
            }
            if at.saturating_sub(self.released) >= 2 * RELEASE_STEP {
                self.release_behind(at);
            }
        }
        self.finish_stream();
        self.queue.close();
        self.flush(u64::MAX);
        self.visitor
            .release(self.recording.start..end.max(self.recording.start));
        self.totals.samples = self.counters.iter().map(|c| c.count).collect();
        self.totals
    }

    fn cut(&mut self, at: usize, end: usize) {
        self.totals.truncated = true;
        self.note(
            at,
            format!(
                "the records end in the middle of one, {} bytes of it",
                end - at
            ),
        );
    }

    /// Pages behind the scan that the merge will come back to soon are kept; older ones go.
    fn release_behind(&mut self, at: usize) {
        let keep = self
            .queue
            .lowest_input()
            .unwrap_or(at)
            .max(at.saturating_sub(RELEASE_STEP));
        if keep > self.released {
            self.visitor.release(self.released..keep);
            self.released = keep;
        }
    }

    /// Looks for the next place where two plausible records follow each other.
    fn resync(&mut self, data: &[u8], at: usize, end: usize) -> Option<usize> {
        self.note(
            at,
            "no record here: its kind or size is impossible".to_owned(),
        );
        let plausible = |at: usize| {
            let header = Header::read::<BIG>(&data[..end], at)?;
            let known = header.kind != 0 && header.kind <= kind::HIGHEST;
            let next = at.checked_add(header.size)?;
            (known && header.size > HEADER && header.size % 8 == 0 && next <= end).then_some(next)
        };
        let limit = end.min(at.saturating_add(MAX_RESYNC));
        // Records begin at multiples of 8 from the first one.
        let mut try_at = at + 8;
        while try_at < limit {
            if let Some(next) = plausible(try_at)
                && (next == end || plausible(next).is_some())
            {
                return Some(try_at);
            }
            try_at += 8;
        }
        None
    }

    /// Returns the time stamp of a record of the kernel, 0 when it has none.
    #[inline(always)]
    fn time_of(&self, header: Header, body: &[u8], attr: u32) -> u64 {
        let at = if header.kind == kind::SAMPLE {
            match self.time_at {
                Some(at) => Some(at),
                None => self.recording.attrs[attr as usize]
                    .layout
                    .time
                    .map(usize::from),
            }
        } else {
            let back = self.trailer(body).trailer_time;
            back.and_then(|back| body.len().checked_sub(usize::from(back)))
        };
        at.and_then(|at| u64_at::<BIG>(body, at)).unwrap_or(0)
    }

    /// Returns the layout that the trailer of a record that is no sample follows.
    #[inline]
    fn trailer(&self, body: &[u8]) -> &Layout {
        let attr = match self.trailers {
            Trailers::Same => 0,
            Trailers::ById => {
                // The id stands last. Records that perf made itself have none, and follow the first
                // attribute (`evlist__event2evsel` in `tools/perf/util/evlist.c`).
                let id = body
                    .len()
                    .checked_sub(8)
                    .and_then(|at| u64_at::<BIG>(body, at));
                id.and_then(|id| self.ids.get(id)).unwrap_or(0)
            }
        };
        &self.recording.attrs[attr as usize].layout
    }

    #[inline(always)]
    fn attr_of(&self, body: &[u8]) -> Option<u32> {
        if let IdMap::Single = self.ids {
            return Some(0);
        }
        self.ids.get(u64_at::<BIG>(body, self.id_at?)?)
    }

    /// Takes samples up to the first record that is something else.
    ///
    /// This is the hot loop: of a sample that nobody wants it reads header and id and nothing else, of the
    /// others the time as well. It stops now and then so that pages can be released.
    #[inline]
    fn take_samples(&mut self, data: &[u8], start: usize, end: usize) -> usize {
        let (IdMap::Table { base, attrs }, Some(id_at), Some(time_at)) =
            (&self.ids, self.id_at, self.time_at)
        else {
            return start;
        };
        let data = &data[..end];
        let stop = start.saturating_add(RELEASE_STEP);
        let mut at = start;
        while at < stop {
            let Some(header) = Header::read::<BIG>(data, at) else {
                break;
            };
            let next = at + header.size;
            if header.kind != kind::SAMPLE || next > end {
                break;
            }
            let body = &data[at + HEADER..next.max(at + HEADER)];
            let Some(id) = u64_at::<BIG>(body, id_at) else {
                break;
            };
            let Some(&attr) = attrs.get(id.wrapping_sub(*base) as usize) else {
                break;
            };
            let Some(counter) = self.counters.get_mut(attr as usize) else {
                break;
            };
            if counter.wanted {
                let Some(time) = u64_at::<BIG>(body, time_at) else {
                    break;
                };
                self.queue.add(0, at, next, time, attr);
            }
            counter.count += 1;
            at = next;
        }
        at
    }

    /// Takes a record of the kernel into the queue, if it is wanted.
    #[inline(always)]
    fn take(&mut self, buffer: u32, header: Header, body: &[u8], at: usize) {
        let attr = if header.kind == kind::SAMPLE {
            let Some(attr) = self.attr_of(body) else {
                self.totals.unknown_id += 1;
                return;
            };
            let counter = &mut self.counters[attr as usize];
            counter.count += 1;
            if !counter.wanted {
                return;
            }
            attr
        } else {
            Entry::SIDE
        };
        let time = self.time_of(header, body, attr);
        let began = self.queue.add(buffer, at, at + header.size, time, attr);
        if began && buffer != 0 {
            self.chunks.used(buffer);
        }
        self.bound_runs(at);
    }

    /// Forces the merge on when runs are so many that memory would not be bounded.
    #[inline]
    fn bound_runs(&mut self, at: usize) {
        if self.queue.len() >= MAX_RUNS {
            self.note(
                at,
                "records too disordered: order is not certain".to_owned(),
            );
            self.queue.close();
            self.flush(self.queue.newest);
        }
    }

    /// Handles a record of perf's own.
    fn control(&mut self, header: Header, body: &[u8], at: usize) {
        // A run is one range of bytes that holds records of the kernel only.
        self.queue.close();
        match header.kind {
            kind::FINISHED_ROUND => match self.zstd.as_ref().map(ZstdStream::position) {
                None => self.finish_round(),
                // The stream lags behind its records: the round ends where the stream has come to.
                Some(Some(position)) if position > self.tail_at + self.tail.len() as u64 => {
                    self.rounds.push_back(position);
                }
                Some(Some(_)) => self.finish_round(),
                // Not known yet: the next round will do.
                Some(None) => {}
            },
            kind::COMPRESSED => self.compressed(body, at),
            kind::COMPRESSED2 => {
                let size = self
                    .endian
                    .u64(body, 0)
                    .and_then(|s| usize::try_from(s).ok());
                let payload = body.get(8..).unwrap_or_default();
                let size = size.unwrap_or(0).min(payload.len());
                self.compressed(&payload[..size], at);
            }
            _ => {}
        }
    }

    fn finish_round(&mut self) {
        self.queue.close();
        self.flush(self.flush_to);
        self.flush_to = self.queue.newest;
        self.queue.compact();
    }

    fn compressed(&mut self, payload: &[u8], at: usize) {
        let mut zstd = match self.zstd.take() {
            Some(zstd) => zstd,
            None => ZstdStream::new(),
        };
        zstd.feed(payload);
        loop {
            match zstd.step(&mut self.tail) {
                Ok(true) if self.tail.len() < CHUNK => {}
                Ok(true) => self.cut_tail(),
                Ok(false) => break,
                Err(reason) => {
                    self.note(at, format!("compressed data cannot be read: {reason}"));
                    self.totals.truncated = true;
                    self.stop_reading = true;
                    break;
                }
            }
        }
        if !self.tail.is_empty() {
            self.cut_tail();
        }
        self.zstd = Some(zstd);
    }

    fn finish_stream(&mut self) {
        let Some(mut zstd) = self.zstd.take() else {
            return;
        };
        if let Err(reason) = zstd.finish(&mut self.tail) {
            self.note(
                self.recording.end,
                format!("end of compressed data cannot be read: {reason}"),
            );
        }
        self.cut_tail();
        if !self.tail.is_empty() {
            self.totals.truncated = true;
            let left = self.tail.len();
            self.note(
                self.recording.end,
                format!("the compressed data ends in the middle of a record, {left} bytes of it"),
            );
        }
    }

    /// Cuts what was decompressed into records; what is left of the last one waits for the rest.
    fn cut_tail(&mut self) {
        let data = Rc::new(std::mem::take(&mut self.tail));
        let number = self.chunks.begin(&data);
        let mut at = 0;
        loop {
            while self
                .rounds
                .front()
                .is_some_and(|&r| r <= self.tail_at + at as u64)
            {
                self.rounds.pop_front();
                self.finish_round();
            }
            let Some(header) = Header::read::<BIG>(&data, at) else {
                break;
            };
            if header.size < HEADER {
                self.note(
                    self.recording.start,
                    "no record in the compressed data".to_owned(),
                );
                self.totals.truncated = true;
                self.stop_reading = true;
                at = data.len();
                break;
            }
            let next = at + header.size;
            if next > data.len() {
                break;
            }
            if header.kind < kind::USER_START {
                self.take(number, header, &data[at + HEADER..next], at);
            } else if header.kind == kind::FINISHED_ROUND {
                self.finish_round();
            }
            at = next;
        }
        self.tail = data[at..].to_vec();
        self.tail_at += at as u64;
        self.chunks.end();
        if self.chunks.held() > MAX_HELD {
            self.queue.close();
            self.note(
                self.recording.start,
                "rounds of compressed records are too long: order is not certain".to_owned(),
            );
            self.flush(self.queue.newest);
        }
    }

    /// Pushes everything up to and including `limit`.
    fn flush(&mut self, limit: u64) {
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
                    .filter(|&attr| self.counters[attr as usize].wanted)
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
        if attr == Entry::SIDE {
            self.push_side(header, body, time);
        } else if self.push_sample(header, body, time, attr).is_break() {
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
        time: u64,
        attr: u32,
    ) -> ControlFlow<()> {
        if time < self.last_out {
            self.totals.out_of_order += 1;
        } else {
            self.last_out = time;
        }
        let description = &self.recording.attrs[attr as usize];
        let layout = &description.layout;
        let int = |at: Option<u16>, high: bool| {
            let word = at.and_then(|at| u64_at::<BIG>(body, usize::from(at)));
            // The first of two 32-bit numbers is the low half in one byte order, the high in the other.
            word.map_or(-1, |w| {
                if high != BIG {
                    (w >> 32) as i32
                } else {
                    w as i32
                }
            })
        };
        self.visitor.sample(&Sample {
            attr,
            misc: header.misc,
            time,
            pid: int(layout.tid, false),
            tid: int(layout.tid, true),
            cpu: int(layout.cpu, false),
            body,
            layout,
            read_format: description.read_format,
            endian: self.endian,
        })
    }

    fn push_side(&mut self, header: Header, body: &[u8], time: u64) {
        let layout = self.trailer(body);
        let (trailer, trailer_cpu) = (usize::from(layout.trailer), layout.trailer_cpu);
        let Some(record) = parse_side(header, body, trailer, self.endian) else {
            return;
        };
        if let SideRecord::Lost { count, source } = record {
            match source {
                crate::LostSource::Ring => {
                    self.totals.lost_ring = self.totals.lost_ring.saturating_add(count);
                    self.totals.lost_records += 1;
                }
                crate::LostSource::Samples => {
                    self.totals.lost_samples = self.totals.lost_samples.saturating_add(count);
                }
            }
        }
        let cpu = trailer_cpu
            .and_then(|back| {
                self.endian
                    .u32(body, body.len().checked_sub(usize::from(back))?)
            })
            .map_or(-1, |v| v as i32);
        self.visitor.side(time, cpu, header.misc, &record);
    }
}
