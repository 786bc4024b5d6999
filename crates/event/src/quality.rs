//! What a recording misses: printed with every result.

use doubts::{AnswerScope, Doubt, DoubtKind, DoubtScope, Doubts};

use crate::losses::CpuLosses;

/// How complete a recording is, and what has to be known before its numbers are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quality {
    /// Events the recorder says it lost. Where it only says that some were lost, at least that many are
    /// counted, and a doubt says so.
    pub lost_events: u64,
    /// Those of them of which the recording says the CPU.
    pub losses: CpuLosses,
    /// Whether the recording ends before its own end: cut off, or its recorder was killed.
    pub truncated: bool,
    /// From when on events of some CPUs are missing and those of others are there, because the recording holds them CPU
    /// by CPU and was cut off: a time in nanoseconds of its clock, 0 where of some CPU there is nothing.
    pub uneven_from: Option<u64>,
    /// How many events were read, and how many of them are counted in what is printed; `None` where nothing counts
    /// them.
    pub accounted: Option<EventAccounting>,
    /// What else has to be known.
    pub doubts: Doubts,
}

/// How many events an answer is made of: what analyses counted into rows, merged rows, "not timed" and "left out", of
/// what the reader itself handed out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventAccounting {
    /// Events that are counted somewhere.
    pub events: u64,
    /// Events that the reader handed out, of the kinds that are counted.
    pub read: u64,
}

impl EventAccounting {
    /// Returns the share, 0 to 1; 1 of nothing.
    pub fn share(&self) -> f64 {
        match self.read {
            0 => 1.0,
            read => self.events as f64 / read as f64,
        }
    }

    /// Returns what is printed of it: `accounted: 100.0 %` of all and of nothing less, else how many of how many.
    pub fn text(&self) -> String {
        match self.events == self.read {
            true => "accounted: 100.0 %".to_owned(),
            false => format!("accounted: {} of {} events", self.events, self.read),
        }
    }
}

impl Quality {
    /// Raises a doubt, once.
    pub fn raise(&mut self, doubt: impl Into<Doubt>) {
        self.doubts.raise(doubt);
    }

    /// Leaves out losses and doubts that do not touch an answer: those of CPUs, threads and times that it does not
    /// show.
    pub fn limit(&mut self, shown: &AnswerScope) {
        let untouched = self.losses.leave_out_untouched(shown);
        self.lost_events = self.lost_events.saturating_sub(untouched);
        self.doubts = self.doubts.touching(shown);
    }

    /// Takes over what another part of the recording misses.
    pub fn merge(&mut self, other: Quality) {
        self.lost_events = self.lost_events.saturating_add(other.lost_events);
        // Another recording's CPUs have the same numbers.
        self.losses = CpuLosses::default();
        self.truncated |= other.truncated;
        self.uneven_from = [self.uneven_from, other.uneven_from]
            .into_iter()
            .flatten()
            .min();
        self.accounted = match (self.accounted, other.accounted) {
            (Some(a), Some(b)) => Some(EventAccounting {
                events: a.events.saturating_add(b.events),
                read: a.read.saturating_add(b.read),
            }),
            (one, other) => one.or(other),
        };
        self.doubts.extend(other.doubts);
    }

    /// Returns how much of the recording was read, in words.
    pub fn extent(&self) -> &'static str {
        // The rest is elsewhere, or could not be read.
        let partly = |doubt: &Doubt| {
            matches!(
                doubt.kind,
                DoubtKind::FilesNotRead
                    | DoubtKind::EntriesMissing { .. }
                    | DoubtKind::EventsMostlyUnread { .. }
                    | DoubtKind::EventsPartlyUnread { .. }
            )
        };
        match (self.truncated, self.doubts.iter().any(partly)) {
            (true, _) => "cut off before its end",
            (false, true) => "a part of it",
            (false, false) => "complete",
        }
    }

    /// Returns all doubts: that events were lost or that the end is missing first, then those that were raised.
    pub fn all_doubts(&self) -> Doubts {
        let mut all = Doubts::default();
        if self.lost_events > 0 {
            let events = self.lost_events;
            // Where it is not known of all of them which CPU lost them, any may have.
            let scope = match self.losses.events() >= events {
                true => self.losses.scope(),
                false => DoubtScope::default(),
            };
            let kind = DoubtKind::EventsLost { events };
            all.raise(Doubt { kind, scope });
        }
        if self.truncated {
            all.raise(DoubtKind::CutOff);
        }
        all.extend(self.doubts.iter().cloned());
        all
    }

    /// Returns the sentences of the doubts that were raised.
    pub fn texts(&self) -> Vec<String> {
        self.doubts.texts()
    }
}
