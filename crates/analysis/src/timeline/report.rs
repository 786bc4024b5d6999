//! What a timeline found: lanes, marks, and the single events of some windows.

use std::collections::HashSet;

use super::cell::{Cell, LaneGroup};
use super::limits::TimelineLimits;
use super::marks::{Mark, MarkList, SEVERAL};
use super::names::TimelineNames;
use super::plan::StretchPlan;
use crate::resume::Resume;

/// What a recording's timeline has.
#[derive(Debug, Clone, Default)]
pub struct TimelineReport {
    /// From when it is.
    pub begin: u64,
    /// Until when.
    pub end: u64,
    /// Whether times are nanoseconds; if not, the clock counts ticks.
    pub nanoseconds: bool,
    /// The names of all that follows.
    pub names: TimelineNames,
    /// vCPUs by VM and number, then threads, those that ran most first, then CPUs.
    pub lanes: Vec<TimelineLane>,
    /// Marks.
    pub marks: Vec<TimelineMarks>,
    /// Times of interest, with their events.
    pub windows: Vec<TimelineWindow>,
    /// Threads of the host that have no lane.
    pub without_lane: u64,
    /// What else is not in it, a full sentence each.
    pub notes: Vec<String>,
    /// How large it may be.
    pub limits: TimelineLimits,
    /// Moments of the walk from which another can go on, first things first: what is between times of interest need not
    /// be looked at again.
    pub resumes: Vec<Resume>,
    /// Threads that no finding has named yet.
    pub(super) reserve: Vec<TimelineLane>,
}

/// What one vCPU, thread or CPU did.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineLane {
    /// What it goes by in links: `tid-1700`, `cpu-3`.
    pub id: String,
    /// What it is of.
    pub group: LaneGroup,
    /// What it is called.
    pub label: String,
    /// Its thread and process.
    pub detail: String,
    /// Its VM, if it is of one.
    pub vm: String,
    /// Its thread, if it is one's.
    pub tid: Option<i32>,
    /// Its cells, in order. Between them nothing was looked at.
    pub cells: Vec<Cell>,
    /// Its number: of vCPUs that of [`model::Machine`], of threads their id; `None` where a thread id was used again.
    pub(super) number: Option<i32>,
}

/// Marks of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineMarks {
    /// What they go by: `findings`, `lost`, `path:irqfd`.
    pub id: String,
    /// What they are called.
    pub label: String,
    /// The marks, in order of their beginnings.
    pub marks: Vec<Mark>,
}

/// A time of interest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineWindow {
    /// From when.
    pub begin: u64,
    /// Until when.
    pub end: u64,
    /// Why it is of interest.
    pub why: String,
    /// Its events, in order.
    pub events: Vec<TimelineEvent>,
    /// How many more it has.
    pub more: u64,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineEvent {
    /// When it was.
    pub time: u64,
    /// On which CPU; [`event::NONE`] where it is not known.
    pub cpu: i32,
    /// The thread that made it; [`event::NONE`] where it is not known.
    pub tid: i32,
    /// The number of its name.
    pub name: u32,
    /// The number of what it says.
    pub text: u32,
}

impl TimelineLane {
    /// Returns the time that it has of a state, by its number in [`LaneGroup::kinds`].
    pub fn of(&self, kind: u8) -> u64 {
        let all = self.cells.iter().map(|cell| cell.of(kind));
        all.fold(0, u64::saturating_add)
    }
}

impl TimelineReport {
    /// Finds out from when until when it is.
    pub(super) fn bound(&mut self, (begin, end): (u64, u64)) {
        let lanes = self.lanes.iter().chain(&self.reserve);
        let cells = lanes.filter_map(|lane| lane.cells.first().zip(lane.cells.last()));
        let ends = cells.map(|(first, last)| (first.start(), last.end()));
        let all = ends.fold((begin, end.max(begin)), |all, one| {
            (all.0.min(one.0), all.1.max(one.1))
        });
        (self.begin, self.end) = all;
        for mark in self.marks.iter_mut().flat_map(|list| &mut list.marks) {
            mark.begin = mark.begin.clamp(all.0, all.1);
            mark.end = mark.end.max(mark.begin);
        }
    }

