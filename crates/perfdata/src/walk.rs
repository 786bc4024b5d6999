//! The walk over the records: rounds, compressed records, and the merge into time order.
//!
//! perf reads its per-CPU buffers in rounds and writes `PERF_RECORD_FINISHED_ROUND` after each. Whatever
//! is older than the newest record of the round before the last can then no longer be overtaken, and goes
//! out in time order (`tools/perf/util/ordered-events.c`). Records of equal time keep the file's order.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use tracefmt::{Diagnostic, Endian};

use crate::attr::{Attr, Layout};
use crate::compressed::ZstdStream;
use crate::file::PerfData;
use crate::merge::{Run, RunHeap};
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
/// Runs held back for the merge before it is forced on.
const MAX_RUNS: usize = 1 << 20;
/// Pages are released in steps of this many bytes.
const RELEASE_STEP: usize = 4 << 20;
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

/// From sample ids to attributes.
#[derive(Debug)]
enum IdMap {
    /// One attribute, or no ids to tell them apart.
    Single,
    /// Ids are numbered consecutively by the kernel: a table from the lowest.
    Table { base: u64, attrs: Vec<u32> },
    /// Ids too far apart for a table, sorted.
    Sorted(Vec<(u64, u32)>),
}

impl IdMap {
    fn new(attrs: &[Attr]) -> IdMap {
        let pairs = || {
            attrs
                .iter()
                .enumerate()
                .flat_map(|(i, a)| a.ids.iter().map(move |&id| (id, i as u32)))
        };
        let (Some(low), Some(high)) = (pairs().map(|p| p.0).min(), pairs().map(|p| p.0).max())
        else {
            return IdMap::Single;
        };
        if high - low < 1 << 20 {
            let mut table = vec![u32::MAX; (high - low + 1) as usize];
            for (id, attr) in pairs() {
                table[(id - low) as usize] = attr;
            }
            return IdMap::Table {
                base: low,
                attrs: table,
            };
        }
        let mut sorted: Vec<_> = pairs().collect();
        sorted.sort_unstable();
        IdMap::Sorted(sorted)
    }

    #[inline]
    fn get(&self, id: u64) -> Option<u32> {
        match self {
            IdMap::Single => Some(0),
            IdMap::Table { base, attrs } => {
                let at = usize::try_from(id.wrapping_sub(*base)).ok()?;
                attrs.get(at).copied().filter(|&a| a != u32::MAX)
            }
            IdMap::Sorted(sorted) => {
                let at = sorted.binary_search_by_key(&id, |p| p.0).ok()?;
                Some(sorted[at].1)
            }
        }
    }
}

/// A decompressed piece of the stream that runs lie in.
#[derive(Debug)]
struct Chunk {
    number: u32,
    data: Rc<Vec<u8>>,
}

/// The run being extended.
#[derive(Debug, Clone, Copy)]
struct Open {
    buffer: u32,
    start: usize,
    end: usize,
    first_time: u64,
    last_time: u64,
}

struct Walk<'w, 'a, V: Visitor, const BIG: bool> {
    recording: &'w PerfData<'a>,
    wanted: &'w [bool],
    visitor: &'w mut V,
    endian: Endian,
    ids: IdMap,
    /// Where every sample has its id, if there is more than one attribute.
    id_at: Option<usize>,
    /// Where every sample has its time; `None` when that depends on the attribute.
    time_at: Option<usize>,
    layout: Layout,
    heap: RunHeap,
    open: Option<Open>,
    next_seq: u64,
    /// Newest time stamp seen, and what it was at the end of the round before.
    newest: u64,
    flush_to: u64,
    last_out: u64,
    /// The visitor wants no more.
    stop: bool,
    /// The input cannot be read on, what was read still goes out.
    stop_reading: bool,
    chunks: Vec<Chunk>,
    next_chunk: u32,
    zstd: Option<ZstdStream>,
    /// Decompressed bytes not yet cut into records, and where in the stream they begin.
    tail: Vec<u8>,
    tail_at: u64,
    /// Ends of rounds, as positions in the decompressed stream.
    rounds: VecDeque<u64>,
    released: usize,
    /// Bytes pushed since pages were released last.
    pushed: usize,
    totals: Totals,
}

