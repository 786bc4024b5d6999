//! A walk under way, and what it leaves behind.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use event::{Kind, Quality};

use crate::RecordingBytes;
use crate::progress::{ActivityGuard, ReadActivity};

/// What a walk leaves behind.
#[derive(Debug, Clone, Default)]
pub struct WalkOutcome {
    /// What has to be known of the recording.
    pub quality: Quality,
    /// How many events of each type were read, with its kind, by the reader's own tally, whoever wanted them: the
    /// position is [`event::EventType::index`]. What nobody wanted may be missing.
    pub read: Vec<(Kind, u64)>,
    /// Resolution of the time stamps in nanoseconds, as the walk found it.
    pub resolution_ns: u64,
}

/// Lets pages go that were read, says how far reading is, and looks from time to time whether the file is still as long
/// as it was.
#[derive(Debug)]
pub(crate) struct WalkWatch<'r> {
    recording: &'r RecordingBytes,
    length: usize,
    events: Cell<u32>,
    cut: Cell<bool>,
    way: ActivityGuard<'r>,
    /// The blocks of the recording whose beginning was read, if anybody wants to know. Pages are let go in any order,
    /// and again where they were needed again.
    read: RefCell<Vec<bool>>,
    /// Whether blocks were reported, and what was counted meanwhile was not.
    due: Cell<bool>,
    /// What was reported of events: by the number of their kind, and of those that were lost.
    counts: RefCell<Vec<u64>>,
    lost: Cell<u64>,
}

/// Events between two looks: asking the system costs as much as some twenty events do. What was read of a file that
/// became shorter is zeros, of which no event is made, so that it may take some time to see it.
const EVENTS: u32 = 1 << 14;
/// Bytes of a block.
const BLOCK: usize = 1 << 20;

impl<'r> WalkWatch<'r> {
    pub(crate) fn new(recording: &'r RecordingBytes, length: usize) -> WalkWatch<'r> {
        let blocks = match recording.progress() {
            Some(_) => length.div_ceil(BLOCK),
            None => 0,
        };
        WalkWatch {
            recording,
            length,
            events: Cell::new(0),
            cut: Cell::new(false),
            way: ActivityGuard::begin(
                recording.progress(),
                ReadActivity::Reading,
                Some(length as u64),
            ),
            read: RefCell::new(vec![false; blocks]),
            due: Cell::new(false),
            counts: RefCell::default(),
            lost: Cell::new(0),
        }
    }

    /// Watches a walk over a part, whose progress is not reported.
    pub(crate) fn of_part(recording: &'r RecordingBytes, length: usize) -> WalkWatch<'r> {
        WalkWatch {
            recording,
            length,
            events: Cell::new(0),
            cut: Cell::new(false),
            way: ActivityGuard::begin(None, ReadActivity::Reading, None),
            read: RefCell::default(),
            due: Cell::new(false),
            counts: RefCell::default(),
            lost: Cell::new(0),
        }
    }

    /// Lets pages go.
    pub(crate) fn release(&self, range: Range<usize>) {
        self.tell(&range);
        self.recording.release(range);
        self.look();
    }

    /// Reports the blocks that begin in a range, each once.
    fn tell(&self, range: &Range<usize>) {
        let mut read = self.read.borrow_mut();
        let mut more = 0;
        for block in range.start.div_ceil(BLOCK)..range.end.div_ceil(BLOCK) {
            if let Some(read) = read.get_mut(block).filter(|read| !**read) {
                *read = true;
                more += BLOCK.min(self.length - block * BLOCK);
            }
        }
        self.due.set(self.due.get() || more > 0);
        self.way.read(more as u64);
    }

    /// Whether somebody wants to know what was counted: once for each time that blocks were reported.
    #[inline]
    pub(crate) fn wants_counts(&self) -> bool {
        self.due.get()
    }

    /// Reports what was counted since the last time, of all events up to now: the name of each kind, always in the same
    /// order, and how many; and how many were lost.
    pub(crate) fn counted<'k>(&self, kinds: impl Iterator<Item = (&'k str, u64)>, lost: u64) {
        if !self.due.replace(false) {
            return;
        }
        let mut before = self.counts.borrow_mut();
        let mut more = Vec::new();
        for (at, (name, count)) in kinds.enumerate() {
            if before.len() <= at {
                before.push(0);
            }
            let reported = std::mem::replace(&mut before[at], count);
            if count > reported {
                more.push((name, count - reported));
            }
        }
        let reported = self.lost.replace(lost);
        self.way.counted(&more, lost.saturating_sub(reported));
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
