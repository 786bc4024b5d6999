//! What the kernel has written.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::call;
use crate::event::RingEvent;
use crate::map::RingMemory;
use crate::record_layout::{SIZE_PLACE, record_type};

/// The ring of one CPU.
#[derive(Debug)]
pub struct Ring {
    event: RingEvent,
    map: RingMemory,
    backward: bool,
    /// How far it was read.
    tail: u64,
}

/// What was written: two pieces, since a ring has an end. A record may begin in the first and end in the second.
#[derive(Debug, Clone, Copy)]
pub struct WrittenBytes<'r> {
    /// The older bytes.
    pub first: &'r [u8],
    /// The newer ones; often none.
    pub second: &'r [u8],
}

impl WrittenBytes<'_> {
    /// Returns how many bytes there are.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Returns how many samples there are: records that are no names, losses or the like.
    ///
    /// Only their headers are read, 8 bytes each: those that the write after it would read first.
    pub fn samples(&self) -> u64 {
        let mut count = 0;
        // How much of the next piece belongs to a record that began in the one before.
        let mut into = 0;
        for piece in [self.first, self.second] {
            let mut at = into;
            // Records are aligned to 8 bytes, so that a header does not wrap.
            while let Some(header) = piece.get(at..at + HEADER) {
                let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
                let size = u16::from_ne_bytes([header[SIZE_PLACE], header[SIZE_PLACE + 1]]);
                count += u64::from(kind == record_type::SAMPLE);
                at += usize::from(size).max(HEADER);
            }
            into = at.saturating_sub(piece.len());
        }
        count
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}

impl<'r> WrittenBytes<'r> {
    /// Returns the oldest so many bytes.
    #[must_use]
    pub fn up_to(self, bytes: usize) -> WrittenBytes<'r> {
        let first = bytes.min(self.first.len());
        let second = (bytes - first).min(self.second.len());
        WrittenBytes {
            first: &self.first[..first],
            second: &self.second[..second],
        }
    }

    /// Returns the records, oldest first.
    pub fn records(self) -> RingRecords<'r> {
        RingRecords {
            pieces: self,
            at: 0,
        }
    }
}

/// Bytes of a record's header.
const HEADER: usize = 8;

impl Ring {
    /// Makes the ring of an event, of `pages` pages, a power of two. One that is written backward goes on over what is
    /// old, and the event has to say so too ([`crate::RingAttr::backward`]).
    ///
    /// # Errors
    ///
    /// EPERM where an unprivileged process would lock more memory than it may (`kernel.perf_event_mlock_kb`), ENOMEM.
    pub fn of(event: RingEvent, pages: usize, backward: bool) -> io::Result<Ring> {
        let map = RingMemory::of(event.as_fd(), pages, !backward)?;
        Ok(Ring {
            event,
            map,
            backward,
            tail: 0,
        })
    }

    /// Returns the event whose ring it is.
    pub fn event(&self) -> &RingEvent {
        &self.event
    }

    /// Returns the bytes that it holds.
    pub fn size(&self) -> usize {
        self.map.size()
    }

    /// Returns how many bytes wait to be read; of a ring that is written backward, 0.
    pub fn waiting(&self) -> usize {
        if self.backward {
            return 0;
        }
        usize::try_from(self.map.head().wrapping_sub(self.tail)).unwrap_or(usize::MAX)
    }

    /// Returns the whole records that were written since the last that was taken, oldest first; of a ring that is
    /// written backward, none.
    pub fn written(&self) -> WrittenBytes<'_> {
        let length = self.waiting().min(self.map.size());
        let first = self.map.bytes(self.tail, length);
        let second = self.map.bytes(
            self.tail.wrapping_add(first.len() as u64),
            length - first.len(),
        );
        WrittenBytes { first, second }
    }

    /// Notifies the kernel that so many bytes of [`Ring::written`], whole records, were taken: their room is its own
    /// again.
    pub fn take(&mut self, bytes: usize) {
        if !self.backward && bytes > 0 {
            self.tail = self.tail.wrapping_add(bytes.min(self.waiting()) as u64);
            self.map.set_tail(self.tail);
        }
    }

    /// Lets the kernel write nothing to a ring that is written backward as long as what is returned lives, so that it
    /// can be read.
    ///
    /// # Errors
    ///
    /// Those of the kernel where it cannot pause, and InvalidInput for a ring that is written forward: of that one
    /// [`Ring::written`] can be read at any time.
    pub fn pause(&mut self) -> io::Result<PausedRing<'_>> {
        if !self.backward {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        call::pause(self.event.as_fd(), true)?;
        let head = self.map.head();
        Ok(PausedRing {
            ring: self,
            head,
            on: true,
        })
    }
}

