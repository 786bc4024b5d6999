//! What was odd in a text: counted line by line, and said once at the end.

use doubts::DoubtKind;
use event::{CpuLosses, Quality};

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
}

/// Places that are kept of lines not understood.
const MAX_PLACES: usize = 16;

/// What was odd in a text.
#[derive(Debug, Default)]
pub(crate) struct TextNotes {
    /// Events lost where it happened.
    pub lost_ring: u64,
    /// Those of them of which the text says the CPU.
    pub losses: CpuLosses,
    /// Events lost by the recorder's sum, which counts the same again.
    pub lost_sum: u64,
    /// Times the text says that events were lost, but not how many.
    pub lost_uncounted: Occurrences,
    /// Times perf's own warning says that it lost data.
    pub lost_said: Occurrences,
    /// Entries of the kernel's buffer that newer ones overwrote: all of a CPU's are older than its first one here
    /// (`rb_handle_head_page`, `kernel/trace/ring_buffer.c`).
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
    /// Lines of the function_graph tracer without a time of day or a CPU.
    pub untimed_graph: Occurrences,
    /// Lines of buffers beyond those that are kept apart.
    pub sources_merged: Occurrences,
    /// Events without a CPU.
    pub cpuless: u64,
    /// Events of the kernel's option `raw`.
    pub raw_events: Occurrences,
    pub not_understood: Occurrences,
    /// Lines that look like events and were not read.
    pub unread_events: Occurrences,
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

    /// Returns what has to be known of the text. `events` were read, `ticks` says that their times have no decimal
    /// point.
    pub(crate) fn quality(&self, events: u64, ticks: bool) -> Quality {
        let lost = self.lost_ring.max(self.lost_sum);
        let mut quality = Quality {
            lost_events: lost,
            losses: self.losses.clone(),
            ..Quality::default()
        };
        let mut raise = |times: &Occurrences, kind: fn(u64, u64) -> DoubtKind| {
            if times.count > 0 {
                quality.raise(kind(times.count, times.first));
            }
        };
        raise(&self.lost_uncounted, |times, line| {
            DoubtKind::LossUncountedText { times, line }
        });
        raise(&self.lost_said, |_, line| DoubtKind::LossMentioned { line });
        raise(&self.not_understood, |lines, line| {
            DoubtKind::LinesNotUnderstood { lines, line }
        });
        raise(&self.unread_data, |events, line| {
            DoubtKind::FieldsUnreadable { events, line }
        });
        raise(&self.elisions, |places, line| DoubtKind::LinesLeftOut {
            places,
            line,
        });
        raise(&self.joined, |lines, line| DoubtKind::LinesJoined {
            lines,
            line,
        });
        raise(&self.backwards, |events, line| DoubtKind::TextBackwards {
            events,
            line,
        });
        raise(&self.odd_text, |lines, line| DoubtKind::OddBytes {
            lines,
            line,
        });
        raise(&self.untimed_graph, |lines, line| DoubtKind::GraphUntimed {
            lines,
            line,
        });
        raise(&self.sources_merged, |lines, line| {
            DoubtKind::BuffersMerged { lines, line }
        });
        if self.cpuless > 0 {
            quality.raise(DoubtKind::CpusNotPrinted {
                events: self.cpuless,
                of: events,
            });
        }
        if self.raw_events.count > 0 {
            quality.raise(DoubtKind::RawOption);
        } else if ticks {
            quality.raise(DoubtKind::TimesWithoutPoint);
        }
        if self.unread_events.count > 0 {
            let lines = events.saturating_add(self.unread_events.count);
            let line = self.unread_events.first;
            quality.raise(match events.saturating_mul(2) < lines {
                true => DoubtKind::EventsMostlyUnread {
                    read: events,
                    lines,
                    line,
                },
                false => DoubtKind::EventsPartlyUnread {
                    read: events,
                    lines,
                    line,
                },
            });
        }
        if self.held > events + self.not_understood.count {
            quality.raise(DoubtKind::EntriesMissing {
                header: self.held,
                found: events,
            });
        }
        if self.overwritten > 0 {
            quality.raise(DoubtKind::OlderOverwritten {
                events: self.overwritten,
            });
        }
        quality
    }
}
