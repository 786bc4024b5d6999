//! A walk on a thread of its own.
//!
//! One thread scans and merges, and writes down where the records lie, in the order in which they go out. The other,
//! which called, reads them there and hands them to the visitor. It is the same walk with the same order, a little
//! ahead; and the thread that reads knows long before which record is next, wherever that is.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use super::out::{Direct, RecordOrigin, RecordOutlet};
use super::prefetch::{LINE, prefetch};
use super::reading::WalkPlan;
use super::visitor::{PerfVisitor, SampleTally, Totals, WalkPlace};
use super::{PerfWalk, SampleWish};
use crate::merge::MergeRecord;

/// Records of a batch, and batches that go round: so many records the walk is ahead at most.
const RECORDS: usize = 4096;
const BATCHES: usize = 32;
/// Counts of all samples that a batch holds at most: rounds may be many, and have few records that anybody wants.
const MAX_COUNTED: usize = 16;
/// Records that are asked for before they are read.
const AHEAD: usize = 12;
/// Bytes of the input that are on their way to be released: they stay in memory until the other thread comes to it.
const MAX_UNRELEASED: usize = 16 << 20;

/// Records that go out behind each other.
#[derive(Debug)]
struct RelayBatch<T> {
    records: Vec<MergeRecord>,
    /// What stands between them: before which record, and what.
    marks: Vec<(usize, RelayMark<T>)>,
    /// Bytes that marks release, and how many marks have counts.
    releases: usize,
    counted: usize,
}

impl<T> Default for RelayBatch<T> {
    fn default() -> RelayBatch<T> {
        RelayBatch {
            records: Vec::new(),
            marks: Vec::new(),
            releases: 0,
            counted: 0,
        }
    }
}

impl<T> RelayBatch<T> {
    fn clear(&mut self) {
        self.records.clear();
        self.marks.clear();
        (self.releases, self.counted) = (0, 0);
    }
}

/// What is between records.
#[derive(Debug)]
enum RelayMark<T> {
    /// The next ones lie in a piece that was unpacked, or in the input.
    Piece(Option<Arc<Vec<u8>>>),
    /// The next one comes after a later one.
    Late,
    /// This range of the input is not needed for now.
    Release(Range<usize>),
    /// What was counted until now.
    Counted(Box<Totals>),
    /// That samples happened.
    Tallied(Box<T>),
    /// Another walk can go on from here.
    Place(Box<WalkPlace>),
}

/// The end of the walk's thread.
struct Relay<T> {
    ready: Sender<RelayBatch<T>>,
    free: Receiver<RelayBatch<T>>,
    batch: RelayBatch<T>,
    /// The piece that the last record lay in.
    buffer: u32,
    /// Bytes whose release is under way.
    unreleased: usize,
}

impl<T: SampleTally> Relay<T> {
    /// Sends what is in the batch. `Break` if nobody takes it any more.
    fn send(&mut self) -> ControlFlow<()> {
        let Ok(mut next) = self.free.recv() else {
            self.batch.clear();
            return ControlFlow::Break(());
        };
        self.unreleased = self.unreleased.saturating_sub(next.releases);
        next.clear();
        let full = std::mem::replace(&mut self.batch, next);
        match self.ready.send(full) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Takes note that a mark has counts.
    fn has_counted(&mut self) -> ControlFlow<()> {
        self.batch.counted += 1;
        match self.batch.counted >= MAX_COUNTED {
            true => self.send(),
            false => ControlFlow::Continue(()),
        }
    }

    fn mark(&mut self, mark: RelayMark<T>) {
        self.batch.marks.push((self.batch.records.len(), mark));
    }

    #[inline(always)]
    fn record(&mut self, from: RecordOrigin<'_>, entry: MergeRecord) -> ControlFlow<()> {
        if from.buffer != self.buffer {
            self.buffer = from.buffer;
            self.mark(RelayMark::Piece(from.piece.map(Arc::clone)));
        }
        self.batch.records.push(entry);
        match self.batch.records.len() >= RECORDS {
            true => self.send(),
            false => ControlFlow::Continue(()),
        }
    }
}

impl<T: SampleTally> RecordOutlet for Relay<T> {
    const READS: bool = false;
    type Tally = T;

