//! What the kernel has written.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::call;
use crate::event::Event;
use crate::map::Map;

/// The ring of one CPU.
#[derive(Debug)]
pub struct Ring {
    event: Event,
    map: Map,
    backward: bool,
    /// How far it was read.
    tail: u64,
}

/// What was written: two pieces, since a ring has an end. A record may begin in the first and end in the second.
#[derive(Debug, Clone, Copy)]
pub struct Written<'r> {
    /// The older bytes.
    pub first: &'r [u8],
    /// The newer ones; often none.
    pub second: &'r [u8],
}

impl Written<'_> {
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
                let size = u16::from_ne_bytes([header[SIZE_AT], header[SIZE_AT + 1]]);
                count += u64::from(kind == SAMPLE);
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

/// Bytes of a record's header, and where its size stands in it.
const HEADER: usize = 8;
const SIZE_AT: usize = 6;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;

impl Ring {
    /// Makes the ring of an event, of `pages` pages, a power of two. One that is written backward goes on over what is old, and the
    /// event has to say so too ([`crate::Attr::backward`]).
    ///
    /// # Errors
    ///
    /// EPERM where an unprivileged process would lock more memory than it may (`kernel.perf_event_mlock_kb`), ENOMEM.
    pub fn of(event: Event, pages: usize, backward: bool) -> io::Result<Ring> {
        let map = Map::of(event.as_fd(), pages, !backward)?;
        Ok(Ring {
            event,
            map,
            backward,
            tail: 0,
        })
    }

    /// Returns the event whose ring it is.
    pub fn event(&self) -> &Event {
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

    /// Returns the whole records that were written since the last that was taken, oldest first; of a ring that is written
    /// backward, none.
    pub fn written(&self) -> Written<'_> {
        let length = self.waiting().min(self.map.size());
        let first = self.map.bytes(self.tail, length);
        let second = self.map.bytes(
            self.tail.wrapping_add(first.len() as u64),
            length - first.len(),
        );
        Written { first, second }
    }

    /// Tells the kernel that so many bytes of [`Ring::written`], whole records, were taken: their room is its own again.
    pub fn take(&mut self, bytes: usize) {
        if !self.backward && bytes > 0 {
            self.tail = self.tail.wrapping_add(bytes.min(self.waiting()) as u64);
            self.map.set_tail(self.tail);
        }
    }

    /// Hands out what a ring that is written backward holds now, newest record first, while nothing is written to it. The oldest
    /// record that was begun to be overwritten is left out.
    ///
    /// # Errors
    ///
    /// Those of `take`, and of the kernel where it cannot pause.
    pub fn look<E: From<io::Error>>(
        &mut self,
        take: impl FnOnce(Written<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        call::pause(self.event.as_fd(), true)?;
        let head = self.map.head();
        let length = self.whole_records(head);
        let first = self.map.bytes(head, length);
        let second = self
            .map
            .bytes(head.wrapping_add(first.len() as u64), length - first.len());
        let taken = take(Written { first, second });
        call::pause(self.event.as_fd(), false)?;
        taken
    }

    /// Returns how many bytes from the head on are whole records. The head counts down from 0, and records lie above it, newest
    /// first, until those that it has gone over.
    fn whole_records(&self, head: u64) -> usize {
        let size = self.map.size();
        let written = usize::try_from(head.wrapping_neg()).unwrap_or(usize::MAX);
        let limit = written.min(size);
        let mut at = 0;
        while at + HEADER <= limit {
            let header = self.map.bytes(head.wrapping_add(at as u64), HEADER);
            // Records are aligned to 8 bytes, so that a header does not wrap.
            let Some(record) = header.get(SIZE_AT..HEADER) else {
                break;
            };
            let record = usize::from(u16::from_ne_bytes([record[0], record[1]]));
            if record < HEADER || at + record > limit {
                break;
            }
            at += record;
        }
        at
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
    fn samples_are_counted_wherever_the_ring_cuts_them() {
        let all = [record(9, 48), record(3, 24), record(9, 8), record(9, 56)].concat();
        for cut in (0..=all.len()).step_by(8) {
            let (first, second) = all.split_at(cut);
            assert_eq!(Written { first, second }.samples(), 3, "cut at {cut}");
        }
        // A record that says it has no size ends nothing.
        let zero = [record(9, 8), vec![0; 8], record(9, 16)].concat();
        let (first, second) = (zero.as_slice(), &[][..]);
        assert_eq!(Written { first, second }.samples(), 2);
    }
}
