//! The walk over the records: rounds, compressed records, and the merge into time order.
//!
//! perf reads its per-CPU buffers in rounds and writes `PERF_RECORD_FINISHED_ROUND` after each. Whatever
//! is older than the newest record of the round before the last can then no longer be overtaken, and goes
//! out in time order (`tools/perf/util/ordered-events.c`). Records of equal time keep the file's order.

mod barriers;
mod copies;
mod groups;
mod hole;
mod out;
mod pieces;
mod places;
mod prefetch;
mod push;
mod reading;
mod relay;
mod resync;
mod scan;
mod stream;
mod unordered;
mod visitor;

use std::collections::VecDeque;

use tracefmt::index_of;
use tracefmt::{Diagnostic, Endian};

use crate::byte_source::ScannedPieces;
use crate::chunks::Chunks;
use crate::compressed::ZstdStream;
use crate::file::PerfRecording;
use crate::merge::{MergeBatch, MergeQueue, MergeRecord};
use crate::pipe::payload_behind;
use crate::record::{HEADER, PerfRecordHeader, kind};
use crate::sample::place_of;
use crate::sample_head::HeadPlaces;

use barriers::Barriers;
use copies::RecordCopies;
use groups::SampledGroups;
use hole::LastRead;
use out::{Direct, RecordOrigin, RecordOutlet};
pub use pieces::PerfPieces;
use places::PlaceReport;
use push::{BLOCKS, CpuRun, RunSources};
pub(crate) use reading::WalkPlan;
use scan::{AttrCounter, IdPlaces, STEP, WantedSample, scan};
use unordered::UnorderedSamples;
pub use visitor::{PerfVisitor, SampleTally, SampleWish, Totals, WalkPlace};

/// Bytes of the longest record.
const MAX_RECORD: usize = 64 << 10;
/// Diagnostics kept of one walk.
const MAX_DIAGNOSTICS: usize = 32;
/// Runs held back for the merge before it is forced on: no more than 2^20 together with those that one step
/// can add, whose samples have 16 bytes at least.
const MAX_RUNS: usize = (1 << 20) - STEP / 16;

impl PerfRecording<'_> {
    /// Pushes all records to `visitor`, in time order.
    ///
    /// `wanted` says by attribute whether its samples are pushed, and whether in order; those of attributes beyond its
    /// end are, in order.
    pub fn walk<V: PerfVisitor>(&self, wanted: &[SampleWish], visitor: &mut V) -> Totals {
        self.walk_on(1, wanted, visitor)
    }

    /// Does the same with up to `threads` threads; the visitor is called by this one.
    pub fn walk_on<V: PerfVisitor>(
        &self,
        threads: usize,
        wanted: &[SampleWish],
        visitor: &mut V,
    ) -> Totals {
        // Byte order is settled once, not at every number.
        match self.endian {
            Endian::Little => self.walk_in::<V, false>(threads, wanted, visitor),
            Endian::Big => self.walk_in::<V, true>(threads, wanted, visitor),
        }
    }

    fn walk_in<V: PerfVisitor, const BIG: bool>(
        &self,
        threads: usize,
        wanted: &[SampleWish],
        visitor: &mut V,
    ) -> Totals {
        let reading = WalkPlan::new(self);
        if threads > 1
            && let Some(totals) = relay::walk::<V, BIG>(&reading, wanted, visitor)
        {
            return totals;
        }
        let (places, tally) = (visitor.places(), visitor.tally());
        let out = Direct::<V, BIG>::new(&reading, wanted, visitor);
        let mut walk = PerfWalk::<_, BIG>::new(&reading, wanted, out, places);
        walk.tally = tally;
        let (mut totals, out) = walk.run();
        out.add_to(&mut totals);
        totals
    }
}

/// Returns what has been counted.
fn counted(counters: &[AttrCounter], unordered: &UnorderedSamples, totals: &Totals) -> Totals {
    Totals {
        samples: counters.iter().map(|c| c.count).collect(),
        out_of_order: unordered.out_of_order,
        ..totals.clone()
    }
}

