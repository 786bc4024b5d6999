//! A walk over records that come in pieces, while they are recorded.
//!
//! It is kept open: what a piece has that may still be overtaken waits, in the piece that it lies in, until the end of
//! a round says that it cannot be any more. So each record is read once, and what is kept does not grow with the number
//! of pieces.

use std::sync::Arc;

use tracefmt::Endian;

use super::groups::SampledGroups;
use super::out::{Direct, RecordOrigin, RecordOutlet};
use super::reading::WalkPlan;
use super::visitor::{PerfVisitor, SampleWish, Totals};
use super::{PerfWalk, counted};
use crate::chunks::Chunks;
use crate::file::PerfRecording;
use crate::merge::MergeQueue;
use crate::record::{HEADER, PerfRecordHeader, kind};

/// A walk over the records of a recording that come in pieces ([`PerfRecording::pieces`]).
#[derive(Debug)]
pub struct PerfPieces<'r, 'a> {
    reading: WalkPlan<'r, 'a>,
    wanted: Vec<SampleWish>,
    /// Whether the recording's own records were taken, which stand before the first piece.
    begun: bool,
    kept: PieceState,
    groups: Option<SampledGroups>,
}

/// What is kept of the walk between two pieces.
#[derive(Debug)]
struct PieceState {
    queue: MergeQueue,
    chunks: Chunks,
    flush_to: u64,
    whole_until: u64,
    last_out: u64,
}

impl PerfRecording<'_> {
    /// Begins a walk over records that come in pieces: those of this recording, and then those of the pieces. What the
    /// visitor gets is what a walk over all of them gives it, each record as soon as a piece has the end of the round
    /// that settles it. All that is wanted comes in time order. Compressed records are passed over.
    pub fn pieces(&self) -> PerfPieces<'_, '_> {
        PerfPieces {
            reading: WalkPlan::new(self),
            wanted: Vec::new(),
            begun: false,
            groups: None,
            kept: PieceState {
                queue: MergeQueue::new(),
                chunks: Chunks::default(),
                flush_to: 0,
                whole_until: 0,
                last_out: 0,
            },
        }
    }
}

impl PerfPieces<'_, '_> {
    /// Says by attribute what is wanted from here on, as for [`PerfRecording::walk`]. Before that all is.
    pub fn want(&mut self, wanted: &[SampleWish]) {
        let in_order = wanted.iter().map(|want| match want {
            SampleWish::No => SampleWish::No,
            _ => SampleWish::InOrder,
        });
        self.wanted = in_order.collect();
    }

    /// Returns up to which time everything was pushed: the newest of all that came before the last whole round.
    pub fn settled(&self) -> u64 {
        self.kept.whole_until
    }

    /// Returns the newest time of what was wanted and came before the end of the last round.
    pub fn newest(&self) -> u64 {
        self.kept.flush_to
    }

    /// Takes a piece, which is of whole records and what follows them, and pushes what is settled then. Returns what
    /// the piece has, and of what was pushed the losses.
    pub fn walk<V: PerfVisitor>(&mut self, piece: &Arc<Vec<u8>>, visitor: &mut V) -> Totals {
        match self.reading.recording.endian {
            Endian::Little => self.walk_in::<V, false>(Some(piece), visitor),
            Endian::Big => self.walk_in::<V, true>(Some(piece), visitor),
        }
    }

    /// Pushes all that waits: behind the last piece nothing comes any more.
    pub fn finish<V: PerfVisitor>(&mut self, visitor: &mut V) -> Totals {
        match self.reading.recording.endian {
            Endian::Little => self.walk_in::<V, false>(None, visitor),
            Endian::Big => self.walk_in::<V, true>(None, visitor),
        }
    }

    fn walk_in<V: PerfVisitor, const BIG: bool>(
        &mut self,
        piece: Option<&Arc<Vec<u8>>>,
        visitor: &mut V,
    ) -> Totals {
        let mut out = Direct::<V, BIG>::new(&self.reading, &self.wanted, visitor);
        if self.begun {
            out.go_on_with(self.groups.take());
        }
        let mut walk = PerfWalk::<_, BIG>::new(&self.reading, &self.wanted, out, false);
        walk.swap(&mut self.kept);
        if !std::mem::replace(&mut self.begun, true) {
            walk.take_own();
        }
        match piece {
            Some(piece) => walk.take_piece(piece),
            None => walk.flush(u64::MAX),
        }
        walk.swap(&mut self.kept);
        let mut totals = counted(&walk.counters, &walk.unordered, &walk.totals);
        walk.out.add_to(&mut totals);
        self.groups = walk.out.groups_so_far();
        totals
    }
}

impl<O: RecordOutlet, const BIG: bool> PerfWalk<'_, '_, '_, O, BIG> {
    fn swap(&mut self, kept: &mut PieceState) {
        std::mem::swap(&mut self.queue, &mut kept.queue);
        std::mem::swap(&mut self.chunks, &mut kept.chunks);
        std::mem::swap(&mut self.flush_to, &mut kept.flush_to);
        std::mem::swap(&mut self.whole_until, &mut kept.whole_until);
        std::mem::swap(&mut self.last_out, &mut kept.last_out);
    }

    /// Takes the recording's own records.
    fn take_own(&mut self) {
        let recording = self.reading.recording;
        let from = RecordOrigin::of_input(recording.data);
        self.take_records(from, recording.start, recording.end);
    }

    fn take_piece(&mut self, piece: &Arc<Vec<u8>>) {
        let from = RecordOrigin {
            data: piece,
            base: 0,
            buffer: self.chunks.begin(piece),
            piece: Some(piece),
        };
        self.take_records(from, 0, piece.len());
        self.chunks.end();
    }

    fn take_records(&mut self, from: RecordOrigin<'_>, start: usize, end: usize) {
        let data = from.data.get(..end).unwrap_or_default();
        let mut at = start;
        while at < data.len() {
            let header = PerfRecordHeader::read::<BIG>(data, at).filter(|one| one.size >= HEADER);
            let body = header.and_then(|one| data.get(at + HEADER..at + one.size));
            let (Some(header), Some(body)) = (header, body) else {
                self.totals.truncated = true;
                self.totals.skipped_bytes += (data.len() - at) as u64;
                break;
            };
            if header.kind < kind::USER_START {
                self.take(from, header, body, at);
            } else {
                // A run is one range of bytes that holds records of the kernel only.
                self.queue.close();
                if header.kind == kind::FINISHED_ROUND && header.size == HEADER {
                    self.finish_round();
                }
            }
            at += header.size;
            if header.kind == kind::HEADER_TRACING_DATA || header.kind == kind::AUXTRACE {
                at = self.pass_payload(header, body, at);
            }
        }
        // And of one piece.
        self.queue.close();
    }
}
