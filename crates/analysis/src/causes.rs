//! What only rules look at, event by event: single signs, faults, timers, moves between CPUs.

use event::{Data, Event, EventType};

use crate::{Faults, Moves, Signs, Timers};

/// The counters that rules ask for beside tables, states and paths. Another one is a file of its own and a member here.
#[derive(Debug, Default)]
pub struct Causes {
    /// Single events that point at a cause.
    pub signs: Signs,
    /// Which exits are for memory, for devices, for the local APIC.
    pub faults: Faults,
    /// Which exits the guests' timers cause.
    pub timers: Timers,
    /// What it costs when a vCPU changes its CPU.
    pub moves: Moves,
}

/// Whose an event is, where filters choose vCPUs and a window of time and CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen {
    /// It lies in the window.
    pub inside: bool,
    /// And is not of a vCPU that the filters leave out.
    pub counts: bool,
    /// It lies in the window's time and concerns a chosen vCPU: its own events, and all of the scheduler.
    pub follows: bool,
}

impl Causes {
    /// Returns counters that have seen nothing.
    pub fn new() -> Causes {
        Causes::default()
    }

    /// Takes a kind of events.
    pub(crate) fn learn(&mut self, ty: &EventType<'_>) {
        self.signs.learn(ty);
        self.faults.learn(ty);
        self.timers.learn(ty);
    }

    /// Takes an event.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event<'_>, data: &Data, chosen: Chosen) {
        if chosen.counts {
            self.signs.take(event, data);
            self.faults.take(event, data);
            self.timers.take(event, data);
        } else if chosen.inside {
            self.signs.take_other(event);
        }
        if chosen.follows {
            self.moves.take(event, data);
        }
    }
}
