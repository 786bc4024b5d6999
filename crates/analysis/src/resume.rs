//! Moments of a walk from which another can go on, as if it had looked at everything before.

use event::ResumePlace;
use model::Machine;

use crate::open_lanes::OpenLanes;

/// Moments that are kept at most: when there are more, every second one is given up.
const MOST: usize = 256;
/// Things that all of them have together at most: threads, vCPUs and CPUs, of about a hundred bytes each.
const MOST_THINGS: usize = 1 << 17;

/// A moment of a walk: where in the recording another can go on, and what was under way.
#[derive(Debug, Clone)]
pub struct Resume {
    /// Where it can go on.
    pub place: ResumePlace,
    pub(crate) machine: Machine,
    pub(crate) open: OpenLanes,
}

/// Moments of a walk, evenly spread over it.
#[derive(Debug, Default)]
pub(crate) struct Resumes {
    list: Vec<Resume>,
    /// Of so many places one is kept; 0 if none is any more.
    stride: u32,
    /// Places since the last one that was kept.
    since: u32,
}

impl Resumes {
    pub(crate) fn new() -> Resumes {
        Resumes {
            list: Vec::new(),
            stride: 1,
            since: 0,
        }
    }

    /// Whether any are kept.
    pub(crate) fn are_kept(&self) -> bool {
        self.stride > 0
    }

    /// Keeps a place, if it is its turn. `open` is what is under way; with `None` there are no places any more, those
    /// before included.
    pub(crate) fn add(
        &mut self,
        place: &ResumePlace,
        machine: &Machine,
        open: impl FnOnce() -> Option<OpenLanes>,
    ) {
        self.since += 1;
        if self.stride == 0 || self.since < self.stride {
            return;
        }
        self.since = 0;
        let Some(open) = open() else {
            *self = Resumes::default();
            return;
        };
        let things = machine.len() + open.len();
        self.list.push(Resume {
            place: place.clone(),
            machine: machine.clone(),
            open,
        });
        let most = (MOST_THINGS / things.max(1)).min(MOST);
        while self.list.len() > most {
            let mut number = 0usize;
            self.list.retain(|_| {
                number += 1;
                number.is_multiple_of(2)
            });
            self.stride = self.stride.saturating_mul(2);
        }
    }

    /// Returns them, first things first.
    pub(crate) fn taken(self) -> Vec<Resume> {
        self.list
    }
}
