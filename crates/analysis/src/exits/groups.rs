//! What separates rows beside their key.

use event::{EventType, Side};
use model::RetiredThreads;
use rustc_hash::FxHashMap;

use super::functions::{GuestCode, GuestStarts, LeftAt};
use super::rows::OTHER_VCPUS;
use super::{ExitRow, GuestFunction, RowSplit};
use crate::analysis::GuestEvent;
use crate::guests::{ContextName, GuestContext, GuestCpus, NamedContext};

/// Most groups by what guests did. The exits of further ones are in the groups of what is unknown.
const MAX_GROUPS: usize = 1 << 20;

/// What the rows of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowGroup {
    tid: i32,
    /// What the guest did, where rows are separated by that.
    doing: Option<GuestContext>,
    /// Where the guest was, where rows are separated by that.
    code: Option<GuestCode>,
}

/// What a group's rows have beside their thread: of which guest it is, what that did, and where it was.
pub(super) type InGuest = (Option<u16>, Option<GuestContext>, Option<GuestCode>);

/// Groups of rows by threads, and by what their guests do.
#[derive(Debug, Default)]
pub(super) struct RowGroups {
    by: RowSplit,
    follow: GuestCpus,
    left: LeftAt,
    /// The groups; empty where a group is a thread.
    list: Vec<RowGroup>,
    index: FxHashMap<RowGroup, i32>,
}

impl RowGroups {
    pub(super) fn new(by: RowSplit, starts: GuestStarts) -> RowGroups {
        RowGroups {
            by,
            left: LeftAt::new(starts),
            ..RowGroups::default()
        }
    }

    /// Takes an exit: where the guest was.
    #[inline]
    pub(super) fn left(&mut self, tid: i32, pc: Option<u64>) {
        if self.by.function {
            self.left.left(tid, pc);
        }
    }

    /// Whether groups are more than threads.
    fn is_in_guest(&self) -> bool {
        self.by.task || self.by.function
    }

    /// Whether a group is a thread.
    pub(super) fn are_threads(&self) -> bool {
        !self.is_in_guest() && (self.by.vm || self.by.vcpu)
    }

    /// Forgets threads that are not kept apart any more: their groups are of no thread.
    pub(super) fn retire(&mut self, retired: &RetiredThreads) {
        self.left.retire(retired);
        if self.list.is_empty() {
            return;
        }
        for group in self
            .list
            .iter_mut()
            .filter(|group| retired.has_tid(group.tid))
        {
            self.index.remove(group);
            group.tid = OTHER_VCPUS;
        }
    }

    /// Returns the group a thread's rows belong to now: itself, until VMs are known at the end.
    #[inline]
    pub(super) fn of(&mut self, tid: i32) -> i32 {
        match self.by {
            RowSplit { task: true, .. } | RowSplit { function: true, .. } => self.in_guest(tid),
            RowSplit { vm: true, .. } | RowSplit { vcpu: true, .. } => tid,
            _ => 0,
        }
    }

    fn in_guest(&mut self, tid: i32) -> i32 {
        let mut key = RowGroup {
            tid,
            doing: self.by.task.then(|| self.follow.doing(tid)),
            code: self.by.function.then(|| self.left.code(tid)),
        };
        if self.list.len() >= MAX_GROUPS && !self.index.contains_key(&key) {
            key.doing = key.doing.map(|_| GuestContext::Unknown);
        }
        let list = &mut self.list;
        *self.index.entry(key).or_insert_with(|| {
            list.push(key);
            i32::try_from(list.len() - 1).unwrap_or(i32::MAX)
        })
    }

    /// Returns the thread of a group.
    pub(super) fn tid(&self, group: i32) -> i32 {
        match self.is_in_guest() {
            true => self.find(group).map_or(event::NONE, |group| group.tid),
            false => group,
        }
    }

    /// Returns what rows of the group share with no others, beside their thread.
    pub(super) fn inside(&self, group: i32) -> Option<InGuest> {
        let group = self.find(group)?;
        let machine = group.doing.and_then(|_| self.follow.machine(group.tid));
        Some((machine, group.doing, group.code))
    }

    /// Adds to a row what the guest did and where it was.
    pub(super) fn describe(&self, group: i32, row: &mut ExitRow) {
        let Some(group) = self.find(group) else {
            return;
        };
        row.task = self.who(&group);
        row.function = group.code.map(|code| GuestFunction { code, name: None });
    }

    fn who(&self, group: &RowGroup) -> Option<NamedContext> {
        let doing = group.doing?;
        Some(NamedContext {
            doing,
            name: self.follow.called(group.tid, doing),
        })
    }

    /// Returns what the guest did in a group, where rows are separated by that.
    pub(super) fn doing(&self, group: i32) -> Option<GuestContext> {
        self.find(group)?.doing
    }

    /// Returns the same with its name, and without its number.
    pub(super) fn did(&self, group: i32) -> Option<ContextName> {
        Some(self.who(&self.find(group)?)?.did())
    }

    fn find(&self, group: i32) -> Option<RowGroup> {
        let at = usize::try_from(group).ok().filter(|_| self.is_in_guest())?;
        self.list.get(at).copied()
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
