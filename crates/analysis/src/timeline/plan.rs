//! Which sums are to be replaced by their stretches.

use rustc_hash::FxHashMap;

use super::cell::{Cell, LaneGroup};
use super::lane::Ranges;
use super::limits::TimelineLimits;
use super::tasks::LaneRanges;

/// A window takes no more than this part of all stretches that may be found.
const PART: usize = 4;

/// What a lane is of, its number, and the times of its sums that are asked for, in order.
pub(super) type LaneSums = (LaneGroup, i32, Vec<(u64, u64)>);

/// Sums of lanes that are to be replaced by their stretches.
#[derive(Debug, Clone)]
pub struct StretchPlan {
    limits: TimelineLimits,
    pub(super) lanes: Vec<LaneSums>,
}

/// What of vCPUs is wanted.
#[derive(Debug, Default)]
pub(crate) struct Parts(FxHashMap<usize, Ranges>);

impl Parts {
    pub(crate) fn of_vcpu(&mut self, number: usize) -> Ranges {
        self.0.remove(&number).unwrap_or_default()
    }

    /// Returns those that no lane has yet.
    pub(super) fn all(&self) -> impl Iterator<Item = &Ranges> {
        self.0.values()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl StretchPlan {
    /// Returns a plan for lanes: what each is of, its number, and its cells. `windows` are cut to what there is room
    /// for, the first ones last.
    pub(super) fn new(
        limits: TimelineLimits,
        lanes: &[(LaneGroup, i32, &[Cell])],
        windows: &mut [(u64, u64)],
    ) -> StretchPlan {
        let mut chosen: Vec<Vec<bool>> = lanes
            .iter()
            .map(|(_, _, cells)| vec![false; cells.len()])
            .collect();
        let mut room = limits.details;
        for window in windows {
            let most = room.min((limits.details / PART).max(1));
            let cost = |window: (u64, u64), chosen: &[Vec<bool>]| {
                let all = lanes.iter().zip(chosen);
                all.map(|((_, _, cells), chosen)| {
                    sums(cells, window)
                        .filter(|(at, _)| !chosen.get(*at).copied().unwrap_or(true))
                        .map(|(_, count)| count)
                        .fold(0, usize::saturating_add)
                })
                .fold(0, usize::saturating_add)
            };
            while cost(*window, &chosen) > most && window.1.saturating_sub(window.0) > 1_000 {
                window.1 = window.0 + (window.1 - window.0) / 2;
            }
            let mut left = most;
            for ((_, _, cells), chosen) in lanes.iter().zip(&mut chosen) {
                for (at, count) in sums(cells, *window) {
                    if let Some(chosen) = chosen.get_mut(at)
                        && !*chosen
                        && count <= left
                    {
                        *chosen = true;
                        left -= count;
                        room -= count;
                    }
                }
            }
        }
        let lanes = lanes.iter().zip(&chosen);
        let lanes = lanes.filter_map(|((group, number, cells), chosen)| {
            let times = cells.iter().zip(chosen).filter(|(_, chosen)| **chosen);
            let times = times.map(|(cell, _)| (cell.start(), cell.end()));
            let times: Vec<(u64, u64)> = times.collect();
            (!times.is_empty()).then_some((*group, *number, times))
        });
        StretchPlan {
            limits,
            lanes: lanes.collect(),
        }
    }

    /// Returns whether no sum is to be replaced.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Returns all times that are asked for, of whatever lane.
    pub fn times(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let lanes = self.lanes.iter();
        lanes.flat_map(|(_, _, times)| times.iter().copied())
    }

    /// Returns when the last of it is over.
    pub fn until(&self) -> u64 {
        let ends = self.lanes.iter().filter_map(|(_, _, times)| times.last());
        ends.map(|(_, end)| *end).max().unwrap_or(0)
    }

    /// Returns how many stretches a lane may have.
    pub(super) fn limits(&self) -> TimelineLimits {
        TimelineLimits {
            // Time that was not looked at is among them.
            cells: self.limits.details.saturating_mul(2),
            ..self.limits
        }
    }

    /// Returns the ranges by lane.
    pub(super) fn parts(&self) -> (Parts, LaneRanges) {
        let (mut parts, mut only) = (Parts::default(), LaneRanges::default());
        for (group, number, times) in &self.lanes {
            let ranges = Ranges::new(times.clone());
            match group {
                LaneGroup::Vcpus => {
                    if let Ok(number) = usize::try_from(*number) {
                        parts.0.insert(number, ranges);
                    }
                }
                LaneGroup::Threads => {
                    only.threads.insert(*number, ranges);
                }
                LaneGroup::Cpus => {
                    only.cpus.insert(*number, ranges);
                }
                // Their lanes have no number, so none is asked for.
                LaneGroup::Guests => {}
            }
        }
        (parts, only)
    }
}

/// Returns the sums among cells that touch a window: where they are, and of how many stretches.
fn sums(cells: &[Cell], (begin, end): (u64, u64)) -> impl Iterator<Item = (usize, usize)> {
    let first = cells.partition_point(|cell| cell.end() <= begin);
    let rest = cells.iter().enumerate().skip(first);
    rest.take_while(move |(_, cell)| cell.start() < end)
        .filter_map(|(at, cell)| match cell {
            Cell::Sum(sum) => Some((at, usize::try_from(sum.count).unwrap_or(usize::MAX))),
            Cell::One(_) => None,
        })
}
