//! Bytes that were skipped: records were in them, nobody knows whose.
//!
//! A hole is recorded as a record of its own, several times, at moments between which and the next record of any CPU
//! nothing of the hole can lie unnoticed. perf writes what one CPU's buffer had after another's, round by round. So
//! what a hole took from a CPU is younger than
//!
//! - the newest record of the rounds before, where the hole took all that the CPU had in this round or its first
//!   records, or
//! - the record before the hole, where that is of the same CPU,
//!
//! and older than what the CPU has in the next round. The end of the round repeats it, for whoever began to wait
//! meanwhile for something that was in the hole.
//!
//! The record before a hole is given up: where bytes were overwritten, as a rule that began in the middle of it.

use super::PerfWalk;
use super::SampleTally;
use super::out::RecordOutlet;
use crate::merge::MergeRecord;
use crate::record::{HEADER, PerfRecordHeader, kind};
use crate::sample::place_of;
use tracefmt::index_of;

/// The last record that was read and is wanted.
#[derive(Debug, Default)]
pub(super) struct LastRead {
    time: u64,
    at: usize,
    /// Where it waits, its buffer and its place there, if it came from the input itself.
    spot: Option<(u32, usize)>,
    /// The time of the one before it.
    before: u64,
}

impl LastRead {
    /// Takes note of a record.
    #[inline(always)]
    pub(super) fn is(&mut self, time: u64, at: usize, spot: Option<(u32, usize)>) {
        *self = LastRead {
            time,
            at,
            spot,
            before: self.time,
        };
    }

    /// It waits in a copy.
    pub(super) fn waits_at(&mut self, buffer: u32, at: usize) {
        self.spot = Some((buffer, at));
    }
}

impl<O: RecordOutlet, const BIG: bool> PerfWalk<'_, '_, '_, O, BIG> {
    /// Takes note of bytes of the input that were skipped.
    #[cold]
    pub(super) fn skipped(&mut self, at: usize, next: usize) {
        let before = self.give_up_before(at);
        // A run is one range of bytes without gaps.
        self.queue.close();
        if let Some(tally) = &mut self.tally {
            tally.lost(-1);
        }
        self.totals.skipped_bytes += (next - at) as u64;
        self.totals.holes += 1;
        let first_of_round = self.hole.replace((at, next)).is_none();
        if first_of_round && self.flush_to > 0 {
            self.tell_hole(at, next, self.flush_to);
        }
        if before > self.flush_to {
            self.tell_hole(at, next, before);
        }
    }

    /// Gives up the record that ends at a byte, unless it went out already. Returns the time of the last one before
    /// that byte.
    fn give_up_before(&mut self, end: usize) -> u64 {
        let LastRead {
            time,
            at,
            spot,
            before,
        } = self.last_read;
        let data = self.reading.recording.data;
        let header = PerfRecordHeader::read::<BIG>(data, at);
        let Some(header) = header.filter(|header| at + header.size == end) else {
            return time;
        };
        let given_up = spot.is_some_and(|spot| self.queue.give_up(spot));
        if let Some((buffer, _)) = spot
            && given_up
            && buffer != 0
            && !self.queue.is_open()
        {
            self.chunks.unused(buffer);
        }
        if given_up && header.kind == kind::SAMPLE {
            let body = &data[at + HEADER..end];
            if let Some(attr) = self.reading.attr_of::<BIG>(body) {
                if let Some(counter) = self.counters.get_mut(index_of(attr)) {
                    counter.count = counter.count.saturating_sub(1);
                }
                if let Some(tally) = &mut self.tally {
                    let (_, cpu) = place_of::<BIG>(&self.reading.recording.attrs, body, attr);
                    tally.given_up(attr, cpu);
                }
            }
        }
        self.last_read = LastRead {
            time: before,
            ..LastRead::default()
        };
        before
    }

    /// Reports at the end of a round the hole that it had.
    pub(super) fn end_hole(&mut self) {
        if let Some((at, next)) = self.hole.take() {
            self.queue.close();
            self.tell_hole(at, next, self.newest());
        }
    }

    /// The bytes of a hole stand for its record: no other begins as they do
    /// ([`crate::record::PerfRecordHeader::is_none`]).
    fn tell_hole(&mut self, at: usize, next: usize, time: u64) {
        self.queue.add(0, at, next, time, MergeRecord::SIDE);
        self.barriers.in_order(time, self.queue.open_seq());
        self.queue.close();
    }
}
