//! A walk under way, and what it leaves behind.

use std::cell::Cell;
use std::ops::Range;

use event::Quality;

use crate::Recording;

/// What a walk leaves behind.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What the recording lacks.
    pub quality: Quality,
    /// Resolution of the time stamps in nanoseconds, as the walk found it.
    pub resolution_ns: u64,
}

/// Lets pages go that were read, and looks from time to time whether the file is still as long as it was.
pub(crate) struct Watch<'r> {
    recording: &'r Recording,
    length: usize,
    events: Cell<u32>,
    cut: Cell<bool>,
}

/// Events between two looks: asking the system costs as much as some events do.
const EVENTS: u32 = 256;

impl<'r> Watch<'r> {
    pub(crate) fn new(recording: &'r Recording, length: usize) -> Watch<'r> {
        Watch {
            recording,
            length,
            events: Cell::new(0),
            cut: Cell::new(false),
        }
    }

    /// Lets pages go.
    pub(crate) fn release(&self, range: Range<usize>) {
        self.recording.release(range);
        self.look();
    }

    /// Whether the file is shorter now, as far as is known.
    #[cold]
    pub(crate) fn look(&self) -> bool {
        let shorter = || self.recording.cut_at().is_some_and(|at| at < self.length);
        self.cut.set(self.cut.get() || shorter());
        self.cut.get()
    }

    /// Takes note of an event, and returns whether it is to be the last one.
    #[inline]
    pub(crate) fn event(&self) -> bool {
        let events = self.events.get().wrapping_add(1);
        self.events.set(events);
        if events.is_multiple_of(EVENTS) {
            self.look();
        }
        self.cut.get()
    }
}