struct PerfWalk<'w, 'r, 'a, O: RecordOutlet, const BIG: bool> {
    reading: &'w WalkPlan<'r, 'a>,
    /// By attribute.
    counters: Vec<AttrCounter>,
    out: O,
    queue: MergeQueue,
    barriers: Barriers,
    /// Runs that go out by themselves, while a flush goes on.
    cpu_runs: Vec<CpuRun>,
    /// What goes out next, while the merge goes on.
    batch: MergeBatch,
    /// Newest time stamp at the end of the round before.
    flush_to: u64,
    /// The same of the round before that: whatever CPU it is of, nothing older comes any more.
    whole_until: u64,
    last_out: u64,
    last_read: LastRead,
    /// The last hole of this round: its first byte, and the one behind it.
    hole: Option<(usize, usize)>,
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
    /// The pieces of the input that were scanned, and those that runs are read from, by slot.
    pieces: ScannedPieces,
    sources: RunSources,
    /// Whether all samples that are wanted are wanted in time order.
    in_order: bool,
    /// Follows that samples happen, if that is asked for.
    tally: Option<O::Tally>,
    /// Copies of what waits, where the input is read by pieces.
    copies: RecordCopies,
    /// Samples that go out as they are found.
    unordered: UnorderedSamples,
    /// Blocks of pages in use again behind `released`, by their low bits, and how many.
    blocks: Vec<usize>,
    blocks_used: usize,
    totals: Totals,
    /// Places from which another walk can go on.
    places: PlaceReport,
    /// Where the records begin that are to be read.
    start: usize,
}