    fn tallied(&mut self, tally: &mut T) -> ControlFlow<()> {
        if tally.is_empty() {
            return ControlFlow::Continue(());
        }
        self.mark(RelayMark::Tallied(Box::new(tally.clone())));
        tally.clear();
        self.has_counted()
    }

    #[inline(always)]
    fn sample(
        &mut self,
        from: RecordOrigin<'_>,
        at: usize,
        time: u64,
        attr: u32,
    ) -> ControlFlow<()> {
        self.record(from, MergeRecord::new(time, at, attr))
    }

    fn late(&mut self) {
        self.mark(RelayMark::Late);
    }

    fn side(&mut self, from: RecordOrigin<'_>, at: usize, time: u64) -> ControlFlow<()> {
        self.record(from, MergeRecord::new(time, at, MergeRecord::SIDE))
    }

    fn release(&mut self, range: Range<usize>) -> ControlFlow<()> {
        let bytes = range.len().min(MAX_UNRELEASED);
        self.batch.releases += bytes;
        self.unreleased += bytes;
        self.mark(RelayMark::Release(range));
        // Each batch that comes back has released what it was to.
        while self.unreleased > MAX_UNRELEASED {
            self.send()?;
        }
        ControlFlow::Continue(())
    }

    fn place(&mut self, place: WalkPlace) {
        self.mark(RelayMark::Place(Box::new(place)));
    }

