//! Lanes of what guests did, one below each vCPU whose guest's recording is known: a task, an interrupt, a softirq,
//! idle.
//!
//! A lane is made of the same parts of the vCPU's spans that [`crate::GuestTasks`] adds up, so its sums are those of
//! the table. Guests' lanes have cells of their own: those of the host are as many with and without them.

use std::collections::HashMap;

use event::{NONE, index_of};

use super::cell::{Cell, Stretch};
use super::lane::{FEWEST, Lane};
use super::limits::{TimelineLimits, unit};
use crate::guests::GuestContext;

/// vCPUs that have a lane of their guest.
const MAX_LANES: usize = 1 << 11;
/// Things that guests did which have names in lanes; beyond, stretches have a state and no name.
const MAX_NAMES: usize = 1 << 16;
/// Stretches after which it is looked at anew how many cells each lane may have.
const EVERY: u32 = 1 << 13;
/// Which part of all cells guests' lanes have for themselves.
const PART: usize = 2;

/// States of lanes of guests.
const TASK: u8 = 0;
const INTERRUPT: u8 = 1;
const SOFTIRQ: u8 = 2;
const IDLE: u8 = 3;
const UNKNOWN: u8 = 4;

/// Collects them.
#[derive(Debug)]
pub(crate) struct GuestLanes {
    cells: usize,
    cap: usize,
    taken: u32,
    /// By the number of the vCPU.
    lanes: Vec<Lane>,
    /// What guests did, each with a thread that is a vCPU of that guest; numbers begin with 1.
    names: Vec<(i32, GuestContext)>,
    numbers: HashMap<(u16, GuestContext), u32>,
}

/// A lane that is ready: the thread of its vCPU, and its cells, with numbers of names.
#[derive(Debug)]
pub(crate) struct GuestLane {
    pub(crate) tid: i32,
    pub(crate) cells: Vec<Cell>,
}

fn kind(doing: GuestContext) -> u8 {
    match doing {
        GuestContext::Task(_) => TASK,
        GuestContext::Interrupt(_) => INTERRUPT,
        GuestContext::Softirq(_) => SOFTIRQ,
        GuestContext::Idle => IDLE,
        GuestContext::Unknown => UNKNOWN,
    }
}

fn as_is(one: &Stretch) -> u8 {
    one.kind
}

impl GuestLanes {
    /// Returns what has seen nothing.
    pub(crate) fn new(limits: TimelineLimits) -> GuestLanes {
        let cells = limits.cells / PART;
        GuestLanes {
            cells,
            cap: cells,
            taken: 0,
            lanes: Vec::new(),
            names: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// A guest, by its machine and the thread of the vCPU, did something from one time to another.
    pub(crate) fn add(
        &mut self,
        vcpu: u32,
        (machine, tid): (u16, i32),
        doing: GuestContext,
        start: u64,
        end: u64,
    ) {
        let at = index_of(vcpu);
        if at >= MAX_LANES {
            return;
        }
        if self.lanes.len() <= at {
            self.lanes.resize_with(at + 1, Lane::default);
        }
        let one = Stretch {
            start,
            end,
            kind: kind(doing),
            cpu: NONE,
            what: self.number(machine, tid, doing),
            behind: 0,
        };
        let cap = self.cap;
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.push(one, cap, &as_is);
        }
        self.taken += 1;
        if self.taken >= EVERY {
            self.taken = 0;
            let wants = self.lanes.iter();
            let wants = wants.map(|lane| (lane.len().saturating_mul(2).max(FEWEST), 1));
            let wants: Vec<(usize, usize)> = wants.collect();
            self.cap = unit(&wants, self.cells.saturating_mul(2)).max(FEWEST);
        }
    }

    fn number(&mut self, machine: u16, tid: i32, doing: GuestContext) -> u32 {
        if matches!(doing, GuestContext::Idle | GuestContext::Unknown) {
            return 0;
        }
        if let Some(known) = self.numbers.get(&(machine, doing)) {
            return *known;
        }
        if self.names.len() >= MAX_NAMES {
            return 0;
        }
        self.names.push((tid, doing));
        let number = self.names.len() as u32;
        self.numbers.insert((machine, doing), number);
        number
    }

    /// Returns the lanes, with the thread of each vCPU, and what their names' numbers stand for, from 1 on: what was
    /// done, and by the guest of which vCPU.
    pub(crate) fn taken(
        mut self,
        tids: &[Option<i32>],
    ) -> (Vec<GuestLane>, Vec<(i32, GuestContext)>) {
        let wants = self.lanes.iter().map(|lane| (lane.len(), 1));
        let wants: Vec<(usize, usize)> = wants.collect();
        let cap = unit(&wants, self.cells).max(FEWEST);
        let lanes = self.lanes.iter_mut().zip(tids);
        let lanes = lanes.filter_map(|(lane, tid)| {
            lane.finish(self.cap, &as_is);
            lane.fit(cap, &as_is);
            let cells = std::mem::take(lane).into_cells();
            Some(GuestLane {
                tid: (*tid)?,
                cells,
            })
        });
        (lanes.collect(), self.names)
    }
}
