//! Lanes of what guests did, in a timeline that is ready otherwise.

use std::collections::HashMap;

use event::index_of;

use super::cell::{Cell, LaneGroup, OUTSIDE, Stretch};
use super::guest_lanes::GuestLane;
use super::report::{TimelineLane, TimelineReport};
use crate::guests::{GuestContext, NamedContext};

impl TimelineReport {
    /// Puts lanes of guests below those of their vCPUs. `names` is what their names' numbers stand for, from 1 on.
    pub(crate) fn add_guests(&mut self, lanes: Vec<GuestLane>, names: &[NamedContext]) {
        let names: Vec<u32> = names
            .iter()
            .map(|who| self.names.number(&called(who)))
            .collect();
        let mut by_tid: HashMap<i32, Vec<Cell>> = HashMap::new();
        for lane in lanes {
            by_tid.insert(lane.tid, lane.cells);
        }
        let named = |cell: Cell| match cell {
            Cell::One(one) => {
                let name = (index_of(one.what)).checked_sub(1);
                let name = name.and_then(|at| names.get(at)).copied();
                Cell::One(Stretch {
                    what: name.unwrap_or(0),
                    ..one
                })
            }
            sum @ Cell::Sum(_) => sum,
        };
        let looked_at = |cell: &Cell| !matches!(cell, Cell::One(one) if one.kind == OUTSIDE);
        let all = std::mem::take(&mut self.lanes);
        for lane in all {
            let tid = lane.tid.filter(|_| lane.group == LaneGroup::Vcpus);
            let cells = tid.and_then(|tid| by_tid.remove(&tid));
            let of_guest = cells
                .filter(|cells| !cells.is_empty())
                .map(|cells| TimelineLane {
                    id: format!("guest-{}", lane.id),
                    group: LaneGroup::Guests,
                    label: format!("guest of {}", lane.label),
                    detail: "what its guest did, as its own recording says".to_owned(),
                    vm: lane.vm.clone(),
                    tid: None,
                    cells: cells.into_iter().filter(looked_at).map(named).collect(),
                    number: None,
                });
            self.lanes.push(lane);
            self.lanes.extend(of_guest);
        }
    }
}

/// Returns what something is called in a lane, whose state says already what kind of thing it is.
fn called(who: &NamedContext) -> String {
    let name = who.name.as_deref().unwrap_or("");
    match who.doing {
        GuestContext::Task(tid) => format!("{name}:{tid}"),
        _ => name.to_owned(),
    }
}