/// A ring that is written backward, as it was when its output was paused. Its output goes on when this goes.
///
/// What happens meanwhile is counted as lost: the kernel says so in the ring, with the next record.
#[derive(Debug)]
pub struct PausedRing<'r> {
    // Borrowed mutably, so that nobody reads what the kernel writes again.
    ring: &'r mut Ring,
    head: u64,
    /// Whether it is paused yet.
    on: bool,
}

/// What a record that was begun before the pause may still write over: a record's 16 bits of size, and no more than
/// such a part of a small ring. The kernel says how far it has written when a record is complete.
const UNDER_WAY: usize = 1 << 16;
const PART_UNDER_WAY: usize = 4;

impl PausedRing<'_> {
    /// Returns the ring's event.
    pub fn event(&self) -> &RingEvent {
        &self.ring.event
    }

    /// Returns the bytes that the ring has.
    pub fn size(&self) -> usize {
        self.ring.map.size()
    }

    /// Returns whether more was written than can be read.
    pub fn wrapped(&self) -> bool {
        self.length() > self.readable()
    }

    /// Returns how many bytes were written since the beginning.
    fn length(&self) -> usize {
        usize::try_from(self.head.wrapping_neg()).unwrap_or(usize::MAX)
    }

    /// Returns how many bytes from the newest on may be read: not those where a record that is under way may still be
    /// written.
    fn readable(&self) -> usize {
        let size = self.size();
        self.length()
            .min(size - UNDER_WAY.min(size / PART_UNDER_WAY))
    }

    /// Returns the whole records, newest first.
    ///
    /// The head counts down from 0, and records lie above it, newest first, until those that it has gone over.
    pub fn records(&self) -> RingRecords<'_> {
        let length = self.readable();
        let first = self.ring.map.bytes(self.head, length);
        let behind = self.head.wrapping_add(first.len() as u64);
        let second = self.ring.map.bytes(behind, length - first.len());
        RingRecords {
            pieces: WrittenBytes { first, second },
            at: 0,
        }
    }

    /// Returns the record at a place that [`SplitRecord::place`] returned for this ring.
    pub fn record(&self, place: RingPlace) -> Option<SplitRecord<'_>> {
        let at = (place.0 as usize).checked_mul(HEADER)?;
        let mut records = self.records();
        records.at = at;
        records.next()
    }

    /// Lets the kernel write again.
    ///
    /// # Errors
    ///
    /// Fails when the kernel refuses.
    pub fn resume(mut self) -> io::Result<()> {
        self.on = false;
        call::pause(self.ring.event.as_fd(), false)
    }
}

impl Drop for PausedRing<'_> {
    fn drop(&mut self) {
        if self.on {
            // It was paused, so it can go on.
            let _ = call::pause(self.ring.event.as_fd(), false);
        }
    }
}

/// The records of a ring: of one that is written backward, newest first.
#[derive(Debug, Clone)]
pub struct RingRecords<'r> {
    pieces: WrittenBytes<'r>,
    at: usize,
}

/// A record: two pieces where the ring begins anew within it. Its header is never cut.
#[derive(Debug, Clone, Copy)]
pub struct SplitRecord<'r> {
    /// Its beginning.
    pub first: &'r [u8],
    /// The rest; often none.
    pub second: &'r [u8],
    place: RingPlace,
}

/// Where a record stands in a ring that is paused: half as long as an address, since there is one of each record that
/// is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingPlace(u32);

