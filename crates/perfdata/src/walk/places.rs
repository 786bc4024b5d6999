//! Places from which a later walk can go on, without what stands before them.
//!
//! While a round goes out, everything is known that has been read and has not gone out: what is left of each run. A
//! later walk that wants the same records takes these up as runs without an index, which are read when it is their
//! turn, and reads on behind the round. So it lets out just what this walk has yet to let out, in the same order, and
//! reads no more of it than it has to.

use super::out::RecordOutlet;
use super::visitor::{SampleWish, WalkPlace};
use super::{PerfVisitor, PerfWalk, Totals};
use crate::file::PerfRecording;
use crate::walk::out::Direct;
use crate::walk::reading::WalkPlan;

/// Places of one walk, at most: so many bytes of the whole are between two of them at least.
const MOST: usize = 512;
/// Runs that a place has at most: a recording has about as many as CPUs.
const MOST_RUNS: usize = 1 << 10;

/// When places are reported.
#[derive(Debug)]
pub(super) struct PlaceReport {
    /// Whether there are any.
    pub on: bool,
    /// Up to which byte there are enough of them, and how many bytes are between two at least.
    last: usize,
    apart: usize,
    /// Where the last round ended.
    round: usize,
}

impl PlaceReport {
    /// There are places where every record goes through the merge, out of the input itself.
    pub(super) fn new(asked: bool, data: &PerfRecording<'_>, wanted: &[SampleWish]) -> PlaceReport {
        let in_order = wanted.iter().all(|want| *want == SampleWish::InOrder);
        PlaceReport {
            on: asked && in_order && !data.is_pipe(),
            last: data.start,
            round: data.start,
            apart: (data.end.saturating_sub(data.start) / MOST).max(1),
        }
    }

    /// Returns how many places there may be while a round goes out that ends at a byte.
    fn count(&mut self, end: usize) -> u64 {
        // What goes out now came in the round before.
        let came = std::mem::replace(&mut self.round, end);
        let count = came.saturating_sub(self.last) / self.apart;
        if !self.on || count == 0 {
            return 0;
        }
        self.last = came;
        count.min(MOST) as u64
    }
}

impl PerfRecording<'_> {
    /// Pushes what an earlier walk had not pushed when it reported a place ([`PerfVisitor::place`]), in the same order.
    /// `wanted` is as for that one. What is counted is that part alone.
    pub fn walk_from<V: PerfVisitor>(
        &self,
        place: &WalkPlace,
        wanted: &[SampleWish],
        visitor: &mut V,
    ) -> Totals {
        match self.endian {
            tracefmt::Endian::Little => self.go_on::<V, false>(place, wanted, visitor),
            tracefmt::Endian::Big => self.go_on::<V, true>(place, wanted, visitor),
        }
    }

    fn go_on<V: PerfVisitor, const BIG: bool>(
        &self,
        place: &WalkPlace,
        wanted: &[SampleWish],
        visitor: &mut V,
    ) -> Totals {
        let reading = WalkPlan::new(self);
        let out = Direct::<V, BIG>::new(&reading, wanted, visitor);
        let mut walk = PerfWalk::<_, BIG>::new(&reading, wanted, out, false);
        walk.go_on_from(place);
        let (mut totals, out) = walk.run();
        out.add_to(&mut totals);
        totals
    }
}

impl<O: RecordOutlet, const BIG: bool> PerfWalk<'_, '_, '_, O, BIG> {
    /// Finishes a round that ends at a byte of the input, and reports places while it goes out.
    pub(super) fn finish_round_at(&mut self, end: usize) {
        let limit = self.flush_to;
        let count = self.places.count(end);
        let first = self.queue.first().map_or(limit, |(time, ..)| time);
        let part = limit.saturating_sub(first) / count.max(1);
        if count > 0 {
            self.tell_counts();
        }
        for number in 1..=count {
            // What goes out goes out in the same order, however often that stops.
            let time = first + part * number;
            self.flush_queue(time.min(limit));
            if self.stop || part == 0 || self.queue.len() > MOST_RUNS {
                break;
            }
            self.out.place(WalkPlace {
                time: time.min(limit),
                last_out: self.last_out,
                limit,
                newest: self.newest(),
                end,
                runs: self.queue.left(),
            });
        }
        self.finish_round();
    }

    /// Prepares to go on from a place.
    fn go_on_from(&mut self, place: &WalkPlace) {
        let recording = self.reading.recording;
        self.start = place.end.clamp(recording.start, recording.end);
        for run in &place.runs {
            let (time, bytes) = run.clone();
            self.queue.take_up(time, bytes);
        }
        self.queue.newest = place.newest;
        self.last_out = place.last_out;
        let lowest = self.queue.lowest_input().unwrap_or(self.start);
        self.released = lowest.clamp(recording.start, self.start);
        self.flush_to = place.limit;
        self.finish_round();
    }
}
