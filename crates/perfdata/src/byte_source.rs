//! Reading the input's bytes into memory, where that costs less than to look at them in a map.
//!
//! The first look at a page of a map costs a page fault for 64 KiB at most, and as much again when it is let go. How
//! much that is depends on how the file lies in the page cache; what reading costs does so less, and it takes less
//! memory. Whoever opens the file finds out which is cheaper.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use crate::record::{HEADER, PerfRecordHeader};

/// The input of a recording, for whoever reads it by pieces.
pub trait ByteSource: Debug + Sync {
    /// Reads what there is from a byte on. Returns how much that was: 0 where nothing is, or it cannot be read.
    fn read_at(&self, at: u64, into: &mut [u8]) -> usize;
}

/// A piece of the input in memory.
#[derive(Debug, Default)]
pub(crate) struct ByteWindow {
    bytes: Vec<u8>,
    start: usize,
}

impl ByteWindow {
    /// Returns the bytes, and where the first of them is in the input.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> (&[u8], usize) {
        (&self.bytes, self.start)
    }

    /// Returns whether it has so many bytes from a place on.
    #[inline(always)]
    pub(crate) fn has(&self, at: usize, count: usize) -> bool {
        at >= self.start && at.saturating_add(count) <= self.start + self.bytes.len()
    }

    /// Returns whether it has a whole record at a place.
    #[inline(always)]
    pub(crate) fn has_record<const BIG: bool>(&self, at: usize) -> bool {
        let header = PerfRecordHeader::read::<BIG>(&self.bytes, at.wrapping_sub(self.start));
        header.is_some_and(|header| self.has(at, header.size.max(HEADER)))
    }

    /// Makes it begin at a place. It has `size` bytes then, or as many as there are.
    #[inline(never)]
    pub(crate) fn fill(&mut self, source: &dyn ByteSource, at: usize, size: usize) {
        self.bytes.resize(size, 0);
        self.start = at;
        let mut filled = 0;
        while let Some(rest) = self.bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let more = source.read_at((at + filled) as u64, rest);
            if more == 0 {
                break;
            }
            filled += more.min(rest.len());
        }
        self.bytes.truncate(filled);
    }
}

/// Bytes that a scan reads at once, and pieces that are kept behind it. What waits is copied (`walk/copies.rs`), and
/// read again where copies would be too many. Pieces are few: memory used in turns leaves the processor's caches.
const PIECE: usize = 256 << 10;
const KEPT: usize = 4;

/// The pieces of the input that were scanned last.
#[derive(Debug, Default)]
pub(crate) struct ScannedPieces {
    /// In the order of the input; the last one is where the scan is.
    kept: VecDeque<Arc<ByteWindow>>,
}

impl ScannedPieces {
    /// Returns the piece where the scan is.
    pub(crate) fn now(&self) -> Arc<ByteWindow> {
        self.kept.back().map(Arc::clone).unwrap_or_default()
    }

    /// Reads the next piece, which begins at a place and has `most` bytes at most. The memory of one that nobody needs
    /// any more is used again.
    pub(crate) fn read(
        &mut self,
        source: &dyn ByteSource,
        at: usize,
        most: usize,
    ) -> Arc<ByteWindow> {
        let mut window = match self.kept.len() >= KEPT {
            true => self
                .kept
                .pop_front()
                .and_then(Arc::into_inner)
                .unwrap_or_default(),
            false => ByteWindow::default(),
        };
        window.fill(source, at, PIECE.min(most));
        let window = Arc::new(window);
        self.kept.push_back(Arc::clone(&window));
        window
    }

    /// Returns the piece that has so many bytes from a place on, if one is kept.
    pub(crate) fn with(&self, at: usize, count: usize) -> Option<&Arc<ByteWindow>> {
        let behind = self.kept.partition_point(|one| one.start <= at);
        let found = self.kept.get(behind.checked_sub(1)?)?;
        found.has(at, count).then_some(found)
    }
}