impl<'w, 'r, 'a, O: RecordOutlet, const BIG: bool> PerfWalk<'w, 'r, 'a, O, BIG> {
    /// Prepares a walk. `places` says whether places are of interest from which another can go on.
    fn new(
        reading: &'w WalkPlan<'r, 'a>,
        wanted: &[SampleWish],
        out: O,
        places: bool,
    ) -> PerfWalk<'w, 'r, 'a, O, BIG> {
        let attrs = reading.recording.attrs.len();
        let groups = reading.recording.has_groups();
        let want = |(attr, described)| {
            let want = wanted.get(attr).copied().unwrap_or(SampleWish::InOrder);
            match groups {
                true => SampledGroups::wish(described, want),
                false => want,
            }
        };
        // A place does not say what counters had counted up to there.
        let places = PlaceReport::new(places && !groups, reading.recording, wanted);
        PerfWalk {
            // A place says where in the input what waits is.
            copies: RecordCopies::new(reading.recording.source.is_some() && !places.on),
            reading,
            counters: (reading.recording.attrs.iter().enumerate().map(want))
                .zip(&reading.recording.attrs)
                .map(|(want, attr)| AttrCounter {
                    count: 0,
                    want,
                    places: HeadPlaces::new(&attr.layout),
                })
                .collect(),
            out,
            queue: MergeQueue::new(),
            barriers: Barriers::new(wanted),
            cpu_runs: Vec::new(),
            batch: MergeBatch::default(),
            flush_to: 0,
            whole_until: 0,
            last_out: 0,
            last_read: LastRead::default(),
            hole: None,
            stop: false,
            stop_reading: false,
            chunks: Chunks::default(),
            zstd: None,
            tail: Vec::new(),
            tail_at: 0,
            rounds: VecDeque::new(),
            released: reading.recording.start,
            blocks: vec![usize::MAX; BLOCKS],
            blocks_used: 0,
            pieces: ScannedPieces::default(),
            sources: RunSources::default(),
            in_order: wanted
                .iter()
                .all(|want| matches!(want, SampleWish::InOrder | SampleWish::No)),
            tally: None,
            unordered: UnorderedSamples::default(),
            totals: Totals {
                samples: vec![0; attrs],
                ..Totals::default()
            },
            places,
            start: reading.recording.start,
        }
    }

    fn note(&mut self, at: usize, message: String) {
        if self.totals.diagnostics.len() < MAX_DIAGNOSTICS {
            self.totals
                .diagnostics
                .push(Diagnostic::at(at as u64, message));
        }
    }

    /// Walks, and returns what was counted, but for what is counted where records go.
    fn run(mut self) -> (Totals, O) {
        // The input outlives the walk's own borrows.
        let data: &[u8] = self.reading.recording.data;
        let end = self.reading.recording.end;
        let mut at = self.start;
        while at < end && !self.stop && !self.stop_reading {
            let samples_end = self.take_samples(data, at, end);
            self.stop |= self.unordered.stop;
            if samples_end > at {
                at = samples_end;
                if at.saturating_sub(self.released) >= 2 * STEP {
                    self.release_behind(at);
                }
                self.bound_runs(at);
                continue;
            }
            let Some(header) = PerfRecordHeader::read::<BIG>(&data[..end], at) else {
                self.cut(at, end);
                break;
            };
            if header.is_none() {
                let Some(next) = self.resync(data, at, end) else {
                    self.totals.truncated = true;
                    self.skipped(at, end);
                    break;
                };
                self.skipped(at, next);
                at = next;
                continue;
            }
            let next = at + header.size;
            if next > end {
                self.cut(at, end);
                break;
            }
            if header.kind < kind::USER_START {
                let from = RecordOrigin::of_input(data);
                self.take(from, header, &data[at + HEADER..next], at);
            } else {
                self.control(header, &data[at + HEADER..next], at);
            }
            at = next;
            if header.kind == kind::HEADER_TRACING_DATA || header.kind == kind::AUXTRACE {
                at = self.pass_payload(header, &data[at - header.size + HEADER..at], at);
                if at > end {
                    self.cut(end, end);
                    at = end;
                }
            }
            if at.saturating_sub(self.released) >= 2 * STEP {
                self.release_behind(at);
            }
        }
        self.finish(end)
    }

    /// Lets everything out that is held back.
    fn finish(mut self, end: usize) -> (Totals, O) {
        self.finish_stream();
        self.queue.close();
        self.end_hole();
        self.flush(u64::MAX);
        let start = self.reading.recording.start;
        self.totals.whole_until = (!self.stop).then_some(self.whole_until);
        // The walk is over in any case.
        let _ = self.out.release(start..end.max(start));
        let totals = counted(&self.counters, &self.unordered, &self.totals);
        (totals, self.out)
    }

    /// Returns where the next record begins, behind the payload that follows a record and is not part of it.
    #[cold]
    fn pass_payload(&mut self, header: PerfRecordHeader, body: &[u8], at: usize) -> usize {
        let behind = payload_behind(header.kind, body, self.reading.recording.endian);
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
            .max(at.saturating_sub(STEP));
        if keep > self.released {
            self.stop |= self.out.release(self.released..keep).is_break();
            self.released = keep;
        }
    }

    /// Takes samples up to the first record that is something else. It stops now and then so that pages can be
    /// released.
    fn take_samples(&mut self, data: &[u8], start: usize, end: usize) -> usize {
        // What is compressed is no sample: it is looked at once, in the map.
        let source = self.reading.recording.source;
        let Some(source) = source.filter(|_| self.zstd.is_none()) else {
            return self.take_samples_of(RecordOrigin::of_input(&data[..end]), start);
        };
        let mut piece = self.pieces.now();
        let mut at = start;
        let mut is_new = false;
        while at < start.saturating_add(STEP) {
            if !piece.has(at, HEADER) && !is_new {
                piece = self.pieces.read(source, at, end - at);
                is_new = true;
            }
            let (data, base) = piece.bytes();
            let from = RecordOrigin {
                base,
                ..RecordOrigin::of_input(data)
            };
            let next = self.take_samples_of(from, at);
            if next > at {
                at = next;
                is_new = false;
            } else if !is_new && !piece.has(at, MAX_RECORD.min(end - at)) {
                // The record goes on behind the piece.
                piece = self.pieces.read(source, at, end - at);
                is_new = true;
            } else {
                break;
            }
        }
        at
    }

    /// Takes samples of a piece from a place on.
    #[inline(never)]
    fn take_samples_of(&mut self, from: RecordOrigin<'_>, start: usize) -> usize {
        let reading = self.reading;
        let Some(places) = IdPlaces::new(&reading.ids, reading.id_at, reading.time_at) else {
            return start;
        };
        let sent = (self.flush_to, self.last_out);
        let (unordered, queue, out) = (&mut self.unordered, &mut self.queue, &mut self.out);
        let (barriers, tally) = (&mut self.barriers, &mut self.tally);
        // Where all that is wanted is wanted in order, nobody asks whose it is.
        let whose = tally.is_some() || !self.in_order;
        let (data, base, is_input) = (from.data, from.base, from.buffer == 0);
        let (last_read, copies, chunks) = (&mut self.last_read, &mut self.copies, &mut self.chunks);
        let scanned = scan::<BIG>(&places, data, start - base, &mut self.counters, |one| {
            let record = one.at..one.at + one.size;
            let one = WantedSample {
                at: one.at + base,
                ..one
            };
            if let Some(tally) = tally {
                tally.seen(one.attr, one.time, one.place);
            }
            if whose && unordered.takes(&one, from, sent, out) {
                last_read.is(one.time, one.at, None);
                return;
            }
            let copy = match is_input {
                true => copies.keep(data, record, chunks),
                false => None,
            };
            let (buffer, at) = copy.unwrap_or((from.buffer, one.at));
            last_read.is(one.time, one.at, is_input.then_some((buffer, at)));
            let began = queue.add(buffer, at, at + one.size, one.time, one.attr);
            if began && buffer != 0 {
                chunks.used(buffer);
            }
            if whose {
                barriers.sample(&one, queue.open_seq());
            }
        });
        scanned + base
    }

    /// Takes a record of the kernel into the queue, if it is wanted.
    #[inline(always)]
    fn take(&mut self, from: RecordOrigin<'_>, header: PerfRecordHeader, body: &[u8], at: usize) {
        let buffer = from.buffer;
        let attr = if header.kind == kind::SAMPLE {
            let Some(attr) = self.reading.attr_of::<BIG>(body) else {
                self.totals.unknown_id += 1;
                return;
            };
            let counter = &mut self.counters[index_of(attr)];
            counter.count += 1;
            if counter.want == SampleWish::No {
                return;
            }
            attr
        } else {
            self.totals.note(header.kind);
            if header.kind == kind::LOST
                && let Some(tally) = &mut self.tally
            {
                tally.lost(self.reading.cpu_of::<BIG>(body));
            }
            MergeRecord::SIDE
        };
        let time = self.reading.time_of::<BIG>(header, body, attr);
        let is_input = buffer == 0;
        self.last_read.is(time, at, is_input.then_some((0, at)));
        let sample = (attr != MergeRecord::SIDE).then(|| WantedSample {
            at,
            size: header.size,
            time,
            attr,
            want: self.counters[index_of(attr)].want,
            place: place_of::<BIG>(&self.reading.recording.attrs, body, attr),
        });
        if let Some(one) = &sample {
            if let Some(tally) = &mut self.tally {
                tally.seen(attr, time, one.place);
            }
            let sent = (self.flush_to, self.last_out);
            if self.unordered.takes(one, from, sent, &mut self.out) {
                self.stop |= self.unordered.stop;
                return;
            }
        }
        let copy = match is_input {
            true => {
                let record = at..at + header.size;
                self.copies.keep(from.data, record, &mut self.chunks)
            }
            false => None,
        };
        let (buffer, place) = copy.unwrap_or((buffer, at));
        if copy.is_some() {
            self.last_read.waits_at(buffer, place);
        }
        let began = self
            .queue
            .add(buffer, place, place + header.size, time, attr);
        if began && buffer != 0 {
            self.chunks.used(buffer);
        }
        let run = self.queue.open_seq();
        match &sample {
            Some(one) => self.barriers.sample(one, run),
            None => self.barriers.in_order(time, run),
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
    fn control(&mut self, header: PerfRecordHeader, body: &[u8], at: usize) {
        // A run is one range of bytes that holds records of the kernel only.
        self.queue.close();
        match header.kind {
            kind::FINISHED_ROUND if header.size > HEADER => self.unfinished(at),
            kind::FINISHED_ROUND => match self.zstd.as_ref().map(ZstdStream::position) {
                None => self.finish_round_at(at + header.size),
                // The stream lags behind its records: the round ends where the stream has come to.
                Some(Some(position)) if position > self.tail_at + self.tail.len() as u64 => {
                    self.rounds.push_back(position);
                }
                Some(Some(_)) => self.finish_round(),
                // Not known yet: the next round will do.
                Some(None) => {}
            },
            kind::COMPRESSED => {
                self.places.on = false;
                self.compressed(body, at);
            }
            kind::COMPRESSED2 => {
                self.places.on = false;
                let endian = self.reading.recording.endian;
                let size = endian.u64(body, 0).and_then(|s| usize::try_from(s).ok());
                let payload = body.get(8..).unwrap_or_default();
                let size = size.unwrap_or(0).min(payload.len());
                self.compressed(&payload[..size], at);
            }
            kind => self.totals.note(kind),
        }
    }

    /// trapline's own recorder keeps what it has not written yet filled with long records of this kind, which say
    /// nothing: they are there until it ends.
    #[cold]
    fn unfinished(&mut self, at: usize) {
        if !std::mem::replace(&mut self.totals.truncated, true) {
            self.note(
                at,
                "the recorder did not end in order, or is still recording: events that were in its rings are missing"
                    .to_owned(),
            );
        }
    }

    /// Returns the newest time of all that came.
    fn newest(&self) -> u64 {
        self.queue.newest.max(self.unordered.newest())
    }

    fn finish_round(&mut self) {
        self.queue.close();
        self.end_hole();
        self.flush(self.flush_to);
        self.whole_until = self.flush_to;
        self.flush_to = self.newest();
        self.queue.compact();
    }
}