impl<'w, 'a, V: Visitor, const BIG: bool> Walk<'w, 'a, V, BIG> {
    fn new(
        recording: &'w PerfData<'a>,
        wanted: &'w [bool],
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
            wanted,
            visitor,
            endian: recording.endian,
            id_at: layout.id.map(usize::from).filter(|_| same_id),
            time_at: layout.time.map(usize::from).filter(|_| same_time),
            ids,
            layout,
            heap: RunHeap::default(),
            open: None,
            next_seq: 0,
            newest: 0,
            flush_to: 0,
            last_out: 0,
            stop: false,
            stop_reading: false,
            chunks: Vec::new(),
            next_chunk: 1,
            zstd: None,
            tail: Vec::new(),
            tail_at: 0,
            rounds: VecDeque::new(),
            released: recording.start,
            pushed: 0,
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
                at = next;
                continue;
            }
            let next = at + header.size;
            if next > end {
                self.cut(at, end);
                break;
            }
            if header.kind < kind::USER_START {
                let time = self.time_of(header, &data[at + HEADER..next]);
                self.extend(0, at, next, time);
            } else {
                self.control(header, &data[at + HEADER..next], at);
            }
            at = next;
            if header.kind == kind::HEADER_TRACING_DATA || header.kind == kind::AUXTRACE {
                let body = &data[at - header.size + HEADER..at];
                let behind = payload_behind(header.kind, body, self.endian);
                if header.kind == kind::AUXTRACE {
                    self.totals.aux_bytes += behind as u64;
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
        self.close_run();
        self.flush(u64::MAX);
        self.visitor
            .release(self.recording.start..end.max(self.recording.start));
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
            .heap
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
    fn time_of(&self, header: Header, body: &[u8]) -> u64 {
        if header.kind == kind::SAMPLE {
            let at = match self.time_at {
                Some(at) => Some(at),
                None => self
                    .attr_of(body)
                    .and_then(|a| self.recording.attrs[a as usize].layout.time)
                    .map(usize::from),
            };
            return at.and_then(|at| u64_at::<BIG>(body, at)).unwrap_or(0);
        }
        let back = self.layout.trailer_time.map(usize::from);
        back.and_then(|back| u64_at::<BIG>(body, body.len().checked_sub(back)?))
            .unwrap_or(0)
    }

    #[inline(always)]
    fn attr_of(&self, body: &[u8]) -> Option<u32> {
        if let IdMap::Single = self.ids {
            return Some(0);
        }
        self.ids.get(u64_at::<BIG>(body, self.id_at?)?)
    }

    /// Adds one record to the run, or begins another.
    #[inline(always)]
    fn extend(&mut self, buffer: u32, at: usize, next: usize, time: u64) {
        if let Some(open) = &mut self.open
            && open.end == at
            && open.buffer == buffer
            && time >= open.last_time
        {
            open.end = next;
            open.last_time = time;
            return;
        }
        self.close_run();
        self.open = Some(Open {
            buffer,
            start: at,
            end: next,
            first_time: time,
            last_time: time,
        });
    }

    fn close_run(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.newest = self.newest.max(open.last_time);
        self.heap.push(Run {
            time: open.first_time,
            seq: self.next_seq,
            buffer: open.buffer,
            at: open.start,
            end: open.end,
        });
        self.next_seq += 1;
        if self.heap.len() > MAX_RUNS {
            self.note(
                open.start,
                "records too disordered: order is not certain".to_owned(),
            );
            self.flush(self.newest);
        }
    }

    /// Handles a record of perf's own.
    fn control(&mut self, header: Header, body: &[u8], at: usize) {
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
        self.close_run();
        self.flush(self.flush_to);
        self.flush_to = self.newest;
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
        let number = self.next_chunk;
        self.next_chunk += 1;
        self.chunks.push(Chunk {
            number,
            data: Rc::clone(&data),
        });
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
                let time = self.time_of(header, &data[at + HEADER..next]);
                self.extend(number, at, next, time);
            } else if header.kind == kind::FINISHED_ROUND {
                self.finish_round();
            }
            at = next;
        }
        self.tail = data[at..].to_vec();
        self.tail_at += at as u64;
        let held: usize = self.chunks.iter().map(|c| c.data.len()).sum();
        if held > MAX_HELD {
            self.close_run();
            self.note(
                self.recording.start,
                "rounds of compressed records are too long: order is not certain".to_owned(),
            );
            self.flush(self.newest);
        }
    }

