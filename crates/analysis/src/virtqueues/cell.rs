//! Which events the numbers of a row are made of, while the walk goes on.

use super::row::{QueueKey, RowParts, VirtqueueRow, WriteKey};

/// Which number of a virtqueue it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtqueueColumn {
    /// Buffers that were added, requests that were issued.
    Added,
    /// Buffers that came back, requests that were completed.
    Used,
    /// Notifications of the device.
    Notifications,
    /// Interrupts of the guest.
    Interrupts,
    /// Frames that the guest sent, requests that it wrote.
    Sent,
    /// Frames that it received, requests that it read.
    Received,
}

/// Something that an event was counted as.
#[derive(Debug, Clone)]
pub struct CountedBuffers {
    /// Which of its numbers.
    pub column: VirtqueueColumn,
    /// How many.
    pub count: u64,
    /// Their bytes; `None` where the event does not say how many there are.
    pub bytes: Option<u64>,
    pub(super) part: CountedPart,
}

/// The queue or the register.
#[derive(Debug, Clone)]
pub(super) enum CountedPart {
    Queue(QueueKey),
    Write(WriteKey, bool),
}

impl CountedBuffers {
    /// Returns whether it was counted in a row of a report of the same recording.
    pub fn is_of(&self, row: &VirtqueueRow) -> bool {
        match (&self.part, &row.parts) {
            (CountedPart::Queue(key), RowParts::Queue(of)) => key == of,
            (CountedPart::Write(key, fast), RowParts::Writes(all)) => all.contains(&(*key, *fast)),
            _ => false,
        }
    }
}

/// What was counted since somebody asked, if anybody does: else nothing is kept.
#[derive(Debug, Default)]
pub(super) struct CountedList {
    list: Option<Vec<CountedBuffers>>,
}

impl CountedList {
    /// Begins to keep it.
    pub(super) fn begin(&mut self) {
        self.list.get_or_insert_default();
    }

    /// Adds what an event was counted as: how many, and their bytes.
    pub(super) fn add(
        &mut self,
        column: VirtqueueColumn,
        (count, bytes): (u64, Option<u64>),
        part: impl FnOnce() -> CountedPart,
    ) {
        if let Some(list) = self.list.as_mut().filter(|_| count > 0) {
            list.push(CountedBuffers {
                column,
                count,
                bytes,
                part: part(),
            });
        }
    }

    /// Returns what was added.
    pub(super) fn take(&mut self) -> Vec<CountedBuffers> {
        self.list.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
