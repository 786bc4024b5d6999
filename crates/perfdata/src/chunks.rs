//! Pieces of the decompressed stream, and copies of records, kept while records in them wait for the merge.

use std::collections::VecDeque;
use std::sync::Arc;
use tracefmt::index_of;

/// One piece, and how many runs of records lie in it.
#[derive(Debug)]
struct ScanChunk {
    data: Arc<Vec<u8>>,
    runs: u32,
}

/// The pieces that are still needed, numbered from 1 in the order of the stream. Behind the highest number comes 1
/// again: what is recorded for months has more pieces than there are numbers.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// Number of the first piece in the list.
    first: u32,
    list: VecDeque<ScanChunk>,
    /// Bytes of all pieces.
    held: usize,
    /// Whether the last piece is still being cut into records.
    cutting: bool,
    /// Memory of pieces that are gone, for the next ones, and whether anybody asks for it.
    spare: Vec<Vec<u8>>,
    reuses: bool,
}

/// Pieces whose memory is kept.
const MAX_SPARE: usize = 64;

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks {
            first: 1,
            list: VecDeque::new(),
            held: 0,
            cutting: false,
            spare: Vec::new(),
            reuses: false,
        }
    }
}

impl Chunks {
    /// Adds a piece, which is now being cut into records, and returns its number.
    pub(crate) fn begin(&mut self, data: &Arc<Vec<u8>>) -> u32 {
        self.held += data.capacity();
        let place = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let number = self.first.wrapping_add(place);
        self.list.push_back(ScanChunk {
            data: Arc::clone(data),
            runs: 0,
        });
        self.cutting = true;
        // None has the number 0.
        match number < self.first {
            true => number.wrapping_add(1),
            false => number,
        }
    }

    /// Adds a piece whose bytes are still to come, with [`Chunks::close`], and returns its number.
    pub(crate) fn open(&mut self) -> u32 {
        self.begin(&Arc::default())
    }

    /// Gives the piece that was opened its bytes.
    pub(crate) fn close(&mut self, data: Vec<u8>) {
        if let Some(last) = self.list.back_mut() {
            self.held += data.capacity();
            last.data = Arc::new(data);
        }
        self.end();
    }

    /// Returns memory for so many bytes of a piece: that of one that is gone, if there is any.
    pub(crate) fn spare(&mut self, size: usize) -> Vec<u8> {
        self.reuses = true;
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.reserve(size);
        bytes
    }

    /// The piece added last is cut: it goes when no run lies in it.
    pub(crate) fn end(&mut self) {
        self.cutting = false;
        if let Some(last) = self.list.len().checked_sub(1) {
            self.free(last);
        }
    }

    /// Returns a piece.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Arc<Vec<u8>>> {
        Some(&self.list.get(self.index(number)?)?.data)
    }

    /// Notes that a run begins in a piece.
    pub(crate) fn used(&mut self, number: u32) {
        if let Some(chunk) = self.index(number).and_then(|at| self.list.get_mut(at)) {
            chunk.runs += 1;
        }
    }

    /// Notes that a run is done with.
    pub(crate) fn unused(&mut self, number: u32) {
        let Some(at) = self.index(number) else {
            return;
        };
        if let Some(chunk) = self.list.get_mut(at) {
            chunk.runs = chunk.runs.saturating_sub(1);
            self.free(at);
        }
    }

    /// Returns how many bytes the pieces take up.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    fn index(&self, number: u32) -> Option<usize> {
        let at = number.wrapping_sub(self.first);
        let at = match number < self.first {
            // The number 0 was passed over.
            true => at.wrapping_sub(1),
            false => at,
        };
        (number > 0).then_some(index_of(at))
    }

    /// Gives the bytes of a piece back if nothing needs them.
    fn free(&mut self, at: usize) {
        let being_cut = self.cutting && at + 1 == self.list.len();
        let Some(chunk) = self.list.get_mut(at).filter(|c| c.runs == 0 && !being_cut) else {
            return;
        };
        self.held -= chunk.data.capacity();
        if let Some(bytes) = Arc::into_inner(std::mem::take(&mut chunk.data))
            && self.reuses
            && self.spare.len() < MAX_SPARE
        {
            self.spare.push(bytes);
        }
        while !self.cutting || self.list.len() > 1 {
            match self.list.front() {
                Some(front) if front.runs == 0 => {
                    self.list.pop_front();
                    self.first = self.first.wrapping_add(1).max(1);
                }
                _ => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_go_with_their_last_run() {
        let mut chunks = Chunks::default();
        let piece = |len: usize| Arc::new(vec![0; len]);
        let one = chunks.begin(&piece(10));
        chunks.used(one);
        chunks.used(one);
        chunks.end();
        let two = chunks.begin(&piece(20));
        chunks.used(two);
        chunks.unused(two);
        assert!(
            chunks.get(two).is_some_and(|d| d.len() == 20),
            "still being cut"
        );
        chunks.end();
        assert_eq!((one, two, chunks.held()), (1, 2, 10));
        chunks.unused(one);
        assert_eq!(chunks.held(), 10);
        chunks.unused(one);
        assert_eq!(chunks.held(), 0);
        let three = chunks.begin(&piece(5));
        chunks.end();
        assert_eq!((three, chunks.held()), (3, 0), "without any run");
        assert!(chunks.list.is_empty());
    }

    #[test]
    fn behind_the_highest_number_comes_the_first() {
        let mut chunks = Chunks {
            first: u32::MAX - 1,
            ..Chunks::default()
        };
        let numbers: Vec<u32> = (1..=5usize)
            .map(|len| {
                let number = chunks.begin(&Arc::new(vec![0; len]));
                chunks.used(number);
                chunks.end();
                number
            })
            .collect();
        assert_eq!(numbers, [u32::MAX - 1, u32::MAX, 1, 2, 3]);
        assert!(chunks.get(0).is_none());
        for (number, len) in numbers.iter().zip(1..) {
            assert_eq!(chunks.get(*number).map(|data| data.len()), Some(len));
            chunks.unused(*number);
            assert!(chunks.get(*number).is_none_or(|data| data.is_empty()));
        }
        assert!(chunks.list.is_empty());
        assert_eq!((chunks.first, chunks.held()), (4, 0));
    }
}
