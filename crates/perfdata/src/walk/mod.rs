//! The walk over the records: rounds, compressed records, and the merge into time order.
//!
//! perf reads its per-CPU buffers in rounds and writes `PERF_RECORD_FINISHED_ROUND` after each. Whatever
//! is older than the newest record of the round before the last can then no longer be overtaken, and goes
//! out in time order (`tools/perf/util/ordered-events.c`). Records of equal time keep the file's order.

mod prefetch;
mod push;
mod resync;
mod stream;
mod unordered;
mod visitor;

use std::collections::VecDeque;

use tracefmt::{Diagnostic, Endian};

use crate::attr::{Layout, Trailers};
use crate::chunks::Chunks;
use crate::compressed::ZstdStream;
use crate::file::PerfData;
use crate::ids::IdMap;
use crate::merge::{Entry, Queue};
use crate::pipe::payload_behind;
use crate::record::{HEADER, Header, kind, u64_at};

use prefetch::prefetch;
use push::BLOCKS;
pub use unordered::Want;
use unordered::{Found, Unordered};
pub use visitor::{Totals, Visitor};

/// Bytes that the scan looks ahead: the processor does not by itself look beyond a page.
const AHEAD: usize = 2048;
/// Diagnostics kept of one walk.
const MAX_DIAGNOSTICS: usize = 32;
/// Pages are released in steps of this many bytes.
const RELEASE_STEP: usize = 4 << 20;
/// Runs held back for the merge before it is forced on: no more than 2^20 together with those that one step
/// can add, whose samples have 16 bytes at least.
const MAX_RUNS: usize = (1 << 20) - RELEASE_STEP / 16;

impl PerfData<'_> {
    /// Pushes all records to `visitor`, in time order.
    ///
    /// `wanted` says by attribute whether its samples are pushed, and whether in order; those of attributes beyond its end
    /// are, in order.
    pub fn walk<V: Visitor>(&self, wanted: &[Want], visitor: &mut V) -> Totals {
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
    want: Want,
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
    /// Samples that go out as they are found.
    unordered: Unordered,
    /// Blocks of pages in use again behind `released`, by their low bits, and how many.
    blocks: Vec<usize>,
    blocks_used: usize,
    totals: Totals,
}

impl<'w, 'a, V: Visitor, const BIG: bool> Walk<'w, 'a, V, BIG> {
    fn new(
        recording: &'w PerfData<'a>,
        wanted: &[Want],
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
                    want: wanted.get(i).copied().unwrap_or(Want::InOrder),
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
            unordered: Unordered::default(),
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
            self.stop |= self.unordered.stop;
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
                at = self.pass_payload(header, &data[at - header.size + HEADER..at], at);
                if at > end {
                    self.cut(end, end);
                }
            }
            if at.saturating_sub(self.released) >= 2 * RELEASE_STEP {
                self.release_behind(at);
            }
        }
        self.finish(end)
    }

    /// Lets everything out that is held back.
    fn finish(mut self, end: usize) -> Totals {
        self.finish_stream();
        self.queue.close();
        self.flush(u64::MAX);
        self.visitor
            .release(self.recording.start..end.max(self.recording.start));
        self.totals.out_of_order += self.unordered.out_of_order;
        self.totals.samples = self.counters.iter().map(|c| c.count).collect();
        self.totals
    }

    /// Returns where the next record begins, behind the payload that follows a record and is not part of it.
    #[cold]
    fn pass_payload(&mut self, header: Header, body: &[u8], at: usize) -> usize {
        let behind = payload_behind(header.kind, body, self.endian);
        if header.kind == kind::AUXTRACE {
            self.totals.aux_bytes = self.totals.aux_bytes.saturating_add(behind as u64);
        }
        at.saturating_add(behind)
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
            prefetch(data, at + AHEAD);
            let body = &data[at + HEADER..next.max(at + HEADER)];
            let Some(id) = u64_at::<BIG>(body, id_at) else {
                break;
            };
            let place = usize::try_from(id.wrapping_sub(*base));
            let Some(&attr) = place.ok().and_then(|at| attrs.get(at)) else {
                break;
            };
            let Some(counter) = self.counters.get_mut(attr as usize) else {
                break;
            };
            if counter.want != Want::No {
                let Some(time) = u64_at::<BIG>(body, time_at) else {
                    break;
                };
                let found = Found::new(self.recording, header, body, (at, time, attr));
                let sent = (self.flush_to, self.last_out);
                let unordered = &mut self.unordered;
                if !unordered.takes::<V, BIG>(counter.want, &found, sent, self.visitor) {
                    self.queue.add(0, at, next, time, attr);
                }
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
            if counter.want == Want::No {
                return;
            }
            attr
        } else {
            Entry::SIDE
        };
        let time = self.time_of(header, body, attr);
        if attr != Entry::SIDE {
            let want = match self.counters[attr as usize].want {
                // What was unpacked is kept no longer than runs need it.
                Want::OfThread if buffer != 0 => Want::InOrder,
                want => want,
            };
            let found = Found::new(self.recording, header, body, (at, time, attr));
            let sent = (self.flush_to, self.last_out);
            let unordered = &mut self.unordered;
            if unordered.takes::<V, BIG>(want, &found, sent, self.visitor) {
                self.stop |= self.unordered.stop;
                return;
            }
        }
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
            self.flush(self.newest());
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

    /// Returns the newest time of all that came.
    fn newest(&self) -> u64 {
        self.queue.newest.max(self.unordered.newest())
    }

    fn finish_round(&mut self) {
        self.queue.close();
        self.flush(self.flush_to);
        self.flush_to = self.newest();
        self.queue.compact();
    }
}