    fn counted(&mut self, totals: impl FnOnce() -> Totals) -> ControlFlow<()> {
        let records = self.batch.records.len();
        match self.batch.marks.last_mut() {
            // No record has gone out since.
            Some((before, RelayMark::Counted(last))) if *before == records => **last = totals(),
            _ => {
                self.mark(RelayMark::Counted(Box::new(totals())));
                return self.has_counted();
            }
        }
        ControlFlow::Continue(())
    }
}

/// Walks with a second thread. `None` if there can be none, or it would not help: samples that need no order go out
/// where they are found, when they have just been read.
pub(super) fn walk<V: PerfVisitor, const BIG: bool>(
    reading: &WalkPlan<'_, '_>,
    wanted: &[SampleWish],
    visitor: &mut V,
) -> Option<Totals> {
    if wanted.contains(&SampleWish::AnyOrder) {
        return None;
    }
    let (places, tally) = (visitor.places(), visitor.tally());
    let (ready, batches) = channel();
    let (used, free) = channel();
    for _ in 1..BATCHES {
        used.send(RelayBatch::default()).ok()?;
    }
    std::thread::scope(|scope| {
        let work = move || {
            let batch = RelayBatch::default();
            let relay = Relay {
                ready,
                free,
                batch,
                buffer: 0,
                unreleased: 0,
            };
            let mut walk = PerfWalk::<Relay<V::Tally>, BIG>::new(reading, wanted, relay, places);
            walk.tally = tally;
            let (totals, mut relay) = walk.run();
            // It may be that nobody takes them any more.
            let _ = relay.counted(|| totals);
            let _ = relay.send();
        };
        let thread = Builder::new().name("walk".to_owned());
        thread.spawn_scoped(scope, work).ok()?;
        let mut out = Direct::<V, BIG>::new(reading, wanted, visitor);
        let mut totals = Totals::default();
        let mut piece = None;
        for mut batch in batches {
            let ends = replay(&mut batch, reading, &mut out, &mut piece, &mut totals);
            if ends.is_break() {
                break;
            }
            // The walk may have ended.
            let _ = used.send(batch);
        }
        // Whoever waits for a free batch gets none.
        drop(used);
        out.add_to(&mut totals);
        Some(totals)
    })
}

/// Hands a batch to the visitor. What is left in it is for the other thread to clear.
fn replay<V: PerfVisitor, const BIG: bool>(
    batch: &mut RelayBatch<V::Tally>,
    reading: &WalkPlan<'_, '_>,
    out: &mut Direct<'_, '_, '_, V, BIG>,
    piece: &mut Option<Arc<Vec<u8>>>,
    totals: &mut Totals,
) -> ControlFlow<()> {
    let mut next = 0;
    for (before, mark) in batch.marks.drain(..) {
        let records = batch.records.get(next..before).unwrap_or_default();
        hand_out(records, reading, out, piece.as_ref())?;
        next = before;
        match mark {
            RelayMark::Piece(now) => *piece = now,
            RelayMark::Late => out.late(),
            RelayMark::Release(range) => out.release(range)?,
            RelayMark::Counted(now) => {
                *totals = *now;
                out.counted(|| totals.clone())?;
            }
            RelayMark::Tallied(mut tally) => out.tallied(&mut tally)?,
            RelayMark::Place(place) => out.place(*place),
        }
    }
    let records = batch.records.get(next..).unwrap_or_default();
    hand_out(records, reading, out, piece.as_ref())
}

#[inline]
fn hand_out<V: PerfVisitor, const BIG: bool>(
    records: &[MergeRecord],
    reading: &WalkPlan<'_, '_>,
    out: &mut Direct<'_, '_, '_, V, BIG>,
    piece: Option<&Arc<Vec<u8>>>,
) -> ControlFlow<()> {
    let data: &[u8] = match piece {
        Some(piece) => piece,
        None => reading.recording.data,
    };
    let from = RecordOrigin::of_input(data);
    for (number, record) in records.iter().enumerate() {
        if let Some(ahead) = records.get(number + AHEAD) {
            prefetch(data, ahead.at());
            prefetch(data, ahead.at() + LINE);
            prefetch(data, ahead.at() + 2 * LINE);
        }
        match record.attr() {
            MergeRecord::SIDE => out.side(from, record.at(), record.time)?,
            attr => out.sample(from, record.at(), record.time, attr)?,
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a relay work, and returns how many records and counts each batch had.
    fn batches(work: impl FnOnce(&mut Relay<()>)) -> Vec<(usize, usize)> {
        let (ready, batches) = channel();
        let (used, free) = channel();
        for _ in 0..1000 {
            used.send(RelayBatch::default()).unwrap();
        }
        let mut relay: Relay<()> = Relay {
            ready,
            free,
            batch: RelayBatch::default(),
            buffer: 0,
            unreleased: 0,
        };
        work(&mut relay);
        assert!(relay.send().is_continue());
        drop(relay);
        let counted = |batch: &RelayBatch<()>| {
            let marks = batch.marks.iter();
            let counted = marks.filter(|(_, mark)| matches!(mark, RelayMark::Counted(_)));
            (batch.records.len(), counted.count())
        };
        batches.iter().map(|batch| counted(&batch)).collect()
    }

    const FROM: RecordOrigin<'_> = RecordOrigin::of_input(&[]);

    #[test]
    fn rounds_without_records_take_no_memory() {
        let found = batches(|relay| {
            for _ in 0..100_000 {
                assert!(relay.counted(Totals::default).is_continue());
            }
        });
        assert_eq!(found, [(0, 1)]);
    }

    #[test]
    fn rounds_of_few_records_take_little() {
        let found = batches(|relay| {
            for time in 0..1000 {
                assert!(relay.counted(Totals::default).is_continue());
                assert!(relay.sample(FROM, 0, time, 0).is_continue());
            }
        });
        assert_eq!(
            found.iter().map(|(records, _)| records).sum::<usize>(),
            1000
        );
        assert!(
            found.iter().all(|(_, counted)| *counted <= MAX_COUNTED),
            "{found:?}"
        );
    }

    #[test]
    fn a_walk_ends_soon_where_nobody_takes_its_records() {
        let (ready, batches) = channel();
        let (used, free) = channel();
        drop((batches, used));
        let mut relay: Relay<()> = Relay {
            ready,
            free,
            batch: RelayBatch::default(),
            buffer: 0,
            unreleased: 0,
        };
        assert!(relay.release(0..MAX_UNRELEASED).is_continue());
        assert!(relay.release(0..1).is_break());
        assert!(relay.batch.marks.is_empty());
    }
}
