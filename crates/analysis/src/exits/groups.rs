//! What separates rows beside their key.

use event::{EventType, Side};
use rustc_hash::FxHashMap;

use super::By;
use crate::analysis::GuestEvent;
use crate::guests::{Follow, GuestDoing, GuestWho};

/// Groups of rows by threads, and by what their guests do.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by: By,
    follow: Follow,
    /// The thread of each group, and what its guest did; empty where the group is the thread.
    list: Vec<(i32, GuestDoing)>,
    index: FxHashMap<(i32, GuestDoing), i32>,
}

impl Groups {
    pub(super) fn new(by: By) -> Groups {
        Groups {
            by,
            ..Groups::default()
        }
    }

    /// Returns the group a thread's rows belong to now: itself, until VMs are known at the end.
    #[inline]
    pub(super) fn of(&mut self, tid: i32) -> i32 {
        match self.by {
            By { task: true, .. } => self.of_task(tid),
            By { vm: true, .. } | By { vcpu: true, .. } => tid,
            _ => 0,
        }
    }

    fn of_task(&mut self, tid: i32) -> i32 {
        let key = (tid, self.follow.doing(tid));
        let list = &mut self.list;
        *self.index.entry(key).or_insert_with(|| {
            list.push(key);
            i32::try_from(list.len() - 1).unwrap_or(i32::MAX)
        })
    }

    /// Returns the thread of a group.
    pub(super) fn tid(&self, group: i32) -> i32 {
        match self.by.task {
            true => self.told(group).map_or(event::NONE, |(tid, _)| tid),
            false => group,
        }
    }

    /// Returns what the guest did, and of which guest that is.
    pub(super) fn doing(&self, group: i32) -> Option<(Option<u16>, GuestDoing)> {
        let (tid, doing) = self.told(group).filter(|_| self.by.task)?;
        Some((self.follow.machine(tid), doing))
    }

    /// Returns the same with its name.
    pub(super) fn who(&self, group: i32) -> Option<GuestWho> {
        let (tid, doing) = self.told(group).filter(|_| self.by.task)?;
        Some(GuestWho {
            doing,
            name: self.follow.called(tid, doing),
        })
    }

    fn told(&self, group: i32) -> Option<(i32, GuestDoing)> {
        self.list.get(usize::try_from(group).ok()?).copied()
    }

    pub(super) fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        self.by.task && self.follow.wants(ty)
    }

    pub(super) fn guest_event(&mut self, guest: &GuestEvent<'_>) {
        self.follow.takes(guest);
    }

    pub(super) fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
        self.follow.side(machine, side, |_, _| ());
    }
}