    /// Pushes everything up to and including `limit`.
    fn flush(&mut self, limit: u64) {
        while let Some(&run) = self.heap.first() {
            if run.time > limit || self.stop {
                break;
            }
            let chunk = self
                .chunks
                .iter()
                .find(|c| c.number == run.buffer)
                .map(|c| Rc::clone(&c.data));
            let (at, time) = match (&chunk, run.buffer) {
                (Some(data), _) => self.push_run(data, run, limit),
                (None, 0) => self.push_run(self.recording.data, run, limit),
                (None, _) => (run.end, run.time),
            };
            if at >= run.end {
                self.heap.remove_first();
                if run.buffer != 0 {
                    self.free_chunks();
                }
            } else {
                self.heap.advance_first(at, time);
            }
        }
    }

    /// Frees the chunks that no run needs any more. The newest stays: it is still being cut.
    fn free_chunks(&mut self) {
        let newest = self.next_chunk - 1;
        let open = self.open.map(|o| o.buffer);
        let heap = &self.heap;
        self.chunks
            .retain(|c| c.number == newest || Some(c.number) == open || heap.uses(c.number));
    }

    /// Pushes records of a run while they are the earliest of all and not later than `limit`.
    ///
    /// Returns where it stopped, and the time of the record there.
    #[inline]
    fn push_run(&mut self, data: &[u8], run: Run, limit: u64) -> (usize, u64) {
        let second = self.heap.second().unwrap_or((u64::MAX, u64::MAX));
        let mut at = run.at;
        let mut time = run.time;
        let Some(mut header) = Header::read::<BIG>(data, at) else {
            return (run.end, time);
        };
        loop {
            let next = at + header.size.max(HEADER);
            let body = data.get(at + HEADER..next).unwrap_or_default();
            if header.kind == kind::SAMPLE {
                if self.push_sample(header, body, time).is_break() {
                    self.stop = true;
                    return (next, time);
                }
            } else {
                self.push_side(header, body, time);
            }
            self.pushed += next - at;
            if self.pushed >= RELEASE_STEP {
                self.pushed = 0;
                // Recordings without rounds come here with pages of the whole file in use.
                if run.buffer == 0 && at < self.released {
                    self.visitor.release(self.recording.start..self.released);
                }
            }
            at = next;
            if at >= run.end {
                return (at, time);
            }
            let Some(following) = Header::read::<BIG>(data, at) else {
                return (run.end, time);
            };
            header = following;
            let end = at + header.size.max(HEADER);
            time = self.time_of(header, data.get(at + HEADER..end).unwrap_or_default());
            if time > limit || (time, run.seq) > second {
                return (at, time);
            }
        }
    }

    #[inline(always)]
    fn push_sample(&mut self, header: Header, body: &[u8], time: u64) -> ControlFlow<()> {
        let Some(attr) = self.attr_of(body) else {
            self.totals.unknown_id += 1;
            return ControlFlow::Continue(());
        };
        self.totals.samples[attr as usize] += 1;
        if time < self.last_out {
            self.totals.out_of_order += 1;
        } else {
            self.last_out = time;
        }
        if !self.wanted.get(attr as usize).copied().unwrap_or(true) {
            return ControlFlow::Continue(());
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
        let trailer = usize::from(self.layout.trailer);
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
        let cpu = self
            .layout
            .trailer_cpu
            .and_then(|back| {
                self.endian
                    .u32(body, body.len().checked_sub(usize::from(back))?)
            })
            .map_or(-1, |v| v as i32);
        self.visitor.side(time, cpu, header.misc, &record);
    }
}
