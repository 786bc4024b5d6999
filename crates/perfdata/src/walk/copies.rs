//! Copies of records that wait for the merge.
//!
//! Where the input is read by pieces, what waits would have to be read a second time when it goes out, and its bytes
//! come from memory that the processor has not seen for long. So they are copied where they are found, as long as that
//! takes little memory: into chunks, as those that were unpacked.

use std::ops::Range;

use crate::chunks::Chunks;

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;
/// Bytes of all copies, at most: what would be beyond is read again.
const MAX_COPIED: usize = 12 << 20;

/// The chunk that records are copied to.
#[derive(Debug, Default)]
pub(super) struct RecordCopies {
    /// Whether there are any, and room for more of them.
    on: bool,
    room: bool,
    /// Its number, 0 for none.
    number: u32,
    bytes: Vec<u8>,
}

impl RecordCopies {
    pub(super) fn new(on: bool) -> RecordCopies {
        RecordCopies {
            on,
            room: on,
            ..RecordCopies::default()
        }
    }

    /// Copies the record at a place. Returns its buffer and its place in it; `None` where it is to stay in the input.
    #[inline(always)]
    pub(super) fn keep(
        &mut self,
        data: &[u8],
        record: Range<usize>,
        chunks: &mut Chunks,
    ) -> Option<(u32, usize)> {
        if !self.room {
            return None;
        }
        let record = data.get(record)?;
        if (self.number == 0 || self.bytes.len() + record.len() > CHUNK) && !self.begin(chunks) {
            return None;
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(record);
        Some((self.number, at))
    }

    #[inline(never)]
    fn begin(&mut self, chunks: &mut Chunks) -> bool {
        self.settle(chunks);
        self.room = chunks.held() + CHUNK <= MAX_COPIED;
        if !self.room {
            return false;
        }
        self.bytes = chunks.spare(CHUNK);
        self.number = chunks.open();
        true
    }

    /// Copies no more: what comes is in pieces already.
    pub(super) fn end(&mut self, chunks: &mut Chunks) {
        self.settle(chunks);
        (self.on, self.room) = (false, false);
    }

    /// What goes out makes room.
    pub(super) fn has_room(&mut self) {
        self.room = self.on;
    }

    /// Lets what was copied be read. The next record begins another chunk.
    pub(super) fn settle(&mut self, chunks: &mut Chunks) {
        if self.number != 0 {
            chunks.close(std::mem::take(&mut self.bytes));
            self.number = 0;
        }
    }
}
