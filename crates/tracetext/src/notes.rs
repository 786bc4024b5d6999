//! What was odd in a text: counted line by line, reported once at the end.

use event::Quality;

use crate::summary::UnreadableLine;

/// Something that happened a number of times, with the line where it first did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Occurrences {
    pub count: u64,
    pub first: u64,
}

impl Occurrences {
    pub(crate) fn add(&mut self, line: u64) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }

    /// Returns `3 lines` and the like.
    fn of(&self, one: &str, many: &str) -> String {
        words::counted(self.count, one, many)
    }
}

/// Places that are kept of lines not understood.
const MAX_PLACES: usize = 16;

/// What was odd in a text.
#[derive(Debug, Default)]
pub(crate) struct TextNotes {
    /// Events lost where it happened.
    pub lost_ring: u64,
    /// Events lost by the recorder's sum, which counts the same again.
    pub lost_sum: u64,
    /// Times the text says that events were lost, but not how many.
    pub lost_uncounted: Occurrences,
    /// Times perf's own warning says that it lost data.
    pub lost_said: Occurrences,
    /// Entries of the kernel's buffer that newer ones overwrote.
    pub overwritten: u64,
    /// Entries that the kernel's header says the buffer holds.
    pub held: u64,
    /// KVM's events without anything readable in them.
    pub unread_data: Occurrences,
    /// Places where lines were left out.
    pub elisions: Occurrences,
    /// Lines that were broken and put together.
    pub joined: Occurrences,
    /// Events earlier than those before them.
    pub backwards: Occurrences,
    /// Lines with bytes that are no UTF-8.
    pub odd_text: Occurrences,
    /// Events of the kernel's option `raw`.
    pub raw_events: Occurrences,
    pub not_understood: Occurrences,
    pub places: Vec<UnreadableLine>,
}

impl TextNotes {
    /// Notes a line that was not understood.
    pub(crate) fn not_understood(&mut self, line: u64, offset: u64) {
        self.not_understood.add(line);
        if self.places.len() < MAX_PLACES {
            self.places.push(UnreadableLine { line, offset });
        }
    }

    /// Notes that events were lost here; `None` when their number is not recorded.
    pub(crate) fn lost(&mut self, count: Option<u64>, line: u64) {
        // At least one.
        self.lost_ring = self.lost_ring.saturating_add(count.unwrap_or(1));
        if count.is_none() {
            self.lost_uncounted.add(line);
        }
    }

    /// Returns all notes. `events` were read, `ticks` says that their times have no decimal point.
    pub(crate) fn quality(&self, events: u64, ticks: bool) -> Quality {
        let lost = self.lost_ring.max(self.lost_sum);
        let mut quality = Quality {
            lost_events: lost.saturating_add(self.overwritten),
            ..Quality::default()
        };
        let mut warn = |times: &Occurrences, text: &dyn Fn(&Occurrences) -> String| {
            if times.count > 0 {
                quality.warn(text(times));
            }
        };
        warn(&self.lost_uncounted, &|t| {
            let times = t.of("time", "times");
            format!(
                "The text says {times} that events were lost, but not how many (first in line {}); one is \
                 counted for each.",
                t.first
            )
        });
        warn(&self.lost_said, &|t| {
            let line = t.first;
            format!("In line {line} perf says that it lost data; how many events is not told.")
        });
        warn(&self.not_understood, &|t| {
            let lines = t.of("line was", "lines were");
            format!("{lines} not understood (first: line {}).", t.first)
        });
        warn(&self.unread_data, &|t| {
            let events = t.of("KVM event has", "KVM events have");
            format!(
                "{events} no fields that could be read (first: line {}).",
                t.first
            )
        });
        warn(&self.elisions, &|t| {
            let places = t.of("place", "places");
            format!(
                "Lines were left out of the text in {places} (first: line {}); what is measured across a gap \
                 is wrong.",
                t.first
            )
        });
        warn(&self.joined, &|t| {
            let lines = t.of("line was", "lines were");
            format!(
                "{lines} broken and put together again (first: line {}).",
                t.first
            )
        });
        warn(&self.backwards, &|t| {
            let events = t.of("event is", "events are");
            format!(
                "{events} earlier than the one before (first: line {}): the text is not in the order of time.",
                t.first
            )
        });
        warn(&self.odd_text, &|t| {
            let lines = t.of("line holds", "lines hold");
            format!("{lines} bytes that are no UTF-8 (first: line {}).", t.first)
        });
        if self.raw_events.count > 0 {
            quality.warn(
                "The kernel's option raw was on: events have numbers and no fields. Print the buffer again \
                 with noraw.",
            );
        } else if ticks {
            quality.warn(
                "Times are printed without a decimal point: nanoseconds of the clock boot, or ticks of \
                 another clock. They are taken for nanoseconds.",
            );
        }
        if self.held > events + self.not_understood.count {
            quality.truncated = true;
            let held = self.held;
            quality.warn(format!(
                "The header tells of {held} entries, and the text holds {events}."
            ));
        }
        quality
    }
}