    /// Returns what is not in it, a full sentence each.
    pub fn missing(&self) -> impl Iterator<Item = String> {
        let threads = (self.without_lane > 0).then(|| {
            format!(
                "{} of the host {} no lane here, since neither a path nor a finding names them or others ran more; \
                 'trapline sched' has all.",
                words::plural(self.without_lane, "other thread"),
                if self.without_lane == 1 { "has" } else { "have" }
            )
        });
        threads.into_iter().chain(self.notes.iter().cloned())
    }

    /// Says what is summed.
    pub(super) fn say_sums(&mut self) {
        let sums = self.lanes.iter().flat_map(|lane| &lane.cells);
        let sums = sums.filter(|cell| matches!(cell, Cell::Sum(_)));
        let longest = sums.map(Cell::ns).max();
        if let Some(longest) = longest {
            let length = words::duration::of(longest, self.nanoseconds);
            self.notes.push(format!(
                "Short stretches next to each other are summed, exactly, in pieces of {length} and less; 'trapline \
                 vcpus REC --time FROM,TO' has the sums of any other time, and 'trapline events REC --time \
                 FROM,TO' every event.",
            ));
        }
    }

    /// Adds marks of findings: from when until when, and what was found. Threads that findings name get lanes.
    pub fn add_findings(
        &mut self,
        marks: impl IntoIterator<Item = (u64, u64, String)>,
        threads: &HashSet<i32>,
    ) {
        let mut list = MarkList::default();
        for (begin, end, what) in marks {
            let begin = begin.clamp(self.begin, self.end);
            let end = end.clamp(begin, self.end);
            list.add(Mark {
                begin,
                end,
                count: 1,
                max_ns: end - begin,
                amount: 0,
                what: self.names.number(&what),
            });
        }
        let marks = list.taken(self.limits.marks).into_iter().map(|mark| Mark {
            what: if mark.what == SEVERAL { 0 } else { mark.what },
            ..mark
        });
        let marks: Vec<Mark> = marks.collect();
        if !marks.is_empty() {
            let of_findings = TimelineMarks {
                id: "findings".to_owned(),
                label: "findings".to_owned(),
                marks,
            };
            self.marks.insert(0, of_findings);
        }
        let reserve = std::mem::take(&mut self.reserve).into_iter();
        let named = reserve.filter(|lane| lane.tid.is_some_and(|tid| threads.contains(&tid)));
        let at = self
            .lanes
            .partition_point(|lane| lane.group != LaneGroup::Cpus);
        let named: Vec<TimelineLane> = named.collect();
        self.without_lane = self.without_lane.saturating_sub(named.len() as u64);
        self.lanes.splice(at..at, named);
    }

    /// Returns which sums the windows of interest have, and cuts windows that have too many to where there is room.
    /// Windows that come first are cut last.
    pub fn plan(&mut self) -> StretchPlan {
        let mut windows: Vec<(u64, u64)> = self
            .windows
            .iter()
            .map(|window| (window.begin, window.end))
            .collect();
        let lanes = self.lanes.iter();
        let lanes = lanes.filter_map(|lane| Some((lane.group, lane.number?, &lane.cells[..])));
        let lanes: Vec<(LaneGroup, i32, &[Cell])> = lanes.collect();
        let plan = StretchPlan::new(self.limits, &lanes, &mut windows);
        for (window, (_, end)) in self.windows.iter_mut().zip(windows) {
            if window.end != end {
                window.end = end;
                let length =
                    words::duration::of(end.saturating_sub(window.begin), self.nanoseconds);
                window.why.push_str(&format!(" (the first {length})"));
            }
        }
        plan
    }
}