impl SplitRecord<'_> {
    /// Returns where it stands.
    pub fn place(&self) -> RingPlace {
        self.place
    }

    /// Returns its number (`PERF_RECORD_*`).
    pub fn kind(&self) -> u32 {
        match self.first {
            [a, b, c, d, ..] => u32::from_ne_bytes([*a, *b, *c, *d]),
            _ => 0,
        }
    }

    /// Returns its bytes, with its header.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the word of 8 bytes that stands at a place, a multiple of 8 as in all records.
    pub fn word(&self, at: usize) -> Option<u64> {
        let word = match at.checked_sub(self.first.len()) {
            None => self.first.get(at..at + HEADER),
            Some(at) => self.second.get(at..at + HEADER),
        };
        Some(u64::from_ne_bytes(word?.try_into().ok()?))
    }
}

impl<'r> Iterator for RingRecords<'r> {
    type Item = SplitRecord<'r>;

    fn next(&mut self) -> Option<SplitRecord<'r>> {
        let WrittenBytes { first, second } = self.pieces;
        let left = (first.len() + second.len()).checked_sub(self.at)?;
        // Records are aligned to 8 bytes, so that a header does not wrap.
        let (piece, at, rest) = match self.at.checked_sub(first.len()) {
            None => (first, self.at, second),
            Some(at) => (second, at, &[][..]),
        };
        let header = piece.get(at..at + HEADER)?;
        let size = usize::from(u16::from_ne_bytes([
            header[SIZE_PLACE],
            header[SIZE_PLACE + 1],
        ]));
        if size < HEADER || size > left {
            return None;
        }
        // Rings of 32 GiB and more cannot be made.
        let place = RingPlace(u32::try_from(self.at / HEADER).ok()?);
        self.at += size;
        let here = size.min(piece.len() - at);
        Some(SplitRecord {
            first: &piece[at..at + here],
            second: rest.get(..size - here)?,
            place,
        })
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.resize(usize::from(size), 0xff);
        bytes
    }

    #[test]
    fn records_are_walked_wherever_the_ring_cuts_them_up_to_one_that_is_not_whole() {
        let sizes = [48, 24, 8, 56];
        let all = sizes.map(|size| record(9, size)).concat();
        for whole in (0..=all.len()).step_by(8) {
            for cut in (0..=whole).step_by(8) {
                let (first, second) = all[..whole].split_at(cut);
                let walk = RingRecords {
                    pieces: WrittenBytes { first, second },
                    at: 0,
                };
                let found: Vec<usize> = walk.map(|one| one.len()).collect();
                let mut end = 0;
                let fits = |size: &&u16| {
                    end += usize::from(**size);
                    end <= whole
                };
                let expected: Vec<usize> = sizes
                    .iter()
                    .take_while(fits)
                    .map(|size| usize::from(*size))
                    .collect();
                assert_eq!(found, expected, "{whole} bytes, cut at {cut}");
            }
        }
        let (first, second) = all.split_at(32);
        let mut walk = RingRecords {
            pieces: WrittenBytes { first, second },
            at: 0,
        };
        let one = walk.next().expect("a record");
        assert_eq!((one.kind(), one.first.len(), one.second.len()), (9, 32, 16));
        assert_eq!(
            (one.word(24), one.word(40), one.word(48)),
            (Some(u64::MAX), Some(u64::MAX), None)
        );
    }

    #[test]
    fn samples_are_counted_wherever_the_ring_cuts_them() {
        let all = [record(9, 48), record(3, 24), record(9, 8), record(9, 56)].concat();
        for cut in (0..=all.len()).step_by(8) {
            let (first, second) = all.split_at(cut);
            assert_eq!(WrittenBytes { first, second }.samples(), 3, "cut at {cut}");
        }
        // A record that says it has no size ends nothing.
        let zero = [record(9, 8), vec![0; 8], record(9, 16)].concat();
        let (first, second) = (zero.as_slice(), &[][..]);
        assert_eq!(WrittenBytes { first, second }.samples(), 2);
    }
}
